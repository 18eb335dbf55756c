"""Two clones that ran apart and then merge their notes: by git's own merge, and by laying the lines side by side. Both must come to one state."""
import json
import shutil
from collections import defaultdict
from datetime import timedelta

import pytest
import yaml
from calls import state_of
from helpers import add_memories, git, refs, story

from git_notes_consolidation.consolidation import service as consolidation_service
from git_notes_consolidation.consolidation import stores as service
from git_notes_consolidation.consolidation import undo as consolidation_undo
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.events import REFS, access_append, read_events
from git_notes_consolidation.store.git import note_paths, open_repo, read_blobs, tips
from git_notes_consolidation.store.locks import clone_id
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.store.writer import append

BEFORE, MEANWHILE = SAMPLE_NOW - timedelta(days=30), SAMPLE_NOW - timedelta(days=5)
COMMON = [m for m in story() if m.timestamp <= BEFORE]
THEIRS = [[m for m in story() if m.timestamp > BEFORE][i::2] for i in range(2)]


def serve(home): return service.open_service(home, load_settings(env={}))
def run(home, now): return consolidation_service.run(serve(home), now)


def use(home, memory, count, at=MEANWHILE):
    "This clone has looked a memory up so many times."
    repo = open_repo(home)
    append(repo, lambda e: [access_append(memory, clone_id(repo), count, at)], at)


def start(home):
    git(home, "init", "--quiet", "--template=")
    git(home, "config", "user.name", "Tester"); git(home, "config", "user.email", "tester@example.org")
    add_memories(home, COMMON)
    assert run(home, BEFORE).changed


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    "Two clones with a run in common; each has then learnt something else, used other memories and made runs of its own, one with an undo in between."
    place = tmp_path_factory.mktemp("clones")
    one, two = place / "one", place / "two"
    one.mkdir(); start(one); shutil.copytree(one, two)
    memories = {m.summary: m for m in read_memories(open_repo(one)).memories}
    for home, mine, n in ((one, THEIRS[0], 3), (two, THEIRS[1], 4)):
        add_memories(home, mine)
        use(home, memories["About the saffron"], n)
        use(home, memories["About the saffron"], n + 1, SAMPLE_NOW - timedelta(days=n))
        use(home, memories["About the anvil" if home == one else "About the tunnel"], 1)
        assert run(home, MEANWHILE + timedelta(hours=n)).changed
    last = max((r for r in state_of(one).runs.values()), key=lambda r: r["seq"])
    consolidation_undo.undo(serve(one), last["id"], SAMPLE_NOW - timedelta(days=1), confirmed=True)
    git(one, "remote", "add", "other", two); git(two, "remote", "add", "other", one)
    assert clone_id(open_repo(one)) != clone_id(open_repo(two)) and state_of(one) != state_of(two)
    return place


@pytest.fixture
def pair(apart, tmp_path):
    "The two clones, to be merged."
    for name, other in (("one", "two"), ("two", "one")):
        shutil.copytree(apart / name, tmp_path / name)
        git(tmp_path / name, "remote", "set-url", "other", tmp_path / other)
    return tmp_path / "one", tmp_path / "two"


def fetch(home):
    "The other's notes as they are now, beside ours."
    git(home, "fetch", "--quiet", "--no-tags", "other", "+refs/notes/mem*:refs/notes/other/mem*")


def unite(home, names):
    "Git's own merge, line by line."
    there = refs(home, "refs/notes/")
    for name in names:
        theirs = f"refs/notes/other/{name}"
        if f"refs/notes/{name}" in there: git(home, "notes", "--ref", name, "merge", "--quiet", "--strategy=cat_sort_uniq", theirs)
        else: git(home, "update-ref", f"refs/notes/{name}", there[theirs])


def fetched(home, start): return [r.removeprefix("refs/notes/other/") for r in refs(home, f"refs/notes/other/{start}")]
def memories_by_git(home): unite(home, fetched(home, "mem/"))  # they lie on different objects, so that nothing is torn
def by_git(home): unite(home, [r.removeprefix("refs/notes/") for r in REFS.values()])


def by_concatenation(home):
    "Whoever has no merge at all puts one note behind the other, repeats and all."
    repo = open_repo(home)
    for name in REFS.values():
        texts = defaultdict(bytes)
        for ref in (name.replace("refs/notes/", "refs/notes/other/"), name):
            rows = note_paths(repo, ref)
            blobs = read_blobs(repo, [b for *_, b in rows])
            for obj, _, blob in rows: texts[obj] += blobs[blob]
        rows = "".join(f"M 100644 inline {o[:2]}/{o[2:]}\ndata {len(t)}\n{t.decode()}\n" for o, t in sorted(texts.items()))
        git(home, "fast-import", "--quiet", "--force", input=f"commit {name}\ncommitter a <a@example.org> 0 +0000\ndata 1\nx\nfrom {name}^0\ndeleteall\n{rows}")


def merged(pair, how):
    "Both directions, from what each had before."
    for home in pair: fetch(home)
    for home in pair: memories_by_git(home); how(home)
    return pair


