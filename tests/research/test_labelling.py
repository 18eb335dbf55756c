"""Labels of one's own go where the fixture goes: through the command line, with a model or without, and through the prompt bench."""
import json
import os
import subprocess
import sys

import pytest
from calls import gnc

from git_notes_consolidation.evaluation.labelled import DataError
from git_notes_consolidation.evaluation.pairs import load_pairs
from git_notes_consolidation.research.corpus import load_corpus
from git_notes_consolidation.research.labelling import (
    LabelFile, edges_of, informative_order, judge_candidates, labelled_row, random_order)

REPLIES = {"supersede": "replaces it", "duplicate": "says the same", "coexist": "both hold", "merge": "adds to it"}


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    "Forty labels of the sample, by somebody who always agrees with the judge: where that is wrong, the counts below would differ."
    judged = judge_candidates(load_corpus())
    file = LabelFile(tmp_path_factory.mktemp("own") / "labels.jsonl")
    for x in random_order(edges_of(load_corpus(), judged))[:20]: file.add(labelled_row(x, REPLIES[x.said.relation], "random edges"))
    for x in informative_order(judged):
        if x.id not in file.labels and len(file.pairs) < 40:
            file.add(labelled_row(x, REPLIES[x.said.relation] if x.is_edge else "both hold", "what teaches most"))
    return file


@pytest.mark.slow
def test_gnc_evaluates_them(labels):
    found = gnc("evaluate", "supersession", "--data", str(labels.path), "--json").json["pairs"]
    said = sum(p.relation == "supersede" for p in labels.pairs)
    every = found["pooled"]["all"]
    assert every["n"] == 40 and every["precision"]["k"] == every["precision"]["n"] == said > 0


def test_a_label_that_was_cut_off_is_told_by_its_line(labels, tmp_path):
    torn = tmp_path / "torn.jsonl"
    torn.write_text(labels.path.read_text()[:-40])
    with pytest.raises(DataError, match="line 40"): LabelFile(torn)


@pytest.mark.slow
def test_two_writers_lose_no_label(labels, tmp_path):
    "Each line is one write at the end of the file."
    rows, there = [json.dumps(p.row) for p in labels.pairs], tmp_path / "labels.jsonl"
    code = ("import json, sys; from git_notes_consolidation.research.labelling import LabelFile\n"
            "f = LabelFile(sys.argv[1])\nfor line in sys.stdin: f.add(json.loads(line))")
    writers = [subprocess.Popen([sys.executable, "-c", code, str(there)], stdin=subprocess.PIPE, text=True, env=os.environ) for _ in range(2)]
    for i, p in enumerate(writers): p.stdin.write("\n".join(rows[i::2]) + "\n"); p.stdin.close()
    assert [p.wait(60) for p in writers] == [0, 0] and {p.id for p in load_pairs(there)} == {*labels.labels}
