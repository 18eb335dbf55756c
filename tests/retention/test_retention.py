"""What must hold of scores and tiers for every memory, and not only for the examples in the notebook."""
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from git_notes_consolidation.core.settings import DECAYS, NAMESPACE_IMPORTANCE, RetentionConfig
from git_notes_consolidation.core.models import MemoryMetadata, MemoryTier
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.retention.score import (
    compute_retention_score, retrievability, tier_by_score, tier_of, trace_strength, weights)
from hypothesis import assume, given, strategies as st

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
DEFAULT, GNM = RetentionConfig(), RetentionConfig.preset("gnm")
HOT, WARM, COLD, ARCHIVED = MemoryTier
NAMESPACES = [*NAMESPACE_IMPORTANCE, "my-own"]

days = st.floats(0, 2000)
spaces = st.sampled_from(NAMESPACES)
stated = st.none() | st.floats(0, 1)
memories = st.builds(lambda d, ns, i, status, text: mem(text, days_ago=d, namespace=ns, importance=i, status=status, now=NOW),
                     st.floats(-20, 2000), spaces, stated, st.sampled_from(["active", "resolved", "archived"]), st.text(max_size=5))
facts = st.fixed_dictionaries({
    "activation_count": st.integers(0, 60), "last_accessed": st.none() | st.floats(-20, 2500).map(lambda d: NOW - timedelta(days=d)),
    "superseded_by": st.sampled_from([None, None, "mem_new"]), "superseded_kind": st.sampled_from([None, "full", "partial"]),
    "duplicate_of": st.sampled_from([None, None, None, "mem_first"]), "consolidated_into": st.sampled_from([None, "sum_x"])})


@st.composite
def configs(draw):
    hot, warm, low = sorted(draw(st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3, unique=True)), reverse=True)
    raw = draw(st.tuples(*[st.floats(0.01, 1)] * 3))
    return RetentionConfig(hot_threshold=hot, warm_threshold=warm, archive_threshold=low, **weights(*raw), retention_half_life_days=draw(st.floats(0.5, 500)),
                           importance_half_life_days=draw(st.floats(1, 2000) | st.just(math.inf)), grace_days=draw(st.sampled_from([0.0, 7.0, 30.0])),
                           superseded_factor=draw(st.floats(0, 1)), partial_factor=draw(st.floats(0, 1)), supersession_rule=draw(st.booleans()),
                           decay=draw(st.sampled_from(DECAYS)), decay_exponent=draw(st.floats(0.05, 3)))


def verdict(memory, known, config=DEFAULT, now=NOW):
    "Score, tier and reason."
    score = compute_retention_score(memory, known, config, now)
    return score, *tier_of(score, memory, known, config, now)


def aged(memory, d): return replace(memory, timestamp=NOW - timedelta(days=d))


# Monotone in age


@pytest.mark.slow
@given(memories, facts, configs(), days, days)
def test_older_is_never_nearer(memory, known, config, a, b):
    known = MemoryMetadata(memory.id, **known | {"last_accessed": None})
    (young, near, _), (old, far, _) = (verdict(aged(memory, d), known, config) for d in sorted((a, b)))
    assert old.overall <= young.overall and old.recency <= young.recency and old.importance <= young.importance and far.rank >= near.rank


# Non-decreasing in accesses


@given(memories, facts, configs(), st.integers(0, 100), st.floats(0, 100))
def test_reading_never_lowers(memory, known, config, more, later):
    before = MemoryMetadata(memory.id, **known)
    last = before.last_accessed or memory.timestamp
    after = replace(before, activation_count=before.activation_count + more, last_accessed=last + timedelta(days=later))
    (low, far, _), (high, near, _) = verdict(memory, before, config), verdict(memory, after, config)
    assert high.overall >= low.overall and high.activation >= low.activation and near.rank <= far.rank


# Exactly one half at the half-life


