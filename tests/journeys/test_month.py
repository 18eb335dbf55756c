"""The first month: whatever was done can be looked at, explained and taken back, and asking changes nothing that nobody wanted."""
import ast
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from helpers import git, refs
from person import Repo, flat, missing, says

OLD, NEW = "The API is served with Flask.", "The API is served with FastAPI."


@pytest.fixture(scope="module")
def two_frameworks(tmp_path_factory):
    home = Repo(tmp_path_factory.mktemp("changed") / "mine").commit()
    home.first = home.remember(OLD)[0]["memory_id"]
    home.remember("The parser is maintained by Bo.")
    home.second = home.later(days=30).gnc("--json", "remember", NEW, "--supersedes", home.first).json["memory_id"]
    return home


@pytest.fixture
def changed(two_frameworks, tmp_path):
    "Flask in March, FastAPI in April, and something beside them."
    return two_frameworks.copy(tmp_path / "changed")


# Taking back


def test_an_undo_takes_a_run_back_and_an_undo_of_the_undo_brings_it_again(changed):
    assert [says(r) for r in changed.rows("API")] == [flat(NEW)]
    for held in (OLD, NEW, OLD):
        said = changed.gnc("undo", "last")
        assert "gnc undo" in said.out
        assert [says(r) for r in changed.rows("API")] == [flat(held)] and not missing(changed.block(), held, "maintained by Bo")
    runs = changed.gnc("--json", "runs").json
    assert len(runs) == 6 and changed.gnc("audit").code == 0


def test_what_is_forgotten_is_shown_to_nobody_and_what_is_restored_to_everybody(changed):
    changed.gnc("forget", changed.second, "--reason", "never agreed")
    assert missing(changed.block(), NEW) and NEW not in [r["summary"] for r in changed.rows("*", "--mode", "exhaustive")]
    assert "never agreed" in changed.gnc("log").text
    assert NEW in git(changed.path, "notes", "--ref=mem/decisions", "show", "HEAD"), "nothing is deleted"
    changed.gnc("restore", changed.second)
    assert not missing(changed.block(), NEW) and [says(r) for r in changed.rows("API")] == [flat(NEW)]


def test_a_run_over_a_year_deletes_nothing_and_is_taken_back_whole(sample, tmp_path):
    mine = sample.copy(tmp_path / "sample")
    notes = refs(mine.path, "refs/notes/mem/")
    def archived(): return {r["id"] for r in mine.gnc("--json", "tiers", "--show", "archived").json}
    def all_of_them():
        rows = mine.rows("*", "--mode", "exhaustive", "--limit", "1000", "--sources", "--no-count")
        return {r["id"] for r in rows if r["kind"] == "memory"} | {i for r in rows for i in r.get("stands_for") or ()}
    put_away, everything = archived(), all_of_them()
    assert len(everything) == 409 and put_away < everything
    mine.gnc("undo", "last")
    assert archived() == set() and all_of_them() == everything and refs(mine.path, "refs/notes/mem/") == notes
    mine.gnc("undo", "last")
    assert archived() == put_away


def test_a_plan_is_applied_as_it_was_read_or_refused(repo, tmp_path):
    for n in range(2): repo.later(days=n).note("Orders live in Postgres", "Since May.")
    plan = tmp_path / "plan.json"
    before = refs(repo.path)
    repo.gnc("consolidate", "--dry-run")
    repo.gnc("consolidate", "--plan", plan)
    assert refs(repo.path) == before, "looking changes nothing"
    twin = repo.copy(tmp_path / "twin")
    assert twin.gnc("consolidate", "--apply", plan).code == 0 and len(twin.rows("orders")) == 1 and len(twin.gnc("--json", "runs").json) == 1
    repo.note("Sessions are cached in Redis")
    moved = refs(repo.path)
    said = repo.gnc("consolidate", "--apply", plan, code=3)
    assert "moved" in said.text and "--plan" in said.text and refs(repo.path) == moved


