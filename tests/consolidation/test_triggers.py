"""When a run is due: what counts as new, the six reasons, and what holds a run back."""
from dataclasses import replace
from datetime import timedelta

import pytest
from calls import new_repo, run, serve
from git_notes_consolidation.store import reader as notes
from git_notes_consolidation.consolidation import service, status as consolidation_status
from git_notes_consolidation.store.changes import LastRun, memories_since, last_run
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.store.git import MEM, open_repo, tips
from git_notes_consolidation.consolidation.scan import Scope
from git_notes_consolidation.consolidation.triggers import Facts, Trigger, answer, facts
from helpers import add_memories, git, story

HOUR = timedelta(hours=1)
CONFIG = SubconsciousnessConfig()


def waiting(n, minutes=0): return tuple(mem(f"No. {i}", now=SAMPLE_NOW - timedelta(minutes=minutes + n - i)) for i in range(n))
def said(f, now=SAMPLE_NOW, scope=None, **settings): return answer(f, replace(CONFIG, **settings), now, scope)
def trigger(f, **kw): return (d.trigger and d.trigger.value) if (d := said(f, **kw)) else None


# The rules


def test_each_reason_has_its_edge():
    ran = Facts(last_run=SAMPLE_NOW - 5 * HOUR)
    assert [trigger(replace(ran, new=waiting(n))) for n in (0, 1, 49, 50)] == [None, None, None, "threshold"]
    fresh = replace(ran, new=tuple(replace(m, timestamp=SAMPLE_NOW) for m in waiting(49)))
    assert trigger(fresh) is None and trigger(replace(fresh, new=fresh.new + waiting(1))) == "threshold"
    assert [trigger(replace(ran, new=waiting(1, minutes=m))) for m in (28, 29, 30)] == [None, "idle", "idle"]
    ends = [trigger(replace(fresh, new=fresh.new[:n], event="session_end")) for n in (0, 2, 3)]
    assert ends == [None, None, "session_end"] and trigger(replace(fresh, new=fresh.new[:3], event="session_start")) is None
    old = replace(ran, last_run=SAMPLE_NOW - 25 * HOUR)
    assert [trigger(replace(old, new=fresh.new[:1])), trigger(old)] == ["schedule", None]
    assert [trigger(replace(old, at_hand=n)) for n in (1999, 2000)] == [None, "pressure"] and trigger(replace(ran, at_hand=2000)) is None


def test_a_timer_that_fires_once_a_day_starts_a_run_a_day():
    last, starts = None, []
    for day in range(30):
        now = SAMPLE_NOW + day * 24 * HOUR - timedelta(seconds=day % 3)  # a second early now and then
        if said(Facts("timer", (mem("x", now=now - HOUR),), last, last), now).trigger: starts.append(now); last = now + timedelta(seconds=2)
    assert len(starts) >= 29


@pytest.mark.parametrize("wrong", ["last_run", "last_start"])
def test_a_clock_that_was_wrong_holds_nothing_back_for_years(wrong):
    f = Facts(new=waiting(60), last_run=SAMPLE_NOW - 100 * HOUR, last_start=SAMPLE_NOW - 100 * HOUR)
    assert trigger(replace(f, **{wrong: SAMPLE_NOW + 9999 * HOUR})) == "threshold"


def test_a_scope_is_counted_alone():
    f = Facts(new=waiting(60), last_run=SAMPLE_NOW - HOUR)
    f = replace(f, new=tuple(replace(m, namespace=("decisions", "progress")[i % 3 > 0]) for i, m in enumerate(f.new)))
    parts = (Scope("decisions"), Scope(since=f.new[30].timestamp), Scope(until=f.new[10].timestamp), Scope(ids=frozenset([f.new[0].id])))
    for scope, n in zip(parts, (20, 30, 10, 1)):
        d = said(f, scope=scope, consolidation_batch_size=n)
        assert (d.trigger, d.scope) == (Trigger.THRESHOLD, scope) and d.why.startswith(f"{n} new ")
        assert said(f, scope=scope, consolidation_batch_size=n + 1, hook_idle_minutes=999).trigger is None
    assert answer(f, CONFIG, SAMPLE_NOW).scope is None


