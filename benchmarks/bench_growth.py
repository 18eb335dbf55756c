"""How much the repository grows with each changed memory of a run, after `git gc`; and what `gnc compact` gives back.

    python benchmarks/bench_growth.py [runs] [changes] [memories]      100 runs that change 50 of 1,000 memories unless told
"""
import random
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from git_notes_consolidation.store import compact as compacting
from git_notes_consolidation.core.memory import SAMPLE_NOW, digest, mem
from git_notes_consolidation.core.models import MemoryTier
from git_notes_consolidation.store.events import Append, Events, our_tips, tier_append
from git_notes_consolidation.store.git import Repo, git, open_repo
from git_notes_consolidation.store.writer import write

TIERS = [*MemoryTier]


def packed(repo: Repo) -> int:
    "Bytes of all objects after a gc that waits for nothing, indexes included."
    git(repo.path, "reflog", "expire", "--expire=now", "--all")
    git(repo.path, "gc", "--quiet", "--prune=now")
    return sum(f.stat().st_size for f in (repo.common_dir / "objects").rglob("*") if f.is_file())


def work(repo: Repo, runs: int, changes: int, memories: int) -> None:
    "Runs, a day apart, each of which moves some memories to another tier, for a reason of the usual length."
    rng = random.Random(7)
    there = [mem(f"memory {i}", now=SAMPLE_NOW) for i in range(memories)]
    there = [m.__class__(**{**vars(m), "commit_sha": f"{rng.getrandbits(160):040x}"}) for m in there]
    for n in range(runs):
        run, at = digest("run", n), SAMPLE_NOW + timedelta(days=n)
        was = rng.choices(TIERS, k=changes)
        todo = [tier_append(m, t, rng.choice([x for x in TIERS if x != t]), f"score {rng.random():.3f} is below warm 0.35", rng.random(), run)
                for m, t in zip(rng.sample(there, changes), was)]
        counts = {"tier_transitions": changes, "memories_processed": memories}
        log = {"kind": "run", "id": run, "at": at.isoformat(), "config": digest("cfg", 1), "counts": counts}
        before = Events((), (), our_tips(repo))
        before.__dict__["seq"] = n  # What reading everything would say
        write(repo, before, [*todo, Append("runs", there[-1].commit_sha, log)], at)


def main(runs: int, changes: int, memories: int) -> None:
    with tempfile.TemporaryDirectory() as tmp:
        home = Path(tmp) / "repo"
        home.mkdir()
        git(home, "init", "-q", "-b", "main")
        git(home, "config", "gc.auto", "0")
        repo = open_repo(home)
        empty = packed(repo)
        work(repo, runs, changes, memories)
        loose = sum(f.stat().st_size for f in (repo.common_dir / "objects").rglob("*") if f.is_file())
        grown = packed(repo) - empty
        rows = [("written", loose - empty), ("after git gc", grown)]
        end = SAMPLE_NOW + timedelta(days=runs)
        compacting.compact(repo, end - timedelta(days=10), end, bundle=Path(tmp) / "history.bundle")
        rows.append(("… and gnc compact --horizon 10d --bundle FILE", packed(repo) - empty))
        print(f"{runs:,} runs, {changes} of {memories:,} memories changed in each\n\n| | kB | bytes a changed memory a run |\n|---|---|---|")
        for what, size in rows: print(f"| {what} | {size / 1000:,.0f} | {size / runs / changes:.0f} |")


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:4]), *(100, 50, 1_000)[len(sys.argv) - 1:])
