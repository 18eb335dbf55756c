"""Records: a line reads alike as JSON and as YAML, the fold says the same in any order, and no stranger's line stops it."""
import contextlib
import io
import json
import tempfile
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from helpers import git
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from test_notes import texts

from git_notes_consolidation.apps.cli import program as cli
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.core.models import CaptureConfidence, EdgeType, MemoryEdge, MemorySummary, MemoryTier, Quote, SummaryDecision, SupersededFact
from git_notes_consolidation.store.events import (
    REFS,
    Append,
    Events,
    access_append,
    decode,
    edge_append,
    encode,
    read_events,
    review_append,
    summary_append,
    tier_append,
)
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import write_memories
from git_notes_consolidation.store.state import fold, with_run

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


# A line is a record: JSON and YAML read it alike

ODD = [*range(0x20), *range(0x7f, 0xa1), 0xad, 0x200b, 0x202e, 0x2028, 0x2029, 0xd7ff, 0xe000, 0xfdd0, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x10000,
       0x1f680, 0x1fffe, 0x10ffff]
words = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from([chr(c) for c in ODD]), max_size=8) | texts
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
values = st.recursive(st.none() | st.booleans() | numbers | words, lambda v: st.lists(v, max_size=3) | st.dictionaries(words, v, max_size=2), max_leaves=4)
records_of_any_kind = st.builds(lambda d, i, k, n: d | {"id": i, "kind": k, "seq": n},
                                st.dictionaries(words, values, max_size=3), words, words.map("k{}".format), st.integers(0, 10**6))


def rounded(v):
    "As it is stored: four decimals, tuples as lists."
    if isinstance(v, dict): return {k: rounded(x) for k, x in v.items()}
    if isinstance(v, list): return [rounded(x) for x in v]
    return round(v, 4) if isinstance(v, float) else v


def same(a, b):
    "Equal, and of the same types: 1, 1.0 and True are three values."
    if type(a) is not type(b): return False
    if isinstance(a, dict): return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return all(map(same, a, b)) and len(a) == len(b) if isinstance(a, list) else a == b


def encoded(r):
    try: return encode(r)
    except ValueError: assume(False)


@pytest.mark.slow
@given(st.lists(records_of_any_kind, min_size=1, max_size=2))
@settings(max_examples=200)
def test_json_and_yaml_read_the_same(rs):
    rows = [encoded(r) for r in rs]
    want = [rounded(r) for r in rs]
    assert same([decode(row) for row in rows], want)
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        assert same(yaml.load("\n".join(rows) + "\n", loader), want)
    for row in rows:
        assert all(ord(c) >= 0xa0 for c in row if not c.isprintable())
        assert len(row.splitlines()) == 1 and [encode(r) for r in yaml.safe_load(row)] == [row]


# The fold

FOUR = [mem(f"Fact {t}", days_ago=40 * i) for i, t in enumerate("abcd", 1)]
MEMORIES = A, B, C, _ = [m.id for m in FOUR]
RUNS, UNDOS = [f"run_{i}" for i in range(4)], [f"undo_{i}" for i in range(3)]
SUMMARY = MemorySummary("sum_x", "decisions", NOW, (NOW - timedelta(days=9), NOW), "Text.", ("A fact.",), (SummaryDecision("Use it", "fast"),),
                        (SupersededFact("old", "new", A),), (A, B), "", CaptureConfidence(0.5, coherence=0.4), title="A title", coverage=0.5,
                        quotes=(Quote(A, "summary", 0, 4, "Fact"),))
EDGES = [MemoryEdge(a, b, t, 0.5, "why", span="quoted")
         for a, b, t in ((A, B, EdgeType.SUPERSEDES), (A, C, EdgeType.DUPLICATE_OF), (A, B, EdgeType.SIMILAR))]


