"""The log of operations, the designs' views, and what is true when: on real git, through the cache's tables."""
import json
from contextlib import closing
from datetime import UTC, datetime

import pytest
from calls import gnc, new_repo, run, serve
from helpers import story
from hypothesis import given, settings, strategies as st

from git_notes_consolidation.consolidation import scan as service, service as consolidation_service, status as consolidation_status
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.store import cache as index, versions as operations
from git_notes_consolidation.store.events import Append, Events, append, edge_append, op_append
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.state import fold

# As they stand in the design, line for line
GET_MEMORY_AT_TIME = """
        SELECT * FROM memories
        WHERE supersession_chain_id = ?
        AND created_at <= ?
        AND (valid_until IS NULL OR valid_until > ?)
        ORDER BY created_at DESC
        LIMIT 1
    """
GET_CURRENT_MEMORY = """
        SELECT * FROM memories
        WHERE supersession_chain_id = ?
        AND valid_until IS NULL
        ORDER BY created_at DESC
        LIMIT 1
    """
GET_SUPERSESSION_HISTORY = """
        SELECT * FROM memories
        WHERE supersession_chain_id = ?
        ORDER BY created_at ASC
    """
LOG = """id operation_type source_memory_ids target_memory_id classification confidence reasoning before_state after_state created_at session_id run_id
    undone""".split()


def tables(home):
    "The cache, filled from what the notes say now; its rows have names."
    conn = index.open_index(open_repo(home))
    consolidation_service.refresh_tables(conn, service.view(open_repo(home)), serve(home).settings, SAMPLE_NOW)
    conn.row_factory = index.sqlite3.Row
    return closing(conn)


def ask(conn, query, *args): return [dict(r) for r in conn.execute(query, args)]


def versions(conn):
    "For the design's queries: its table is a view of ours."
    conn.execute("CREATE TEMP VIEW memories AS SELECT * FROM main.memory_versions")
    return conn


def day(text): return datetime.fromisoformat(text).replace(tzinfo=UTC)
def full(newer, older, **kw): return MemoryEdge(newer.id, older.id, EdgeType.SUPERSEDES, created_at=SAMPLE_NOW, kind=kw.pop("kind", "full"), **kw)
def into(source, target): return MemoryEdge(source.id, target.id, EdgeType.MERGED_INTO, created_at=SAMPLE_NOW)


def write(home, name, *appends, at=SAMPLE_NOW):
    "A run of these records."
    where = appends[0].object if appends else "0" * 40
    append(open_repo(home), lambda e: [*appends, Append("runs", where, {"kind": "run", "id": name, "at": at.isoformat()})], at)


def edges(home, name, *found, live=True): write(home, name, *(edge_append("0" * 40, e, name, e.created_at, live=live) for e in found))
def undo(home, name): return consolidation_status.undo(serve(home), name, SAMPLE_NOW, confirmed=True)


def log_of(home, **kw):
    v = service.view(open_repo(home))
    return operations.operations_of(v.events, v.state, {m.id: m.event_time for m in v.scan.memories}, **kw)


def dated(text, since, recorded=None):
    "A memory of a day; recorded on another where it came late."
    recorded = day(recorded or since)
    return mem(text, now=recorded, valid_from=day(since) if recorded != day(since) else None)


CHAIN = (dated("The limit is 3", "2026-01-01"), dated("The limit is 5", "2026-02-01"), dated("The limit is 8", "2026-03-15"))


@pytest.fixture
def chain(tmp_path):
    "The design's own chain, V1 to V3, and a memory beside it."
    home = new_repo(tmp_path / "repo", [*CHAIN, dated("Somewhere else", "2026-01-10")])
    edges(home, "run_a", full(CHAIN[1], CHAIN[0]), full(CHAIN[2], CHAIN[1]))
    return home


# The design's queries


def test_the_designs_three_queries(chain):
    v1, v2, v3 = CHAIN
    with tables(chain) as conn:
        versions(conn)
        of = {r["id"]: r["supersession_chain_id"] for r in ask(conn, "SELECT id, supersession_chain_id FROM main.memories")}
        assert [of[m.id] for m in CHAIN] == [v1.id] * 3, "the first member has its chain too"
        for at, want in (("2025-12-31", []), ("2026-01-01", [v1]), ("2026-01-15", [v1]), ("2026-02-01", [v2]), ("2026-03-14", [v2]), ("2026-11-01", [v3])):
            t = day(at).isoformat()
            assert [r["id"] for r in ask(conn, GET_MEMORY_AT_TIME, v1.id, t, t)] == [m.id for m in want], at
        assert [r["id"] for r in ask(conn, GET_CURRENT_MEMORY, v1.id)] == [v3.id]
        history = ask(conn, GET_SUPERSESSION_HISTORY, v1.id)
        assert [r["id"] for r in history] == [m.id for m in CHAIN]
        assert [(r["created_at"], r["valid_until"]) for r in history] == [
            (m.timestamp.isoformat(), n and n.timestamp.isoformat()) for m, n in zip(CHAIN, (v2, v3, None))]
        assert [r["superseded_by"] for r in history] == [v2.id, v3.id, None]