def test_the_variables_of_the_designs():
    env = {"HOOK_CONSOLIDATION_MEMORY_THRESHOLD": "7", "HOOK_CONSOLIDATION_MIN_INTERVAL_HOURS": "2", "HOOK_CONSOLIDATION_IDLE_MINUTES": "45",
           "HOOK_CONSOLIDATION_ENABLED": "false"}
    c = load_settings(env=env).config
    assert c.hook_enabled is False and CONFIG.hook_enabled is True
    ran = Facts(last_run=SAMPLE_NOW - HOUR, last_start=SAMPLE_NOW - 2 * HOUR)
    def of(f): return (d := answer(f, c, SAMPLE_NOW)).trigger and d.trigger.value
    assert [of(replace(ran, new=waiting(n))) for n in (6, 7)] == [None, "threshold"]
    assert [of(replace(ran, new=waiting(1, minutes=m))) for m in (40, 44)] == [None, "idle"]
    assert of(replace(ran, new=waiting(9), last_start=SAMPLE_NOW - HOUR)) is None


# What is new


@pytest.fixture
def told(tmp_path): return new_repo(tmp_path / "repo", story())


def later(n, namespace="decisions"): return [mem(f"Later {i}", f"Body {i}", namespace=namespace) for i in range(n)]


@pytest.mark.slow
def test_a_run_leaves_what_it_saw(told):
    repo = open_repo(told)
    assert last_run(repo) == LastRun() and len(memories_since(repo, {})) == 36
    service.run(serve(told), dry_run=True)
    assert last_run(repo) == LastRun()
    run(told)
    status = consolidation_status.status(serve(told))
    assert last_run(repo) == LastRun(SAMPLE_NOW, tips(repo, MEM), status["tiers"]["hot"] + status["tiers"]["warm"])
    assert memories_since(repo, last_run(repo).tips) == () and facts(repo, "timer").at_hand == last_run(repo).at_hand
    add_memories(told, later(3))
    assert {m.summary for m in facts(repo, "timer").new} == {"Later 0", "Later 1", "Later 2"} and facts(repo, "timer").at_hand == last_run(repo).at_hand + 3


def test_copies_and_longer_notes_are_not_new(git_repo):
    def note(text, commit="HEAD"): git(git_repo, "notes", "--ref=mem/decisions", "append", "-m", notes.note_text(mem(text)), commit)
    git(git_repo, "config", "notes.rewriteRef", "refs/notes/mem/*")
    note("One"); note("Two")
    seen = tips(open_repo(git_repo), MEM)
    git(git_repo, "commit", "--quiet", "--amend", "--message=Again")
    assert tips(open_repo(git_repo), MEM) != seen and memories_since(open_repo(git_repo), seen) == ()
    seen = tips(open_repo(git_repo), MEM)
    note("Three")
    assert [m.summary for m in memories_since(open_repo(git_repo), seen)] == ["Three"]
    git(git_repo, "notes", "--ref=mem/decisions", "remove", "HEAD")
    assert memories_since(open_repo(git_repo), seen) == ()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"tips": 3}', '{"tips": {"refs/heads/main": "HEAD"}}',
                                  '{"tips": {"refs/notes/mem/x": "--upload-pack=x"}}', '{"tips": {"refs/notes/mem/progress": "refs/notes/mem/progress"}}',
                                  '{"at": "never", "tips": {"refs/notes/mem/x": 1}}',
                                  '{"at_hand": -5, "at": 1e999}', "[" * 99_999, "\x00\xff"])
def test_a_garbled_file_means_that_everything_is_new(told, text):
    run(told)
    (open_repo(told).common_dir / "gnc" / "last-run.json").write_text(text, encoding="latin-1")
    known = facts(open_repo(told), "timer")
    assert (len(known.new), known.last_run, known.at_hand) == (36, None, 36)
