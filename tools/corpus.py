"""What a real corpus makes of the package, as numbers: `python tools/corpus.py ../shared` writes nbs/research/corpus.json.

The corpus is the notes of the plugin's own repository. It is no part of the project, and nothing of its text comes in: only counts.
The research notebooks show the stored numbers, and a test counts again wherever the corpus is at hand.
"""
import argparse
import json
import os
import runpy
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "nbs" / "research" / "corpus.json"
QUESTIONS = ROOT / "tests" / "fixtures" / "corpus_questions.jsonl"
NOW = datetime(2025, 12, 28, tzinfo=UTC)  # The day after the last of them
MODES = (None, "standard", "exhaustive")  # None: as far down as a question needs


def answered(
    home,  # The repository
    settings,
):  # Mode to the figures over all questions
    "How many of the labelled questions are answered."
    from git_notes_consolidation.similarity.embedders import StaticEmbedder
    from git_notes_consolidation.recall.service import open_recall
    from git_notes_consolidation.evaluation.scoring import evaluate_recall, load_questions
    s = open_recall(home, settings, embedder=StaticEmbedder(), clock=lambda: NOW)
    def search(mode): return lambda q: s.search(q.question, namespace=q.namespace, limit=10, mode=mode, count=False)
    return {mode or "as needed": evaluate_recall(load_questions(QUESTIONS), search(mode)).to_dict() for mode in MODES}


def counting():
    "The functions with which nbs/research/05_walk.ipynb counts."
    cells = json.loads((ROOT / "nbs" / "research" / "05_walk.ipynb").read_text(encoding="utf-8"))["cells"]
    names = ("capture_report", "differences", "session_costs", "snapshot")
    texts = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "page.py"
        page.write_text("\n\n".join(t for t in texts if t.startswith("#| hide") or any(f"def {name}(" in t for name in names)), encoding="utf-8")
        found = runpy.run_path(str(page))
    return [found[name] for name in names]


def measure(
    home,  # A repository that holds the notes; a run is made in it and taken back
):
    "Before a run, what it does, after it, and whether all of it was taken back."
    from git_notes_consolidation.core.loading import load_settings
    from git_notes_consolidation.store.git import open_repo
    from git_notes_consolidation.store.reader import read_memories
    from git_notes_consolidation.consolidation.stores import open_service
    from git_notes_consolidation.consolidation.service import run
    from git_notes_consolidation.consolidation.status import status, undo
    from git_notes_consolidation.consolidation.scan import view
    capture_report, differences, session_costs, snapshot = counting()
    settings = load_settings({"max_change": 1.0}, env={})
    repo, s = open_repo(home), open_service(home, settings, clock=lambda: NOW)
    left, at_first = capture_report(read_memories(repo)), snapshot(s)
    before = {"tokens": session_costs(repo, settings, NOW), "questions": answered(home, settings)}
    result = run(s)
    after = {"tokens": session_costs(repo, settings, NOW), "questions": answered(home, settings), "tiers": status(s)["tiers"], "edges": status(s)["edges"]}
    made = {k: getattr(result, k) for k in ("memories_distinct", "duplicates_found", "supersessions_detected", "summaries_created", "review_items")}
    moved = dict(sorted(Counter(f"{t.from_tier.value} → {t.to_tier.value}" for t in result.tier_transitions).items()))
    records = len(view(repo).events.records)
    undo(s, result.run_id)
    back = {"differs": differences(at_first, snapshot(s)), "records added by the undo": len(view(repo).events.records) - records}
    return {"left": left, "before": before, "run": made | {"moves": moved}, "after": after, "undone": back}


def fetched(bundle, home):
    "A repository with the notes of a bundle."
    from git_notes_consolidation.store.git import git
    home.mkdir(parents=True)
    git(home, "init", "-q", "-b", "main")
    git(home, "fetch", "-q", str(bundle), "refs/notes/*:refs/notes/*")
    return home


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("shared", type=Path, help="the folder that holds corpus/plugin-own-notes.bundle")
    ap.add_argument("--on", default=f"{datetime.now(UTC):%Y-%m-%d}", help="the day that is noted; default: today")
    args = ap.parse_args(argv)
    sys.path.insert(0, str(ROOT))
    os.environ.pop("TIKTOKEN_CACHE_DIR", None)
    with tempfile.TemporaryDirectory() as d:
        figures = measure(fetched((args.shared / "corpus" / "plugin-own-notes.bundle").resolve(), Path(d) / "corpus"))
    source = "the notes of the plugin's own repository (zircote/git-notes-memory-manager, MIT), of nine days in December 2025"
    told = {"source": source, "measured": args.on, "command": "python tools/corpus.py ../shared"} | figures
    STORED.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__": sys.exit(main())
