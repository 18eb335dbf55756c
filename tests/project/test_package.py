"""The package as the main plugin meets it: an import that costs nothing, and a base install that reads."""
import importlib
import json
import pkgutil
import subprocess
import sys

import git_notes_consolidation
import pytest
from calls import new_repo, run, state_of
from git_notes_consolidation.core.memory import SAMPLE_NOW
from helpers import NOTES, SOURCES, module_of, refs, story

HEAVY = "numpy yaml typer rich scipy sklearn pandas plotly umap openai pydantic opentelemetry onnxruntime sqlite3 asyncio".split()
EXTRAS = ("scipy", "sklearn", "openai", "onnxruntime", "tokenizers", "pandas", "plotly", "umap", "mcp")
BLOCK = f"""
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    "Finds everything but what the extras bring, as where they are not installed."
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in {EXTRAS} else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


def python(code, *args, check=True):
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    return done


def loaded(code, *args, watch=HEAVY):
    "Which of the watched packages are in memory after some code."
    return json.loads(python(f"{code}\nimport sys, json; print(json.dumps(sorted(set({watch!r}) & sys.modules.keys())))", *args).stdout.splitlines()[-1])


# Importing


def test_no_module_is_too_long_to_read(): assert {p: n for p in SOURCES if (n := len(p.read_text(encoding="utf-8").splitlines())) > 700} == {}


def test_the_import_loads_nothing():
    assert loaded("import git_notes_consolidation") == []
    assert loaded("import git_notes_consolidation as g; dir(g); g.__version__; g.__all__; hasattr(g, 'nothing')") == []


def test_whoever_only_looks_loads_no_arrays_and_no_judge(done):
    look = "import sys, os; from git_notes_consolidation.apps.cli import program; os.chdir(sys.argv[1])\ntry: program.main(['status'])\nexcept SystemExit: pass"
    assert loaded(look, done, watch=["numpy", "sqlite3", "git_notes_consolidation.supersession.judge"]) == ["sqlite3"]
    assert loaded("import git_notes_consolidation.session.context", watch=["numpy", "git_notes_consolidation.consolidation.service"]) == []


def test_every_public_name_is_there():
    names = git_notes_consolidation.__all__
    for name in names: assert getattr(git_notes_consolidation, name) is not None
    for chapter in (m for m in pkgutil.iter_modules(git_notes_consolidation.__path__) if m.ispkg):
        package = importlib.import_module(f"git_notes_consolidation.{chapter.name}")
        for name in package.__all__: assert getattr(package, name) is not None, (chapter.name, name)
    assert set(names) <= set(dir(git_notes_consolidation)) and len(names) == len(set(names))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"): git_notes_consolidation.nothing  # noqa: B018


MODULES = [module_of(p) for p in SOURCES]


# Without the extra


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    home = new_repo(tmp_path_factory.mktemp("package") / "repo", story())
    run(home)
    return home


@pytest.mark.slow
def test_everything_imports_without_the_extras():
    python(BLOCK + "import importlib\n" + f"for m in {MODULES!r}: importlib.import_module(m)\n"
           "import git_notes_consolidation as g\nfor n in g.__all__: getattr(g, n)")


def test_what_is_missing_names_the_command():
    said = python(BLOCK + "from git_notes_consolidation.core.runtime import need\ntry: need('sklearn.metrics', 'tune')\n"
                  "except NotImplementedError as e: print(e)").stdout
    assert said == "sklearn.metrics is not installed. Run: pip install 'git-notes-consolidation[tune]'\n"


def cli(home, *args):
    code = BLOCK + "from git_notes_consolidation.apps.entry import main; main()"
    return python(code, "--repo", home, "--now", SAMPLE_NOW.isoformat(), *args, check=False)


@pytest.mark.slow
def test_the_plain_install_looks(done):
    m = next(e.target_id for e in state_of(done).edges.values() if e.edge_type == "supersedes")
    for args in (["status", "-v"], ["tiers"], ["tiers", "--show", "hot"], ["runs"], ["explain", m], ["edges", m], ["summaries"], ["audit"], ["config"],
                 ["doctor"], ["diff", next(iter(state_of(done).runs))]):
        told = cli(done, *args)
        assert (told.returncode, told.stderr) == (0, ""), (args, told.stderr)
    assert json.loads(cli(done, "status", "--json").stdout)["available"] is True


@pytest.mark.slow
def test_the_plain_install_consolidates_and_takes_back(tmp_path):
    from git_notes_consolidation.consolidation.stores import open_service
    home = new_repo(tmp_path, story())
    assert json.loads(cli(home, "consolidate", "--dry-run", "--json").stdout) == json.loads(open_service(home).plan(SAMPLE_NOW).to_json())
    first = json.loads(cli(home, "consolidate", "--json").stdout)["run_id"]
    assert len(state_of(home).edges) == 6
    taken = json.loads(cli(home, "undo", first, "--json").stdout)
    assert taken["runs"] == [first] and state_of(home).edges == {}
    assert cli(home, "undo", taken["undo"]).returncode == 0 and len(state_of(home).edges) == 6


@pytest.mark.slow
def test_a_model_that_is_not_installed_is_named(tmp_path):
    home = new_repo(tmp_path / "repo", story())
    before = refs(home, NOTES)
    told = cli(home, "consolidate", "--llm", "ollama")
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1) and "pip install 'git-notes-consolidation[llm]'" in told.stderr
    assert refs(home, NOTES) == before


# What is imported when


RUN = """
import sys
from datetime import datetime
from git_notes_consolidation.consolidation import service
from git_notes_consolidation.consolidation.stores import open_service
s = open_service(sys.argv[1])
r = service.run(s, datetime.fromisoformat(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_run_with_nothing_to_do_loads_neither_scipy_nor_sklearn(done):
    assert loaded(RUN + "assert not r.changed", done, SAMPLE_NOW.isoformat(), watch=["scipy", "sklearn", "pandas", "plotly", "umap"]) == []


@pytest.mark.slow
def test_models_outside_are_never_asked(tmp_path):
    "No socket is opened, whatever a run does."
    code = "import socket\ndef no(*a, **k): raise AssertionError('network')\nsocket.socket.connect = socket.create_connection = socket.getaddrinfo = no\n"
    python(code + RUN + "assert r.success and r.changed", new_repo(tmp_path, story()), SAMPLE_NOW.isoformat())
