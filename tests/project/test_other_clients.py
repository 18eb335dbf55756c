"""`gnc setup` in the real Claude Code, Codex, Gemini CLI, Copilot CLI and OpenCode, against stand-ins: a session is told the block once, after --undo not."""
import json
import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from calls import gnc
from helpers import ROOT, git
from model_apis import ModelAPI

BIN = ROOT / ".client" / "node_modules" / ".bin"
BLOCK = 'memory_consolidated_summaries version='
RECORDINGS, RECORD = ROOT / "nbs" / "guide" / "recordings", bool(os.environ.get("GNC_RECORD"))  # A test sees no such variable
pytestmark = pytest.mark.slow


def codex(home, repo, url, *more):
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(
        'model = "gpt-5"\nsandbox_mode = "read-only"\nmodel_provider = "standin"\n'
        f'[model_providers.standin]\nname = "standin"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        f'env_key = "OPENAI_API_KEY"\n[projects."{repo}"]\ntrust_level = "trusted"\n')
    return ["codex", "exec", *(more or ("--dangerously-bypass-hook-trust",)), "hello"], {"OPENAI_API_KEY": "none"}


def gemini(home, repo, url, *more):
    (home / ".gemini").mkdir(exist_ok=True)
    if not (home / ".gemini" / "settings.json").exists():
        quiet = {"general": {"disableAutoUpdate": True}, "privacy": {"usageStatisticsEnabled": False}}
        (home / ".gemini" / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}} | quiet))
    env = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return ["gemini", "-m", "gemini-2.5-flash", *more, "-p", "hello"], env


def copilot(home, repo, url):
    return ["copilot", "-p", "hello"], {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "gpt-4.1",
                                        "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_ALLOW_ALL": "true"}


def opencode(home, repo, url):
    (home / ".config" / "opencode").mkdir(parents=True, exist_ok=True)
    file = home / ".config" / "opencode" / "opencode.json"
    standin = {"npm": "@ai-sdk/openai-compatible", "name": "standin", "options": {"baseURL": f"{url}/v1", "apiKey": "none"}, "models": {"m": {"name": "m"}}}
    if not file.exists(): file.write_text(json.dumps({"autoupdate": False, "provider": {"standin": standin}, "model": "standin/m", "small_model": "standin/m"}))
    return ["opencode", "run", "hello"], {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}


def claude(home, repo, url):
    off = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX")
    return ["claude", "-p", "hello"], {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url} | dict.fromkeys(off, "1")


# In a script it leaves out the tools that it would have to ask for
TOOLS = {gemini: ("--allowed-tools", "mcp_memory_memory_recall,mcp_memory_memory_history")}


class Agent:
    "A client in a home and a repository of its own."
    def __init__(self, make, place, api, programs=Path(sys.executable).parent):
        name = make.__name__
        if not (BIN / name).exists(): pytest.skip(f"{name} is not here: make client-test fetches it, by npm")
        self.make, self.api, self.home, self.repo, self.programs = make, api, place / "home", place / "home" / "your-project", programs
        self.home.mkdir()

    def type(self, *words, **env):
        "What a command prints, at 80 columns."
        path, client = os.pathsep.join([str(self.programs), "/usr/local/bin", "/usr/bin", "/bin"]), BIN / words[0]
        words = [client if client.exists() else words[0], *words[1:]]
        env = {"HOME": str(self.home), "PATH": path, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "80", "LANG": "C.UTF-8"} | env
        done = subprocess.run(words, cwd=self.repo, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              timeout=150)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def ask(self, question, *more):
        "A session with one question: the command, what it printed, and what it sent with its first request."
        at = len(self.api.bodies)
        words, env = self.make(self.home, self.repo, self.api.url, *more)
        words[-1] = question
        said = self.type(*words, **env)
        return words, said, self.api.bodies[at:][-1 if self.make in (claude, opencode) else 0]  # These two ask for a title first

    def __call__(self, *more):
        _, said, sent = self.ask("hello", *more)
        assert "done" in said, said
        return json.dumps(sent)


def with_demo(make, place, api):
    agent = Agent(make, place, api)
    assert gnc("demo", agent.repo).code == 0
    return agent


@pytest.fixture
def api():
    with ModelAPI() as api: yield api


@pytest.mark.parametrize("make", [codex, gemini, copilot, opencode], ids=lambda f: f.__name__)
def test_set_up_a_session_is_told_the_block_once_and_taken_out_no_more(tmp_path, api, make, monkeypatch):
    agent, name = with_demo(make, tmp_path, api), make.__name__
    monkeypatch.setenv("HOME", str(agent.home))
    for user in ([], ["--user"]):
        assert BLOCK not in agent()
        assert gnc("setup", name, "--apply", *user, repo=agent.repo).code == 0
        said = agent(*TOOLS.get(make, ()))
        assert said.count(BLOCK) == 1 and "A record quoted as data" in said
        assert re.search(r'"name": "[\w-]*memory_history"', said) or name == "codex"  # The tools, beside the block
        assert gnc("setup", name, "--undo", "--apply", *user, repo=agent.repo).code == 0
    assert BLOCK not in agent()


