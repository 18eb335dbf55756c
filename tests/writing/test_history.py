"""Chains: whatever is drawn at random, and real documents that others replaced, against what a few naive lines say of them."""
import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from calls import gnc, new_repo, run
from git_notes_consolidation.core.memory import Memory, SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.store.events import Append, append, edge_append, read_events
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.versions import metadata_of
from git_notes_consolidation.store.reader import read_memories, write_memories
from git_notes_consolidation.store.state import State, fold
from git_notes_consolidation.writing import history as ch
from helpers import story
from hypothesis import given, strategies as st

DAY, ENTRY = timedelta(days=1), datetime(2026, 1, 1, tzinfo=UTC)
NAMES = [f"mem_{c}" for c in "abcdefgh"]
MERGED, REPEATS, SUPERSEDES = EdgeType.MERGED_INTO, EdgeType.DUPLICATE_OF, EdgeType.SUPERSEDES


def replaces(new, old, kind="full", **kw): return MemoryEdge(new, old, SUPERSEDES, kind=kind, **{"reason": "it says so"} | kw)
def day(n): return SAMPLE_NOW + n * DAY


def chains(there, edges):
    "Every chain of at least two versions."
    found = [ch.chain_of(i, there, edges) for i in there]
    return {c.id: c for c in found if c.edges}


def true_at(there, edges, when): return {v.id for i in there for v in ch.chain_of(i, there, edges).true_at(when)}


@st.composite
def memories(draw, dead=True):
    "A few memories, true from one day and recorded on another."
    out = {}
    for i in NAMES[:draw(st.integers(1, len(NAMES)))]:
        begins, late = draw(st.integers(0, 6)), draw(st.integers(0, 3))
        status = draw(st.sampled_from(["active"] * 4 + ["tombstone"])) if dead else "active"
        out[i] = mem(f"says {i}", id=i, now=day(begins + late), valid_from=day(begins), status=status)
    return out


def edge(a, b, what, **kw): return MemoryEdge(a, b, what, **kw) if what in (MERGED, REPEATS) else replaces(a, b, what, **kw)


@st.composite
def stores(draw):
    "Memories and any edges between them, sense or nonsense; some to memories that are not there."
    there = draw(memories())
    name, what = st.sampled_from(NAMES), st.sampled_from(["full", "full", "partial", MERGED, REPEATS])
    pairs = draw(st.lists(st.tuples(name, name, what), max_size=10))
    made = {e.id: e for e in (edge(a, b, what) for a, b, what in pairs if a != b)}
    return there, [*made.values()]


# What a chain is


@pytest.mark.slow
@given(stores(), st.randoms())
def test_the_order_of_what_comes_makes_no_difference(store, rng):
    there, edges = store
    names, mixed = rng.sample([*there], len(there)), rng.sample(edges, len(edges))
    other = {i: there[i] for i in names}
    assert chains(other, mixed) == chains(there, edges) and ch.faults(other, mixed) == ch.faults(there, edges)
    assert true_at(other, mixed, day(3)) == true_at(there, edges, day(3))


@given(stores())
def test_each_tied_memory_is_in_one_chain_or_repeats_a_member(store):
    there, edges = store
    all_ = chains(there, edges)
    ids = [v.id for c in all_.values() for v in c.versions]
    assert len(ids) == len({*ids})
    for c in all_.values():
        assert c.id == min((v.memory.event_time, v.id) for v in c.versions)[1] == c.versions[0].id
        for i in (j for v in c.versions for j in (v.id, *v.repeats)): assert ch.chain_of(i, there, edges) == c
    for e in edges:
        if e.edge_type != REPEATS and {e.source_id, e.target_id} <= {*there}: assert {e.source_id, e.target_id} <= {*ids}


def ends(there, edges, v):
    "When a memory stops to be told, from the edges alone."
    out = [max(there[e.target_id].event_time, v.memory.event_time) for e in edges if e.source_id == v.id and e.edge_type in (MERGED, REPEATS)
           and e.target_id in there and there[e.target_id].status != "tombstone"]
    over = (e for e in edges if e.target_id == v.id and e.edge_type == SUPERSEDES and e.kind == "full" and e.source_id in there)
    return out + [max(there[e.source_id].event_time, v.memory.event_time) for e in over]


@given(stores())
def test_true_is_what_the_intervals_say(store):
    there, edges = store
    meta, days = metadata_of(there.values(), edges, (), State()), [day(n) for n in range(-1, 11)]
    true = {when: true_at(there, edges, when) for when in days}
    for c in [*chains(there, edges).values(), *(ch.chain_of(i, there, edges) for i in there)]:
        for v in c.versions:
            assert v.valid_until == meta[v.id].valid_until and v.valid_from == there[v.id].event_time and v.recorded == there[v.id].timestamp
            for when in days:
                holds = v.valid_from <= when and all(when < t for t in ends(there, edges, v)) and v.memory.status != "tombstone"
                assert v.true_at(when) == (v in c.true_at(when)) == holds == (v.id in true[when])
        assert c.heads == c.true_at(day(10_000))


