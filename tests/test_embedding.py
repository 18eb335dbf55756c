"""Vectors that are the same in every process and every company, and zero only where nothing is said."""
import hashlib
import os
import subprocess
import sys

import numpy as np
from git_notes_consolidation.embedding import LexicalEmbedder, round_vectors, similarity, tokens
from hypothesis import given
from hypothesis import strategies as st

WORDS = "the retry of src/api/app.py v2.3.1 ADR-007 queue\n was x naïve 日本語 🎉".split(" ")
texts = st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
EMBED = LexicalEmbedder().embed


@given(texts)
def test_a_row_is_zero_only_without_a_word_and_else_of_length_one(text):
    x = EMBED([text])[0].astype(float)
    assert x.any() == bool(tokens(text))
    if x.any(): assert abs(np.linalg.norm(x) - 1) < 0.002
    assert (x * 2**11 == np.rint(x * 2**11)).all()


@given(st.lists(texts, min_size=1, max_size=6))
def test_a_row_does_not_depend_on_the_others(some):
    assert np.array_equal(EMBED(some), np.concatenate([EMBED([t]) for t in some]))


@given(texts, texts)
def test_similarity_is_symmetric_and_one_for_the_same(a, b):
    assert similarity(a, b) == similarity(b, a) <= 1
    assert similarity(a, a) == float(bool(tokens(a)))


@given(st.integers(0, 2**32 - 1), st.integers(2, 1024))
def test_products_of_rounded_rows_are_exact(seed, d):
    X = round_vectors(np.random.default_rng(seed).normal(size=(20, d)) ** 3)
    assert np.array_equal(X @ X.T, X.astype(np.float64) @ X.T.astype(np.float64))
    assert np.array_equal(X[:, ::-1] @ X[:, ::-1].T, X @ X.T)


def test_lone_surrogates_and_monsters_are_embedded():
    assert EMBED(["\ud800 broken", "a" * 100_000, "x." * 50_000, "ﷺ" * 1000]).any(axis=1).all()


def test_another_process_makes_the_same_vectors():
    code = ("import hashlib\nfrom git_notes_consolidation.embedding import LexicalEmbedder\nfrom git_notes_consolidation.models import sample_memories\n"
            "print(hashlib.sha256(LexicalEmbedder().embed([m.text for m in sample_memories()]).tobytes()).hexdigest())")
    def digest(seed):
        return subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
    assert digest("1") == digest("2") != ""


def test_the_vectors_of_this_name_do_not_change():
    "Stored vectors carry the embedder's name: if this fails on purpose, give it a new one."
    assert LexicalEmbedder.name == "lexical/1"
    rows = EMBED(["Retry failed uploads five times, see src/api/app.py\n\nThe queue of v2.3.1 was the cause.", "日本語 naïve ADR-007"])
    assert hashlib.sha256(rows.tobytes()).hexdigest()[:16] == "7301a4444e31e35e"
