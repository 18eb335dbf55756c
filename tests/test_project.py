"""The project's own files: what stands at the top, what CI runs, and what must not be in any of them."""
import os
import re
import subprocess
import tomllib
from configparser import ConfigParser

import pytest
from helpers import ROOT, tracked

SETTINGS = ConfigParser(delimiters=["="])
SETTINGS.read(ROOT / "settings.ini", encoding="utf-8")
CARD = "jupyterlab nbdev pandas scikit-learn umap-learn plotly numpy openai pyyaml pytest".split()


def requirements(*extras):
    "Names of the packages that the base install or the extras ask for."
    words = " ".join(SETTINGS["DEFAULT"][f"{e}_requirements" if e else "requirements"] for e in extras).split()
    return {re.match(r"[\w-]+", w)[0].lower() for w in words}


def test_the_top_level_is_as_the_card_asks():
    names = ("settings.ini", "nbs", "git_notes_consolidation", "tests", "_quarto.yml", "README.md", "setup.py")
    assert [n for n in names if not (ROOT / n).exists()] == []
    assert set(CARD) <= requirements("", "consolidation", "notebook", "dev")


def test_the_quarto_configuration_is_one_file():
    link = ROOT / "nbs" / "_quarto.yml"
    assert link.is_symlink() and link.resolve() == ROOT / "_quarto.yml"


def test_ci_runs_everything():
    assert "make test" in (ROOT / ".ci" / "run").read_text() and "make test" in (ROOT / ".github" / "workflows" / "test.yml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    steps = re.search(r"^test: (.*?)  ##", makefile, re.M)[1].split()
    recipes = {m[1]: m[2] for m in re.finditer(r"^([a-z-]+):.*\n((?:\t.*\n)+)", makefile, re.M)}
    run = "".join(recipes.get(s, "") for s in steps)
    tools = ("nbdev_clean", "nbdev_export", "git status", "readme.py --check", "ruff", "mypy", "pytest", "nbdev_test", "notebooks.py --check",
             "docs.py", "wheel.py")
    assert [t for t in tools if t not in run] == []


def test_the_base_install_stays_small():
    assert requirements("") == {"numpy", "pyyaml", "typer", "rich", "opentelemetry-api"}


def test_every_requirement_is_pinned_for_development():
    pins = {re.split("==", line)[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    assert requirements("", "consolidation", "notebook", "dev") - pins == set()


def test_supported_pythons_agree():
    matrix = re.search(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "test.yml").read_text())[1].replace('"', "").split(", ")
    assert matrix[0] == SETTINGS["DEFAULT"]["min_python"]
    assert re.findall(r'"(3\.\d+)"', re.search(r"^PYTHONS = (.*)$", (ROOT / "setup.py").read_text(), re.M)[1]) == matrix
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["python_version"] == matrix[0]


# Assembled, so that this file may be checked too.
MACHINE = re.compile(r"(?<![\w.~/-])/(?:" + "|".join(("work", "tmp", "root", "home", "Users", "opt")) + r")/[\w.]")
REGISTRY = re.compile("|".join(("pypi\\." + "org", "pythonhosted" + "\\.", "index-" + "url", "find-" + "links", "artifact" + "ory", "npm" + "js\\.")), re.I)


@pytest.mark.parametrize("pattern", [MACHINE, REGISTRY], ids=["paths of a machine", "hosts of a registry"])
def test_no_file_names(pattern):
    found = []
    for path in tracked():
        try: text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError: continue  # a picture
        found += [f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, m.start()) + 1}: {m[0]}" for m in pattern.finditer(text)]
    assert found == []


def test_the_patterns_would_find_one():
    assert MACHINE.search('open("/' + 'tmp/x")') and not MACHINE.search("refs/tmp/x") and not MACHINE.search("~/work/x")
    assert REGISTRY.search("https://pypi." + "org/simple")


def test_make_lists_its_targets():
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}  # pytest may run under make
    text = subprocess.run(["make", "-s"], cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    assert all(re.search(rf"make {t} +\w", text) for t in ("demo", "lab", "test", "promises", "bench", "notebooks", "readme", "clean"))
