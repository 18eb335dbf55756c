"""The benchmarks: a small run writes what the page reads, the soak's invariants can fail, and what is stored names no place. No time is asserted."""
import json
import re
import subprocess
import sys

import bench
import pytest
from helpers import ROOT, long
from soak import Soak

pytestmark = pytest.mark.slow


@long
def test_a_small_suite_writes_what_the_page_reads(tmp_path):
    out = tmp_path / "results.json"
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "bench.py"), "200", "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(out.read_text())
    there = {r["what"] for r in told["rows"]}
    runs = {"full run", "run after 100 more", "run after that recall", "status", "session start (hook)"}
    assert there | {x["what"] for x in told["not_run"]} >= {name for name, *_ in (*bench.JOBS, *bench.AFTER)} | runs and runs <= there
    assert all(r["cpu"] >= 0 and r["mb"] > 1 for r in told["rows"]) and str(ROOT) not in out.read_text()
    assert next(r["memories"] for r in told["rows"] if r["what"] == "read notes") == 200
    page = {}
    for c in json.loads((ROOT / "nbs" / "research" / "06_scale.ipynb").read_text(encoding="utf-8"))["cells"]:
        text = "".join(c["source"])
        if c["cell_type"] == "code" and (text.startswith("#| hide") or "\ndef " in f"\n{text}"): exec(text, page)
    assert "git cat-file --batch / read notes" in page["ratios"](told)
    assert len(page["growth_table"](told)) == len(there) and set(page["targets"](told)["met"]) <= {"yes", "no", "not run"}


def test_the_stored_results_are_whole_and_name_no_place():
    text = (ROOT / "benchmarks" / "results.json").read_text()
    assert {"cpu", "cores", "memory_gib", "python", "git", "date"} <= set(json.loads(text)["machine"]) and not re.search(r"[\s\x22(]/\w+/", text)


@long
def test_25_runs_of_a_year(tmp_path):
    "Captures, recalls, decisions, syncs of two clones, a failing model, an undo and a crowd: no invariant is broken."
    s = Soak(tmp_path, runs=25, memories=60, clones=2, every=25, say=lambda *a, **kw: None)
    s.moments = {"at once": 15, "undo": 11, "model": 12}
    report = s.year()
    assert report["violations"] == [] and report["last"]["memories"] >= 60
    assert {"captured", "recalled", "synced", "at once", "runs with a model", "undone"} <= report["did"].keys() and report["model_replies"]


def test_the_soak_can_fail(tmp_path):
    "A memory that is gone is a violation."
    s = Soak(tmp_path, runs=4, memories=8, clones=2, every=9, say=lambda *a, **kw: None)
    for c in s.clones: c.known.add("mem_that_nobody_wrote")
    with s.server: s.step(1)
    assert any("memories are lost" in v["what"] for v in s.violations)
