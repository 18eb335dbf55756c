"""What happened to the users of other memories, replayed here. Each test says whose accident it is, what was lost, and what must hold instead."""
import json
import random
from datetime import timedelta

import pytest
from git_notes_consolidation.store import audit
from git_notes_consolidation.consolidation import status as service
from git_notes_consolidation.consolidation import stores as consolidation_stores
from git_notes_consolidation.consolidation import scan as consolidation_scan
from git_notes_consolidation.store import git as store_git
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.events import read_events
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.writing.write import open_writing
from calls import made, state_of
from llm_servers import FAULTS, FaultyServer, completion, sensible


def writer(home, server=None, **given):
    "With a model where a server is given, and a clock that goes on a minute with each write."
    ticks = iter(range(10**6))
    if server: given |= {"llm_provider": "lmstudio", "llm_timeout_s": 5}
    s = load_settings(given, env={"MEMORY_CONSOLIDATION_LLM_BASE_URL": server.url} if server else {})
    return open_writing(home, s, clock=lambda: SAMPLE_NOW + timedelta(minutes=next(ticks)))


def texts(home): return {m.id: m.text for m in read_memories(open_repo(home)).memories}
def clean(home): return [str(f) for f in audit.audit(home).findings] == []


@pytest.fixture
def love(tmp_path): return made(tmp_path / "love", [mem("The team loves Redux", "Everybody said so in the retrospective.", days_ago=30)])


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("judged", [None, "supersede", "duplicate", "merge", "coexist"])
def test_the_opposite_is_stored_and_what_it_opposes_stays(love, monkeypatch, judged):
    "mem0#4536: “I hate X” after “I love X” deleted the old memory and stored nothing. Here both texts are in the notes, whatever anybody judges."
    before = texts(love)
    with FaultyServer(brain=sensible(lambda newer, older: judged or "coexist")) as server:
        monkeypatch.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", server.url)
        r = writer(love, server if judged else None).remember("The team hates Redux\n\nEverybody said so in the retrospective.")
    after, log = texts(love), json.dumps(dict(state_of(love).operations), default=str)
    assert before.items() <= after.items()
    assert any("hates Redux" in t for t in after.values()) or "hates Redux" in log  # A duplicate's other words are in the log
    assert after[r.memory_id] and clean(love)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("fault", ["unknown id", "hostile", "half letters", "extra key", "wrong schema", "garbage", "refusal", "truncated", "null", "500"])
def test_no_id_comes_from_a_model(love, monkeypatch, fault):
    "mem0#4708 and #3931: a model answered with ids that nobody had given it, and memories were changed by them. Here it sees short labels only."
    before = texts(love)
    with FaultyServer(always=fault, brain=sensible(lambda newer, older: "supersede")) as server:
        monkeypatch.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", server.url)
        r = writer(love, server).remember("The team hates Redux\n\nEverybody said so in the retrospective.")
    assert r.operation == "ADD" and not r.superseded and before.items() <= texts(love).items() and len(texts(love)) == len(before) + 1
    real = set(texts(love))
    assert all({e.source_id, e.target_id} <= real for e in state_of(love).edges.values()) and clean(love)
    assert not any(i.startswith("mem_") for body in server.bodies for i in json.dumps(body).replace('"', " ").split())  # It never sees one


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("fault", [f for f in FAULTS if f not in ("ok", "silent", "trickle", "429 later", "429", "flood")])
def test_a_merge_that_fails_its_schema_loses_nothing_and_says_so(love, monkeypatch, fault):
    "hindsight#3876: a merge whose reply failed its schema wiped a whole bank, and every call reported success. Here the two texts stand side by side."
    before = texts(love)
    def brain(body): return sensible(lambda newer, older: "merge")(body)
    def only_merges(body, good): return FAULTS[fault](body, good) if body["response_format"]["json_schema"]["name"] == "merge" else completion(body, good)
    with FaultyServer(always=only_merges, brain=brain) as server:
        monkeypatch.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", server.url)
        r = writer(love, server).remember("Redux: where\n\nThe store lies in `src/store.ts`, not in `lib`.")
    after = texts(love)
    assert before.items() <= after.items() and len(after) == len(before) + 2 and r.operation == "MERGE"
    assert all(x in after[r.memory_id] for x in ("Everybody said so in the retrospective.", "`src/store.ts`, not in `lib`")) and clean(love)


@pytest.mark.slow
def test_a_judge_gone_mad_hides_no_more_than_one_write_may(tmp_path, monkeypatch):
    "graphiti#1728: 41 % of 3,950 facts were invalidated, three of four of them collateral. Here one write replaces at most the few that were looked at."
    home = made(tmp_path / "year", sample_memories())
    with FaultyServer(brain=sensible(lambda newer, older: "supersede")) as server:
        monkeypatch.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", server.url)
        w = writer(home, server)
        for i in range(5):
            r = w.remember(f"The job scheduler of team {i} runs {i + 2} workers on the queue.")
            assert len(r.superseded_ids) <= 9  # Five that are near, four that it names
    hidden = {e.target_id for e in state_of(home).edges.values() if e.edge_type.value == "supersedes"}
    assert len(hidden) <= 40 and len(texts(home)) == len(sample_memories()) + 5
    for run in [i for i, r in sorted(state_of(home).runs.items(), key=lambda x: -x[1]["seq"])]:
        service.undo(consolidation_stores.open_service(home), run, SAMPLE_NOW, confirmed=True)
    known = consolidation_scan.scored(consolidation_scan.view(open_repo(home)), load_settings(env={}), SAMPLE_NOW + timedelta(days=2))
    assert not state_of(home).edges and not any(d.superseded_by for d in known.values())


@pytest.mark.slow
def test_nothing_goes_without_a_record(tmp_path):
    "nowledge-mem#81: memories were deleted for good, and no event said so. Here each change is in the log with before and after, and every byte is in git."
    home, r = made(tmp_path / "log", [mem("Tea is at four", "In the kitchen.", days_ago=9)]), random.Random(3)
    w, before, ids = writer(home), texts(home), list(texts(home))
    for n in range(30):
        what, i = r.choice("remember forget restore update".split()), r.choice(ids)
        try:
            done = w.remember(f"Fact {n} of the {r.choice('red blue green'.split())} team") if what == "remember" else (
                w.update(i, importance=n / 30) if what == "update" else getattr(w, what)(i))
        except store_git.RepoError: continue
        ids.append(done.memory_id)
        op = next(op for op in state_of(home).operations.values() if op["run"] == done.run_id)
        assert op["operation"] == done.operation and op["after"][done.memory_id] and (done.operation == "ADD" or op["before"] != op["after"])
        assert before.items() <= (before := texts(home)).items()
    assert {r["id"] for _, _, r in read_events(open_repo(home)).records if r["kind"] == "run"} == {op["run"] for op in state_of(home).operations.values()}


@pytest.mark.slow
def test_the_same_input_ends_the_same(tmp_path):
    "mem0#3009: the same input was sometimes stored, and sometimes not. Here two repositories that are told the same hold the same, byte for byte."
    def told(name):
        home = made(tmp_path / name, [mem("Tea is at four", "In the kitchen.", days_ago=9)])
        w = writer(home)
        for t in ("Tea is at five", "Tea is at four\n\nIn the kitchen.", "Replaces “Tea is at four”: tea is at six"): w.remember(t)
        return home
    a, b = told("a"), told("b")
    assert {i: r for i, r in state_of(a).operations.items()} == {i: r for i, r in state_of(b).operations.items()} and texts(a) == texts(b)
