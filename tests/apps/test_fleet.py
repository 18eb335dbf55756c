"""A fleet: repositories that fail, each by itself."""
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from calls import COMMAND, gnc, new_repo
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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of processes")
def test_a_process_that_is_killed_takes_no_repository_with_it(tmp_path):
    for name in ("one", "two", "three"): new_repo(tmp_path / name, story())
    words = [*COMMAND, "fleet", "--json", "--under", tmp_path, "--workers", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as p:
        children, until = Path(f"/proc/{p.pid}/task/{p.pid}/children"), time.monotonic() + 60
        def workers(): return [c for c in children.read_text().split() if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
        while not (there := workers()) and time.monotonic() < until: time.sleep(0.02)
        os.kill(int(there[0]), signal.SIGKILL)
        done = json.loads(p.stdout.read())
    assert (p.returncode, done["ok"], done["failed"]) == (0, 3, 0), done
    assert all(refs(tmp_path / n, "refs/notes/mem-runs") for n in ("one", "two", "three"))
