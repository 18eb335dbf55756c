"""The plugin in the real Claude Code, with a stand-in for the model's API on this machine: what a session is told, shown, allowed and made to wait for."""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from calls import gnc, gnc_process
from helpers import ROOT, git
from llm_servers import asked_about
from messages_api import MessagesAPI

PLUGIN = ROOT / "plugin"
CLIENT = next((ROOT / ".client").glob("node_modules/@anthropic-ai/claude-code-*/claude"), None)
OPEN = "<memory_consolidated_summaries "
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CLIENT is None, reason="the client is not here: make client-test fetches it (380 MB, by npm)")]


class Session(NamedTuple):
    "How the client ended, what it streamed, and what the model's API was sent."
    done: subprocess.CompletedProcess
    rows: list
    bodies: list
    seconds: float

    @property
    def hooks(self): return {r["hook_name"]: r for r in self.rows if r.get("subtype") == "hook_response"}
    @property
    def results(self):
        return [c for r in self.rows if r.get("type") == "user" and isinstance(r["message"]["content"], list)
                for c in r["message"]["content"] if c["type"] == "tool_result"]
    @property
    def refused(self): return [bool(c.get("is_error")) for c in self.results]

    def answer(self, source): return json.loads(self.hooks[f"SessionStart:{source}"]["stdout"] or "{}")


class Client:
    "The real client in a home, with a key and at an address that mean nothing."
    def __init__(self, place, api, repo):
        self.home, self.api, self.repo = place / "home", api, repo
        self.home.mkdir(exist_ok=True)
        self.bin = Path(sys.executable).parent
        self.env = {"HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": api.url, "IS_SANDBOX": "1"}
        off = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")
        patient = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000"}  # It waits for the memory's server, also on a busy machine
        self.env |= dict.fromkeys(off, "1") | patient | {k: os.environ[k] for k in ("PYTHONPATH",) if k in os.environ}

    def __call__(self, *words, path=None, cwd=None, plan=(), plugin=PLUGIN):
        self.api.plan[:], at, begin = plan, len(self.api.bodies), time.monotonic()
        more = ["--plugin-dir", str(plugin), "--output-format", "stream-json", "--verbose", "--include-hook-events"] if words[0] == "-p" else []
        first = [str(self.bin if path is None else path)] if path != "" else []
        env = self.env | {"PATH": os.pathsep.join([*first, "/usr/local/bin", "/usr/bin", "/bin"])}
        done = subprocess.run([str(CLIENT), *words, *more], cwd=cwd or self.repo, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                              timeout=120)
        took = time.monotonic() - begin
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return Session(done, rows, [b for b in self.api.bodies[at:] if b.get("messages")], took)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    place = tmp_path_factory.mktemp("client")
    assert gnc("demo", place / "repo").code == 0
    with MessagesAPI() as api: yield Client(place, api, place / "repo")


@pytest.fixture(scope="module")
def hello(client): return client("-p", "hello")


@pytest.mark.parametrize("what", [PLUGIN, ROOT / "plugin-tools", ROOT], ids=lambda p: p.name)
def test_plugins_and_marketplace_pass_strict_validation(client, what):
    done = client("plugin", "validate", "--strict", str(what)).done
    assert done.returncode == 0, done.stdout


def test_a_session_begins_with_the_block_once(hello):
    assert hello.done.returncode == 0 and hello.done.stderr == ""
    assert json.dumps(hello.bodies[0]).count(OPEN) == 1
    assert all(hello.hooks[n]["outcome"] == "success" for n in ("SessionStart:startup", "Stop"))
    init = next(r for r in hello.rows if r.get("subtype") == "init")
    assert sorted(c for c in init["slash_commands"] if c.startswith("memory:")) == [f"memory:{c}" for c in "consolidate edges recall status tiers".split()]


def test_resumed_it_has_it_once_and_compacted_again(client, hello):
    again = client("-p", "again", "--continue")
    assert json.dumps(again.bodies[-1]).count(OPEN) == 1 and "SessionStart:resume" in again.hooks
    compacted = client("-p", "/compact", "--continue")
    assert OPEN in compacted.hooks["SessionStart:compact"]["stdout"], compacted.rows


@pytest.mark.parametrize(("prompt", "command"), [
    ("/memory:status", "gnc status"), ("/memory:tiers --show hot", "gnc tiers --show hot"), ("/memory:consolidate --dry-run", "gnc consolidate --dry-run"),
    ("/memory:consolidate --namespace retrospective --dry-run", "gnc consolidate --namespace retrospective --dry-run"),
    ("/memory:consolidate --strategy dedupe", "gnc consolidate --strategy dedupe")])
