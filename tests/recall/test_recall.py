"""Recall against plain reference implementations, on real git and SQLite, in several processes and clones."""
import json
import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import git_notes_consolidation as g
import numpy as np
import pytest
from calls import COMMAND, gnc, gnc_process, new_repo, run, serve, state_of
from git_notes_consolidation import finding, index, journal, ranking, reasoning, recall, service
from git_notes_consolidation.config import load_settings
from git_notes_consolidation.embedding import EmbeddingError, LexicalEmbedder
from git_notes_consolidation.finding import MemoryResult, RetrievalMode, Wanted
from git_notes_consolidation.models import SAMPLE_NOW, CaptureConfidence, EdgeType, MemoryEdge, MemoryMetadata, MemorySummary, MemoryTier, mem, sample_memories
from git_notes_consolidation.notes import Append, State, append, clone_id, edge_append, open_repo, read_memories, set_append, tips
from helpers import add_memories, git, refs, story
from hypothesis import given, settings
from hypothesis import strategies as st

MODES = list(RetrievalMode)
SETTINGS = load_settings({"max_change": 1.0}, env={})


def ask(home, **kw): return recall.open_recall(home, SETTINGS, **{"embedder": LexicalEmbedder(), "clock": lambda: SAMPLE_NOW} | kw)
def ids(results): return [r.id for r in results]
def shown(results): return [i for r in results for i in (r.id, *r.stands_for)]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    "The story, consolidated."
    home = new_repo(tmp_path_factory.mktemp("recall") / "repo", story())
    git(home, "config", "user.name", "Tester"); git(home, "config", "user.email", "tester@example.org")
    assert run(home).changed
    return home


@pytest.fixture
def home(template, tmp_path): return shutil.copytree(template, tmp_path / "repo")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    "The sample project before and after a run."
    before = new_repo(tmp_path_factory.mktemp("sample") / "before", sample_memories())
    after = shutil.copytree(before, before.parent / "after")
    run(after, max_change=1.0)
    return before, after


# Against a reference: memories in every state, invented


WORDS = "retry queue worker backup flask timeout cron token lease pool".split()

@st.composite
def worlds(draw):
    "Memories with tiers, repeats, replacements and summaries, as tables; and the same as plain values."
    n = draw(st.integers(1, 14))
    rnd = random.Random(draw(st.integers(0, 10**6)))
    ms, meta, stands = [], {}, {}
    for i in range(n):
        text = " ".join(rnd.choices(WORDS, k=rnd.randint(1, 4)))
        ms.append(mem(text, " ".join(rnd.choices(WORDS, k=3)), days_ago=n - i, namespace=rnd.choice(("decisions", "progress")), spec=rnd.choice((None, "S-1"))))
    for i, m in enumerate(ms):
        d = MemoryMetadata(m.id, rnd.choice([*MemoryTier]))
        roots = [x for x in ms[:i] if x.id not in stands]
        if roots and rnd.random() < 0.25:
            stands[m.id] = rnd.choice(roots).id
            d = replace(d, duplicate_of=stands[m.id] if rnd.random() < 0.7 else None)
        if i < n - 1 and rnd.random() < 0.25: d = replace(d, superseded_by=ms[-1].id, superseded_kind=rnd.choice(("full", "partial")))
        meta[m.id] = d
    sums = {}
    for k in range(rnd.randint(0, 2)):
        group = tuple(x.id for x in rnd.sample(ms, min(n, rnd.randint(1, 4))))
        text = " ".join(rnd.choices(WORDS, k=4))
        sums[f"sum_{k}"] = MemorySummary(f"sum_{k}", rnd.choice(("decisions", "progress")), SAMPLE_NOW, (ms[0].timestamp, ms[-1].timestamp), text, (), (), (),
                                         group, "run_a", CaptureConfidence(0.8), MemoryTier.WARM, title=text.split()[0])
    conn = index.in_memory()
    index.refresh(conn, ms, meta, State(summaries=sums), stands)
    return conn, ms, meta, stands, sums


def allowed(world, w):
    "Unit to what is shown for it: the rules once more, without arrays."
    _, ms, meta, stands, sums = world
    out = {}
    for m in ms:
        unit = stands.get(m.id, m.id)
        group = [x for x in ms if stands.get(x.id, x.id) == unit]
        rank = min((meta[x.id].tier.rank for x in group if not meta[x.id].duplicate_of), default=3)
        near, over = rank < len(w.mode.tiers), meta[unit].superseded_kind == "full"
        fits = near and (not over or w.mode.value in ("deep", "exhaustive")) or over and w.past and w.mode.value != "reflexive"
        mine = [x for x in group if w.namespace in (None, x.namespace) and w.spec in (None, x.spec)]
        if fits and mine: out[unit] = unit if unit in {x.id for x in mine} else mine[0].id
    if w.summaries and w.spec is None:
        out |= {i: i for i, s in sums.items() if w.namespace in (None, s.namespace) and s.tier.rank < len(w.mode.tiers)}
    return out


def orders(world, query):
    "What each row scores, in the whole of the tables."
    conn, ms, _, _, sums = world
    c = finding.read_columns(conn)
    e = LexicalEmbedder()
    X = e.embed([m.text for m in ms] + [f"{s.title}\n\n{index.told(s)}" for s in sums.values()])
    cosine, near = ranking.vector_scores(X, e.embed([query])[0], ranking.QUESTION * e.floor)
    return c, [ranking.word_scores(conn, query, len(c.ids), c.memories), near], cosine