def record(append, seq): return append.store, json.loads(json.dumps({**append.record, "seq": seq}))  # tuples come back as lists
def moved(m, tier, run, seq): return record(tier_append(replace(mem("x"), id=m), MemoryTier.HOT, tier, "x", 0.5, run), seq)
def used(m, clone, n, days, seq=1): return record(access_append(replace(mem("x"), id=m), clone, n, NOW - timedelta(days=days)), seq)
def told(i, live, run, seq): return record(summary_append("", replace(SUMMARY, id=i), run, live), seq)


seqs, runs_named, some_memory, some_edge, some_clone = st.integers(1, 9), *map(st.sampled_from, ([*RUNS, "run_gone"], MEMORIES, EDGES, ["here", "there"]))
learnt = st.one_of(
    st.builds(moved, some_memory, st.sampled_from(MemoryTier), runs_named, seqs),
    st.builds(lambda e, live, run, n: record(edge_append("", e, run, NOW, live), n), some_edge, st.booleans(), runs_named, seqs),
    st.builds(told, st.sampled_from(["sum_x", "sum_y"]), st.booleans(), runs_named, seqs),
    st.builds(lambda e, run, n: record(review_append("", e.id, {"what": "edge"}, run), n), some_edge, runs_named, seqs),
    st.builds(used, some_memory, some_clone, st.integers(0, 9), st.integers(0, 99), seqs))
def decisions(by, answers):
    return st.one_of(
        st.builds(lambda e, by, live, run, n: record(edge_append("", replace(e, by=by), run, NOW, live), n), some_edge, by, st.booleans(), runs_named, seqs),
        st.builds(lambda e, more, holds, run, n: record(review_append("", e.id, {"live": False, "holds": holds} | more, run), n), some_edge, answers,
                  st.booleans(), runs_named, seqs))


agents = st.sampled_from([{"by": "agent"}, {"by": "agent", "about": [A, B], "at": NOW.isoformat()}, {"by": "agent", "about": 7}])
by_agents, decided = decisions(st.just("agent"), agents), decisions(st.sampled_from(["agent", "person"]), agents | st.just({}))


@st.composite
def histories(draw, learnt=learnt):
    "Runs, undos of runs and of undos, and what they wrote; some of it by a run that never came to its end."
    runs = [("runs", {"kind": "run", "id": i, "seq": draw(seqs)}) for i in draw(st.sets(st.sampled_from(RUNS), min_size=1))]
    undos = [("runs", {"kind": "undo", "id": i, "seq": draw(seqs), "targets": draw(st.lists(st.sampled_from([*RUNS, *UNDOS]), max_size=3))})
             for i in draw(st.sets(st.sampled_from(UNDOS)))]
    numbers, lost = {r["id"]: r["seq"] for _, r in runs}, st.integers(0, 5)
    rest = draw(st.lists(learnt, max_size=12))
    for _, r in rest: r["seq"] = numbers[r["run"]] if r.get("run") in numbers and draw(lost) else r["seq"]  # else from a try that lost its race
    return runs + undos + [(s, {"id": f"r_{i}"} | r) for i, (s, r) in enumerate(rest)]


def folded(history): return fold(Events(tuple((s, "0" * 40, r) for s, r in history), (), {}))


@pytest.mark.slow
@given(histories(learnt | decided), st.data())
@settings(max_examples=250)
def test_neither_order_nor_repetition_of_records_matters(history, data):
    again = data.draw(st.lists(st.sampled_from(history), max_size=5))
    mixed = data.draw(st.permutations(history + again))
    one, two = folded(mixed), folded(history)
    assert one == two and (one.verdicts, one.to_ask) == (two.verdicts, two.to_ask)


@pytest.mark.slow
@given(histories(learnt | decided))
@settings(max_examples=250)
def test_what_a_person_decided_holds_whatever_an_agent_says_and_when(history):
    state = folded(history)
    whole = {r["id"] for s, r in history if s == "runs"} - state.undone
    counts = [r for _, r in history if r.get("run") in whole and r["seq"] == state.runs[r["run"]]["seq"]]
    persons = {r["subject"] for r in counts if r["kind"] == "review" and "holds" in r and r.get("by") != "agent"}
    without = folded([(s, r) for s, r in history if not (r.get("by") == "agent" and r.get("subject") in persons)])
    assert all((i in state.edges, state.edges.get(i), state.verdicts.get(i)) == (i in without.edges, without.edges.get(i), without.verdicts.get(i))
               for i in persons)


