"""For tests: memories that were written one at a time, and the notes that would hold them."""
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from hypothesis import strategies as st

from git_notes_consolidation.store import events as notes
from git_notes_consolidation.store import reader as store_reader
from git_notes_consolidation.store import audit
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType, MemoryEdge, MemoryTier
from git_notes_consolidation.store.events import REFS, Append
from git_notes_consolidation.store.git import Notes

OBJ = "ab" * 20
SAID = ("The pool holds 20.", "It is not cached.", "Never retry `POST /jobs`.", "---", "\\---", " --- ", "type: decisions", "See retry_limit in src/pool.py.",
        "Since v2.1.", "Five workers, 1,000 jobs.", "")


class Note(NamedTuple):
    "One entry of a notes tree."
    ref: str
    object: str
    path: str
    data: bytes


def snapshot_of(theirs, ours):
    "What notes say that are nowhere."
    notes, places = [*theirs, *ours], {}
    for i, n in enumerate(notes): places.setdefault(n.ref, []).append((n.object, n.path, str(i)))
    return audit.read_snapshot(None, Notes(dict.fromkeys(places, ""), places, {str(i): n.data for i, n in enumerate(notes)}))


def check(theirs, ours): return audit.check_snapshot(snapshot_of(theirs, ours))


def op(operation, target, sources=(), **kw):
    said = {"classification": "x", "confidence": 0.9, "reasoning": "y", "before": {}, "after": {}, "session": "s", "at": SAMPLE_NOW.isoformat()}
    return Append("meta", OBJ, {"kind": "op", "operation": operation, "sources": list(sources), "target": target} | said | kw)


def run_of(i, *appends):
    "A run of these records, with its own."
    run = f"run_{i}"
    def mine(a):
        if a.record["kind"] == "op": return notes.op_append(OBJ, {k: v for k, v in a.record.items() if k != "kind"}, run)
        return replace(a, record=dict(a.record) | {"run": run})
    made = [mine(a) for a in appends]
    n = {k: sum(a.record["kind"] == kind for a in made) for k, kind in (("operations", "op"), ("review_items", "review"))}
    return [*made, Append("runs", OBJ, {"kind": "run", "id": run, "at": SAMPLE_NOW.isoformat(), "counts": n})]


def linked(what, new, old, **kw): return notes.edge_append(OBJ, MemoryEdge(new.id, old.id, what, by="remember", **kw), "", SAMPLE_NOW)


def hidden(m): return notes.tier_append(m, MemoryTier.HOT, MemoryTier.ARCHIVED, "replaced", 0.1, "")


def added(m): return notes.wrote_append(m, ""), op("ADD", m.id)


def replaced(new, old, **kw):
    e = linked(EdgeType.SUPERSEDES, new, old, kind="full", **kw)
    return e, hidden(old), op("SUPERSEDE", old.id, [new.id], after={"edge": e.record["subject"]})


def merged(m, *sources):
    edges = (linked(EdgeType.MERGED_INTO, x, m) for x in sources)
    return notes.wrote_append(m, ""), op("MERGE", m.id, [x.id for x in sources]), *edges, *map(hidden, sources)


def world(texts, days, late, forgotten):
    "Memories and runs: a chain (the first days in it hold), a merge, fields set, a question decided, a run taken back."
    def said(i, text, when): return mem(f"Fact {i}", text, days_ago=1 + i / 10, valid_from=SAMPLE_NOW - timedelta(days=when))
    chain = [said(i, t, d) for i, (t, d) in enumerate(zip(texts, sorted(days, reverse=True)))]
    a, b = (mem(f"Half {x}", t, days_ago=9, namespace="learnings") for x, t in zip("ab", texts))
    whole = mem("Both halves", "\n\n".join((a.text, b.text)), days_ago=0.5, valid_from=a.timestamp)
    port, taken = mem("The port is 8443", "A rule:\n---\nUse `tls_port`.", days_ago=0.1), mem("Said by mistake", days_ago=2)
    steps = [[x for m in (*chain, a, b, port) for x in added(m)]]
    links = [replaced(new, old) for old, new in zip(chain, chain[1:])]
    steps += links[::-1] if late else links
    steps += [merged(whole, a, b), [notes.set_append(port, "tags", ["net"], ""), op("UPDATE", port.id)]]
    steps += [[notes.set_append(m, "status", "tombstone", ""), op("DELETE", m.id)] for m in (*chain, a, b)[:forgotten]]
    steps += [[notes.set_append(m, "status", "active", ""), op("RESTORE", m.id)] for m in chain[:forgotten - 1]]
    asked = MemoryEdge(port.id, whole.id, EdgeType.SUPERSEDES).id
    steps += [[notes.review_append(OBJ, asked, said, "")] for said in ({"what": "edge", "reason": "unsure"}, {"live": False, "holds": False})]
    steps.append(added(taken))
    runs = [run_of(i, *appends) for i, appends in enumerate(steps)]
    undo = [Append("runs", OBJ, {"kind": "undo", "id": "undo_a", "at": SAMPLE_NOW.isoformat(), "targets": [f"run_{len(runs) - 1}"]})]
    return [*chain, a, b, whole, port, taken], [*runs, undo]


def in_memory(memories, runs):
    "The notes that hold them, the plugin's and ours."
    texts = [(f"refs/notes/mem/{m.namespace}", f"{i:040}", store_reader.note_text(m, escape=True).encode()) for i, m in enumerate(memories)]
    theirs = [Note(ref, obj, obj, text) for ref, obj, text in texts]
    texts = {s: [notes.encode(notes.stamp(a, i + 1)) for i, appends in enumerate(runs) for a in appends if a.store == s] for s in REFS}
    return theirs, [Note(REFS[s], OBJ, OBJ, "\n".join(dict.fromkeys(rows)).encode() + b"\n") for s, rows in texts.items() if rows]


BODIES = st.lists(st.sampled_from(SAID), max_size=4).map(lambda rows: "\n".join(rows).strip("\n"))
DAYS = st.lists(st.integers(20, 90), min_size=2, max_size=4).filter(lambda days: len(set(days)) > 1)
WORLDS = st.builds(world, st.lists(BODIES, min_size=4, max_size=4), DAYS, st.booleans(), st.integers(0, 4))
WORLD = world(SAID[:4], (90, 60, 30), True, 2)
