"""What must hold of scores and tiers for every memory, and not only for the examples in the notebook."""
import math
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from git_notes_consolidation.core.settings import DECAYS, NAMESPACE_IMPORTANCE, RetentionConfig
from git_notes_consolidation.core.models import MemoryMetadata, MemoryTier, RetentionScore
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.retention.score import (
    activation, age_days, compute_retention_score, importance, recency, retrievability,
    score_decomposition, trace_strength)
from git_notes_consolidation.retention.tiers import (
    counts_by_half_life, days_in_tiers, retention_frame, tier_by_score, tier_counts, tier_of,
    weights)
from hypothesis import assume, given
from hypothesis import strategies as st

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


@given(memories, facts, configs(), days, days)
def test_time_that_passes_never_lifts(memory, known, config, a, b):
    known = MemoryMetadata(memory.id, **known)
    (_, near, _), (_, far, _) = (verdict(memory, known, config, NOW + timedelta(days=d)) for d in sorted((a, b)))
    assert far.rank >= near.rank


@given(spaces, st.floats(0.1, 400))
def test_age_does_count(namespace, d):
    fresh, old = (verdict(mem("x", days_ago=a, namespace=namespace, now=NOW), MemoryMetadata("x"))[0] for a in (0, d))
    assert old.overall < fresh.overall and old.importance < fresh.importance


# Non-decreasing in accesses


@given(memories, facts, configs(), st.integers(0, 100), st.floats(0, 100))
def test_reading_never_lowers(memory, known, config, more, later):
    before = MemoryMetadata(memory.id, **known)
    last = before.last_accessed or memory.timestamp
    after = replace(before, activation_count=before.activation_count + more, last_accessed=last + timedelta(days=later))
    (low, far, _), (high, near, _) = verdict(memory, before, config), verdict(memory, after, config)
    assert high.overall >= low.overall and high.activation >= low.activation and near.rank <= far.rank


@given(st.integers(0, 18))
def test_each_of_the_first_twenty_accesses_counts(n): assert activation(n) < activation(n + 1) < activation(20) == 1.0 == activation(10**9)


@given(spaces, st.floats(30, 1000), st.floats(0, 20))
def test_an_old_memory_that_is_read_today_is_as_fresh_as_a_new_one(namespace, d, since):
    old, new = mem("x", days_ago=d, namespace=namespace, now=NOW), mem("x", days_ago=since, namespace=namespace, now=NOW)
    read = MemoryMetadata(old.id, last_accessed=NOW - timedelta(days=since))
    assert verdict(old, read)[0] == verdict(new, MemoryMetadata(new.id))[0]


# Exactly one half at the half-life


@given(st.floats(0.01, 10_000))
def test_one_half_at_the_half_life(h):
    assert recency(h, h) == 0.5 and recency(0, h) == 1.0 and recency(2 * h, h) == 0.25
    assert importance(mem("x", importance=0.8), h, h) == 0.4 and importance(mem("x"), h, math.inf) == 1.0


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


@given(memories, facts, configs())
def test_a_second_run_at_the_same_time_says_the_same(memory, known, config):
    once = MemoryMetadata(memory.id, **known)
    first = verdict(memory, once, config)
    assert verdict(memory, replace(once, tier=first[1], retention=first[0], updated_at=NOW, created_at=NOW), config) == first


# Reading is not writing


class Frozen(dict):
    "A mapping that nobody writes to, and that invents nothing when it is asked."
    def __setitem__(self, *_): raise AssertionError("written to")
    def __missing__(self, _): raise AssertionError("asked for what is not there, with []")
    setdefault = update = pop = __setitem__


@given(st.lists(memories, max_size=4), facts, configs())
def test_looking_changes_nothing(group, known, config):
    table = Frozen({m.id: MemoryMetadata(m.id, **known) for m in group[::2]})
    before = deepcopy((group, dict(table)))
    frame = retention_frame(group, table, config, NOW)
    counts_by_half_life(group, table, config, NOW, [10, 20])
    for m in group: verdict(m, table.get(m.id) or MemoryMetadata(m.id), config), score_decomposition(m, MemoryMetadata(m.id), config, NOW)
    assert (group, dict(table)) == before and frame.equals(retention_frame(group, table, config, NOW))


# Every tier reachable by age alone


