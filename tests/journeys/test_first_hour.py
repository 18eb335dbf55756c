"""The first hour: what somebody writes down is told at once, all of it, and stays told until something replaces it."""
import json
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers import ROOT
from person import GNC, Repo, flat, missing, says

FASTAPI, CELERY = "We build the API with FastAPI, because the team knows it.", "Background jobs run on Celery, with Redis as the broker."


# Before anything is there


def test_somebody_who_types_gnc_is_told_where_to_begin_and_what_its_exit_codes_mean(repo):
    text = repo.gnc("--help").text
    assert not missing(text, "gnc demo", "remember", "recall", "undo", "Nothing is ever lost",
                       "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped by a guard")
    assert repo.gnc("--version").out.startswith("gnc ")


def test_an_empty_repository_says_how_memories_come_and_a_session_starts_all_the_same(repo):
    for words in (["status"], ["recall", "redis"], ["consolidate"]): assert "gnc remember" in repo.gnc(*words).text
    assert repo.block() == "" and repo.hook("stop").json == {"continue": True}
    assert repo.gnc("--json", "recall", "redis").json["results"] == [] and repo.gnc("--json", "runs").json == []


def test_without_git_or_a_commit_the_remedy_is_named_in_one_line_and_no_session_fails(tmp_path, home):
    nowhere = Repo(tmp_path / "nowhere")
    said = nowhere.gnc("remember", "The cache lies in S3", code=2)
    assert "commit" in said.text and said.err.count("\n") == 1
    (nowhere.path / ".git").rename(tmp_path / "git")
    for words in (["status"], ["remember", "The cache lies in S3"], ["recall", "cache"]):
        said = nowhere.gnc(*words, code=1)
        assert "git init" in said.text and said.err.count("\n") == 1 and said.out == ""
    for which in ("session-start", "stop"): assert nowhere.hook(which).json == {"continue": True}
    assert nowhere.gnc("hook", "session-start", input="no JSON").json == {"continue": True}


def test_wrong_usage_is_exit_code_2_one_line_and_as_json_one_document(repo):
    for words in (["nosuch"], ["remember"], ["undo", "last"], ["explain", "mem_nosuch"], ["recall", "x", "--as-of", "someday"]):
        said = repo.gnc("--json", *words, code=2)
        assert said.json["exit_code"] == 2 and said.json["error"] and said.err.count("\n") == 1, words


# What is remembered is told


def test_each_thing_is_told_as_soon_as_it_is_remembered_and_stays_told(repo):
    "At once, three days later, after a commit, after a run: by the hook and by the command that shows what the hook gives."
    for known in ([FASTAPI], [FASTAPI, CELERY]):
        repo.remember(known[-1])
        assert not missing(repo.block(), *known) and not missing(repo.gnc("inject").out, *known)
    assert not missing(repo.later(days=3).block(), FASTAPI, CELERY)
    repo.commit("More work")
    assert not missing(repo.block(), FASTAPI, CELERY)
    repo.gnc("consolidate")
    assert not missing(repo.block(), FASTAPI, CELERY) and not missing(repo.gnc("context").out, FASTAPI, CELERY)


def test_what_another_tool_writes_is_told_as_well(repo):
    repo.remember(FASTAPI)
    assert not missing(repo.block(), FASTAPI)
    repo.note("Celery runs the jobs", CELERY)
    assert not missing(repo.block(), FASTAPI, CELERY)
    assert says(repo.rows("what runs background jobs")[0]) == flat(f"Celery runs the jobs {CELERY}")


ALIKE = {
    "one thing, three facts": ["The parser is written in Rust.", "The parser needs 40 MB of memory.", "The parser is maintained by Bo."],
    "one title, two subjects": ["Timeout\nThe database timeout is 5 seconds.", "Timeout\nThe HTTP timeout is 30 seconds."],
    "one verb": ["We moved from Postgres 15 to 17.", "The release was moved by two weeks."],
    "one owner": ["Alex owns the search service.", "Alex owns the payments service.", "Alex owns the mail service."],
    "two places": ["The log level is debug in services/web.", "The log level is info in services/api."],
    "two sources": ["According to the README the minimum Node version is 18.", "According to package.json the minimum Node version is 20."]}


