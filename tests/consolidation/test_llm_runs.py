"""Whole runs that ask a language model over real HTTP: whatever it answers, nothing is superseded on a bad reply, and the run ends."""
import json
from collections import Counter

import pytest
from git_notes_consolidation.consolidation.scan import collapse
from git_notes_consolidation.store import audit
from git_notes_consolidation.apps.cli.consolidate import llm_rows
from git_notes_consolidation.consolidation import stores as consolidation_stores
from git_notes_consolidation.consolidation import scan as consolidation_scan
from git_notes_consolidation.consolidation import service
from git_notes_consolidation.consolidation import status as consolidation_status
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
from calls import new_repo
from inventing import leaks, rows
from llm_servers import BAD_REPLIES, FaultyServer, sensible

pytestmark = pytest.mark.slow

FLASK = mem("Serve the API with Flask", "Small, and all of us know it. Blueprints keep the handlers apart.", days_ago=90)
FASTAPI = mem("The API speaks FastAPI", "Handlers are typed, and the schema of the API comes for free. Blueprints became routers.", days_ago=3)
TWO = [FLASK, FASTAPI]


def serve(home, server, monkeypatch, **settings):
    monkeypatch.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", server.url)
    given = {"llm_provider": "lmstudio", "llm_timeout_s": 5, "max_change": 1.0, **settings}
    return consolidation_stores.open_service(home, load_settings(given, env={"MEMORY_CONSOLIDATION_LLM_BASE_URL": server.url}))


YEAR = sample_memories()[::2]


def edges_of(home): return consolidation_scan.view(open_repo(home)).state.edges.values()
def hiding(home): return {(e.source_id, e.target_id, e.edge_type.value) for e in edges_of(home) if e.edge_type.value in ("supersedes", "duplicate_of")}


@pytest.fixture
def two(tmp_path): return new_repo(tmp_path / "two", TWO)


@pytest.fixture(scope="session")
def offline_year(tmp_path_factory):
    "Half of the sample, consolidated without a model; not to be written to."
    home = new_repo(tmp_path_factory.mktemp("offline") / "year", YEAR)
    service.run(consolidation_stores.open_service(home, load_settings({"max_change": 1.0}, env={})), SAMPLE_NOW)
    return home


# What a reply may do


def swap(newer, older): return "supersede" if "FastAPI" in newer and "Flask" in older else "coexist"


def test_a_model_sees_what_the_offline_judge_does_not(two, monkeypatch):
    with FaultyServer(brain=sensible(swap)) as server:
        r = service.run(serve(two, server, monkeypatch), SAMPLE_NOW)
    e, = (e for e in edges_of(two) if e.edge_type.value == "supersedes")
    ids = {m.summary: m.id for m in read_memories(open_repo(two)).memories}
    assert (e.source_id, e.target_id, e.by, e.code, e.weight) == (ids[FASTAPI.summary], ids[FLASK.summary], "llm", "L", 0.9)
    assert e.span in FASTAPI.text and r.llm["calls"] == server.calls and not r.llm["failures"]


def test_the_designs_client_and_the_designs_answer_make_a_run(two):
    "An object with `complete`, asked of one pair a call, that says supersedes, confidence and reason."
    asked = []

    class Theirs:
        async def complete(self, prompt, system="", json_mode=False):
            asked.append(prompt)
            return json.dumps({"supersedes": True, "confidence": "high", "reason": "FastAPI serves the API now."})
    settings = load_settings({"max_change": 1.0}, env={})
    r = service.run(service.ConsolidationService(open_repo(two), settings, clock=lambda: SAMPLE_NOW, llm_client=Theirs()), SAMPLE_NOW)
    (e,) = (e for e in edges_of(two) if e.edge_type.value == "supersedes")
    assert (e.by, e.kind, e.reason, r.supersessions_detected, len(asked)) == ("llm", "full", "FastAPI serves the API now.", 1, 1)


@pytest.mark.parametrize("relation", ["coexist", "merge"])
def test_other_relations_hide_nothing(two, monkeypatch, relation):
    with FaultyServer(brain=sensible(lambda newer, older: relation)) as server: service.run(serve(two, server, monkeypatch), SAMPLE_NOW)
    assert not hiding(two) and [e.code for e in edges_of(two) if e.by == "llm"] == (["M"] if relation == "merge" else [])


@pytest.mark.parametrize("confidence", ["medium", "low"])
def test_an_unsure_answer_is_a_question_and_nothing_else(two, monkeypatch, confidence):
    def brain(body): return sensible(swap)(body).replace('"confidence": "high"', f'"confidence": "{confidence}"')
    with FaultyServer(brain=brain) as server: r = service.run(serve(two, server, monkeypatch), SAMPLE_NOW)
    review, = consolidation_scan.view(open_repo(two)).state.reviews.values()
    assert not hiding(two) and r.review_items == 1 and (review["type"], review["by"]) == ("supersedes", "llm")


