"""A fleet: the same plan on one process, on loky's and on a Dask cluster of several, one of them killed; and repositories that fail, each by itself."""
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from calls import gnc, new_repo
from calls import state_of as read_state
from git_notes_consolidation.apps.fleet import workers as pool
from git_notes_consolidation.apps.fleet import sweep as fleet
from git_notes_consolidation.core import processes as parallel
from git_notes_consolidation.consolidation import stores as service
from git_notes_consolidation.consolidation import plan as consolidation_plan
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


def fails(share):
    "Fails as often as its file says."
    file, times = share
    n = int(file.read_text() or 0) + 1 if file.exists() else 1
    file.write_text(str(n))
    if n <= times: raise OSError(f"no room, the {n}.")
    return n


def test_a_task_that_fails_twice_is_done_the_third_time(dask, tmp_path):
    with pool.cluster(dask) as hands: assert hands.each(fails, [(tmp_path / "a", 0), (tmp_path / "b", 2)]) == [1, 3]


def test_a_scheduler_that_is_not_there_is_one_line(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(pool.NoCluster, match=r"no scheduler answers at tcp://127.0.0.1:9 .* start one with dask scheduler"):
        with pool.cluster("tcp://127.0.0.1:9", patience=0.3): pass


def test_without_dask_the_extra_is_named(small, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    said = gnc("fleet", small("a"), "--scheduler", "tcp://127.0.0.1:9", "--state", tmp_path / "s")
    assert said.code == 1 and "pip install 'git-notes-consolidation[fleet]'" in said.err


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


def test_a_repository_that_vanishes_midway_is_a_row(small, tmp_path, monkeypatch):
    homes, make = [small("first"), small("gone"), small("last")], consolidation_plan.make_plan
    def vanishing(*args):
        if (tmp_path / "gone").exists() and not refs(tmp_path / "last", "refs/notes/mem-runs") and refs(tmp_path / "first", "refs/notes/mem-runs"):
            shutil.rmtree(tmp_path / "gone")
        return make(*args)
    replace_everywhere(monkeypatch, consolidation_plan, "make_plan", vanishing)
    said = gnc("fleet", *homes, "--state", tmp_path / "s", "--workers", 1, "--retries", 1, "--json")
    assert said.code == 1 and state_of(said) == {"first": "ok", "gone": "failed", "last": "ok"}
    assert "is not a directory" in said.json["repositories"][-1]["why"]
    assert sorted(Path(json.loads(line)["home"]).parent.name for line in (tmp_path / "s").read_text().split("\n") if '"ok"' in line) == ["first", "last"]


def test_each_repository_has_its_own_limit(small, tmp_path):
    said = gnc("fleet", small("a"), "--max-change", 0, "--state", tmp_path / "s", "--json")
    made = [e.edge_type for e in read_state(tmp_path / "a").edges.values()].count("supersedes")
    assert said.code == 0 and 0 < made <= 5  # Five may always be superseded


def test_a_dry_run_writes_nothing(small, tmp_path):
    home = small("a")
    before = refs(home)
    said = gnc("fleet", home, "--dry-run", "--state", tmp_path / "s", "--json")
    assert said.code == 0 and said.json["repositories"][0]["did"].startswith("would: ") and refs(home) == before and not (tmp_path / "s").exists()


def test_a_fleet_on_a_cluster_writes_what_one_machine_writes(small, tmp_path, dask, everything_pays, monkeypatch):
    homes = [small("a"), small("b")]
    (homes[1] / "gnc.toml").write_text("workers = 1\n")  # A repository does not say who works
    said = gnc("fleet", *homes, "--scheduler", dask, "--state", tmp_path / "s", "--json")
    assert said.code == 0 and said.json["tasks"]["judge_pairs"] > 2 and state_of(said) == {"a": "ok", "b": "ok"}
    assert gnc("consolidate", repo=(other := small("c"))).code == 0
    assert refs(homes[0], "refs/notes/mem-") == refs(other, "refs/notes/mem-") == refs(homes[1], "refs/notes/mem-")


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
