"""Claude Code and others as language models, with a stand-in program on the PATH that behaves as the real one does, traps included."""
import json
import os
import sys
import time
from pathlib import Path

import pytest
from calls import gnc, gnc_process, new_repo
from llm_clients import GOOD, SCHEMA, ask, parse

from git_notes_consolidation.consolidation import relate as consolidation_relate, service, stores as consolidation_stores
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, sample_memories
from git_notes_consolidation.llm.calls import command
from git_notes_consolidation.llm.providers import Provider, outside, providers

STAND_IN = """#!{python}
import json, os, re, subprocess, sys, time
from pathlib import Path
here, asked = Path({here!r}), sys.stdin.read()
mode = (here / "mode").read_text()
words = sys.argv[1:]
system = Path(words[words.index("--system-prompt-file") + 1]).read_text() if "--system-prompt-file" in words else ""
with open(here / "log", "a") as f:
    f.write(json.dumps({{"words": words, "asked": asked, "system": system, "env": dict(os.environ), "there": os.listdir(), "cwd": os.getcwd()}}) + "\\n")
def end(code=0, **more):
    usage = {{"input_tokens": 500, "cache_creation_input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 70}}
    print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "usage": usage, "total_cost_usd": 0.0123,
                       "modelUsage": {{"claude-haiku-4-5": {{}}}}}} | more))
    sys.exit(code)
if mode == "text": end(result="They say the same.")
if mode == "login": end(1, result="Not logged in \\u00b7 Please run /login", usage={{}}, total_cost_usd=0)
if mode == "shape": end(1, subtype="error_max_structured_output_retries", is_error=True)
if mode == "budget": end(1, subtype="error_max_budget_usd", is_error=True)
if mode == "limit": end(1, result="Claude AI usage limit reached|1790000000", is_error=True)
if mode == "garbage": print("{{" * 2000); sys.exit(0)
if mode == "old": print("error: unknown option '--safe-mode'", file=sys.stderr); sys.exit(1)
if mode == "endless":
    while True: print("x" * 100_000)
if mode == "sleep":
    child = subprocess.Popen(["sleep", "300"])
    (here / "child").write_text(str(child.pid))
    time.sleep(300)
if mode == "leaves":
    child = subprocess.Popen(["sleep", "300"])
    (here / "child").write_text(str(child.pid))
if mode == "judge":
    pairs = re.findall(r"^(P\\d+): newer", asked, re.M)
    end(structured_output={{p: dict(quote=None, reason="Both hold.", relation="coexist", kind=None, confidence="high") for p in pairs}})
end(structured_output=json.loads({good!r}))
"""


class Program:
    "The stand-in, and what it was started with."
    def __init__(self, place, name="claude"):
        self.place, self.bin = place, place / "bin"
        self.bin.mkdir(parents=True)
        (self.bin / name).write_text(STAND_IN.format(python=sys.executable, here=str(place), good=GOOD))
        (self.bin / name).chmod(0o755)
        self("answer")

    def __call__(self, mode): (self.place / "mode").write_text(mode)

    @property
    def calls(self): return [json.loads(line) for line in (self.place / "log").read_text().splitlines()] if (self.place / "log").exists() else []
    @property
    def path(self): return f"{self.bin}:/usr/bin:/bin"
    @property
    def provider(self): return Provider("claude", "", ("haiku",), path=self.path)

    def child_is_gone(self, seconds=5.0):
        end = time.monotonic() + seconds
        stat = Path("/proc", (self.place / "child").read_text(), "stat")
        while time.monotonic() < end:
            if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z": return True
            time.sleep(0.05)
        return False


@pytest.fixture
def program(tmp_path): return Program(tmp_path / "away")


# One call


def test_a_reply_is_parsed_billed_and_kept(program, asking, tmp_path):
    client = asking(program.provider, cache_path=tmp_path / "c.db")
    a = ask(client)
    assert a.value == parse(GOOD) and (a.provider, a.model, a.calls, a.tokens_in, a.tokens_out) == ("claude", "claude-haiku-4-5", 1, 600, 70)
    assert a.cost == pytest.approx(0.0123) and client.ledger.spent() == (670, pytest.approx(0.0123))
    assert ask(client).cached and len(program.calls) == 1


