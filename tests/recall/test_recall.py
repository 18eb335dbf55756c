"""Recall against plain reference implementations, on real git and SQLite, in several processes and clones."""
import numpy as np
import os
import pytest
import shutil
import sqlite3
from calls import RECALL as SETTINGS, ask, ids, new_repo, run, shown, state_of
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from helpers import add_memories, story
from git_notes_consolidation.consolidation import scan as service
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType, MemoryTier
from git_notes_consolidation.recall import service as recall
from git_notes_consolidation.recall.search import RetrievalMode
from git_notes_consolidation.similarity.lexical import EmbeddingError, LexicalEmbedder
from git_notes_consolidation.store.git import open_repo



MODES = list(RetrievalMode)


@pytest.fixture
def home(story_after, tmp_path): return shutil.copytree(story_after, tmp_path / "repo")


# Queries


@pytest.mark.parametrize("query", ["x" * 100_000, "retry " * 20_000, "\0" * 1000, " ".join(map(str, range(30_000))), '"' * 5000, "(" * 5000, "🚀" * 30_000])
def test_a_query_of_any_size(story_after, query): assert len(ask(story_after).search(query, count=False)) <= 10


# On a repository


def test_modes_are_tiers(story_after):
    s = ask(story_after)
    for mode in MODES:
        for query in ("retries", "*", "we build on"):
            found = s.search(query, limit=99, mode=mode, count=False)
            newest = {r.newer for r in found}  # Shown for an older one, wherever it lies
            assert {r.tier for r in found if r.id not in newest} <= {*mode.tiers}, (mode, query)
    with pytest.raises(ValueError): s.search("x", mode="shallow")


def test_replaced_memories_stay_away(story_after):
    s = ask(story_after)
    replaced = {e.target_id: e.source_id for e in state_of(story_after).edges.values() if e.edge_type == EdgeType.SUPERSEDES}
    assert len(replaced) == 3
    for query in ("Flask", "cron", "SQLite", "We build on"): assert not {*replaced} & {*ids(s.search(query, limit=99, count=False))}
    for r in s.search("What did we build on before?", limit=99, count=False): assert r.superseded_by == replaced.get(r.id)
    assert {*replaced} <= {*ids(s.search("What did we build on before?", limit=99, count=False))}
    assert {*replaced} <= {*ids(s.search("We build on", limit=99, mode="exhaustive", count=False))}
    assert not {*replaced} & {*ids(s.search("What did we build on before?", limit=99, mode="reflexive", count=False))}


def test_repeats_are_shown_once(home):
    copies = [m for m in story() if m.summary == "Retry limit is 5"]
    for mode in ("standard", "exhaustive"):
        found = [r for r in ask(home).search("Retry limit", limit=99, mode=mode, include_summaries=False, count=False) if r.summary == "Retry limit is 5"]
        assert [{r.id, *r.stands_for} for r in found] == [{m.id for m in copies}]
    again = replace(copies[-1], id="x", timestamp=SAMPLE_NOW)  # Since the run
    add_memories(home, [again])
    found = [r for r in ask(home).search("Retry limit", limit=99, include_summaries=False, count=False) if r.summary == "Retry limit is 5"]
    assert [(len(r.stands_for), r.tier) for r in found] == [(4, MemoryTier.HOT)]


def test_summaries_stand_for_their_sources(tmp_path):
    notes = [mem(t, days_ago=40 - k, namespace="learnings") for k, t in enumerate((
        "Zeros mean that the tide gauge restarts", "A frozen float holds the tide gauge back in January",
        "Ferries make spikes at noon in the curve of the tide gauge"))]
    run(new_repo(tmp_path / "gauge", notes))
    s = ask(tmp_path / "gauge")
    query = "spikes of the tide gauge"
    both, one = (s.search(query, limit=99, mode="exhaustive", include_sources=x, count=False) for x in (True, False))
    told = [r for r in one if r.kind == "summary"]
    assert told and not {i for r in told for i in r.stands_for} & {r.id for r in one if not r.superseded_by}
    assert {i for r in told for i in r.stands_for} & {*ids(both)}
    assert not [r for r in s.search(query, limit=99, include_summaries=False, count=False) if r.kind == "summary"]


