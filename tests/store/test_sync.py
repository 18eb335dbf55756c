"""gnc sync: clones and worktrees that write at once and meet through a bare remote. All agree in the end, and no line that was ever written is lost."""
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations, permutations

import pytest
from calls import gnc, gnc_process
from git_notes_consolidation import sync as syncing
from git_notes_consolidation.models import SAMPLE_NOW, CaptureConfidence, EdgeType, MemoryEdge, MemorySummary, MemoryTier, mem
from git_notes_consolidation.notes import (REFS, Append, RaceLost, RepoError, UnknownId, append, edge_append, encode, fold, hold, note_paths, note_text,
                                           open_repo, our_tips, read_blobs, read_events, run_lock, summary_append, tier_append)
from git_notes_consolidation.sync import find_remote, merge_refs, sync
from helpers import add_memories, git, refs, story

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
OBJECTS = [c * 40 for c in "abcd"]
A, B, C = (mem(t, days_ago=d, commit_sha=o) for t, d, o in (("one", 3, OBJECTS[0]), ("two", 2, OBJECTS[1]), ("three", 1, OBJECTS[2])))


def learn(home, run, newer=B, older=A):
    "A run that has something to say in each of our refs."
    told = MemorySummary(f"sum_{run}", "decisions", NOW, (A.timestamp, B.timestamp), "Both", (), (), (), (A.id, B.id), run, CaptureConfidence(0.8))
    records = [tier_append(older, MemoryTier.HOT, MemoryTier.COLD, run, 0.1, run), summary_append(newer.commit_sha, told, run),
               edge_append(newer.commit_sha, MemoryEdge(newer.id, older.id, EdgeType.SUPERSEDES, reason=run), run, NOW),
               Append("runs", newer.commit_sha, {"kind": "run", "id": run, "at": NOW.isoformat()})]
    append(open_repo(home), lambda e: records, NOW)


def state_of(home): return fold(read_events(open_repo(home)))
def go(home, *args, **kw): return sync(open_repo(home), *args, **kw)
def at(home): return our_tips(open_repo(home))


def lines(home, tip=None, ref=None):
    "Annotated object and line, of one notes commit or of all our refs."
    repo = open_repo(home)
    if tip is None: return {(ref, *x) for ref, tip in at(home).items() for x in lines(home, tip)}
    rows = note_paths(repo, tip)
    blobs = read_blobs(repo, [b for *_, b in rows])
    return {(obj, line) for obj, _, blob in rows for line in blobs[blob].split(b"\n") if line}


def ever(home):
    "Every line that any of our refs has held at any time, by git's own log of each ref."
    moves = {ref: set(git(home, "log", "-g", "--format=%H", ref).split()) for ref in at(home)}
    return {(ref, *x) for ref, tips in moves.items() for tip in tips for x in lines(home, tip)}


def make(place, *names, bare=(), remote="team.git", **options):
    "A bare remote and clones of it that log every move of a ref."
    new = ["init", "--quiet", "--template=", "--initial-branch=main", *(f"--{k}={v}" for k, v in options.items())]
    git(place, *new, "--bare", remote)
    for n in names:
        git(place, *new, *(["--bare"] if n in bare else []), n)
        git(place / n, "remote", "add", "origin", "x")
        git(place / n, "config", "remote.origin.url", f"../{remote}" if n not in bare else str(place / remote))
        for k, v in (("core.logAllRefUpdates", "always"), ("user.name", "Tester"), ("user.email", "tester@example.org")): git(place / n, "config", k, v)
    git(place / remote, "config", "core.logAllRefUpdates", "always")
    return [place / n for n in names]


@pytest.fixture
def pair(tmp_path):
    "Two clones that have each made a run, with a remote that knows of neither."
    one, two = make(tmp_path, "one", "two")
    learn(one, "run_1"); learn(two, "run_2", C, A)
    return one, two


def agree(*homes):
    "Every clone in turn, twice: then there is nothing left to bring."
    for _ in range(2):
        for home in homes: last = go(home)
    assert sum(last.came.values()) == sum(last.went.values()) == 0
    assert all(at(h) == at(homes[0]) for h in homes) and all(state_of(h) == state_of(homes[0]) for h in homes)
    return state_of(homes[0])


# Meeting


def test_two_clones_hold_the_same_commits(pair, tmp_path):
    one, two = pair
    assert state_of(one) != state_of(two)
    state = agree(one, two)
    assert set(state.runs) == {"run_1", "run_2"} and len(state.edges) == len(state.summaries) == 2
    assert at(one) == refs(tmp_path / "team.git", "refs/notes/")
    assert all(ever(h) <= lines(one) for h in (one, two)) and git(tmp_path / "team.git", "fsck", "--strict", "--no-dangling") == ""


def test_a_merge_is_the_same_commit_wherever_it_is_made(pair, tmp_path):
    one, two = pair
    for home, other in (pair, pair[::-1]): git(home, "fetch", "--quiet", other, "+refs/notes/*:refs/gnc/other/*")
    def theirs(home): return {s: refs(home)[r.replace("refs/notes", "refs/gnc/other")] for s, r in REFS.items()}
    first, second = theirs(one), theirs(two)
    for home, tips_ in ((one, first), (two, second)): merge_refs(open_repo(home), tips_)
    assert at(one) == at(two)
    assert {len(git(one, "rev-list", "--no-walk", "--parents", t).split()) for t in at(one).values()} == {3}