def test_a_run_that_would_replace_too_much_stops_and_says_how_to_go_on(repo):
    for n in range(8):
        repo.later(days=1).note(f"ADR-{n + 1}: choose tool {n}", "We do it." if not n else f"Supersedes ADR-{n}.")
    said = repo.later(days=1).gnc("consolidate", code=None)
    hidden = [r for r in repo.rows("*", "--mode", "exhaustive", "--limit", "50") if r.get("superseded_by")]
    assert len(hidden) <= 5 and not missing(said.text, "replacements wait", "5 memories")
    repo.gnc("consolidate", "--yes")
    assert [says(r)[:6] for r in repo.rows("*", "--limit", "50") if r["kind"] == "memory" and not r.get("superseded_by")] == ["adr-8:"]


# Looking


def test_what_was_true_and_what_was_known_on_a_day(changed):
    assert [says(r) for r in changed.rows("API", "--as-of", "2026-03-15")] == [flat(OLD)]
    assert [says(r) for r in changed.rows("API", "--as-of", "2026-04-15")] == [flat(NEW)]
    assert [says(r) for r in changed.rows("API", "--known-at", "2026-03-15")] == [flat(OLD)]
    chain = changed.gnc("history", changed.first).text
    assert chain.index(flat(OLD)) < chain.index(flat(NEW)) and "2026-03-02" in chain and "2026-04-01" in chain
    assert missing(changed.gnc("history", changed.first, "--known-at", "2026-03-15").text, NEW)


def test_every_change_says_when_by_which_run_and_in_which_words(changed):
    assert not missing(changed.gnc("log").text, OLD, NEW, "run_", "2026-04-01")
    run = changed.gnc("--json", "runs").json[0]["id"]
    assert not missing(changed.gnc("diff", run).text, NEW) and not missing(changed.gnc("runs").text, "added")
    told = changed.gnc("explain", changed.first).text
    assert not missing(told, OLD, changed.second[:12])
    assert not missing(changed.gnc("edges", changed.second).text, OLD)


def test_ten_questions_heat_nothing_that_did_not_stand_first(sample, tmp_path):
    mine = sample.copy(tmp_path / "sample")
    def tier(name): return {r["id"] for r in mine.gnc("--json", "tiers", "--show", name).json}
    hot, archived = tier("hot"), tier("archived")
    first = set()
    for q in ("backups", "retry policy", "Postgres version", "webhook delivery", "log format", "release process", "rate limit", "token cache",
              "NATS cluster", "tests"):
        rows = mine.rows(q)
        first |= {i for r in rows[:1] for i in (r["id"], *(r.get("stands_for") or ()), *(r.get("sources") or ()))}
    mine.later(days=1).gnc("consolidate")
    assert not (tier("hot") - hot - first) and not (archived - tier("archived") - first)


def test_open_blockers_are_told_and_resolved_ones_are_not(repo):
    repo.note("Checkout fails for Safari", "The cookie is dropped; nobody knows why.", namespace="blockers")
    repo.note("CI has no disk left", "The runner is full.", namespace="blockers")
    name = next(r["id"] for r in repo.rows("CI disk") if r["summary"].startswith("CI"))
    repo.gnc("update", name, "--status", "resolved")
    assert not missing(repo.block(), "Checkout fails for Safari") and missing(repo.block(), "CI has no disk left")
    row = next(r for r in repo.rows("what has no disk left", "--mode", "exhaustive") if r["id"] == name)
    assert row["status"] == "resolved"
    assert [r["summary"] for r in repo.rows("What is blocking us right now?")] == ["Checkout fails for Safari"]


def test_what_is_new_is_listed_by_when_it_was_written(repo):
    repo.remember("The parser is maintained by Bo.")
    repo = repo.later(days=9)
    assert "since" in repo.gnc("recall", "what changed since last week?").text and repo.rows("What is new since yesterday?") == []
    repo.remember("Orders live in Postgres.")
    assert [says(r) for r in repo.rows("What is new since yesterday?")] == [flat("Orders live in Postgres.")]
    assert [says(r) for r in repo.rows("What's new?")] == [flat("Orders live in Postgres."), flat("The parser is maintained by Bo.")]