def test_it_is_started_with_the_locks_and_in_an_empty_folder(program, asking, monkeypatch, tmp_path):
    for name, value in (("GIT_DIR", "/x/.git"), ("MEMORY_CONSOLIDATION_LLM_API_KEY", "ours"), ("ANTHROPIC_API_KEY", "its own"), ("HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    ask(asking(program.provider, llm_daily_usd=0.5))
    call, = program.calls
    env, words = call["env"], call["words"]
    assert {env[k] for k in ("HOOK_SESSION_START_SUMMARIES_ENABLED", "HOOK_CONSOLIDATION_ENABLED")} == {"false"} and env["GNC_JUDGING"] == "1"
    assert (env["PATH"], env["ANTHROPIC_API_KEY"], env["HOME"]) == (program.path, "its own", str(tmp_path))
    assert "GIT_DIR" not in env and "ours" not in env.values() and call["there"] == [] and not Path(call["cwd"]).exists()
    assert (call["system"], call["asked"]) == ("Judge.", "Do M1 and M2 say the same?")
    assert words == command("claude", "", "haiku", SCHEMA, Path(words[words.index("--system-prompt-file") + 1]).parent, 0.5)[1:]


@pytest.mark.parametrize(("mode", "failure", "calls", "said"), [
    ("text", "schema", 2, "text instead of the tool StructuredOutput"), ("login", "auth", 1, "start claude once and type /login"),
    ("shape", "schema", 2, "shape"), ("budget", "budget", 1, "dollars are used up"), ("limit", "quota", 1, "limit reached"),
    ("garbage", "broken", 2, "{{"), ("old", "connection", 1, "update claude"), ("endless", "broken", 2, "xx")])
def test_what_is_no_reply_is_a_failure_that_says_so(program, asking, mode, failure, calls, said):
    program(mode)
    client = asking(program.provider)
    a = ask(client)
    assert (a.value, a.failure, a.calls) == (None, failure, calls) and said in a.note
    assert len(program.calls) == calls and not any("until its key" in n for n in client.usage().notes)
    if mode in ("text", "shape", "budget", "limit"): assert client.ledger.spent()[1] == pytest.approx(0.0123 * calls)
    if mode == "login": assert client.ledger.spent() == (0, 0.0) and "/login" in client.usage().notes[0]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="it looks for a process in /proc")
def test_one_that_sleeps_for_ever_is_ended_with_what_it_started(program, asking):
    program("sleep")
    begin = time.monotonic()
    a = ask(asking(program.provider, llm_timeout_s=1.5))
    assert (a.failure, a.calls) == ("timeout", 1) and time.monotonic() - begin < 8 and program.child_is_gone()


@pytest.mark.parametrize("words", [("hook", "session-start"), ("hook", "stop"), ("--repo", ".", "hook", "stop"), ("consolidate", "--if-due")])
def test_below_a_judge_no_hook_does_anything(tmp_path, words):
    home = new_repo(tmp_path / "r", sample_memories()[:5])
    done = gnc_process(*words, cwd=home, env={**os.environ, "GNC_JUDGING": "1"})
    assert (done.code, done.json, done.err) == (0, {"continue": True}, "") and not (home / ".git" / "gnc").exists()


# Who may be asked


def found(env, **settings): return [p.name for p in providers(load_settings(settings, env=env).config, env)[0]]


def test_only_its_own_name_in_our_setting_starts_it(program):
    env = {"PATH": program.path}
    assert found(env, llm_provider="claude") == found(env | {"MEMORY_CONSOLIDATION_LLM_PROVIDER": "claude"}) == ["claude"]
    assert found(env) == found(env, llm_provider="auto") == found(env | {"MEMORY_LLM_PROVIDER": "claude"}) == []
    assert found(env, llm_provider="claude", llm_local_only=True) == found(env, llm_provider="codex") == []


def test_a_repository_neither_names_it_nor_brings_it(tmp_path, monkeypatch):
    home = new_repo(tmp_path / "r", sample_memories()[:5])
    evil = Program(home / "tools")
    (home / "gnc.toml").write_text('llm_provider = "claude"\nllm_all = true\n')
    settings = load_settings(env={}, file=home / "gnc.toml")
    assert settings.config.llm_provider == "off" and not settings.config.llm_all and len(settings.remarks) == 2
    monkeypatch.chdir(home)
    (tmp_path / "link").symlink_to(evil.bin)
    monkeypatch.setenv("PATH", f"{evil.bin}:tools/bin:{tmp_path / 'link'}::.:/usr/bin:/bin")
    assert outside(os.environ, home)["PATH"] == "/usr/bin:/bin"
    done = gnc("consolidate", "--llm", "claude", repo=home)
    assert done.code == 0 and "claude is skipped: there is no such program" in " ".join(done.out.split()) and "npm install" in done.out
    assert evil.calls == []


# A run


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    "Half of the sample, consolidated without a model."
    home = new_repo(tmp_path_factory.mktemp("programs") / "year", sample_memories()[::2])
    service.run(consolidation_stores.open_service(home, load_settings({"max_change": 1.0}, env={})), SAMPLE_NOW)
    return home


def test_a_run_asks_about_open_questions_only_and_says_how_many_calls(year, program, monkeypatch):
    monkeypatch.setenv("PATH", f"{program.path}{os.pathsep}{os.environ['PATH']}")
    program("judge")
    seen, real = [], consolidation_relate._to_ask
    monkeypatch.setattr(consolidation_relate, "_to_ask", lambda *a: seen.append(real(*a)) or seen[-1])
    dry = gnc("consolidate", "--llm", "claude", "--dry-run", repo=year)
    assert dry.code == 0 and program.calls == [] and "claude would get" in dry.err and "a dry run does not start claude" in dry.out
    every = gnc("consolidate", "--llm", "claude", "--dry-run", "--all", repo=year)
    assert program.calls == [] and 0 < len(seen[0]) < len(seen[1]) / 3 and len(every.err.splitlines()) > len(dry.err.splitlines()) == 1
    done = gnc("consolidate", "--llm", "claude", "--json", repo=year)
    calls = -(-len(seen[0]) // 30)
    assert done.err.strip() == dry.err.strip().replace("would get", "gets") + ", with your login or key" and f"{calls} call" in done.err
    asked = [line for c in program.calls for line in c["asked"].splitlines() if line.startswith("P") and ": newer " in line]
    assert len(program.calls) == calls == done.json["llm"]["calls"] and len(asked) == len(seen[0]) == done.json["llm"]["pairs"]["taken"]
    assert "summaries" not in done.json["llm"] and done.json["llm"]["cost"] == pytest.approx(0.0123 * calls)
    again = gnc("consolidate", "--full", "--llm", "claude", "--json", repo=year)
    assert again.json["llm"]["calls"] == 0 and len(program.calls) == calls  # The answers are kept
