"""The command line: every command for people and for programs, its exit codes, and text that nobody can be hurt by."""
import json
import os
import re
import shlex
import shutil

import pytest
from calls import gnc, gnc_process, new_repo, state_of
from git_notes_consolidation.apps.cli.program import ALIASES
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.store.events import run_lock
from helpers import add_memories, git, refs, story

NOW = ["--now", SAMPLE_NOW.isoformat()]
OVERTURNED = "ADR-000: We build on Flask"


@pytest.fixture
def home(story_after, tmp_path): return shutil.copytree(story_after, tmp_path / "repo")


def named(home, summary): return next(m for m in read_memories(open_repo(home)).memories if m.summary == summary)
def run_of(home): return next(iter(state_of(home).runs))
def words(text): return " ".join(text.split())


# Every command


def commands(home):
    "A call of every command that looks, with the columns or words that people must find in its output."
    m, s = named(home, OVERTURNED).id, next(iter(state_of(home).summaries))
    return {"consolidate --dry-run": ("Nothing to do",), "log --runs": ("Runs", "3 superseded"),
            f"log {run_of(home)}": ("Replaced: 3", "by mem_", "“Supersedes ADR-000”", "gnc explain ID"),
            "status": ("memories", "36 in", "without duplicates", "Tiers (duplicates counted once)", "█"), "status -v": ("By namespace", "decisions"),
            "status --tiers": ("By namespace", "archived"), "status --show warm": ("warm: ", "score"),
            f"explain {m}": ("superseded by", "recency", "Moves", "“Supersedes ADR-000”"),
            f"explain {m} --edges": ("Replaced by: 1", "“Supersedes ADR-000”", "Summarized in: 1"),
            "status --summaries": ("Summaries", "conf."), f"explain {s}": ("Sources", "characters"),
            "doctor --strict": ("Checked", "All invariants hold."),
            "research evaluate supersession": ("Supersessions in 300 labelled pairs", "locked"), "config": ("retention", "hot_threshold", "default")}


@pytest.mark.slow
def test_every_command_is_for_people_and_for_programs(home):
    before = refs(home)
    for command, expected in commands(home).items():
        told = gnc(*command.split(), repo=home)
        assert (told.code, told.err) == (0, "") and not told.out.lstrip().startswith(("{", "[")), (command, told)
        for text in expected: assert text in told.out, (command, text, told.out)
        data = gnc("--json", *command.split(), repo=home)
        assert (data.code, data.err) == (0, "") and isinstance(data.json, (dict, list)) and data.json, command
    assert refs(home) == before


@pytest.mark.slow
def test_what_the_documents_say(home):
    m, run_id = named(home, OVERTURNED), run_of(home)
    runs = gnc("runs", "--json", repo=home).json
    assert [(r["id"], r["kind"], r["undone"], r["counts"]["supersessions_detected"]) for r in runs] == [(run_id, "run", False, 3)]
    diff = gnc("diff", run_id[:10], "--json", repo=home).json
    assert {k: len(v) for k, v in diff.items() if k in ("edges", "edges_ended", "reviews")} == {"edges": 6, "edges_ended": 0, "reviews": 15}
    status = gnc("status", "--json", repo=home).json
    assert (status["memories"], status["distinct"], status["current"], status["edges"]) == (36, 33, 30, {"duplicate_of": 3, "supersedes": 3})
    assert gnc("tiers", "--json", repo=home).json["tiers"] == status["tiers"] and sum(status["tiers"].values()) == 33
    archived = gnc("tiers", "--show", "archived", "--json", repo=home).json
    assert len(archived) == status["tiers"]["archived"] and m.id in {r["id"] for r in archived}
    x = gnc("explain", m.id, "--json", repo=home).json
    assert (x["tier"], x["summary"], x["superseded_kind"], x["reason"]) == ("archived", OVERTURNED, "full", f"superseded by {x['superseded_by']}")
    assert set(x["score"]) >= {"overall", "recency", "activation", "importance"}
    edges = gnc("edges", m.id, "--json", repo=home).json
    assert {(e["edge_type"], e["span"]) for e in edges} == {("supersedes", "Supersedes ADR-000"), ("consolidates", None), ("related_to", None)}
    assert edges == x["edges"]
    summaries = gnc("summaries", "--json", repo=home).json
    told = next(s for s in summaries if m.id in s["source_memory_ids"])
    assert told["superseded_facts"][0]["original_fact"] == OVERTURNED and gnc("summaries", told["id"], "--json", repo=home).json == told
    assert gnc("audit", "--json", repo=home).json["ok"] is True
    assert gnc("config", "--json", repo=home).json["hot_threshold"] == {"origin": "default", "value": 0.6}


