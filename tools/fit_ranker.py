"""Fit what orders answers: python tools/fit_ranker.py ../shared EMBEDDER [--write] [--locked].

EMBEDDER is lexical, static or minilm. Fitted on the labelled stories, each in a repository of its own (twice) and all in one, on the half of the questions
about the plugin's own notes that is given out, and on tests/fixtures/sample_asked.jsonl. Never on data/sample_questions.jsonl, the locked half, or stories
that are kept aside."""
import argparse
import json
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np
from corpus import fetched
from scipy.optimize import minimize

from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, sample_memories
from git_notes_consolidation.evaluation.scoring import Question, fixture, load_questions, share
from git_notes_consolidation.evaluation.stories import load_stories, write_project
from git_notes_consolidation.recall.search import HITS, PAIRS, SUMS, Seen, Weights, answering_order, see, succession, sum_features, weights_of
from git_notes_consolidation.recall.service import SURE, TWO, open_recall
from git_notes_consolidation.research.lab import scratch
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.similarity.embedders import MiniLMEmbedder, StaticEmbedder

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = ROOT / "git_notes_consolidation" / "data" / "ranker.json"
FIXTURES = ROOT / "tests" / "fixtures"
EMBEDDERS = {"lexical": LexicalEmbedder, "static": StaticEmbedder, "minilm": MiniLMEmbedder}


class Case(NamedTuple):
    "A question, what was found for it, and what of that answers."
    story: str
    seen: Seen
    answers: np.ndarray  # (n,) bool
    outdated: np.ndarray  # (n,) bool
    replaced: np.ndarray = np.zeros((0, 0))  # (m, m) 1 where the newer takes the older one's place, .5 in part; (0, 0) where nobody said


def find(path, questions, settings, embedder, now):
    "What each question, with its namespace, finds, and the same in numbers; None where nothing is found."
    got = []
    def watch(pool, query, vectors, name, *more):
        if pool: got.append((pool, see(pool, query, vectors, weights_of(name).hits)))
        return answering_order(pool, query, vectors, name, *more)
    asking = open_recall(path, settings, embedder=embedder, clock=lambda: now, order=watch)
    for text, namespace in questions:
        got.clear()
        asking.search(text, namespace=namespace, count=False)
        yield got[-1] if got else None


REPLACED = {"supersede": 1.0, "duplicate": 1.0, "partial": 0.5}


def story_case(story, q, sources, pool, seen, keys):
    own = np.array([k is not None for k in keys], bool)
    good, bad = (np.array([any(x.search(r.memory.text) for x in xs) for r in pool], bool) & own for xs in (q.current, q.outdated))
    named = np.array([k in sources for k in keys], bool)
    right = good & (named | ~bad)
    replaced = [[REPLACED.get(story.pairs.get((str(keys[a]), str(keys[b])), ""), 0.0) for b in seen.top] for a in seen.top]
    return Case(story.id, seen, right if right.any() else named, bad & ~good, np.array(replaced))


def story_cases(stories, sources, settings, embedder):
    "The stories' questions, asked before any run of one repository that holds them all."
    key = {(s.id, k): f"{s.id}\n{k}" for s in stories for k in s.memories}
    whole = {key[s.id, k]: m for s in stories for k, m in s.memories.items()}
    asked, now, out = [(s, q) for s in stories for q in s.questions], max(s.now for s in stories), []
    with tempfile.TemporaryDirectory() as home:
        repo, named = write_project(whole, Path(home))
        for (s, q), got in zip(asked, find(repo.path, ((q.q, None) for _, q in asked), settings, embedder, now)):
            of = [named.get(r.id, "").partition("\n") for r in got[0]] if got else []
            if got: out.append(story_case(s, q, sources[s.id, q.q], *got, [k if story == s.id else None for story, _, k in of]))
    return out


def asked_cases(name, path, questions, settings, embedder, now, outdated=None):
    "Questions whose answers are named; of what replaced what nothing is said."
    def answers(q, r): return r.id in q.keys or not q.keys.isdisjoint(r.stands_for)
    found = find(path, ((q.question, q.namespace) for q in questions), settings, embedder, now)
    return [Case(name, got[1], np.array([answers(q, r) for r in got[0]], bool), np.array([r.id in (outdated or {}).get(q.id, ()) for r in got[0]], bool))
            for q, got in zip(questions, found) if got]


def least(loss, n): return np.asarray(minimize(loss, np.zeros(n), jac=True, method="L-BFGS-B").x)


def fit_choice(choices, l2=4.0):
    "Weights with which what is right is likely to be chosen, of (n, k) numbers and (n,) truths of each question."
    told = [(F, y) for F, y in choices if y.any() and not y.all()]
    spread = np.vstack([F for F, _ in told]).std(axis=0)
    spread[spread < 1e-6] = np.inf
    def loss(w):
        total, down = 0.5 * l2 * float(w @ w), l2 * w
        for F, y in told:
            z = F / spread @ w
            p = np.exp(z - z.max())
            p /= p.sum()
            right = p[y].sum() + 1e-12
            total -= np.log(right)
            down = down - (F / spread).T @ (p * y / right - p)
        return total, down
    return least(loss, len(spread)) / spread


def fit_pairs(X, y, l2=1.0):
    "Weights of a logistic regression, the last stands alone."
    middle, spread = X.mean(axis=0), X.std(axis=0) + 1e-9
    Z = (X - middle) / spread
    def loss(w):
        z = Z @ w[:-1] + w[-1]
        off = 1 / (1 + np.exp(-z)) - y
        return float((np.logaddexp(0, z) - y * z).sum() + 0.5 * l2 * w[:-1] @ w[:-1]), np.append(Z.T @ off + l2 * w[:-1], off.sum())
    w = least(loss, Z.shape[1] + 1)
    return np.append(w[:-1] / spread, w[-1] - w[:-1] / spread @ middle)


