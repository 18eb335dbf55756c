"""Clustering and embedding against the obvious alternatives: python benchmarks/bench_clustering.py [n]

Every row runs in a process of its own, one after the other. CPU seconds and peak memory are the whole process's less
those of a process that only makes the same vectors: imports count. Compare within a run, not across machines.
"""
from __future__ import annotations
import json, resource, subprocess, sys, time
import numpy as np

THRESHOLD = 0.5  # Cosine distance


def synthetic(n: int, d: int = 384, noise: float = 0.4, size: int = 20, seed: int = 0) -> np.ndarray:
    "Unit vectors: clusters of about `size`, and this share of rows that belong to none."
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(1, n // size), d))
    X = centres[rng.integers(0, len(centres), n)] + 0.5 * rng.normal(size=(n, d))
    X = np.where(rng.random(n)[:, None] < noise, rng.normal(size=(n, d)), X).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def texts(n: int, words: int = 75, seed: int = 0) -> list[str]:
    "About 600 characters each, of a vocabulary in which few words are frequent."
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    lexicon = ["".join(rng.choice(letters[:20], rng.integers(2, 11))) for _ in range(20_000)]
    ranks = np.minimum(rng.zipf(1.3, size=(n, words)) - 1, len(lexicon) - 1)
    return [" ".join(lexicon[r] for r in row) for row in ranks]


def ours(X: np.ndarray) -> np.ndarray:
    from git_notes_consolidation.similarity.linkage import flat_clusters
    return flat_clusters(X, THRESHOLD)


def full_matrix(X: np.ndarray) -> np.ndarray:
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics.pairwise import cosine_distances
    model = AgglomerativeClustering(n_clusters=None, distance_threshold=THRESHOLD, metric="precomputed", linkage="average")
    _, first, labels = np.unique(model.fit_predict(cosine_distances(X)), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]


def older(X: np.ndarray) -> np.ndarray:
    from git_notes_consolidation.similarity.neighbours import nearest_older
    rng = np.random.default_rng(1)
    wide = np.tile(X, 3)[:, :1024]
    return nearest_older(wide, rng.permutation(len(X)), rng.integers(0, 10, len(X)), floor=0.1).newer


def embed(X: np.ndarray) -> np.ndarray:
    from git_notes_consolidation.similarity.lexical import LexicalEmbedder
    return LexicalEmbedder().embed(texts(len(X)))[:, 0]


def nothing(X: np.ndarray) -> np.ndarray: return X[:, 0]


def nothing_said(X: np.ndarray) -> np.ndarray: return np.array([len(t) for t in texts(len(X))])


JOBS = {f.__name__: f for f in (ours, full_matrix, older, embed, nothing, nothing_said)}


def child(job: str, n: int) -> None:
    "Run one job and print what the process took."
    import hashlib
    X = synthetic(n)
    found = JOBS[job](X)
    use = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu": use.ru_utime + use.ru_stime, "mb": use.ru_maxrss / (1024 if sys.platform == "linux" else 1024**2),
                      "clusters": int(found.max()) + 1, "digest": hashlib.sha256(np.ascontiguousarray(found, dtype=np.int64).tobytes()).hexdigest()}))


def measure(job: str, n: int) -> dict:
    "The same in a process of its own."
    start = time.perf_counter()
    done = subprocess.run([sys.executable, __file__, "--child", job, str(n)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout) | {"wall": time.perf_counter() - start}


def main(n: int) -> int:
    base = measure("nothing", n)
    rows = {job: measure(job, n) for job in ("ours", "full_matrix", "older")}
    for r in rows.values(): r["cpu"] -= base["cpu"]; r["mb_more"] = r["mb"] - base["mb"]
    reference = rows["full_matrix"]
    print(f"{n:,} unit vectors, 384 dimensions, 40 % noise, cut at {THRESHOLD}; making them took {base['cpu']:.2f} CPU-s and {base['mb']:.0f} MB\n")
    print(f"{'':34}{'CPU-s':>8}{'ratio':>8}{'peak MB':>10}{'ratio':>8}{'wall s':>8}   labels")
    names = {"ours": "flat_clusters", "full_matrix": "scikit-learn, full matrix"}
    for job, name in names.items():
        r = rows[job]
        print(f"{name:34}{r['cpu']:8.2f}{reference['cpu'] / r['cpu']:7.1f}x{r['mb']:10.0f}{reference['mb'] / r['mb']:7.1f}x{r['wall']:8.1f}"
              f"   {r['clusters']:,}, {'equal' if r['digest'] == reference['digest'] else 'DIFFERENT'}")
    print(f"{'nearest_older, 1,024 dimensions':34}{rows['older']['cpu']:8.2f}{'':8}{rows['older']['mb']:10.0f}{'':8}{rows['older']['wall']:8.1f}")
    spoken = measure("embed", n)["cpu"] - measure("nothing_said", n)["cpu"]
    print(f"{'lexical embedding':34}{spoken:8.2f}{'':34}   {n / spoken:,.0f} texts of 600 characters a CPU-second, import included")
    return int(rows["ours"]["digest"] != reference["digest"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]: child(sys.argv[2], int(sys.argv[3]))
    else: sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