@pytest.mark.slow
def test_a_run_and_its_undo(tmp_path):
    home = new_repo(tmp_path, story())
    did = gnc("consolidate", "--json", repo=home)
    assert (did.code, did.err, did.json["success"], did.json["dry_run"]) == (0, "", True, False) and did.json["seconds"] >= 0
    assert did.json["run_id"] == run_of(home) and len(did.json["tier_transitions"]) == len(state_of(home).tiers)
    undone = gnc("undo", did.json["run_id"], "--json", repo=home)
    assert undone.code == 0 and undone.json["runs"] == [did.json["run_id"]] and state_of(home).edges == {}
    assert "undone" in gnc("runs", repo=home).out and f"undoes {did.json['run_id'][:12]}" in gnc("runs", repo=home).out
    again = gnc("undo", did.json["run_id"], repo=home)
    name = undone.json["undo"]
    assert (again.code, again.err) == (1, f"gnc: {did.json['run_id']} is taken back already, by {name}; gnc undo {name} brings it back\n")
    back = gnc("undo", undone.json["undo"][:12], repo=home)
    assert back.code == 0 and back.out.startswith(f"Undid {undone.json['undo'][:12]};") and len(state_of(home).edges) == 6


def test_the_report_of_a_run(tmp_path):
    home = new_repo(tmp_path, story())
    told = gnc("consolidate", repo=home)
    for line in ("memories 36", "… without duplicates 33", "duplicates linked 3", "superseded 3", "summaries written 6"):
        assert line in words(told.out), told.out
    assert re.search(r"Run run_\w{8}, [0-9.]+ s", told.out) and "gnc undo run_" in told.out and re.search(r"hot +archived +\d+", told.out)


# Exit codes


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("args", [["nosuch"], ["status", "--nosuch"], ["explain"], ["tiers", "--limit", "many"], ["consolidate", "--days", "three"],
                                  ["explain", "a", "b"], ["status", "--repo"], ["consolidate", "--max-change", "2"], ["consolidate", "--threshold", "1.5"]],
                         ids=" ".join)
def test_exit_code_2_for_wrong_usage(home, args):
    before = refs(home)
    done = gnc(*args, repo=None if "--repo" in args else home)
    assert (done.code, done.out) == (2, "") and done.err.startswith("gnc: ") and done.err.count("\n") == 1 and refs(home) == before
    if args == ["nosuch"]: assert "No such command 'nosuch'" in done.err and "gnc --help" in done.err


TOOLS = ["Flask", "cron jobs", "a monorepo", "Redis streams", "signed cookies", "nightly dumps"]


def overturn(n): return [m for i in range(n) for m in (mem(f"ADR-{i:03}: Use {TOOLS[i]}", days_ago=90), mem(
    f"ADR-{i + 50:03}: {TOOLS[i]} was wrong for us", f"Supersedes ADR-{i:03}.", days_ago=9))]


@pytest.mark.slow
def test_more_than_a_run_may_supersede_is_left_to_the_next(tmp_path):
    home = new_repo(tmp_path, overturn(6))
    look = gnc("consolidate", "--dry-run", repo=home)
    assert look.code == 0 and "1 replacement waits for the next run" in look.out
    assert gnc("consolidate", "--json", repo=home).json["supersessions_detected"] == 5
    assert "1 replacement, more than one run may make" in gnc("status", repo=home).out
    assert gnc("consolidate", "--json", repo=home).json["supersessions_detected"] == 1
    assert "for the next run" not in gnc("status", repo=home).out


@pytest.mark.slow
def test_exit_code_3_when_a_plan_is_too_old(tmp_path):
    home, plan = new_repo(tmp_path / "repo", overturn(6)), tmp_path / "plan.json"
    gnc("consolidate", "--plan", plan, repo=home); gnc("consolidate", repo=home)
    done = gnc("consolidate", "--apply", plan, repo=home)
    assert (done.code, done.out) == (3, "") and "has moved since this plan was made" in done.err
    assert gnc("consolidate", "--apply", plan, "--json", repo=home).json["exit_code"] == 3


def test_yes_goes_on(tmp_path):
    assert gnc("consolidate", "--yes", "--json", repo=new_repo(tmp_path, overturn(6))).json["supersessions_detected"] == 6


@pytest.mark.slow
def test_exit_code_3_when_nobody_confirms(tmp_path):
    home = new_repo(tmp_path, story())
    first = gnc("consolidate", "--strategy", "supersede", "--json", repo=home).json["run_id"]
    second = gnc("consolidate", "--strategy", "tier", "--json", repo=home).json["run_id"]
    before = refs(home)
    done = gnc_process("--repo", home, *NOW, "undo", first)
    assert (done.code, done.out) == (3, "") and f"{second} builds on {first}" in done.err and "--yes" in done.err and refs(home) == before
    assert gnc("undo", first, "--json", repo=home).json["exit_code"] == 3
    assert gnc("undo", first, "--yes", "--json", repo=home).json["runs"] == [first, second] and state_of(home).tiers == {}


