"""Filtering and ranking against plain reference implementations, over memories in every state, invented."""
import random
import pytest
from dataclasses import replace
from itertools import pairwise

from calls import RECALL as SETTINGS
from hypothesis import given, settings
from hypothesis import strategies as st
from test_recall import MODES

from git_notes_consolidation.recall import search as finding
from git_notes_consolidation.store import cache as store_cache
from git_notes_consolidation.store import tables as index
from git_notes_consolidation.recall import rank as ranking
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.recall.search import RetrievalMode, Wanted
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import CaptureConfidence, MemoryMetadata, MemorySummary, MemoryTier
from git_notes_consolidation.store.state import State

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
    conn = store_cache.in_memory()
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
    X = e.embed([m.text for m in ms] + [f"{s.title}\n\n{index.summary_text(s)}" for s in sums.values()])
    cosine, near = ranking.vector_scores(X, e.embed([query])[0], ranking.QUESTION * e.floor)
    return c, [ranking.word_scores(conn, query, len(c.ids), c.memories), near], cosine


WANTED = st.builds(Wanted, st.sampled_from(MODES), st.sampled_from([None, "decisions", "progress", "nowhere"]), st.sampled_from([None, None, "S-1"]),
                   st.booleans(), st.booleans(), st.booleans())
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


@pytest.mark.slow
@given(worlds(), WANTED)
@settings(max_examples=60)
def test_a_list_holds_all_that_may_be_shown(world, w):
    c = finding.read_columns(world[0])
    found = finding.listed(c, w)
    assert {c.ids[found.show[u]] for u in found.units} == set(allowed(world, w).values())
    assert all(a >= b for a, b in pairwise(c.when[found.show[u]] for u in found.units))


@pytest.mark.slow
@given(worlds(), WANTED, QUERIES)
@settings(max_examples=60)
def test_a_memory_is_shown_once(world, w, query):
    c, scores, cosine = orders(world, query)
    found = finding.ranked(c, scores, cosine, w)
    results = finding.full_results(world[0], c, found, SETTINGS.config.retention, SAMPLE_NOW)
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


@pytest.mark.slow
@given(worlds(), QUERIES)
@settings(max_examples=30)
def test_the_order_of_rows_does_not_matter(world, query):
    "The tables filled from the same memories: what differs is only where a summary or a memory lies in them."
    _, ms, meta, stands, sums = world
    conn = store_cache.in_memory()
    index.refresh(conn, ms, meta, State(summaries=dict(reversed(sums.items()))), stands)
    results = []
    for tables in (world[0], conn):
        c, scores, cosine = orders((tables, *world[1:]), query)
        found = finding.ranked(c, scores, cosine, Wanted(RetrievalMode.EXHAUSTIVE))
        results.append([(c.ids[found.show[u]], found.score[u]) for u in found.units])
    assert results[0] == results[1]