def test_what_was_counted_is_what_moved(pair):
    one, two = pair
    r = go(one)
    assert (set(r.went.values()), set(r.came.values()), r.sent, r.learned, r.tries) == ({1}, {0}, ("run_1",), (), 1)
    r = go(two)
    assert (set(r.went.values()), set(r.came.values()), r.sent, r.learned) == ({1}, {1}, ("run_2",), ("run_1",))
    r = go(one)
    assert (set(r.went.values()), set(r.came.values()), r.sent, r.learned) == ({0}, {1}, (), ("run_2",))


def test_a_dry_run_moves_nothing_and_says_it_all(pair, tmp_path):
    one, two = pair
    go(one)
    before, there = refs(two, "refs/notes/"), refs(tmp_path / "team.git")
    r = go(two, dry_run=True)
    assert (refs(two, "refs/notes/"), refs(tmp_path / "team.git")) == (before, there)
    assert replace(r, dry_run=False) == go(two)


def test_no_push_takes_and_gives_nothing(pair, tmp_path):
    one, two = pair
    go(one)
    there = refs(tmp_path / "team.git")
    r = go(two, send=False)
    assert r.learned == ("run_1",) and sum(r.went.values()) == 0 and refs(tmp_path / "team.git") == there
    assert set(state_of(two).runs) == {"run_1", "run_2"}


def test_the_memories_and_all_other_refs_are_left_to_others(pair, tmp_path):
    one, two = pair
    add_memories(one, [A])
    git(one, "update-ref", "refs/notes/mem-edges/v2", at(one)[REFS["edges"]])
    git(one, "notes", "--ref=commits", "add", "-m", "x", git(one, "hash-object", "-w", "--stdin", input="x"))
    go(one); go(two)
    assert set(refs(tmp_path / "team.git")) == set(REFS.values()) and not refs(two, "refs/notes/mem/")


def test_nothing_anywhere_is_nothing_to_do(tmp_path):
    home, = make(tmp_path, "one")
    r = go(home)
    assert (sum(r.came.values()), sum(r.went.values()), refs(home)) == (0, 0, {})


def test_nothing_new_costs_one_connection(pair, monkeypatch):
    agree(*pair)
    said, real = [], syncing.talk
    monkeypatch.setattr(syncing, "talk", lambda repo, remote, *args, **kw: said.append(args[0]) or real(repo, remote, *args, **kw))
    before = refs(pair[0])
    go(pair[0])
    assert said == ["ls-remote"] and refs(pair[0]) == before


@pytest.mark.parametrize("fanned", [0, 1, 2])
def test_notes_meet_at_whatever_path_they_lie(pair, fanned):
    "One clone's git has fanned the tree out, or has not."
    one, two = pair
    for ref, tip in at(one).items():
        rows = "".join(f"M 100644 {blob} {''.join(obj[2 * i:2 * i + 2] + '/' for i in range(fanned))}{obj[2 * fanned:]}\n"
                       for obj, _, blob in note_paths(open_repo(one), tip))
        git(one, "fast-import", "--quiet", input=f"commit {ref}\ncommitter a <a@example.org> 0 +0000\ndata 1\nx\nfrom {tip}\ndeleteall\n{rows}")
    agree(one, two)
    assert all(len({o for o, *_ in rows}) == len(rows) for tip in at(two).values() for rows in [note_paths(open_repo(two), tip)])


# Kinds of repositories


def test_a_worktree_shares_its_clones_refs(pair, tmp_path):
    one, two = pair
    git(two, "commit", "--quiet", "--allow-empty", "-m", "x")
    git(two, "worktree", "add", "--quiet", "-b", "side", tmp_path / "side")
    git(two, "config", "remote.origin.url", tmp_path / "team.git")
    go(one); go(tmp_path / "side")
    assert set(state_of(two).runs) == {"run_1", "run_2"} and at(two) == at(tmp_path / "side")


@pytest.mark.parametrize("kind", ["bare", "mirror", "sha256", "partial", "shallow"])
def test_clones_of_every_kind(tmp_path, kind):
    one, = make(tmp_path, "one", **({"object-format": "sha256"} if kind == "sha256" else {}))
    git(tmp_path / "team.git", "config", "uploadpack.allowFilter", "true")
    for text in "xy": git(one, "commit", "--quiet", "--allow-empty", "-m", text)
    git(one, "push", "--quiet", "origin", "HEAD")
    for i in range(3): learn(one, f"run_{i}")
    if kind != "partial": go(one)
    how = {"bare": ["--bare"], "mirror": ["--mirror"], "partial": ["--filter=blob:none"], "shallow": ["--depth=1"]}.get(kind, [])
    git(tmp_path, "clone", "--quiet", *how, f"file://{tmp_path}/team.git", "two")
    two = tmp_path / "two"
    learn(two, "run_x", C, A)
    assert set(agree(one, two).runs) == {"run_0", "run_1", "run_2", "run_x"} and read_events(open_repo(two)).problems == ()


