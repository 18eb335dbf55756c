"""What was added to the notes is read as the reader of everything would: over histories that only grew, and none of any other."""
import subprocess
import tempfile
from dataclasses import astuple, replace

import pytest
from calls import new_repo
from helpers import git, refs
from hypothesis import given, settings, strategies as st
from test_notes import some_notes

from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.store.changes import additions_since, joined_places
from git_notes_consolidation.store.git import MEM, note_paths, open_repo
from git_notes_consolidation.store.reader import note_text, read_memories, write_memories

OBJECTS = [f"{i:x}" * 40 for i in range(4)] + [f"0{i:x}" * 20 for i in range(1, 4)]  # Some of them in one folder


def put(home, changes, ns="decisions", new=False):
    "Write notes past `git notes`: path to bytes, to the blob that is there (behind a mode, if it is not a file's), or to none."
    ref = f"{MEM}{ns}"
    rows = [b"commit %s\ncommitter a <a@example.org> 0 +0000\ndata 1\nx\n" % ref.encode()]
    if ref in refs(home, MEM) and not new: rows.append(f"from {ref}^0\n".encode())
    for path, data in changes.items():
        if data is None: rows.append(f"D {path}\n".encode())
        elif isinstance(data, str): rows.append(f"M {data if ' ' in data else f'100644 {data}'} {path}\n".encode())
        else: rows.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data))
    subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=home, input=b"".join(rows), check=True, capture_output=True)


def text(*summaries, **kw): return b"\n".join(note_text(mem(s, f"Body of {s}", **kw)).encode() for s in summaries)
def folders(obj, depth): return "/".join([*(obj[2 * i:2 * i + 2] for i in range(depth)), obj[2 * depth:]])
def whole(memories): return [(m, [astuple(p) for p in m.places]) for m in memories]  # Places are equal whatever their blob


def odd(m): return f"{MEM}{m.namespace} {m.commit_sha}", m.places[0].offset


def check(scan, new, now):
    "What was known and what was added are what is there."
    known = {m.id: m for m in scan.memories}
    twice = [(known[m.id], m) for m in new.memories if m.id in known]
    behind = {odd(max(pair, key=lambda m: m.places[0])) for pair in twice}  # What is said of a front is said of the first place
    all_ = known | {m.id: joined_places(known[m.id], m) if m.id in known else m for m in new.memories}
    assert whole(now.memories) == whole(sorted(all_.values(), key=lambda m: (m.timestamp, m.id)))
    assert (scan.notes + new.notes, scan.records + new.records, new.tips) == (now.notes, now.records, now.tips)
    assert set(now.problems) == {p for p in {*scan.problems, *new.problems} if not (p.reason.endswith("ignored") and (p.note, p.offset) in behind)}
    assert list(new.memories) == sorted(new.memories, key=lambda m: (m.timestamp, m.id)) and len({m.id for m in new.memories}) == len(new.memories)


def seen(home): return read_memories(open_repo(home))


A, B, C, LAST = OBJECTS[1], OBJECTS[2], OBJECTS[3], text("One", "Two")


# Only added


one = st.builds(lambda s, days, ns, tags, i: mem(s, f"Body of {s}", days_ago=days, namespace=ns, tags=tags, importance=i), st.sampled_from("abcdef"),
                st.integers(0, 2), st.sampled_from(["decisions", "progress"]), st.sampled_from([(), ("x",), ("y", "z")]), st.none() | st.floats(0, 1))
odd_text = st.sampled_from([b"importance: 9\n---\n\nx\n", b"valid_from: no\n---\n\nx\n", b"importance: 1\n---\n\nx\n", b"tags: [x]\n---\n\n\xff\n"]).map(
    lambda rest: b"---\ntimestamp: 2026-01-01\nsummary: odd\n" + rest)
said = one.map(lambda m: (m.namespace, note_text(m).encode())) | st.tuples(st.sampled_from(["decisions", "progress", "my/own"]), odd_text)
step = st.tuples(st.sampled_from(["flat", "folder", "git", "git", "move", "copy"]), st.sampled_from(OBJECTS), said)


def go(home, how, obj, ns, data, commits):
    "One more record, or a note at another path, or on another object."
    there = {o: (path, blob) for o, path, blob in note_paths(open_repo(home), f"{MEM}{ns}")} if f"{MEM}{ns}" in refs(home, MEM) else {}
    if how == "git":
        on = commits[int(obj[1], 16) % len(commits)]
        subprocess.run(["git", "notes", f"--ref=mem/{ns}", "append", "-F", "-", on], cwd=home, input=data, check=True, capture_output=True)
    elif how == "copy" and there: put(home, {} if obj in there else {obj: sorted(there.values())[0][1]}, ns)
    elif how == "move" and obj in there: put(home, {there[obj][0]: None, folders(obj, 2 - there[obj][0].count("/")): there[obj][1]}, ns)
    else:
        path, blob = there.get(obj, (folders(obj, how == "folder"), None))
        was = subprocess.run(["git", "cat-file", "blob", blob], cwd=home, check=True, capture_output=True).stdout + b"\n" if blob else b""
        put(home, {path: was + data}, ns)


