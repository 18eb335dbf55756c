"""Many clones that write at once: whatever the lines, in any order, all agree in the end."""
import multiprocessing
import random
import shutil
import subprocess
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings, strategies as st
from calls import gnc, state_of
from clones import NOW, OBJECTS, A, B, C, agree, at, ever, go, learn, lines, make
from helpers import add_memories, git, refs, story

from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.store.events import REFS, edge_append, encode, read_events
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import note_text
from git_notes_consolidation.store.state import fold
from git_notes_consolidation.store.sync import merge_refs

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

SIDE = st.fixed_dictionaries({s: st.dictionaries(st.sampled_from(OBJECTS[:3]), st.lists(st.sampled_from(pool), min_size=1, max_size=4), max_size=3)
                              for s, pool in POOL.items()})

@pytest.mark.slow
@settings(max_examples=6)
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


# Everybody at once


NAMESPACES = ("decisions", "learnings", "progress", "patterns")
PARTS = [story()[i::4] for i in range(4)]
MINE = [[replace(m, namespace=ns) for m in part[6:]] for ns, part in zip(NAMESPACES, PARTS)]
EVERYTHING = [*story(), *(m for mine in MINE for m in mine)]


def remember(home, m):
    "Another may have moved the ref in between, as the worktrees of one repository do."
    for left in range(9, -1, -1):
        try: return add_memories(home, [m])
        except AssertionError:
            if not left: raise


def busy(home, memories, seed, barrier):
    "Remember, consolidate, take back and sync, as the dice fall."
    dice = random.Random(seed)
    barrier.wait()
    for m in memories:
        now = SAMPLE_NOW + timedelta(minutes=dice.randrange(60))
        remember(home, m)
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
    assert written <= lines(homes[0]) and refs(homes[0], "refs/notes/") == refs(place / "team.git", "refs/notes/")
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
def test_after_gits_own_merge(copies):
    "One of them takes the notes of another by hand and lets git sort and unite the lines."
    place, homes = copies
    one, two, three = homes
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
