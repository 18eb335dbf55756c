"""One memory at a time, in real repositories: what becomes of it, that nothing else changes, that it can be taken back, and that many write at once."""
import pytest
import subprocess
import threading
from calls import gnc, gnc_process, holds, made, state_of
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from helpers import git, replace_everywhere
from llm_servers import FaultyServer, sensible
from git_notes_consolidation.consolidation.scan import Scope, scored, view
from git_notes_consolidation.consolidation.service import run
from git_notes_consolidation.consolidation.status import questions, undo
from git_notes_consolidation.consolidation.stores import open_service
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.store import audit, git as store_git
from git_notes_consolidation.store.git import MEM, open_repo, tips
from git_notes_consolidation.store.reader import note_text, read_memories
from git_notes_consolidation.writing.write import open_writing


MYSQL = mem("Orders live in MySQL", "The orders service keeps its tables in MySQL 8.", days_ago=90, tags=("db",))
TEA = mem("Tea is at four", "In the kitchen.", days_ago=80, namespace="learnings")
MOVED = "Orders live in Postgres\n\nReplaces “Orders live in MySQL”: Postgres 16."


def writer(home, server=None, step=timedelta(minutes=1), **given):
    "A clock that goes on with each look."
    ticks = iter(range(10**6))
    env = {"MEMORY_CONSOLIDATION_LLM_BASE_URL": server.url} if server else {}
    settings = load_settings(({"llm_provider": "lmstudio", "llm_timeout_s": 5} if server else {}) | given, env=env)
    return open_writing(home, settings, clock=lambda: SAMPLE_NOW + next(ticks) * step)


@pytest.fixture
def two(tmp_path): return made(tmp_path / "two", [MYSQL, TEA])


def current(home): return view(open_repo(home))
def said(home): return {m.summary: m for m in current(home).scan.memories}
def titles(home): return [m.summary for m in read_memories(open_repo(home)).memories]
def known(home): return scored(current(home), load_settings(env={}), SAMPLE_NOW + timedelta(days=2))
def sound(home): return [str(f) for f in audit.audit(home).findings] == []
def take_back(home, run): return undo(open_service(home), run, SAMPLE_NOW)


# What becomes of a fact


def test_yesterday_is_by_the_clock_of_who_says_it(two):
    "At half past eight in the evening in Vancouver it is the next day in UTC."
    evening, morning = "2026-11-10T20:30:00-08:00", "2026-11-11T08:00:00-08:00"
    made = gnc("--now", evening, "--json", "remember", "We switched the mail provider yesterday", repo=two).json["memory_id"]
    kept = next(m for m in read_memories(open_repo(two)).memories if m.id == made)
    assert (kept.utc_offset, kept.told_at.isoformat()) == (-480, evening) and sound(two)
    assert gnc("--now", morning, "recall", "when did we switch the mail provider", repo=two).out.lstrip().startswith("9 November 2026.")


def test_the_states_are_the_designs(two):
    w = writer(two)
    assert w.remember("Cats purr.").states == ("pending", "searching", "no_match", "adding", "committed")
    assert w.remember("Cats purr.").states == ("pending", "searching", "analyzing", "duplicate", "updating", "committed")
    assert w.remember(MOVED).states == ("pending", "searching", "analyzing", "supersede", "archiving", "adding", "committed")
    merged = w.remember("Postgres: dumps\n\nThey run at 02:00.", merges=[w.held().pool.memories[-1].id])
    assert merged.states[-4:] == ("merge", "merging", "updating", "committed")


def test_said_again_it_is_evidence_and_use_and_no_second_text(two):
    w = writer(two)
    r, refs = w.remember("Tea is at four\n\nIn the kitchen."), tips(open_repo(two), MEM)
    again = w.remember("Tea is at four\n\nIn the kitchen.")
    assert (r.operation, again.operation, r.memory_id) == ("NOOP", "NOOP", again.memory_id) and tips(open_repo(two), MEM) == refs
    d = known(two)[r.memory_id]
    assert (d.activation_count, d.last_accessed) == (2, SAMPLE_NOW + timedelta(minutes=1)) and again.after[r.memory_id]["activation_count"] == 2
    take_back(two, again.run_id)
    assert known(two)[r.memory_id].activation_count == 1