# The house in order


def test_settings_of_the_project_count_and_a_wrong_one_is_named_in_one_line(repo):
    repo.remember("Orders live in Postgres.", "Sessions are cached in Redis.")
    settings = repo.path / "gnc.toml"
    settings.write_text("summaries_enabled = false\n")
    assert repo.block() == "" and "gnc.toml" in repo.gnc("config").text
    settings.write_text("summaries_enabled = true\n")
    assert not missing(repo.block(), "Orders live in Postgres")
    settings.write_text("sumaries_enabled = true\n")
    said = repo.gnc("status", code=2)
    assert "sumaries_enabled" in said.err and "summaries_enabled" in said.err and said.err.count("\n") == 1
    assert repo.hook("stop").json == {"continue": True}


def test_the_hook_starts_a_run_when_enough_is_waiting_and_only_then(repo):
    on = {"HOOK_CONSOLIDATION_ENABLED": "true"}
    repo.now = datetime.now(timezone.utc) - timedelta(minutes=8)  # A run in the background has the true time, and quiet is no reason yet
    for n in range(2): repo.note("Sessions are cached in Redis", f"Said {n}.")
    repo.gnc("consolidate")
    for n in range(2): repo.note("Orders live in Postgres", f"Since May, said {n}.")
    before = len(repo.gnc("--json", "runs").json)
    assert repo.hook("stop", env=on).json == {"continue": True}
    time.sleep(3)  # A process that was started would have written by now, most of the time
    assert len(repo.gnc("--json", "runs").json) == before, "two are too few"
    assert repo.hook("stop", env=on | {"HOOK_CONSOLIDATION_MEMORY_THRESHOLD": "2"}).json == {"continue": True}
    end = time.monotonic() + 60
    while len(repo.gnc("--json", "runs").json) == before and time.monotonic() < end: time.sleep(0.3)
    assert len(repo.gnc("--json", "runs").json) == before + 1 and not missing(repo.block(), "Orders live in Postgres")


def test_after_all_of_it_doctor_and_audit_find_nothing_broken(changed):
    changed.gnc("consolidate"); changed.gnc("undo", "last"); changed.gnc("forget", changed.first); changed.gnc("restore", changed.first)
    changed.gnc("recall", "API")
    assert "All invariants hold" in changed.gnc("audit").out
    doctor = changed.gnc("--json", "doctor").json
    assert not [c for c in doctor["components"].values() if c["status"] == "unhealthy"]


def test_no_journey_imports_the_package():
    for path in [*Path(__file__).parent.glob("*.py"), Path(__file__).parent.parent / "person.py"]:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names] + \
                [n.module or "" for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.ImportFrom)]
        assert not [n for n in names if n.split(".")[0] in ("git_notes_consolidation", "calls", "worlds", "clones")], path.name


def test_what_one_clone_undoes_and_another_builds_upon_is_asked_about(changed, tmp_path):
    "One takes FastAPI back while the other replaces it: Flask and Litestar are left, and somebody must say which holds."
    team = tmp_path / "team.git"
    git(tmp_path, "init", "--quiet", "--bare", team)
    git(changed.path, "remote", "add", "origin", team)
    other = changed.copy(tmp_path / "other")
    changed.gnc("undo", "last")
    other.gnc("remember", "We serve everything through Litestar now.", "--supersedes", changed.second)
    for r in (changed, other, changed): r.gnc("sync")
    for r in (changed, other):
        r.later(days=1).gnc("consolidate")
        asked, = (q for q in r.gnc("--json", "review", "list").json if q["target"] == changed.first)
        assert "taken back" in asked["reason"] and r.gnc("--json", "explain", changed.second).json["tier"] is None
        assert "(taken back)" in r.gnc("history", changed.second).out
        assert "Nothing to do" in r.gnc("consolidate").out
    assert changed.gnc("review", "accept", asked["id"]).code == 0
    assert not missing(changed.block(), "Litestar") and missing(changed.block(), OLD)