def test_a_refspec_that_would_overwrite_our_refs_does_not(pair, monkeypatch):
    "Whoever fetches refs/notes/* by force loses what was not pushed, at each fetch and at each push; but not through us."
    one, two = pair
    go(one)
    git(two, "config", "--add", "remote.origin.fetch", "+refs/notes/*:refs/notes/*")
    git(two, "config", "--add", "remote.origin.push", "refs/notes/mem/*:refs/notes/mem/*")
    real = syncing.push
    monkeypatch.setattr(syncing, "push", lambda *args: (real(*args), learn(two, "run_late") if "edges" in args[2] else None))
    settings = git(two, "config", "--list", "--local")
    go(two)
    assert set(state_of(two).runs) == {"run_1", "run_2", "run_late"} and git(two, "config", "--list", "--local") == settings
    assert lines(two) >= ever(two)
    assert "run_late" not in state_of(one.parent / "team.git").runs


def test_the_users_fetch_settings_do_not_apply(pair):
    one, two = pair
    go(one)
    git(two, "update-ref", "refs/remotes/origin/gone", git(two, "commit-tree", "-m", "x", git(two, "mktree", input="")))
    git(one.parent / "team.git", "tag", "v1", at(one)[REFS["runs"]])
    for k in ("fetch.prune", "fetch.pruneTags", "push.followTags"): git(two, "config", k, "true")
    (two / ".git" / "FETCH_HEAD").write_text("mine")
    git(two, "tag", "-a", "-m", "x", "v2", at(two)[REFS["runs"]])
    go(two)
    assert (two / ".git" / "FETCH_HEAD").read_text() == "mine" and "refs/remotes/origin/gone" in refs(two) and "refs/tags/v2" in refs(two)
    assert set(refs(one.parent / "team.git", "refs/tags")) == {"refs/tags/v1"} and "refs/tags/v1" not in refs(two)


def test_the_push_url_is_gits_affair(pair, tmp_path):
    one, _ = pair
    git(tmp_path, "init", "--quiet", "--bare", "mirror.git")
    git(one, "config", "remote.origin.pushurl", "../mirror.git")
    go(one)
    assert refs(tmp_path / "mirror.git") == at(one) and refs(tmp_path / "team.git") == {}


# Which remote


def test_which_remote(pair, tmp_path):
    one, _ = pair
    repo = open_repo(one)
    assert find_remote(repo).name == "origin"
    git(one, "commit", "--quiet", "--allow-empty", "-m", "x")
    git(one, "remote", "add", "up=stream.x", "../mirror.git"); git(one, "config", "branch.main.remote", "up=stream.x")
    git(tmp_path, "init", "--quiet", "--bare", "mirror.git")
    assert find_remote(repo).name == "up=stream.x" and find_remote(repo, "origin").name == "origin"
    go(one)
    assert refs(tmp_path / "mirror.git") == at(one)
    git(one, "checkout", "--quiet", "--detach")
    assert find_remote(repo).name == "origin"
    git(one, "remote", "rename", "origin", "elsewhere")
    with pytest.raises(UnknownId, match="elsewhere, up=stream.x.*gnc sync NAME"): find_remote(repo)
    git(one, "remote", "remove", "elsewhere")
    assert find_remote(repo).name == "up=stream.x"
    assert go(one, str(tmp_path / "team.git")).sent == ("run_1",) and refs(tmp_path / "team.git") == at(one)


# Races


def test_whoever_was_faster_is_not_overwritten(pair, monkeypatch):
    one, two = pair
    real, rivals = syncing.push, ["run_3", "run_4"]
    def push(repo, remote, commits, *rest):
        if rivals and "edges" in commits:
            learn(two, rivals.pop())
            monkeypatch.setattr(syncing, "push", real); go(two); monkeypatch.setattr(syncing, "push", push)
        return real(repo, remote, commits, *rest)
    monkeypatch.setattr(syncing, "push", push)
    r = go(one)
    assert r.tries == 3 and r.sent == ("run_1",) and set(r.went.values()) == {1} and set(r.came.values()) == {3}
    assert set(agree(one, two).runs) == {f"run_{i}" for i in (1, 2, 3, 4)}


def test_a_race_that_is_never_won_ends(pair, monkeypatch):
    monkeypatch.setattr(syncing, "push", lambda *args: (_ for _ in ()).throw(RaceLost("origin has moved on.")))
    with pytest.raises(RepoError, match="has moved on.*3 times.*try again"): go(pair[0], tries=3)


def test_a_server_that_forbids_it_is_quoted_at_once(pair, tmp_path):
    one, _ = pair
    hook = tmp_path / "team.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no notes on Fridays >&2; exit 1\n"); hook.chmod(0o755)
    begin = time.monotonic()
    with pytest.raises(RepoError, match="origin did not take it: .*pre-receive hook declined.*no notes on Fridays.*is kept"): go(one)
    assert time.monotonic() - begin < 5 and refs(tmp_path / "team.git") == {}


def test_the_run_is_pushed_after_its_records_and_as_it_was_then(pair, tmp_path, monkeypatch):
    "A run that ends while we push is not half of it on the remote."
    one, two = pair
    real, seen = syncing.push, []
    def push(repo, remote, commits, *rest):
        real(repo, remote, commits, *rest)
        seen.append((sorted(commits), sorted(state_of(tmp_path / "team.git").edges)))
        if len(seen) == 1: learn(one, "run_late", C, B)
    monkeypatch.setattr(syncing, "push", push)
    go(one)
    assert [s for s, _ in seen] == [["edges", "meta", "summaries"], ["runs"]] and seen[0][1] == []
    assert state_of(tmp_path / "team.git").runs.keys() == {"run_1"} and len(state_of(tmp_path / "team.git").edges) == 1
    monkeypatch.undo()
    assert set(agree(one, two).runs) == {"run_1", "run_2", "run_late"}