DUMP, SWAPPED = "The nightly dump runs at 02:00", "The nightly dump runs at 04:30 instead of 02:00"


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("there, new, operation, asked", [
    ("A cabin hold lasts 20 minutes", "A cabin hold lasts 30 minutes", "SUPERSEDE", 0), (DUMP, SWAPPED, "ADD", 1), (SWAPPED, DUMP, "ADD", 1),
    (DUMP, "The nightly dump runs at 04:30, no longer at 02:00", "ADD", 1), (DUMP, "The nightly dump moved from 02:00 to 04:30", "ADD", 1),
    (DUMP, "The nightly dump runs at 04:30", "ADD", 1), (SWAPPED, "The nightly dump runs at 02:00 instead of 04:30", "ADD", 1),
    ("The deploy freeze begins on Friday", "The deploy freeze begins on Thursday instead of Friday", "ADD", 1),
    ("Support for the old agent ends on 2027-03-01", "Support for the old agent ends on 2027-06-01", "ADD", 1),
    ("Cabin holds last 20 minutes instead of 30", "Cabin holds last 30 minutes instead of 20", "ADD", 1)])
def test_a_correction_is_no_repeat(tmp_path, there, new, operation, asked):
    made(tmp_path, [mem(there, days_ago=90)])
    r = writer(tmp_path).remember(new)
    assert (r.operation, len(r.review)) == (operation, asked) and {there, new} <= {*titles(tmp_path)}


def test_what_is_replaced_is_true_until_the_new_one_began(two):
    since = SAMPLE_NOW - timedelta(days=40)
    r = writer(two).remember(MOVED, valid_from=since)
    old = said(two)["Orders live in MySQL"].id
    d = known(two)[old]
    assert (d.superseded_by, d.superseded_kind, d.valid_until, d.tier.value) == (r.memory_id, "full", since, "archived")
    assert r.superseded_ids == (old,) and (r.before[old].get("valid_until"), r.after[old]["valid_until"]) == (None, since.isoformat())
    e, = (e for e in state_of(two).edges.values() if e.edge_type.value == "supersedes")
    assert (e.source_id, e.target_id, e.by, e.span) == (r.memory_id, old, "remember", "Replaces “Orders live in MySQL”") and sound(two)


@pytest.mark.slow
def test_a_merge_holds_both_and_both_stay(two):
    old = said(two)["Orders live in MySQL"]
    r = writer(two).remember("Orders: backups\n\n`orders.sql.gz` is written at 02:00, never on Sundays.", tags=("Ops", "DB"), importance=0.8, merges=[old.id])
    there = {m.id: m for m in current(two).scan.memories}
    m = there[r.memory_id]
    assert r.operation == "MERGE" and r.merged_content == m.content and set(r.sources) < set(there) and old.id in r.sources
    assert old.content in m.content and "`orders.sql.gz` is written at 02:00, never on Sundays." in m.content
    assert (m.tags, m.importance, m.event_time, m.summary) == (("db", "ops"), 0.8, old.event_time, old.summary)
    assert {(known(two)[i].merged_into, known(two)[i].tier.value) for i in r.sources} == {(m.id, "archived")} and sound(two)
    result = run(open_service(two), SAMPLE_NOW + timedelta(days=3), full=True)
    assert result.supersessions_detected == result.duplicates_found == result.edges_removed == 0 and sound(two)


def test_what_is_unsure_is_added_and_asked(two):
    r = writer(two, write_confidence=0.97).remember(MOVED)
    q, = questions(current(two))
    assert (r.operation, r.superseded) == ("ADD", False) and r.review == (q["id"],) and (q["by"], q["span"]) == ("remember", "Replaces “Orders live in MySQL”")
    run(open_service(two), SAMPLE_NOW, scope=Scope(strategies=frozenset({"tier"})), full=True)
    assert [x["id"] for x in questions(current(two))] == [q["id"]]


def test_a_late_fact_goes_to_its_place(two):
    w = writer(two)
    new, old = w.remember(MOVED).memory_id, said(two)["Orders live in MySQL"].id
    r = w.remember("Orders lived in MariaDB for a month.", valid_from=SAMPLE_NOW - timedelta(days=60), supersedes=[old], superseded_by=[new])
    assert r.superseded_by == (new,) and known(two)[old].valid_until == SAMPLE_NOW - timedelta(days=60)
    assert known(two)[r.memory_id].superseded_by == new and known(two)[new].superseded_by is None and sound(two)


# Forget, restore, update, undo


