"""README.md is what nbs/index.ipynb renders to, and rendering does what GitHub needs."""
import ast
import json
import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import readme
from helpers import ROOT

pytestmark = pytest.mark.skipif(not (find_spec("nbdev") and find_spec("nbconvert")), reason="not installed: pip install -e '.[dev,notebook]'")

SANKEY = {"data": [{"type": "sankey", "link": {"source": [0], "target": [1], "value": [2]}}], "layout": {"title": {"text": "What flows"}}}


def code(source, *outputs):
    "A code cell with its outputs: data bundles, or text that was printed."
    outs = [{"output_type": "stream", "name": "stdout", "text": [o]} if isinstance(o, str)
            else {"output_type": "execute_result", "metadata": {}, "execution_count": None, "data": o} for o in outputs]
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "source": source.splitlines(True), "outputs": outs}


def rendered(tmp_path, *cells, write=False):
    "What the cells look like in a README."
    cells = [c if isinstance(c, dict) else {"cell_type": "markdown", "metadata": {}, "source": c.splitlines(True)} for c in cells]
    for i, c in enumerate(cells): c["id"] = f"cell{i}"
    path = tmp_path / "index.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}))
    return readme.render(path, tmp_path / "images", write)


def test_title_code_and_what_it_printed(tmp_path):
    text = rendered(tmp_path, "# Title\n\n> Subtitle", code("print(1)", "\x1b[1m1\x1b[0m\n"), code("2 + 3", {"text/plain": ["5"]}))
    assert text.startswith("# Title\n\n> Subtitle\n") and "``` python\nprint(1)\n```\n\n``` text\n1\n```" in text and "``` text\n5\n```" in text


def test_a_picture_is_called_by_its_figures_title(tmp_path):
    "And a Sankey diagram, whose links have a `source` as cells do, is left whole."
    name, _ = readme.picture({readme.PLOTLY: SANKEY})
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / name).write_bytes(b"a picture")
    assert f"![What flows](nbs/guide/images/{name})" in rendered(tmp_path, "# T", code("fig", {readme.PLOTLY: SANKEY}))


def test_links_start_at_the_readme():
    text = "[a](00_models.ipynb) [b](../LICENSE) [c](https://example.org) [d](#here) `[e](x.md)`\n```\n[f](y.md)\n```\n![g](images/z.png)"
    assert readme.relink(text) == text.replace("(00_", "(nbs/00_").replace("(../L", "(L").replace("(images", "(nbs/images")


# The README itself

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")


def console(text):
    "The commands that some Markdown tells to type."
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    return [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]


def test_it_is_read_in_a_minute():
    "And says what it must: one picture, three commands, what it cannot do, how it is tested."
    assert len(TEXT.split()) < 900 and [m[1] for m in LINK.finditer(TEXT)].count("!") == 1
    assert [line.split()[0] for line in console(TEXT)] == ["pip", "gnc", "gnc", "make", "make", "make", "make"] and "make test" in console(TEXT)
    limits = re.search(r"^## What it cannot do\n(.*?)^## ", TEXT, re.M | re.S)[1]
    assert len(re.findall(r"^- .*\d %", limits, re.M)) == 3


def test_each_of_its_links_leads_somewhere():
    local = [m[2] for m in LINK.finditer(TEXT) if ":" not in m[2]]
    assert len(local) > 10 and [p for p in local if not (ROOT / p).is_file()] == []


def test_each_of_its_commands_does_what_it_says(tmp_path):
    "The first is tried by `make wheel`. What `make` takes is what the Makefile has."
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M))
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for line in console(TEXT):
        program, *words = line.split()
        if program == "make": assert words[0] in targets, line
        if program != "gnc": continue
        done = subprocess.run(["gnc", *words, *([str(tmp_path / "year")] if words == ["demo"] else [])], env=env, capture_output=True, text=True,
                              cwd=tmp_path / "year" if words != ["demo"] else tmp_path)
        assert done.returncode == 0 and done.stdout, (line, done.stderr)


def test_a_package_index_gets_addresses(monkeypatch):
    "What `setup.py` gives for a description has the README's links and pictures as whole addresses."
    told = {}
    monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=lambda **kw: told.update(kw), find_packages=lambda **kw: []))
    runpy.run_path(str(ROOT / "setup.py"))
    assert told["project_urls"]["Issues"].endswith("/issues") and len(told["classifiers"]) > 10
    links = [m for m in LINK.finditer(told["long_description"])]
    assert len(links) == len(LINK.findall(TEXT)) and [m[2] for m in links if not m[2].startswith("https://")] == []
    assert [m[2].rpartition("/nbs/")[0].rpartition("/")[0].rpartition("/")[2] for m in links if m[1]] == ["raw"]


# The quick start

def test_every_command_of_the_quick_start_is_run_by_its_page():
    cells = json.loads((ROOT / "nbs" / "guide" / "00_quick-start.ipynb").read_text(encoding="utf-8"))["cells"]
    source = lambda c: "".join(c["source"])
    ran = [ast.literal_eval(m[1]) for c in cells if c["cell_type"] == "code" for m in re.finditer(r"^sh\(('[^'\n]*'|\"[^\"\n]*\")", source(c), re.M)]
    told = console("\n".join(source(c) + "\n" for c in cells if c["cell_type"] == "markdown"))
    assert [t for t in told if not t.startswith(("pip ", "cd "))] == ran and len(ran) > 8
