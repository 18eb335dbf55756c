"""A run and its undo: what they change, what they leave alone, and that the way there does not matter."""
import os
import random
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest
from calls import gnc, holds, new_repo, run, serve, state_of
from helpers import add_memories, git, refs, story

from git_notes_consolidation.store import cache as index
from git_notes_consolidation.consolidation import service, scan as consolidation_scan
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.core.models import EdgeType, MemoryEdge, MemoryTier
from git_notes_consolidation.store.git import MEM, open_repo
from git_notes_consolidation.store.events import REFS, read_events
from git_notes_consolidation.store.state import fold
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.consolidation.scan import Scope
from git_notes_consolidation.consolidation.stores import EdgeStore, MetadataStore
from git_notes_consolidation.consolidation.plan import Guard
from git_notes_consolidation.consolidation.status import NeedsConfirmation, status, undo
from git_notes_consolidation.consolidation.service import Stale, apply_file

STORY = story()
DAY = timedelta(days=1)


@pytest.fixture
def home(story_before, tmp_path): return shutil.copytree(story_before, tmp_path / "repo")
@pytest.fixture
def done(story_after, tmp_path): return shutil.copytree(story_after, tmp_path / "done")


def memory(home, start): return next(m for m in read_memories(open_repo(home)).memories if m.summary.startswith(start))
def edges(home, kind=EdgeType.SUPERSEDES): return {(e.source_id, e.target_id) for e in state_of(home).edges.values() if e.edge_type == kind}
def said(home):
    "By summaries: who replaces whom."
    text = {m.id: m.summary for m in read_memories(open_repo(home)).memories}
    return {(text[a], text[b]) for a, b in edges(home)}


# Once and no more


@pytest.mark.parametrize("full", [False, True])
def test_a_second_run_changes_nothing(done, full):
    before = refs(done)
    result = run(done, full=full)
    assert (result.changed, result.run_id, result.success, refs(done)) == (False, "", True, before)


def test_a_dry_run_says_what_the_run_then_does(home):
    before = refs(home)
    dry = service.run(serve(home), SAMPLE_NOW, dry_run=True)
    assert refs(home) == before and dry.dry_run and dry.changed
    assert replace(run(home), dry_run=True) == dry


PLAN = """
import sys
from git_notes_consolidation.consolidation import stores
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import as_utc
s = stores.open_service(sys.argv[1], load_settings(env={}))
sys.stdout.buffer.write(s.plan(as_utc(sys.argv[2])).to_json().encode())
"""


@pytest.mark.slow
def test_the_same_plan_byte_for_byte(tmp_path):
    "Whatever the seed of the hashes, the threads, the cache and the order in which memories came."
    some = sample_memories()[::2]
    home = new_repo(tmp_path / "repo", some)
    plans = []
    for seed, threads in (("0", "1"), ("1", "2"), ("12345", "2")):
        env = os.environ | {"PYTHONHASHSEED": seed} | {f"{lib}_NUM_THREADS": threads for lib in ("OMP", "OPENBLAS", "MKL")}
        plans.append(subprocess.run([sys.executable, "-c", PLAN, home, SAMPLE_NOW.isoformat()], capture_output=True, check=True, env=env).stdout.decode())
        if seed == "0": shutil.rmtree(home / ".memory")
    plans += [serve(home).plan(SAMPLE_NOW, full=full).to_json() for full in (False, True)]
    assert len(set(plans)) == 1 and len(plans[0]) > 10**5


# Back, and back again


def known(home):
    "All that is shown of a repository."
    st = gnc("status", "--json", repo=home).json
    return {k: v for k, v in st.items() if k not in ("runs", "undone", "last_run")}


@pytest.mark.slow
def test_an_undo_and_its_undo_restore_exactly(home):
    before = known(home)
    first = run(home).run_id
    held, shown = state_of(home), known(home)
    taken, *which = undo(serve(home), first)
    assert which == [first] and known(home) == before != shown
    empty = state_of(home)
    assert (empty.tiers, empty.edges, empty.summaries, empty.reviews) == ({}, {}, {}, {}) and empty.undone == {first}
    undo(serve(home), taken)
    back = state_of(home)
    assert (back.tiers, back.edges, back.summaries, back.reviews, back.rejected) == (held.tiers, held.edges, held.summaries, held.reviews, held.rejected)
    assert known(home) == shown and not run(home).changed


@pytest.mark.slow
def test_undos_may_be_stacked(done):
    (first,) = state_of(done).runs
    states = [holds(state_of(done))]
    last = first
    for i in range(4):
        last, *_ = undo(serve(done), last, SAMPLE_NOW + i * DAY)
        states.append(holds(state_of(done)))
    assert states[0] == states[2] == states[4] != states[1] == states[3]