def test_a_second_run_makes_no_call_and_changes_nothing(two, monkeypatch):
    with FaultyServer(brain=sensible(swap)) as server:
        s = serve(two, server, monkeypatch)
        service.run(s, SAMPLE_NOW)
        calls = server.calls
        assert not service.run(s, SAMPLE_NOW).changed and not service.run(s, SAMPLE_NOW, full=True).changed and server.calls == calls


def test_what_a_model_found_stays_without_it(two, monkeypatch):
    with FaultyServer(brain=sensible(swap)) as server: service.run(serve(two, server, monkeypatch), SAMPLE_NOW)
    before = {e.id for e in edges_of(two)}
    r = service.run(consolidation_stores.open_service(two, load_settings({"max_change": 1.0}, env={})), SAMPLE_NOW, full=True)
    assert {e.id for e in edges_of(two)} == before and not r.edges_removed


def test_an_undone_edge_is_asked_about_and_not_made_again(two, monkeypatch):
    with FaultyServer(brain=sensible(swap)) as server:
        s = serve(two, server, monkeypatch)
        consolidation_status.undo(s, service.run(s, SAMPLE_NOW).run_id, SAMPLE_NOW)
        r = service.run(s, SAMPLE_NOW, full=True)
    assert not hiding(two) and r.review_items == 1


def test_a_model_that_supersedes_everything_is_held_to_its_share(tmp_path, monkeypatch):
    home = new_repo(tmp_path / "year", YEAR)
    with FaultyServer(brain=sensible(lambda newer, older: "supersede")) as server:
        r = service.run(serve(home, server, monkeypatch, max_change=0.1), SAMPLE_NOW)
    copies = {i for i, first in collapse(YEAR).items() if i != first}  # They lose nothing, and a part hides nothing
    hidden = {e.target_id for e in edges_of(home) if e.edge_type.value == "supersedes" and e.kind == "full"} - copies
    assert 0 < len(hidden) <= 0.1 * len(YEAR) and "wait for the next run" in " ".join(r.warnings)


# Faults


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_no_rate_of_bad_replies_hides_anything(tmp_path, offline_year, monkeypatch, rate):
    home = new_repo(tmp_path / "year", YEAR)
    with FaultyServer(brain=sensible(), rate=rate, faults=BAD_REPLIES, seed=7) as server: r = service.run(serve(home, server, monkeypatch), SAMPLE_NOW)
    assert hiding(home) == hiding(offline_year)
    assert not r.errors and r.llm["asked"] == r.llm["answered"] + sum(r.llm["failures"].values())
    assert (rate == 1 or r.llm["answered"]) and r.llm["faults"] and (rate < 1 or any("without an answer" in w for w in r.warnings))
    assert not audit.audit(home).findings


# What leaves


def test_no_secret_of_a_memory_reaches_the_server(tmp_path, monkeypatch):
    "Of both halves of the labelled lines, as memories of a run that asks: the server heard none of them; of the locked half only the count is told."
    secrets = [r for r in rows() if r.secret and not r.personal]
    memories = [mem(f"Note {i:03} on the deploy of tide", f"{r.text}\nThe deploy of tide went on, see note {i:03}.", days_ago=1000 - i)
                for i, r in enumerate(secrets)]
    home = new_repo(tmp_path / "secrets", memories)
    with FaultyServer(brain=sensible(swap)) as server: service.run(serve(home, server, monkeypatch, max_change=1.0), SAMPLE_NOW)
    heard = sum(f"ote {i:03}" in server.text for i in range(len(secrets)))
    assert len(secrets) >= 300 and heard > 0.9 * len(secrets), (heard, len(secrets), server.calls)
    told = [r for r in secrets if leaks(r.secret, server.text)]
    assert not told, (len(told), [r.id for r in told if r.half == "open"])


def test_nobody_is_asked_unless_told_to(two, monkeypatch):
    with FaultyServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        r = service.run(consolidation_stores.open_service(two, load_settings()), SAMPLE_NOW)
    assert server.calls == 0 and not r.llm


# The command line, and the fixture