def meaning(state):
    "What holds, whichever run has said it and whenever it ran: those differ when both clones run after the merge."
    edges = {i: (e.source_id, e.target_id, e.edge_type, e.kind, e.span, e.weight, e.by) for i, e in state.edges.items()}
    summaries = {i: (x.summary, x.title, x.key_facts, x.source_memory_ids, x.superseded_facts, x.quotes) for i, x in state.summaries.items()}
    return {i: r["tier"] for i, r in state.tiers.items()}, edges, summaries, set(state.reviews), state.accesses


def changes(home, now=SAMPLE_NOW):
    "What the next run would write, but for its name."
    return sorted(json.dumps({k: v for k, v in a.record.items() if k not in ("run", "id")}, sort_keys=True) for a in serve(home).plan(now).appends)


HOWS = [by_git, by_concatenation]


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_both_clones_say_the_same_after_the_merge(pair, how):
    one, two = (state_of(p) for p in pair)
    a, b = (state_of(p) for p in merged(pair, how))
    assert a == b  # runs, undos, tiers, edges, summaries, counters: all of it
    assert a.runs.keys() == one.runs.keys() | two.runs.keys() and a.undone == one.undone | two.undone != set()
    assert {m: n for m, (n, _) in a.accesses.items()} == {m: one.accesses.get(m, (0,))[0] + two.accesses.get(m, (0,))[0] for m in one.accesses | two.accesses}
    assert {m: t for m, (_, t) in a.accesses.items()} == {m: max(s.accesses[m][1] for s in (one, two) if m in s.accesses) for m in a.accesses}
    assert sorted(n for n, _ in a.accesses.values()) == [1, 1, 4 + 5]  # the latest count of each clone, not the sum of what it wrote
    assert set(a.edges) == set(two.edges) - a.undone and set(two.edges) > set(one.edges)  # what the undone run had made is two's word now
    assert not set(a.rejected) & set(a.edges)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_the_merge_leaves_valid_notes(pair, how):
    for home in merged(pair, how):
        repo = open_repo(home)
        assert read_events(repo).problems == () and read_memories(repo).problems == ()
        assert {m.id for m in read_memories(repo).memories} == {m.id for m in story()}
        for ref in REFS.values():
            for data in read_blobs(repo, [b for *_, b in note_paths(repo, ref)]).values():
                lines = data.decode().splitlines()
                assert yaml.safe_load(data) == [json.loads(x.removeprefix("- ")) for x in lines] and all(x.startswith("- {") for x in lines)


@pytest.mark.slow
def test_git_unites_what_we_lay_side_by_side(pair, tmp_path):
    "The same records by either way."
    other = tmp_path / "by-lines"; other.mkdir()
    again = [shutil.copytree(p, other / p.name) for p in pair]
    for home, beside in zip(again, reversed(pair)): git(home, "remote", "set-url", "other", beside)
    for home in again: fetch(home)
    a, _ = merged(pair, by_git)
    memories_by_git(again[0]); by_concatenation(again[0])
    assert state_of(a) == state_of(again[0])


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_the_next_run_finds_the_same_in_both_and_then_nothing(pair, how):
    one, two = merged(pair, how)
    assert changes(one) == changes(two)
    for home in (one, two): assert run(home, SAMPLE_NOW).success
    assert meaning(state_of(one)) == meaning(state_of(two))
    for home in (one, two): assert not run(home, SAMPLE_NOW).changed
    for home in merged((one, two), how): assert not run(home, SAMPLE_NOW).changed  # nor after they have met again
    assert state_of(one) == state_of(two)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_the_next_run_has_nothing_surprising_to_do(pair, how, tmp_path):
    "It comes to what one clone with all the memories would have come to, but for what was undone and not said again by the other."
    alone = tmp_path / "alone"; alone.mkdir(); start(alone)
    add_memories(alone, THEIRS[0] + THEIRS[1])
    run(alone, SAMPLE_NOW)
    want, (home, _) = state_of(alone), merged(pair, how)
    held = state_of(home)
    result = run(home, SAMPLE_NOW)
    got = state_of(home)
    about = [{x.source_memory_ids for i, x in state.summaries.items() if i not in held.rejected} for state in (got, want)]
    declined = {m for i, x in want.summaries.items() if i in held.rejected for m in x.source_memory_ids}
    kept = {x.source_memory_ids for x in held.summaries.values() if declined.intersection(x.source_memory_ids)}  # their successors wait for a person
    assert set(got.edges) == set(want.edges) - held.rejected and about[1] <= about[0] <= about[1] | kept
    assert set(got.reviews) - set(want.reviews) <= held.rejected and result.edges_removed == 0 and set(held.edges) <= set(got.edges)


@pytest.mark.slow
def test_a_clone_that_only_listens_agrees(pair, tmp_path):
    "Fetched into a bare repository that has never run."
    merged(pair, by_git)
    git(tmp_path, "init", "--quiet", "--bare", "--template=", "bare")
    git(tmp_path / "bare", "fetch", "--quiet", pair[0], "+refs/notes/mem*:refs/notes/mem*")
    assert state_of(tmp_path / "bare") == state_of(pair[0])


@pytest.mark.slow
def test_meeting_twice_is_meeting_once(pair):
    merged(pair, by_git)
    before = [state_of(p) for p in pair]
    merged(pair, by_git)
    assert [state_of(p) for p in pair] == before
    assert all(tips(open_repo(p), *REFS.values()).keys() == set(REFS.values()) for p in pair) and before[0] == before[1]
