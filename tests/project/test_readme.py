"""README.md is what nbs/index.ipynb renders to; its links lead somewhere, its commands do what they say, and no figure in it is typed."""
import ast
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import readme
from calls import new_repo
from helpers import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")


def console(text):
    "The commands that some Markdown tells to type."
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    return [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]


def test_it_is_what_the_notebook_renders_to_and_is_read_in_a_minute():
    "It says what it must: one picture, four commands, what it cannot do, how it is tested."
    assert readme.render() == TEXT, "run `make readme`"
    assert len(TEXT.split()) < 900 and [m[1] for m in LINK.finditer(TEXT)].count("!") == 1
    assert [line.split()[0] for line in console(TEXT)] == ["pip", "gnc", "gnc", "gnc", "make", "make", "make", "make"] and "make test" in console(TEXT)
    assert len(re.findall(r"^- .*\d %", re.search(r"^## What it cannot do\n(.*?)^## ", TEXT, re.M | re.S)[1], re.M)) == 3


def test_links_start_at_the_readme_and_lead_somewhere():
    text = "[a](00_models.ipynb) [b](../LICENSE) [c](https://example.org) [d](#here) `[e](x.md)`\n```\n[f](y.md)\n```\n![g](images/z.png)"
    assert readme.relink(text) == text.replace("(00_", "(nbs/00_").replace("(../L", "(L").replace("(images", "(nbs/images")
    local = [m[2] for m in LINK.finditer(TEXT) if ":" not in m[2]]
    assert len(local) > 10 and [p for p in local if not (ROOT / p).is_file()] == []


def test_each_of_its_commands_does_what_it_says(tmp_path):
    "The first is tried by `make wheel`. What `make` takes is what the Makefile has."
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M))
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    (new_repo(tmp_path / "code", ()) / "CLAUDE.md").write_text("See [the guide](guide.md)\n")
    for line in console(TEXT):
        program, *words = line.split()
        if program == "make": assert words[0] in targets, line
        if program != "gnc": continue
        made, at = ([str(tmp_path / "year")], tmp_path) if words == ["demo"] else ([], tmp_path / ("year" if words != ["tidy"] else "code"))
        done = subprocess.run(["gnc", *words, *made], env=env, capture_output=True, text=True, cwd=at)
        assert done.returncode == 0 and done.stdout, (line, done.stderr)


def test_a_package_index_gets_addresses(monkeypatch):
    "What `setup.py` gives for a description has the README's links and pictures as whole addresses."
    told = {}
    monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=lambda **kw: told.update(kw), find_packages=lambda **kw: []))
    runpy.run_path(str(ROOT / "setup.py"))
    links = [m[2] for m in LINK.finditer(told["long_description"])]
    assert len(links) == len(LINK.findall(TEXT)) and [x for x in links if not x.startswith("https://")] == []


def test_every_command_of_the_quick_start_is_run_by_its_page():
    cells = json.loads((ROOT / "nbs" / "guide" / "00_quick-start.ipynb").read_text(encoding="utf-8"))["cells"]
    source = lambda c: "".join(c["source"])
    ran = [ast.literal_eval(m[1]) for c in cells if c["cell_type"] == "code" for m in re.finditer(r"^sh\(('[^'\n]*'|\"[^\"\n]*\")", source(c), re.M)]
    told = console("\n".join(source(c) + "\n" for c in cells if c["cell_type"] == "markdown"))
    assert [t for t in told if not t.startswith(("pip ", "cd "))] == ran and len(ran) > 8
