"""Two times: when something was true, and when it was known."""
import json
from datetime import UTC, datetime, timedelta

import pytest
from calls import ask, gnc, new_repo, state_of
from hypothesis import given, settings, strategies as st

from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.store.events import Append, append, edge_append, set_append
from git_notes_consolidation.store.git import open_repo


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


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("as_of", "known_at", "want"), [
    ("2025-12-01", None, set()), ("2026-01-01", None, {THREE}), ("2026-02-28", None, {THREE}), ("2026-03-01", None, {FIVE}), ("2026-04-30", None, {FIVE}),
    ("2026-05-01", None, {EIGHT}), ("2026-12-01", None, {EIGHT}),  # What was true then, by all that is known now
    (None, "2025-12-01", set()), (None, "2026-02-01", {THREE}), (None, "2026-04-01", {THREE}), (None, "2026-06-01", {EIGHT}), (None, "2026-09-01", {EIGHT}),
    ("2026-04-01", "2026-04-01", {THREE}), ("2026-04-01", "2026-08-31", {THREE}), ("2026-04-01", "2026-09-01", {FIVE}),  # What was believed then about then
    ("2026-06-01", "2026-04-01", {THREE}), ("2026-02-01", "2026-12-01", {THREE}), ("2025-12-01", "2026-12-01", set()), (None, None, {EIGHT})])
def test_what_was_true_and_what_was_known(late, as_of, known_at, want):
    assert current(late, as_of=as_of, known_at=known_at) == {m.summary for m in want}


@pytest.mark.slow
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


def test_what_a_person_said_is_known_from_then_on(tmp_path):
    a, b, c = since("We sail on Monday", "2026-01-01"), since("We row on Friday", "2026-02-01"), since("Nobody rows", "2026-02-02")
    home = new_repo(tmp_path / "repo", [a, b, c])
    edges(home, full(b, a, by="person", created_at=on("2026-07-01")))
    assert current(home, known_at="2026-06-30") == {a.summary, b.summary, c.summary}
    assert current(home, known_at="2026-07-01") == current(home) == {b.summary, c.summary}
    assert current(home, as_of="2026-06-30") == {b.summary, c.summary}, "by all that is known now it was true before it was said"
    edges(home, full(c, b, created_at=on("2026-07-01")))
    assert current(home, known_at="2026-06-30") == {a.summary, c.summary}, "what a run reads off the texts is known with them"


def test_what_was_forgotten_is_forgotten_of_the_past_too(late):
    done = Append("runs", FIVE.commit_sha, {"kind": "run", "id": "run_f"})
    append(open_repo(late), lambda e: [set_append(FIVE, "status", "tombstone", "run_f"), done], SAMPLE_NOW)
    assert current(late, as_of="2026-04-01") == current(late, as_of="2026-04-01", known_at="2026-10-01") == set()


@pytest.mark.slow
def test_summaries_of_a_time(sample):
    "One that was written later may tell what came afterwards."
    s = ask(sample[1])
    told = [r for r in s.search("*", limit=999, mode="exhaustive") if r.kind == "summary"]
    assert told
    for kw in ({"as_of": SAMPLE_NOW - timedelta(days=1)}, {"known_at": SAMPLE_NOW - timedelta(days=1)}):
        assert not [r for r in s.search("*", limit=999, mode="exhaustive", **kw) if r.kind == "summary"]
    assert {r.id for r in s.search("*", limit=999, mode="exhaustive", known_at=SAMPLE_NOW) if r.kind == "summary"} == {r.id for r in told}


@pytest.mark.slow
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
