"""What authors who had not seen the rules wrote down: pairs of memories, and lines with and without dates.

The development halves were read and the rules mended by what they showed; of the locked halves only counts were ever looked at.
"""
import json
from dataclasses import replace
from datetime import datetime

import pytest
from calls import gnc
from git_notes_consolidation.evaluation.pairs import load_pairs
from git_notes_consolidation.evaluation.scoring import fixture
from git_notes_consolidation.supersession.judge import judge_pair
from git_notes_consolidation.temporal.resolve import find_references
from helpers import ROOT

pytestmark = pytest.mark.slow

FIXTURES = ROOT / "tests" / "fixtures"


@pytest.fixture(scope="module")
def pairs(): return gnc("evaluate", "supersession", "--data", str(FIXTURES / "supersession_others.jsonl"), "--json").json["pairs"]["split"]


@pytest.fixture(scope="module")
def dates(): return gnc("evaluate", "temporal", "--data", str(FIXTURES / "temporal_others.jsonl"), "--json").json


@pytest.mark.parametrize(("split", "least"), [("dev", 15), ("locked", 5)])
def test_what_is_called_superseded_is(pairs, split, least):
    "Only what is certain: most of what changes is said in no certain words."
    found = pairs[split]["precision"]
    assert found["n"] == found["k"] >= least


@pytest.mark.parametrize("path", [fixture("supersession"), FIXTURES / "supersession_others.jsonl"], ids=["ours", "others"])
def test_no_sentence_is_read_backwards(path):
    "Pairs turned round, the dates as well: a supersession is seen only where the dates alone decide, by the same title or one changed value."
    for p in load_pairs(path):
        said = judge_pair(replace(p.newer, timestamp=p.older.timestamp), replace(p.older, timestamp=p.newer.timestamp))
        assert said.relation != "supersede" or said.code in ("T", "V"), p.id


@pytest.mark.parametrize(("split", "right", "false"), [("dev", 0.99, 110), ("locked", 0.97, 140)])
def test_dates_that_others_wrote(dates, split, right, false):
    found = dates["split"][split]
    assert found["right"]["value"] >= right and found["false"]["k"] <= false


@pytest.mark.parametrize("split", ["dev", "locked"])
def test_a_quotation_is_dated_where_somebody_speaks(split):
    "150 captions and 150 speeches; of the locked half only counts are told."
    rows = [json.loads(line) for line in (FIXTURES / "temporal_others.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [r for r in rows if r["source"].startswith("t6_quotes") and r["split"] == split]
    def dated(r): return any(x.interval for x in find_references(r["text"], datetime.fromisoformat(r["reference"])))
    captions, speeches = ([r for r in rows if bool(r.get("phrase")) is told] for told in (False, True))
    assert (len(captions), len(speeches)) == (75, 75)
    assert sum(dated(r) for r in captions) <= 12 and sum(not dated(r) for r in speeches) <= 5