@pytest.mark.slow
def test_what_was_undone_comes_back_as_a_question_only(done):
    (first,), was = state_of(done).runs, state_of(done)
    undo(serve(done), first)
    result = run(done)
    state = state_of(done)
    assert (state.edges, result.supersessions_detected, result.duplicates_found) == ({}, 0, 0)
    same = {i for i, x in was.summaries.items() if not x.superseded_facts}  # the other one told what those edges said: without them it is another
    undone = {i for i, r in state.reviews.items() if r["reason"] == "found again after it was undone"}
    assert undone == set(was.edges) | same and result.review_items == len(state.reviews)
    assert not state.summaries.keys() & was.summaries.keys() and [x.superseded_facts for x in state.summaries.values()] == [()]
    assert not run(done).changed and not run(done, full=True).changed


@pytest.mark.slow
def test_what_repeats_a_repeat_waits_with_it_once_it_was_undone(tmp_path):
    said = ("Retries back off for 90 s", "retries back off for 90 seconds", "Retries back off for ninety seconds")
    first, near, nearer = (mem(t, f"{t}.", days_ago=9 - k, namespace="learnings") for k, t in enumerate(said))
    home = new_repo(tmp_path / "said", [first, near, nearer, replace(near, id="", timestamp=SAMPLE_NOW - 6 * DAY)])
    done = run(home)
    was = state_of(home).edges
    assert len(was) == 3 and {e.target_id for e in was.values()} == {memory(home, said[0]).id}
    undo(serve(home), done.run_id)
    assert run(home).duplicates_found == 0 and not state_of(home).edges and state_of(home).reviews.keys() >= was.keys()
    add_memories(home, [replace(near, id="", timestamp=SAMPLE_NOW - DAY)])
    run(home)
    (e,) = state_of(home).edges.values()  # Nobody took that one back
    assert e.code == "X" and state_of(home).reviews.keys() >= was.keys()


@pytest.mark.slow
def test_what_builds_on_a_run_is_named_and_goes_with_it_when_confirmed(home):
    first = run(home, scope=Scope(strategies=frozenset({"supersede", "dedupe"}))).run_id
    second = run(home, scope=Scope(strategies=frozenset({"summarize"}))).run_id
    third = run(home).run_id  # the tiers
    before, held = refs(home), holds(state_of(home))
    with pytest.raises(NeedsConfirmation, match=f"{second}, {third} builds on {first}"): undo(serve(home), first)
    assert refs(home) == before
    taken, *which = undo(serve(home), first, confirmed=True)
    assert which == [first, second, third] and holds(state_of(home)) == ({}, set(), {}, set())
    undo(serve(home), taken)
    assert holds(state_of(home)) == held


# The blast radius


def overturned(n, more=()):
    tools = ["Flask", "SQLite", "cron", "Jenkins", "Travis", "Redis", "Celery", "Docker", "Nginx", "Kafka", "Consul", "Vault"]
    out = [m for i, w in enumerate(tools[:n]) for m in (mem(f"ADR-{i:03}: We build on {w}", days_ago=90 - i),
                                                        mem(f"ADR-{i + 50:03}: No {w} any more", f"Supersedes ADR-{i:03}.", days_ago=20 - i))]
    return [*out, *more]


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_a_run_supersedes_what_it_may_and_asks_about_the_rest(tmp_path, full):
    home = new_repo(tmp_path, [*overturned(12), *(mem("Said twice", "And again.", days_ago=d, namespace="learnings") for d in (1, 2))])
    first = run(home, full=full)
    assert (first.supersessions_detected, len(state_of(home).reviews), first.duplicates_found) == (5, 7, 1) and first.tier_transitions
    assert "7 replacements wait" in first.warnings[0] and status(serve(home))["last_run"]["waiting"] == 7
    assert [run(home, full=full).supersessions_detected for _ in range(2)] == [5, 2]
    assert not state_of(home).reviews and not run(home, full=full).changed and status(serve(home))["last_run"]["waiting"] == 0


@pytest.mark.slow
def test_a_plan_of_larger_limits_is_refused_and_nothing_is_written(tmp_path):
    home = new_repo(tmp_path, overturned(12))
    before, plan = refs(home), serve(home, max_change=1.0).plan(SAMPLE_NOW).to_json()
    with pytest.raises(Guard, match="would supersede 12 current memories, and may 5 "): apply_file(serve(home), plan)
    assert refs(home) == before
    assert apply_file(serve(home, max_change=0.5), plan).supersessions_detected == 12