def test_a_command_runs_without_a_question(client, hello, prompt, command):
    assert client("-p", prompt, plan=[("Bash", {"command": command}), "done"]).refused == [False]


def test_what_is_not_listed_needs_approval(client, hello):
    for command in ("gnc consolidate --yes", "gnc consolidate --namespace decisions --yes", "gnc undo run_1"):
        assert client("-p", "/memory:consolidate", plan=[("Bash", {"command": command}), "done"]).refused == [True]


def test_an_agent_starts_no_run_by_itself(client, hello):
    s = client("-p", "please", plan=[("Skill", {"skill": "memory:consolidate"}), ("Bash", {"command": "gnc consolidate"}), "done"])
    assert s.refused == [True, True]


def test_recall_writes_the_question_asks_and_is_answered(client, hello):
    file = str(client.repo / ".memory" / "question.txt")
    s = client("-p", "/memory:recall Which framework?", plan=[("Write", {"file_path": file, "content": "Which framework does the API run on? --limit 2"}),
                                                             ("Bash", {"command": "gnc recall --query-file .memory/question.txt"}), "done"])
    assert s.refused == [False, False] and "Litestar" in str(s.results[-1])
    for more in ("--query-file README.md", "--repo ..", "--llm lmstudio --reason", "--config x"):
        assert client("-p", "/memory:recall x", plan=[("Bash", {"command": f"gnc recall --query-file .memory/question.txt {more}"}), "done"]).refused == [True]
    below = client.repo / "below"
    below.mkdir(exist_ok=True)
    (below / ".memory").mkdir(exist_ok=True)
    (below / ".memory" / "question.txt").write_text("x")
    assert ".memory" not in git(client.repo, "status", "--porcelain", "--untracked-files=all")


def test_a_resumed_session_hears_of_an_undo(client, tmp_path):
    repo = tmp_path / "repo"
    assert gnc("demo", repo).code == 0
    first = client("-p", "hello", cwd=repo)
    run = json.loads(gnc("runs", "--json", repo=repo).out)[0]["id"]
    assert json.dumps(first.bodies[0]).count(OPEN) == 1 and gnc("undo", run, "--yes", repo=repo).code == 0
    s = client("-p", "again", "--continue", cwd=repo)
    assert "no longer holds: memories, a run or an undo came since" in s.hooks["SessionStart:resume"]["stdout"]


def test_the_agent_asks_the_memory_by_a_tool(client, hello):
    tool = "mcp__plugin_memory-tools_memory__memory_recall"
    s = client("-p", "hello", "--allowedTools", tool, plugin=ROOT / "plugin-tools", plan=[(tool, {"query": "backups", "limit": 1}), "done"])
    (found,) = json.loads(s.results[0]["content"])["results"]
    assert s.refused == [False] and "backup" in found["summary"].lower()


def test_set_up_without_the_plugin_it_is_told_once_and_has_the_tools(client, tmp_path):
    repo, tool = tmp_path / "repo", "mcp__memory__memory_recall"
    assert gnc("demo", repo).code == 0 and gnc("setup", "claude", "--apply", repo=repo).code == 0
    s = client("--print", "hello", "--allowedTools", tool, "--mcp-config", str(repo / ".mcp.json"), cwd=repo)
    assert json.dumps(s.bodies[0]).count(OPEN) == 1 and tool in json.dumps(s.bodies[0]["tools"])
    assert gnc("setup", "claude", "--undo", "--apply", repo=repo).code == 0
    assert OPEN not in json.dumps(client("--print", "hello", cwd=repo).bodies)


ASK, SAY = (f"mcp__plugin_memory-tools_memory__memory_{name}" for name in ("questions", "verdicts"))


