"""The project's own files: what stands at the top, what CI runs, and what must not be in any of them."""
import re
from configparser import ConfigParser
from importlib import metadata

import pytest
import yaml
from helpers import ROOT, tracked
from packaging.specifiers import SpecifierSet

SETTINGS = ConfigParser(delimiters=["="])
SETTINGS.read(ROOT / "settings.ini", encoding="utf-8")
CARD = "jupyterlab nbdev pandas scikit-learn umap-learn plotly numpy openai pyyaml pytest".split()


def requirements(*extras):
    "Names of the packages that the base install or the extras ask for."
    names = [n for e in extras for n in (("llm", "tune") if e == "consolidation" else (e,))]
    words = " ".join(SETTINGS["DEFAULT"][f"{n}_requirements" if n else "requirements"] for n in names).split()
    return {re.match(r"[\w.-]+", w)[0].lower().replace(".", "-") for w in words}


def test_the_top_level_is_as_the_card_asks():
    names = ("settings.ini", "nbs", "git_notes_consolidation", "tests", "_quarto.yml", "README.md", "setup.py", "SECURITY.md")
    assert [n for n in names if not (ROOT / n).exists()] == []
    assert set(CARD) <= requirements("", "consolidation", "notebook", "dev")


def test_ci_runs_everything():
    assert "make test\nmake test-more\n" in (ROOT / ".ci" / "run").read_text() and "make test-all" in (ROOT / ".github" / "workflows" / "test.yml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    steps = [step for target in ("test", "test-more") for step in re.findall(r"[a-z-]+", re.search(rf"^{target}: (.*?)  #", makefile, re.M)[1])]
    recipes = {m[1]: m[2] for m in re.finditer(r"^([a-z-]+):.*\n((?:\t.*\n)+)", makefile, re.M)}
    run = "".join(recipes.get(s, "") for s in steps)
    tools = ("nbdev_clean", "nbdev_export", "git status", "readme.py --check", "ruff", "bandit", "lint-imports", "mypy", "loadfile tests/journeys",
             "-m 'not slow'", "-m slow", "nbdev_test", "notebooks.py --check", "site.py --check", "wheel.py")
    assert [t for t in tools if t not in run] == []


WORKFLOWS = {p.stem: yaml.safe_load(p.read_text(encoding="utf-8")) for p in (ROOT / ".github" / "workflows").glob("*.yml")}


def test_a_workflow_may_do_no_more_than_it_must():
    assert WORKFLOWS["test"]["permissions"] == {"contents": "read"} and WORKFLOWS["release"]["permissions"] == {}
    jobs = WORKFLOWS["release"]["jobs"]
    assert {n for n, j in jobs.items() if "id-token" in j["permissions"]} == {"attest", "publish"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"} and jobs["publish"]["environment"] == "pypi" and jobs["publish"]["needs"] == "attest"
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text()


def test_a_release_publishes_what_was_built_once_and_tested():
    jobs = WORKFLOWS["release"]["jobs"]
    used = {n: [s["uses"] for s in j["steps"] if "uses" in s] for n, j in jobs.items()}
    assert [re.sub("@.*", "", u) for u in used["publish"]] == ["actions/download-artifact", "pypa/gh-action-pypi-publish"]
    assert [u for n in used for u in used[n] if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", u)] == []  # a tag can be moved
    assert [n for n, j in jobs.items() if any("wheel.py" in s.get("run", "") for s in j["steps"])] == ["build"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == WORKFLOWS["test"]["jobs"]["test"]["strategy"]["matrix"]["python"]


def test_the_base_install_stays_small():
    assert requirements("") == {"numpy", "pyyaml", "typer", "rich", "opentelemetry-api",
                                "threadpoolctl", "joblib", "pydantic", "markdown-it-py"}  # Small and pure ones, and what typer and rich bring


def test_every_requirement_is_pinned_for_development():
    pins = {re.split("==", line)[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    assert requirements("", "consolidation", "notebook", "dev") - pins == set()


def test_no_pin_refuses_a_promised_python():
    "Debian 12 has 3.11.2: the first release of each promised Python counts, not the one that made the pins."
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    there = {d.name.lower().replace("_", "-"): d for d in metadata.distributions()}
    here = [d for name, pin in pins.items() if (d := there.get(name.lower().replace("_", "-"))) and d.version == pin]
    asks = {d.name: SpecifierSet(d.metadata["Requires-Python"] or "") for d in here}
    assert len(asks) > 0.9 * len(pins)
    assert {n: str(s) for n, s in asks.items() if not all(f"{v}.0" in s for v in WORKFLOWS["test"]["jobs"]["test"]["strategy"]["matrix"]["python"])} == {}


# Assembled, so that this file may be checked too.
MACHINE = re.compile(r"(?<![\w.~/-])/(?:" + "|".join(("work", "tmp", "root", "home", "Users", "opt")) + r")/[\w.]")
REGISTRY = re.compile("|".join(("pypi\\." + "org", "pythonhosted" + "\\.", "index-" + "url", "find-" + "links", "artifact" + "ory", "npm" + "js\\.")), re.I)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("pattern", [MACHINE, REGISTRY], ids=["paths of a machine", "hosts of a registry"])
def test_no_file_names(pattern):
    found = []
    for path in tracked():
        try: text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError: continue  # a picture
        found += [f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, m.start()) + 1}: {m[0]}" for m in pattern.finditer(text)]
    assert found == []
