"""A fleet: repositories that fail, each by itself."""
import pytest
import shutil
from calls import gnc, new_repo
from helpers import git, refs, story
from pathlib import Path
from git_notes_consolidation.apps.fleet import Outcome, append_state, read_state
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.events import run_lock


pytestmark = pytest.mark.slow


@pytest.fixture
def small(tmp_path): return lambda name: new_repo(tmp_path / name, story())


def state_of(said): return {Path(o["repository"]).name: o["state"] for o in said.json["repositories"]}


def test_each_repository_fails_by_itself_and_the_sweep_goes_on(small, tmp_path):
    for name in ("one", "two", "busy", "broken", "addressed", "changed"): small(name)
    shutil.rmtree(tmp_path / "broken" / ".git" / "objects")
    (tmp_path / "addressed" / "gnc.toml").write_text('llm_base_uri = "http://127.0.0.1:1/v1"\n')
    (tmp_path / "list").write_text(f"# ours\n{tmp_path / 'nowhere'}\n")
    command = ["fleet", "--under", tmp_path, "--list", tmp_path / "list", "--state", tmp_path / "s.jsonl", "--json", "--retries", 1]
    with run_lock(open_repo(tmp_path / "busy")): said = gnc(*command, "--workers", 2)
    assert said.code == 1
    assert state_of(said) == {"one": "ok", "two": "ok", "changed": "ok", "busy": "failed", "broken": "failed", "addressed": "failed", "nowhere": "failed"}
    why = {Path(o["repository"]).name: (o["why"], o["tries"]) for o in said.json["repositories"]}
    assert "another run is at work" in why["busy"][0] and why["busy"][1] == 2
    assert why["nowhere"] == (f"{tmp_path / 'nowhere'} is not a directory", 1) and "broken" in why["broken"][0]
    assert "no setting 'llm_base_uri'" in why["addressed"][0] and why["addressed"][1] == 1
    assert (said.json["ok"], said.json["failed"]) == (3, 4)
    assert all(refs(tmp_path / n, "refs/notes/mem-runs") for n in ("one", "two")) and not refs(tmp_path / "busy", "refs/notes/mem-")
    git(tmp_path / "changed", "update-ref", "refs/notes/mem/zz", git(tmp_path / "changed", "rev-parse", "refs/notes/mem/decisions"))
    (tmp_path / "addressed" / "gnc.toml").unlink()
    again = gnc(*command, "--resume", "--workers", 1)
    assert state_of(again) == {"one": "skipped", "two": "skipped", "changed": "ok", "busy": "ok", "broken": "failed", "addressed": "ok", "nowhere": "failed"}
    known = ["fleet", tmp_path / "one", "--state", tmp_path / "s.jsonl", "--resume"]
    assert "1 skipped" in gnc(*known).out and "1 ok" in gnc(*known, "--max-change", 0.2).out  # Other settings are another sweep


def test_a_state_file_that_is_torn_loses_one_line(tmp_path):
    file = tmp_path / "s"
    append_state(file, "/a", Outcome("a", "ok", settings="x", tips="y"))
    file.write_text(file.read_text() + '\n{"home": "/b", "sta')
    append_state(file, "/c", Outcome("c", "ok"))
    file.write_bytes(file.read_bytes() + b"\n\xff\n[1]\n7")
    assert set(read_state(file)) == {"/a", "/c"}
