"""What must hold of clusters and candidates for all vectors, and not only for the sample's."""
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from unittest.mock import patch
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.similarity import clusters as updates, clusters as linkage
from git_notes_consolidation.similarity.clusters import KnownClusters, cluster_memories, dendrogram, flat_clusters, near_clusters, split
from git_notes_consolidation.similarity.lexical import round_vectors
from git_notes_consolidation.similarity.neighbours import SearchVectors, first_seen, fused_older


fcluster = pytest.importorskip("scipy.cluster.hierarchy").fcluster
connected_components = pytest.importorskip("scipy.sparse.csgraph").connected_components
seeds, cuts = st.integers(0, 2**32 - 1), st.floats(0.02, 1.3)


def heaps(seed, n=None, d=None):
    "Unit rows in heaps of various tightness, a few of them on their own; no two distances equal."
    rng = np.random.default_rng(seed)
    n, d = n or int(rng.integers(2, 90)), d or int(rng.integers(3, 40))
    centres = rng.normal(size=(max(1, n // 6), d))
    X = centres[rng.integers(0, len(centres), n)] + rng.uniform(0.05, 1.5) * rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def theirs(X, threshold):
    "The design's way, in float64."
    cluster = pytest.importorskip("sklearn.cluster")
    distances = np.clip(1 - (X @ X.T) / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(X, axis=1)), 0, 2)
    model = cluster.AgglomerativeClustering(n_clusters=None, distance_threshold=threshold, metric="precomputed", linkage="average")
    return first_seen(model.fit_predict(distances))


def merging(X, threshold, block=1024, room=0):
    c, begins = linkage._initial_clusters(X, None)
    return linkage._labels(linkage._final_clusters(c, threshold, block, room), begins)


def components(X, threshold):
    "Which rows a chain of neighbours connects."
    there = np.any(X, axis=1)
    near = (1 - X @ X.T / np.maximum(np.outer(*[np.linalg.norm(X, axis=1)] * 2), 1e-9) <= threshold + 1e-5) & there & there[:, None]
    return first_seen(connected_components(near)[1])


def same(a, b): return np.array_equal(first_seen(a), first_seen(b))


@pytest.mark.slow
@given(seeds, cuts)
def test_labels_are_those_of_scikit_learn(seed, threshold):
    X = heaps(seed)
    for Y in (X, X.astype(np.float32), round_vectors(X)): assert np.array_equal(flat_clusters(Y, threshold), theirs(Y.astype(np.float64), threshold))


@pytest.mark.slow
@given(seeds, cuts)
def test_labels_are_those_of_the_dendrogram_in_one_pass_and_in_many(seed, threshold):
    X = heaps(seed)
    whole = fcluster(dendrogram(X), np.nextafter(threshold, 0), "distance")
    for room in (0, 30, 4): assert same(merging(X, threshold, block=7, room=room), whole)


def tied(seed, n=60):
    "Rows of few directions: nearly every distance is there more than once."
    X = np.random.default_rng(seed).integers(-1, 2, (n, 6)).astype(np.float32) * np.array([1, 1, 1, 1, 1, 0], np.float32)
    X[np.any(X, axis=1)] /= np.linalg.norm(X[np.any(X, axis=1)], axis=1, keepdims=True)
    return X


@pytest.mark.slow
@given(seeds, cuts)
def test_a_tie_is_decided_alike_whatever_else_is_there(seed, threshold):
    "So a crew, which gets one component at a time, comes to what one machine does."
    X = tied(seed)
    whole, part, order = flat_clusters(X, threshold), components(X, threshold), np.random.default_rng(seed).permutation(len(X))
    for k in range(part.max() + 1): assert same(flat_clusters(X[part == k], threshold), whole[part == k])
    assert same(flat_clusters(X[order], threshold), whole[order])
    more = np.vstack([X, [[0, 0, 0, 0, 0, 2]]]).astype(np.float32)  # One that is not of length one
    assert threshold > 0.99 or same(flat_clusters(more, threshold)[:-1], whole)


@pytest.mark.slow
@given(seeds, cuts)
def test_the_length_of_rows_does_not_matter(seed, threshold):
    X = heaps(seed)
    assert np.array_equal(flat_clusters(X * np.random.default_rng(seed).uniform(0.1, 9, (len(X), 1)), threshold), flat_clusters(X, threshold))


@pytest.mark.slow
@given(seeds, st.floats(0.02, 2.5))
def test_rows_of_zeros_stay_alone(seed, threshold):
    X = heaps(seed)
    zero = np.random.default_rng(seed).random(len(X)) < 0.3
    labels = flat_clusters(np.where(zero[:, None], 0, X), threshold)
    assert all((labels == labels[k]).sum() == 1 for k in np.flatnonzero(zero))
    assert same(labels[~zero], flat_clusters(X[~zero], threshold))


@pytest.mark.slow
@given(seeds, st.floats(0.05, 1.2))
def test_ties_end_and_make_clusters_that_hold_together(seed, threshold):
    "Rows of zeros and ones: nearly every distance occurs several times, and no answer is the only one."
    rng = np.random.default_rng(seed)
    X = (rng.random((int(rng.integers(2, 60)), 6)) < 0.4).astype(np.float32)
    X[:, 0] = 1
    for labels in (flat_clusters(X, threshold), first_seen(merging(X, threshold, room=8))):
        U = X / np.linalg.norm(X, axis=1, keepdims=True)
        means = np.stack([U[labels == k].mean(0) for k in range(labels.max() + 1)])
        apart = 1 - means @ means.T + 9 * np.eye(len(means))
        assert apart.min() >= threshold - 1e-5  # nothing is left that should merge


def test_a_threshold_is_strict_and_repeats_need_a_positive_one():
    X = np.array([[1.0, 0], [0, 1], [1, 0]])
    assert [flat_clusters(X, t).tolist() for t in (-1, 0, 1e-9, 1, np.nextafter(1, 2))] == [[0, 1, 2], [0, 1, 2], [0, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert flat_clusters(np.zeros((0, 4)), 0.5).tolist() == []
    assert flat_clusters(np.ones((1, 4), int), 0.5).tolist() == [0]
    with pytest.raises(ValueError, match="row 2"): flat_clusters(np.array([[1, 0], [0, 1], [np.inf, 0]]), 0.5)


@given(seeds, st.integers(2, 9), st.integers(0, 20))
def test_a_split_keeps_everything_and_no_part_is_too_large(seed, least, more):
    X, most = heaps(seed), least + more
    parts = split(X, least, most)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(X)))
    assert max(map(len, parts)) <= most
    if most >= 2 * least - 1 and len(X) >= least: assert min(map(len, parts)) >= least
    assert [p.tolist() for p in parts] == [sorted(p.tolist()) for p in parts]


def blurred(X, seed, d=6):
    "Another embedder's rows for the same texts: their directions in fewer dimensions, coarse enough for ties."
    return round_vectors(np.round(2 * X @ np.random.default_rng(seed + 1).normal(size=(X.shape[1], d))))


def plain_fusion(halves, order, groups, same, other, kin, depth):
    "By the definition, a pair at a time: every search ranks a pool for itself, a pair gets 1/(60 + rank) from each that holds it."
    found, cosines = [], [((h.vectors @ h.vectors.T).tolist(), float(np.float32(h.floor))) for h in halves]
    for a in range(len(order)):
        older = [b for b in range(len(order)) if order[b] < order[a]]
        own = {groups[a], *kin.get(groups[a], ())}
        for pool, k in (([b for b in older if groups[b] in own], same), ([b for b in older if groups[b] not in own], other)):
            worth = {}
            for S, floor in cosines:
                near = sorted((b for b in pool if S[a][b] >= floor), key=lambda b: (-S[a][b], order[b], b))
                for rank, b in enumerate(near[:max(k, depth)], 1): worth[b] = worth.get(b, 0) + 1 / (60 + rank)
            found += [(a, b) for b in sorted(worth, key=lambda b: (-worth[b], order[b], b))[:k]]
    return sorted(found)


def pairs_of(near): return list(zip(near.newer.tolist(), near.older.tolist()))


@pytest.mark.slow
@given(seeds, st.integers(0, 6), st.integers(0, 6), st.floats(-0.2, 0.9), st.floats(-0.2, 0.9), st.integers(1, 50), st.integers(1, 12), st.integers(1, 2))
def test_a_fusion_is_what_its_definition_says(seed, same, other, floor, second, block, depth, searches):
    rng = np.random.default_rng(seed)
    X = round_vectors(np.round(heaps(seed, d=4) * 2))  # Coarse: many are equally similar
    order, groups = rng.integers(0, len(X), len(X)), [f"g{g}" for g in rng.integers(0, 3, len(X))]
    halves, kin = [SearchVectors(X, floor), SearchVectors(blurred(X, seed), second)][:searches], {"g0": ("g2", "nobody's"), "g1": ()}
    near = fused_older(halves, order, groups, same, other, kin, block, depth)
    assert pairs_of(near) == plain_fusion(halves, order, groups, same, other, kin, depth)
    assert near.similarity.tolist() == [X[a] @ X[b] for a, b in pairs_of(near)]


@given(seeds, st.integers(1, 40))
def test_a_later_arrival_changes_no_earlier_fusion(seed, k):
    X = round_vectors(heaps(seed, n=50, d=16))
    Y, order, groups, kin = blurred(X, seed), np.arange(50), np.arange(50) % 3, {0: (1,)}
    whole = fused_older([SearchVectors(X, 0.1), SearchVectors(Y, 0.3)], order, groups, 3, 2, kin, depth=5)
    part = fused_older([SearchVectors(X[:k], 0.1), SearchVectors(Y[:k], 0.3)], order[:k], groups[:k], 3, 2, kin, depth=5)
    early = whole.newer < k
    assert all(np.array_equal(a[early], b) for a, b in zip(whole, part))


@pytest.mark.slow
@given(seeds, st.integers(2, 5), st.integers(0, 6), st.floats(0.05, 0.9))
def test_clusters_of_memories_do_not_depend_on_order_and_keep_to_their_sizes(seed, least, more, threshold):
    X, config = round_vectors(heaps(seed, d=32)), SubconsciousnessConfig(min_cluster_size=least, max_cluster_size=2 * least + more)
    memories = [mem(f"memory {k}", namespace=("decisions", "progress")[k % 2]) for k in range(len(X))]
    vectors = {m.id: x for m, x in zip(memories, X)}
    found = cluster_memories(memories, vectors, config, threshold=threshold)
    order = np.random.default_rng(seed).permutation(len(memories))
    again = cluster_memories([memories[k] for k in order], dict(reversed(vectors.items())), config, threshold=threshold)
    assert found == again and all(np.array_equal(a.centroid, b.centroid) for a, b in zip(found, again))
    inside = [i for c in found for i in c.memory_ids]
    assert len(inside) == len(set(inside)) and all(least <= len(c.memory_ids) <= config.max_cluster_size for c in found)
    labels = flat_clusters(np.stack([vectors[i] for i in sorted(vectors)]), 1 - threshold)
    assert len(inside) == sum(n for n in np.bincount(labels) if n >= least)  # what is large enough is split, not dropped
    assert all(0 <= c.coherence <= 1 and c.dominant_namespace in ("decisions", "progress") for c in found)


# Clusters of an earlier time

def some_of(rng, X):
    "Some of the rows; some repeated, some of zeros, some with another's vector."
    rows = rng.integers(0, len(X), int(rng.integers(1, 2 * len(X)))) if rng.random() < 0.3 else rng.permutation(len(X))[:rng.integers(1, len(X) + 1)]
    Y = X[rows].copy()
    for k in rng.integers(0, len(Y), rng.integers(0, 4)): Y[k] = rng.integers(2) * Y[rng.integers(len(Y))]
    return Y


@pytest.mark.slow
@settings(max_examples=15)
@given(seeds, cuts, st.sampled_from([2, 8, 40, 10**6]), st.booleans())
def test_what_was_kept_changes_no_label(seed, threshold, room, coarse):
    rng, X, before = np.random.default_rng(seed), heaps(seed), None
    X = np.rint(X * 4) / 4 if coarse else round_vectors(X) if rng.random() < 0.5 else X  # Coarse ones are often equally far
    with patch.object(linkage, "_room", lambda n: room), patch.object(updates, "_room", lambda n: room), patch.object(updates, "_WORTH", 1.0):
        for k in range(4):
            Y, distance, block = some_of(rng, X), threshold if k < 2 else float(rng.uniform(0.02, 1.3)), int(rng.integers(1, 40))
            labels, after = near_clusters(Y, distance, before)
            assert np.array_equal(labels, flat_clusters(Y, distance, block=block))
            before = KnownClusters.from_bytes(after.to_bytes()) if after else before


@pytest.mark.slow
@given(seeds, st.floats(0.02, 1.2), st.booleans())
def test_old_clusters_stand_where_nothing_that_changed_is_near(seed, distance, coarse):
    "A few rows come, go, or come twice; whatever is not merged again is as if it had been."
    rng, X = np.random.default_rng(seed), heaps(seed, n=100)
    X, there, before = np.rint(X * 4) / 4 if coarse else X, rng.random(100) < 0.9, None
    with patch.object(updates, "_WORTH", 1.0):
        for _ in range(4):
            flip = rng.integers(0, 100, rng.integers(0, 5))
            there[flip] = ~there[flip]
            at = rng.permutation([*np.flatnonzero(there), *rng.integers(0, 100, rng.integers(0, 3))])
            labels, after = near_clusters(X, distance, before, at)
            assert np.array_equal(labels, flat_clusters(X[at], distance)) and np.array_equal(labels, flat_clusters(X, distance, at))
            before = KnownClusters.from_bytes(after.to_bytes())


def test_few_are_merged_again_for_one_that_is_new():
    X, sizes, finished = heaps(5, n=120, d=60), [], linkage._merge_all
    _, before = near_clusters(X[1:], 0.4)
    with patch.object(updates, "_merge_all", lambda c, *rest: sizes.append(len(c)) or finished(c, *rest)): labels, _ = near_clusters(X, 0.4, before)
    assert sizes and max(sizes) < 30 and np.array_equal(labels, flat_clusters(X, 0.4))


@pytest.mark.slow
@given(seeds, st.binary(max_size=60), st.integers(0, 4))
def test_what_was_kept_and_is_damaged_is_not_read_or_only_misleads(seed, noise, times):
    rng, X = np.random.default_rng(seed), heaps(seed)
    _, before = near_clusters(X, 0.7)
    raw = bytearray(before.to_bytes())
    for _ in range(times): raw[rng.integers(len(raw)) if rng.random() < 0.5 else rng.integers(8)] = rng.integers(256)
    mixed = before._replace(labels=rng.permutation(before.labels), sizes=rng.permutation(before.sizes)).to_bytes()
    for x in (bytes(raw), bytes(raw)[:rng.integers(len(raw) + 1)], bytes(raw) + noise, noise, mixed):
        labels, _ = near_clusters(X, 0.7, KnownClusters.from_bytes(x))
        assert len(labels) == len(X) and labels[0] == 0


# Single steps
