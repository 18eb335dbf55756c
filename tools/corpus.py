"""What a real corpus makes of the package, as numbers: `python tools/corpus.py ../shared` writes nbs/research/corpus.json.

The corpus is the notes of the plugin's own repository. It is no part of the project, and nothing of its text comes in: only counts.
The research notebooks show the stored numbers, and a test counts again wherever the corpus is at hand.
"""
import argparse
import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "nbs" / "research" / "corpus.json"
QUESTIONS = ROOT / "tests" / "fixtures" / "corpus_questions.jsonl"
NOW = datetime(2025, 12, 28, tzinfo=UTC)  # The day after the last of them
MODES = ("standard", "exhaustive")


def answered(
    home,  # The repository
    settings,
):  # Mode to the figures over all questions
    "How many of the labelled questions are answered."
    from git_notes_consolidation.embedding import LexicalEmbedder
    from git_notes_consolidation.recall import open_recall
    from git_notes_consolidation.retrieval import evaluate_recall, load_questions
    s = open_recall(home, settings, embedder=LexicalEmbedder(), clock=lambda: NOW)
    def search(mode): return lambda q: s.search(q.question, namespace=q.namespace, limit=10, mode=mode, count=False)
    return {mode: evaluate_recall(load_questions(QUESTIONS), search(mode)).all.to_dict() for mode in MODES}


def measure(
    home,  # A repository that holds the notes; a run is made in it and taken back
):
    "Before a run, what it does, after it, and whether all of it was taken back."
    from git_notes_consolidation.config import load_settings
    from git_notes_consolidation.notes import open_repo, read_memories
    from git_notes_consolidation.service import open_service, run, status, undo, view
    from git_notes_consolidation.walking import differences, left_behind, moves, paid, seen
    settings = load_settings({"max_change": 1.0}, env={})
    repo, s = open_repo(home), open_service(home, settings, clock=lambda: NOW)
    left, at_first = left_behind(read_memories(repo)), seen(s)
    before = {"tokens": paid(repo, settings, NOW), "questions": answered(home, settings)}
    result = run(s)
    after = {"tokens": paid(repo, settings, NOW), "questions": answered(home, settings), "tiers": status(s)["tiers"], "edges": status(s)["edges"]}
    made = {k: getattr(result, k) for k in ("memories_distinct", "duplicates_found", "supersessions_detected", "summaries_created", "review_items")}
    records = len(view(repo).events.records)
    undo(s, result.run_id)
    back = {"differs": differences(at_first, seen(s)), "records added by the undo": len(view(repo).events.records) - records}
    return {"left": left.to_dict(), "before": before, "run": made | {"moves": moves(result)}, "after": after, "undone": back}


def fetched(bundle, home):
    "A repository with the notes of a bundle."
    from git_notes_consolidation.notes import git
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
    with tempfile.TemporaryDirectory() as d: figures = measure(fetched((args.shared / "corpus" / "plugin-own-notes.bundle").resolve(), Path(d) / "corpus"))
    source = "the notes of the plugin's own repository (zircote/git-notes-memory-manager, MIT), of nine days in December 2025"
    told = {"source": source, "measured": args.on, "command": "python tools/corpus.py ../shared"} | figures
    STORED.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__": sys.exit(main())