def test_the_agent_answers_questions_in_a_fork_that_has_two_tools_and_no_block(client, tmp_path):
    repo = tmp_path / "repo"
    assert gnc("demo", repo).code == 0
    def waiting(): return len(json.loads(gnc("review", "list", "--json", repo=repo).out))
    before, shown = waiting(), {}
    def verdicts(body):
        "What a judge would say: a true quotation, and an invented one."
        said = [c for m in body["messages"] if isinstance(m["content"], list) for c in m["content"]]
        told = next(c for c in said if c["type"] == "tool_result")["content"]
        shown.update(json.loads(told if isinstance(told, str) else told[0]["text"]))
        texts = dict(line.split(" ", 1) for line in shown["memories"].splitlines()[1:-1])
        one, two = shown["pairs"]
        quote = json.loads(texts[one["newer"]])["text"].splitlines()[0]
        return SAY, {"verdicts": [{"id": one["id"], "relation": "supersede", "kind": "partial", "quote": quote, "reason": "It is so."},
                                  {"id": two["id"], "relation": "supersede", "kind": "full", "quote": "said nowhere", "reason": "It seems so."}]}
    s = client("-p", "/memory-tools:answer-questions 2", cwd=repo, plugin=ROOT / "plugin-tools", plan=[(ASK, {"limit": 2}), verdicts, "One replaces in part."])
    judged = [b for b in s.bodies if b.get("tools")]
    assert len(judged) == 3 and all({t["name"] for t in b["tools"]} == {ASK, SAY} for b in judged)
    assert OPEN not in json.dumps(s.bodies) and len(shown["pairs"]) == 2
    answered = json.loads(gnc("review", "list", "--by", "agent", "--json", repo=repo).out)
    assert [(q["verdict"], q["by"]) for q in answered] == [("edited", "agent")] and "claude-code" in answered[0]["client"]
    assert gnc("undo", answered[0]["run"], "--yes", repo=repo).code == 0 and waiting() == before


class Judge(MessagesAPI):
    "Answers each question of the package with the tool that Claude Code gives its model for that: every third pair is a replacement."
    def next_reply(self, body):
        with self._lock: self.bodies.append(body)
        told = [m["content"] for m in body["messages"] if m["role"] == "user"]
        texts = [c["text"] for x in told for c in ([{"type": "text", "text": x}] if isinstance(x, str) else x) if c["type"] == "text"]
        memories, pairs = asked_about({"messages": [None, {"content": "\n".join(texts)}]})
        if not pairs: return "done"
        def said(i, newer):
            new = i % 3 == 0
            return {"quote": memories[newer][:40].strip(), "reason": "The words say so.", "relation": "supersede" if new else "coexist",
                    "kind": "full" if new else None, "confidence": "high"}
        return "StructuredOutput", {p: said(i, newer) for i, (p, (newer, _)) in enumerate(pairs.items())}


def test_as_a_judge_it_has_one_tool_and_sees_no_hook_and_no_instructions(tmp_path):
    "A user with hooks, ours among them, and a CLAUDE.md; a project with the same. `gnc consolidate --llm claude`, and back again."
    repo, ran = tmp_path / "repo", tmp_path / "ran"
    assert gnc("demo", repo).code == 0
    with Judge() as api:
        client = Client(tmp_path, api, repo)
        hooks = {name: [{"hooks": [{"type": "command", "command": f"echo {name} >> {ran}; {client.bin}/gnc hook {ours}"}]}]
                 for name, ours in (("SessionStart", "session-start"), ("Stop", "stop"))}
        for place in (client.home, repo):
            (place / ".claude").mkdir(exist_ok=True)
            (place / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
            (place / ".claude" / "CLAUDE.md").write_text("INSTRUCTIONS-OF-SOMEBODY")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "claude").symlink_to(CLIENT)
        env = client.env | {"PATH": os.pathsep.join([str(tmp_path / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]), "PYTHONPATH": str(ROOT)}
        def run(*words): return gnc_process("--repo", str(repo), *words, cwd=repo, env=env)
        before = {r["id"] for r in run("review", "list", "--json").json}
        done = run("consolidate", "--llm", "claude", "--json")
        most = sum(map(int, re.findall(r"claude gets at most (\d+) calls?", done.err)))
        used, n = done.json["llm"], len(api.bodies)
        assert done.code == 0 and 3 <= used["calls"] == n <= most, done.err
        assert used["pairs"]["taken"] == used["pairs"]["asked"] > 0 and used["cost"] > 0 and not used["failures"]
        for body in api.bodies:
            text = json.dumps(body)
            # 2.1.332 has a placeholder beside it, which can do nothing
            assert {t["name"] for t in body["tools"]} - {"DeferredToolPlaceholder"} == {"StructuredOutput"} and "haiku" in body["model"]
            assert not any(s in text for s in (OPEN, "INSTRUCTIONS-OF-SOMEBODY", "CLAUDE.md", str(repo))) and "BEGIN DATA" in text
        assert not ran.exists() and done.json["supersessions_detected"] > 0
        assert {r["id"] for r in run("review", "list", "--json").json} != before
        assert run("undo", "last").code == 0 and {r["id"] for r in run("review", "list", "--json").json} == before
        made = json.loads(subprocess.run([str(CLIENT), "-p", "--output-format", "json", "hello"], cwd=repo, env=env, stdin=subprocess.DEVNULL,
                                         capture_output=True, timeout=120).stdout)
        assert ran.exists() and OPEN in json.dumps(api.bodies[n]) and made["type"] == "result"  # The same client without our flags runs them all