def torn(one, two, remote, real, args, kw):
    "What a server gives that reads its refs one by one, the runs last, while another clone's sync comes in between."
    out, wrong = real(open_repo(one), remote, *args, **kw)
    go(two)
    if args[0] == "fetch": return real(open_repo(one), remote, *args[:-4], args[-1], **kw)  # the runs as they are now
    now, _ = real(open_repo(one), remote, *args, **kw)
    return "\n".join([*(x for x in out.splitlines() if "runs" not in x), *(x for x in now.splitlines() if "runs" in x)]), wrong


@pytest.mark.parametrize("command", ["ls-remote", "fetch"])
@pytest.mark.parametrize("first", [True, False])
def test_whoever_fetches_in_the_middle_of_a_push_gets_no_half_run(pair, monkeypatch, command, first):
    "Whether the remote had refs of ours before or gets its first."
    one, two = pair
    if not first or command == "fetch": go(two); go(one); learn(two, "run_3", C, B); go(two); learn(two, "run_4", A, B)
    real, done = syncing.talk, []
    def talk(repo, remote, *args, **kw):
        if repo.path == one and args[0] == command and not done:
            done.append(args)
            return torn(one, two, remote, real, args, kw)
        return real(repo, remote, *args, **kw)
    monkeypatch.setattr(syncing, "talk", talk)
    go(one, send=False)
    state = state_of(one)
    by = [*(e.reason for e in state.edges.values()), *(x.consolidation_run_id for x in state.summaries.values())]
    assert done and sorted(by) == sorted([*state.runs] * 2)  # an edge and a summary of each


def test_a_second_sync_of_the_clone_waits(pair):
    one, _ = pair
    with hold(open_repo(one), "sync.lock", ""):
        begin = time.monotonic()
        with pytest.raises(RepoError, match="another sync"): go(one, timeout=0.4)
        assert time.monotonic() - begin > 0.3


def test_a_lock_that_a_killed_fetch_left_is_removed(pair):
    one, two = pair
    agree(one, two)
    kept = find_remote(open_repo(one)).kept
    for name in refs(one, kept): (one / ".git" / f"{name}.lock").touch()
    learn(two, "run_3"); go(two)
    assert go(one).learned == ("run_3",)


# kill -9


class Dying(subprocess.Popen):
    "The n-th process that is started is not: we die instead."
    left = 0

    def __init__(self, *args, **kw):
        Dying.left -= 1
        if Dying.left < 0: os.kill(os.getpid(), signal.SIGKILL)
        super().__init__(*args, **kw)


def dies(n, work):
    "Does the work end before its n-th process?"
    def child():
        Dying.left, subprocess.Popen = n, Dying
        work()
    p = multiprocessing.get_context("fork").Process(target=child)
    p.start(); p.join()
    assert p.exitcode in (0, -signal.SIGKILL)
    return p.exitcode == 0


@pytest.mark.slow
def test_kill_anywhere_and_nobody_counts_half_a_run(pair, tmp_path):
    """The clone that is killed, the remote, and whoever takes from it: each has a run whole or not at all, and the next sync completes.

    At every fifth process; `make faults` tries every one."""
    make(tmp_path, "three", remote="other.git")
    git(tmp_path / "three", "config", "remote.origin.url", "../team.git")
    one, two = pair
    go(two)
    base = tmp_path / "base"; base.mkdir()
    for n in ("team.git", "one", "three"): shutil.move(tmp_path / n, base / n)
    final = shutil.copytree(base, tmp_path / "final")
    old, before = state_of(base / "one"), state_of(base / "team.git")
    go(final / "one"); go(final / "one")
    new, seen = state_of(final / "one"), set()
    for n in range(0, 200, 1 if os.environ.get("GNC_LONG") else 5):
        here = shutil.copytree(base, tmp_path / "here")
        done = dies(n, lambda here=here: go(here / "one"))
        state, there = state_of(here / "one"), state_of(here / "team.git")
        assert state in (old, new) and there in (before, new)
        go(here / "three", send=False)
        assert state_of(here / "three") == there
        seen.add((state == new, there == new))
        go(here / "one")
        assert state_of(here / "one") == state_of(here / "team.git") == new and at(here / "one") == at(final / "one")
        with run_lock(open_repo(here / "one")): pass
        assert not refs(here / "one", "refs/gnc/tmp/")
        shutil.rmtree(here)
        if done: break
    assert done and n > 15 and seen == {(False, False), (True, False), (True, True)}


def test_some_of_the_data_refs_moved_and_nothing_counts(pair):
    "Git renames the refs of a transaction one after another."
    one, two = pair
    git(one, "fetch", "--quiet", two, "+refs/notes/*:refs/gnc/other/*")
    theirs = {s: refs(one)[r.replace("refs/notes", "refs/gnc/other")] for s, r in REFS.items()}
    old, before = state_of(one), at(one)
    merge_refs(open_repo(one), theirs)
    new, after = state_of(one), at(one)
    for some in (c for n in range(4) for c in combinations(("meta", "summaries", "edges"), n)):
        for ref, tip in before.items(): git(one, "update-ref", ref, tip)
        for s in some: git(one, "update-ref", REFS[s], after[REFS[s]])
        assert state_of(one) == old
        merge_refs(open_repo(one), theirs)
        assert (state_of(one), at(one)) == (new, after)