LIFE = [*range(60), *range(60, 3000, 20)]  # days


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("count", [0, 3, 20, 10**6])
def test_every_tier_is_reached_by_age_alone(namespace, count):
    known = MemoryMetadata("x", activation_count=count)
    assert [t for t in MemoryTier if t in {verdict(mem("x", days_ago=d, namespace=namespace, now=NOW), known)[1] for d in LIFE}] == [*MemoryTier]


@given(st.floats(0.05, 1), st.integers(0, 10**6))
def test_and_whatever_importance_is_stated(worth, count):
    known = MemoryMetadata("x", activation_count=count)
    assert {verdict(mem("x", days_ago=d, importance=worth, now=NOW), known)[1] for d in LIFE} == {*MemoryTier}


# Order of input irrelevant


@given(st.lists(memories, min_size=2, max_size=8, unique_by=lambda m: m.id), facts, st.randoms(), configs())
def test_order_does_not_matter(group, known, random, config):
    table = {m.id: MemoryMetadata(m.id, **known) for m in group[1:]}
    shuffled = random.sample(group, len(group))
    a, b = (retention_frame(g, dict(random.sample(list(table.items()), len(table))), config, NOW) for g in (group, shuffled))
    assert list(b.index) == [m.id for m in shuffled] and a.sort_index().equals(b.sort_index()) and tier_counts(a) == tier_counts(b)


# Consolidation never advances an event's time


@given(memories, facts, configs(), st.sampled_from([*MemoryTier]), st.floats(-5, 2000), st.floats(0, 1))
def test_what_a_run_writes_down_makes_nothing_younger(memory, known, config, tier, d, overall):
    plain = MemoryMetadata(memory.id, **known | {"consolidated_into": None})
    when = NOW - timedelta(days=d)
    written = replace(plain, tier=tier, retention=RetentionScore(overall), consolidated_into="sum_x", created_at=when, updated_at=when)
    assert verdict(memory, written, config) == verdict(memory, plain, config)


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


@given(st.lists(st.tuples(memories, st.none() | facts), max_size=8, unique_by=lambda p: p[0].id), configs())
def test_the_frame_says_what_the_functions_say(pairs, config):
    table = {m.id: MemoryMetadata(m.id, **k) for m, k in pairs if k is not None}
    frame = retention_frame((m for m, _ in pairs), table, config, NOW)
    assert list(frame.columns) == ["namespace", "summary", "age_days", "recency", "activation", "importance", "overall", "tier", "reason"]
    assert list(frame.index) == [m.id for m, _ in pairs] and sum(tier_counts(frame).values()) == len(pairs)
    for (m, _), row in zip(pairs, frame.itertuples()):
        score, tier, reason = verdict(m, table.get(m.id, MemoryMetadata(m.id)), config)
        assert (row.recency, row.activation, row.importance, row.overall) == (score.recency, score.activation, score.importance, score.overall)
        assert (row.tier, row.reason, row.namespace, row.summary, row.age_days) == (tier.value, reason, m.namespace, m.summary, age_days(m.timestamp, NOW))


@given(memories, facts, configs())
def test_the_parts_add_up(memory, known, config):
    known = MemoryMetadata(memory.id, **known)
    parts, score = score_decomposition(memory, known, config, NOW), verdict(memory, known, config)[0]
    assert list(parts) == ["recency", "activation", "importance", "penalty"] and abs(sum(parts.values()) - score.overall) < 1e-8
    assert parts["penalty"] <= 1e-9 and (known.superseded_by or parts["penalty"] == 0) and parts["recency"] == config.recency_weight * score.recency


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


@given(st.floats(0, 1), configs())
def test_thresholds_cut_the_line(score, config):
    tier, reason = tier_by_score(score, config)
    edges = [config.hot_threshold, config.warm_threshold, config.archive_threshold]
    assert tier.rank == sum(score < e for e in edges)
    assert tier_by_score(edges[0], config)[0] is HOT and tier_by_score(edges[1], config)[0] is WARM and tier_by_score(edges[2], config)[0] is COLD
    assert any(f"{e:g}" in reason for e in edges) and "threshold" in reason


@given(st.integers(0, 10**9))
def test_a_reason_never_shows_a_score_that_was_not_reached(billionths):
    score = billionths / 1e9
    shown = float(tier_by_score(score, DEFAULT)[1].split()[1])
    assert shown <= score + 1e-12 and score - shown < 0.001 + 1e-12


@given(memories, facts, configs())
def test_a_score_has_nine_places(memory, known, config):
    overall = verdict(memory, MemoryMetadata(memory.id, **known), config)[0].overall
    assert overall == float(f"{overall:.9f}") and 0 <= overall <= 1