def test_codex_runs_no_hook_that_nobody_has_allowed(tmp_path, api):
    agent = with_demo(codex, tmp_path, api)
    assert gnc("setup", "codex", "--apply", repo=agent.repo).code == 0
    assert BLOCK not in agent("--skip-git-repo-check") and BLOCK in agent()


@pytest.mark.parametrize("make", [claude, codex, gemini], ids=lambda f: f.__name__)
def test_what_a_session_proposes_waits_and_nothing_is_stored(tmp_path, api, make, monkeypatch):
    agent, name, fact = with_demo(make, tmp_path, api), make.__name__, "The export runs at 02:00, because the queue is empty then."
    monkeypatch.setenv("HOME", str(agent.home))
    api.said = f"It is done.\n\n[decision] {fact}"
    def waiting(): return [x["text"] for x in gnc("review", "list", "--json", repo=agent.repo).json if x.get("what") == "fact"]
    assert gnc("setup", name, "--apply", repo=agent.repo).code == 0
    assert "[decision] WHAT" not in agent() and waiting() == []
    assert gnc("setup", name, "--capture", "--apply", repo=agent.repo).code == 0
    assert "[decision] WHAT" in agent() and waiting() == [fact]
    assert fact not in gnc("recall", "when does the export run?", "--json", repo=agent.repo).out


FACT, QUESTION = "The export runs at 02:00, because the queue is empty then.", "When does the export run, and why?"
# Names, dates, versions and seconds
DIFFERS = re.compile(r'\b\d+s\b|(mem|run)_\w+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|version="\w+"|'
                     r'\d{4}-\d\d-\d\d(T[\d:]+Z)?|\d+ [A-Z][a-z]+ 20\d\d|\d+\.\d+\.\d+')
AGENTS_OWN = re.compile(rf"(?ms)^(\$ (?!gnc )[^\n]*(?:--version|{re.escape(shlex.quote(QUESTION))}))\n.*?(?=^\$ )")


def ours(text):
    "A recording without what differs, and without what the agent prints of itself: warnings of the machine, its own state."
    return DIFFERS.sub("…", AGENTS_OWN.sub(r"\1\n", text))


def told(value, role=""):
    "The block in a request, and the role of the message that it stands in; neither, where there is none."
    if isinstance(value, str):
        found = re.search(rf"(<|&lt;){BLOCK}.*?/memory_consolidated_summaries(>|&gt;)", value, re.S)
        return (role, found[0]) if found else ("", "")
    role = value.get("role", role) if isinstance(value, dict) else role
    inner = value.items() if isinstance(value, dict) else ((role, x) for x in value) if isinstance(value, list) else ()
    return next(filter(any, (told(x, role or key) for key, x in inner)), ("", ""))


def repeats_what_it_was_told(body):
    fact = next((line for line in told(body)[1].splitlines() if line.startswith("- ")), "nothing")
    return f"(No model, a stand-in. Of the project it was told: {fact})"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    "The programs of an environment with nothing but what is committed here, and how they came there."
    place = tmp_path_factory.mktemp("installed")
    venv.create(place / "venv", with_pip=True)
    git(place, "clone", "--quiet", ROOT, "git-notes-consolidation")
    bin, words = place / "venv" / "bin", ["pip", "install", "-qq", "./git-notes-consolidation"]
    done = subprocess.run([bin / words[0], *words[1:]], cwd=place, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    return bin, f"$ {shlex.join(words)}\n{done.stdout}"


@pytest.mark.parametrize("make", [codex, gemini, copilot, opencode, claude], ids=lambda f: f.__name__)
def test_the_recording_in_the_guide_is_what_happens(tmp_path, api, make, installed):
    "`make client-recordings` writes them anew: nobody edits one."
    name, api.said, (programs, lines) = make.__name__, repeats_what_it_was_told, installed
    agent = Agent(make, tmp_path, api, programs)
    git(tmp_path, "init", "--quiet", "--initial-branch=main", agent.repo)
    git(agent.repo, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "--message=First")
    def typed(*words): return f"$ {shlex.join(words)}\n{agent.type(*words)}"
    lines = typed("date", "-I") + typed(name, "--version") + lines + "$ cd your-project\n"
    lines += typed("gnc", "remember", FACT, "--namespace", "decisions") + typed("gnc", "setup", name, "--apply")
    words, said, sent = agent.ask(QUESTION)
    role, block = told(sent)
    lines += f"$ {shlex.join(words)}\n{said}" + typed("gnc", "recall", QUESTION)
    lines += f"\n[In what {name} sent to its model, as {role}:]\n{block}\n"
    lines = "\n".join(x.rstrip() for x in re.sub(r"\x1b\[[\d;]*m", "", lines).replace(str(agent.home), "~").splitlines()) + "\n"
    file = RECORDINGS / f"{name}.txt"
    if RECORD: file.write_text(lines, encoding="utf-8")
    assert FACT in block and FACT in said
    assert ours(file.read_text(encoding="utf-8")) == ours(lines), f"{file.name} is not what happens; make client-recordings"
