"""The instrument: known answers give known numbers, the locked half gives nothing but numbers, and wrong data is refused by file, line and field."""
import json
import math
import runpy
import subprocess
import sys
from dataclasses import replace

import pytest
from calls import gnc
from git_notes_consolidation.evaluation import pairs as evaluation_pairs
from git_notes_consolidation.evaluation import intervals as ev
from git_notes_consolidation.evaluation import judge as evaluation_judge
from git_notes_consolidation.evaluation import candidates as evaluation_candidates
from git_notes_consolidation.evaluation import chains as evaluation_chains
from git_notes_consolidation.evaluation import labelled as evaluation_labelled
from git_notes_consolidation.core.models import Judgment
from helpers import ROOT

SECRET = "Xyzzy"  # Stands in every text and every id of a locked row


def document(i, words="", day=1):
    return {"id": f"{words}d{i}", "title": f"Decision {i} {words}", "text": f"We build part {i} {words}.", "date": f"2026-01-{day:02}"}


def row(i, label="full", say="coexist", split="dev", **more):
    "A pair; the newer text tells the `told` judge what to say."
    words, kind = (SECRET if split == "locked" else ""), "positive" if label in evaluation_pairs.POSITIVE else "trap"
    newer = document(f"{i}b", words, 2)
    return {"id": f"{words}p{i}", "source": "made", "category": "some", "label": label, "kind": kind, "split": split,
            "relation": {"full": "supersede", "partial": "supersede"}.get(label, "coexist"), "evidence": f"because {words}",
            "older": document(f"{i}a", words), "newer": newer | {"text": f"{newer['text']} SAY {say}"}} | more


def told(older, newer):
    "A judge that does as it is told: relation, kind, confidence, code."
    relation, kind, confidence, code = [*newer.content.rpartition("SAY ")[2].split(), "", "", ""][:4] if "SAY " in newer.content else ("coexist", "", "", "")
    return Judgment(relation, kind or None, float(confidence or 0.1), code or None, newer.content, newer.summary)


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def pairs(*rows): return tuple(map(evaluation_pairs.pair_of, rows))


@pytest.fixture
def mixed():
    "Both halves, with every kind of right and wrong answer in each."
    answers = [("full", "supersede full 0.9 E"), ("full", "supersede partial 0.8 E"), ("partial", "coexist"), ("coexist", "supersede full 0.7 T"),
               ("coexist", "coexist x 0.9"), ("none", "duplicate"), ("full", "supersede full 0.9 V"), ("full", "breaks")]
    return [row(f"{split}{i}", label, say.replace("coexist x", "coexist full"), split) for split in ("dev", "locked") for i, (label, say) in enumerate(answers)]


# Numbers


def test_known_answers_give_known_numbers(mixed):
    s = evaluation_judge.evaluate_pairs(pairs(*mixed[:7]), told).all
    assert (s.n, s.precision, s.recall, s.traps) == (7, ev.Share(3, 4), ev.Share(3, 4), ev.Share(1, 3))
    assert s.kinds == {"full": {"full": 2, "partial": 1}}
    assert s.relations.counts() == {"coexist": {"coexist": 1, "duplicate": 1, "supersede": 1}, "supersede": {"coexist": 1, "supersede": 3}}
    assert s.macro_f1 == pytest.approx((2 / 5 + 6 / 8 + 0) / 3)
    assert s.brier == pytest.approx((0.01 + 0.04 + 0.49 + 0.01) / 4)
    assert s.codes == {"E": ev.Share(2, 2), "T": ev.Share(0, 1), "V": ev.Share(1, 1)}
    assert s.abstained == ev.Share(2 - 1, 7)  # one said nothing at .1; the other coexist was sure
    assert [(p.confidence, p.precision, p.recall) for p in s.curve] == [(0.9, 1.0, 0.5), (0.8, 1.0, 0.75), (0.7, 0.75, 0.75)]
    assert (s.recall_at(0.95), s.recall_at(0.7), s.recall_at(1.01)) == (0.75, 0.75, 0.0)
    assert [(b.low, b.right) for b in s.bins] == [(0.7, ev.Share(0, 1)), (0.8, ev.Share(1, 1)), (0.9, ev.Share(2, 2))]


# The locked half


def everything(value):
    "All text in a value, keys as well."
    if isinstance(value, dict): yield from (t for pair in value.items() for x in pair for t in everything(x))
    elif isinstance(value, (list, tuple, set, frozenset)): yield from (t for x in value for t in everything(x))
    elif not isinstance(value, (int, float, type(None))): yield str(value)


