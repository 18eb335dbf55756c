"""A fleet's parts, for an estimate of how far it would go: python benchmarks/bench_fleet.py [n] [workers]

Measured on this machine, in one run: what a tile costs where it is worked on, what it weighs on the wire, how fast a scheduler on loopback takes
it, and what the coordinator does alone (reading notes and vectors, putting labels together, planning, writing). The last table is arithmetic, an
estimate and not a measurement: the time for n memories on w workers, if the wire carries `WIRE` bytes a second and every worker is a core like
this one's.
"""
from __future__ import annotations
import os, subprocess, sys, tempfile, time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np

WIRE = 1.0e9  # Bytes a second out of the coordinator, 10 Gbit/s nearly filled
DIM = 1024


def vectors(n: int, seed: int = 0) -> np.ndarray:
    "Rounded unit rows, as the lexical embedder makes them."
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, DIM)).astype(np.float32)
    X += 1.2 * rng.normal(size=(max(1, n // 20), DIM)).astype(np.float32)[rng.integers(0, max(1, n // 20), n)]
    return (np.round(X / np.linalg.norm(X, axis=1, keepdims=True) * 2048) / 2048).astype(np.float32)


def cpu(f, *args):  # Its result and the CPU seconds it took here
    begin = time.process_time()
    return f(*args), time.process_time() - begin


def tiles(side: int) -> tuple[float, float]:
    "CPU seconds and megabytes of one tile of two sets of rows."
    from git_notes_consolidation.similarity.tiles import Tile, packed, neighbour_forest
    X = vectors(2 * side)
    tile = Tile(packed(X[:side]), packed(X[side:]), 0.5)
    return cpu(neighbour_forest, tile)[1], (tile.one.data.nbytes + tile.two.data.nbytes) / 1e6


def looked_over(n: int) -> float:
    "CPU seconds for the candidates of n memories: their products with all that are older, and the best of each row."
    from git_notes_consolidation.similarity.neighbours import SearchVectors, fused_older
    X, groups = vectors(n), np.random.default_rng(1).integers(0, 10, n)
    return cpu(fused_older, [SearchVectors(X, 0.1)], np.arange(n), groups)[1]


@contextmanager
def dask(workers: int):
    "A scheduler and workers on loopback, in processes of their own."
    with tempfile.TemporaryDirectory() as d:
        file, quiet = f"{d}/scheduler.json", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-m", "dask"]
        made = [subprocess.Popen([*command, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file], **quiet)]
        made += [subprocess.Popen([*command, "worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard", "--no-nanny"], **quiet)
                 for _ in range(workers)]
        try:
            import json
            for _ in range(600):
                if Path(file).exists(): break
                time.sleep(0.1)
            yield json.loads(Path(file).read_text())["address"]
        finally:
            for p in made: p.kill()
            for p in made: p.wait()


def clusters(n: int, workers: int) -> None:
    "The same vectors clustered here and on a cluster: seconds, tasks and whether the labels are equal."
    from git_notes_consolidation.apps.fleet import workers as pool
    from git_notes_consolidation.core import processes as parallel
    from git_notes_consolidation.similarity import tiles as t
    from git_notes_consolidation.similarity.linkage import flat_clusters
    X, parallel.MIN_SECONDS = vectors(n), 0.0
    begin = time.perf_counter()
    here, used = cpu(flat_clusters, X, 0.5)
    print(f"here, one process      {time.perf_counter() - begin:7.1f} s wall  {used:7.1f} s CPU")
    with dask(workers) as address, pool.cluster(address) as hands, parallel.using_pool(hands):
        t.tiled_clusters(X[:200], 0.5)  # The workers import what they need
        hands.sent.clear()
        begin = time.perf_counter()
        there, used = cpu(t.tiled_clusters, X, 0.5)
        print(f"cluster, {workers} workers     {time.perf_counter() - begin:7.1f} s wall  {used:7.1f} s CPU of the coordinator  {dict(hands.sent)}")
    print(f"the same labels: {np.array_equal(here, there)}")


def serial(n: int) -> tuple[float, float]:
    "CPU seconds of a run of n memories whose vectors are known, git included: the coordinator's own, and the tasks'."
    import resource
    from git_notes_consolidation.core import processes as parallel
    from git_notes_consolidation.consolidation import stores as service
    from git_notes_consolidation.consolidation import service as consolidation_service
    from git_notes_consolidation.core.loading import load_settings
    from git_notes_consolidation.core.memory import SAMPLE_NOW
    sys.path.insert(0, str(Path(__file__).parent))
    import generate
    from git_notes_consolidation.store.git import git, open_repo
    from git_notes_consolidation.store.reader import write_memories
    spent = Counter()

    class Timed:
        "Works here, and says what the tasks took."
        n = 2
        def each(self, f, shares):
            begin = time.process_time()
            try: return [f(x) for x in shares]
            finally: spent["tasks"] += time.process_time() - begin

    with tempfile.TemporaryDirectory() as d:
        git(d, "init", "-q", "-b", "main")
        write_memories(open_repo(d), generate.generate(n))
        parallel.MIN_SECONDS = 0.0
        s = service.open_service(d, load_settings({"max_change": 1.0}, env={}))
        s.plan(SAMPLE_NOW, full=True)  # Makes the vectors
        spent.clear()
        def used(): return sum(x.ru_utime + x.ru_stime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) for x in (resource.getrusage(who),))
        begin = used()
        with parallel.using_pool(Timed()): consolidation_service.run(s, SAMPLE_NOW, full=True)
        whole = used() - begin
    print(f"a run of {n}: {whole:.1f} s CPU, of which tasks {spent['tasks']:.1f} s and the coordinator {whole - spent['tasks']:.1f} s")
    return whole - spent["tasks"], spent["tasks"]


def estimate(product: float, alone: float, judged: float) -> None:
    "Seconds for more memories on more workers, from CPU seconds for a pair of memories, and for a memory."
    print(f"\nestimate: {WIRE / 1e9:g} GB/s out of the coordinator; judging and the coordinator grow with n, tiles with n²")
    print(f"{'memories':>10} {'workers':>8} {'products':>9} {'judging':>9} {'wire':>7} {'alone':>7} {'s in all':>9} {'times one worker':>17}")
    for m in (10_000, 100_000, 1_000_000):
        one = None
        for w in (1, 8, 64, 512):
            from git_notes_consolidation.similarity.tiles import _parts
            k = len(_parts(m, w))
            bytes_out = (k + 1) * m * DIM * 2 + 4 * w * m * DIM  # Tiles, and the stretches of older ones: half of all rows each
            products, judging, wire, rest = product * m**2 / w, judged * m / w, bytes_out / WIRE, alone * m
            whole = max(products + judging, wire) + rest
            one = one or whole
            print(f"{m:>10} {w:>8} {products:>9.0f} {judging:>9.0f} {wire:>7.0f} {rest:>7.0f} {whole:>9.0f} {one / whole:>17.1f}")


if __name__ == "__main__":
    n, workers = (int(x) for x in [*sys.argv[1:3], *["4000", "2"][len(sys.argv) - 1:]])
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    tiles(256)  # Imports
    for side in (1024, 4096):
        seconds, mb = tiles(side)
        print(f"a tile of {side} x {side}: {seconds:.2f} s CPU, {mb:.1f} MB sent, {2 * side**2 * DIM / seconds / 1e9:.0f} Gflop/s")
    over = looked_over(n)
    print(f"the candidates of {n}: {over:.1f} s CPU")
    clusters(n, workers)
    some = min(n, 2000)
    alone, judged = serial(some)
    estimate(seconds / side**2 / 2 + over / n**2, alone / some, judged / some)
