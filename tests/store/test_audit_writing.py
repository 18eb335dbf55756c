"""The auditor on what is written one memory at a time: right as it is written, and each single fault is found."""
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_audit import canonical, ends, expect, in_lines, kind, restamp
from worlds import OBJ, WORLDS, check, in_memory

from git_notes_consolidation.core.memory import SAMPLE_NOW, digest
from git_notes_consolidation.store.events import REFS, Append


@pytest.mark.slow
@given(WORLDS)
@settings(max_examples=40)
def test_what_is_written_one_at_a_time_is_right(w):
    theirs, ours = in_memory(*w)
    r = check(theirs, ours)
    assert r.findings == () and r.checked["operations"] > 8


@pytest.mark.slow
@given(WORLDS, st.data())
@settings(max_examples=40)
def test_a_run_that_arrived_in_part_or_was_taken_back_is_no_fault(w, data):
    memories, runs = w
    i = data.draw(st.integers(1, len(runs) - 2))
    without = [*runs[:i], [a for a in runs[i] if a.store != "runs"], *runs[i + 1:-1]]
    assert check(*in_memory(memories, without)).findings == ()
    undo = [Append("runs", OBJ, {"kind": "undo", "id": "undo_b", "at": SAMPLE_NOW.isoformat(), "targets": [f"run_{i}"]})]
    assert check(*in_memory(memories, [*runs, undo])).findings == ()


NOBODY = "mem_" + "a" * 26


def retold(r, **kw):
    "A line of the log that says something else, under its right name."
    new = r | kw
    return new | {"subject": digest("op", r["run"], {k: v for k, v in new.items() if k not in ("id", "kind", "run", "seq", "subject")})}


def without(r, *names): return {k: v for k, v in r.items() if k not in names}


def between(a, b): return lambda r, by: without(ends(r, by[a].id, by[b].id, type="supersedes"), "edge_kind", "reason", "span")


ANY, SET, WROTE, OP, MERGED = kind("op"), kind("set"), kind("wrote"), kind("op", operation="ADD"), kind("edge", type="merged_into")
VERDICT = (lambda r: "holds" in r)
UNSOUND = [  # Store, which records, what becomes of one
    ("meta", SET, lambda r, by: r | {"subject": r["subject"][:30] + "/colour"}), ("meta", SET, lambda r, by: r | {"value": 7}),
    ("meta", WROTE, lambda r, by: r | {"subject": ""}), ("meta", ANY, lambda r, by: retold(r, operation="FORGET")),
    ("meta", ANY, lambda r, by: retold(r, sources=[1])), ("meta", ANY, lambda r, by: retold(r, at="soon")),
    ("edges", VERDICT, lambda r, by: without(r, "live"))]
# … (nothing: it is lost), beside it or instead of it, level, what is found
PLANTS = [*((*x, False, "broken", "is no sound") for x in UNSOUND),
    ("meta", WROTE, lambda r, by: r | {"subject": NOBODY}, False, "broken", f"wrote {NOBODY}, and no note holds that"),
    ("meta", OP, lambda r, by: retold(r, target=NOBODY), False, "note", f"records tell of them: {NOBODY}"),
    ("meta", ANY, None, False, "broken", "says operations .*, and .* are there"),
    ("edges", kind("edge", type="supersedes"), None, False, "broken", "is a SUPERSEDE of .*, and no edge tells of that"),
    ("edges", MERGED, None, False, "broken", "is a MERGE of .*, and no edge tells of that"),
    ("edges", VERDICT, None, False, "broken", "says review_items 1, and 0 are there"),
    ("edges", MERGED, lambda r, by: ends(r, by["The port is 8443"].id, r["target"]), True, "broken", "merged into .* which does not say .*8443"),
    ("edges", MERGED, between("Half a", "Both halves"), True, "broken", "Supersession goes round"),
    ("edges", kind("edge", type="supersedes"), between("Fact 0", "The port is 8443"), True, "broken", "from the older")]


def planted(w, plant, data):
    "The notes with one fault in one of the records that it fits, and what should be said of it."
    store, pick, change, beside, level, what = plant
    theirs, ours = in_memory(*w)
    by = {m.summary: m for m in w[0]}
    lines = [(r, obj) for n in ours if n.ref == REFS[store] for obj, r in ((n.object, json.loads(x[2:])) for x in n.data.decode().split("\n") if x)]
    undone = w[1][-1][0].record["targets"]
    victim = data.draw(st.sampled_from([r["id"] for r, _ in lines if pick(r) and r.get("run") not in undone]))
    def each(rows):
        for obj, raw in rows:
            r = json.loads(raw[2:])
            if r["id"] != victim or beside: yield obj, raw
            if r["id"] == victim and change: yield obj, canonical(restamp(store, change(r, by))).encode()
    return check(theirs, in_lines(ours, store, each)), level, what


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("plant", PLANTS)
@given(WORLDS, st.data())
@settings(max_examples=12)
def test_a_single_fault_is_found(plant, w, data):
    expect(*planted(w, plant, data))


@pytest.mark.slow
@given(WORLDS)
@settings(max_examples=20)
def test_a_time_that_was_moved_or_a_rule_that_was_bared_is_found(w):
    "Neither field is part of a memory's name; one shows by the order of the chain, one by the text."
    def other(old, new): return [n._replace(data=n.data.replace(f"'{old.isoformat()}'".encode(), f"'{new}'".encode(), 1)) for n in theirs]
    theirs, ours = in_memory(*w)
    chain = [m for m in w[0] if m.summary.startswith("Fact")]
    expect(check(other(chain[-1].valid_from, "2020-01-01"), ours), "broken", "from the older .* to the newer")
    bared = [n._replace(data=n.data.replace(b"escape: \\\n", b"")) if b"8443" in n.data else n for n in theirs]
    expect(check(bared, ours), "broken", "and no note holds that")
