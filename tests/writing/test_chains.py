"""Chains: whatever is drawn at random, against what a few naive lines say of it."""
from datetime import timedelta

import pytest
from calls import gnc, new_repo, run
from git_notes_consolidation.writing import history as ch
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.store.state import State
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.store.versions import metadata_of
from helpers import story
from hypothesis import given, strategies as st

DAY = timedelta(days=1)
NAMES = [f"mem_{c}" for c in "abcdefgh"]
MERGED, REPEATS, SUPERSEDES = EdgeType.MERGED_INTO, EdgeType.DUPLICATE_OF, EdgeType.SUPERSEDES


def replaces(new, old, kind="full", **kw): return MemoryEdge(new, old, SUPERSEDES, kind=kind, **{"reason": "it says so"} | kw)
def day(n): return SAMPLE_NOW + n * DAY
def by_id(memories): return {m.id: m for m in memories}


def chains(there, edges):
    "Every chain of at least two versions."
    found = [ch.chain_of(i, there, edges) for i in there]
    return {c.id: c for c in found if c.edges}


def true_at(there, edges, when): return {v.id for i in there for v in ch.chain_of(i, there, edges).true_at(when)}


@st.composite
def memories(draw, least=1, dead=True):
    "A few memories, true from one day and recorded on another."
    out = {}
    for i in NAMES[:draw(st.integers(least, len(NAMES)))]:
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


@st.composite
def forward(draw, what=("full", "full", "partial", MERGED), dated=True, **kw):
    "Memories and edges of which each leads from an earlier memory to a later one, with its reason; in no circle at least where dates do not count."
    there = draw(memories(2, **kw))
    order = sorted(there, key=lambda i: (there[i].event_time, i)) if dated else draw(st.permutations([*there]))
    edges = {}
    for n, old in enumerate(order[:-1]):
        for new in draw(st.lists(st.sampled_from(order[n + 1:]), max_size=2, unique=True)):
            kind = draw(st.sampled_from(what))
            e = MemoryEdge(old, new, MERGED) if kind == MERGED else edge(new, old, kind)
            edges[e.id] = e
    return there, [*edges.values()]


def kinds(found): return {f.partition(":")[0] for f in found}


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


# Faults


@given(forward(dead=False), st.sampled_from(["cycle", "orphan", "overlap"]))
def test_each_planted_fault_is_found_and_no_other(store, what):
    there, edges = store
    x, y, z = (mem(w, id=w, now=day(n)) for n, w in enumerate(("mem_x", "mem_y", "mem_z")))
    planted = {"cycle": [replaces("mem_y", "mem_x"), replaces("mem_z", "mem_y"), MemoryEdge("mem_z", "mem_x", MERGED)],
               "orphan": [replaces("mem_z", "mem_lost")],
               "overlap": [replaces("mem_x", "mem_y")]}[what]
    found = ch.faults(there | by_id([x, y, z]), edges + planted)
    assert kinds(found) == {what} and len(found) == 1


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