def reference(world, query, w):
    "Filter, then rank by hand; then summaries or sources."
    _, ms, meta, stands, sums = world
    c, scores, _ = orders(world, query)
    show = allowed(world, w)
    unit_of = {m.id: stands.get(m.id, m.id) for m in ms} | {i: i for i in sums}
    fused = dict.fromkeys(show, 0.0)
    for s in scores:
        best = {u: max(s[k] for k, i in enumerate(c.ids) if unit_of[i] == u) for u in show}
        for u, x in best.items():
            if x > -math.inf: fused[u] += 61 / (61 + sum(y > x for y in best.values())) / len(scores)
    if not w.sources:
        for i in sorted((i for i in sums if fused.get(i, 0) > 0), key=lambda i: (-fused[i], i)):
            mine = {unit_of[x] for x in sums[i].source_memory_ids if meta[unit_of[x]].superseded_kind != "full"} & fused.keys()
            top = max((fused[u] for u in mine), default=0)
            if fused[i] >= 0.75 * top: fused |= {u: 0.0 for u in mine} | {i: max(fused[i], top)}
            else: fused[i] = 0.0
    return {show[u]: x for u, x in fused.items() if x > 0}


WANTED = st.builds(Wanted, st.sampled_from(MODES), st.sampled_from([None, "decisions", "progress", "nowhere"]), st.sampled_from([None, None, "S-1"]),
                   st.booleans(), st.booleans(), st.booleans())
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


@given(worlds(), WANTED, QUERIES)
@settings(max_examples=120)
def test_what_is_found_is_filtered_then_ranked(world, w, query):
    c, scores, cosine = orders(world, query)
    found = finding.ranked(c, scores, cosine, w)
    want = reference(world, query, w)
    got = {c.ids[found.show[u]]: found.score[u] for u in found.units}
    assert got.keys() == want.keys() and all(abs(got[i] - want[i]) < 1e-12 for i in got)
    assert all(a >= b for a, b in pairwise(found.score[u] for u in found.units))


@given(worlds(), WANTED)
@settings(max_examples=60)
def test_a_list_holds_all_that_may_be_shown(world, w):
    c = finding.read_columns(world[0])
    found = finding.listed(c, w)
    assert {c.ids[found.show[u]] for u in found.units} == set(allowed(world, w).values())
    assert all(a >= b for a, b in pairwise(c.when[found.show[u]] for u in found.units))


@given(worlds(), WANTED, QUERIES)
@settings(max_examples=60)
def test_a_memory_is_shown_once(world, w, query):
    c, scores, cosine = orders(world, query)
    found = finding.ranked(c, scores, cosine, w)
    results = finding.in_full(world[0], c, found, SETTINGS.config.retention, SAMPLE_NOW)
    assert len({r.id for r in results}) == len(results) == len(found.units)
    units = [world[3].get(r.id, r.id) for r in results]
    assert len(set(units)) == len(units)
    for r in results:
        assert r.id not in r.stands_for and len(set(r.stands_for)) == len(r.stands_for) and 0 < r.score <= 1
        if r.kind == "memory": assert {world[3].get(i, i) for i in r.stands_for} <= {world[3].get(r.id, r.id)}
        else: assert {*world[4][r.id].source_memory_ids} <= {*r.stands_for}
        if r.kind == "summary" and not w.sources:
            still = {i for i in units if i in world[2] and world[2][i].superseded_kind != "full"}
            assert not still & {world[3].get(i, i) for i in r.stands_for}


@given(worlds(), QUERIES)
@settings(max_examples=30)
def test_the_order_of_rows_does_not_matter(world, query):
    "The tables filled from the same memories: what differs is only where a summary or a memory lies in them."
    _, ms, meta, stands, sums = world
    conn = index.in_memory()
    index.refresh(conn, ms, meta, State(summaries=dict(reversed(sums.items()))), stands)
    results = []
    for tables in (world[0], conn):
        c, scores, cosine = orders((tables, *world[1:]), query)
        found = finding.ranked(c, scores, cosine, Wanted(RetrievalMode.EXHAUSTIVE))
        results.append([(c.ids[found.show[u]], found.score[u]) for u in found.units])
    assert results[0] == results[1]


# Queries


@given(st.text(max_size=60) | st.text(alphabet='"*():^-+{}NEARANDOR \0é日🚀\ud800', max_size=30))
@settings(max_examples=150)
def test_no_query_fails(template, query):
    s = ask(template)
    for kw in ({}, {"mode": "exhaustive", "namespace": "decisions"}): assert isinstance(s.search(query, count=False, **kw), list)


@pytest.mark.parametrize("query", ["x" * 100_000, "retry " * 20_000, "\0" * 1000, " ".join(map(str, range(30_000))), '"' * 5000, "(" * 5000, "🚀" * 30_000])
def test_a_query_of_any_size(template, query): assert len(ask(template).search(query, count=False)) <= 10


