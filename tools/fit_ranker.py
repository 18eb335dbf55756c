"""Fit what orders answers: python tools/fit_ranker.py ../shared EMBEDDER [--write] [--locked].

EMBEDDER is lexical, static or minilm. Fitted on the labelled stories, each in a repository of its own (twice) and all in one, on the half of the questions
about the plugin's own notes that is given out, and on tests/fixtures/sample_asked.jsonl. Never on data/sample_questions.jsonl, the locked half, or stories
that are kept aside."""
import argparse
import json
import subprocess
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, sample_memories
from git_notes_consolidation.evaluation.ranking import as_tables, asked_cases, cases, evaluate_ranking, fit_weights
from git_notes_consolidation.evaluation.retrieval import Question, load_questions, sample_questions
from git_notes_consolidation.evaluation.stories import load_stories
from git_notes_consolidation.research.before_after import scratch
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.similarity.minilm import MiniLMEmbedder
from git_notes_consolidation.similarity.static import StaticEmbedder

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = ROOT / "git_notes_consolidation" / "data" / "ranker.json"
FIXTURES = ROOT / "tests" / "fixtures"
EMBEDDERS = {"lexical": LexicalEmbedder, "static": StaticEmbedder, "minilm": MiniLMEmbedder}


def asked_of_sample():
    "Questions in a colleague's words, and by question what answers no longer."
    ids = {}
    for m in sample_memories(): ids.setdefault(m.summary, set()).add(m.id)
    rows = map(json.loads, (FIXTURES / "sample_asked.jsonl").read_text(encoding="utf-8").splitlines())
    def those(titles): return frozenset().union(*(ids[t] for t in titles))
    asked = {Question(str(n), r["question"], those(r["answers"])): those(r["outdated"]) for n, r in enumerate(rows)}
    return [*asked], {q.id: old for q, old in asked.items()}


def corpus(shared, home):
    "The plugin's own notes."
    subprocess.run(["git", "init", "-q", "-b", "main", home], check=True)
    subprocess.run(["git", "fetch", "-q", shared / "corpus" / "plugin-own-notes.bundle", "refs/notes/*:refs/notes/*"], cwd=home, check=True)
    return home


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
    own = {f: [c for s in stories[f] for c in cases([s], settings, embedder)] for f in stories}
    alone, together = own["dev"] + own["dev-2"], cases([*stories["dev"], *stories["dev-2"]], settings, embedder)
    with tempfile.TemporaryDirectory() as d:
        sample, home = scratch(Path(d) / "sample", memories=sample_memories()).path, corpus(a.shared, Path(d) / "corpus")
        (asked, old), of_corpus = asked_of_sample(), load_questions(FIXTURES / "corpus_questions.jsonl")
        dev, locked = ([q for q in of_corpus if (q.split == "dev") == x] for x in (True, False))
        told = [*alone, *alone, *together, *asked_cases("corpus", home, dev, settings, embedder, now),
                *asked_cases("sample, asked", sample, asked, settings, embedder, SAMPLE_NOW, old)]
        kept = asked_cases("sample", sample, sample_questions(sample_memories()), settings, embedder, SAMPLE_NOW)
        tests = {"stories": alone, "dev-2": own["dev-2"], "all stories in one": together, "sample": kept,
                 "sample, asked": [c for c in told if c.story == "sample, asked"],
                 "corpus, dev": [c for c in told if c.story == "corpus"]}
        if a.locked: tests["corpus, locked"] = asked_cases("corpus", home, locked, settings, embedder, now)
    for name, asked in tests.items(): print(f"{name}: {shown(evaluate_ranking(asked, fitted_on=told))}", flush=True)
    if a.write:
        known = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        known[a.embedder] = as_tables(fit_weights(told))
        WEIGHTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__": main()
