"""What looks odd and works, and what cannot work and says so in one line, with a remedy, and without a trace."""
import hashlib
import json
import os
import shutil
import subprocess

import pytest
from calls import COMMAND, files, gnc, gnc_process, new_repo, run, state_of
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.store.git import MEM
from git_notes_consolidation.store.events import REFS
from git_notes_consolidation.store.reader import note_text
from helpers import add_memories, git, refs, story

STORY = story()


def put_note(home, text, ns="learnings", name="odd"):
    "A note's text as it stands, on an object of its own: the object's id."
    obj = hashlib.sha1(name.encode()).hexdigest()
    raw = text.encode() if isinstance(text, str) else text
    old = f"from {MEM}{ns}^0\n" if MEM + ns in refs(home) else ""
    stream = f"commit {MEM}{ns}\ncommitter a <a@example.org> 0 +0000\ndata 1\nx\n{old}M 100644 inline {obj}\ndata {len(raw)}\n".encode() + raw + b"\n"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=home, input=stream, check=True, capture_output=True)
    return obj


def consolidated(home):
    "That a repository of the story is consolidated whole, twice, and its memories left alone."
    before = refs(home, MEM)
    result = gnc("consolidate", "--json", repo=home)
    assert (result.code, result.err) == (0, "")
    counts = {k: result.json[k] for k in ("memories_processed", "duplicates_found", "supersessions_detected", "warnings")}
    assert counts == {"memories_processed": len(STORY), "duplicates_found": 3, "supersessions_detected": 3, "warnings": []}
    after = refs(home)
    assert set(REFS.values()) <= set(after) and refs(home, MEM) == before
    again = gnc("consolidate", repo=home).out
    assert again.startswith("Nothing to do: everything is up to date.\n") and refs(home) == after
    return result.json


# What looks odd and works


@pytest.mark.slow
def test_without_a_name_and_without_a_home(tmp_path):
    home = new_repo(tmp_path / "repo", STORY)
    bare = {k: v for k, v in os.environ.items() if k not in ("HOME", "USER", "LOGNAME", "EMAIL", "USERPROFILE")}
    bare |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": "", "GIT_COMMITTER_NAME": "", "HOME": str(tmp_path / "nowhere")}
    done = gnc_process("--repo", home, "--now", SAMPLE_NOW.isoformat(), "consolidate", "--json", env=bare)
    assert (done.code, done.err) == (0, "") and done.json["supersessions_detected"] == 3 and set(REFS.values()) <= set(refs(home))
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.slow
def test_a_note_that_cannot_be_read_is_reported_with_its_place_and_stops_nothing(tmp_path):
    home = new_repo(tmp_path, STORY)
    good = note_text(mem("A sound record before it", "Text.", days_ago=5, namespace="learnings"))
    obj = put_note(home, good + "\n---\ntype: learnings\nsummary: [never closed\n---\n\nText.\n")
    place = f"{MEM}learnings {obj}, byte {len(good) + 1}: front matter has no timestamp"
    result = gnc("consolidate", "--json", repo=home)
    assert (result.code, result.json["memories_processed"], result.json["supersessions_detected"]) == (0, len(STORY) + 1, 3)
    (warning,) = result.json["warnings"]
    assert warning.startswith(place)
    for command in (["status"], ["consolidate"], ["consolidate", "--dry-run"]): assert f"! {place}" in gnc(*command, repo=home).out, command
    assert gnc("status", "--json", repo=home).json["problems"] == [warning]


@pytest.mark.slow
def test_from_inside_a_hook_of_git(git_repo, tmp_path):
    "git tells a hook its directories in the environment; they are of the repository that we are asked about, and no other."
    add_memories(git_repo, STORY)
    hook = git_repo / ".git" / "hooks" / "post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n" + f"env | grep ^GIT_ > '{tmp_path}/env'\n" + " ".join(f"'{w}'" for w in COMMAND)
                    + f" --now {SAMPLE_NOW.isoformat()} consolidate --json > '{tmp_path}/out' 2> '{tmp_path}/err'\n")
    hook.chmod(0o755)
    (git_repo / "x").write_text("x")
    git(git_repo, "add", "x"); git(git_repo, "commit", "--quiet", "--message=Second")
    assert "GIT_INDEX_FILE" in (tmp_path / "env").read_text() and (tmp_path / "err").read_text() == ""
    assert json.loads((tmp_path / "out").read_text())["supersessions_detected"] == 3 and len(state_of(git_repo).runs) == 1
    assert git(git_repo, "status", "--porcelain") == ""