def test_facts_that_share_a_word_are_all_told_and_none_is_called_earlier(repo):
    facts = [f for some in ALIKE.values() for f in some]
    for some in ALIKE.values():
        for f in some[:-1]: repo.note(*f.split("\n"))
        repo.remember(some[-1])
    for moment in ("remembered", "consolidated"):
        told = [f.partition("\n")[2] or f for f in facts]
        assert not missing(repo.block(), *told), moment
        rows = {says(r): r for r in repo.rows("*", "--limit", "50", "--sources")}
        assert not [f for f in facts if flat(f) not in rows], moment
        assert not [s for s, r in rows.items() if r.get("superseded_by") or r.get("newer") and "node" not in s], moment
        repo.gnc("consolidate")


def test_after_a_rename_what_was_known_of_the_old_name_is_told_still(repo):
    facts = ["The billing service keeps its data in Postgres.", "The billing service was renamed to ledger.", "Ledger now exports nightly to S3."]
    repo.remember(*facts)
    repo.later(days=1).gnc("consolidate")
    assert not missing(repo.block(), *facts)
    assert any("postgres" in says(r) for r in repo.rows("where does the ledger service keep its data"))


FACT = {  # What holds, what somebody then says without asserting another value, and the question
    "question": ("The API timeout is 30 seconds.", "Is the API timeout 60 seconds?", "what is the API timeout"),
    "what if": ("The session store is Redis.", "What if the session store were Postgres?", "what is the session store"),
    "maybe": ("The build runs on Jenkins.", "Maybe the build runs on GitHub Actions soon.", "what does the build run on"),
    "suggested": ("The upload limit is 50 MB.", "Omar suggested that the upload limit be 80 MB.", "what is the upload limit"),
    "considered": ("Mails are sent through Postmark.", "We considered sending mails through SES instead of Postmark.", "how are mails sent"),
    "rejected": ("The dashboard is written in Elm.", "Rejected: rewrite the dashboard in React.", "what is the dashboard written in"),
    "should": ("The linter is flake8.", "The linter should be ruff.", "what is the linter"),
    "plan": ("The price of a seat is 9 euros.", "From 1 June on the price of a seat will be 12 euros.", "what is the price of a seat"),
    "exception": ("The worker retries 3 times.", "The worker retries 5 times for payment requests.", "how often does the worker retry"),
    "condition": ("The scanner polls every 10 seconds.", "When the battery is low, the scanner polls every 60 seconds.", "how often does the scanner poll"),
    "addition": ("The exporter supports CSV.", "The exporter also supports Parquet.", "what does the exporter support"),
    "on a list": ("The device list is phone and laptop.", "Add the tablet to the device list.", "what is on the device list"),
    "off a list": ("The CORS allow list is alpha, beta and gamma.", "Remove beta from the CORS allow list.", "what is on the CORS allow list")}


@pytest.fixture(scope="module")
def undecided(tmp_path_factory):
    "A fact of each, then the other word on it, then a run; not to be written to."
    home = Repo(tmp_path_factory.mktemp("undecided") / "mine").commit()
    for fact, _, _ in FACT.values(): home.note(fact)
    home.later(days=3)
    for n, (_, other, _) in enumerate(FACT.values()): home.note(other) if n % 3 else home.remember(other)
    home.later(days=1).gnc("consolidate", "--yes")
    home.told = home.block()
    return home


def test_questions_guesses_plans_exceptions_and_additions_take_no_fact_out_of_the_block(undecided):
    assert not missing(undecided.told, *(fact for fact, _, _ in FACT.values()))
    assert [r for r in undecided.rows("*", "--mode", "exhaustive", "--limit", "50") if r.get("superseded_by")] == []


def test_a_question_to_nobody_is_told_as_no_fact(undecided):
    asked = flat("Is the API timeout 60 seconds?")
    assert not [line for line in undecided.told.splitlines() if flat(line).lstrip("- 0123456789*") == asked]