@pytest.mark.slow
def test_as_of_a_day(story_after):
    s, v = ask(story_after), service.view(open_repo(story_after))
    when = {m.id: m.timestamp for m in v.scan.memories}
    for days in (310, 250, 45, 30, 5):
        at = SAMPLE_NOW - timedelta(days=days)
        found = s.search("We build on Flask, SQLite, cron or retries", limit=99, mode="exhaustive", as_of=at, count=False)
        assert all(when.get(i, at) <= at for i in shown(found)) and all(when[r.superseded_by] <= at for r in found if r.superseded_by)
        listed = s.search("*", limit=99, mode="exhaustive", as_of=at)
        assert {i for i in shown(listed) if i in when} == {i for i, t in when.items() if t <= at}
    then = s.search("We build on", as_of=SAMPLE_NOW - timedelta(days=250), limit=3, count=False)
    assert {r.summary for r in then} == {"ADR-000: We build on Flask", "ADR-001: We build on SQLite", "ADR-002: We build on cron"}
    assert ids(s.search("*", as_of="2026-02-01")) == ids(s.search("*", as_of=datetime(2026, 2, 1, 23, 59, 59, 999999, UTC))) != []


# Nothing is lost by consolidating


def standing(v, i):
    "A memory, what repeats it, and what replaced it, to the end."
    meta, out = service.scored(v, SETTINGS, SAMPLE_NOW), [i]
    while (by := meta[out[-1]].superseded_by) and by not in out: out.append(by)
    return meta[i].tier, {*out}


@pytest.mark.slow
def test_nothing_is_lost_by_consolidating(sample):
    before, after = map(ask, sample)
    v = service.view(open_repo(sample[1]))
    mode = dict(zip(MemoryTier, RetrievalMode))
    for m in v.scan.memories:
        assert m.id in shown(before.search(m.summary, count=False)), m.summary
        tier, heirs = standing(v, m.id)
        found = after.search(m.summary, mode=mode[tier], count=False)
        assert heirs & {*shown(found)}, (m.summary, tier)


# The cache


def test_what_is_new_is_found_at_once(home):
    s = ask(home)
    assert not [r for r in s.search("zeppelin mooring", count=False) if "zeppelin" in r.summary]
    add_memories(home, [mem("The zeppelin needs a mooring mast")])
    assert s.search("zeppelin mooring", count=False)[0].summary == "The zeppelin needs a mooring mast"


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("damage", ["gone", "text", "torn", "empty"])
def test_a_cache_that_is_no_good(home, damage):
    want = ids(ask(home).search("retries", count=False))
    db = home / ".memory" / "consolidation.db"
    with closing(sqlite3.connect(db)) as conn: conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = db.read_bytes()
    if damage == "gone": shutil.rmtree(db.parent)
    else: db.write_bytes({"text": b"not a database" * 99, "torn": raw[:4096] + os.urandom(len(raw) - 4096), "empty": b""}[damage])
    assert ids(ask(home).search("retries", count=False)) == want


def test_tables_that_are_filled_in_between(home, monkeypatch):
    s, real, seen = ask(home), recall._compared, []
    def meanwhile(*a):
        out = real(*a)
        if not seen:
            seen.append(1)
            add_memories(home, [mem("Retries are for the brave", namespace="learnings")])
            ask(home).search("x", count=False)
        return out
    monkeypatch.setattr(recall, "_compared", meanwhile)
    assert "Retries are for the brave" in [r.summary for r in s.search("retries", limit=99, count=False)]


class Broken(LexicalEmbedder):
    name = "broken"
    def embed(self, texts): raise EmbeddingError("no weights")


class Blank(LexicalEmbedder):
    name = "blank"
    def embed(self, texts): return np.zeros((len(texts), 8), np.float32)


@pytest.mark.parametrize("embedder", [Broken(), Blank()])
def test_an_embedder_that_is_no_good(home, embedder):
    assert ids(ask(home, embedder=embedder).search("retries", count=False)) == ids(ask(home).search("retries", count=False))


# For programs
