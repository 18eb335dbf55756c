"""Whether a run of a notebook shows what is stored: what counts as the same, what does not, and the whole check over a small project."""
import base64
import json
import subprocess
import sys

import outputs
import pytest
from helpers import ROOT, git
from test_notebooks import PATHS


PLOTLY = "application/vnd.plotly.v1+json"
def printed(text, name="stdout"): return {"output_type": "stream", "name": name, "text": text}
def value(text): return {"output_type": "execute_result", "data": {"text/plain": text}, "execution_count": 3, "metadata": {}}
def html(text): return {"output_type": "display_data", "data": {"text/html": text}, "metadata": {}}
def figure(*data, **layout): return {"output_type": "display_data", "data": {PLOTLY: {"data": list(data), "layout": layout}}, "metadata": {}}
def slider(label): return {"sliders": [{"steps": [{"label": label, "args": [{"visible": [True, False]}]}]}]}
def packed(numbers, dtype="<f8"):
    import numpy as np
    return {"dtype": dtype.lstrip("<"), "bdata": base64.b64encode(np.array(numbers, dtype).tobytes()).decode()}


@pytest.mark.parametrize("stored, fresh", [
    ([], []),
    ([value("0.30000000000000004")], [value("0.3")]),
    ([value("1.1e-17 of 12.5%")], [value("0.0 of 12.500000001%")]),
    ([value("<A at 0x7f00aa12>, 0x7f00aa12")], [value("<A>, 0x7faaaa34")]),
    ([printed(["a\n", "bc\n"])], [printed("a\nb"), printed("c\n")]),
    ([printed("\x1b[1;31mred\x1b[0m")], [printed("red")]),
    ([html("<td id='x' class='y'>0.5</td>")], [html("<td class='y' id='x'>\n  0.5000000001 </td>")]),
    ([figure({"y": [0.1, 0.2, None]}, **slider("30"))], [figure({"y": [0.10000000001, 0.2, None]}, **slider("30"))]),
    ([figure({"y": [1.5, 2.5]})], [figure({"y": packed([1.5, 2.5 + 1e-9])})]),
    ([figure({"z": [[1, 2], [3, 4]]})], [figure({"z": packed([1, 2, 3, 4], "<i2") | {"shape": "2, 2"}})]),
    ([{"output_type": "display_data", "data": {"application/json": {"model_id": "a", "x": 1}}}],
     [{"output_type": "display_data", "data": {"application/json": {"model_id": "b", "x": 1}}}]),
])
def test_shows_the_same(stored, fresh): assert outputs.difference(stored, fresh) is None and outputs.difference(fresh, stored) is None


@pytest.mark.parametrize("stored, fresh", [
    ([value("0.31")], [value("0.32")]),
    ([value("1767225600 s")], [value("1767225601 s")]),  # a whole number is equal to nothing but itself
    ([value("1.2.3")], [value("1.2.4")]),
    ([value("5 apples")], [value("5 pears")]),
    ([value("a")], []),
    ([value("a")], [printed("a")]),
    ([printed("a")], [printed("a", "stderr")]),
    ([printed("a\nb")], [printed("b\na")]),
    ([printed("a"), value("b")], [value("b"), printed("a")]),
    ([value("a")], [value("a"), {"output_type": "error", "ename": "ValueError", "evalue": "no"}]),
    ([html("<td>said twice</td>")], [html("<td>said once</td>")]),
    ([html("<td>0.5</td>")], [html("<td>0.6</td>")]),
    ([html("<b>a<i></i></b>")], [html("<b>a</b><i></i>")]),
    ([figure({"y": [0.1, 0.2]})], [figure({"y": [0.1, 0.21]})]),
    ([figure({"y": [1]})], [figure({"y": [True]})]),
    ([figure({"y": packed([1.5, 2.5])})], [figure({"y": packed([1.5, 2.75])})]),
    ([figure({"y": [1]}, **slider("30"))], [figure({"y": [1]}, **slider("31"))]),
    ([figure({"y": [1]}), figure({"y": [2]})], [figure({"y": [2]}), figure({"y": [1]})]),
    ([figure({"x": [1], "y": []})], [figure({"x": [1]})]),
    ([figure({"x": [1767225600000]})], [figure({"x": [1767225600001]})]),
])
def test_shows_something_else(stored, fresh): assert outputs.difference(stored, fresh) and outputs.difference(fresh, stored)


