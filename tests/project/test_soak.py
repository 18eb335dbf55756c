"""The soak of benchmarks/soak.py in small, and what the large one has found."""

import pytest
from helpers import long

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