def test_everything_is_listed_newest_first(template):
    s = ask(template)
    for query in ("*", "", "  ", "**"):
        found = s.search(query, limit=99, mode="exhaustive")
        assert [r.timestamp for r in found] == sorted((r.timestamp for r in found), reverse=True)
        assert {*shown(found)} >= {m.id for m in read_memories(open_repo(template)).memories}
    assert len(s.search("*", 3)) == len(s.search("*", limit=3)) == 3 and s.search("*", limit=0) == s.search("retry", k=-1) == []


def test_the_past_is_asked_for_by_form():
    assert all(map(ranking.about_the_past, ("What did we use before SQLite?", "why did we leave Flask", "Was it Redis", "which broker was it at first?")))
    assert not any(map(ranking.about_the_past, ("What do I run before a release?", "when we deploy, what happens", "the job was lost", "who owns the queue")))


# On a repository


def test_modes_are_tiers(template):
    s = ask(template)
    for mode in MODES:
        for query in ("retries", "*", "we build on"):
            assert {r.tier for r in s.search(query, limit=99, mode=mode, count=False)} <= {*mode.tiers}, (mode, query)
    with pytest.raises(ValueError): s.search("x", mode="shallow")


def test_replaced_memories_stay_away(template):
    s = ask(template)
    replaced = {e.target_id: e.source_id for e in state_of(template).edges.values() if e.edge_type == EdgeType.SUPERSEDES}
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


def test_summaries_stand_for_their_sources(sample):
    s = ask(sample[1])
    query = "retry storm when delays are fixed"
    both, one = (s.search(query, limit=99, mode="exhaustive", include_sources=x, count=False) for x in (True, False))
    told = [r for r in one if r.kind == "summary"]
    assert told and not {i for r in told for i in r.stands_for} & {r.id for r in one if not r.superseded_by}
    assert {i for r in told for i in r.stands_for} & {*ids(both)}
    assert not [r for r in s.search(query, limit=99, include_summaries=False, count=False) if r.kind == "summary"]


def test_least_similarity(sample):
    s = ask(sample[0])
    for least in (0.1, 0.2, 0.4):
        found = s.search("worker memory grows", limit=99, min_similarity=least, count=False)
        assert all(r.similarity >= least for r in found) and len(found) < 99
    assert s.search("worker memory grows", min_similarity=1.01, count=False) == []


def test_as_of_a_day(template):
    s, v = ask(template), service.view(open_repo(template))
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


# Two times: when it was true, when it was known


def on(day): return datetime.fromisoformat(day).replace(tzinfo=UTC)
def since(text, day, recorded=None): return mem(text, now=on(recorded or day), valid_from=on(day) if recorded else None)


def edges(home, *found):
    name = f"run_{len(state_of(home).runs)}"
    made = [edge_append("0" * 40, e, name, e.created_at) for e in found]
    append(open_repo(home), lambda _: [*made, Append("runs", "0" * 40, {"kind": "run", "id": name})], SAMPLE_NOW)


def full(newer, older, **kw): return MemoryEdge(newer.id, older.id, EdgeType.SUPERSEDES, kind="full", **{"created_at": SAMPLE_NOW} | kw)


THREE, EIGHT = since("The limit is 3", "2026-01-01"), since("The limit is 8", "2026-05-01")
FIVE = since("The limit is 5", "2026-03-01", "2026-09-01")  # Came late


@pytest.fixture
def late(tmp_path):
    home = new_repo(tmp_path / "late", [THREE, FIVE, EIGHT])
    edges(home, full(EIGHT, THREE), full(FIVE, THREE), full(EIGHT, FIVE))
    return home


def current(home, **kw):
    "What is shown and was not replaced, whatever its tier; repeats and what went into a merge stand behind what is shown."
    return {r.summary for r in ask(home).search("*", mode="exhaustive", limit=99, include_summaries=False, count=False, **kw) if r.superseded_kind != "full"}


@pytest.mark.parametrize(("as_of", "known_at", "want"), [
    ("2025-12-01", None, set()), ("2026-01-01", None, {THREE}), ("2026-02-28", None, {THREE}), ("2026-03-01", None, {FIVE}), ("2026-04-30", None, {FIVE}),
    ("2026-05-01", None, {EIGHT}), ("2026-12-01", None, {EIGHT}),  # What was true then, by all that is known now
    (None, "2025-12-01", set()), (None, "2026-02-01", {THREE}), (None, "2026-04-01", {THREE}), (None, "2026-06-01", {EIGHT}), (None, "2026-09-01", {EIGHT}),
    ("2026-04-01", "2026-04-01", {THREE}), ("2026-04-01", "2026-08-31", {THREE}), ("2026-04-01", "2026-09-01", {FIVE}),  # What was believed then about then
    ("2026-06-01", "2026-04-01", {THREE}), ("2026-02-01", "2026-12-01", {THREE}), ("2025-12-01", "2026-12-01", set()), (None, None, {EIGHT})])
def test_what_was_true_and_what_was_known(late, as_of, known_at, want):
    assert current(late, as_of=as_of, known_at=known_at) == {m.summary for m in want}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5, unique=True), st.integers(0, 10), st.integers(0, 10))