def code(source, *shown): return {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": list(shown)}


def test_cells_are_compared_one_by_one():
    cells = [{"cell_type": "markdown", "source": ["# A"]}, code("a", value("1")), code("#| slow\n\nb", value("2")), code("#| slow\n#| volatile\nc", value("3"))]
    assert outputs.compared(cells, [[value("1")], [value("2")], [value("4")]]) == []
    assert outputs.compared(cells, [[value("1")], [value("3")], [value("4")]]) == [(2, "b", "text/plain: 2", "text/plain: 3")]
    failed = {"output_type": "error", "ename": "ValueError", "evalue": "no"}
    assert outputs.compared(cells, [[value("1")], [value("2")], [value("4"), failed]]) == [(3, "c", "nothing", "error: ValueError: no")]
    assert outputs.compared(cells, [[value("1"), failed]]) == [(1, "a", "nothing", "error: ValueError: no")]


def test_few_cells_are_volatile():
    "UMAP, which git is installed, how long something takes. A new one must be worth its place: what it shows is never looked at again."
    assert 0 < sum(outputs.is_volatile(c) for p in PATHS for c in outputs.code_cells(outputs.read(p))) <= 10


# The check as a whole

def project(tmp_path, **notebooks):
    "A repository with notebooks: for each, (source, what is stored) of its cells."
    root = tmp_path / "project"
    (root / "nbs" / "research").mkdir(parents=True)
    git(root, "init", "--quiet")
    (root / "nbs" / "research" / "data.txt").write_text("7\n")
    (root / "module.py").write_text("where = __file__\n")
    for name, cells in notebooks.items():
        made = [code(source, *shown) | {"metadata": {}, "execution_count": None} for source, shown in cells]
        (root / "nbs" / "research" / f"{name}.ipynb").write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return root


def checked(root):
    "What the check prints, and its exit code."
    run = "import sys; sys.path.insert(0, sys.argv[1]); import notebooks, pathlib; notebooks.ROOT = pathlib.Path.cwd(); sys.exit(notebooks.main(sys.argv[2:]))"
    done = subprocess.run([sys.executable, "-c", run, ROOT / "tools", "--check"], cwd=root, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_check_runs_a_copy_and_tells_what_differs(tmp_path):
    pytest.importorskip("ipykernel")
    root = project(tmp_path,
        same=[("from pathlib import Path\nint(Path('data.txt').read_text())", [value("7")]),
              ("Path('made.txt').write_text('x'); print('before'); display(1.5); print('after')",
               [printed("before\n"), {"output_type": "display_data", "data": {"text/plain": "1.5"}}, printed("after\n")]),
              ("import subprocess\n_ = subprocess.run(['echo', 'past Python'])", [printed("past Python\n")]),
              ("import module; Path(module.where).parent == Path.cwd().parent.parent", [value("True")]),
              ("import pandas as pd, asyncio\ntype(get_ipython()).__name__, pd.get_option('display.max_columns'), asyncio.get_running_loop().is_running()",
               [value("('ZMQInteractiveShell', 20, True)")]),
              ("async def f(): return 2\nawait f()", [value("2")]), ("1 + 1;", []),
              ("#| volatile\nimport time; time.time()", [value("0.0")])],
        other=[("x = 6 * 7", []), ("#| volatile\nx", [value("1")]), ("x", [value("41")]), ("print(x)", [])],
        fails=[("1 / 0", []), ("2", [value("2")])])
    status, said = checked(root)
    assert status == 1 and "3 notebooks, 3 cells differ, 2 volatile cells not compared" in said, said
    assert "other.ipynb, code cell 3: x\n    stored  text/plain: 41\n    fresh   text/plain: 42\n" in said
    assert "other.ipynb, code cell 4: print(x)\n    stored  nothing\n    fresh   stdout: 42\n" in said
    assert "fails.ipynb, code cell 1: 1 / 0\n    stored  nothing\n    fresh   error: ZeroDivisionError: division by zero\n" in said
    assert "same.ipynb, code cell" not in said and "same.ipynb" in said
    there = git(root, "ls-files", "--others").splitlines()
    assert there == ["module.py", *(f"nbs/research/{n}" for n in ("data.txt", "fails.ipynb", "other.ipynb", "same.ipynb"))]