@pytest.mark.slow
@given(histories())
@settings(max_examples=250)
def test_the_fold_is_what_its_description_says(history):
    "Against the definition, written down without any of its steps."
    runs = {r["id"]: r for s, r in history if s == "runs"}
    def undone(i): return any(i in u.get("targets", ()) and u["seq"] > runs[i]["seq"] and not undone(u["id"]) for u in runs.values())
    def counts(r): return r["run"] in runs and r["seq"] == runs[r["run"]]["seq"]
    def latest(kind, subject):
        about = [r for _, r in history if r["kind"] == kind and subject in (r.get("subject"), r.get("memory"))]
        return max((r for r in about if counts(r) and not undone(r["run"])), key=lambda r: (r["seq"], r["id"]), default=None)
    state = folded(history)
    assert state.undone == {i for i in runs if undone(i)} and state.runs == runs
    assert {m: state.tier(m).value for m in MEMORIES} == {m: (latest("tier", m) or {"tier": "hot"})["tier"] for m in MEMORIES}
    assert set(state.edges) == {e.id for e in EDGES if (r := latest("edge", e.id)) and r.get("live", True)}
    assert all((e.weight, e.reason, e.span, e.consolidation_run_id) == (0.5, "why", "quoted", latest("edge", i)["run"]) for i, e in state.edges.items())
    assert set(state.summaries) == {i for i in ("sum_x", "sum_y") if (r := latest("summary", i)) and r.get("live", True)}
    assert all(replace(x, consolidation_run_id="") == replace(SUMMARY, id=i) for i, x in state.summaries.items())
    assert set(state.reviews) == {e.id for e in EDGES if latest("review", e.id)}
    back = {r["subject"] for _, r in history if r["kind"] in ("edge", "summary") and r.get("live", True) and counts(r) and undone(r["run"])}
    assert state.rejected == {i for i in back if not latest("edge", i) and not latest("summary", i)}


answered = st.builds(lambda e, live, holds: ("edges", {"kind": "review", "subject": e.id, "live": live, "holds": holds}), some_edge, st.booleans(),
                     st.sampled_from([True, False, None, "yes"]))
set_by_hand = st.builds(lambda m, x: ("meta", {"kind": "set", "subject": f"{m}/importance", "value": x}), some_memory, st.sampled_from([None, 0.25, 1.0, 7]))
done_by_hand = st.builds(lambda m, days, touched: ("runs", {"kind": "op", "operation": "NOOP", "at": (NOW - timedelta(days=days)).isoformat(), "target": m,
                                                            "touched": touched}), some_memory, st.integers(0, 9), st.booleans())
written = st.builds(lambda m: ("meta", {"kind": "wrote", "subject": m}), some_memory)
one_more = st.lists(learnt.filter(lambda x: x[1]["kind"] != "access") | answered | set_by_hand | done_by_hand | written, max_size=9)


@pytest.mark.slow
@given(st.tuples(histories(), one_more, one_more) | st.tuples(histories(learnt | by_agents), *[st.lists(
    (learnt | by_agents).filter(lambda x: x[1]["kind"] != "access"), max_size=9)] * 2))
@settings(max_examples=250)
def test_one_more_run_on_top_is_what_the_fold_of_everything_says(found):
    history, first, second = found
    def numbered(r, i, k, seq):
        own = {"subject": f"op_{i}_{k}"} if r["kind"] == "op" else {}  # Each is done once
        return r | {"id": f"{i}_{k}", "run": i, "seq": seq} | own
    def run(i, seq, found): return [("runs", {"kind": "run", "id": i, "seq": seq}), *((s, numbered(r, i, k, seq)) for k, (s, r) in enumerate(found))]
    before, last = history + run("run_first", 20, first), run("run_second", 21, second)
    assert with_run(folded(before), [r for _, r in last]) == folded(before + last)