@pytest.mark.slow
def test_exit_code_4_when_another_run_is_at_work(home):
    before = refs(home)
    with run_lock(open_repo(home)):
        for args in (["consolidate"], ["undo", run_of(home)]):
            done = gnc(*args, repo=home)
            assert (done.code, done.out, done.err.count("\n")) == (4, "", 1) and "another run is at work" in done.err
        assert gnc("--json", "consolidate", repo=home).json["exit_code"] == 4
    assert refs(home) == before and gnc("consolidate", repo=home).code == 0


# Help


FIRST = "demo status consolidate recall remember review undo tidy sync doctor".split()
NAMES = [*FIRST, *"explain forget restore log import export context serve config".split()]


@pytest.mark.slow
def test_help_shows_ten_commands_and_all_of_them_where_it_is_asked():
    told = gnc_process("--help", env=os.environ | {"COLUMNS": "160"})
    assert (told.code, told.err) == (0, "")
    assert "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped by a guard, 4 another run is at work" in words(told.out.replace("│", ""))
    whole = gnc("help", "--all", width=160).out
    for name in [*NAMES, "hook", "research"]:
        listed = re.compile(rf"^│ {name} +\S", re.M)
        assert listed.search(whole) and bool(listed.search(told.out)) == (name in FIRST), name


@pytest.mark.parametrize("name", ALIASES)
def test_every_name_that_the_designs_promise_is_a_command(name): assert gnc(*shlex.split(name), "--help").code == 0


# Untrusted text


EVIL = "\x1b[2J\x1b]0;owned\x07[bold red]markup[/bold red] [link=file:///etc/passwd]x[/link]\u202eredro\u2066\x9b31m\r\x08 🎉 é"


def harmless(text): return not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]", text)


def test_names_typed_and_problems_reported_are_harmless_too(tmp_path):
    home = new_repo(tmp_path, story())
    done = gnc("explain", f"nosuch{EVIL}", repo=home)
    assert done.code == 2 and harmless(done.err) and done.err.count("\n") == 1
    add_memories(home, [mem("fine", days_ago=1, importance=None, namespace="learnings", tags=(EVIL,))])
    assert harmless(gnc("status", repo=home).out)
    assert json.loads(gnc("--json", "explain", f"nosuch{EVIL}", repo=home).out)["exit_code"] == 2


# Looking before


@pytest.mark.slow
def test_a_dry_run_is_a_look_and_a_plan_is_a_file(tmp_path):
    home = new_repo(tmp_path / "repo", story())
    before, plan = refs(home), tmp_path / "plan.json"
    look = gnc("consolidate", "--dry-run", "--json", repo=home)
    assert look.code == 0 and refs(home) == before and look.json["result"]["supersessions_detected"] == 3
    told = gnc("consolidate", "--dry-run", repo=home)
    assert "Would change" in told.out and "Replaced: 3" in told.out and "Supersedes ADR-000" in told.out and refs(home) == before
    kept = gnc("consolidate", "--plan", plan, repo=home)
    assert kept.code == 0 and f"Plan written to {plan}" in kept.out and refs(home) == before and json.loads(plan.read_text()) == look.json
    assert gnc("consolidate", "--plan", plan, "--json", repo=home).json["dry_run"] is True
    did = gnc("consolidate", "--apply", plan, "--json", repo=home)
    assert did.json["run_id"] == look.json["result"]["run_id"] == run_of(home)


# The demo


@pytest.mark.slow
def test_the_demo(tmp_path):
    done = gnc_process("demo", tmp_path / "new" / "one", env=os.environ | {"COLUMNS": "200"})
    assert (done.code, done.err) == (0, "") and harmless(done.out)
    for text in ("ADR-005: Log as plain text", "“Supersedes ADR-005”", "Serve the API with Litestar", "9 January 2026.",
                 "Tiers, before and after", "gnc undo run_"):
        assert text in done.out
    assert done.out.count("\n") < 42, "it fits on a screen"
    home = tmp_path / "new" / "one"
    assert git(home, "status", "--short") == ""
    assert gnc("audit", repo=home).code == 0 and gnc("consolidate", repo=home).out.startswith("Nothing to do")
    for command in re.findall(r"^ +gnc (.+)$", done.out, re.M): assert gnc(*command.split(), repo=home).code == 0, command


def test_the_demo_writes_over_nothing(tmp_path):
    (tmp_path / "full").mkdir(); (tmp_path / "full" / "x").write_text("x"); (tmp_path / "file").write_text("x")
    for name in ("full", "file"):
        done = gnc("demo", tmp_path / name)
        assert (done.code, done.out) == (2, "") and f"{tmp_path / name} is not an empty directory; name a new one" in done.err
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "full", "x"]