@given(stores(), st.integers(-1, 10), st.integers(-1, 10))
def test_what_was_believed(store, heard, when):
    "Knowing less is the same as a store that holds less."
    there, edges = store
    edges = [ch.replace(e, by="person", created_at=day(n)) if n % 3 == 0 else e for n, e in enumerate(edges)]
    less = {i: m for i, m in there.items() if m.timestamp <= day(heard)}
    some = [e for e in edges if {e.source_id, e.target_id} <= {*less} and not (e.by == "person" and e.created_at > day(heard))]
    known = ch.known_at(there, edges, day(heard))
    assert known == (less, some) and true_at(*known, day(when)) == true_at(less, some, day(when))


@given(memories(dead=False), st.sampled_from(["cycle", "orphan", "overlap"]))
def test_each_planted_fault_is_found_and_no_other(there, what):
    order = sorted(there, key=lambda i: (there[i].event_time, i))
    edges = [replaces(new, old) for old, new in zip(order, order[1:])]
    x, y, z = (mem(w, id=w, now=day(n)) for n, w in enumerate(("mem_x", "mem_y", "mem_z")))
    planted = {"cycle": [replaces("mem_y", "mem_x"), replaces("mem_z", "mem_y"), MemoryEdge("mem_z", "mem_x", MERGED)],
               "orphan": [replaces("mem_z", "mem_lost")],
               "overlap": [replaces("mem_x", "mem_y")]}[what]
    found = ch.faults(there | {m.id: m for m in (x, y, z)}, edges + planted)
    assert [f.partition(":")[0] for f in found] == [what] and ch.faults(there, edges) == []


# Real runs


@pytest.mark.slow
def test_history_is_for_people_and_for_programs(tmp_path):
    home = new_repo(tmp_path, story())
    run(home)
    titles = {m.summary: m for m in read_memories(open_repo(home)).memories}
    old, new, alone = (titles[t] for t in ("ADR-000: We build on Flask", "ADR-010: We build on FastAPI", "About the harbour"))
    told = gnc("history", new.id[:14], "--as-of", f"{SAMPLE_NOW - 100 * DAY:%Y-%m-%d}", repo=home)
    assert told.code == 0 and [line[0] for line in told.out.split("\n")[:2]] == ["○", "●"]
    assert "[true then] ADR-000" in told.out and "“Supersedes ADR-000" in told.out
    data = gnc("--json", "history", old.id, "--as-of", f"{SAMPLE_NOW:%Y-%m-%d}", repo=home).json
    assert (data["chain"], [v["id"] for v in data["versions"]], data["current"], data["true_then"]) == (old.id, [old.id, new.id], [new.id], [new.id])
    assert [(e["source_id"], e["target_id"]) for e in data["edges"]] == [(new.id, old.id)] and data["versions"][0]["valid_until"] == new.timestamp.isoformat()
    then = gnc("--json", "history", old.id, "--known-at", f"{new.timestamp - DAY:%Y-%m-%d}", repo=home).json
    assert (then["current"], len(then["versions"]), then["edges"]) == ([old.id], 1, [])
    assert "was not recorded by 2020-01-01" in gnc("history", old.id, "--known-at", "2020-01-01", repo=home).out
    assert gnc("history", old.id, "--as-of", "once", repo=home).code == gnc("history", "mem_nosuch", repo=home).code == 2
    assert gnc("--json", "history", alone.id, repo=home).json["current"] == [alone.id]


# Real documents: every RFC, PEP, XEP, BIP, EIP and NEP of the labelled pairs that another replaced as a whole, entered as they appeared and in any order


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


def entered(documents, order=None):
    "Each as a memory: recorded on its own date, or, in an order of entry, one an hour."
    def memory(i, n=None):
        d = documents[i]
        when = {"timestamp": date(d)} if n is None else {"timestamp": ENTRY + n * timedelta(hours=1), "valid_from": date(d)}
        return Memory(f"mem_{i}", "0" * 40, "decisions", f"{i}: {d['title']}", d["text"], **when)
    return {i: memory(i, order.index(i) if order else None) for i in documents}


def ties(memory, pairs): return [MemoryEdge(memory[new].id, memory[old].id, EdgeType.SUPERSEDES, reason=why, kind="full") for new, old, why in pairs]


def shuffled(documents, seed=7): return random.Random(seed).sample(sorted(documents), len(documents))


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


@pytest.mark.slow
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
