"""For tests: the command line and the service in one call."""
import contextlib
import io
import json
import subprocess
import sys
from typing import NamedTuple

from helpers import add_memories, git

from git_notes_consolidation.apps.cli import program as cli
from git_notes_consolidation.apps.cli import program as apps_program
from git_notes_consolidation.recall import service as recall
from git_notes_consolidation.consolidation import stores as consolidation_stores
from git_notes_consolidation.consolidation import service
from git_notes_consolidation.consolidation import scan as consolidation_scan
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.state import fold
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.events import read_events
from git_notes_consolidation.store.reader import write_memories

RECALL = load_settings({"max_change": 1.0}, env={})
COMMAND = [sys.executable, "-c", "from git_notes_consolidation.apps.entry import main; main()"]


class Said(NamedTuple):
    "How a command ended and what it printed."
    code: int
    out: str
    err: str

    @property
    def json(self): return json.loads(self.out)


def gnc(*args, repo=None, now=SAMPLE_NOW, width=240):
    "A command in this process."
    where = [*(["--repo", str(repo)] if repo else []), *(["--now", now.isoformat()] if now and "--now" not in args else [])]
    cli.Call.out.width = width
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = apps_program.main([*where, *map(str, args)])
    return Said(code, out.getvalue(), err.getvalue())


def gnc_process(*args, **kw):
    "A command in a process of its own."
    done = subprocess.run([*COMMAND, *map(str, args)], capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL, **kw)
    return Said(done.returncode, done.stdout, done.stderr)


def new_repo(path, memories=(), *options):
    "A repository of nothing but memories."
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "--quiet", "--template=", "--initial-branch=main", *options)
    if memories: add_memories(path, memories)
    return path


def made(path, memories):
    "A repository with real commits that the memories hang on."
    write_memories(open_repo(new_repo(path)), memories)
    return path


def serve(home, clock=None, **settings):
    "The service, whatever the environment says."
    s = consolidation_stores.open_service(home, load_settings(settings, env={}))
    return service.replace(s, clock=lambda: clock or SAMPLE_NOW)


def run(home, now=SAMPLE_NOW, full=False, scope=consolidation_scan.Scope(), **settings):
    return service.run(serve(home, **settings), now, full=full, scope=scope)
def state_of(home): return fold(read_events(open_repo(home)))


def ask(home, **kw): return recall.open_recall(home, RECALL, **{"embedder": LexicalEmbedder(), "clock": lambda: SAMPLE_NOW} | kw)
def ids(results): return [r.id for r in results]
def shown(results): return [i for r in results for i in (r.id, *r.stands_for)]


def holds(state):
    "What a state says, whichever runs have said it, and when: tiers below the one that all begin in, edges, summaries and open questions."
    edges = {(e.source_id, e.target_id, e.edge_type.value, e.kind, e.code, e.span, e.by) for e in state.edges.values()}
    summaries = {i: (x.title, x.summary, x.key_facts, x.decisions, x.superseded_facts, x.source_memory_ids, x.quotes) for i, x in state.summaries.items()}
    return {i: r["tier"] for i, r in state.tiers.items() if r["tier"] != "hot"}, edges, summaries, set(state.reviews)


def files(path):
    "Every file under a directory with its contents, lock files and all; what nothing was written to stays equal."
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in path.rglob("*")}
