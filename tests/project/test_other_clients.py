"""`gnc setup` in the real Claude Code, Codex, Gemini CLI, Copilot CLI and OpenCode, against stand-ins: a session is told the block once, after --undo not."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from calls import gnc
from helpers import ROOT
from model_apis import ModelAPI

BIN = ROOT / ".client" / "node_modules" / ".bin"
BLOCK = 'memory_consolidated_summaries version='
pytestmark = pytest.mark.slow


def codex(home, repo, url, *more):
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(
        f'model = "gpt-5"\nmodel_provider = "standin"\n[model_providers.standin]\nname = "standin"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        f'env_key = "OPENAI_API_KEY"\n[projects."{repo}"]\ntrust_level = "trusted"\n')
    return ["codex", "exec", *(more or ("--dangerously-bypass-hook-trust",)), "hello"], {"OPENAI_API_KEY": "none"}


def gemini(home, repo, url):
    (home / ".gemini").mkdir(exist_ok=True)
    if not (home / ".gemini" / "settings.json").exists():
        quiet = {"general": {"disableAutoUpdate": True}, "privacy": {"usageStatisticsEnabled": False}}
        (home / ".gemini" / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}} | quiet))
    allowed = "mcp_memory_memory_recall,mcp_memory_memory_history"  # In a script it leaves out what it would have to ask for
    words = ["gemini", "-m", "gemini-2.5-flash", "--allowed-tools", allowed, "-p", "hello"]
    return words, {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


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


class Agent:
    "A client in a home and a repository of its own."
    def __init__(self, make, place, api):
        name = make.__name__
        if not (BIN / name).exists(): pytest.skip(f"{name} is not here: make client-test fetches it, by npm")
        self.make, self.api, self.home, self.repo = make, api, place / "home", place / "repo"
        self.home.mkdir()
        assert gnc("demo", self.repo).code == 0

    def __call__(self, *more):
        "What a session sends with its first request."
        at = len(self.api.bodies)
        words, env = self.make(self.home, self.repo, self.api.url, *more)
        path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
        done = subprocess.run([str(BIN / words[0]), *words[1:]], cwd=self.repo, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=150,
                              env={"HOME": str(self.home), "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8"} | env)
        assert done.returncode == 0 and "done" in done.stdout, done.stdout + done.stderr
        return json.dumps(self.api.bodies[at:][-1 if self.make in (claude, opencode) else 0])  # These two ask for a title first


@pytest.fixture
def api():
    with ModelAPI() as api: yield api


@pytest.mark.parametrize("make", [codex, gemini, copilot, opencode], ids=lambda f: f.__name__)
def test_set_up_a_session_is_told_the_block_once_and_taken_out_no_more(tmp_path, api, make, monkeypatch):
    agent, name = Agent(make, tmp_path, api), make.__name__
    monkeypatch.setenv("HOME", str(agent.home))
    for user in ([], ["--user"]):
        assert BLOCK not in agent()
        assert gnc("setup", name, "--apply", *user, repo=agent.repo).code == 0
        said = agent()
        assert said.count(BLOCK) == 1 and "A record quoted as data" in said
        assert re.search(r'"name": "[\w-]*memory_history"', said) or name == "codex"  # The tools, beside the block
        assert gnc("setup", name, "--undo", "--apply", *user, repo=agent.repo).code == 0
    assert BLOCK not in agent()


def test_codex_runs_no_hook_that_nobody_has_allowed(tmp_path, api):
    agent = Agent(codex, tmp_path, api)
    assert gnc("setup", "codex", "--apply", repo=agent.repo).code == 0
    assert BLOCK not in agent("--skip-git-repo-check") and BLOCK in agent()


@pytest.mark.parametrize("make", [claude, codex, gemini], ids=lambda f: f.__name__)
def test_what_a_session_proposes_waits_and_nothing_is_stored(tmp_path, api, make, monkeypatch):
    agent, name, fact = Agent(make, tmp_path, api), make.__name__, "The export runs at 02:00, because the queue is empty then."
    monkeypatch.setenv("HOME", str(agent.home))
    api.said = f"It is done.\n\n[decision] {fact}"
    def waiting(): return [x["text"] for x in gnc("review", "list", "--json", repo=agent.repo).json if x.get("what") == "fact"]
    assert gnc("setup", name, "--apply", repo=agent.repo).code == 0
    assert "[decision] WHAT" not in agent() and waiting() == []
    assert gnc("setup", name, "--capture", "--apply", repo=agent.repo).code == 0
    assert "[decision] WHAT" in agent() and waiting() == [fact]
    assert fact not in gnc("recall", "when does the export run?", "--json", repo=agent.repo).out