@settings(max_examples=25)
def test_against_two_loops(tmp_path_factory, facts, asked, known):
    "One fact that changes: days on which it began to be true and on which it was written down. The newest of those that are known and have begun holds."
    def day(n): return on("2026-01-01") + timedelta(days=10 * n)
    ms = [mem(f"The limit is {100 + n}", now=day(max(a, b)), valid_from=day(a)) for n, (a, b) in enumerate(facts)]
    home = new_repo(tmp_path_factory.mktemp("two") / "repo", ms)
    order = sorted(ms, key=lambda m: (m.event_time, m.timestamp))
    edges(home, *(full(b, a) for i, a in enumerate(order) for b in order[i + 1:]))
    for as_of, known_at in ((day(asked), None), (None, day(known)), (day(asked), day(known))):
        there = [m for m in order if (not as_of or m.event_time <= as_of) and (not known_at or m.timestamp <= known_at)]
        assert current(home, as_of=as_of, known_at=known_at) == {m.summary for m in there[-1:]}


def test_the_present_is_not_a_day(late):
    "Without a time nothing is computed anew, and with one the tables of the present stay."
    s = ask(late)
    def found(s, **kw): return ids(s.search("limit", mode="exhaustive", count=False, **kw))
    now = found(s)
    assert now == found(ask(late), as_of=SAMPLE_NOW) == found(ask(late), known_at=SAMPLE_NOW)
    for kw in ({"as_of": "2026-04-01"}, {"known_at": "2026-04-01"}, {"as_of": "2026-04-01", "known_at": "2026-04-01"}): assert found(s, **kw) != now
    assert found(s) == now
    assert found(s, as_of="2026-04-01", known_at="2026-04-01") != found(s, as_of="2026-04-01") != found(s, known_at="2026-04-01")


def test_what_a_person_said_is_known_from_then_on(tmp_path):
    a, b, c = since("We sail on Monday", "2026-01-01"), since("We row on Friday", "2026-02-01"), since("Nobody rows", "2026-02-02")
    home = new_repo(tmp_path / "repo", [a, b, c])
    edges(home, full(b, a, by="person", created_at=on("2026-07-01")))
    assert current(home, known_at="2026-06-30") == {a.summary, b.summary, c.summary}
    assert current(home, known_at="2026-07-01") == current(home) == {b.summary, c.summary}
    assert current(home, as_of="2026-06-30") == {b.summary, c.summary}, "by all that is known now it was true before it was said"
    edges(home, full(c, b, created_at=on("2026-07-01")))
    assert current(home, known_at="2026-06-30") == {a.summary, c.summary}, "what a run reads off the texts is known with them"


def test_what_was_merged_speaks_for_itself_until_then(tmp_path):
    a, b = since("The dog guards the yard", "2026-01-01"), since("The dog's name is Max", "2026-02-01")
    both = since("The dog guards the yard; its name is Max", "2026-01-01", "2026-05-01")
    home = new_repo(tmp_path / "repo", [a, b, both])
    edges(home, *(MemoryEdge(x.id, both.id, EdgeType.MERGED_INTO, created_at=both.timestamp) for x in (a, b)))
    assert current(home) == current(home, as_of="2026-02-01") == {both.summary}
    assert current(home, as_of="2026-01-31") == {a.summary}, "nobody had named it yet"
    assert current(home, known_at="2026-04-30") == {a.summary, b.summary}
    assert current(home, as_of="2026-01-31", known_at="2026-04-30") == {a.summary}


def test_what_was_forgotten_is_forgotten_of_the_past_too(late):
    done = Append("runs", FIVE.commit_sha, {"kind": "run", "id": "run_f"})
    append(open_repo(late), lambda e: [set_append(FIVE, "status", "tombstone", "run_f"), done], SAMPLE_NOW)
    assert current(late, as_of="2026-04-01") == current(late, as_of="2026-04-01", known_at="2026-10-01") == set()


def test_what_replaced_what_at_a_time(late):
    s = ask(late)
    assert [m.id for m in s.replaced([EIGHT.id])[EIGHT.id]] == [THREE.id, FIVE.id], "in the order in which they were true"
    assert [m.id for m in s.replaced([EIGHT.id], known_at=on("2026-06-01"))[EIGHT.id]] == [THREE.id]
    assert s.replaced([EIGHT.id, FIVE.id], as_of=on("2026-04-01")).keys() == {FIVE.id}
    answer = reasoning.reasoned(s).answer("What was the limit before?", known_at=on("2026-06-01"), mode="exhaustive", count=False)
    assert "The limit is 3" in answer.answer and "The limit is 5" not in str(answer)
    before = reasoning.reasoned(s).answer("What was the limit before?", mode="exhaustive", count=False).answer
    assert "The limit is 5" in before
    for known_at, there in ((on("2026-06-01"), False), (None, True)):
        said = reasoning.reasoned(s).answer("Was the limit 5?", known_at=known_at, mode="exhaustive", count=False)
        assert (FIVE.id in ids(said.source_memories)) == there


def test_summaries_of_a_time(sample):
    "One that was written later may tell what came afterwards."
    s = ask(sample[1])
    told = [r for r in s.search("*", limit=999, mode="exhaustive") if r.kind == "summary"]
    assert told
    for kw in ({"as_of": SAMPLE_NOW - timedelta(days=1)}, {"known_at": SAMPLE_NOW - timedelta(days=1)}):
        assert not [r for r in s.search("*", limit=999, mode="exhaustive", **kw) if r.kind == "summary"]
    assert {r.id for r in s.search("*", limit=999, mode="exhaustive", known_at=SAMPLE_NOW) if r.kind == "summary"} == {r.id for r in told}