def test_forgotten_it_is_shown_to_nobody_and_restored_as_it_was(two):
    w = writer(two)
    i = w.remember("Cats purr at night.").memory_id
    w.update(i, status="resolved", importance=0.9)
    w.forget(i, "never agreed")
    assert [m.status for m in current(two).scan.memories if m.id == i] == ["tombstone"] and "Cats purr at night." in titles(two)
    assert not [r for r in gnc("recall", "cats purr", "--json", repo=two).json["results"] if r["id"] == i]
    assert w.remember("Cats purr at night.").operation == "ADD"  # Nobody knows of the other
    w.restore(i)
    assert {m.status for m in current(two).scan.memories if m.id == i} == {"resolved"}


@pytest.mark.slow
def test_undo_takes_back_each_step(two):
    w, start = writer(two), holds(state_of(two))
    shown = lambda: {m.id for m in current(two).scan.memories if m.status != "tombstone"}
    first = shown()
    runs = [w.remember(MOVED).run_id]
    runs += [w.remember("Dumps run at 02:00.", merges=[said(two)["Orders live in Postgres"].id]).run_id, w.forget(said(two)["Tea is at four"].id).run_id]
    for name in reversed(runs): take_back(two, name)
    assert holds(state_of(two)) == start and shown() == first and sound(two)
    assert not w.held().view.state.operations and w.remember("Tea is at four\n\nIn the kitchen.").operation == "NOOP"


# The notes, and many at once


@pytest.mark.parametrize("how", ["flat", "fanned out"])
def test_the_old_text_of_a_note_stays_byte_for_byte_where_it_was(two, how):
    ref = f"{MEM}decisions"
    def blobs(): return {p: git(two, "cat-file", "blob", f"{ref}:{p}") for p in git(two, "ls-tree", "-r", "--name-only", ref).split()}
    if how == "fanned out": writer(two)
    before = blobs()
    r = writer(two).remember("A line\n\n---\n\nand another")
    after = blobs()
    assert before and all(after[p].startswith(text) for p, text in before.items())
    assert said(two)["A line"].content == "---\n\nand another" and said(two)["A line"].id == r.memory_id


@pytest.mark.slow
def test_a_hundred_threads_lose_nothing_and_store_nothing_twice(two):
    w = writer(two)
    facts = [f"Machine {i} has {i + 3} GB of memory for the job {chr(97 + i % 26)}{i}" for i in range(50)] * 2
    with ThreadPoolExecutor(100) as pool: results = list(pool.map(w.remember, facts))
    assert sorted(titles(two)) == sorted([*{*facts}, "Orders live in MySQL", "Tea is at four"])
    assert len({(fact, r.memory_id) for fact, r in zip(facts, results)}) == 50 and len(state_of(two).operations) == 100 and sound(two)


@pytest.mark.slow
def test_writers_in_several_processes_and_the_plugins_own_append(two):
    "Twelve processes, every fact from two of them, while somebody appends with git itself."
    stop, mine = threading.Event(), []
    def append():
        while not stop.is_set():
            text = note_text(mem(f"By hand {len(mine)}", "", now=SAMPLE_NOW + timedelta(hours=len(mine) + 1)))
            done = subprocess.run(["git", "-C", str(two), "notes", "--ref=refs/notes/mem/decisions", "append", "-m", text, "HEAD"], capture_output=True)
            if done.returncode == 0: mine.append(f"By hand {len(mine)}")
    other = threading.Thread(target=append)
    other.start()
    facts = [f"Host {i} serves port {8000 + i} of the {w} cluster" for i, w in enumerate("red blue green gold grey pink".split())] * 2
    with ThreadPoolExecutor(4) as pool: done = list(pool.map(lambda t: gnc_process("--repo", two, "remember", t, "--json"), facts))
    stop.set()
    other.join()
    assert [d.code for d in done] == [0] * 12, [d.err for d in done]
    assert sorted(titles(two)) == sorted([*{*facts}, *mine, "Orders live in MySQL", "Tea is at four"])
    assert sorted(d.json["operation"] for d in done) == ["ADD"] * 6 + ["NOOP"] * 6 and sound(two)


