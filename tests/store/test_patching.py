"""Tables that grow by patches against tables that are filled at once, and what a crash leaves of them."""
import numpy as np
import pytest
import random
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import fields, replace
from datetime import timedelta
from hypothesis import given, settings, strategies as st
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.core.models import (
    CaptureConfidence, EdgeType, MemoryEdge, MemorySummary, MemoryTier, Quote, RetentionScore, SummaryDecision, SupersededFact)
from git_notes_consolidation.recall import rank as ranking, search as finding
from git_notes_consolidation.store import cache as index, tables as patching, tables as store_tables
from git_notes_consolidation.store.state import State
from git_notes_consolidation.store.tables import Patch, patch
from git_notes_consolidation.store.versions import metadata_of, versions_of
from git_notes_consolidation.supersession.judge import repeat_key
from git_notes_consolidation.consolidation import scan as consolidation_scan



SAMPLE = sample_memories()
TABLES = "memories", "mem_summaries", "mem_edges", "consolidation_runs", "operations", "meta"
QUESTIONS = "database migration", "what does ADR 27 say", "retry queue", "was Flask replaced", "told", "it's \"odd\"", "zzz", "*"
TITLES = "Told again", "it's \"odd\" %s", "", "Über Wärteschlangen", "one\0two", "retryCount"


class World:
    "All that `refresh` takes: memories with everything that is known of them at some moment."

    def __init__(self, memories, edges=(), summaries=(), runs=(), operations=(), worth=0):
        self.memories, self.runs, self.operations = tuple(memories), {r["id"]: r for r in runs}, {row[0]: row for row in operations}
        self.edges, self.summaries = {e.id: e for e in edges}, {s.id: s for s in summaries}
        rnd, found = random.Random(worth), metadata_of(self.memories, edges, summaries, State())
        def scored(i, d):
            if (x := rnd.random()) < 0.5: return d
            return replace(d, tier=rnd.choice([*MemoryTier]), activation_count=rnd.randrange(3), retention=RetentionScore(x, x / 2, x / 3, x / 4))
        self.meta = {i: scored(i, d) for i, d in found.items()}
        self.stands = consolidation_scan.stand_ins(self.memories, self.meta)
        self.versions = {i: x.row() for i, x in versions_of(self.memories, self.meta, edges).items()}
        self.repeats = {}
        first = {}
        for m in sorted(self.memories, key=lambda m: (m.event_time, m.id)):
            if m.status != "tombstone": self.repeats[m.id] = first.setdefault(repeat_key(m), m.id)
        self.made_of = f"{len(self.memories)} {worth}"

    def fill(self, conn):
        state = State(edges=self.edges, summaries=self.summaries, runs=self.runs)
        store_tables.refresh(conn, self.memories, self.meta, state, self.stands, self.made_of, self.versions, self.operations.values())
        return conn


def difference(old, new):
    "The patch from one world to a later one."
    known = {m.id for m in old.memories}
    def changed(was, now): return {i: x for i, x in now.items() if i not in was or was[i] != x}
    became = defaultdict(set)
    for i in known: became[old.versions[i][0]].add(new.versions[i][0])
    chains = {a: next(iter(b)) for a, b in became.items() if len(b) == 1 and b != {a}}
    moved = {i: (chains.get(row[0], row[0]), *row[1:]) for i, row in old.versions.items()}
    def row(w, m, version): return store_tables.memory_row(m, w.meta[m.id], w.stands.get(m.id, m.id), version, w.repeats.get(m.id))
    was = {m.id: row(old, m, moved[m.id]) for m in old.memories}
    now = {m.id: row(new, m, new.versions[m.id]) for m in new.memories}
    fresh = [m for m in new.memories if m.id not in known]
    return Patch(fresh, [now[m.id] for m in fresh], [r for i, r in now.items() if i in known and r != was[i]], chains,
                 [*changed(old.edges, new.edges).values()], [*changed(old.summaries, new.summaries).values()], [*(old.summaries.keys() - new.summaries.keys())],
                 [*changed(old.runs, new.runs).values()], (), [*changed(old.operations, new.operations).values()], {"tables": new.made_of})