# The toggles


@pytest.mark.slow
def test_each_toggle_switches_its_phase(home):
    def result(**settings): return service.run(serve(home, **settings), SAMPLE_NOW, dry_run=True)
    every = result()
    assert every.supersessions_detected == every.duplicates_found == 3 and every.summaries_created and every.tier_transitions
    no_summaries = result(consolidation_enabled=False)
    assert (no_summaries.summaries_created, no_summaries.clusters_found) == (0, 0)
    assert (no_summaries.supersessions_detected, no_summaries.duplicates_found, no_summaries.tier_transitions) == (3, 3, every.tier_transitions)
    no_tiers = result(forgetting_enabled=False)
    assert no_tiers.tier_transitions == () and (no_tiers.summaries_created, no_tiers.supersessions_detected) == (every.summaries_created, 3)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("toggle", ["consolidation_enabled", "forgetting_enabled"])
def test_what_a_phase_has_made_stays_when_it_is_off(done, toggle):
    before = holds(state_of(done))
    assert run(done, full=True, **{toggle: False}).edges_removed == 0
    assert holds(state_of(done)) == before


# Strategies and scopes


KINDS = {"dedupe": {"duplicate_of"}, "supersede": {"supersedes"}, "summarize": {"summary"}, "tier": {"tier"}}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("strategy", KINDS)
def test_a_strategy_does_its_own_work_only(home, strategy):
    run(home, scope=Scope(strategies=frozenset({strategy})))
    state = state_of(home)
    made = {e.edge_type.value for e in state.edges.values()} | ({"summary"} if state.summaries else set()) | ({"tier"} if state.tiers else set())
    assert made == KINDS[strategy]


def touched(home, state):
    "The memories that a state says anything about: what was moved, linked from, or told in a summary."
    by = {m.id: m for m in read_memories(open_repo(home)).memories}
    ids = {*state.tiers, *(e.source_id for e in state.edges.values()), *(i for x in state.summaries.values() for i in x.source_memory_ids)}
    return [by[i] for i in ids]


SCOPES = {"namespace": (Scope(namespace="decisions"), lambda m: m.namespace == "decisions"),
          "since": (Scope(since=SAMPLE_NOW - 50 * DAY), lambda m: m.timestamp >= SAMPLE_NOW - 50 * DAY),
          "until": (Scope(until=SAMPLE_NOW - 50 * DAY), lambda m: m.timestamp < SAMPLE_NOW - 50 * DAY)}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_limits_what_is_decided_about(home, story_after, name):
    scope, inside = SCOPES[name]
    assert run(home, scope=scope).changed
    state = state_of(home)
    assert touched(home, state) and [m.summary for m in touched(home, state) if not inside(m)] == []
    whole = holds(state_of(story_after))
    assert holds(state)[1] <= whole[1]
    run(home)
    assert holds(state_of(home)) == whole


@pytest.mark.slow
def test_a_query_and_days_by_command(home):
    found = gnc("consolidate", "--query", "worker attempts", "--json", repo=home)
    assert found.code == 0 and found.json["summaries_created"] == 1
    assert {m.summary for m in touched(home, state_of(home))} == {m.summary for m in STORY if "worker" in m.summary}
    assert gnc("consolidate", "--days", "2.5", "--strategy", "supersede", "--json", repo=home).json["supersessions_detected"] == 1
    assert said(home) == {("ADR-012: We build on a queue", "ADR-002: We build on cron")}
    assert gnc("consolidate", "--query", "*", "--strategy", "supersede", "--json", repo=home).json["supersessions_detected"] == 2


# Plans in files


@pytest.mark.slow
def test_a_plan_applied_is_the_run(home, tmp_path):
    other = shutil.copytree(home, tmp_path / "other")
    text = serve(home).plan(SAMPLE_NOW).to_json()
    result = apply_file(serve(home, SAMPLE_NOW + 3 * DAY), text)
    assert run(other).run_id == result.run_id
    assert refs(home) == refs(other)  # object by object


def test_a_stale_plan_is_refused(home):
    text = serve(home).plan(SAMPLE_NOW).to_json()
    add_memories(home, [mem("News", days_ago=1, namespace="reviews")])
    before = refs(home)
    with pytest.raises(Stale, match=f"{MEM}reviews has moved since this plan was made; nothing was written"): apply_file(serve(home), text)
    assert refs(home) == before


# What others say