@pytest.fixture
def chains():
    def chain(i, split):
        words = SECRET if split == "locked" else ""
        ms = [document(f"{i}{c}", words, 3 + n) for n, c in enumerate("abc")]
        ids = [m["id"] for m in ms]
        return {"id": f"{words}c{i}", "source": "made", "type": "abc", "split": split, "memories": ms,
                "edges": [[ids[1], ids[0], "full"], [ids[2], ids[1], "full"]], "current": ids[2:]}
    return [chain(1, "dev"), chain(2, "locked")]


def test_the_locked_half_gives_numbers_only(mixed, chains):
    ps = pairs(*mixed)
    r = evaluation_judge.evaluate_pairs(ps, told)
    c = evaluation_candidates.evaluate_candidates(ps, k=0)
    h = evaluation_chains.evaluate_chains(tuple(map(evaluation_chains.chain_of, chains)))
    assert r.scores["split"]["locked"].n == 8 and c.scores["split"]["locked"].recall == ev.Share(0, 5) and h.scores["split"]["locked"].recall.n == 2
    assert len(r.failures) == 5 and len(c.failures) == 5 and len(h.failures) == 1
    figure = evaluation_judge.reliability_figure(r.all)
    for x in (r.to_dict(), c.to_dict(), h.to_dict(), repr(r), repr(c), repr(h), figure.to_json()):
        assert SECRET not in "\n".join(everything(x))


def test_the_cli_tells_nothing_of_the_locked_half(mixed, chains, tmp_path):
    data, also = write(tmp_path / "p.jsonl", mixed), write(tmp_path / "c.jsonl", chains)
    for args in ((), ("--json",), ("-v",)):
        said = gnc("evaluate", "supersession", "--data", data, "--chains", also, "--failures", 99, *args)
        assert said.code == 0 and SECRET not in said.out + said.err and "pdev0" in said.out


def test_a_refusal_quotes_nothing(tmp_path):
    bad = row(1, split="locked", label="full")
    date = bad["newer"] | {"date": SECRET}
    for wrong in ({"label": SECRET}, {"relation": SECRET}, {"kind": SECRET}, {"older": SECRET}, {"newer": date}, {"split": [SECRET]}):
        with pytest.raises(evaluation_labelled.DataError) as e: evaluation_pairs.load_pairs(write(tmp_path / "p.jsonl", [bad | wrong]))
        assert SECRET not in str(e.value) and f"line 1: {next(iter(wrong))}" in str(e.value)


# The files


@pytest.mark.parametrize("wrong, said", [
    ({"id": None}, "id: text is expected"), ({"label": "half"}, "label: one of full, partial, coexist, none"), ({"relation": "replace"}, "relation: one of"),
    ({"relation": "merge"}, "relation: supersede goes with"), ({"kind": "trap"}, "kind: positive goes with"), ({"newer": None}, "newer: an object"),
    ({"newer": {"id": "x", "text": ""}}, "newer.title: text is expected, and it is missing"), ({"category": 3}, "category: text is expected"),
    ({"older": document(1) | {"date": "31.1.2026"}}, "older.date: a date"), ({"older": document(1), "newer": document(1)}, "newer.id: a pair needs two")])
def test_a_wrong_row_is_refused_by_file_line_and_field(tmp_path, wrong, said):
    path = write(tmp_path / "p.jsonl", [row(1), row(2) | wrong])
    with pytest.raises(evaluation_labelled.DataError) as e: evaluation_pairs.load_pairs(path)
    assert str(e.value).startswith(f"{path}, line 2: {said}")


# Public data


@pytest.mark.slow
def test_the_shared_scorer_agrees(shared):
    path = shared / "supersession" / "pairs.dev.jsonl"
    done = subprocess.run([sys.executable, str(path.parent / "score.py"), "--json", str(path)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    memory = runpy.run_path(str(path.parent / "score.py"))["memory"]
    pairs = [replace(p, older=memory(p.row["older"]), newer=memory(p.row["newer"])) for p in evaluation_pairs.load_pairs(path)]
    theirs, r = json.loads(done.stdout), evaluation_judge.report_of(evaluation_pairs.judge_pairs(pairs, turn=False))
    ours = {**r.scores["source"], "all": r.all}
    assert theirs.keys() == ours.keys()
    for name, t in theirs.items():
        d = ours[name].to_dict()
        assert (d["n"], d["positives"], d["emitted"], d["right"]) == (t["n"], t["positive"], t["emitted"], t["right"])
        if t["emitted"]: assert math.isclose(d["precision"]["low"], t["precision_low"], abs_tol=1e-3)