@pytest.mark.parametrize("kind", FACT)
def test_recall_puts_what_holds_before_what_was_only_said_about_it(undecided, kind):
    fact, other, question = FACT[kind]
    rows = undecided.rows(question, "--no-count")
    order = [says(r) for r in rows]
    assert order[0] == flat(fact), order
    assert not rows[0].get("newer") and not rows[0].get("superseded_by")


RETURNS = {"state": ["The cache is enabled.", "The cache is disabled.", "The cache is enabled."],
           "place": ["We deploy to eu-west-1.", "We deploy to us-east-1.", "We deploy to eu-west-1."],
           "tool": ["The formatter is black.", "The formatter is ruff.", "The formatter is black."]}


def test_what_holds_again_is_written_again_and_is_what_holds(repo):
    for first, second, third in RETURNS.values():
        repo.note(first)
        for text in (second, third):
            done = repo.later(days=1).remember(text)[0]
            assert done["operation"] != "NOOP" and done["memory_id"] and done["run_id"], text
    lines = [flat(line) for line in repo.block().splitlines()]
    for first, second, third in RETURNS.values():
        again, once = ([n for n, line in enumerate(lines) if flat(t).rstrip(".") in line] for t in (third, second))
        assert again and (not once or again[0] < once[0]), lines
        row = repo.rows(" ".join(first.split()[:3]))[0]
        assert says(row).startswith(flat(third)) and not row.get("newer") and not row.get("superseded_by")


def test_what_is_said_twice_is_known_already_and_told_once(repo):
    repo.remember(FASTAPI)
    again = repo.later(days=1).gnc("remember", FASTAPI)
    assert "known already" in again.text
    assert flat(repo.block()).count(flat(FASTAPI)) == 1 and len(repo.rows("*")) == 1


def test_what_replaces_says_so_and_only_then_the_older_one_is_gone(repo):
    old, new = "The API is served with Flask.", "The API is served with FastAPI; this replaces Flask, which has no async."
    first = repo.remember(old)[0]["memory_id"]
    repo.later(days=1).gnc("remember", new, "--supersedes", first)
    assert not missing(repo.block(), new) and not [x for x in repo.block().splitlines() if flat(old).rstrip(".") in flat(x) and "~~" not in x]
    assert [says(r) for r in repo.rows("what is the API served with")] == [flat(new)]
    assert not missing(repo.gnc("history", first).out, old, "FastAPI")
    assert [says(r) for r in repo.rows("what is the API served with", "--as-of", "2026-03-02")] == [flat(old)]


def test_a_question_in_other_words_finds_it_and_one_in_no_words_finds_nothing(repo):
    for text in ("The store is closed at weekends", "Backups run at night on the spare disk", "Commit messages are in the imperative"): repo.remember(text)
    assert [says(r) for r in repo.rows("Is the shop open on Sundays?")] == [flat("The store is closed at weekends")]
    assert repo.rows("What is the qqq?") == []


def test_a_secret_is_refused_and_what_stays_of_it_is_said(repo):
    text = "The deploy token is ghp_" + "a1B2c3D4e5F6" * 3
    said = repo.gnc("remember", text, code=2)
    assert "secret" in said.text and "--with-secrets" in said.text
    said = repo.gnc("remember", "--with-secrets", text)
    assert "revoke it" in said.text and "undo" in said.text and "a1b2c3" not in repo.gnc("recall", "deploy token").text


def test_a_day_that_the_text_names_is_the_answer(repo):
    repo.remember("We finished the migration to Postgres\nThe last table was copied yesterday at noon.")
    said = repo.later(days=3).gnc("recall", "when did we finish the migration to Postgres")
    assert "1 march 2026" in said.text and "names no day" not in said.text


# The sample of the README


