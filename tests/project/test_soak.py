"""The soak of benchmarks/soak.py in small, and what the large one has found."""
from dataclasses import replace

import pytest
from helpers import long
from calls import new_repo
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import CaptureConfidence, MemorySummary, MemoryTier
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories, write_memories
from git_notes_consolidation.recall.service import open_recall
from git_notes_consolidation.consolidation.stores import SummaryStore

from soak import Soak

pytestmark = pytest.mark.slow


@long
def test_25_runs_of_a_year(tmp_path):
    "Captures, recalls, decisions, syncs of two clones, a failing model, an undo and a crowd: no invariant is broken."
    said = []
    s = Soak(tmp_path, runs=25, memories=60, clones=2, every=25, say=lambda text, **kw: said.append(text))
    s.moments = {"at once": 15, "undo": 11, "model": 12}
    report = s.year()
    assert report["violations"] == [] and report["last"]["memories"] >= 60
    assert {"captured", "recalled", "synced", "at once", "runs with a model", "undone"} <= report["did"].keys() and report["model_replies"]


def test_the_soak_can_fail(tmp_path):
    "A memory that is gone, and clones that do not agree, are violations."
    s = Soak(tmp_path, runs=4, memories=8, clones=2, every=9, say=lambda *a, **kw: None)
    s.clones[0].known.add("mem_that_nobody_wrote"); s.clones[1].known.add("mem_that_nobody_wrote")
    with s.server: s.step(1)
    assert any("memories are lost" in v["what"] for v in s.violations)


def test_two_summaries_that_say_the_same(tmp_path):
    "They shared one vector, and every search failed. The soak found it at its 109th run."
    home = new_repo(tmp_path / "w")
    write_memories(open_repo(home), [mem(f"The pool opens after the fork, said {n}", days_ago=n) for n in (3, 4, 5, 6)])
    there = read_memories(open_repo(home)).memories
    one = MemorySummary("sum_" + "a" * 26, "decisions", SAMPLE_NOW, (there[0].timestamp, there[1].timestamp), "The pool opens after the fork.", (), (), (),
                        (there[0].id, there[1].id), None, CaptureConfidence(0.9), title="The pool", tier=MemoryTier.HOT)
    two = replace(one, id="sum_" + "b" * 26, source_memory_ids=(there[2].id, there[3].id), temporal_range=(there[2].timestamp, there[3].timestamp))
    for x in (one, two): SummaryStore(open_repo(home)).put(x, SAMPLE_NOW)
    recall = open_recall(home, clock=lambda: SAMPLE_NOW)
    assert recall.search("pool fork", count=False)
    assert {r.id for r in recall.search("*", limit=99, count=False) if r.kind == "summary"} == {one.id, two.id}