def test_our_own_run_ends_between_the_moves(pair, monkeypatch):
    "The merge has moved the data when another worktree appends a whole run."
    from git_notes_consolidation import notes
    one, two = pair
    go(two)
    real, moves = notes.move_refs, []
    def move(repo, rows, final=False):
        real(repo, rows, final)
        moves.append(rows)
        if len(moves) == 1: monkeypatch.setattr(notes, "move_refs", real); learn(one, "run_3", C, B)
    monkeypatch.setattr(notes, "move_refs", move)
    r = go(one)
    assert set(state_of(one).runs) == {"run_1", "run_2", "run_3"} and set(r.came.values()) == {1}
    assert lines(one) >= ever(one) | lines(two) and len(state_of(one).edges) == 3


# Whatever the lines: union, in any order, once


def build(home, ref, notes, fanned):
    "A notes commit with these lines, by annotated object."
    rows = []
    for obj, some in sorted(notes.items()):
        text = b"".join(x + b"\n" for x in some)
        path = f"{obj[:2]}/{obj[2:]}" if fanned else obj
        rows.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text))
    head = f"commit {ref}\ncommitter a <a@example.org> {len(rows)} +0000\ndata 1\nx\n".encode()
    subprocess.run(["git", "-C", home, "fast-import", "--quiet", "--force"], input=head + b"".join(rows), check=True)
    return refs(home)[ref]


def edge_line(i, reason="", seq=1):
    e = MemoryEdge([A, B, C][i % 3].id, [B, C, A][i % 3].id, EdgeType.SUPERSEDES, reason=f"{reason}{i}")
    return encode({**edge_append(OBJECTS[0], e, f"run_{i}", NOW).record, "id": f"r_{i}", "seq": seq}).encode()


def run_line(i, **more): return encode({"kind": "run", "id": f"run_{i}", "seq": 1, "at": NOW.isoformat(), **more}).encode()


POOL = {"edges": [*(edge_line(i) for i in range(4)), edge_line(0, "forged"), edge_line(1, "forged"), b"scribble", b"\xff\xfe", b"---", b"  ", b"- {"],
        "runs": [*(run_line(i) for i in range(4)), run_line(0, config="forged"), b"- {}", b"x" * 5000]}

try: from hypothesis import given, settings, strategies as st
except ImportError: pass
else:
    SIDE = st.fixed_dictionaries({s: st.dictionaries(st.sampled_from(OBJECTS[:3]), st.lists(st.sampled_from(pool), min_size=1, max_size=4), max_size=3)
                                  for s, pool in POOL.items()})

    @settings(max_examples=12)
    @given(sides=st.tuples(SIDE, SIDE, SIDE), fanned=st.tuples(st.booleans(), st.booleans(), st.booleans()))
    def test_merging_is_union(tmp_path_factory, sides, fanned):
        home = tmp_path_factory.mktemp("union")
        git(home, "init", "--quiet", "--template=", "--bare")
        tips_ = [{s: build(home, f"refs/side/{i}/{s}", notes, fanned[i]) for s, notes in side.items() if notes} for i, side in enumerate(sides)]
        repo = open_repo(home)

        def put(side):
            for ref in at(home): git(home, "update-ref", "-d", ref)
            for s, tip in side.items(): git(home, "update-ref", REFS[s], tip)

        def meet(*several):
            put(several[0])
            for other in several[1:]: merge_refs(repo, other)
            return {s: at(home)[r] for s, r in REFS.items() if r in at(home)}
        model = {(REFS[s], obj, x) for side in sides for s, notes in side.items() for obj, some in notes.items() for x in some}
        a, b, c = tips_
        assert meet(a, b) == meet(b, a)
        before = at(home)
        assert merge_refs(repo, a) == merge_refs(repo, b) == {} and at(home) == before
        found = []
        for chain in ([a, b, c], [c, b, a], [a, meet(b, c)]):
            meet(*chain)
            assert lines(home) == model
            found.append(fold(read_events(repo)))
        assert found[0] == found[1] == found[2]


def test_of_two_that_share_a_name_the_same_counts_everywhere(tmp_path):
    "Somebody forged a record; in which order the two lie in a note or a tree depends on who merged what first."
    pair, states = [edge_line(0), edge_line(0, "forged")], []
    for i, (x, y) in enumerate([pair, pair[::-1]]):
        for j, notes in enumerate([{OBJECTS[0]: [x, y]}, {OBJECTS[0]: [x], OBJECTS[1]: [y]}]):
            home = tmp_path / f"{i}{j}"; home.mkdir()
            git(home, "init", "--quiet", "--template=")
            build(home, REFS["edges"], notes, True); build(home, REFS["runs"], {OBJECTS[0]: [run_line(0)]}, True)
            states.append(state_of(home))
    assert len(states[0].edges) == 1 and all(s == states[0] for s in states)


# Everybody at once


NAMESPACES = ("decisions", "learnings", "progress", "patterns")
PARTS = [story()[i::4] for i in range(4)]
MINE = [[replace(m, namespace=ns) for m in part[6:]] for ns, part in zip(NAMESPACES, PARTS)]
EVERYTHING = [*story(), *(m for mine in MINE for m in mine)]