def test_a_late_fact_goes_to_its_place(chain):
    "Recorded in October, true from the middle of February on."
    v1, v2, v3 = CHAIN
    late = dated("The limit is 6", "2026-02-15", "2026-10-01")
    new_repo(chain, [late])
    edges(chain, "run_b", full(late, v2), full(v3, late))
    with tables(chain) as conn:
        versions(conn)
        assert [r["id"] for r in ask(conn, GET_SUPERSESSION_HISTORY, v1.id)] == [v1.id, v2.id, late.id, v3.id]
        at = {d: ask(conn, GET_MEMORY_AT_TIME, v1.id, t, t)[0]["id"] for d in ("2026-02-10", "2026-02-20", "2026-10-02") for t in (day(d).isoformat(),)}
        assert at == {"2026-02-10": v2.id, "2026-02-20": late.id, "2026-10-02": v3.id}
        row, = ask(conn, "SELECT timestamp, valid_from, valid_until FROM main.memories WHERE id = ?", late.id)
        assert row == {"timestamp": day("2026-10-01").isoformat(), "valid_from": day("2026-02-15").isoformat(), "valid_until": v3.timestamp.isoformat()}


def merged(tmp_path):
    a, b = dated("The dog guards the yard", "2026-01-01"), dated("The dog's name is Max", "2026-02-01")
    m = dated("The dog guards the yard; its name is Max", "2026-01-01", "2026-05-01")
    home = new_repo(tmp_path / "merged", [a, b, m])
    edges(home, "run_a", into(a, m), into(b, m))
    return home, a, b, m


def test_what_was_merged(tmp_path):
    "The merged memory says what only the later of its sources knew: before that one it does not hold."
    home, a, b, m = merged(tmp_path)
    with tables(home) as conn:
        rows = {r["id"]: r for r in ask(conn, "SELECT * FROM main.memories")}
        assert json.loads(rows[m.id]["merge_source_ids"]) == [a.id, b.id] and rows[a.id]["merge_source_ids"] == "[]"
        assert (rows[a.id]["merged_into"], rows[b.id]["merged_into"], rows[m.id]["merged_into"]) == (m.id, m.id, None)
        assert {r["supersession_chain_id"] for r in rows.values()} == {a.id}
        assert rows[m.id]["valid_from"] == a.timestamp.isoformat() and rows[a.id]["valid_until"] is None
        versions(conn)
        for at, want in (("2026-01-15", a), ("2026-02-01", m), ("2026-04-01", m), ("2026-11-01", m)):
            assert ask(conn, GET_MEMORY_AT_TIME, a.id, *[day(at).isoformat()] * 2)[0]["id"] == want.id, at
        assert ask(conn, GET_CURRENT_MEMORY, a.id)[0]["id"] == m.id
        ends = {r["id"]: r["valid_until"] for r in ask(conn, GET_SUPERSESSION_HISTORY, a.id)}
        assert ends == {a.id: b.timestamp.isoformat(), b.id: b.timestamp.isoformat(), m.id: None}


# The log


def test_the_log_has_the_designs_columns(chain):
    with tables(chain) as conn:
        assert [c[0] for c in conn.execute("SELECT * FROM consolidation_log").description] == LOG
        rows = ask(conn, "SELECT * FROM consolidation_log ORDER BY created_at, id")
        assert {(r["operation_type"], r["source_memory_ids"], r["target_memory_id"], r["classification"], r["run_id"], r["undone"]) for r in rows} == {
            ("SUPERSEDE", json.dumps([CHAIN[0].id]), CHAIN[1].id, "SUPERSEDE", "run_a", 0),
            ("SUPERSEDE", json.dumps([CHAIN[1].id]), CHAIN[2].id, "SUPERSEDE", "run_a", 0)}
        first = next(r for r in rows if r["target_memory_id"] == CHAIN[1].id)
        assert json.loads(first["before_state"]) == {"superseded_by": None, "superseded_kind": None, "valid_until": None}
        assert json.loads(first["after_state"]) == {"superseded_by": CHAIN[1].id, "superseded_kind": "full", "valid_until": CHAIN[1].timestamp.isoformat()}
        related = ask(conn, "SELECT source_memory_id, target_memory_id, relationship_type, strength, created_at FROM memory_relationships")
        assert {(r["source_memory_id"], r["target_memory_id"], r["relationship_type"], r["strength"]) for r in related} == {
            (CHAIN[1].id, CHAIN[0].id, "supersedes", 1.0), (CHAIN[2].id, CHAIN[1].id, "supersedes", 1.0)}


