"""The report of mutation testing: its survivors are still in the code and explained, and some mutants are tried for real."""
import importlib
import inspect
import os
import types

import pytest
import yaml
from helpers import ROOT, example_cells

REPORT = yaml.safe_load((ROOT / "tests" / "mutants.yml").read_text(encoding="utf-8"))
SURVIVORS = [(m, s) for m, r in REPORT.items() for s in r["survived"]]


def source_of(module, function):
    "The text of a function, or of a method named with its class."
    thing = importlib.import_module(f"git_notes_consolidation.{module}")
    for name in function.split("."): thing = getattr(thing, name)
    return inspect.getsource(thing)


def test_the_numbers_add_up():
    for module, r in REPORT.items(): assert r["tried"] == r["killed"] + r["timeout"] + len(r["survived"]) <= r["mutants"], module
    assert "retention" in REPORT


def test_every_survivor_stands_in_the_code_and_is_explained():
    for module, s in SURVIVORS:
        text = " ".join(source_of(module, s["function"]).split())
        assert " ".join(s["line"].split()) in text, f"{module}.{s['function']} has changed: run make mutation MODULE={module}"
        assert len(s.get("why", "")) > 15 and s["mutant"] != s["line"], (module, s["function"])


# Each is one change of a line, and the examples of the notebook do not survive it.
CHANGES = [
    ("86400", "86401"), ("** -exponent\n", "** exponent\n"), ("math.log1p(20), 1.0)", "math.log1p(20), 2.0)"), ("if score >= hot:", "if score > hot:"),
    ("    return math.exp2(-max(age_days, 0.0) / half_life)", "    return math.exp2(-max(age_days, 1.0) / half_life)"),
    ("if memory.importance is None else memory.importance\n", "if memory.importance is not None else memory.importance\n"),
    ("if metadata.merged_into:", "if not metadata.merged_into:"), ("< config.grace_days and", "< config.grace_days or"),
    ("given.sum() > 0", "given.sum() > 1"), ("near ** -d + np", "near ** -d - np")]


@pytest.mark.parametrize("old, new", CHANGES, ids=[str(i) for i in range(len(CHANGES))])
def test_the_examples_of_the_notebook_see_a_change(old, new, monkeypatch):
    name = "git_notes_consolidation.retention"
    text = (ROOT / "git_notes_consolidation" / "retention.py").read_text(encoding="utf-8")
    assert text.count(old) == 1
    changed = types.ModuleType(name)
    changed.__package__ = "git_notes_consolidation"
    exec(compile(text.replace(old, new), name, "exec"), changed.__dict__)
    monkeypatch.chdir(ROOT / "nbs")
    monkeypatch.setitem(os.environ, "PLOTLY_RENDERER", "plotly_mimetype")
    with pytest.raises((AssertionError, TypeError)):
        for cell in example_cells("04_retention"): exec(compile(cell, "04_retention", "exec"), changed.__dict__)
