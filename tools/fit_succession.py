"""Fit the weights of supersession/succession.py on labelled stories: python tools/fit_succession.py STORIES.jsonl [...]

Prints the table to paste, and what it comes to with one story in six left out: average precision, and at each line how many
memories are marked and how many of them are outdated.
"""
import json
import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from git_notes_consolidation.core.memory import Memory, as_utc
from git_notes_consolidation.supersession.succession import WEIGHTS, compared

NAMES = list(WEIGHTS)


def read(files):
    "Of each story its pairs' features, whether the newer replaces the older, and the older one's key and whether it is outdated."
    for story in (json.loads(line) for f in files for line in Path(f).read_text("utf-8").splitlines() if line.strip()):
        related = {(p["older"], p["newer"]): p["relation"] for p in story["pairs"]}
        gone = {a for (a, _), r in related.items() if r != "duplicate"}
        found = compared([Memory(m["k"], "0" * 40, m["namespace"], m["summary"], m["body"], as_utc(m["at"])) for m in story["memories"]])
        yield (np.array([x for _, _, x in found], float), np.array([related.get((a.id, b.id)) == "supersede" for a, b, _ in found]),
               [(story["id"], a.id) for a, _, _ in found], {(story["id"], k) for k in gone})


def fit(stories):
    model = LogisticRegression(C=1, max_iter=5000, fit_intercept=False)
    return model.fit(np.vstack([s[0] for s in stories]), np.concatenate([s[1] for s in stories]))


def main(files):
    stories = list(read(files))
    print("WEIGHTS =", json.dumps(dict(zip(NAMES, fit(stories).coef_[0].round(2).tolist()))))
    said = [None] * len(stories)
    for k in range(6):
        model = fit([s for i, s in enumerate(stories) if i % 6 != k])
        for i in range(k, len(stories), 6): said[i] = model.predict_proba(stories[i][0])[:, 1]
    print("average precision", round(average_precision_score(np.concatenate([s[1] for s in stories]), np.concatenate(said)), 3))
    gone = set().union(*(s[3] for s in stories))
    for line in (0.08, 0.1, 0.12, 0.15, 0.2, 0.3):
        marked = {key for s, p in zip(stories, said) for key, x in zip(s[2], p) if x >= line}
        print(f"from {line}: {len(marked)} marked, {len(marked & gone)} of them outdated; {len(gone - marked)} not marked")


if __name__ == "__main__": main(sys.argv[1:])