def busy(home, memories, seed, barrier):
    "Remember, consolidate, take back and sync, as the dice fall."
    dice = random.Random(seed)
    barrier.wait()
    for m in memories:
        now = SAMPLE_NOW + timedelta(minutes=dice.randrange(60))
        add_memories(home, [m])
        steps = [["consolidate", "--yes", "--max-change", "1"], ["sync"], ["undo", "--yes", None], ["sync", "--no-push"], ["recall", "retry", "--no-reason"]]
        for step in dice.sample(steps, 3):
            if step[-1] is None:
                made = [r["id"] for r in gnc("runs", "--json", repo=home).json if r["kind"] == "run" and not r["undone"]]
                if not made: continue
                step = [*step[:-1], dice.choice(made)]
            r = gnc(*step, repo=home, now=now)
            assert r.code == 0 or (r.code in (1, 3, 4) and step[0] in ("undo", "consolidate")), (step, r)
    r = gnc("sync", repo=home)
    assert r.code == 0, r


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    "Three clones, one of them bare and one with a second worktree, after all have written and synced at once."
    place = tmp_path_factory.mktemp("crowd")
    one, two, three = make(place, "one", "two", "three", bare=("three",))
    git(two, "config", "remote.origin.url", place / "team.git")
    git(two, "commit", "--quiet", "--allow-empty", "-m", "x"); git(two, "worktree", "add", "--quiet", "-b", "side", place / "side")
    for home, part in zip((one, two, three), PARTS):
        add_memories(home, [*story()[:16], *part[4:6]])
        assert gnc("consolidate", "--yes", "--max-change", "1", repo=home).code == 0
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(4)
    workers = [fork.Process(target=busy, args=(home, mine[:3], i, barrier)) for i, (home, mine) in enumerate(zip((one, two, place / "side", three), MINE))]
    for w in workers: w.start()
    for w in workers: w.join()
    assert [w.exitcode for w in workers] == [0] * 4
    return place, (one, two, three)


def whole(place, homes, also=frozenset()):
    "All agree, nothing that was ever written is missing, and each clone passes the audit."
    state = agree(*homes)
    written = set(also).union(*(ever(h) for h in (*homes, place / "team.git")))
    assert written <= lines(homes[0]) and at(homes[0]) == refs(place / "team.git", "refs/notes/")
    assert all(read_events(open_repo(h)).problems == () for h in homes)
    return state


@pytest.mark.slow
def test_many_at_once_agree_in_the_end(crowd):
    place, homes = crowd
    state = whole(place, homes)
    assert len(state.runs) >= 6 and state.tiers  # The dice may have taken back every run that made an edge
    for h in homes:
        add_memories(h, EVERYTHING)  # which the plugin carries
        assert (r := gnc("audit", repo=h)).code == 0, r.out


@pytest.fixture
def copies(crowd, tmp_path):
    "The crowd, to be treated badly."
    place, homes = crowd
    for name in ("team.git", *(h.name for h in homes)): shutil.copytree(place / name, tmp_path / name)
    for name in ("two", "three"): git(tmp_path / name, "config", "remote.origin.url", tmp_path / "team.git")
    homes = [tmp_path / h.name for h in homes]
    agree(*homes)
    for i, h in enumerate(homes): learn(h, f"run_own_{i}", *[(B, A), (C, A), (C, B)][i])
    return tmp_path, homes


@pytest.mark.slow
@pytest.mark.parametrize("order", list(permutations(range(3)))[::2])
def test_after_gits_own_merge(copies, order):
    "One of them takes the notes of another by hand and lets git sort and unite the lines."
    place, homes = copies
    one, two, three = (homes[i] for i in order)
    git(one, "fetch", "--quiet", two, "+refs/notes/mem-*:refs/notes/by-hand/mem-*")
    for ref in REFS.values():
        name = ref.removeprefix("refs/notes/")
        git(one, "notes", "--ref", name, "merge", "--quiet", "--strategy=cat_sort_uniq", f"refs/notes/by-hand/{name}")
    go(three); go(one)
    state = whole(place, (two, one, three))
    assert {f"run_own_{i}" for i in range(3)} <= state.runs.keys()


@pytest.mark.slow
def test_after_a_rebase_that_copies_notes_and_after_gc(copies):
    "The memory's commit is rewritten; its notes, ours too, are on the old one and on the new. Then the old one is pruned."
    place, (one, two, three) = copies
    for text in "pq": git(one, "commit", "--quiet", "--allow-empty", "-m", text)
    head = git(one, "rev-parse", "HEAD")
    first, second = mem("ADR-090: We build on Flask", "Small.", days_ago=20), mem("ADR-091: We build on FastAPI", "Supersedes ADR-090.", days_ago=9)
    text = "\n".join(note_text(m) for m in (first, second))
    git(one, "notes", "--ref=refs/notes/mem/decisions", "add", "--force", "-m", text, head)
    assert gnc("consolidate", "--yes", "--max-change", "1", repo=one).code == 0
    go(one); go(two)
    before = state_of(one)
    assert any(obj == head for _, obj, _ in lines(one))
    git(one, "config", "notes.rewriteRef", "refs/notes/*"); git(one, "config", "notes.rewriteMode", "cat_sort_uniq")
    git(one, "rebase", "--quiet", "--root", "--force-rebase", "--reset-author-date", date="2026-11-05T00:00:00+00:00")
    new = git(one, "rev-parse", "HEAD")
    assert new != head and any(obj == new for _, obj, _ in lines(one))
    learn(two, "run_meanwhile")
    written = set().union(*(ever(h) for h in (one, two, three)))
    for h in (one, two, three):
        git(h, "reflog", "expire", "--expire=now", "--all"); git(h, "gc", "--quiet", "--prune=now"); git(h, "prune")
    assert git(one, "cat-file", "-e", head, check=False) == "" and subprocess.run(["git", "-C", one, "cat-file", "-e", head], capture_output=True).returncode
    state = whole(place, (one, two, three), written)
    assert state.runs.keys() >= before.runs.keys() | {"run_meanwhile"} and before.edges.keys() <= state.edges.keys()
    for h in (one, two, three): git(h, "gc", "--quiet", "--prune=now"); assert state_of(h) == state


