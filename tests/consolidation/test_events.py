"""A finished run tells whoever is configured, and nobody's trouble is the run's."""
import json
import shlex
import sys

import pytest
from calls import gnc, new_repo, run
from git_notes_consolidation.consolidation import service as service
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.events import run_lock
from helpers import refs, story

PYTHON = shlex.quote(sys.executable)
WHERE = "MEMORY_CONSOLIDATION_EVENT_"


@pytest.fixture
def told(tmp_path): return new_repo(tmp_path / "tidewater", story())


@pytest.fixture
def keeper(tmp_path):
    "A command that keeps what it is told, a line each, and the file."
    file, program = tmp_path / "kept.jsonl", tmp_path / "keep.py"
    program.write_text(f"import sys\nopen({str(file)!r}, 'a').write(sys.stdin.read() + '\\n')\n")
    return f"{PYTHON} {shlex.quote(str(program))}", lambda: [json.loads(x) for x in file.read_text().splitlines()] if file.exists() else []


def problems(result): return [w for w in result.warnings if w.startswith("event: ")]


def test_a_run_that_changed_something_is_told_once(told, keeper):
    command, kept = keeper
    first, second = run(told, event_command=command), run(told, event_command=command)
    assert (first.changed, second.changed) == (True, False) and len(kept()) == 1 and problems(first) == []
    event = kept()[0]
    assert (event["event"], event["schema"], event["run_id"], event["repository"]) == ("consolidation_completed", 1, first.run_id, "tidewater")
    assert event["at"] == SAMPLE_NOW.isoformat() and 0 < event["duration_s"] < 120
    counts = event["counts"]
    assert (counts["memories_processed"], counts["supersessions_detected"], counts["edges_extracted"]) == (36, 3, 6 + first.relations_found)
    assert counts["clusters_formed"] == first.clusters_found and counts["tier_transitions"] == len(first.tier_transitions)
    assert not any(m.summary in json.dumps(event) for m in story())


@pytest.mark.slow
def test_a_plan_that_is_applied_is_told_and_a_dry_run_is_not(told, keeper, tmp_path, monkeypatch):
    command, kept = keeper
    monkeypatch.setenv(WHERE + "COMMAND", command)
    assert gnc("consolidate", "--plan", tmp_path / "p.json", repo=told).code == 0 and gnc("consolidate", "--dry-run", repo=told).code == 0 and kept() == []
    assert gnc("consolidate", "--apply", tmp_path / "p.json", repo=told).code == 0 and len(kept()) == 1


@pytest.mark.slow
def test_it_comes_after_the_commit_and_outside_of_the_lock(told, tmp_path):
    file, program = tmp_path / "seen", tmp_path / "look.py"
    program.write_text(
        "import sys\nfrom git_notes_consolidation.store.git import open_repo; from git_notes_consolidation.store.events import run_lock\nfrom "
        "git_notes_consolidation.consolidation.scan import view\n"
                       f"with run_lock(open_repo({str(told)!r})): open({str(file)!r}, 'w').write(' '.join(view(open_repo({str(told)!r})).state.runs))\n")
    result = run(told, event_command=f"{PYTHON} {shlex.quote(str(program))}")
    assert problems(result) == [] and file.read_text() == result.run_id


FAILS = {"ended with 3: no room": f"{PYTHON} -c 'import sys; print(\"no room\", file=sys.stderr); sys.exit(3)'",
         "cannot be started": "no-such-program --at-all", "Permission denied": "/etc/passwd", "split into words": "say 'half", "embedded null byte": "a\0b"}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("why", FAILS)
def test_a_command_that_fails(told, why):
    result = run(told, event_command=FAILS[why])
    assert result.success and result.run_id and refs(told, "refs/notes/mem-runs") and len(problems(result)) == 1 and why in problems(result)[0]


def test_a_command_is_no_shell(told, tmp_path):
    here = tmp_path / "here"
    result = run(told, event_command=f"{PYTHON} -c 'import sys; sys.exit(sys.argv[1] == \"$(touch\")' $(touch {here}) ; touch {here}")
    assert "ended with 1" in problems(result)[0] and not here.exists()


@pytest.mark.slow
def test_off_by_default_and_never_by_a_file(told, tmp_path):
    (told / "gnc.toml").write_text('event_command = "touch here"')
    done = gnc("consolidate", repo=told)
    assert done.code == 0 and "event" not in done.out + done.err and not (told / "here").exists()
    assert problems(run(new_repo(tmp_path / "two", story()))) == []


def test_problems_are_seen_and_the_lock_is_free(told, monkeypatch):
    monkeypatch.setenv(WHERE + "COMMAND", "no-such\x1b[2J-program")
    done = gnc("consolidate", repo=told)
    assert done.code == 0 and "! event: event_command: no-such�[2J-program cannot be started" in done.out
    with run_lock(open_repo(told)): pass
