"""What all tests share: a git that knows nothing of its user, a repository, and real memories where there are some."""
import os
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers import ROOT, git, story
from llm_servers import FaultyServer

try: from hypothesis import settings
except ImportError: pass
else:
    settings.register_profile("here", deadline=None, max_examples=25, derandomize=True)  # the same examples every time
    settings.register_profile("long", deadline=None, max_examples=5000, print_blob=True)  # others every time
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "here"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    "Of a test marked `slow(after=1)` the first case is quick."
    seen = Counter()
    for item in items:
        mark, name = item.get_closest_marker("slow"), item.nodeid.partition("[")[0]
        seen[name] += 1
        if mark and seen[name] <= mark.kwargs.get("after", 0): item.own_markers.remove(mark)


@pytest.fixture(scope="session", autouse=True)
def bare_environment(tmp_path_factory):
    "No configuration of the user, the system or a surrounding git command reaches a test."
    from git_notes_consolidation.core.memory import AGENTS
    with pytest.MonkeyPatch.context() as m:
        for name in list(os.environ):
            if name.startswith(("GIT_", "MEMORY_", "GNC_", "HOOK_", "SUBCOG_")) and name != "GNC_SHARED" or name in AGENTS: m.delenv(name)
        m.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        m.setenv("GIT_CONFIG_NOSYSTEM", "1")
        m.setenv("GIT_TERMINAL_PROMPT", "0")
        m.setenv("TZ", "UTC")
        yield


@pytest.fixture
def home(tmp_path, monkeypatch):
    "An empty home directory."
    path = tmp_path / "home"
    path.mkdir()
    for name in ("HOME", "USERPROFILE"): monkeypatch.setenv(name, str(path))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"): monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def git_repo(tmp_path, home):
    "A repository with one commit, the same commit every time."
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch=main")
    git(repo, "config", "user.name", "Tester")
    git(repo, "config", "user.email", "tester@example.org")
    (repo / "README.md").write_text("A repository.\n")
    git(repo, "add", "README.md")
    git(repo, "commit", "--quiet", "--message=First", date="2025-01-01T00:00:00+00:00")
    return repo


@pytest.fixture(scope="session")
def story_before(tmp_path_factory):
    "A repository of `helpers.story`; not to be written to."
    from calls import new_repo
    home = new_repo(tmp_path_factory.mktemp("story") / "before", story())
    git(home, "config", "user.name", "Tester"); git(home, "config", "user.email", "tester@example.org")
    return home


@pytest.fixture(scope="session")
def story_after(story_before):
    "The same after a run; not to be written to."
    from calls import run
    home = shutil.copytree(story_before, story_before.parent / "after")
    assert run(home).changed
    return home


@pytest.fixture(scope="session")
def shared():
    "The folder of data that is not part of the project: beside it, or where GNC_SHARED says."
    path = Path(os.environ.get("GNC_SHARED") or ROOT.parent / "shared")
    if not path.is_dir(): pytest.skip(f"no shared data: {path.name}/ does not stand beside the project and GNC_SHARED names no folder")
    return path


@pytest.fixture(scope="session")
def corpus_template(shared, tmp_path_factory):
    "A repository without commits that holds the real corpus's notes; not to be written to."
    bundle = shared / "corpus" / "plugin-own-notes.bundle"
    if not bundle.exists(): pytest.skip(f"no {bundle.name} in the shared data")
    repo = tmp_path_factory.mktemp("corpus") / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch=main")
    git(repo, "config", "user.name", "Tester")
    git(repo, "config", "user.email", "tester@example.org")
    git(repo, "fetch", "--quiet", str(bundle), "refs/notes/*:refs/notes/*")
    return repo


@pytest.fixture
def corpus_repo(corpus_template, tmp_path, home):
    "A copy of the real corpus's repository, to be written to."
    return Path(shutil.copytree(corpus_template, tmp_path / "corpus"))


@pytest.fixture
def faulty_llm():
    "Makes servers that misbehave as told: `faulty_llm(\"500\", \"ok\")`; they end with the test."
    with ExitStack() as stack: yield lambda *script, **more: stack.enter_context(FaultyServer(script, **more))
