"""Writing notes: ours in one stream beside `git notes add`, in one run.

    python benchmarks/bench_notes.py [n]           n = 1,000 notes unless told
"""
import sys
import tempfile
import time
from pathlib import Path

from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.events import Append, read_events
from git_notes_consolidation.store.writer import append
from git_notes_consolidation.store.git import git, open_repo


def objects(home: Path, n: int) -> list[str]:
    "n object ids to annotate."
    stream = b"".join(b"blob\nmark :%d\ndata %d\n%s\n" % (i, len(b"%d" % i), b"%d" % i) for i in range(1, n + 1))
    return git(home, "fast-import", "--quiet", input=stream + b"".join(b"get-mark :%d\n" % i for i in range(1, n + 1))).decode().split()


def main(n: int) -> None:
    with tempfile.TemporaryDirectory() as tmp:
        home = Path(tmp)
        git(home, "init", "-q", "-b", "main")
        repo, ids = open_repo(home), objects(home, n)
        line = {"kind": "tier", "from": "hot", "tier": "cold", "reason": "score 0.300 is below warm 0.35", "score": 0.3, "run": "run_bench"}
        begin = time.perf_counter()
        records = [Append("meta", i, line | {"memory": f"mem_{i}"}) for i in ids]
        append(repo, lambda e: [*records, Append("runs", ids[0], {"kind": "run", "id": "run_bench"})], SAMPLE_NOW)
        ours = time.perf_counter() - begin
        begin = time.perf_counter()
        read = len(read_events(repo).records)
        reading = time.perf_counter() - begin
        begin = time.perf_counter()
        who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
        for i in ids: git(home, *who, "notes", "--ref=plain", "add", "-m", "- " + "x" * 150, i)
        plain = time.perf_counter() - begin
        rows = (("one append", ours), ("git notes add, each", plain), ("reading and decoding all", reading))
        print(f"| {n:,} notes | s |\n|---|---|\n" + "\n".join(f"| {what} | {s:.2f} |" for what, s in rows))
        print(f"\nratio {plain / ours:.0f}; records read back: {read}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
