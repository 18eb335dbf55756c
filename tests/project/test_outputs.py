"""Whether a run of a notebook shows what is stored: what counts as the same, what does not, and the whole check over a small project."""
import base64
import json
import subprocess
import sys

import outputs
import pictures
import pytest
from helpers import ROOT, git
from test_notebooks import PATHS

PLOTLY = "application/vnd.plotly.v1+json"
def printed(text, name="stdout"): return {"output_type": "stream", "name": name, "text": text}
def value(text): return {"output_type": "execute_result", "data": {"text/plain": text}, "execution_count": 3, "metadata": {}}
def html(text): return {"output_type": "display_data", "data": {"text/html": text}, "metadata": {}}
def figure(*data): return {"output_type": "display_data", "data": {PLOTLY: {"data": list(data), "layout": {}}}, "metadata": {}}
def packed(numbers):
    import numpy as np
    return {"dtype": "f8", "bdata": base64.b64encode(np.array(numbers, "<f8").tobytes()).decode()}


@pytest.mark.parametrize("same, stored, fresh", [
    (True, [], []),
    (True, [value("0.30000000000000004 of 12.5%")], [value("0.3 of 12.500000001%")]),
    (True, [value("<A at 0x7f00aa12>")], [value("<A>")]),
    (True, [printed(["a\n", "bc\n"])], [printed("a\nb"), printed("c\n")]),
    (True, [html("<td>0.5</td>")], [html("<td>0.5000000001</td>")]),
    (True, [figure({"y": [1.5, 2.5]})], [figure({"y": packed([1.5, 2.5 + 1e-9])})]),
    (False, [value("0.31")], [value("0.32")]),
    (False, [value("1767225600 s")], [value("1767225601 s")]),  # a whole number is equal to nothing but itself
    (False, [value("a")], []),
    (False, [printed("a")], [printed("a", "stderr")]),
    (False, [printed("a"), value("b")], [value("b"), printed("a")]),
    (False, [value("a")], [value("a"), {"output_type": "error", "ename": "ValueError", "evalue": "no"}]),
    (False, [html("<b>a<i></i></b>")], [html("<b>a</b><i></i>")]),
    (False, [figure({"y": [1]})], [figure({"y": [True]})]),
    (False, [figure({"y": packed([1.5, 2.5])})], [figure({"y": packed([1.5, 2.75])})])])
def test_two_runs_show_the_same_or_not(same, stored, fresh):
    assert (outputs.difference(stored, fresh) is None) == (outputs.difference(fresh, stored) is None) == same


def test_few_cells_are_volatile():
    "UMAP, which git is installed, how long something takes. A new one must be worth its place: what it shows is never looked at again."
    assert 0 < sum(outputs.is_volatile(c) for p in PATHS for c in outputs.code_cells(outputs.read(p))) <= 12


def code(source, *shown):
    return {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": list(shown), "metadata": {}, "execution_count": None}


def test_a_figure_that_shows_the_same_keeps_its_picture(monkeypatch):
    def spec(*y): return {"data": [{"type": "bar", "y": list(y)}], "layout": {"height": 200}}
    def notebook(*specs, **more): return {"cells": [code("x", *({"output_type": "display_data", "data": {PLOTLY: s, **more}} for s in specs))]}
    asked = []
    monkeypatch.setattr(pictures, "draw", lambda specs: asked.extend(specs) or ["new"] * len(specs))
    nb = notebook(spec(1.0, 2), spec(3))
    assert pictures.add(nb, notebook(spec(1.0000000001, 2), spec(4), **{pictures.PNG: "old"})) == 0 and asked == [spec(3)]
    assert [o["data"][pictures.PNG] for _, o in pictures.figures(nb)] == ["old", "new"]


def test_a_figure_is_called_by_its_caption_or_its_heading():
    def spec(**layout): return {"data": [], "layout": layout}
    axes = {"xaxis": {"title": {"text": "days"}}, "yaxis": {"title": {"text": "score"}}}
    specs = [spec(title={"text": "its own"}), spec(height=200), spec(**axes), spec(), spec()]
    sources = ["f()", "#| fig-cap: What it shows\nf()", "f()", "f()", "f()"]
    cells = [code(s, {"output_type": "display_data", "data": {PLOTLY: f}}) for s, f in zip(sources, specs)]
    def heading(text): return {"cell_type": "markdown", "source": [text], "metadata": {}}
    pictures.add_titles([heading("# Notebook\n\n```\n# no heading\n```"), cells[0], heading("Words.\n\n## How `long`\n\nMore."), *cells[1:4],
                         heading("## Alone"), cells[4]])
    assert [pictures.title_of(f) for f in specs] == ["its own", "What it shows", "How long: score by days", "How long", "Alone"]
    assert specs[1]["layout"]["height"] == 222 and "margin" not in specs[0]["layout"]


@pytest.mark.slow
def test_the_check_runs_a_copy_and_tells_what_differs(tmp_path):
    pytest.importorskip("ipykernel")
    root = tmp_path / "project"
    (root / "nbs" / "research").mkdir(parents=True)
    git(root, "init", "--quiet")
    (root / "nbs" / "research" / "data.txt").write_text("7\n")
    shown = {"output_type": "display_data", "data": {"text/plain": "1.5"}}
    for name, cells in {
            "same": [code("from pathlib import Path\nint(Path('data.txt').read_text())", value("7")),
                     code("Path('made.txt').write_text('x'); print('before'); display(1.5); print('after')", printed("before\n"), shown, printed("after\n")),
                     code("import subprocess\n_ = subprocess.run(['echo', 'past Python'])", printed("past Python\n")),
                     code("async def f(): return 2\nawait f()", value("2")), code("1 + 1;"), code("#| volatile\nimport time; time.time()", value("0.0"))],
            "other": [code("x = 6 * 7"), code("#| volatile\nx", value("1")), code("x", value("41")), code("print(x)")],
            "fails": [code("1 / 0"), code("2", value("2"))]}.items():
        (root / "nbs" / "research" / f"{name}.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    run = "import sys; sys.path.insert(0, sys.argv[1]); import notebooks, pathlib; notebooks.ROOT = pathlib.Path.cwd(); sys.exit(notebooks.main(sys.argv[2:]))"
    done = subprocess.run([sys.executable, "-c", run, ROOT / "tools", "--check"], cwd=root, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "3 notebooks, 3 cells differ, 2 volatile cells not compared" in said, said
    for place in ("other.ipynb, code cell 3: x\n    stored  text/plain: 41\n    fresh   text/plain: 42\n",
                  "other.ipynb, code cell 4: print(x)\n    stored  nothing\n    fresh   stdout: 42\n",
                  "fails.ipynb, code cell 1: 1 / 0\n    stored  nothing\n    fresh   error: ZeroDivisionError: division by zero\n"): assert place in said
    assert "same.ipynb, code cell" not in said
    assert git(root, "ls-files", "--others").splitlines() == [f"nbs/research/{n}" for n in ("data.txt", "fails.ipynb", "other.ipynb", "same.ipynb")]