@given(st.integers(1, 400))
def test_a_memory_of_one_half_life_has_half_its_recency(h):
    memory = mem("x", days_ago=h, now=NOW)
    score = compute_retention_score(memory, MemoryMetadata(memory.id), replace(DEFAULT, retention_half_life_days=h, importance_half_life_days=h), NOW)
    assert (score.recency, score.importance) == (0.5, 0.5)


# The same whatever the cadence of runs; idempotent


@given(memories, facts, configs(), st.lists(st.floats(0, 400), max_size=6))
def test_runs_in_between_change_nothing(memory, known, config, runs):
    untouched = seen = MemoryMetadata(memory.id, **known)
    for day in sorted(runs):
        when = NOW + timedelta(days=day)
        score, tier, _ = verdict(memory, seen, config, when)
        seen = replace(seen, tier=tier, retention=score, updated_at=when)
    end = NOW + timedelta(days=500)
    assert verdict(memory, seen, config, end) == verdict(memory, untouched, config, end)


# Reading is not writing


# Every tier reachable by age alone


# Order of input irrelevant


# Consolidation never advances an event's time


# Odd times


@given(memories, st.floats(0, 400), spaces)
def test_the_future_is_now(memory, ahead, namespace):
    tomorrow, today = (mem("x", days_ago=-d, namespace=namespace, now=NOW) for d in (ahead, 0))
    assert verdict(tomorrow, MemoryMetadata("x")) == verdict(today, MemoryMetadata("x"))
    read = MemoryMetadata("x", last_accessed=NOW + timedelta(days=ahead))
    assert verdict(memory, read)[0].recency == 1.0


@given(memories, st.floats(0, 400), st.integers(-12, 12))
def test_a_time_without_a_zone_is_utc(memory, d, offset):
    def bare(t): return t.replace(tzinfo=None)
    def zoned(t): return t.astimezone(timezone(timedelta(hours=offset)))
    read = NOW - timedelta(days=d)
    want = verdict(memory, MemoryMetadata("x", last_accessed=read))
    for view in (bare, zoned):
        assert verdict(replace(memory, timestamp=view(memory.timestamp)), MemoryMetadata("x", last_accessed=view(read)), DEFAULT, view(NOW)) == want


# The frame is the scalar


# The preset is the document


def design_1(memory, metadata, now):
    "Section 5 of design 1, copied out with its constants."
    age = (now - memory.timestamp).total_seconds() / 86400
    access_age = (now - metadata.last_accessed).total_seconds() / 86400 if metadata.last_accessed else age
    r = math.exp(-min(age, access_age) / 30.0 * math.log(2))
    a = min(1.0, math.log1p(metadata.activation_count) / math.log1p(20))
    table = {"decisions": 1.0, "learnings": 0.9, "patterns": 0.85, "retrospective": 0.8, "inception": 0.7, "blockers": 0.7, "research": 0.6,
             "elicitation": 0.6, "progress": 0.5, "reviews": 0.5}
    i = table.get(memory.namespace, 0.5)
    overall = 0.4 * r + 0.2 * a + 0.4 * i
    if metadata.superseded_by: overall *= 0.2
    return min(1.0, max(0.0, overall)), r, a, i


@given(st.floats(0, 3000), st.none() | st.floats(0, 3000), spaces, st.integers(0, 100),
       st.sampled_from([(None, None), ("n", "full"), ("n", "partial"), ("n", None)]))
def test_preset_gnm_is_design_1(d, since, namespace, count, replaced):
    memory = mem("x", days_ago=d, namespace=namespace, now=NOW)
    known = MemoryMetadata("x", activation_count=count, superseded_by=replaced[0], superseded_kind=replaced[1],
                           last_accessed=None if since is None else NOW - timedelta(days=since))
    got, tier, _ = verdict(memory, known, GNM)
    want = design_1(memory, known, NOW)
    assert (got.overall, got.recency, got.activation, got.importance) == pytest.approx(want, abs=1e-9)
    assume(min(abs(want[0] - t) for t in (0.6, 0.3, 0.1)) > 1e-8)
    assert tier is (HOT if want[0] >= 0.6 else WARM if want[0] >= 0.3 else COLD if want[0] >= 0.1 else ARCHIVED)


