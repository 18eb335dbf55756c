"""`remember`, one fact after another, in a store of n memories that was consolidated once.

    python benchmarks/bench_writing.py [n ...]        n = 1,000 and 10,000 unless told

Wall and CPU milliseconds of one call, median and worst of 40 after the first, which reads the repository; children included. Half of the
facts are new, the others repeat one of the last ten. Beside it, in the same process and in turn, five of git's own processes that do nothing.
"""
import random
import resource
import sys
import tempfile
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median

from bench_session import RUN, gnc
from generate import generate

from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.git import git, open_repo
from git_notes_consolidation.store.reader import write_memories
from git_notes_consolidation.writing.write import open_writing


def cpu() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(1000 * (x.ru_utime + x.ru_stime) for x in both)


def timed(call) -> tuple[float, float]:
    "Wall and CPU milliseconds."
    begin, before = time.perf_counter(), cpu()
    call()
    return 1000 * (time.perf_counter() - begin), cpu() - before


def measured(home: Path, calls: int = 40) -> tuple[float, list[float], list[float], list[float]]:
    "The first call's wall time; then wall and CPU time of each, and of bare git."
    day, r = iter(range(10**6)), random.Random(7)
    w = open_writing(home, clock=lambda: SAMPLE_NOW + timedelta(minutes=next(day)))
    texts = [f"Worker {r.choice('abcdefgh')}{i} of the {r.choice(['queue', 'cache', 'index', 'mail'])} gets {r.randint(2, 99)} MB" for i in range(calls)]
    first = timed(partial(w.remember, "The first fact of all"))[0]
    found, bare = [], []
    for i in range(calls):
        found.append(timed(partial(w.remember, texts[i // 2] if i % 2 else texts[i])))
        bare.append(timed(lambda: [git(home, "--version") for _ in range(5)])[0])
    wall, used = zip(*found)
    return first, [*wall], [*used], bare


def main(sizes: list[int]) -> None:
    print("| memories | first ms | wall ms, median | worst | CPU ms, median | five bare git processes ms |\n|---|---|---|---|---|---|")
    for n in sizes:
        with tempfile.TemporaryDirectory() as tmp:
            home = Path(tmp)
            git(home, "init", "-q", "-b", "main")
            write_memories(open_repo(home), generate(n))
            gnc(home, *RUN)
            first, wall, used, bare = measured(home)
            print(f"| {n:,} | {first:.0f} | {median(wall):.0f} | {max(wall):.0f} | {median(used):.0f} | {median(bare):.0f} |", flush=True)


if __name__ == "__main__": main([int(x) for x in sys.argv[1:]] or [1_000, 10_000])