def test_local_only_asks_nobody_else(two, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
    r = service.run(consolidation_stores.open_service(two, load_settings({"llm_provider": "openai", "llm_local_only": True})), SAMPLE_NOW)
    assert r.llm["calls"] == 0 and r.llm["failures"] == {"none": r.llm["asked"]}


def test_the_fixture_is_a_model(two, mock_consolidation_llm):
    mock_consolidation_llm.judge = swap
    r = service.run(consolidation_stores.open_service(two), SAMPLE_NOW)
    assert r.supersessions_detected == 1 and Counter(x.task for x in mock_consolidation_llm.requests)["judge"] == 1 and json.dumps(r.to_dict())


POLLED = [mem("Valves are polled every 90 s", "A failed poll is tried again three times.", days_ago=70),
          mem("Bus B runs to the valves", "The radio lost polls.", days_ago=50),
          mem("The warden is called after three failed polls", "By phone, not by mail.", days_ago=30)]


def told(texts, **changed):
    "A summary that says everything, and what is changed."
    said = dict(title="Valves and their polls", summary=" ".join(t.replace("\n\n", ". ") for t in texts), key_facts=[t.split("\n")[0] for t in texts])
    return said | {k: f(said[k]) for k, f in changed.items()}


@pytest.mark.parametrize(("changed", "by", "wrong"), [
    ({}, "llm", "no such"), ({"summary": lambda s: s.replace("90 s", "60 s")}, "llm", "60 s"), ({"summary": lambda s: s[:60]}, "llm", "no such"),
    ({"key_facts": lambda k: [*k, "Ruth replaced 14 valves in `attic/roof.py`."]}, "llm", "Ruth"),
    ({"summary": lambda s: "Ruth replaced 14 valves."}, "offline", "Ruth")])
def test_what_stands_of_a_written_summary(tmp_path, mock_consolidation_llm, changed, by, wrong):
    home = new_repo(tmp_path / "valves", POLLED)
    def summary(texts): return told(texts, **changed)
    mock_consolidation_llm.summary = summary
    s = consolidation_stores.open_service(home, load_settings({"consolidation_threshold": 0.05}))
    service.run(s, SAMPLE_NOW)
    x, = consolidation_scan.view(open_repo(home)).state.summaries.values()
    asked = [r for r in mock_consolidation_llm.requests if r.task == "summary"]
    assert x.by == by and len(asked) == (1 if by == "llm" else 2) and not audit.audit(home).findings
    everything = " ".join([x.title, x.summary, *x.key_facts])
    assert wrong not in everything and all(word in everything for word in ("90 s", "Bus B", "warden"))
    assert by == "offline" or x.quotes and all(q.text in m.text for q in x.quotes for m in POLLED if m.id == q.memory_id)


@pytest.mark.parametrize(("supported", "by", "taken"), [(None, "llm", 1), (True, "offline", 0), (False, "offline", 0)])
def test_a_summary_is_read_again_and_of_who_supports_anything_nothing_is_taken(tmp_path, monkeypatch, supported, by, taken):
    home, sane = new_repo(tmp_path / "valves", POLLED), sensible()
    def brain(body):
        if supported is None or body["response_format"]["json_schema"]["name"] != "support": return sane(body)
        return json.dumps({label: {"reason": "", "supported": supported} for label in json.loads(sane(body))})
    with FaultyServer(brain=brain) as server: r = service.run(serve(home, server, monkeypatch, consolidation_threshold=0.05), SAMPLE_NOW)
    x, = consolidation_scan.view(open_repo(home)).state.summaries.values()
    count = dict(llm_rows(r.llm))
    assert x.by == by and count["summaries taken"] == f"{taken} of 1" and count["second readings taken"] == ("1 of 1" if taken else "2 of 2")


def test_a_model_is_asked_before_a_decision_is_hidden_that_nobody_names(tmp_path, mock_consolidation_llm):
    "What it denies becomes a question; what it bears out is done; what names the older one is not asked."
    again = [mem("Sessions are kept for 30 minutes", "By the gateway.", days_ago=90), mem("Sessions are kept for 45 minutes", "By the gateway.", days_ago=9)]
    named = [mem("ADR-001: Use Flask", "It is small.", days_ago=80), mem("ADR-009: Use FastAPI", "Supersedes ADR-001.", days_ago=8)]

    def ran(name, relation):
        home = new_repo(tmp_path / name, [*again, *named])
        mock_consolidation_llm.judge = lambda newer, older: relation
        service.run(consolidation_stores.open_service(home, load_settings({"llm_provider": "openai", "max_change": 1.0}, env={})), SAMPLE_NOW)
        state = consolidation_scan.view(open_repo(home)).state
        return {(e.source_id, e.target_id) for e in state.edges.values() if e.edge_type.value == "supersedes"}, state.reviews

    pair, by_name = ((x[1].id, x[0].id) for x in (again, named))
    assert ran("denied", "coexist")[0] == {by_name} and len(ran("denied again", "coexist")[1]) == 1
    assert ran("borne out", "supersede")[0] == {pair, by_name}