# Remotes that mean no good


def tree(home, *entries):
    "A tree with whatever entries, as no ordinary command would make it."
    rows = b"".join(b"%s %s\0%s" % (mode.encode(), name, bytes.fromhex(obj)) for mode, name, obj in sorted(entries, key=lambda e: e[1]))
    done = subprocess.run(["git", "-C", home, "hash-object", "-t", "tree", "-w", "--stdin", "--literally"], input=rows, capture_output=True, check=True)
    return done.stdout.decode().strip()


def blob(home, data):
    return subprocess.run(["git", "-C", home, "hash-object", "-w", "--stdin"], input=data, capture_output=True, check=True).stdout.decode().strip()


def spoiled(home, tip, *entries):
    "A commit on top of a notes commit, with more in its tree."
    there = [(m.split()[0], p.encode(), m.split()[2]) for m, p in (row.split("\t") for row in git(home, "ls-tree", tip).splitlines())]
    return git(home, "commit-tree", "-p", tip, "-m", "x", tree(home, *there, *entries))


def test_lines_that_are_no_records_are_carried_reported_and_harmless(pair, tmp_path):
    one, two = pair
    agree(one, two)
    bad = [b"\xff\xfe\x00 not text", b"\x1b]0;owned\x07\x1b[2J", b'- {"id": "r_x", "kind": "edge", "seq": 1e999}', b"x" * 5_000_000, "\u202eevil".encode()]
    for ref, tip in at(one).items():
        note = blob(one, b"\n\n".join([*bad, min(x for _, x in lines(one, tip))]))
        git(one, "update-ref", ref, spoiled(one, tip, ("100644", OBJECTS[3].encode(), note)))
    written = lines(one) | lines(two)
    git(one, "push", "--quiet", "origin", *REFS.values())
    learn(two, "run_3")
    said = gnc("sync", repo=two)
    assert said.code == 0 and "not a record, carried along" in said.out and not set("\x1b\x07\u202e") & set(said.out + said.err)
    r = gnc("sync", "--json", "--dry-run", repo=two)
    assert r.code == 0 and r.json["problems"] == []  # they are no news any more
    state = agree(one, two)
    assert lines(two) >= written and "run_3" in state.runs
    assert len(read_events(open_repo(two)).problems) == len(bad) * len(REFS)


def test_other_things_in_the_tree_are_no_notes(pair, tmp_path):
    "A link, a submodule, names that climb out of the repository: they stay in the commit that brought them and reach no file."
    one, two = pair
    go(one)
    outside = sorted(p for p in tmp_path.rglob("*") if ".git" not in str(p.relative_to(tmp_path)))
    text, link, far = blob(one, b"- {}\n"), blob(one, b"/etc/passwd"), "1" * 40
    for ref, tip in at(one).items():
        deep = tree(one, ("100755", b"hook", text), ("120000", b"link", link))
        evil = spoiled(one, tip, ("100644", b"..", text), ("100644", b"../../escaped", text), ("120000", OBJECTS[3].encode(), link), ("160000", b"e" * 40, far),
                       ("40000", b".git", deep), ("100644", b'"quoted\nM 100644', text), ("100644", b"--upload-pack=touch pwned", text))
        git(one, "update-ref", f"refs/evil/{ref[11:]}", evil)
        git(one, "push", "--quiet", "origin", f"refs/evil/{ref[11:]}:{ref}")
    try: go(two)
    except RepoError as e: assert "fast-import" in str(e) and set(state_of(two).runs) == {"run_2"}
    else: assert set(state_of(two).runs) == {"run_1", "run_2"} and not any(obj == "e" * 40 for _, obj, _ in lines(two))
    assert sorted(p for p in tmp_path.rglob("*") if ".git" not in str(p.relative_to(tmp_path))) == outside
    assert not refs(two, "refs/gnc/tmp/")


@pytest.mark.parametrize("kind", ["blob", "tree", "tag"])
def test_a_ref_that_is_no_commit_is_refused(pair, tmp_path, kind):
    one, two = pair
    made = {"blob": lambda: blob(one, b"x"), "tree": lambda: tree(one),
            "tag": lambda: git(one, "mktag", input=f"object {at(one)[REFS['edges']]}\ntype commit\ntag x\ntagger a <a@example.org> 0 +0000\n\nx")}[kind]()
    git(one, "push", "--quiet", "origin", f"{made}:{REFS['edges']}", f"{REFS['meta']}:{REFS['meta']}")
    before, there = at(two), refs(tmp_path / "team.git")
    for dry in (True, False):
        with pytest.raises(RepoError, match=f"their {REFS['edges']}.*no commit of notes but: {kind}"): go(two, dry_run=dry)
    assert at(two) == before and refs(tmp_path / "team.git") == there