def rows(conn):
    "Each table's rows, a memory's with its number, and every word of the full text with its place."
    out = {t: {*conn.execute(f"SELECT * FROM {t}")} for t in TABLES} | {"places": conn.execute("SELECT rowid, id FROM memories ORDER BY rowid").fetchall()}
    conn.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab (main, memories_fts, instance)")
    name = {-n: i for n, i in conn.execute("SELECT rowid, id FROM mem_summaries")} | dict(out["places"])
    return out | {"words": {(term, name[doc], column, place) for term, doc, column, place in conn.execute("SELECT * FROM temp.words")}}


def found(conn):
    "What full text and recall's orders find."
    c = finding.read_columns(conn)
    columns = {f.name: x.tolist() if isinstance(x := getattr(c, f.name), np.ndarray) else x for f in fields(c)}
    columns["sources"] = {s: x.tolist() for s, x in c.sources.items()}
    orders = [ranking.word_scores(conn, q, len(c.ids), c.memories) for q in QUESTIONS]
    return columns, [store_tables.search_text(conn, q) for q in QUESTIONS], [x if x is None else x.tolist() for x in orders]


def assert_same(grown, whole):
    a, b = rows(grown), rows(whole)
    for name, said in b.items(): assert a[name] == said, name
    assert found(grown) == found(whole)


def a_summary(rnd, name, memories):
    group = sorted(rnd.sample(memories, min(len(memories), rnd.randint(1, 5))), key=lambda m: m.timestamp)
    said = rnd.choice(group).text
    return MemorySummary(f"sum_{name}", group[0].namespace, SAMPLE_NOW, (group[0].timestamp, group[-1].timestamp), said, (said[:40], "retry"),
                         (SummaryDecision("Use it", "because", "good"),), (SupersededFact("old", "new", group[0].id),), tuple(m.id for m in group), "run_a",
                         CaptureConfidence(0.8, 0.1), rnd.choice([*MemoryTier]), rnd.randrange(3), rnd.choice(TITLES), 0.5,
                         (Quote(group[0].id, "summary", 0, 2, group[0].summary[:2]),), ("Seen together",), "a model")


def an_edge(rnd, memories):
    a, b = sorted(rnd.sample(range(len(memories)), 2))
    kind = rnd.choice([EdgeType.SUPERSEDES, EdgeType.SUPERSEDES, EdgeType.DUPLICATE_OF, EdgeType.MERGED_INTO, EdgeType.RELATED_TO])
    here, there = (a, b) if kind == EdgeType.MERGED_INTO else (b, a)
    how = rnd.choice(["full", "partial"]) if kind == EdgeType.SUPERSEDES else None
    return MemoryEdge(memories[here].id, memories[there].id, kind, rnd.choice([0.5, 1.0]), "why", kind=how)