def test_git_dir_of_another_repository_leads_nobody_astray(tmp_path, monkeypatch):
    home, other = new_repo(tmp_path / "one", STORY), new_repo(tmp_path / "two")
    untouched = files(other)
    for name, path in (("GIT_DIR", ".git"), ("GIT_WORK_TREE", ""), ("GIT_INDEX_FILE", "index")): monkeypatch.setenv(name, str(other / path))
    assert gnc("consolidate", "--json", repo=home).json["supersessions_detected"] == 3
    assert files(other) == untouched


# What cannot work


def refused(code, *said, repo, args, before=None):
    "One line that names the thing and the remedy, an exit code, and nothing written."
    before = files(repo) if before is None else before
    done = gnc(*args, repo=repo)
    assert done.code == code and done.out == "", done
    assert done.err.startswith("gnc: ") and done.err.count("\n") == 1 and "Traceback" not in done.err, done.err
    for text in said: assert text in done.err, done.err
    again = gnc("--json", *args, repo=repo)
    assert again.code == code and again.json == {"error": again.json["error"], "exit_code": code} and again.err == done.err
    assert files(repo) == before


COMMANDS = [["consolidate"], ["status"], ["tiers"], ["runs"], ["undo", "run_abcd"], ["explain", "mem_abcd"], ["edges", "mem_abcd"], ["summaries"], ["config"],
            ["diff", "run_abcd"], ["consolidate", "--dry-run"],
            ["audit"]]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("args", COMMANDS, ids=str)
def test_not_a_repository(tmp_path, args):
    refused(1, str(tmp_path), "is not a git repository; run git init there, or name another with --repo", repo=tmp_path, args=args)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("text", ["", "{}", "[]", "not JSON", '{"plan": 1}', '{"plan": 1, "records": [["meta"]]}', '"x"', "null", "{\"records\": 3}"])
def test_a_file_that_is_no_plan(tmp_path, text):
    home = new_repo(tmp_path / "repo", STORY)
    (tmp_path / "p.json").write_text(text)
    refused(1, "this is not a plan of gnc consolidate --plan", repo=home, args=["consolidate", "--apply", tmp_path / "p.json"])


SPOILT = [{"result": {}}, {"now": "never"}, {"hides": "many"}, {"records": [["elsewhere", "0" * 40, {}]]}, {"records": [["meta", "not an object", {}]]},
          {"records": [["meta", "0" * 40, "text"]]}, {"bases": []}]

@pytest.mark.slow(after=1)
@pytest.mark.parametrize("spoil", SPOILT, ids=json.dumps)
def test_a_plan_that_somebody_spoilt(tmp_path, spoil):
    home, plan = new_repo(tmp_path / "repo", STORY), tmp_path / "p.json"
    gnc("consolidate", "--plan", plan, repo=home)
    plan.write_text(json.dumps(json.loads(plan.read_text()) | spoil))
    before = refs(home)
    done = gnc("consolidate", "--apply", plan, repo=home)
    assert done.code == 1 and done.err.count("\n") == 1 and "this is not a plan" in done.err and refs(home) == before


def test_a_repository_that_git_cannot_read(tmp_path):
    home = new_repo(tmp_path, STORY)
    run(home)
    copy = shutil.copytree(home, tmp_path.parent / "damaged")
    (copy / ".git" / "HEAD").write_text("")
    done = gnc("status", repo=copy)
    assert done.code == 1 and done.err.count("\n") == 1


def test_without_git(tmp_path, monkeypatch):
    home = new_repo(tmp_path, STORY)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    refused(1, "git is not installed, or not on the PATH", repo=home, args=["status"])