def holds(state): return state.tiers, state.edges, state.summaries, state.reviews, state.accesses


@pytest.mark.slow
@given(histories(), st.data())
@settings(max_examples=250)
def test_an_undo_takes_back_its_run_and_nothing_else(history, data):
    run = data.draw(st.sampled_from([r["id"] for _, r in history if r["kind"] == "run"]))
    before = folded(history)
    assume(run not in before.undone)
    undo = ("runs", {"kind": "undo", "id": "undo_last", "seq": 10, "targets": [run]})
    redo = ("runs", {"kind": "undo", "id": "undo_undo", "seq": 11, "targets": ["undo_last"]})
    without = folded([(s, r) for s, r in history if r.get("run") != run])
    after, back = folded([undo, *history]), folded([redo, *history, undo])
    assert holds(after) == holds(without)
    assert (holds(back), back.rejected) == (holds(before), before.rejected)
    assert run in after.undone and back.undone - before.undone == {"undo_last"}


# Records of strangers

REVIEW = {"what": "edge", "source": A, "target": B, "type": "similar", "reason": "x"}
TEMPLATES = [(a.store, dict(a.record)) for a in (
    tier_append(FOUR[0], MemoryTier.HOT, MemoryTier.COLD, "why", 0.5, "run_0"),
    edge_append("", EDGES[0], "run_0", NOW), edge_append("", EDGES[1], "run_0", NOW, live=False),
    summary_append("", SUMMARY, "run_0"), review_append("", EDGES[0].id, REVIEW, "run_0"), access_append(FOUR[1], "here", 3, NOW),
    Append("runs", "", {"kind": "run", "id": "run_0", "at": NOW.isoformat(), "counts": {"memories_processed": 1}}),
    Append("runs", "", {"kind": "undo", "id": "undo_0", "at": NOW.isoformat(), "targets": ["run_1"]}))]
odd_words = st.sampled_from(["hot", "full", "run_0", A, NOW.isoformat(), "0001-01-01T00:00+23:59", "supersedes", -1, 1e400, ""])
json_values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | odd_words,
                           lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=2), max_leaves=4)


@st.composite
def strange(draw):
    "A record that is right but for a few fields, at any depth."
    store, record = draw(st.sampled_from(TEMPLATES))
    record = json.loads(json.dumps(record | {"id": record.get("id", f"r_{draw(st.integers(0, 3))}"), "seq": draw(st.sampled_from([1, 1, 1, 2]))}))
    for _ in range(draw(st.integers(0, 3))):
        spot = record
        while True:
            key = draw(st.sampled_from(sorted(spot))) if isinstance(spot, dict) else draw(st.integers(0, len(spot) - 1))
            if isinstance(spot[key], (dict, list)) and spot[key] and draw(st.booleans()): spot = spot[key]
            else: break
        if isinstance(spot, dict) and draw(st.integers(0, 4)) == 0: del spot[key]
        else: spot[key] = draw(json_values)
        if not record: break
    return store, record


def through_a_line(rows):
    "Only what the reader lets in."
    out = [(s, decode("- " + json.dumps(r))) for s, r in rows]
    return [(s, r) for s, r in out if r is not None]


def is_text(*xs): return all(isinstance(x, str) for x in xs)


def check_edge(i, e):
    assert e.id == i and is_text(e.source_id, e.target_id, e.consolidation_run_id, e.by) and e.kind in (None, "full", "partial"), e
    assert 0 <= e.weight <= 1 and e.created_at.tzinfo and is_text(*(x for x in (e.reason, e.code, e.span) if x is not None)), e