def test_the_command_asks_for_both_times(late):
    def said(*args): return gnc("recall", "limit", "--mode", "exhaustive", "--no-reason", *args, "--json", repo=late).json
    def limits(d): return {r["summary"] for r in d["results"] if r["superseded_kind"] != "full"}
    assert limits(said("--as-of", "2026-04-01")) == {FIVE.summary}
    both = said("--as-of", "2026-04-01", "--known-at", "2026-06-01")
    assert (limits(both), both["as_of"][:10], both["known_at"][:10]) == ({THREE.summary}, "2026-04-01", "2026-06-01")
    assert limits(said("--known-at", "2026-06-01")) == {EIGHT.summary} and said()["known_at"] is None
    for option in ("--as-of", "--known-at"):
        wrong = gnc("recall", "limit", option, "lately", repo=late)
        assert wrong.code == 2 and option in wrong.err and "2026-01-31" in wrong.err
    asked = gnc("recall", "What was the limit before?", "--known-at", "2026-06-01", "--mode", "exhaustive", "--reason", "--json", repo=late).json
    assert "The limit is 3" in asked["answer"] and "The limit is 5" not in json.dumps(asked)


def test_relevance_and_shape(template):
    for r in ask(template).search("retries", count=False):
        assert r.retention.relevance == pytest.approx(min(1, max(0, r.similarity))) and r.distance == pytest.approx(math.sqrt(2 - 2 * r.similarity))
        for name in "id commit_sha namespace summary content timestamp spec phase tags status relates_to repo_path".split():
            assert getattr(r, name) == getattr(r.memory, name)
        json.dumps(r.to_dict())


def test_memories_come_back_from_the_cache_as_they_were(home):
    s = ask(home)
    s.search("x", count=False)
    there = {m.id: m for m in read_memories(open_repo(home)).memories}
    assert {i: repr(m) for i, m in s.get_batch(there).items()} == {i: repr(m) for i, m in there.items()}


def test_the_order_in_which_notes_came_does_not_matter(tmp_path):
    ms, found = story(), []
    for k, some in enumerate((ms, ms[::-1], ms[::2] + ms[1::2])):
        home = new_repo(tmp_path / str(k))
        for m in some: add_memories(home, [m])
        found.append([(r.id, r.score, r.tier) for r in ask(home).search("worker retries import", limit=30, count=False)])
    assert found[0] == found[1] == found[2] and found[0]


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


# Counting


def rows(home):
    with closing(index.open_index(open_repo(home))) as conn: return conn.execute("SELECT memory_id, session FROM accesses").fetchall()


def counts(home): return {i: n for i, (n, _) in state_of(home).accesses.items()}


def test_asking_is_counted_once_a_session(home):
    one, two = ask(home), ask(home)
    found = one.search("retries", limit=3)
    for _ in range(3): one.search("retries", limit=3)
    assert sorted(rows(home)) == sorted((i, one.session) for i in ids(found))
    two.search("retries", limit=3)
    run(home)
    assert counts(home) == dict.fromkeys(ids(found), 2)
    one.search("retries", limit=3)  # The session goes on
    run(home)
    assert counts(home) == dict.fromkeys(ids(found), 2)


def test_what_is_not_asked_for_is_not_counted(home):
    s, before = ask(home), refs(home)
    s.search("retries", count=False); s.search("*"); s.search("")
    assert rows_or_none(home) == []
    run(home)
    assert refs(home) == before


def test_summaries_are_counted_too(sample, tmp_path):
    home = shutil.copytree(sample[1], tmp_path / "repo")
    found = [r for r in ask(home).search("Serve the API with a framework", limit=20) if r.kind == "summary"]
    assert found
    run(home, max_change=1.0)
    state = state_of(home)
    assert all(state.accesses[r.id][0] == state.summaries[r.id].activation_count == 1 for r in found)
    assert gnc("audit", repo=home).code == 0


def test_a_second_run_counts_nothing_again(home):
    ask(home).search("retries")
    run(home); after = refs(home)
    for now in (SAMPLE_NOW, SAMPLE_NOW + timedelta(hours=1)): run(home, now)
    assert refs(home, "refs/notes/mem-meta") == {k: v for k, v in after.items() if "mem-meta" in k}


def test_use_keeps_a_memory_near(tmp_path):
    home = new_repo(tmp_path / "repo", [mem("The harbour has two cranes", days_ago=40, namespace="progress")])
    assert run(home).success and next(iter(state_of(home).tiers.values()))["tier"] == "cold"
    for _ in range(6): assert ask(home).search("harbour cranes", mode="deep")
    plan = serve(home).plan(SAMPLE_NOW)
    assert [t.to_tier for t in plan.result.tier_transitions] == [MemoryTier.HOT]  # Foreseen before it is counted
    run(home)
    assert next(iter(state_of(home).tiers.values()))["tier"] == "hot" and [*counts(home).values()] == [6]


def test_a_dry_run_counts_nothing(home):
    ask(home).search("retries")
    before = refs(home), rows(home)
    assert gnc("consolidate", "--dry-run", repo=home).code == 0
    assert (refs(home), rows(home)) == before


