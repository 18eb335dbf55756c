"""One move of a slider in the tuning panel: the whole callback, with every figure updated.

    python benchmarks/bench_tuning.py [n]        n = 10,000 unless told

n memories, a fifth of them repeats, a third read since, a tenth replaced. Prepared once; then each slider is moved to and fro. A move is what a hand sets off
in the kernel: from the slider's new value to the messages for the browser, all seven figures and the line of text.
"""
import random
import resource
import statistics
import sys
import time
from datetime import timedelta
from functools import partial

import numpy as np
from generate import generate

from git_notes_consolidation.similarity.linkage import dendrogram
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.core.models import MemoryMetadata
from git_notes_consolidation.research.tuning_panel import Panel
from git_notes_consolidation.research.tuning_figures import FIGURES, changes
from git_notes_consolidation.retention.tiers import retention_frame
from git_notes_consolidation.research.tuning import Prepared, answer, tiers, merge_heights

FROM_TO = {"retention_half_life_days": (90.0, 30.0), "importance_half_life_days": (730.0, 365.0), "recency_weight": (6.0, 4.0), "hot_threshold": (0.7, 0.6),
           "warm_threshold": (0.4, 0.35), "archive_threshold": (0.2, 0.25), "grace_days": (30.0, 7.0), "consolidation_threshold": (0.1, 0.6, 0.25),
           "min_cluster_size": (5, 3), "max_cluster_size": (50, 20), "context_token_budget": (6000, 4000)}


def timed(f, clock=time.perf_counter):
    "Milliseconds of a call, and its answer."
    begin = clock()
    found = f()
    return 1000 * (clock() - begin), found


def known(memories, seed=3):
    "What might be known of them."
    rng, out = random.Random(seed), {}
    for m in memories:
        read = rng.random() < 1 / 3
        out[m.id] = MemoryMetadata(m.id, activation_count=rng.randrange(1, 9) if read else 0,
                                   last_accessed=SAMPLE_NOW - timedelta(days=90 * rng.random()) if read else None,
                                   superseded_by="mem_new" if rng.random() < 0.1 else None)
    return out


def main(n=10_000):
    memories = generate(n)
    facts, config, own = known(memories), SubconsciousnessConfig(), LexicalEmbedder.cluster_threshold
    spent, p = timed(lambda: Prepared.of(memories, facts, SAMPLE_NOW))
    print(f"{n:,} memories\n\n| once | s |\n|---|---|\n| columns | {spent / 1000:.2f} |")
    spent, X = timed(lambda: LexicalEmbedder().embed([*dict.fromkeys(m.text for m in memories)]))
    print(f"| vectors of {len(X):,} different texts | {spent / 1000:.1f} |")
    spent, wall = timed(lambda: merge_heights(dendrogram(X)))
    before = tiers(p, config.retention)
    print(f"| their tree | {spent / 1000:.1f} |")
    spent, panel = timed(lambda: Panel(p, config, wall, own, before))
    _ = [panel.figures[name] for name in FIGURES]  # As if every tab had been opened
    print(f"| the panel | {spent / 1000:.2f} |\n\n| one move of | median ms | worst ms | median ms of processor |\n|---|---|---|---|", flush=True)
    everything, worked = [], []
    for name, places in FROM_TO.items():
        moves = [timed(lambda move=partial(setattr, panel.knobs[name], "value", place): timed(move, time.process_time)[0]) for place in places * 10]
        took, cpu = zip(*moves)
        everything += took
        worked += cpu
        print(f"| {name} | {statistics.median(took):.0f} | {max(took):.0f} | {statistics.median(cpu):.0f} |", flush=True)
    print(f"| **all** | **{statistics.median(everything):.0f}** | **{max(everything):.0f}** | **{statistics.median(worked):.0f}** |\n\n"
          "| of it | median ms |\n|---|---|")
    said = answer(p, config, before, wall, own)
    for label, f in (("tiers of all memories", lambda: tiers(p, config.retention)), ("the whole answer", lambda: answer(p, config, before, wall, own)),
                     ("what the figures change", lambda: changes(said, config, panel.now)),
                     ("for comparison: retention_frame", lambda: retention_frame(memories, facts, config.retention, SAMPLE_NOW))):
        print(f"| {label} | {statistics.median(timed(f)[0] for _ in range(10)):.1f} |", flush=True)
    exact = retention_frame(memories, facts, config.retention, SAMPLE_NOW)["tier"]
    same = np.array_equal(tiers(p, config.retention), [list(panel.now).index(t) for t in exact])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    print(f"\nTiers equal to retention_frame's: {'yes' if same else 'NO'}. Peak memory {most:,.0f} MB")
    return int(not same or statistics.median(everything) > 100)


if __name__ == "__main__": sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