# Tiers by threshold and by rule


@given(memories, facts)
def test_superseded_as_a_whole_is_archived_at_any_age(memory, known):
    for kind in ("full", None):
        known |= {"superseded_by": "mem_new", "superseded_kind": kind, "duplicate_of": None}
        _, tier, reason = verdict(memory, MemoryMetadata(memory.id, **known))
        assert (tier, reason) == (ARCHIVED, "superseded by mem_new")


@given(memories, facts, configs())
def test_superseded_in_part_is_at_most_warm_and_no_grace_helps(memory, known, config):
    config = replace(config, supersession_rule=True)
    known = MemoryMetadata(memory.id, **known | {"superseded_by": "mem_new", "superseded_kind": "partial", "duplicate_of": None})
    score, tier, reason = verdict(memory, known, config)
    by_score = tier_by_score(score.overall, config)[0]
    assert tier.rank >= max(by_score.rank, 1) and ("in part by mem_new" in reason) == (by_score is HOT)
    if memory.status != "archived": assert tier.rank == max(by_score.rank, 1)


@given(memories, facts, configs())
def test_superseding_takes_its_factor(memory, known, config):
    known = MemoryMetadata(memory.id, **known | {"superseded_by": None, "superseded_kind": None})
    whole = verdict(memory, known, config)[0].overall
    for kind, factor in (("full", config.superseded_factor), ("partial", config.partial_factor)):
        assert verdict(memory, replace(known, superseded_by="n", superseded_kind=kind), config)[0].overall == pytest.approx(whole * factor, abs=2e-9)


@given(memories, facts, configs())
def test_a_memory_that_its_author_archived_is_at_most_cold(memory, known, config):
    _, tier, _ = verdict(replace(memory, status="archived"), MemoryMetadata(memory.id, **known), config)
    active = verdict(replace(memory, status="active"), MemoryMetadata(memory.id, **known), config)[1]
    assert tier.rank == max(active.rank, COLD.rank)


# Days in tiers

# What the sliders compute


def test_preset_subcog_scores_with_design_fives_numbers():
    "Half-life 14 days, three weights of .3 and its own tiers; the importance that a note states, else its namespace's worth."
    subcog = RetentionConfig.preset("subcog")
    for stated, worth in ((None, 1.0), (0.25, 0.25)):
        got = verdict(mem("x", namespace="decisions", days_ago=28, importance=stated, now=NOW), MemoryMetadata("x"), subcog)[0]
        assert got.overall == pytest.approx(0.3 * 0.25 + 0.3 * worth * 2 ** (-28 / 365), abs=1e-8)
    assert [tier_by_score(s, subcog)[0] for s in (0.7, 0.69, 0.4, 0.39, 0.2, 0.19)] == [HOT, WARM, WARM, COLD, COLD, ARCHIVED]


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("half_life", [1, 30, 365])
def test_every_decay_is_one_half_at_the_half_life(decay, half_life):
    config = replace(DEFAULT, decay=decay, retention_half_life_days=half_life)
    note = mem("x", days_ago=half_life, now=NOW)
    assert verdict(note, MemoryMetadata("x"), config)[0].recency == pytest.approx(0.5, abs=1e-12)


@given(st.floats(1, 2000), st.floats(0, 1), st.integers(0, 50), st.floats(0.1, 2))
def test_act_r_counts_every_access(first, part, count, d):
    "An access now raises the strength, and so does one more in the past; time alone lowers it."
    last = first * part
    s = trace_strength(first, last, count, d)
    assert trace_strength(first, 0, count + 1, d) >= s - 1e-12 and trace_strength(first, last, count + 1, d) >= s
    assert trace_strength(first + 7, last + 7, count, d) <= s + 1e-12 and 0 <= retrievability(first, last, count, 30, d) <= 1
