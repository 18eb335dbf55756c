"""Teach the table of similarity/static.py: python tools/teach_static.py TEXTS.json [--vectors FILE.npy]

TEXTS.json is a list of sentences. MiniLM's vectors of them (an hour for 200,000) are kept in FILE.npy, and so are those of each piece alone in
FILE.pieces.npy. The table in data/ was taught on 161,031 definitions and examples of WordNet 3.0 (data.noun, verb, adj and adv: "lemma, lemma: definition",
and every example of more than 15 characters) and 55,174 sentences of 25 to 300 characters of Debian's package descriptions, by quantised weights and in
single precision. Anew it comes out with rows that have a cosine of .9975 to those (median), and answers as well: with another table goes another name.
"""
import argparse
import json
import re
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from git_notes_consolidation.similarity.minilm import DATA, MiniLMEmbedder, word_pieces

MOST, STEPS, RIDGE, COMMON = 256, 40, 0.5, 1e-3  # Pieces of a text; of the descent; what holds a row to where it began; share from which a piece is common


def shares(texts):
    "(n, pieces): how much of each text each piece is; what has no letter and no digit is nothing."
    cut = word_pieces()
    said = np.array([bool(re.search(r"[^\W_]", p)) for p in cut.vocabulary])
    rows = [[i for i in cut(t)[:MOST] if said[i]] for t in texts]
    where = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    counts = sp.csr_matrix((np.ones(len(where), np.float32), (where, np.concatenate(rows).astype(int))), shape=(len(rows), len(said)))
    return (sp.diags(1 / np.maximum(np.asarray(counts.sum(1)).ravel(), 1)).astype(np.float32) @ counts).tocsr(), said


def teach(S, Y, alone, said, dims=256):
    "(pieces, dims): rows whose means come near the texts' vectors, by conjugate gradients from what each piece is alone."
    axes = np.linalg.eigh((Y - Y.mean(0)).T @ (Y - Y.mean(0)))[1][:, ::-1][:, :dims]
    Y, E = ((X - Y.mean(0)) @ axes for X in (Y, alone / np.linalg.norm(alone, axis=1, keepdims=True)))
    often = 1 / np.arange(1, len(E) + 1)  # As Zipf has it: the vocabulary is in the order of how often a piece occurs
    E = E * (COMMON / (COMMON + often / often.sum()))[:, None]
    E *= ((S @ E) * Y).sum() / ((S @ E) ** 2).sum()
    r = S.T @ (Y - S @ E)
    d, X, size = r.copy(), np.zeros_like(E), (r * r).sum(0)
    for _ in range(STEPS):
        A = S.T @ (S @ d) + RIDGE * d
        step = size / np.maximum((d * A).sum(0), 1e-12)
        X, r, before = X + step * d, r - step * A, size
        size = (r * r).sum(0)
        d = r + size / np.maximum(before, 1e-12) * d
    return np.where(said[:, None], E + X, 0)


def kept(path, make):
    "An array from its file, made where there is none."
    if not path.exists(): np.save(path, make().astype(np.float16))
    return np.load(path).astype(np.float32)


def main():
    "Teach, and write the table."
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("texts", type=Path)
    ap.add_argument("--vectors", type=Path, default=Path("vectors.npy"))
    args = ap.parse_args()
    texts, e = json.loads(args.texts.read_text(encoding="utf-8")), MiniLMEmbedder(int8=True)
    def alone():
        session, cut = e._model
        begin, end = (cut.vocabulary[m] for m in ("[CLS]", "[SEP]"))
        def one(ids): return session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})[0][0].mean(0)
        return np.array([one(np.array([[begin, i, end]])) for i in range(len(cut.vocabulary))])
    S, said = shares(texts)
    E = teach(S, kept(args.vectors, lambda: e.embed(texts)), kept(args.vectors.with_suffix(".pieces.npy"), alone), said)
    E[word_pieces().vocabulary["[UNK]"]] = 0
    np.save(DATA / "wordpieces.npy", np.rint(E / np.abs(E).max() * 127).astype(np.int8))


if __name__ == "__main__": main()
