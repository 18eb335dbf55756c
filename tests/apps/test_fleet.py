"""A fleet: repositories that fail, each by itself."""
import shutil
from pathlib import Path

import pytest
from calls import gnc, new_repo
from git_notes_consolidation.store.events import run_lock
from git_notes_consolidation.store.git import open_repo
from helpers import refs, story


def said_of(done, key): return {Path(o["repository"]).name: o[key] for o in done.json["repositories"]}


@pytest.mark.slow
def test_each_repository_fails_by_itself_and_the_sweep_goes_on(tmp_path):
    for name in ("one", "two", "busy", "broken", "addressed"): new_repo(tmp_path / name, story())
    shutil.rmtree(tmp_path / "broken" / ".git" / "objects")
    (tmp_path / "addressed" / "gnc.toml").write_text('llm_base_uri = "http://127.0.0.1:1/v1"\n')
    (tmp_path / "list").write_text(f"# ours\n{tmp_path / 'nowhere'}\n")
    command = ["fleet", "--under", tmp_path, "--list", tmp_path / "list", "--json", "--workers", 2]
    with run_lock(open_repo(tmp_path / "busy")): first = gnc(*command)
    failing = {"busy": "another run is at work", "broken": "broken", "addressed": "no setting 'llm_base_uri'", "nowhere": "nowhere is not a directory"}
    assert first.code == 1 and said_of(first, "state") == {"one": "ok", "two": "ok"} | dict.fromkeys(failing, "failed")
    for name, why in failing.items(): assert why in said_of(first, "why")[name]
    assert (first.json["ok"], first.json["failed"]) == (2, 4)
    assert all(refs(tmp_path / n, "refs/notes/mem-runs") for n in ("one", "two")) and not refs(tmp_path / "busy", "refs/notes/mem-")
    (tmp_path / "addressed" / "gnc.toml").unlink()
    again = gnc(*command)
    assert said_of(again, "state") == dict.fromkeys(("one", "two", "busy", "addressed"), "ok") | {"broken": "failed", "nowhere": "failed"}
    assert said_of(again, "did")["one"] == "nothing to do" != said_of(again, "did")["busy"]
