"""The instrument: the locked half gives nothing but numbers, wrong data is refused by file, line and field, and the public scorer counts the same."""
import json
import math
import runpy
import subprocess
import sys
from dataclasses import replace

import pytest
from calls import gnc
from git_notes_consolidation.evaluation.pairs import POSITIVE, judge_pairs, load_pairs, report_of
from git_notes_consolidation.evaluation.scoring import DataError
from helpers import ROOT

SECRET = "Xyzzy"  # Stands in every text and every id of a locked row


def document(i, words="", day=1):
    return {"id": f"{words}d{i}", "title": f"Decision {i} {words}", "text": f"We build part {i} {words}.", "date": f"2026-01-{day:02}"}


def row(i, label="full", split="dev"):
    words, kind = (SECRET if split == "locked" else ""), "positive" if label in POSITIVE else "trap"
    older, newer = document(f"{i}a", words), document(f"{i}b", words, 2)
    if label != "partial": newer["text"] += f" Supersedes “{older['title']}”."  # Right or wrong; the partial one is missed
    return {"id": f"{words}p{i}", "source": "made", "category": "some", "label": label, "kind": kind, "split": split,
            "relation": "supersede" if kind == "positive" else "coexist", "evidence": f"because {words}", "older": older, "newer": newer}


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def test_the_cli_tells_nothing_of_the_locked_half(tmp_path):
    "Neither of pairs, nor of what never reaches the judge; it counts them."
    halves = ("dev", "locked")
    data = write(tmp_path / "p.jsonl", [row(f"{half}{i}", label, half) for half in halves for i, label in enumerate(("full", "partial", "coexist", "none"))])
    for args in ((), ("--json",), ("-v",)):
        said = gnc("evaluate", "supersession", "--data", data, "--failures", 99, *args)
        assert said.code == 0 and SECRET not in said.out + said.err and "pdev1" in said.out
        if args != ("--json",): continue
        assert said.json["pairs"]["split"]["locked"]["n"] == 4
        assert said.json["pairs"]["failures"]


@pytest.mark.parametrize("wrong, said", [
    ({"id": None}, "id: Input should be a valid string"), ({"label": SECRET}, "label: Input should be 'full', 'partial', 'coexist' or 'none'"),
    ({"relation": SECRET}, "relation: Input should be"), ({"relation": "merge"}, "relation: supersede goes with"),
    ({"kind": SECRET}, "kind: positive goes with"), ({"older": SECRET}, "older: Input should be a dictionary"),
    ({"newer": {"id": SECRET, "text": ""}}, "newer: title: Field required"), ({"category": 3}, "category: Input should be"),
    ({"older": document(1) | {"date": SECRET}}, "older: date: a time such as"), ({"older": document(1), "newer": document(1)}, "newer.id: a pair needs two"),
    ({"split": [SECRET]}, "split: Input should be")])
def test_a_wrong_row_is_refused_by_file_line_and_field_and_not_quoted(tmp_path, wrong, said):
    path = write(tmp_path / "p.jsonl", [row(1), row(2) | wrong])
    with pytest.raises(DataError) as e: load_pairs(path)
    assert str(e.value).startswith(f"{path}, line 2: {said}") and SECRET not in str(e.value)


@pytest.mark.slow
def test_the_shared_scorer_agrees(shared):
    path = shared / "supersession" / "pairs.dev.jsonl"
    done = subprocess.run([sys.executable, str(path.parent / "score.py"), "--json", str(path)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    memory = runpy.run_path(str(path.parent / "score.py"))["memory"]
    pairs = [replace(p, older=memory(p.row["older"]), newer=memory(p.row["newer"])) for p in load_pairs(path)]
    theirs, r = json.loads(done.stdout), report_of(judge_pairs(pairs))
    ours = {**r.scores["source"], "all": r.all}
    assert theirs.keys() == ours.keys()
    for name, t in theirs.items():
        s = ours[name]
        assert (s.n, s.recall.n, s.precision.n, s.precision.k) == (t["n"], t["positive"], t["emitted"], t["right"])
        if t["emitted"]: assert math.isclose(s.precision.to_dict()["low"], t["precision_low"], abs_tol=1e-3)