def test_names_that_only_end_like_ours_are_not_ours(pair, tmp_path):
    one, two = pair
    for name in ("refs/heads/", "refs/notes/x/", "refs/"): git(one, "push", "--quiet", "origin", *(f"{r}:{name}{r}" for r in REFS.values()))
    git(one, "push", "--quiet", "origin", f"{REFS['edges']}:refs/notes/mem-edges/v1x", f"{REFS['edges']}:refs/notes/mem-edges/--x")
    go(two, send=False)
    assert set(state_of(two).runs) == {"run_2"} and not refs(two, "refs/gnc/")


@pytest.mark.parametrize("name", ["--upload-pack=touch pwned", "-u", "--", "ext::sh -c touch% pwned", "$(touch pwned)", "`touch pwned`",
                                  "x\n--upload-pack=touch pwned", "ssh://-oProxyCommand=touch pwned/x", "a;touch pwned"])
def test_a_remotes_name_is_never_run(pair, tmp_path, name):
    one, _ = pair
    before = refs(one)
    r = gnc("sync", "--", name, repo=one)
    assert r.code == (2 if name.startswith("-") else 1) and r.err.startswith("gnc: ") and refs(one) == before
    git(one, "config", "remote.origin.url", name)
    assert gnc("sync", repo=one).code == 1
    git(one, "config", "--rename-section", "remote.origin", f"remote.{name}", check=False)
    assert gnc("sync", repo=one).code in (1, 2)
    assert not list(tmp_path.rglob("pwned")) and not os.path.exists("pwned")


# Nobody is asked


def test_no_terminal_and_no_program_to_ask_with(pair, tmp_path, monkeypatch):
    "With a terminal at hand, and an askpass that would answer, git and ssh get neither."
    one, _ = pair
    script = tmp_path / "ask"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\necho secret\n"); script.chmod(0o755)
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\n(echo password: > /dev/tty) 2> /dev/null && touch {tmp_path}/asked\n"
                   f"env > {tmp_path}/env\nexit 255\n"); ssh.chmod(0o755)
    for k in ("GIT_ASKPASS", "SSH_ASKPASS"): monkeypatch.setenv(k, str(script))
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh)); monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    git(one, "config", "remote.origin.url", "ssh://example.org/x"); git(one, "config", "core.askPass", str(script))
    pid, tty = os.forkpty()
    if not pid:
        try: go(one, timeout=20)
        except RepoError as e: os.write(1, f"refused: {e}".encode())
        os._exit(0)
    out = b""
    try:
        while some := os.read(tty, 4096): out += some
    except OSError: pass
    os.waitpid(pid, 0); os.close(tty)
    env = (tmp_path / "env").read_text().splitlines()
    assert b"refused: origin cannot be reached" in out and b"password" not in out and not (tmp_path / "asked").exists()
    assert {"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never"} <= set(env)


def test_a_remote_that_does_not_answer_is_given_up_with_all_it_started(pair, tmp_path, monkeypatch):
    one, _ = pair
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n"); ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh)); monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    git(one, "config", "remote.origin.url", "ssh://example.org/x")
    begin = time.monotonic()
    r = gnc("sync", "--timeout", "1", repo=one)
    assert r.code == 1 and "origin did not answer within 1 s" in r.err and time.monotonic() - begin < 20
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(50): os.kill(pid, 0); time.sleep(0.1)


def test_a_password_in_a_url_is_not_shown(pair):
    r = gnc("sync", "https://ada:hunter2@localhost:1/x.git", repo=pair[0])
    assert r.code == 1 and "localhost:1" in r.err and "hunter2" not in r.out + r.err


# The command


def test_the_command(pair, tmp_path):
    one, two = pair
    assert gnc_process("--repo", one, "sync").code == 0
    r = gnc("sync", "--dry-run", "--json", repo=two).json
    assert (r["dry_run"], r["learned"], r["sent"], r["remote"], r["came"]["edges"]) == (True, ["run_1"], ["run_2"], "origin", 1)
    assert gnc("sync", "--no-push", repo=two).code == 0
    r = gnc("sync", repo=two)
    assert r.code == 0 and "Records moved: origin" in r.out and "run_2" in r.out
    assert "refs/notes/mem/*" in gnc("sync", "--help").out
    with hold(open_repo(two), "sync.lock", ""): assert gnc("sync", "--timeout", "1", repo=two).code == 4
    git(two, "remote", "remove", "origin")
    assert (r := gnc("sync", repo=two)).code == 2 and "git remote add origin URL" in r.err
    assert (r := gnc("sync", "nowhere", repo=two)).code == 1 and "git ls-remote nowhere" in r.err


def test_what_came_is_seen_at_once(pair):
    "The cache asks git whether it is still right."
    one, two = pair
    for home in pair: add_memories(home, [A, B, C])
    assert gnc("recall", "one", "--no-reason", "--json", repo=two).code == 0
    before = gnc("tiers", "--json", repo=two).out
    go(one); go(two)
    assert gnc("tiers", "--json", repo=two).out != before or gnc("edges", A.id, "--json", repo=two).json
    found = gnc("edges", A.id, "--json", repo=two).json
    assert {"run_1", "run_2"} <= set(str(found).replace("'", " ").split())
