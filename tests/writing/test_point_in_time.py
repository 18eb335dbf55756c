"""What was true on a day, on chains of real documents: every RFC, PEP, XEP, BIP, EIP and NEP of the labelled pairs that another replaced as a whole.

The texts and labels are not part of the project; without them the tests are skipped. The documents are entered as they appeared, and again in
any order, with the date at which each began to hold. Whatever the order, what is current and what was true on a day must come out the same, and as
a few naive lines say that know nothing of memories.
"""
import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from calls import new_repo
from git_notes_consolidation.writing import history as ch
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.core.memory import Memory
from git_notes_consolidation.store.events import Append, edge_append, read_events
from git_notes_consolidation.store.writer import append
from git_notes_consolidation.store.state import fold
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories, write_memories

pytestmark = pytest.mark.slow

DAY, ENTRY = timedelta(days=1), datetime(2026, 1, 1, tzinfo=UTC)


# The naive account: documents, dates, and pairs of newer and older


@pytest.fixture(scope="module")
def labelled(shared):
    "Dates and texts by document, and who replaced whom as a whole."
    path = shared / "supersession" / "pairs.dev.jsonl"
    if not path.exists(): pytest.skip(f"no {path.name} in the shared data")
    rows = [r for r in map(json.loads, path.read_text(encoding="utf-8").splitlines()) if r["label"] == "full" and r["split"] == "dev"]
    documents = {d["id"]: d for r in rows for d in (r["older"], r["newer"])}
    return documents, [(r["newer"]["id"], r["older"]["id"], r["evidence"]) for r in rows]


def date(d): return datetime.fromisoformat(d["date"]).replace(tzinfo=UTC)


def groups(documents, pairs):
    "Documents that pairs connect."
    name = {i: i for i in documents}
    for new, old, _ in pairs:
        was, now = name[new], name[old]
        name = {i: now if n == was else n for i, n in name.items()}
    return [[i for i in documents if name[i] == n] for n in sorted({*name.values()})]


def naive(documents, pairs, group, when=None):
    "What holds of a group, now or on a day: from its own date until the least date of those that replace it."
    out = set()
    for i in sorted(group, key=lambda i: documents[i]["date"]):
        ends = [date(documents[new]) for new, old, _ in pairs if old == i and new in group]
        if when is None: holds = not ends
        else: holds = date(documents[i]) <= when < min(ends, default=when + DAY)
        if holds: out.add(i)
    return out


def twenty(documents, group):
    "Twenty moments: where something begins and just before, then evenly from before the first to after the last."
    dates = sorted({date(documents[i]) for i in group})
    near = [t for d in dates for t in (d, d - timedelta(seconds=1))]
    start, step = dates[0] - DAY + timedelta(microseconds=7), timedelta(seconds=(dates[-1] - dates[0] + 2 * DAY).total_seconds() // (19 - len(near)))
    return sorted([*near, *(start + n * step for n in range(20 - len(near)))])


# The documents as memories


def entered(documents, order=None):
    "Each as a memory: recorded on its own date, or, in an order of entry, one an hour."
    def memory(i, n=None):
        d = documents[i]
        when = {"timestamp": date(d)} if n is None else {"timestamp": ENTRY + n * timedelta(hours=1), "valid_from": date(d)}
        return Memory(f"mem_{i}", "0" * 40, "decisions", f"{i}: {d['title']}", d["text"], **when)
    return {i: memory(i, order.index(i) if order else None) for i in documents}


def ties(memory, pairs): return [MemoryEdge(memory[new].id, memory[old].id, EdgeType.SUPERSEDES, reason=why, kind="full") for new, old, why in pairs]


def shuffled(documents, seed=7): return random.Random(seed).sample(sorted(documents), len(documents))


def true_at(there, edges, when): return {v.id for i in there for v in ch.chain_of(i, there, edges).true_at(when)}


def agree(documents, pairs, memory, edges):
    "Checks every chain; how many chains and dates were right."
    named, there = {m.id: i for i, m in memory.items()}, {m.id: m for m in memory.values()}
    found, right = {c.id: c for i in there for c in [ch.chain_of(i, there, edges)] if c.edges}, 0
    assert sorted(sorted(named[v.id] for v in c.versions) for c in found.values()) == sorted(map(sorted, groups(documents, pairs)))
    for c in found.values():
        group = {named[v.id] for v in c.versions}
        assert {named[v.id] for v in c.heads} == naive(documents, pairs, group), group
        days = twenty(documents, group)
        assert len({*days}) == 20
        for when in days:
            assert {named[v.id] for v in c.true_at(when)} == naive(documents, pairs, group, when), (group, when)
            right += 1
    return len(found), right


@pytest.mark.parametrize("late", [False, True], ids=["in order of date", "in any order"])
def test_every_chain_in_a_real_repository(labelled, tmp_path, late):
    "The notes as the plugin writes them, the edges as records of runs, everything read back."
    documents, pairs = labelled
    order = shuffled(documents) if late else sorted(documents, key=lambda i: documents[i]["date"])
    repo = open_repo(new_repo(tmp_path / "repo"))
    write_memories(repo, [*entered(documents, order if late else None).values()])
    read = {m.summary: m for m in read_memories(repo).memories}
    memory = {i: read[f"{i}: {d['title']}"] for i, d in documents.items()}
    assert len(read) == len(documents) and all(m.event_time == date(documents[i]) for i, m in memory.items())
    place = {memory[i].id: n for n, i in enumerate(order)}
    edges = sorted(ties(memory, pairs), key=lambda e: max(place[e.source_id], place[e.target_id]))
    for n in range(4):
        part, now = edges[n::4] if late else edges[n * len(edges) // 4:(n + 1) * len(edges) // 4], ENTRY + n * DAY
        log = Append("runs", memory[order[0]].commit_sha, {"kind": "run", "id": f"run_{n}", "at": now.isoformat(), "counts": {}})
        append(repo, lambda _, part=part, n=n, now=now, log=log: [*(edge_append(memory[order[0]].commit_sha, e, f"run_{n}", now) for e in part), log], now)
    told = [*fold(read_events(repo)).edges.values()]
    assert len(told) == len(pairs)
    assert agree(documents, pairs, memory, told)[0] > 200 and ch.faults({m.id: m for m in memory.values()}, told) == []
