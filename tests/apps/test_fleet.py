"""A fleet: the same plan on one process, on loky's and on a Dask cluster of several, one of them killed; and repositories that fail, each by itself."""
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from calls import gnc, new_repo
from git_notes_consolidation.apps.fleet import workers as pool
from git_notes_consolidation.apps.fleet import sweep as fleet
from git_notes_consolidation.core import runtime as parallel
from git_notes_consolidation.consolidation import stores as service
from git_notes_consolidation.similarity import neighbours
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, sample_memories
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.locks import run_lock
from helpers import git, refs, replace_everywhere, story

pytestmark = pytest.mark.slow

REAL = neighbours.older_of


@pytest.fixture(scope="module")
def dask():
    "A cluster of a scheduler and three worker processes; its address."
    pytest.importorskip("distributed", reason="the extra fleet is not installed")
    import logging

    from distributed import LocalCluster
    with LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL,
                      host="127.0.0.1") as cluster: yield cluster.scheduler_address


@pytest.fixture(scope="module")
def year(tmp_path_factory): return new_repo(tmp_path_factory.mktemp("fleet") / "year", sample_memories()[:200])


@pytest.fixture
def small(tmp_path): return lambda name: new_repo(tmp_path / name, story())


@pytest.fixture
def everything_pays(monkeypatch): replace_everywhere(monkeypatch, parallel, "MIN_SECONDS", 0.0)


def plan(home, workers=None):
    with parallel.using_pool(workers): return service.open_service(home, load_settings({"max_change": 1.0, "workers": 1})).plan(SAMPLE_NOW, full=True).to_json()


@pytest.fixture(scope="module")
def alone(year): return plan(year)


SPREAD = {"older_of", "judge_pairs", "summarize_groups"}


class Victim:
    "The first to work on a share says who it is and works on until it is killed."
    def __init__(self, file): self.file, self.__name__ = str(file), "older_of"

    def __call__(self, share):
        try: handle = os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError: return REAL(share)
        os.write(handle, str(os.getpid()).encode())
        os.close(handle)
        time.sleep(120)
        raise AssertionError("nobody killed it")


def kill_when_it_works(file):
    "Kills the process whose number comes to stand in a file."
    def wait():
        for _ in range(2400):
            if file.exists() and (pid := file.read_text()): os.kill(int(pid), signal.SIGKILL if os.name == "posix" else signal.SIGTERM); return
            time.sleep(0.05)
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_a_worker_that_is_killed_while_it_works_changes_nothing(year, alone, dask, tmp_path, everything_pays, monkeypatch):
    file = tmp_path / "victim"
    replace_everywhere(monkeypatch, neighbours, "older_of", Victim(file))
    killer = kill_when_it_works(file)
    with pool.cluster(dask) as hands: assert plan(year, hands) == alone
    assert set(hands.sent) == SPREAD and min(hands.sent.values()) > 1
    assert hands.count == 3
    killer.join(10)
    with pytest.raises(ProcessLookupError): os.kill(int(file.read_text()), 0)


# Repositories

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


def test_an_address_comes_from_the_user_alone(small, tmp_path, monkeypatch):
    (small("a") / "gnc.toml").write_text('scheduler = "tcp://127.0.0.1:9"\n')
    said = gnc("fleet", tmp_path / "a", "--state", tmp_path / "s")
    assert said.code == 1 and "no setting 'scheduler'" in said.out
    monkeypatch.setenv("MEMORY_FLEET_SCHEDULER", "http://127.0.0.1:9")
    assert gnc("fleet", tmp_path / "a", "--state", tmp_path / "s").code == 2


def test_a_state_file_that_is_torn_loses_one_line(tmp_path):
    file = tmp_path / "s"
    fleet.append_state(file, "/a", fleet.Outcome("a", "ok", settings="x", tips="y"))
    file.write_text(file.read_text() + '\n{"home": "/b", "sta')
    fleet.append_state(file, "/c", fleet.Outcome("c", "ok"))
    file.write_bytes(file.read_bytes() + b"\n\xff\n[1]\n7")
    assert set(fleet.read_state(file)) == {"/a", "/c"}