def test_an_undo_leaves_the_counts(home):
    found = ids(ask(home).search("retries"))
    last = max(state_of(home).runs.values(), key=lambda r: r["seq"])["id"]
    run(home)
    service.undo(serve(home), last, SAMPLE_NOW, confirmed=True)
    assert counts(home) == dict.fromkeys(found, 1)
    again = ids(ask(home).search("retries"))
    run(home)
    assert sum(counts(home).values()) == len(found) + len(again)


def test_a_plan_from_a_file_counts_too(home, tmp_path):
    found = ids(ask(home).search("retries"))
    plan = tmp_path / "plan.json"
    assert gnc("consolidate", "--plan", plan, repo=home).code == 0 and counts(home) == {}
    assert gnc("consolidate", "--apply", plan, repo=home).code == 0 and counts(home) == dict.fromkeys(found, 1)


@pytest.mark.parametrize("stop", ["before git", "after git"])
def test_a_stop_between_cache_and_git_counts_once(home, stop, monkeypatch):
    found = ids(ask(home).search("retries"))
    real = service.append
    def stopped(*a, **kw):
        if stop == "after git": real(*a, **kw)
        else: a[1](service.read_events(open_repo(home)))
        raise KeyboardInterrupt
    with monkeypatch.context() as m:
        m.setattr(service, "append", stopped)
        with pytest.raises(KeyboardInterrupt): run(home)
    assert counts(home) == (dict.fromkeys(found, 1) if stop == "after git" else {})
    ask(home).search("retries")
    run(home)
    assert counts(home) == dict.fromkeys(found, 2)


def test_counts_that_git_forgot_are_counted_again(home):
    found, before = ids(ask(home).search("retries")), refs(home)
    run(home)
    git(home, "update-ref", "refs/notes/mem-meta/v1", before["refs/notes/mem-meta/v1"])
    run(home)
    assert counts(home) == dict.fromkeys(found, 1)


def test_a_lost_cache_loses_what_was_not_carried_over(home):
    found = ids(ask(home).search("retries"))
    run(home)
    ask(home).search("retries")
    for p in (home / ".memory").glob("consolidation.db*"): p.unlink()
    assert ids(ask(home).search("retries", count=False)) and rows_or_none(home) == []
    run(home)
    assert counts(home) == dict.fromkeys(found, 1)


def rows_or_none(home):
    with closing(index.open_index(open_repo(home))) as conn: return [*journal.waiting(conn, {})]


def test_another_schema_keeps_what_waits(home, monkeypatch):
    found = ids(ask(home).search("retries"))
    monkeypatch.setattr(index, "SCHEMA", index.SCHEMA + 1)
    assert ids(ask(home).search("retries", count=False)) == found
    run(home)
    assert counts(home) == dict.fromkeys(found, 1)


@given(st.lists(st.sampled_from(["ask a", "ask b", "run a", "run b", "meet"]), max_size=7))
@settings(max_examples=6)
def test_clones_add_up(template, tmp_path_factory, steps):
    place = tmp_path_factory.mktemp("clones")
    a, b = (shutil.copytree(template, place / x) for x in "ab")
    assert clone_id(open_repo(a)) != clone_id(open_repo(b))
    git(a, "remote", "add", "other", b); git(b, "remote", "add", "other", a)
    asked = {x: 0 for x in (a, b)}
    first = ids(ask(a).search("retries", limit=1, mode="exhaustive", include_summaries=False, count=False))[0]
    for step in [*steps, "run a", "run b", "meet", "meet"]:
        what, _, name = step.partition(" ")
        here = {"a": a, "b": b}.get(name)
        if what == "ask": ask(here).note([MemoryResult(mem("x", id=first))]); asked[here] += 1
        elif what == "run": assert run(here).success
        else:
            for home in (a, b): git(home, "fetch", "--quiet", "other", "+refs/notes/mem-*:refs/notes/other/mem-*")
            for home in (a, b):
                for ref in refs(home, "refs/notes/other/"):
                    name = ref.removeprefix("refs/notes/other/")
                    git(home, "notes", "--ref", name, "merge", "--quiet", "--strategy=cat_sort_uniq", ref)
    want = sum(asked.values())
    assert [counts(x).get(first, 0) for x in (a, b)] == [want, want]


def test_two_processes_lose_no_count(home):
    jobs = [subprocess.Popen([*COMMAND, "--repo", str(home), "--now", SAMPLE_NOW.isoformat(), "--json", "recall", q, "--mode", "exhaustive", "--limit", "5"],
                             stdout=subprocess.PIPE, text=True) for q in ("retries", "harbour lantern", "We build on", "retries")]
    told = [json.loads(j.communicate()[0])["results"] for j in jobs]
    assert [j.returncode for j in jobs] == [0] * 4 and len(rows(home)) == sum(map(len, told))
    run(home)
    assert sum(counts(home).values()) == sum(map(len, told))


def test_asking_during_a_run_loses_no_count(home, monkeypatch):
    found, s, real = ids(ask(home).search("retries")), ask(home), service.flush
    def meanwhile(*a):
        due = real(*a)
        s.search("retries")
        return due
    monkeypatch.setattr(service, "flush", meanwhile)
    run(home)
    assert counts(home) == dict.fromkeys(found, 1)
    monkeypatch.undo()
    run(home)
    assert counts(home) == dict.fromkeys(found, 2)


# The cache