@pytest.mark.slow
@given(st.lists(one, min_size=1, max_size=5, unique_by=lambda m: m.id), st.lists(step, max_size=4), st.lists(step, max_size=6))
@settings(max_examples=15)
def test_what_was_known_and_what_was_added_are_what_is_there(first, before, since):
    with tempfile.TemporaryDirectory() as home:
        git(home, "init", "--quiet", "--template=", "--initial-branch=main")
        git(home, "config", "user.name", "Tester")
        git(home, "config", "user.email", "tester@example.org")
        write_memories(open_repo(home), first)
        commits = git(home, "rev-list", "main").split()
        for how, obj, (ns, data) in before: go(home, how, obj, ns, data, commits)
        scan = seen(home)
        for how, obj, (ns, data) in since: go(home, how, obj, ns, data, commits)
        new, now = additions_since(open_repo(home), scan.tips), seen(home)
        check(scan, new, now)
        check(replace(scan, memories=(), problems=(), notes=0, records=0), additions_since(open_repo(home), {}), now)
        assert additions_since(open_repo(home), scan.tips, new.records - 1) is None or not new.records


some = st.dictionaries(st.sampled_from([*OBJECTS, folders(OBJECTS[0], 1), folders(OBJECTS[4], 2), "README"]), some_notes, max_size=4)
tail = st.none() | st.just(b"") | some_notes | st.just(b"\n" + text("Later"))


@pytest.mark.slow
@given(some, st.dictionaries(st.sampled_from(OBJECTS), st.tuples(st.booleans(), tail), max_size=4))
@settings(max_examples=50)
def test_of_any_change_it_is_right_or_silent(first, then):
    with tempfile.TemporaryDirectory() as home:
        git(home, "init", "--quiet", "--template=")
        put(home, first)
        scan = seen(home)
        then = {path: data if data is None else first.get(path, b"") * grow + data for path, (grow, data) in then.items()}
        put(home, {path: data for path, data in then.items() if data is not None or path in first})
        new = additions_since(open_repo(home), scan.tips)
        if new is not None: check(scan, new, seen(home))


# Anything else


def thrown_away(home, scan):
    put(home, {C: text("Later")})
    return {**scan.tips, f"{MEM}decisions": "1" * 40}


def missing(home, scan):
    row = f"100644 blob {'1' * 40}\t{C}"
    tree = git(home, "mktree", "--missing", input="\n".join([git(home, "ls-tree", f"{MEM}decisions"), row]) + "\n")
    git(home, "update-ref", f"{MEM}decisions", git(home, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit-tree", tree, "-m", "x"))


OTHERWISE = {
    "an edited record": lambda h, s: put(h, {A: LAST.replace(b"Body of One", b"Body of 1")}),
    "a record less": lambda h, s: put(h, {A: text("One")}),
    "a record in place of another": lambda h, s: put(h, {A: text("One", "Three", "Four")}),
    "more of a body": lambda h, s: put(h, {A: LAST + b"and more\n"}),
    "a note less": lambda h, s: put(h, {A: None}),
    "a note on another object": lambda h, s: put(h, {A: None, C: LAST}),
    "other notes": lambda h, s: put(h, {C: text("Three")}, new=True),
    "a ref less": lambda h, s: git(h, "update-ref", "-d", f"{MEM}decisions"),
    "a second note": lambda h, s: put(h, {folders(A, 1): text("Three")}),
    "two notes at once": lambda h, s: put(h, {C: text("Three"), folders(C, 1): text("Three")}),
    "a tip that is thrown away": thrown_away,
    "a blob that is missing": missing,
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("change", OTHERWISE.values(), ids=OTHERWISE)
def test_whatever_else_happened_is_none(tmp_path, change):
    home = new_repo(tmp_path / "repo")
    put(home, {A: LAST, B: b"---\ntype: x\nsummary: open\ntimestamp: 2026-01-01\n"})
    put(home, {A: text("Aside")}, "progress")
    scan = seen(home)
    put(home, {B: text("Later")}, "progress")
    assert additions_since(open_repo(home), scan.tips) is not None
    changed = change(home, scan)
    assert additions_since(open_repo(home), changed if isinstance(changed, dict) else scan.tips) is None
