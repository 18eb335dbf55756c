"""What the README and the page of limits quote is what the evaluation notebook has put out, and that is what the command line counts."""
import ast
import json

import pytest
from calls import gnc
from git_notes_consolidation.evaluation.scoring import fixture
from helpers import ROOT, long

pytestmark = pytest.mark.slow

NBS = ROOT / "nbs"


def cells(name): return json.loads((NBS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
def source(cell): return "".join(cell["source"])
def codes(name): return [c for c in cells(name) if c["cell_type"] == "code"]


@pytest.fixture(scope="module")
def measured():
    "The figures that the last cell of the evaluation has printed."
    return json.loads("".join(cells("research/04_evaluation")[-1]["outputs"][0]["text"]))


PAGES = ("index", "guide/07_limits")


def quoting(pages=PAGES): return [c for p in pages for c in codes(p) if source(c).startswith("#| echo: false") and "measured" in source(c)]


def shown(cell, figures):
    "What a quoting cell puts out for some figures."
    tree = ast.parse(source(cell))
    last = ast.Expression(tree.body.pop().value)
    names = {"Markdown": str, "measured": figures}
    exec(compile(tree, "index", "exec"), names)
    return eval(compile(last, "index", "eval"), names)


def stored(cell): return "".join(cell["outputs"][0]["data"]["text/markdown"])


def test_they_quote_the_evaluation(measured):
    assert [len(quoting([p])) for p in PAGES] == [2, 1]
    for c in quoting(): assert stored(c) == shown(c, measured), "run `make notebooks`, then `make readme`: the evaluation has other figures"


def rest(share): return {k: share[k] for k in ("k", "n", "value", "low", "high")}


def test_the_command_line_counts_the_same(measured):
    pairs = json.loads(gnc("evaluate", "supersession", "--json", "--four-way").out)
    everything, halves = pairs["pairs"]["pooled"]["all"], pairs["pairs"]["split"]
    assert measured["supersession pairs"] == everything["n"]
    for what in ("precision", "recall"):
        assert measured[f"supersession {what}"] == rest(everything[what])
        assert measured[f"supersession {what}, locked"] == rest(halves["locked"][what])
    assert measured["traps"] == rest(everything["traps"]) and measured["candidate recall"] == rest(pairs["candidates"]["pooled"]["all"]["recall"])
    chains = json.loads(gnc("evaluate", "stories", "--data", fixture("supersession_chains"), "--json").out)
    assert measured["chains exactly right"] == rest(chains["exact"])
    dates = json.loads(gnc("evaluate", "temporal", "--json").out)
    assert measured["dates right"] == rest(dates["pooled"]["all"]["right"]) and measured["false dates"] == rest(dates["pooled"]["all"]["false"])
    assert measured["dates right, locked"] == rest(dates["split"]["locked"]["right"])


@long
def test_the_numbers_of_the_corpus_are_still_right(corpus_repo):
    "Counted again wherever the corpus is at hand: a minute."
    import corpus
    told = json.loads(corpus.STORED.read_text(encoding="utf-8"))
    counted = json.loads(json.dumps(corpus.measure(corpus_repo)))
    assert {k: told[k] for k in counted} == counted, "python tools/corpus.py ../shared"