def test_the_demo_shows_a_run_and_every_command_that_it_names_works(sample, tmp_path):
    printed = sample.printed
    assert not missing(printed.text, "Nothing was deleted", "gnc status", "gnc recall", "gnc review list", "gnc undo")
    mine = sample.copy(tmp_path / "sample")
    lines = [re.sub(r"^\S*gnc ", "", x.strip()) for x in printed.out.partition("Go on from here")[2].splitlines() if re.match(r"^\s*\S*gnc ", x)]
    assert len(lines) >= 4
    for line in lines: assert mine.gnc(*shlex.split(line)).out


def test_the_sample_s_block_names_framework_database_and_logging_and_fills_its_budget(sample, tmp_path):
    told = sample.copy(tmp_path / "sample").block()
    assert not missing(told, "Litestar", "Postgres", "OpenTelemetry")
    assert 4000 < len(told) < 9000  # A token is two to four letters, and it may have 2,000
    lines = [flat(x).lstrip("- ") for x in told.splitlines() if len(x) > 40 and not x.startswith("<!--")]
    assert len(lines) == len(set(lines))
    assert not [x for x in lines if x.endswith("?")], "questions as facts"


def test_a_small_budget_gives_a_small_block_and_what_is_left_out_has_its_true_reason(sample, tmp_path):
    mine = sample.copy(tmp_path / "sample")
    small = mine.block(env={"HOOK_SESSION_START_SUMMARIES_TOKEN_BUDGET": "300"})
    assert 100 < len(small) < 300 * 6 and re.search(r"^(- |\w)", small.partition("#")[2], re.M)
    large = mine.gnc("inject", "--budget", "60000", "--max", "100", "--min-confidence", "0.97").text
    assert "confidence" in large or "not shown" not in large
    assert "token budget" not in large or len(large) > 60000, "a budget that is not used up is no reason"


def test_what_the_readme_tells_one_to_type_is_there(repo):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    told = re.findall(r"`(gnc [a-z][^`]*)`", text) + [x.split("#")[0].strip() for x in text.splitlines() if x.startswith("gnc ")]
    assert len(told) > 8
    commands = {" ".join(x for x in line.split()[1:2] if x.isalpha()) for line in told}
    for command in sorted(commands):
        helps = repo.gnc(command, "--help").text
        for line in told:
            if line.split()[1] == command: assert not [o for o in re.findall(r"--[a-z-]+", line) if o not in helps], line


# Programs that read it


def test_json_is_one_document_on_standard_output_and_nothing_else(repo):
    repo.note(FASTAPI); repo.note("The nightly dump runs at 02:00")
    repo.remember("The nightly dump runs at 04:30")
    name = repo.rows("nightly dump")[0]["id"]
    for words in (["status"], ["recall", "nightly dump"], ["recall", "when does the nightly dump run"], ["review", "list"], ["runs"], ["log"], ["tiers"],
                  ["history", name], ["explain", name], ["doctor"], ["audit"], ["consolidate", "--dry-run"]):
        said = repo.gnc("--json", *words)
        json.loads(said.out)


def test_runs_and_doctor_agree_on_whether_there_was_a_run(repo):
    repo.note("Bread", "We bake at six."); repo.note("Llamas spit when they are hungry", namespace="learnings")
    repo.gnc("consolidate")
    runs, doctor = repo.gnc("runs").text, repo.gnc("doctor", code=None).text
    assert ("no runs yet" in runs) == (not re.search(r"last run (was|here)|last run:? \d", doctor)), (runs, doctor)


def test_six_sessions_that_start_at_once_are_all_told(repo):
    repo.remember(FASTAPI, CELERY)
    event = json.dumps({"cwd": str(repo.path), "source": "startup"})

    def start(_):
        return subprocess.run([GNC, "--now", repo.now.isoformat(), "hook", "session-start"], input=event, capture_output=True, encoding="utf-8", timeout=60)

    with ThreadPoolExecutor(6) as pool: ends = list(pool.map(start, range(6)))
    for e in ends:
        told = json.loads(e.stdout).get("hookSpecificOutput", {}).get("additionalContext", "")
        assert e.returncode == 0 and (not missing(told, FASTAPI, CELERY) or e.stderr and not told)