def test_what_is_new_is_found_at_once(home):
    s = ask(home)
    assert not [r for r in s.search("zeppelin mooring", count=False) if "zeppelin" in r.summary]
    add_memories(home, [mem("The zeppelin needs a mooring mast")])
    assert s.search("zeppelin mooring", count=False)[0].summary == "The zeppelin needs a mooring mast"


def test_notes_are_not_read_again(home, monkeypatch):
    want = ids(ask(home).search("retries", count=False))
    def never(*a): raise AssertionError("it read the notes")
    monkeypatch.setattr(service, "view", never)
    assert ids(ask(home).search("retries", count=False)) == want


@pytest.mark.parametrize("damage", ["gone", "text", "torn", "empty"])
def test_a_cache_that_is_no_good(home, damage):
    want = ids(ask(home).search("retries", count=False))
    db = home / ".memory" / "consolidation.db"
    with closing(sqlite3.connect(db)) as conn: conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = db.read_bytes()
    if damage == "gone": shutil.rmtree(db.parent)
    else: db.write_bytes({"text": b"not a database" * 99, "torn": raw[:4096] + os.urandom(len(raw) - 4096), "empty": b""}[damage])
    assert ids(ask(home).search("retries", count=False)) == want


def test_nowhere_to_write(home):
    want = ids(ask(home).search("retries", count=False))
    shutil.rmtree(home / ".memory"); (home / ".memory").write_text("a file")
    s = ask(home)
    assert ids(s.search("retries")) == want == ids(s.search("retries"))


def test_tables_that_are_filled_in_between(home, monkeypatch):
    s, real, seen = ask(home), recall.RecallService._vectors, []
    def meanwhile(self, conn, *a):
        out = real(self, conn, *a)
        if not seen:
            seen.append(1)
            add_memories(home, [mem("Retries are for the brave", namespace="learnings")])
            ask(home).search("x", count=False)
        return out
    monkeypatch.setattr(recall.RecallService, "_vectors", meanwhile)
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


# Beside the plugin, and for programs


class Theirs:
    "The plugin's search: nearest first, whatever the tier."
    def __init__(self, memories): self.memories, self.asked = memories, []
    def search(self, query, k=10, *, namespace=None):
        self.asked.append(k)
        return [MemoryResult(m, n / 100) for n, m in enumerate(m for m in self.memories if namespace in (None, m.namespace))][:k]


def test_the_plugins_results_are_filtered_not_starved(template):
    v = service.view(open_repo(template))
    meta = service.scored(v, SETTINGS, SAMPLE_NOW)
    far_first = sorted(v.scan.memories, key=lambda m: (-meta[m.id].tier.rank, m.id))
    theirs = Theirs(far_first)
    found = recall.through_plugin(ask(template), theirs.search, "anything", limit=3, mode="reflexive", count=False)
    assert len(found) == 3 and {r.tier for r in found} == {MemoryTier.HOT} and theirs.asked[0] < theirs.asked[-1] and len({*shown(found)}) == len(shown(found))
    assert [r.distance for r in found] == sorted(r.distance for r in found)
    everything = recall.through_plugin(ask(template), theirs.search, "anything", limit=99, mode="exhaustive", count=False)
    assert {*shown(everything)} == {m.id for m in v.scan.memories}


def test_the_names_are_there(template):
    for name in ("RecallService", "RetrievalMode", "get_recall_service", "reset_recall_service", "MemoryResult"): assert getattr(g, name)
    g.reset_recall_service()
    assert g.get_recall_service(template) is g.get_recall_service(str(template)) and g.get_recall_service(template).search("retries", 2, count=False)
    one = g.get_recall_service(template); g.reset_recall_service()
    assert g.get_recall_service(template) is not one
    g.reset_recall_service()


def test_a_bare_repository(tmp_path, template):
    git(tmp_path, "init", "--quiet", "--bare", "--template=", "bare")
    git(tmp_path / "bare", "fetch", "--quiet", template, "+refs/notes/mem*:refs/notes/mem*")
    assert ids(ask(tmp_path / "bare").search("retries", count=False)) == ids(ask(template).search("retries", count=False))


# The command


NOW = ("--now", SAMPLE_NOW.isoformat())


def test_the_command(home):
    told = gnc("recall", "We build on", "--mode", "deep", repo=home)
    assert told.code == 0 and "We build on FastAPI" in told.out and "ADR-000: We build on Flask" not in told.out
    data = gnc("recall", "We build on", "--limit", "3", "--mode", "exhaustive", "--json", repo=home).json
    assert (len(data["results"]), data["mode"], data["as_of"]) == (3, "exhaustive", None)
    assert {"id", "summary", "score", "similarity", "tier", "kind", "superseded_by", "stands_for", "retention", "timestamp"} <= data["results"][0].keys()
    past = gnc("recall", "What did we build on before?", repo=home)
    assert "→ replaced by" in past.out and "We build on Flask" in past.out
    then = gnc("recall", "We build on", "--as-of", "2026-02-01", "--json", "--no-count", repo=home).json
    assert {"ADR-000: We build on Flask"} <= {r["summary"] for r in then["results"]} and all(r["timestamp"] < "2026-02-02" for r in then["results"])


