"""A whole process on many memories: the first run, and one with nothing to do.

    python benchmarks/bench_pipeline.py [n]        n = 10,000 unless told

Each line is a process of its own (`gnc consolidate`), imports and lexical embeddings included.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from generate import generate

from git_notes_consolidation.store.git import git, open_repo
from git_notes_consolidation.store.reader import write_memories


RUN = ("consolidate", "--yes")  # Four hundred titles over and over: a sixth of the memories are replaced, which the guard would stop


def gnc(home: Path, *args: str) -> tuple[float, float, float, dict]:
    "Wall seconds, CPU seconds, peak MB and the report of one `gnc`."
    code = "import sys; from git_notes_consolidation.apps.entry import main; main()"
    begin = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", code, "--repo", str(home), "--now", "2026-11-01", "--json", *args], stdout=subprocess.PIPE)
    assert child.stdout is not None
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status: raise SystemExit(f"gnc {' '.join(args)} failed: {out.decode()[:300]}")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, json.loads(out)


def main(n: int) -> None:
    with tempfile.TemporaryDirectory() as tmp:
        home = Path(tmp)
        git(home, "init", "-q", "-b", "main")
        write_memories(open_repo(home), generate(n))
        print(f"{n:,} memories\n\n| run | wall s | CPU s | peak MB | what |\n|---|---|---|---|---|")
        runs = {"first": RUN, "nothing to do": RUN, "a day later": ("--now", "2026-11-02", *RUN),
                "everything again": ("--now", "2026-11-02", *RUN, "--full"), "status": ("status",)}
        for name, args in runs.items():
            wall, cpu, peak, r = gnc(home, *args)
            done = {"supersessions": r.get("supersessions_detected"), "clusters": r.get("clusters_found"), "moves": len(r.get("tier_transitions", ()))}
            what = ", ".join(f"{n} {k}" for k, n in done.items() if n) or "nothing"
            print(f"| {name} | {wall:.1f} | {cpu:.1f} | {peak:.0f} | {what} |", flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