def some_memories(rnd, n):
    "Of the sample: some of them written twice, forgotten, or true since before."
    out = [*rnd.sample(SAMPLE, n)]
    for m in rnd.sample(out, n // 4):
        again = mem(m.summary + rnd.choice(["", " "]), m.content, now=m.timestamp + timedelta(days=rnd.randint(1, 99)), namespace=m.namespace)
        out.append(replace(again, valid_from=m.timestamp - timedelta(days=1)) if rnd.random() < 0.3 else again)
    gone = {*rnd.sample(range(len(out)), len(out) // 8)}
    out = [replace(m, status="tombstone") if i in gone else m for i, m in enumerate(out)]
    return sorted({m.id: m for m in out}.values(), key=lambda m: (m.timestamp, m.id))


def later(rnd, world, memories, step):
    "The same world with more memories, edges, runs and lines of the log; summaries come, go and are told anew."
    edges, summaries = dict(world.edges), dict(world.summaries)
    for _ in range(rnd.randrange(len(memories)) if len(memories) > 1 else 0):
        e = an_edge(rnd, memories)
        edges[e.id] = e
    for i in [*summaries]:
        if rnd.random() < 0.4: del summaries[i]
        elif rnd.random() < 0.4: summaries[i] = replace(summaries[i], activation_count=9, title=rnd.choice(TITLES))
    for k in range(rnd.randrange(4) if memories else 0):
        s = a_summary(rnd, f"{rnd.randrange(99):02}_{step}{k}", memories)
        summaries[s.id] = s
    runs = [*world.runs.values(), {"id": f"run_{step}", "kind": "run", "seq": step, "counts": {"edges": len(edges)}}]
    log = [*world.operations.values(), (f"op_{step}", "ADD", "[]", None, None, 0.5, "so", "{}", "{}", SAMPLE_NOW.isoformat(), None, f"run_{step}", 0)]
    log = [(*row[:-1], 1) if rnd.random() < 0.2 else row for row in log]
    return World(memories, edges.values(), summaries.values(), runs, log, rnd.randrange(10**6))


@pytest.mark.slow
@given(st.integers(0, 10**9), st.integers(2, 40), st.lists(st.integers(0, 50), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_tables_that_grew_are_those_that_are_filled_at_once(seed, n, cuts):
    rnd = random.Random(seed)
    memories = some_memories(rnd, n)
    ends = [*sorted(min(c, len(memories)) for c in cuts), len(memories)]
    world = later(rnd, World(()), memories[:ends[0]], 0)
    with closing(world.fill(index.in_memory())) as grown:
        for step, end in enumerate(ends[1:], 1):
            world, before = later(rnd, world, memories[:end], step), world
            assert patch(grown, difference(before, world), before.made_of)
            with closing(world.fill(index.in_memory())) as whole: assert_same(grown, whole)


def two_worlds():
    rnd = random.Random(7)
    memories = some_memories(rnd, 30)
    old = later(rnd, World(()), memories[:20], 0)
    return old, later(rnd, old, memories, 1)


def test_an_error_anywhere_changes_nothing():
    "SQLite is stopped after more and more of its steps, until it gets through."
    old, new = two_worlds()
    change, stopped = difference(old, new), 0
    with closing(old.fill(index.in_memory())) as first, closing(new.fill(index.in_memory())) as last: before, after = rows(first), rows(last)
    for steps in (1, *(int(40 * 1.5**k) for k in range(40))):
        with closing(old.fill(index.in_memory())) as conn:
            left = [steps]
            def stop(left=left): left[0] -= 1; return left[0] == 0  # Once: what cleans up may go on
            conn.set_progress_handler(stop, 1)
            try: done = patch(conn, change)
            except sqlite3.OperationalError: done = False
            finally: conn.set_progress_handler(None, 1)
            assert rows(conn) == (after if done else before) and not conn.in_transaction
            stopped += not done
            if done: break
    assert done and stopped > 5
    with closing(old.fill(index.in_memory())) as conn:
        for wrong in (replace(change, keep={"x": object()}), replace(change, operations=[("one",)]), replace(change, changed=[("a",)]),
                      replace(change, rows=[*change.rows, change.rows[0]])):
            with pytest.raises((TypeError, sqlite3.Error)): patch(conn, wrong)
            assert rows(conn) == before
        assert patch(conn, change) and rows(conn) == after


def test_nobody_writes_between_the_look_and_the_change(tmp_path, monkeypatch):
    old, new = two_worlds()
    path, change, tried = tmp_path / "cache.db", difference(old, new), []
    with closing(old.fill(index._open(path))) as one, closing(index._open(path)) as two:
        two.execute("PRAGMA busy_timeout = 0")
        def look(conn, key):
            with pytest.raises(sqlite3.OperationalError, match="locked"): index.remember(two, "tables", "of somebody else")
            tried.append(key)
            return index.recalled(conn, key)
        monkeypatch.setattr(patching, "recalled", look)
        assert patch(one, change, old.made_of) and tried == ["tables"] and index.recalled(two, "tables") == new.made_of
