"""Drives the real plugin, in the Python that it is installed in: requests as JSON on stdin, answers as JSON on stdout, one process for all of them.

Each request is a function's name and its keyword arguments. This package is not imported here, but by `beside`.
"""
import contextlib
import json
import sys
from dataclasses import asdict


def capture(memories):
    "What /memory:capture does."
    from git_notes_memory import get_capture_service
    done = [get_capture_service().capture(**m) for m in memories]
    assert all(r.success for r in done), done
    return [r.memory.id for r in done]


def reindex(full=False):
    "What /memory:sync does, and /memory:sync full."
    from git_notes_memory import get_sync_service
    return get_sync_service().reindex(full=full)


def look(queries):
    "Everything that the plugin's commands read: recall, search, list, get, status, validate, the notes themselves."
    from git_notes_memory import get_recall_service, get_sync_service
    from git_notes_memory.config import NAMESPACES, get_project_index_path
    from git_notes_memory.git_ops import GitOps
    from git_notes_memory.index import IndexService
    recall, sync, notes = get_recall_service(), get_sync_service(), GitOps()
    with contextlib.closing(IndexService(get_project_index_path())) as index:
        index.initialize()
        return {"search": {q: [[r.memory.id, r.distance, asdict(r.memory)] for r in recall.search(q, k=5)] for q in queries},
                "search in decisions": {q: [[r.memory.id, r.distance] for r in recall.search(q, k=5, namespace="decisions")] for q in queries},
                "text": {q: [m.id for m in recall.search_text(q, limit=50)] for q in queries},
                "recent": [m.id for m in recall.list_recent(limit=1000)],
                "namespaces": {n: [m.id for m in recall.get_by_namespace(n)] for n in sorted(NAMESPACES)},
                "all": sorted((asdict(m) for m in index.get_all_memories()), key=lambda m: m["id"]),
                "stats": asdict(index.get_stats()), "verify": asdict(sync.verify_consistency()),
                "collected": sorted((asdict(r) for r in sync.collect_notes()), key=lambda r: (r["namespace"], r["commit_sha"], r["index"])),
                "listed": {n: notes.list_notes(n) for n in sorted(NAMESPACES)}}


def ask(questions):
    "What its own search finds for each question, ten at most: namespace, day and time, summary, content."
    from git_notes_memory import get_recall_service
    found = [get_recall_service().search(q["question"], k=10, namespace=q["namespace"]) for q in questions]
    return [[[r.memory.namespace, r.memory.timestamp.isoformat(), r.memory.summary, r.memory.content] for r in results] for results in found]


def sync_state():
    "How the plugin thinks that git is configured."
    from git_notes_memory.git_ops import GitOps
    return GitOps().is_sync_configured()


def configure():
    "What the plugin adds to git's configuration by itself."
    from git_notes_memory.git_ops import GitOps
    return [GitOps().ensure_sync_configured(), GitOps().is_sync_configured()]


def push():
    "The second half of /memory:sync."
    from git_notes_memory.git_ops import GitOps
    return GitOps().push_notes_to_remote()


def sync_remote():
    "What /memory:sync does with a remote: fetch, merge, push, index."
    from git_notes_memory import get_sync_service
    return get_sync_service().sync_with_remote()


def beside(root):
    "This package in the plugin's own process."
    sys.path.insert(0, root)
    import git_notes_consolidation as g
    import git_notes_memory
    ours, theirs = g.MemoryTier("hot").value, git_notes_memory.get_recall_service().list_recent(limit=1)[0].id
    return [ours, theirs, len(g.get_consolidation_service.__name__), g.is_consolidation_available()]


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr): answers = [globals()[name](**arguments) for name, arguments in json.load(sys.stdin)]
    json.dump(answers, sys.stdout, default=str)