@pytest.mark.slow
def test_edges_by_others_are_left_alone(done):
    a, b = memory(done, "About the harbour"), memory(done, "About the lantern")
    store = EdgeStore(open_repo(done))
    store.put(MemoryEdge(a.id, b.id, EdgeType.SUPERSEDES, kind="full", by="person", reason="we said so"), SAMPLE_NOW)
    store.put(MemoryEdge(a.id, b.id, EdgeType.RELATED_TO), SAMPLE_NOW)
    assert run(done, full=True).edges_removed == 0
    assert (a.id, b.id) in edges(done) & edges(done, EdgeType.RELATED_TO)
    assert MetadataStore(open_repo(done)).get(b.id).tier == MemoryTier.ARCHIVED and not run(done, full=True).changed


# The way does not matter


def tangle():
    "Sixty of the sample's memories, and chains, decisions said again after they were replaced, repeats over namespaces."
    a = [mem("ADR-901: Logs go to files", "Plain files.", days_ago=d) for d in (200, 190, 120, 60, 5)]
    chain = [mem("ADR-902: Logs go to a collector", "Supersedes ADR-901.", days_ago=150),
             mem("ADR-903: Logs go to the cloud", "Supersedes ADR-902.", days_ago=100),
             mem("ADR-904: Logs go to both", "Amends ADR-903 in part: audit logs stay in files.", days_ago=50)]
    again = [mem(m.summary, m.content, days_ago=d, namespace=ns) for m in chain[:2] for d, ns in ((80, "decisions"), (30, "progress"))]
    return [*sample_memories()[::7][:60], *a, *chain, *again]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("seed", range(4))
def test_ten_batches_in_any_order_come_to_what_one_run_does(tmp_path, seed):
    rnd = random.Random(seed)
    memories = tangle()
    one, ten = new_repo(tmp_path / "one", memories), new_repo(tmp_path / "ten")
    run(one, max_change=1.0)
    rnd.shuffle(memories)
    cuts = [0, *sorted(rnd.sample(range(1, len(memories)), 9)), len(memories)]
    for i, (a, b) in enumerate(zip(cuts, cuts[1:])):
        add_memories(ten, memories[a:b])
        assert run(ten, SAMPLE_NOW - (9 - i) * DAY / 10, max_change=1.0).success
    want, got = holds(state_of(one)), holds(state_of(ten))
    assert {t for _, _, t, *_ in want[1]} == {"supersedes", "duplicate_of", "references"} and {k for *_, k, _, _, _ in want[1]} >= {None, "full"}
    assert got[:3] == want[:3]


# The cache is a cache


def wreck(kind, cache):
    db = cache / "consolidation.db"
    for extra in cache.glob("consolidation.db-*"): extra.unlink()
    if kind == "deleted": shutil.rmtree(cache)
    elif kind == "empty": db.write_bytes(b"")
    elif kind == "no database": db.write_bytes(b"not a database, whatever it was\n" * 100)
    elif kind == "cut off": db.write_bytes(db.read_bytes()[:5000])
    elif kind == "damaged inside": db.write_bytes(db.read_bytes()[:4096] + b"\xa5" * (db.stat().st_size - 4096))
    elif kind == "a directory": db.unlink(); db.mkdir()
    elif kind == "a file in its place": shutil.rmtree(cache); cache.write_text("not a directory")
    elif kind == "of another version":
        import sqlite3
        with sqlite3.connect(db) as conn: conn.execute("PRAGMA user_version = 999"); conn.execute("DROP TABLE vectors")
        conn.close()


DAMAGED = "damaged inside"
WRECKS = ["deleted", "empty", "no database", "cut off", DAMAGED, "a directory", "a file in its place", "of another version"]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", WRECKS)
def test_a_cache_that_is_broken_is_made_anew(done, kind):
    "And nobody sees a difference."
    def rows():
        with closing(index.open_index(open_repo(done))) as conn: return conn.execute("SELECT * FROM mem_edges ORDER BY id").fetchall()
    before, shown, was = refs(done), known(done), rows()
    wreck(kind, done / ".memory")
    assert known(done) == shown and not run(done).changed and refs(done) == before
    assert kind in ("a directory", "a file in its place") or rows() == was != []  # There no cache can be
    add_memories(done, [mem("ADR-099: We build on trains", "Supersedes ADR-010.", days_ago=0.5)])
    assert run(done).supersessions_detected == 1 and ("ADR-099: We build on trains", "ADR-010: We build on FastAPI") in said(done)


@pytest.mark.slow
def test_the_cache_of_another_repository_misleads_nobody(done, tmp_path):
    other = new_repo(tmp_path / "other", STORY[:20])
    shutil.copytree(done / ".memory", other / ".memory")
    plain = new_repo(tmp_path / "plain", STORY[:20])
    run(other); run(plain)
    assert holds(state_of(other)) == holds(state_of(plain)) != holds(state_of(done))