def test_the_command_counts(home):
    gnc("recall", "retries", "--limit", "2", "--no-count", repo=home); assert rows_or_none(home) == []
    gnc("recall", "retries", "--limit", "2", repo=home); assert len(rows_or_none(home)) == 2


def test_the_command_says_what_lies_deeper(home):
    told = gnc("recall", "glacier", "--mode", "reflexive", repo=home)
    assert told.code == 0 and "Nothing in mode reflexive" in told.out and "deeper down: add --mode exhaustive" in told.out
    assert gnc("recall", "glacier", "--mode", "reflexive", "--json", repo=home).json["deeper"] > 0
    assert "Nothing in mode standard." in gnc("recall", "qqq", repo=home).out


@pytest.mark.parametrize("args, word", [(["--mode", "all"], "--mode all"), (["--as-of", "lately"], "--as-of"), (["--limit", "0"], "limit")])
def test_wrong_usage(home, args, word):
    told = gnc("recall", "retries", *args, repo=home)
    assert told.code == 2 and word in told.err


def test_an_empty_repository(tmp_path):
    home = new_repo(tmp_path / "repo")
    assert gnc("recall", "anything", repo=home).code == gnc("recall", "*", repo=home).code == 0
    assert gnc("recall", "x", repo=tmp_path).code == 1


def test_hostile_text_is_harmless(tmp_path):
    evil = mem("\x1b[31mRed\u202e alert [bold]x[/bold]", "Body \x1b]0;title\x07 \x9b2J end.", namespace="decisions")
    home = new_repo(tmp_path / "repo", [evil])
    told = gnc("recall", "red alert", repo=home)
    assert told.code == 0 and not set(told.out) & {"\x1b", "\x07", "\x9b", "\u202e"} and "[bold]" in told.out


def test_a_narrow_terminal(home):
    for width in (60, 20, 1): assert gnc("recall", "retries", repo=home, width=width).code == 0


HEAVY = "sklearn scipy openai onnxruntime tokenizers huggingface_hub pandas plotly anyio".split()
OURS = tuple(f"git_notes_consolidation.{m}" for m in "service phases judging evaluation llm audit fleet increments temporal redacting".split())


def loaded(code, *args, watch=HEAVY):
    "Which of the watched packages, and of our own that read the notes, a program loads."
    code += f"\nimport json, sys; print(json.dumps([m for m in sys.modules if m in {[*watch, *OURS]!r}]))"
    return json.loads(subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def test_the_process_loads_little(home):
    gnc("recall", "retries", "--no-count", repo=home)
    code = "import sys\nfrom git_notes_consolidation import commands\nassert commands.main(sys.argv[1:]) == 0"  # All of them, as the program does
    assert loaded(code, "--repo", home, *NOW, "recall", "retries") == []
    code = "import sys\nfrom git_notes_consolidation import get_recall_service\nassert get_recall_service(sys.argv[1]).search('retries', mode='exhaustive')"
    assert loaded(code, home, watch=[*HEAVY, "pydantic", "typer", "rich"]) == []


def test_a_process_without_the_extra(home):
    code = (f"import sys\nfor n in {HEAVY!r}: sys.modules[n] = None\n"
            "from git_notes_consolidation.entry import main; main()")
    for drop in (False, True):
        if drop: shutil.rmtree(home / ".memory")  # The notes have to be read again
        done = subprocess.run([sys.executable, "-c", code, "--repo", str(home), *NOW, "recall", "retries", "--json"], capture_output=True, text=True)
        assert done.returncode == 0 and json.loads(done.stdout)["results"], done.stderr


def test_as_a_process(home):
    told = gnc_process("--repo", home, *NOW, "recall", "*", "--limit", "2", "--json")
    assert told.code == 0 and len(told.json["results"]) == 2 and told.err == ""
    assert datetime.fromisoformat(told.json["results"][0]["timestamp"]).tzinfo == UTC and tips(open_repo(home)) == refs(home)


def test_a_cache_that_leads_elsewhere_is_refused(tmp_path):
    home = new_repo(tmp_path / "repo", [mem("One thing")])
    (tmp_path / "elsewhere").mkdir()
    (home / ".memory").symlink_to(tmp_path / "elsewhere")
    done = gnc("recall", "one", repo=home)
    assert done.code == 1 and "is a link" in done.err and not any((tmp_path / "elsewhere").iterdir())


def test_what_a_run_has_embedded_is_not_embedded_again(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main", "here")
    for k in ("name", "email"): git(tmp_path / "here", "config", f"user.{k}", "a@example.org")
    said = [mem("Cats purr", f"Loudly.{end}", days_ago=d) for d, end in ((9, ""), (5, "\n"), (2, ""))]
    add_memories(tmp_path / "here", [*said, mem("Tea is at four", "Every day.", days_ago=4)])
    s = service.open_service(tmp_path / "here", load_settings({}, env={}), clock=lambda: SAMPLE_NOW)
    service.run(s)
    def kept():
        with closing(index.open_index(s.repo)) as conn: return sum(len(json.loads(ids)) for ids, in conn.execute("SELECT ids FROM vectors"))
    before, made = kept(), []
    found = recall.open_recall(tmp_path / "here", s.settings, clock=lambda: SAMPLE_NOW, progress=made.append).search("purring cats")
    assert found[0].memory.summary == "Cats purr" and (made, kept(), before) == ([], 2, 2)
