"""The jobs of `make bench`, each in a process of its own: python benchmarks/suite.py JOB N PLACE

PLACE is the folder that tools/bench.py filled for N memories: `repo`, a git repository, and `vectors.npy`. A job prints one line of JSON: CPU seconds and
wall seconds of the work itself with its children's, the peak memory of the process, and what it held before the work began.
"""
import json
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
from generate import add, generate, repository

from git_notes_consolidation.store.git import open_repo

CUT = 0.5  # Cosine distance at which the clusters are cut
FEW = 200  # Texts that MiniLM embeds
MORE = 100  # Memories that arrive after the first run
Work = Callable[[], object]


def vectors(n: int, d: int = 384, noise: float = 0.4, size: int = 20, seed: int = 0, chain: bool = False) -> np.ndarray:
    "Unit rows: clusters of about `size`, and a share of rows that belong to none. In a chain each centre leans on the one before: one component."
    rng = np.random.default_rng(seed)
    out, many = np.empty((n, d), np.float32), max(1, n // size)
    centres = rng.normal(size=(many, d)).astype(np.float32)
    if chain:
        for k in range(1, many): centres[k] = 0.75 * centres[k - 1] + 0.66 * centres[k]
        noise /= 8
    for a in range(0, n, 4096):
        rows = slice(a, min(a + 4096, n))
        k = rows.stop - a
        X = centres[rng.integers(0, many, k)] + 0.5 * rng.normal(size=(k, d))
        X = np.where(rng.random(k)[:, None] < noise, rng.normal(size=(k, d)), X)
        out[rows] = X / np.linalg.norm(X, axis=1, keepdims=True)
    return out


def load(place: Path, name: str = "vectors") -> np.ndarray: return np.asarray(np.load(place / f"{name}.npy"))


def clustering(n: int, place: Path, name: str = "vectors") -> Work:
    from git_notes_consolidation.similarity.clusters import flat_clusters
    X = load(place, name)
    flat_clusters(X[[0, 1, 0, 1]], CUT)  # It imports what it needs when it first clusters; scikit-learn's imports are not counted either
    return lambda: {"clusters": int(flat_clusters(X, CUT).max()) + 1}


def chained(n: int, place: Path) -> Work: return clustering(n, place, "chain")  # All but a few rows in one component


def full_matrix(n: int, place: Path) -> Work:
    "What the designs do."
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics.pairwise import cosine_distances
    X = load(place)
    model = AgglomerativeClustering(n_clusters=None, distance_threshold=CUT, metric="precomputed", linkage="average")
    return lambda: {"clusters": int(model.fit_predict(cosine_distances(X)).max()) + 1}


def product(n: int, place: Path) -> Work:
    "The upper triangle of X · Xᵀ, tile by tile, and nothing else."
    from git_notes_consolidation.similarity.neighbours import _threads
    X, out = load(place), np.empty((1024, 1024), np.float32)
    def work() -> None:
        with _threads(n):
            for a in range(0, n, 1024):
                for b in range(a, n, 1024):
                    one, two = X[a:a + 1024], X[b:b + 1024]
                    np.matmul(one, two.T, out=out[:len(one), :len(two)])
    return work


def neighbours(n: int, place: Path) -> Work:
    from git_notes_consolidation.similarity.neighbours import SearchVectors, fused_older
    X, rng = load(place), np.random.default_rng(1)
    groups = rng.integers(0, 6, n)
    return lambda: {"pairs": len(fused_older([SearchVectors(X, 0.3)], np.arange(n), groups).newer)}


def read(n: int, place: Path) -> Work:
    from git_notes_consolidation.store.reader import read_memories
    repo = open_repo(place / "repo")
    return lambda: {"memories": len(read_memories(repo).memories)}


def cat_file(n: int, place: Path) -> Work:
    "The same notes, by git alone: every blob through one `git cat-file --batch`."
    from git_notes_consolidation.store.git import MEM, git, note_paths, tips
    repo = open_repo(place / "repo")
    blobs = [blob for tip in tips(repo, MEM).values() for _, _, blob in note_paths(repo, tip)]
    return lambda: {"bytes": len(git(repo.path, "cat-file", "--batch", input="\n".join(blobs).encode() + b"\n"))}


def _objects(home: Path, n: int) -> list[str]:
    "n objects to annotate, in a new repository."
    from git_notes_consolidation.store.git import git
    home.mkdir(parents=True)
    git(home, "init", "-q", "-b", "main")
    stream = b"".join(b"blob\nmark :%d\ndata %d\n%d\n" % (i, len(b"%d" % i), i) for i in range(1, n + 1))
    return git(home, "fast-import", "--quiet", input=stream + b"".join(b"get-mark :%d\n" % i for i in range(1, n + 1))).decode().split()


def appending(n: int, place: Path) -> Work:
    from git_notes_consolidation.core.memory import SAMPLE_NOW
    from git_notes_consolidation.store.events import Append, append
    home = place / "append"
    ids = _objects(home, n)
    said = {"kind": "tier", "from": "hot", "tier": "cold", "reason": "score 0.300 is below warm 0.35", "score": 0.3, "run": "run_bench"}
    rows = [Append("meta", i, said | {"memory": f"mem_{i}"}) for i in ids] + [Append("runs", ids[0], {"kind": "run", "id": "run_bench"})]
    return lambda: append(open_repo(home), lambda events: rows, SAMPLE_NOW) and None


def _texts(n: int, place: Path) -> list[str]: return list(dict.fromkeys(m.text for m in generate(n)))


def lexical(n: int, place: Path) -> Work:
    from git_notes_consolidation.similarity.lexical import LexicalEmbedder
    texts = _texts(n, place)
    return lambda: {"texts": len(LexicalEmbedder().embed(texts))}


def minilm(n: int, place: Path) -> Work:
    from git_notes_consolidation.similarity.embedders import MiniLMEmbedder
    texts, e = _texts(n, place)[:FEW], MiniLMEmbedder(os.environ.get("MEMORY_EMBEDDING_MODEL_DIR") or None)
    e.embed(texts[:1])
    return lambda: {"texts": len(e.embed(texts))}


def rebuild(n: int, place: Path) -> Work:
    "Tables, full text and lexical vectors of a repository that has no index."
    from git_notes_consolidation.store import cache as index
    from git_notes_consolidation.core.loading import load_settings
    from git_notes_consolidation.similarity.lexical import LexicalEmbedder
    from git_notes_consolidation.core.memory import SAMPLE_NOW
    from git_notes_consolidation.consolidation.stores import open_service
    from git_notes_consolidation.consolidation.service import refresh_index
    from git_notes_consolidation.consolidation.scan import view
    repo = open_repo(place / "repo")
    for f in repo.cache_dir.glob("index.db*"): f.unlink()
    s = open_service(repo.path, load_settings({}, env={}), clock=lambda: SAMPLE_NOW)
    def work() -> None:
        v = view(repo)
        refresh_index(s, v, SAMPLE_NOW)
        with closing(index.open_index(repo)) as conn: index.embed_cached(conn, list({m.text: m for m in v.scan.memories}.values()), LexicalEmbedder())
    return work


def searches(n: int, place: Path) -> Work:
    "Twenty questions in a process that has asked one before."
    from git_notes_consolidation.core.loading import load_settings
    from git_notes_consolidation.similarity.lexical import LexicalEmbedder
    from git_notes_consolidation.core.memory import SAMPLE_NOW
    from git_notes_consolidation.recall.service import open_recall
    s = open_recall(place / "repo", load_settings({}, env={}), embedder=LexicalEmbedder(), clock=lambda: SAMPLE_NOW)
    questions = [m.summary for m in generate(min(n, 1000))[::50]][:20]
    s.search(questions[0], count=False)
    return lambda: {"found": sum(len(s.search(q, count=False)) for q in questions)}


def prepare(n: int, place: Path) -> Work:
    "What the others need. tools/bench.py does not do it itself: a process that it starts would count its memory as its own peak."
    def work() -> dict[str, object]:
        for name in ("vectors", "chain"): np.save(place / f"{name}.npy", vectors(n, chain=name == "chain"))
        memories = generate(n + MORE)
        repository(place / "repo", memories[:n])
        return {"question": memories[n // 2].summary}
    return work


def more(n: int, place: Path) -> Work:
    "A hundred more memories, the latest; a fifth of them say what nobody said before, as in the corpus."
    memories = generate(n + MORE)
    new = [replace(m, summary=m.summary.replace("NOTE-", f"NOTE-{n}")) for m in generate(MORE // 5, repeats=0, seed=8)]
    said = [*new, *(replace(m, places=()) for m in memories[n:n + MORE - len(new)])]
    random.Random(n).shuffle(said)
    last = memories[n - 1].timestamp
    return lambda: add(open_repo(place / "repo"), [replace(m, timestamp=last + timedelta(seconds=30 * (k + 1))) for k, m in enumerate(said)])


def used() -> tuple[float, float]:
    "CPU seconds of this process and its children, and the larger one's peak in MB."
    import resource
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in both), max(u.ru_maxrss for u in both) / (1024 if sys.platform == "linux" else 1024**2)


JOBS = {f.__name__: f for f in (clustering, chained, full_matrix, product, neighbours, read, cat_file, appending, lexical, minilm, rebuild, searches,
                                prepare, more)}


def main(job: str, n: int, place: Path) -> None:
    work = JOBS[job](n, place)
    cpu, held = used()
    begin = time.perf_counter()
    told = work()
    wall, (cpu_now, peak) = time.perf_counter() - begin, used()
    print(json.dumps({"cpu": cpu_now - cpu, "wall": wall, "mb": peak, "held": held} | (told if isinstance(told, dict) else {})))


if __name__ == "__main__": main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