def test_a_score_that_equals_a_threshold_is_in_the_tier_above():
    note = mem("x", namespace="progress", now=NOW)  # .4 + .4 * .5, in binary a little more than .6
    assert verdict(note, MemoryMetadata("x"), replace(DEFAULT, grace_days=0))[:2] == (RetentionScore(0.6, 1.0, 0.0, 0.5), HOT)
    tenth = replace(note, importance=0.1)
    assert verdict(tenth, MemoryMetadata("x"), replace(DEFAULT, grace_days=0, hot_threshold=0.44))[1] is HOT


@given(memories, facts, configs())
def test_a_repeat_is_archived(memory, known, config):
    _, tier, reason = verdict(memory, MemoryMetadata(memory.id, **known | {"duplicate_of": "mem_first"}), config)
    assert (tier, reason) == (ARCHIVED, "repeats mem_first")


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


def test_grace_is_for_the_new_and_not_for_the_read():
    old = mem("x", days_ago=100, importance=0.0, now=NOW)
    assert verdict(old, MemoryMetadata("x", last_accessed=NOW - timedelta(days=3)))[1] is WARM


def test_a_kind_without_a_successor_means_nothing():
    decision = mem("x", days_ago=10, now=NOW)
    assert verdict(decision, MemoryMetadata("x", superseded_kind="full")) == verdict(decision, MemoryMetadata("x"))


# Days in tiers

TABLE = {"decisions": (27, 115, 251), "learnings": (20, 93, 201), "patterns": (17, 83, 177), "retrospective": (15, 75, 155), "inception": (10, 60, 118),
         "blockers": (10, 60, 118), "research": (5, 49, 92), "elicitation": (5, 49, 92), "progress": (1, 39, 73), "reviews": (1, 39, 73)}


@pytest.mark.parametrize("namespace", NAMESPACE_IMPORTANCE)
def test_days_in_tiers(namespace):
    hot, warm, archived = TABLE[namespace]
    assert days_in_tiers(namespace, replace(DEFAULT, grace_days=0)) == {"leaves_hot": hot, "leaves_warm": warm, "archived": archived}
    assert days_in_tiers(namespace, DEFAULT) == {"leaves_hot": max(hot, 7), "leaves_warm": warm, "archived": archived}


# What the sliders compute


@given(st.lists(memories, max_size=6), facts, configs(), st.lists(st.floats(1, 500), min_size=2, max_size=4, unique=True))
def test_a_longer_half_life_lets_nothing_go(group, known, config, half_lives):
    table = {m.id: MemoryMetadata(m.id, **known) for m in group}
    counts = counts_by_half_life(iter(group), table, config, NOW, sorted(half_lives))
    assert list(counts) == sorted(half_lives)
    for h in half_lives: assert counts[h] == tier_counts(retention_frame(group, table, replace(config, retention_half_life_days=h), NOW))
    for up_to in range(1, 4):
        near = [sum(list(c.values())[:up_to]) for c in counts.values()]
        assert near == sorted(near)


def test_preset_subcog_scores_with_design_fives_numbers():
    "Half-life 14 days, three weights of .3 and its own tiers; the importance that a note states, else its namespace's worth."
    subcog = RetentionConfig.preset("subcog")
    for stated, worth in ((None, 1.0), (0.25, 0.25)):
        got = verdict(mem("x", namespace="decisions", days_ago=28, importance=stated, now=NOW), MemoryMetadata("x"), subcog)[0]
        assert got.overall == pytest.approx(0.3 * 0.25 + 0.3 * worth * 2 ** (-28 / 365), abs=1e-8)
    assert [tier_by_score(s, subcog)[0] for s in (0.7, 0.69, 0.4, 0.39, 0.2, 0.19)] == [HOT, WARM, WARM, COLD, COLD, ARCHIVED]


def test_preset_mycelic_is_the_default_score_in_other_tiers():
    mycelic, note = RetentionConfig.preset("mycelic"), mem("x", days_ago=20, now=NOW)
    assert verdict(note, MemoryMetadata("x"), mycelic)[0] == verdict(note, MemoryMetadata("x"))[0]
    assert [tier_by_score(s, mycelic)[0] for s in (0.7, 0.69, 0.3, 0.29, 0.05, 0.04)] == [HOT, WARM, WARM, COLD, COLD, ARCHIVED]


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
