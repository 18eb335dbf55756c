"""The benchmark suite: what it generates is what a real corpus is like, and a small run of it writes what the page reads. No time is asserted."""
import json
import re
import subprocess
import sys
from collections import Counter

import pytest
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
from helpers import ROOT, long

pytestmark = pytest.mark.slow

import bench  # noqa: E402
from generate import add, generate, repository  # noqa: E402


def test_a_repository_holds_them_and_what_is_added_later(tmp_path):
    memories = generate(260)
    repo = repository(tmp_path / "r", memories[:200])
    assert [m.summary for m in read_memories(repo).memories] == [m.summary for m in memories[:200]]
    add(repo, memories[200:])
    assert Counter((m.text, m.timestamp) for m in read_memories(open_repo(tmp_path / "r")).memories) == Counter((m.text, m.timestamp) for m in memories)


@long
def test_a_small_suite_writes_what_the_page_reads(tmp_path):
    out = tmp_path / "results.json"
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "bench.py"), "200", "--out", str(out), "--flame", "0"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(out.read_text())
    there = {r["what"] for r in told["rows"]}
    runs = {"full run", "run after 100 more", "run after that recall", "status"}
    assert there | {x["what"] for x in told["not_run"]} >= {name for name, *_ in (*bench.JOBS, *bench.AFTER)} | runs
    assert {"clustering", "clustering, one component", "read notes", "index rebuild, cold", "full run", "session start (hook)"} <= there
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
    told, flame = json.loads(text), (ROOT / "benchmarks" / "flame.json").read_text()
    assert {"cpu", "cores", "memory_gib", "python", "git", "date"} <= set(told["machine"])
    assert not re.search(r"[\s\x22(]/\w+/", text + flame) and len(flame) < 60_000
    assert json.loads(flame)["stacks"]
