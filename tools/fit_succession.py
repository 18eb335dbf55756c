"""Fit the weights of supersession/succession.py on labelled stories: python tools/fit_succession.py STORIES.jsonl [...]

Prints the table to paste, and its average precision with one story in six left out.
"""
import json
import numpy as np
import sys
from dataclasses import replace
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from git_notes_consolidation.evaluation.stories import closure, load_stories
from git_notes_consolidation.supersession.judge import WEIGHTS, compared_pairs



NAMES, OUTDATED = list(WEIGHTS), {"supersede"}


def read(files):
    "Of each story its pairs' features, and whether the newer replaces the older."
    for story in (s for f in files for s in load_stories(f)):
        related = closure(story.pairs)
        found = compared_pairs(replace(m, id=k) for k, m in story.memories.items())
        yield np.array([x for _, _, x in found], float), np.array([bool(related.get((a.id, b.id), set()) & OUTDATED) for a, b, _ in found])


def fit(stories):
    model = LogisticRegression(C=0.3, max_iter=5000)  # The bias is not held small
    return model.fit(np.vstack([s[0] for s in stories]), np.concatenate([s[1] for s in stories]))


def main(files):
    stories = list(read(files))
    model = fit(stories)
    weights = dict(zip(NAMES, model.coef_[0].tolist()))
    weights["bias"] += model.intercept_[0]
    print("WEIGHTS =", json.dumps({k: round(w, 2) for k, w in weights.items()}))
    said = [None] * len(stories)
    for k in range(6):
        model = fit([s for i, s in enumerate(stories) if i % 6 != k])
        for i in range(k, len(stories), 6): said[i] = model.predict_proba(stories[i][0])[:, 1]
    print("average precision", round(average_precision_score(np.concatenate([s[1] for s in stories]), np.concatenate(said)), 3))


if __name__ == "__main__": main(sys.argv[1:])
