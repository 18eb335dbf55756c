"""kill -9 anywhere in a run: what holds afterwards is what held before it or what should hold after it, and the next run completes."""
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from datetime import timedelta
from itertools import combinations
from pathlib import Path

import pytest
from calls import state_of
from git_notes_consolidation.store import git as notes
from git_notes_consolidation.consolidation import service
from git_notes_consolidation.consolidation import stores as consolidation_stores
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.events import REFS, read_events
from git_notes_consolidation.store.git import open_repo
from helpers import ROOT, add_memories, git, refs, story

pytestmark = pytest.mark.slow

EARLIER = SAMPLE_NOW - timedelta(days=15)  # The run before the one that is cut off


def template(home):
    "A repository with a run behind it and new memories since, so that the next run has something to say in each of our refs."
    home.mkdir()
    git(home, "init", "--quiet", "--template=")
    git(home, "config", "fastimport.unpackLimit", "1")  # packs: a few files to copy instead of hundreds
    add_memories(home, [m for m in story() if m.timestamp <= EARLIER])
    consolidate(home, EARLIER)
    add_memories(home, [m for m in story() if m.timestamp > EARLIER])


def consolidate(home, now=SAMPLE_NOW): return service.run(consolidation_stores.open_service(home, load_settings(env={})), now)


def holds(state):
    "Tiers, edges and summaries, whichever run has written them."
    edges = {i: (e.source_id, e.target_id, e.edge_type, e.kind, e.span, e.weight, e.reason) for i, e in state.edges.items()}
    summaries = {i: {k: v for k, v in x.to_dict().items() if k != "consolidation_run_id"} for i, x in state.summaries.items()}
    return {i: (r["tier"], r["from"]) for i, r in state.tiers.items()}, edges, summaries, set(state.reviews)


def die(): os.kill(os.getpid(), signal.SIGKILL)


class Cut:
    "Ways to die in the middle of a run."

    def before(self, n): self.at(n, lambda call: die())
    def after(self, n): self.at(n, lambda call: (call(), die()))

    def at(self, n, then):
        real, count = notes.git, iter(range(10**6))
        def git(*args, **kw):
            def call(): return real(*args, **kw)
            return then(call) if next(count) == n else call()
        replace_everywhere(real, git)

    def refs(self, chosen):
        "Of the transaction over the data refs only these lines are done: git renames one ref after another."
        real = notes.move_refs
        def move(repo, rows, final=False):
            if not any(REFS["meta"] in row for row in rows): return real(repo, rows, final)
            some = [row for row in rows if any(f" {ref} " in row for ref in chosen)]
            if some: real(repo, some, final)
            die()
        replace_everywhere(real, move)

    def inside(self, what):
        "Git itself is killed while it holds the locks of its transaction, and we with it."
        real = notes.git
        def git(*args, **kw):
            try: return real(*args, **kw)
            except notes.RepoError: die()
        replace_everywhere(real, git)


def replace_everywhere(old, new):
    for name, module in list(sys.modules.items()):
        if name.startswith("git_notes_consolidation"):
            for k, v in list(vars(module).items()):
                if v is old: setattr(module, k, new)


def hook(home, state, ref):
    "Kills the git that is about to change (prepared), or has changed (committed), a ref of ours."
    path = home / ".git" / "hooks" / "reference-transaction"
    path.parent.mkdir(exist_ok=True)
    moves = f" [0-9a-f]*[1-9a-f][0-9a-f]* {ref}"  # A ref that is only verified has no new value
    path.write_text(f'#!/bin/sh\n[ "$1" = {state} ] && grep -q "{moves}" && kill -9 $PPID\nexit 0\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def fork(work):
    "Do something in a process of its own; how it ended."
    pid = os.fork()
    if not pid:
        try: work()
        except BaseException: os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def attempt(home, kind, case):
    "One run that is cut off; how it ended."
    trap = hook(home, *case) if kind == "inside" else None
    def work(): getattr(Cut(), kind)(case); consolidate(home)
    ended = fork(work)
    if trap: trap.unlink()
    return ended


def examine(home, old, new, mem, thrice):
    "What is wrong after the cut, and after the next run."
    wrong, now = [], state_of(home)
    if now not in (old, new): wrong.append("neither the old state nor the new")
    if refs(home, "refs/notes/mem/") != mem: wrong.append("memories moved")
    again = consolidate(home)
    if not again.success or holds(state_of(home)) != holds(new): wrong.append(f"the next run comes to something else: {again.errors}")
    if bool(again.changed) != (now != new): wrong.append("the next run does not know what is done")
    if refs(home, "refs/notes/mem/") != mem: wrong.append("memories moved by the next run")
    if [r for r in REFS.values() if (home / ".git" / f"{r}.lock").exists()]: wrong.append("a lock of ours is left")
    if thrice and consolidate(home).changed: wrong.append("a third run finds something to do")
    return wrong, now == new


def cases(kind, home):
    if kind in ("before", "after"): return range(count_processes(home))
    data = [REFS[s] for s in ("meta", "summaries", "edges")]
    if kind == "refs": return [c for n in range(4) for c in combinations(data, n)]
    return [(state, ref) for state in ("prepared", "committed") for ref in (REFS["edges"], REFS["runs"], "refs/gnc/tmp/")]


def count_processes(home):
    "Git processes of a whole run."
    real, calls = notes.git, []
    def git(*args, **kw): calls.append(args); return real(*args, **kw)
    replace_everywhere(real, git)
    consolidate(home)
    replace_everywhere(git, real)
    return len(calls)


def drive(kind, place):
    "Every case of a kind; what came of it, as JSON. In a process without threads, because it forks."
    first, out = place / "template", []
    template(first)
    old, mem = state_of(first), refs(first, "refs/notes/mem/")
    copy(first, place / "reference"); shutil.copytree(place / "reference", place / "counted")
    consolidate(place / "reference")
    new = state_of(place / "reference")
    assert all(a != b for a, b in zip(holds(old)[:3], holds(new)[:3])), "the run must change tiers, edges and summaries"
    assert {s for s, _, r in read_events(open_repo(place / "reference")).records if r.get("run", r["id"]) in new.runs.keys() - old.runs.keys()} == set(REFS)
    for i, case in enumerate(cases(kind, place / "counted")):
        home = copy(first, place / str(i))
        ended = attempt(home, kind, case)
        wrong, done = examine(home, old, new, mem, kind in ("refs", "inside"))
        out.append({"case": str(case), "ended": ended, "done": done, "wrong": wrong})
        shutil.rmtree(home)
    print(json.dumps(out))


def copy(first, to): return Path(shutil.copytree(first, to))


@pytest.mark.parametrize("kind", ["before", "after", "refs", "inside"])
def test_a_run_that_is_killed_has_happened_or_not(kind, tmp_path):
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, __file__, kind, str(tmp_path)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout)
    assert [r for r in results if r["wrong"]] == []
    assert {r["ended"] for r in results} == {-signal.SIGKILL}  # each was really cut off
    assert {r["done"] for r in results} == ({False} if kind == "refs" else {False, True})  # some before the commit point, some after it


if __name__ == "__main__": drive(sys.argv[1], Path(sys.argv[2]))