@pytest.mark.slow
def test_what_was_undone_stays_in_the_log(tmp_path):
    home = new_repo(tmp_path / "repo", story())
    made = run(home, max_change=1.0).run_id
    before = log_of(home)
    undo(home, made)
    assert log_of(home) == [op._replace(undone=True) for op in before] != []
    with tables(home) as conn:
        assert {r["undone"] for r in ask(conn, "SELECT undone FROM consolidation_log")} == {1}
        assert {r["superseded_by"] for r in ask(conn, "SELECT superseded_by FROM memories")} == {None}


ODD = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
                   lambda x: st.lists(x, max_size=2) | st.dictionaries(st.sampled_from(["id", "at", "x"]), x, max_size=2), max_leaves=4)
RECORDS = st.fixed_dictionaries(
    {"kind": st.sampled_from(["op", "edge", "run", "undo"]), "id": st.sampled_from("abc"), "seq": st.integers(0, 3)},
    optional={"run": st.sampled_from("abc"), "subject": st.sampled_from(["x", "y", "log", MemoryEdge("m", "n", EdgeType.SUPERSEDES).id]),
              "operation": st.sampled_from(["ADD", "NOOP", "ERASE"]), "at": st.sampled_from(["2026-01-01", "x"]) | ODD, "live": ODD,
              "type": st.just("supersedes"), "source": st.sampled_from(["m", "n"]), "target": st.sampled_from(["m", "n"]),
              "before": st.just("2026-02-02") | ODD, "after": ODD, "sources": ODD, "confidence": ODD | st.just(10**400), "reason": ODD,
              "edge_kind": ODD, "targets": ODD, "counts": ODD, "weight": ODD, "session": ODD})


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["meta", "edges", "runs"]), st.just("0" * 40), RECORDS), max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_any_record_is_read_or_left_out_in_any_order(records, random):
    "Whatever a remote sent: a log, rows that SQLite takes, and the same ones in each clone."
    shuffled = random.sample(records, len(records))
    found = []
    for rows in (records, shuffled):
        events = Events(tuple(rows), (), {})
        ops = operations.operations_of(events, fold(events))
        found.append({repr(op) for op in ops})
        conn = index.in_memory()
        conn.executemany(f"INSERT INTO operations VALUES ({', '.join('?' * 13)})", [op.row() for op in ops])
        assert len(ops) == len({op.id for op in ops})
    assert found[0] == found[1]


# The command


def logged(home, *args): return gnc("log", *args, "--json", repo=home).json


@pytest.fixture
def busy(chain):
    "The chain, an ADD of January by a run of its own, and a repeat that was undone."
    again = mem("The limit is 3", now=day("2026-01-05"))
    new_repo(chain, [again])
    added = {"operation": "ADD", "at": "2026-01-01", "target": CHAIN[0].id, "session": "s1", "confidence": 0.5, "reasoning": "nothing like it"}
    write(chain, "run_old", op_append("0" * 40, added, "run_old"), at=day("2026-01-01"))
    edges(chain, "run_u", MemoryEdge(again.id, CHAIN[0].id, EdgeType.DUPLICATE_OF, 1.0, "says the same", SAMPLE_NOW))
    undo(chain, "run_u")
    return chain


@pytest.mark.slow
def test_the_command_lists_the_latest_first(busy):
    rows = logged(busy, "--all")
    assert [(r["operation_type"], r["run_id"], r["undone"]) for r in rows] == [
        ("NOOP", "run_u", True), ("ADD", "run_old", False), ("SUPERSEDE", "run_a", False), ("SUPERSEDE", "run_a", False)]
    assert rows == [json.loads(json.dumps(op._asdict())) for op in reversed(log_of(busy))]
    told = gnc("log", "--all", repo=busy).out
    lines = [line for line in told.splitlines() if line.startswith("20")]
    assert lines == ["2026-11-01 12:00  run_u, undone, duplicate: 1", "2026-01-01 00:00  run_old, added: 1", "2026-11-01 12:00  run_a, replaced: 2"]
    added, replaced = told.split("\n\n")[1:3]
    assert "The limit is 3" in added and "nothing like it" in added
    assert replaced.count("The limit is") == 4 and replaced.count("\nby mem_") == 2


@pytest.mark.slow
def test_what_is_older_than_the_setting_is_shown_when_asked_for(busy):
    assert "run_old" not in {r["run_id"] for r in logged(busy)} and "1 are older than 90 days" in gnc("log", repo=busy).out
    for more in (["--all"], ["--since", "2025-12-01"], [CHAIN[0].id]): assert "run_old" in {r["run_id"] for r in logged(busy, *more)}
