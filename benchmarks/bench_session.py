"""What a session that starts waits for: `gnc hook session-start` beside a bare Python.

    python benchmarks/bench_session.py [n ...]        n = 1,000 and 10,000 memories unless told

CPU time of whole processes with their children, median of 21, the two run in turn. 200 summaries, or as many as a run finds if those are more.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from generate import generate

from git_notes_consolidation.store.writer import append
from git_notes_consolidation.store.state import fold
from git_notes_consolidation.store.git import git, open_repo
from git_notes_consolidation.store.events import read_events, summary_append
from git_notes_consolidation.store.reader import write_memories
from git_notes_consolidation.store.events import Append
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.session.prepared import prepare

RUN = ("consolidate", "--yes")  # Four hundred titles over and over: a sixth of the memories are replaced, which the guard would stop
BARE = [sys.executable, "-c", "pass"]
HOOK = [sys.executable, "-c", "from git_notes_consolidation.apps.entry import main; main()", "hook", "session-start"]


def gnc(home: Path, *args: str) -> None:
    "One `gnc`, in a process of its own."
    code = "from git_notes_consolidation.apps.entry import main; main()"
    subprocess.run([sys.executable, "-c", code, "--repo", str(home), "--now", "2026-11-01", "--json", *args], stdout=subprocess.DEVNULL, check=True)


def cpu(command: list[str], said: str = "") -> float:
    "CPU milliseconds of a process and its children."
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=said.encode(), stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def with_summaries(home: Path, wanted: int) -> int:
    "More summaries of the same kind, until there are as many as wanted; how many there are."
    repo = open_repo(home)
    there = list(fold(read_events(repo)).summaries.values())
    more = [replace(there[i % len(there)], id=f"sum_{i:026d}", title=f"{there[i % len(there)].title} {i}") for i in range(wanted - len(there))]
    if more:
        at = git(home, "rev-parse", "HEAD").decode().strip()
        run = Append("runs", at, {"kind": "run", "id": "run_more", "at": SAMPLE_NOW.isoformat(), "counts": {}})
        append(repo, lambda e: [*(summary_append(at, x, "run_more") for x in more), run], SAMPLE_NOW)
        prepare(repo)
    return len(there) + len(more)


def main(sizes: list[int]) -> None:
    print("| memories | summaries | bare Python ms | hook ms | ratio | block |\n|---|---|---|---|---|---|")
    for n in sizes:
        with tempfile.TemporaryDirectory() as tmp:
            home = Path(tmp)
            git(home, "init", "-q", "-b", "main")
            write_memories(open_repo(home), generate(n))
            gnc(home, *RUN)
            many, event = with_summaries(home, 200), json.dumps({"cwd": str(home), "source": "startup", "session_id": "s"})
            said = subprocess.run(HOOK, input=event, capture_output=True, encoding="utf-8", check=True).stdout
            block = json.loads(said)["hookSpecificOutput"]["additionalContext"]
            pairs = [(cpu(BARE), cpu(HOOK, event)) for _ in range(21)]
            bare, hook = (statistics.median(x) for x in zip(*pairs))
            print(f"| {n:,} | {many} | {bare:.1f} | {hook:.1f} | {hook / bare:.2f} | {len(block)} characters |", flush=True)


if __name__ == "__main__":
    os.environ.pop("TIKTOKEN_CACHE_DIR", None)
    main([int(x) for x in sys.argv[1:]] or [1_000, 10_000])
