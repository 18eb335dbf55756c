"""Asking the memory: in a process that has asked before, and as `gnc recall`.

    python benchmarks/bench_recall.py [n] [large]        n = 10,000 and 100,000 unless told

n memories lie in a real repository and have been consolidated. The large number only stands in the cache's tables, with tiers, repeats and replacements
drawn at random: a search reads nothing else. Lexical throughout; each figure is the median of all questions, and the worst.
"""
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from generate import generate

from git_notes_consolidation.store import cache as index
from git_notes_consolidation.store import tables as store_tables
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.core.models import MemoryMetadata, MemoryTier
from git_notes_consolidation.store.state import State
from git_notes_consolidation.store.git import git, open_repo
from git_notes_consolidation.store.reader import write_memories
from git_notes_consolidation.recall.service import open_recall, refs_key

CODE = "from git_notes_consolidation.apps.entry import main; main()"
QUESTIONS = [json.loads(line)["question"] for line in (files("git_notes_consolidation") / "data" / "sample_questions.jsonl").read_text().splitlines()]
SETTINGS = load_settings({}, env={})


def gnc(home: Path, *args: str) -> float:
    "Wall seconds of one `gnc`, without MiniLM, and with its bytecode kept as an installed program has it."
    env = {k: v for k, v in os.environ.items() if k not in ("MEMORY_EMBEDDING_MODEL_DIR", "PYTHONDONTWRITEBYTECODE")} | {"HF_HOME": str(home / "none")}
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", CODE, "--repo", str(home), "--now", "2026-11-01", *args], check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - begin


def warm(home: Path) -> None:
    "Each question in each mode, in this process."
    service = open_recall(home, SETTINGS, embedder=LexicalEmbedder(), clock=lambda: SAMPLE_NOW)
    begin = time.perf_counter()
    service.search("anything", count=False)
    print(f"| first search of a process, tables filled | {1000 * (time.perf_counter() - begin):.0f} | |")
    for mode in ("standard", "exhaustive"):
        took = []
        for q in QUESTIONS:
            begin = time.perf_counter()
            service.search(q, mode=mode, count=False)
            took.append(1000 * (time.perf_counter() - begin))
        print(f"| {mode}, warm | {statistics.median(took):.0f} | {max(took):.0f} |", flush=True)
    begin = time.perf_counter()
    service.search("*", count=False)
    print(f"| `*`, warm | {1000 * (time.perf_counter() - begin):.0f} | |")


def small(n: int) -> None:
    "A real repository, and processes."
    with tempfile.TemporaryDirectory() as tmp:
        home = Path(tmp)
        git(home, "init", "-q", "-b", "main")
        write_memories(open_repo(home), generate(n))
        gnc(home, "consolidate", "--yes")
        print(f"{n:,} memories, consolidated\n\n| | median ms | worst ms |\n|---|---|---|")
        gnc(home, "recall", QUESTIONS[0])  # The first one makes the summaries' vectors
        took = [1000 * gnc(home, "recall", q) for q in QUESTIONS[:9]]
        print(f"| `gnc recall`, a process | {statistics.median(took):.0f} | {max(took):.0f} |")
        took = [1000 * gnc(home, "--help") for _ in range(5)]
        print(f"| `gnc --help`, a process | {statistics.median(took):.0f} | {max(took):.0f} |", flush=True)
        warm(home)
        index.index_path(open_repo(home)).unlink()
        print(f"| `gnc recall` after the cache was deleted | {1000 * gnc(home, 'recall', QUESTIONS[0]):.0f} | |\n", flush=True)


def large(n: int) -> None:
    "Tables alone."
    with tempfile.TemporaryDirectory() as tmp:
        home, rng = Path(tmp), random.Random(7)
        git(home, "init", "-q", "-b", "main")
        repo, memories = open_repo(home), generate(n)
        first, last = dict[str, str](), memories[-1].id
        stands = {m.id: first.setdefault(m.text, m.id) for m in memories}
        def known(i: str) -> MemoryMetadata:
            d = MemoryMetadata(i, rng.choices([*MemoryTier], [1, 4, 6, 9])[0], duplicate_of=stands[i] if stands[i] != i else None)
            return replace(d, superseded_by=last) if rng.random() < 0.1 else d
        with closing(index.open_index(repo)) as conn:
            store_tables.refresh(conn, memories, {m.id: known(m.id) for m in memories}, State(), stands)
            index.remember(conn, "tables", refs_key(repo))
            index.embed_cached(conn, memories, LexicalEmbedder())
        print(f"{n:,} memories, tables and vectors in the cache\n\n| | median ms | worst ms |\n|---|---|---|")
        warm(home)
        print(f"\nPeak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    small(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    large(int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
