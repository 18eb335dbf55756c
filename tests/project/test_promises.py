"""promises.yml is complete, and what it names exists."""
import ast

import pytest
import yaml
from helpers import ROOT

ROWS = yaml.safe_load((ROOT / "tests" / "promises.yml").read_text(encoding="utf-8"))


def is_shown(row): return not isinstance(row["shown_by"], str)


def test_every_promise_has_a_row():
    want = [f"{k}{i}" for k, n in (("C", 8), ("G", 81), ("S", 24), ("M", 20)) for i in range(1, n + 1)]
    assert [r["id"] for r in ROWS] == want


def test_rows_have_one_shape():
    for r in ROWS:
        assert set(r) == {"id", "promise", "shown_by"} and isinstance(r["promise"], str), r
        assert r["shown_by"] and (is_shown(r) or r["shown_by"].startswith("not kept: ")), r
    assert len({r["promise"] for r in ROWS}) == len(ROWS)


def names(tree, prefix=""):
    "Test functions, and methods as Class::test."
    for node in tree.body:
        if isinstance(node, ast.ClassDef): yield from names(node, f"{node.name}::")
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"): yield prefix + node.name


def exists(place):
    "A notebook that is there, or a test function that is defined."
    file, _, name = place.partition("::")
    path = ROOT / file
    if not path.is_file(): return False
    if path.suffix == ".ipynb": return not name and path.is_relative_to(ROOT / "nbs")
    return path.is_relative_to(ROOT / "tests") and name.partition("[")[0] in set(names(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("row", [r for r in ROWS if is_shown(r)], ids=lambda r: r["id"])
def test_what_shows_it_exists(row):
    assert [p for p in row["shown_by"] if not exists(p)] == []
