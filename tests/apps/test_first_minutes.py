"""What somebody sees who types `gnc` for the first time: where to begin, what a flag is, lines to copy, and the remedy where something is missing."""
import csv
import io

import pytest
from calls import gnc, made, new_repo, run
from git_notes_consolidation.apps.cli.program import PANELS, program
from git_notes_consolidation.core.memory import mem, sample_memories
from helpers import git


def test_the_help_says_what_to_type_first_and_shows_commands_in_panels():
    text = gnc("--help", now=None).out
    assert text.index("gnc demo") < text.index("Options") < text.index("Commands") < text.index("gnc help --all") and "Memories" not in text
    assert [n for names in PANELS.values() for n in names.split()] == [*program().commands]


@pytest.mark.parametrize(("words", "remedy"), [
    (["undo"], "gnc log --runs lists them"), (["undo", "run_nosuch"], "`gnc log --runs` lists runs"), (["diff", "run_nosuch"], "`gnc log --runs` lists runs"),
    (["summaries", "sum_nosuch"], "`gnc status --summaries` lists"), (["explain", "mem_nosuch"], "`gnc recall WORDS`"),
    (["forget", "mem_nosuch"], "`gnc status --show hot`"),
    (["recall", "x", "--namespace", "nosuch"], "choose from blockers"), (["consolidate", "--namespace", "nosuch"], "choose from blockers"),
    (["remember", "x", "--namespace", "nosuch"], "decisions"),
    (["tiers", "--show", "nosuch"], "choose from hot"), (["review", "accept", "nosuch"], "gnc review list")])
def test_what_is_not_there_names_what_would_be(tmp_path, words, remedy):
    said = gnc(*words, repo=made(tmp_path / "repo", [mem("Serve the API with Flask")]))
    assert said.code == 2 and said.err.count("\n") == 1 and remedy in said.err


@pytest.mark.parametrize("words", [["status"], ["tiers"], ["recall", "redis"], ["consolidate"]])
def test_an_empty_repository_says_how_memories_come(tmp_path, words):
    said = gnc(*words, repo=new_repo(tmp_path / "repo"))
    assert said.code == 0 and "No memories here yet" in said.out and "gnc remember" in said.out and "gnc demo" in said.out
    assert "gnc tidy" not in said.out
    (tmp_path / "repo" / "CLAUDE.md").write_text("- Lint\n")
    assert "\nCLAUDE.md is here: gnc tidy checks it" in gnc(*words, repo=tmp_path / "repo").out


@pytest.mark.slow
def test_a_question_is_answered_by_its_number_in_the_list_that_was_shown(tmp_path):
    home = made(tmp_path / "repo", sample_memories())
    assert run(home, max_change=0.25).review_items > 10
    shown = gnc("review", "list", repo=home, width=80).out
    assert "  1  " in shown and " 10  " in shown and " 11  " not in shown and "more; gnc review list -v shows all" in shown
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())
    waiting = gnc("review", "list", "--json", repo=home).json
    for q in waiting[:3]: assert q["source_says"][:40] in " ".join(shown.split())
    git(home, "config", "user.name", "T"); git(home, "config", "user.email", "t@example.org")
    gnc("review", "list", repo=home)
    first = gnc("review", "accept", "1", "--json", repo=home).json[0]
    second = gnc("review", "reject", "2", "--json", repo=home).json[0]  # The list is still the one that was shown
    assert [first["question"], second["question"]] == [q["id"] for q in waiting[:2]]
    gnc("review", "list", waiting[4]["id"], "-v", repo=home)  # Looking at one renumbers nothing, and neither does a program
    gnc("review", "list", "--json", repo=home)
    assert gnc("review", "accept", "3", "--dry-run", "--json", repo=home).json[0]["question"] == waiting[2]["id"]
    said = gnc("review", "accept", "3", "--dry-run", repo=home).out
    assert "NOOP" not in said and "SUPERSEDE" not in said
    assert waiting[2]["id"] in gnc("review", "list", "3", "-v", repo=home).out
    refused = gnc("review", "accept", "99", repo=home)
    assert refused.code == 2 and "gnc review list numbers them" in refused.err


def test_a_spreadsheet_runs_nothing(tmp_path):
    home = new_repo(tmp_path / "repo", [mem("=HYPERLINK(\"http://x\")")])
    [row] = csv.DictReader(io.StringIO(gnc("export", "--format", "csv", repo=home).out))
    assert row["text"] == "'=HYPERLINK(\"http://x\")"


def test_several_namespaces_are_taken_whole_and_an_unknown_one_is_refused(tmp_path):
    home = new_repo(tmp_path / "repo", [mem(f"About {ns}", days_ago=d, namespace=ns) for ns in ("blockers", "patterns", "progress") for d in (1, 2)])
    made = gnc("consolidate", "--dry-run", "--json", "--namespace", "blockers", "--namespace", "patterns", repo=home).json
    assert made["result"]["duplicates_found"] == 2
    refused = gnc("consolidate", "--dry-run", "--namespace", "blockers", "--namespace", "nosuch", repo=home)
    assert refused.code == 2 and "--namespace nosuch: choose from blockers" in refused.err


def test_a_wrong_replacement_is_taken_back_and_the_fact_stays(tmp_path):
    home = made(tmp_path / "repo", [mem("ADR-1: Sessions are stored in Redis", days_ago=9)])
    git(home, "config", "user.name", "T"); git(home, "config", "user.email", "t@example.org")
    said = gnc("remember", "ADR-2: Sessions live in PostgreSQL\n\nSupersedes ADR-1.", repo=home).out
    assert "replaces" in said and "--keep-facts" in said
    taken = gnc("undo", "last", "--keep-facts", repo=home)
    assert taken.code == 0 and "what it wrote stays" in taken.out

    def shown(): return {r["summary"]: r["superseded_by"] for t in ("hot", "archived") for r in gnc("tiers", "--show", t, "--json", repo=home).json}

    both = {"ADR-1: Sessions are stored in Redis": None, "ADR-2: Sessions live in PostgreSQL": None}
    assert shown() == both
    gnc("consolidate", repo=home)
    assert shown() == both and gnc("audit", repo=home).code == 0  # Nobody concludes it again
    refused = gnc("undo", gnc("runs", "--json", repo=home).json[-1]["id"], "--keep-facts", repo=home)
    assert refused.code == 1 and "of other memories" in refused.err
    assert gnc("undo", taken.out.split()[-1], "--yes", repo=home).code == 0
    assert [v for v in shown().values() if v] and gnc("audit", repo=home).code == 0