def check_summary(i, x):
    assert x.id == i and is_text(x.namespace, x.summary, x.title, x.consolidation_run_id, *x.key_facts, *x.source_memory_ids), x
    assert x.source_memory_ids and all(t.tzinfo for t in (x.created_at, *x.temporal_range)) and isinstance(x.tier, MemoryTier), x
    assert type(x.activation_count) is int and x.activation_count >= 0 and 0 <= x.coverage <= 1, x
    assert all(is_text(q.memory_id, q.text) and type(q.start) is type(q.end) is int and q.field in ("summary", "content") for q in x.quotes), x
    assert is_text(*(t for d in x.decisions for t in (d.decision, d.rationale)), *(t for f in x.superseded_facts for t in astuple(f))), x


def check_sound(state):
    "Everything in it has the type that it says."
    assert all(is_text(m) and isinstance(state.tier(m), MemoryTier) for m in state.tiers)
    for i, e in state.edges.items(): check_edge(i, e)
    for i, x in state.summaries.items(): check_summary(i, x)
    for m, (n, at) in state.accesses.items(): assert is_text(m) and type(n) is int and n >= 0 and at.tzinfo
    for i, r in state.runs.items():
        assert r["id"] == i and isinstance(r.get("targets", []), list) and is_text(*r.get("targets", ())) and isinstance(r.get("counts", {}), dict), r
    assert is_text(*state.rejected, *state.undone, *state.reviews) and state.undone <= set(state.runs)


RUN = ("runs", {"kind": "run", "id": "run_0", "seq": 1, "at": NOW.isoformat()})


@pytest.mark.slow
@given(st.lists(strange(), min_size=1, max_size=4))
@settings(max_examples=400)
def test_no_record_from_elsewhere_stops_the_fold_or_passes_for_what_it_is_not(rows):
    check_sound(folded([RUN, *through_a_line(rows)]))


COMMANDS = [["status"], ["status", "--json"], ["tiers"], ["explain", A], ["edges", B], ["summaries"], ["runs"], ["diff", "run_0"], ["audit"], ["consolidate"],
            ["consolidate", "--full"]]


@pytest.mark.slow
@given(st.lists(strange(), min_size=6, max_size=16))
@settings(max_examples=5, phases=[Phase.generate])  # a failure is plain enough, and each try takes a second
def test_no_record_from_elsewhere_stops_a_command(rows):
    with tempfile.TemporaryDirectory() as home:
        git(home, "init", "--quiet", "--template=")
        write_memories(open_repo(home), FOUR)
        here, head = git(home, "rev-parse", "refs/heads/main"), "committer a <a@example.org> 0 +0000\ndata 1\nx"
        for store, ref in REFS.items():
            text = "".join(f"- {json.dumps(r)}\n" for s, r in [RUN, *rows] if s == store)
            git(home, "fast-import", "--quiet", input=f"commit {ref}\n{head}\nM 100644 inline {here}\ndata {len(text)}\n{text}\n")
        for command in COMMANDS:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
                code = cli.main(["--repo", home, "--now", NOW.isoformat(), *command])
            assert code == 0 or (command, code) == (["audit"], 1), (command, code, err.getvalue())


def test_a_forged_name_does_not_push_a_run_out(tmp_path):
    "A record of another shape under a run's name and number, whichever of the two is read first or sorts last."
    for i, forged in enumerate(({"kind": {"zzz": 1}}, {"at": 7, "kind": "run", "zzz": 1}, {"kind": "run", "counts": [], "zzz": 1})):
        home = tmp_path / str(i); home.mkdir()
        git(home, "init", "--quiet", "--template=")
        twin = {"id": "run_0", "seq": 1} | forged
        text = "".join(f"- {json.dumps(r)}\n" for r in (RUN[1], twin))
        git(home, "fast-import", "--quiet", input=f"commit {REFS['runs']}\ncommitter a <a@example.org> 0 +0000\ndata 1\nx\nM 100644 inline {'ab' * 20}\n"
                                                  f"data {len(text)}\n{text}\n")
        assert fold(read_events(open_repo(home))).runs == {"run_0": RUN[1]}
