"""What is asked for is counted once a session, in several processes and clones, and no count is lost."""
import json
import pytest
import shutil
import subprocess
from calls import COMMAND, ask, gnc, ids, new_repo, run, serve, state_of
from collections import Counter
from contextlib import closing
from helpers import git, refs
from hypothesis import given, settings, strategies as st
from git_notes_consolidation.consolidation import status as service
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import MemoryTier
from git_notes_consolidation.recall.search import MemoryResult
from git_notes_consolidation.store import cache as index, cache as journal
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.events import clone_id




@pytest.fixture
def home(story_after, tmp_path): return shutil.copytree(story_after, tmp_path / "repo")


def rows(home):
    with closing(index.open_index(open_repo(home))) as conn: return conn.execute("SELECT memory_id, session FROM accesses").fetchall()


def counts(home): return {i: n for i, (n, _) in state_of(home).accesses.items()}


def test_asking_is_counted_once_a_session(home):
    one, two = ask(home), ask(home)
    found = one.search("retry limit", limit=3)
    for _ in range(3): one.search("retry limit", limit=3)
    assert rows(home) == [(found[0].id, one.session)]
    two.search("retry limit", limit=3)
    run(home)
    assert counts(home) == {found[0].id: 2}
    one.search("retry limit", limit=3)  # The session goes on
    run(home)
    assert counts(home) == {found[0].id: 2}


@pytest.mark.slow
def test_summaries_are_counted_too(sample, tmp_path):
    home = shutil.copytree(sample[1], tmp_path / "repo")
    found = [r for r in ask(home).search("Serve the API with a framework", limit=20) if r.kind == "summary"]
    assert found
    run(home, max_change=1.0)
    state = state_of(home)
    assert all(state.accesses[r.id][0] == state.summaries[r.id].activation_count == 1 for r in found)
    assert gnc("audit", repo=home).code == 0


@pytest.mark.slow
def test_use_keeps_a_memory_near(tmp_path):
    home = new_repo(tmp_path / "repo", [mem("The harbour has two cranes", days_ago=40, namespace="progress")])
    assert run(home).success and next(iter(state_of(home).tiers.values()))["tier"] == "cold"
    for _ in range(6): assert ask(home).search("harbour cranes", mode="deep")
    plan = serve(home).plan(SAMPLE_NOW)
    assert [t.to_tier for t in plan.result.tier_transitions] == [MemoryTier.HOT]  # Foreseen before it is counted
    run(home)
    assert next(iter(state_of(home).tiers.values()))["tier"] == "hot" and [*counts(home).values()] == [6]


@pytest.mark.slow
def test_an_undo_leaves_the_counts(home):
    found = ids(ask(home).search("retry limit"))[:1]
    last = max(state_of(home).runs.values(), key=lambda r: r["seq"])["id"]
    run(home)
    service.undo(serve(home), last, SAMPLE_NOW, confirmed=True)
    assert counts(home) == dict.fromkeys(found, 1)
    again = ids(ask(home).search("We build on Flask", mode="exhaustive"))[:1]
    run(home)
    assert sum(counts(home).values()) == len(found) + len(again)


def test_counts_that_git_forgot_are_counted_again(home):
    found, before = ids(ask(home).search("retry limit"))[:1], refs(home)
    run(home)
    git(home, "update-ref", "refs/notes/mem-meta/v1", before["refs/notes/mem-meta/v1"])
    run(home)
    assert counts(home) == dict.fromkeys(found, 1)


@pytest.mark.slow
def test_a_lost_cache_loses_what_was_not_carried_over(home):
    found = ids(ask(home).search("retry limit"))[:1]
    run(home)
    ask(home).search("retry limit")
    for p in (home / ".memory").glob("consolidation.db*"): p.unlink()
    assert ids(ask(home).search("retry limit", count=False)) and rows_or_none(home) == []
    run(home)
    assert counts(home) == dict.fromkeys(found, 1)


def rows_or_none(home):
    with closing(index.open_index(open_repo(home))) as conn: return [*journal.unflushed(conn, {})]


@pytest.mark.slow
@given(st.lists(st.sampled_from(["ask a", "ask b", "run a", "run b", "meet"]), max_size=7))
@settings(max_examples=6)
def test_clones_add_up(story_after, tmp_path_factory, steps):
    place = tmp_path_factory.mktemp("clones")
    a, b = (shutil.copytree(story_after, place / x) for x in "ab")
    assert clone_id(open_repo(a)) != clone_id(open_repo(b))
    git(a, "remote", "add", "other", b); git(b, "remote", "add", "other", a)
    asked = {x: 0 for x in (a, b)}
    first = ids(ask(a).search("retry limit", limit=1, mode="exhaustive", include_summaries=False, count=False))[0]
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


@pytest.mark.slow
def test_two_processes_lose_no_count(home):
    jobs = [subprocess.Popen([*COMMAND, "--repo", str(home), "--now", SAMPLE_NOW.isoformat(), "--json", "recall", q, "--mode", "exhaustive", "--limit", "5"],
                             stdout=subprocess.PIPE, text=True) for q in ("retry limit", "Retry limit", "We build on Flask", "retry limit")]
    told = [json.loads(j.communicate()[0])["results"] for j in jobs]
    assert [j.returncode for j in jobs] == [0] * 4 and len(rows(home)) == len(told)
    run(home)
    assert counts(home) == Counter(found[0]["id"] for found in told)


def test_what_is_not_asked_for_is_not_counted(home):
    s, before = ask(home), refs(home)
    s.search("retry limit", count=False); s.search("*"); s.search("")
    assert rows_or_none(home) == []
    run(home)
    assert refs(home) == before


def test_a_dry_run_counts_nothing(home):
    ask(home).search("retry limit")
    before = refs(home), rows(home)
    assert gnc("consolidate", "--dry-run", repo=home).code == 0
    assert (refs(home), rows(home)) == before