# Time


@pytest.mark.slow
def test_how_often_one_runs_does_not_matter(tmp_path):
    start = SAMPLE_NOW - 30 * DAY
    memories = [m for m in STORY if m.timestamp <= start][::2]
    daily, once = new_repo(tmp_path / "daily", memories), new_repo(tmp_path / "once", memories)
    for day in range(31): run(daily, start + day * DAY, max_change=1.0)
    run(once, SAMPLE_NOW, max_change=1.0)
    assert holds(state_of(daily)) == holds(state_of(once)) and len(state_of(daily).runs) > 3
    seen = [consolidation_scan.scored(consolidation_scan.view(open_repo(h)), serve(h).settings, SAMPLE_NOW) for h in (daily, once)]
    scores = [{i: d.retention for i, d in meta.items()} for meta in seen]
    assert scores[0] == scores[1]


@pytest.mark.slow
def test_the_plugins_notes_are_never_touched(home):
    before = refs(home, MEM)
    first = run(home).run_id
    undo(serve(home), first)
    run(home); run(home, SAMPLE_NOW + 100 * DAY); gnc("status", repo=home)
    assert refs(home, MEM) == before and set(refs(home, "refs/notes/")) - set(before) == set(REFS.values())
    assert git(home, "fsck", "--strict", "--no-dangling") == "" and fold(read_events(open_repo(home))).undone == {first}


@pytest.mark.slow
def test_an_edge_whose_older_end_has_not_arrived_stays(tmp_path):
    home, away = new_repo(tmp_path / "here", story()), tmp_path / "away"
    run(home)
    kept = state_of(home).edges
    ends = {e.target_id for e in kept.values() if e.edge_type == EdgeType.SUPERSEDES}
    there = {m.id: m for m in read_memories(open_repo(home)).memories}
    new_repo(away, [m for i, m in there.items() if i not in ends])  # Our records came, the plugin's notes only in part
    git(away, "fetch", "-q", home, "refs/notes/mem-*:refs/notes/mem-*")
    run(away, full=True)
    assert {i for i, e in state_of(away).edges.items() if e.target_id in ends} == {i for i, e in kept.items() if e.target_id in ends} and ends


def test_subcogs_options_of_consolidate(tmp_path):
    home = new_repo(tmp_path / "repo", story())
    few = gnc("consolidate", "--dry-run", "--json", "--min-memories", "2", "--similarity", "0.3", "--strategy", "merge", repo=home).json["result"]
    same = gnc("consolidate", "--dry-run", "--json", "--threshold", "0.3", "--strategy", "dedupe", "--strategy", "summarize", repo=home).json["result"]
    assert few["duplicates_found"] == same["duplicates_found"] == 3 and few["supersessions_detected"] == few["tier_transitions"].__len__() == 0
    assert few["clusters_found"] > same["clusters_found"]
    assert "merge" in gnc("consolidate", "--dry-run", "--strategy", "squash", repo=home).err


SAYS = {"It implements ADR-004.": "implements", "It depends on ADR-004.": "depends_on", "Contradicts ADR-004.": "contradicts",
        "This extends ADR-004.": "refines", "See ADR-004.": "references", "It does not implement ADR-004.": "references"}


@pytest.mark.parametrize(("said", "kind"), SAYS.items())
def test_what_a_memory_says_of_one_that_it_names_is_the_kind_of_their_edge(tmp_path, said, kind):
    told = mem("Token limiter in production", said, days_ago=2, namespace="progress")
    home = new_repo(tmp_path / "repo", [mem("ADR-004: Rate limits per token", days_ago=9), told])
    run(home)
    assert [e.edge_type.value for e in state_of(home).edges.values()] == [kind]
    assert not run(home, full=True).changed and gnc("audit", repo=home).code == 0


@pytest.mark.slow
def test_what_does_not_build_on_it_stays(home):
    first = run(home, scope=Scope(namespace="decisions")).run_id
    second = run(home, scope=Scope(namespace="progress")).run_id
    assert undo(serve(home), first)[1:] == (first,)
    progress = {m.id for m in read_memories(open_repo(home)).memories if m.namespace == "progress"}
    assert set(state_of(home).tiers) <= progress and state_of(home).tiers and second not in state_of(home).undone


@pytest.mark.slow
def test_a_scope_takes_nothing_away_outside(done):
    before = holds(state_of(done))
    for scope, _ in SCOPES.values(): run(done, scope=scope)
    assert holds(state_of(done))[1] == before[1] and holds(state_of(done))[0] == before[0]
