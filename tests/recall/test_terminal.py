"""What a person reads of an answer at 80 columns, and what `last` means wherever a name is taken."""
import pytest
from calls import gnc, new_repo

from git_notes_consolidation.core.memory import mem

NOTES = [("decisions", "ADR-1: Serve the API with Flask", "It is small.", 60), ("decisions", "ADR-2: Serve the API with Litestar", "Supersedes ADR-1.", 40),
         ("decisions", "Hard tenancy waits until 1.1", "Row-level security costs 9% on the claim path, and nobody pays for it yet.", 30),
         ("progress", "Tenancy spike: the roll-up moved to the replica", "", 20),
         ("learnings", "Backups you cannot decrypt are not backups", "", 15),
         ("blockers", "Deploys fail: the disk of the runner is full", "Nobody can release.", 9),
         ("blockers", "The certificate of the proxy expires on Sunday", "", 50),
         ("progress", "The runner's disk is cleaned every night, deploys work again", "", 2)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    made = new_repo(tmp_path_factory.mktemp("terminal") / "repo", [mem(t, b, namespace=ns, days_ago=n) for ns, t, b, n in NOTES])
    assert gnc("consolidate", "--yes", repo=made).code == 0
    return made


def shown(home, *question, **more): return [line.rstrip() for line in gnc("recall", *question, "--no-count", repo=home, width=80, **more).out.splitlines()]


def test_an_answer_comes_first_in_whole_lines_with_its_date_and_one_line_of_names(home):
    title, said, names, *_ = shown(home, "hard tenancy")
    assert title.startswith("Hard tenancy waits until 1.1  20") and said.strip().startswith("Row-level security costs 9%")
    assert names.split()[0].startswith("mem_") and names.split()[1:] == ["decisions", "warm"]
    past = shown(home, "What did we serve the API with before?")
    assert any("→ replaced by mem_" in line and "Litestar" in line for line in past) and max(map(len, past)) <= 80


@pytest.mark.parametrize(("question", "first"), [
    ("Do we run Kubernetes?", "No memory has the word “Kubernetes”; nearest:"), ("terraform of the API", "No memory has the word “terraform”; nearest:"),
    ("What did we decide about tenancy?", "Hard tenancy waits"), ("what have we learned about backups", "Backups you cannot decrypt"),
    ("What is blocking us?", "The certificate of the proxy"), ("what blocks the proxy?", "The certificate of the proxy"),
    ("what changed since yesterday", "No memories recorded since")])
def test_a_question_is_answered_by_its_kind_and_its_time(home, question, first):
    assert next(filter(None, shown(home, question))).startswith(first)


def test_a_blocker_that_is_probably_over_says_by_what_and_stands_last(home):
    told = "\n".join(shown(home, "what is blocking us"))
    assert told.index("certificate") < told.index("disk of the runner") and "perhaps over: mem_" in told and "The runner's disk is cleaned" in told
    rows = gnc("recall", "what is blocking us", "--json", "--no-count", repo=home).json["results"]
    assert [bool(r["newer"]) for r in rows] == [False, True]


def test_blockers_whose_day_is_past_may_be_over(tmp_path):
    home = new_repo(tmp_path / "repo", [mem("Nobody reviews until Yuki is back", "On leave until 20 December 2026.", namespace="blockers", days_ago=0)])
    assert "perhaps over" not in "\n".join(shown(home, "what is blocking us"))
    told = "\n".join(shown(home, "--now", "2027-03-01", "what is blocking us"))
    assert told.startswith("Perhaps nothing;") and "perhaps over" in told


def test_last_is_the_latest_run_or_memory_everywhere(home):
    run = gnc("log", "--runs", "--json", repo=home).json[0]["id"]
    for command in (["log", "last"], ["diff", "last"]): assert gnc(*command, repo=home).out == gnc("log", run, repo=home).out
    newest = gnc("explain", "last", "--json", repo=home).json["id"]
    assert gnc("explain", newest, "--json", repo=home).json["summary"] == NOTES[-1][1]
    for command in ("forget", "restore", "undo", "undo"): assert gnc(command, "last", repo=home).code == 0
    assert NOTES[-1][1] in gnc("explain", "last", repo=home).out
    assert "`last` is the latest" in gnc("explain", "nosuchname", repo=home).err


def test_an_answered_question_is_known_by_its_name(tmp_path):
    made = new_repo(tmp_path / "repo", [mem("The nightly dump runs at 02:15", days_ago=30), mem("The nightly dump runs at 04:00 now", days_ago=3)])
    gnc("consolidate", repo=made)
    asked = gnc("review", "list", "--json", repo=made).json
    if not asked: pytest.fail("nothing is asked")
    id = asked[0]["id"]
    assert gnc("review", "reject", "last", repo=made).code == 0
    told = gnc("review", id[:12], repo=made)
    assert told.code == 0 and "rejected" in told.out and "gnc undo run_" in told.out
