"""A run that asks a language model, over real HTTP, from a server that takes a second for each answer.

    python benchmarks/bench_llm.py [n]        n = 1,000 memories unless told

The server knows a few answers and no more: what is measured is how many questions there are, how many at once, and what a second run asks.
"""
import os
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

from generate import generate

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from llm_servers import FaultyServer, sensible  # noqa: E402

from git_notes_consolidation.consolidation import stores as service
from git_notes_consolidation.consolidation import service as consolidation_service
from git_notes_consolidation.consolidation import view as consolidation_view  # noqa: E402
from git_notes_consolidation.core.loading import load_settings  # noqa: E402
from git_notes_consolidation.core.memory import SAMPLE_NOW  # noqa: E402
from git_notes_consolidation.store.git import git, open_repo
from git_notes_consolidation.store.reader import write_memories  # noqa: E402


def main(n: int) -> None:
    with tempfile.TemporaryDirectory() as tmp, FaultyServer(brain=sensible(), latency=0.1) as server:
        home = Path(tmp)
        git(home, "init", "-q", "-b", "main")
        write_memories(open_repo(home), generate(n))
        os.environ["MEMORY_CONSOLIDATION_LLM_BASE_URL"] = server.url
        settings = load_settings({"llm_provider": "lmstudio", "max_change": 1.0})
        print(f"{n:,} memories, a tenth of a second an answer, one call at a time\n")
        print("| run | wall s | calls | at once | answered | from the cache | without an answer |\n|---|---|---|---|---|---|---|")
        for name, full in (("first", False), ("second", False), ("everything again", True)):
            begin, before = time.perf_counter(), server.calls
            s = service.open_service(home, settings)
            u = consolidation_service.run(s, SAMPLE_NOW, full=full).llm
            print(f"| {name} | {time.perf_counter() - begin:.1f} | {server.calls - before} | {server.peak} | {u.get('answered', 0)} | {u.get('cached', 0)} "
                  f"| {sum(u.get('failures', {}).values())} |", flush=True)
        groups = [x.source_memory_ids for x in consolidation_view.view(open_repo(home)).state.summaries.values()]
        print(f"\nAll pairs within clusters, one in a call, as the designs have it: {sum(1 for g in groups for _ in combinations(g, 2)):,} calls; "
              f"all pairs of all memories: {n * (n - 1) // 2:,}.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