def sums(w, c): return sum_features(c.seen, c.seen.hits @ w.hits, succession(w, c.seen))


def fit_weights(cases):
    "All three tables: what fits is fitted on what is right or was once, the last on what is right."
    hits = fit_choice((c.seen.hits, c.answers | c.outdated) for c in cases)
    said = [(c, np.triu_indices(len(c.seen.top), 1)) for c in cases if c.replaced.size]
    pairs = fit_pairs(np.vstack([c.seen.pairs[u] for c, u in said]), np.concatenate([c.replaced[u] for c, u in said]))
    w = Weights(hits, pairs, np.zeros(len(SUMS)))
    return w._replace(sums=fit_choice((sums(w, c), c.answers) for c in cases))


def as_tables(w):
    "As `data/ranker.json` has them."
    return {name: dict(zip(of, np.round(x, 4).tolist())) for name, of, x in zip(Weights._fields, (HITS, (*PAIRS, "none"), SUMS), w)}


def evaluate(cases, fitted_on, folds=8):
    "Right at 1, 2 and 5, wrong, and how sure, by weights that have not seen the story."
    fold = {s: n % folds for n, s in enumerate(dict.fromkeys(c.story for c in cases))}
    rows = []
    for n in range(min(folds, len(fold))):
        w = fit_weights([c for c in fitted_on if fold.get(c.story) != n])
        for c in (c for c in cases if fold[c.story] == n):
            z = sums(w, c) @ w.sums
            order, first = np.argsort(-z, kind="stable"), 1 / np.exp(z - z.max()).sum()
            rows.append((*(bool(c.answers[order[:k]].any()) for k in (1, 2, 5)), bool(c.outdated[order[0]]), bool(first >= SURE), bool(first >= TWO)))
    told = {name: share(r[n] for r in rows) for n, name in enumerate(("at 1", "at 2", "at 5", "wrong", "sure"))}
    return told | {"at 1, sure": share(r[0] for r in rows if r[4]), "at 2, one of two": share(r[1] for r in rows if r[5] and not r[4]),
                   "at 5, any of these": share(r[2] for r in rows if not r[5])}


def asked_of_sample():
    "Questions in a colleague's words, and by question what answers no longer."
    ids = {}
    for m in sample_memories(): ids.setdefault(m.summary, set()).add(m.id)
    rows = map(json.loads, (FIXTURES / "sample_asked.jsonl").read_text(encoding="utf-8").splitlines())
    def those(titles): return frozenset().union(*(ids[t] for t in titles))
    asked = {Question(str(n), r["question"], those(r["answers"])): those(r["outdated"]) for n, r in enumerate(rows)}
    return [*asked], {q.id: old for q, old in asked.items()}


def shown(x): return {k: f"{100 * s.value:.1f} ({s.k}/{s.n})" for k, s in x.items()}


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("shared", type=Path)
    ap.add_argument("embedder", choices=EMBEDDERS)
    ap.add_argument("--write", action="store_true", help="into data/ranker.json")
    ap.add_argument("--locked", action="store_true", help="the locked half too; once, at the end")
    a = ap.parse_args(argv)
    embedder, settings, now = EMBEDDERS[a.embedder](), load_settings(env={}), datetime(2026, 1, 15, tzinfo=timezone.utc)
    stories = {f: load_stories(a.shared / "stories" / f"{f}.jsonl") for f in ("dev", "dev-2")}
    rows = [json.loads(line) for f in stories for line in (a.shared / "stories" / f"{f}.jsonl").read_text(encoding="utf-8").splitlines()]
    sources = {(s["id"], q["q"]): q["from"] for s in rows for q in s["questions"]}
    own = {f: [c for s in stories[f] for c in story_cases([s], sources, settings, embedder)] for f in stories}
    alone, together = own["dev"] + own["dev-2"], story_cases([*stories["dev"], *stories["dev-2"]], sources, settings, embedder)
    with tempfile.TemporaryDirectory() as d:
        sample = scratch(Path(d) / "sample", memories=sample_memories()).path
        home = fetched((a.shared / "corpus" / "plugin-own-notes.bundle").resolve(), Path(d) / "corpus")
        (asked, old), of_corpus = asked_of_sample(), load_questions(FIXTURES / "corpus_questions.jsonl")
        dev, locked = ([q for q in of_corpus if (q.split == "dev") == x] for x in (True, False))
        told = [*alone, *alone, *together, *asked_cases("corpus", home, dev, settings, embedder, now),
                *asked_cases("sample, asked", sample, asked, settings, embedder, SAMPLE_NOW, old)]
        kept = asked_cases("sample", sample, load_questions(fixture("sample_questions")), settings, embedder, SAMPLE_NOW)
        tests = {"stories": alone, "dev-2": own["dev-2"], "all stories in one": together, "sample": kept,
                 "sample, asked": [c for c in told if c.story == "sample, asked"],
                 "corpus, dev": [c for c in told if c.story == "corpus"]}
        if a.locked: tests["corpus, locked"] = asked_cases("corpus", home, locked, settings, embedder, now)
    for name, asked in tests.items(): print(f"{name}: {shown(evaluate(asked, told))}", flush=True)
    if a.write:
        known = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        known[a.embedder] = as_tables(fit_weights(told))
        WEIGHTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__": main()