def test_a_crash_between_the_refs_loses_nothing(two, monkeypatch):
    w, real, moves = writer(two), store_git.move_refs, []
    def stop(repo, lines, final=False):
        if lines and not final:
            moves.append(lines)
            if len(moves) == 2: raise KeyboardInterrupt
        return real(repo, lines, final)
    replace_everywhere(monkeypatch, store_git, "move_refs", stop)
    with pytest.raises(KeyboardInterrupt): w.remember(MOVED)
    replace_everywhere(monkeypatch, store_git, "move_refs", real)
    assert said(two)["Orders live in Postgres"].status == "active" and not state_of(two).edges  # Written, as if by hand; what it means is not
    later = writer(two)
    later.clock()
    assert later.remember(MOVED).operation == "NOOP"
    run(open_service(two), SAMPLE_NOW + timedelta(days=1))
    assert known(two)[said(two)["Orders live in MySQL"].id].superseded_by == said(two)["Orders live in Postgres"].id


def test_an_attempt_that_is_overtaken_half_way_is_finished(two, monkeypatch):
    "Somebody moves the runs' ref between our data and our run: the memory is there already, and what it means is done in the second attempt."
    w, real, seen = writer(two), store_git.move_refs, []
    def overtaken(repo, lines, final=False):
        if not final: seen.append(lines)
        if len(seen) == 2 and not final: raise store_git.RaceLost("cannot lock ref")
        return real(repo, lines, final)
    replace_everywhere(monkeypatch, store_git, "move_refs", overtaken)
    r = w.remember(MOVED)
    replace_everywhere(monkeypatch, store_git, "move_refs", real)
    old, new = said(two)["Orders live in MySQL"], said(two)["Orders live in Postgres"]
    assert r.operation == "SUPERSEDE" and known(two)[old.id].superseded_by == new.id and len(new.places) == 1 and len(said(two)) == 3
    assert sound(two)


# The worked examples of MycelicMemory's design, without a model and with one over real HTTP


EXAMPLES = {"duplicate": ("User prefers dark mode", "User likes dark theme"), "supersede": ("User works at Google", "User now works at Anthropic"),
            "merge": ("User has a dog", "User's dog is named Max"), "coexist": ("User enjoys hiking", "User went hiking last weekend")}


@pytest.mark.parametrize("relation, asks", [("duplicate", None), ("supersede", "replaces?"), ("merge", "completes it?"), ("coexist", None)])
def test_without_a_model_both_stand_and_the_right_question_is_asked(two, relation, asks):
    w = writer(two, step=timedelta(days=7))
    for text in EXAMPLES[relation]: r = w.remember(text, namespace="learnings")
    assert r.operation == "ADD" and {*titles(two)} > {*EXAMPLES[relation]} and bool(r.review) is bool(asks)
    listed = gnc("review", "list", repo=two).out
    assert asks in listed if asks else "nothing" in listed.lower()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("relation, operation", [("duplicate", "NOOP"), ("supersede", "SUPERSEDE"), ("merge", "MERGE"), ("coexist", "ADD")])
def test_with_a_model_each_ends_as_the_design_says(two, relation, operation):
    merged = "The user has a dog named Max."
    def judge(newer, older): return relation if "User" in newer and "User" in older else "coexist"
    with FaultyServer(brain=sensible(judge, lambda newer, older: merged)) as server:
        w = writer(two, server)
        for text in EXAMPLES[relation]: r = w.remember(text, namespace="learnings")
    assert (r.operation, r.review) == (operation, ())
    if relation == "merge": assert r.merged_content == merged and not r.warnings


CACHE, PLACE = "The build cache is kept for 14 days.", "Build cache: place\n\nThe build cache lies in `s3://builds`, not in the runner."


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("join, taken", [("It is kept for 14 days and lies in `s3://builds`, not in the runner. Build cache: place.", True),
                                         ("It is kept for 15 days and lies in `s3://builds`, not in the runner.", False),
                                         ("It is kept for 14 days and lies in the runner.", False)])
def test_a_models_text_of_a_merge_is_taken_only_if_it_keeps_everything(two, join, taken):
    def judge(newer, older): return "merge" if "s3://" in newer and "14 days" in older else "coexist"
    with FaultyServer(brain=sensible(judge, lambda newer, older: join)) as server:
        w = writer(two, server)
        w.remember(CACHE)
        r = w.remember(PLACE)
    assert r.operation == "MERGE" and (r.merged_content == join) == taken and bool(r.warnings) != taken
    assert "14 days" in said(two)[CACHE].text and "not in the runner" in next(m.content for m in current(two).scan.memories if m.id == r.memory_id)
