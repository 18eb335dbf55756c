"""The event store under real git: writers at once, locks left behind, and trees in every shape that git gives them."""
import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from helpers import git, refs

from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.store import events as store_events, git as store_git, events as store_writer
from git_notes_consolidation.store.events import Append, Locked, REFS, append, edge_append, read_events, run_lock, tidy
from git_notes_consolidation.store.git import MEM, RepoError, note_paths, open_repo, tips
from git_notes_consolidation.store.reader import read_memories, write_memories
from git_notes_consolidation.store.state import fold

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
A, B, C = (mem(t, days_ago=d) for t, d in (("one", 3), ("two", 2), ("three", 1)))
OBJECT = "ab" * 20


def said(i, store="meta", obj=OBJECT):
    "Something to append, that belongs to no run."
    return Append(store, obj, {"kind": "access", "id": f"r_{i}", "memory": A.id, "clone": f"c{i}", "count": 1, "at": NOW.isoformat()})


def ended(run): return Append("runs", OBJECT, {"kind": "run", "id": run, "at": NOW.isoformat()})
def linked(newer, older, run): return edge_append(OBJECT, MemoryEdge(newer.id, older.id, EdgeType.SUPERSEDES), run, NOW)
def ids(repo, store="meta"): return [r["id"] for s, _, r in read_events(repo).records if s == store]


@pytest.fixture
def repo(git_repo): return open_repo(git_repo)


# Many writers


def write_twenty(path, name, barrier):
    "Ten times two records; every other time also a run that an edge needs."
    repo = open_repo(path)
    barrier.wait()
    for i in range(10):
        run = [ended(f"run_{name}{i}"), linked(B, A, f"run_{name}{i}")] if i % 2 else []
        append(repo, lambda e, i=i, run=run: [said(f"{name}_{i}_a"), said(f"{name}_{i}_b", obj=f"{name}{i}" * 20), *run], NOW, patience=120)


@pytest.mark.slow
def test_four_writers_at_once_lose_nothing(repo):
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(4)
    writers = [fork.Process(target=write_twenty, args=(repo.path, name, barrier)) for name in "abcd"]
    for w in writers: w.start()
    for w in writers: w.join()
    assert [w.exitcode for w in writers] == [0] * 4
    assert set(ids(repo)) == {f"r_{n}_{i}_{x}" for n in "abcd" for i in range(10) for x in "ab"}  # some twice: tries that lost the race
    assert sorted(ids(repo, "runs")) == sorted(f"run_{n}{i}" for n in "abcd" for i in range(1, 10, 2))
    assert {r["run"] for s, _, r in read_events(repo).records if s == "edges"} == set(ids(repo, "runs"))
    assert read_events(repo).problems == () and tips(repo, "refs/gnc/") == {}
    order = sorted(r["seq"] for s, _, r in read_events(repo).records if s == "runs")
    assert len(set(order)) == 20  # each writer knew of all runs before its own


def test_whoever_loses_the_race_reads_again(repo, monkeypatch):
    seen, real = [], store_git.move_refs
    def overtaken(r, rows, final=False):
        monkeypatch.setattr(store_writer, "move_refs", real)
        append(repo, lambda e: [said("late")], NOW)
        real(r, rows, final)
    monkeypatch.setattr(store_writer, "move_refs", overtaken)
    append(repo, lambda e: seen.append(sorted(r["id"] for *_, r in e.records)) or [said("first")], NOW)
    assert seen == [[], ["r_late"]]
    assert {r["id"]: r["seq"] for *_, r in read_events(repo).records} == {"r_late": 1, "r_first": 2}


# The commit point


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("moment", range(1, 12))
def test_a_reader_never_knows_a_run_without_all_that_it_wrote(repo, monkeypatch, moment):
    "A whole run is written before the reader's n-th git process."
    append(repo, lambda e: [linked(B, A, "run_1"), ended("run_1")], NOW)
    real, calls, busy = store_git.git, [], []
    def interrupted(path, *args, **kw):
        if not busy:
            calls.append(args)
            if len(calls) == moment:
                busy.append(1)
                append(repo, lambda e: [linked(C, A, "run_2"), linked(C, B, "run_2"), said("x"), ended("run_2")], NOW)
                busy.clear()
        return real(path, *args, **kw)
    for module in (store_git, store_writer): monkeypatch.setattr(module, "git", interrupted)
    state = fold(read_events(repo))
    found = {(e.source_id, e.target_id) for e in state.edges.values()}
    old, new = {(B.id, A.id)}, {(B.id, A.id), (C.id, A.id), (C.id, B.id)}
    assert (found, set(state.runs)) in ((old, {"run_1"}), (new, {"run_1", "run_2"}))
    busy.append(1)
    assert len(calls) < moment or len(fold(read_events(repo)).edges) == 3


# Locks


def test_a_lock_that_stays_is_named_with_the_remedy(repo):
    append(repo, lambda e: [said(0)], NOW)
    lock = repo.common_dir / f"{REFS['meta']}.lock"
    lock.touch()
    before = refs(repo.path)
    with pytest.raises(RepoError, match=r"mem-meta/v1\.lock.*gnc consolidate.*removes a lock") as e: append(repo, lambda e: [said(1)], NOW, patience=0.2)
    assert "\n" not in str(e.value)
    assert lock.exists() and refs(repo.path) == before and ids(repo) == ["r_0"]
    lock.unlink()
    append(repo, lambda e: [said(1)], NOW)
    assert sorted(ids(repo)) == ["r_0", "r_1"]


@pytest.mark.slow
def test_the_next_run_removes_our_stale_locks_and_no_other(repo, monkeypatch):
    append(repo, lambda e: [said(0), ended("run_0")], NOW)
    ours = [repo.common_dir / f"{r}.lock" for r in REFS.values()]
    others = [repo.common_dir / f"{p}.lock" for p in ("refs/notes/mem/decisions", "refs/notes/commits", "refs/notes/mem-meta/v2", "refs/heads/main", "index")]
    for p in ours + others: p.parent.mkdir(parents=True, exist_ok=True); p.touch()
    git(repo.path, "update-ref", "refs/gnc/tmp/left/meta", "HEAD")
    with run_lock(repo):
        assert [p for p in ours if p.exists()] == [] and [p for p in others if not p.exists()] == []
        assert tips(repo, "refs/gnc/") == {}
        append(repo, lambda e: [said(1)], NOW, patience=0)
    assert sorted(ids(repo)) == ["r_0", "r_1"]


def test_a_lock_that_is_younger_than_the_wait_is_somebodys(repo, monkeypatch):
    "While we wait for an old lock to go, its owner goes and another writer takes a lock of its own."
    append(repo, lambda e: [said(0)], NOW)
    lock = repo.common_dir / f"{REFS['meta']}.lock"
    lock.touch()
    os.utime(lock, (1, 1))
    def another(seconds): lock.unlink(); lock.with_suffix(".new").write_text("mine"); lock.with_suffix(".new").rename(lock)
    monkeypatch.setattr(store_writer.time, "sleep", another)
    tidy(repo)
    assert lock.exists() and lock.read_text() == "mine"


HOLD = """if True:
    import sys
    from git_notes_consolidation.store.git import open_repo; from git_notes_consolidation.store.events import run_lock
    with run_lock(open_repo(sys.argv[1])): print("held", flush=True); sys.stdin.read()
"""


def test_one_run_at_a_time_and_a_killed_one_leaves_no_lock(repo):
    with subprocess.Popen([sys.executable, "-c", HOLD, repo.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Locked, match="another run is at work"), run_lock(repo): pass
        append(repo, lambda e: [said(0)], NOW)  # whoever only appends need not wait
        other.kill()
    with run_lock(repo): pass
    assert ids(repo) == ["r_0"]


# Repositories and trees of every kind


@pytest.mark.parametrize("kind", ["sha1", "sha256", "bare"])
def test_any_repository_holds_memories_and_records(tmp_path, kind):
    git(tmp_path, "init", "--quiet", "--template=", *(["--bare"] if kind == "bare" else [f"--object-format={kind}"]))
    repo, longer = open_repo(tmp_path), 64 if kind == "sha256" else 40
    write_memories(repo, [A, B, C])
    scan = read_memories(repo)
    assert {m.id for m in scan.memories} == {A.id, B.id, C.id} and {len(m.commit_sha) for m in scan.memories} == {longer} and len(repo.zero) == longer
    here = scan.memories[0].commit_sha
    for i in range(2): append(repo, lambda e, i=i: [said(i, obj=here), ended(f"run_{i}"), linked(B, A, f"run_{i}")], NOW)
    state = fold(read_events(repo))
    assert (len(state.edges), set(state.runs), state.accesses[A.id][0]) == (1, {"run_0", "run_1"}, 2)
    assert tips(repo, MEM) == scan.tips and tips(repo, "refs/gnc/") == {} and git(tmp_path, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_notes_at_whatever_path_get_their_new_line(repo, depth):
    "One note an object afterwards, with the old line first; what we do not touch stays where it is."
    objects = [hashlib.sha1(b"%d" % i).hexdigest() for i in range(40)]
    def where(o): return "/".join([*re.findall("..", o[:2 * depth]), o[2 * depth:]])
    stream = [f"commit {REFS['meta']}\ncommitter a <a@example.org> 0 +0000\ndata 1\nx"]
    for i, o in enumerate(objects):
        line = store_events.encode({**said(i).record, "seq": 1}) + "\n"
        stream.append(f"M 100644 inline {where(o)}\ndata {len(line)}\n{line}")
    git(repo.path, "fast-import", "--quiet", input="\n".join(stream) + "\n")
    append(repo, lambda e: [said("new", obj=objects[3]), said("more", obj=objects[3]), said("first", obj="cd" * 20)], NOW)
    listed = note_paths(repo, tips(repo, REFS["meta"])[REFS["meta"]])
    assert sorted(o for o, *_ in listed) == sorted([*objects, "cd" * 20])
    assert sorted(ids(repo)) == sorted([*(f"r_{i}" for i in range(40)), "r_new", "r_more", "r_first"])
    assert [p for o, p, _ in listed if o in objects and o != objects[3]] == sorted(where(o) for o in objects if o != objects[3])
    lines = git(repo.path, "notes", "--ref=mem-meta/v1", "show", objects[3]).splitlines()
    assert [json.loads(x[2:])["id"] for x in lines] == ["r_3", "r_new", "r_more"]
    assert len(git(repo.path, "notes", "--ref=mem-meta/v1", "list").splitlines()) == 41 and git(repo.path, "fsck", "--strict", "--no-dangling") == ""


def test_variables_of_an_outer_git_do_not_redirect_us(repo, tmp_path, monkeypatch):
    git(tmp_path, "init", "--quiet", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git")); monkeypatch.setenv("GIT_NOTES_REF", "refs/notes/elsewhere")
    append(open_repo(repo.path), lambda e: [said(0)], NOW)
    monkeypatch.delenv("GIT_DIR")
    assert refs(tmp_path / "other") == {} and REFS["meta"] in refs(repo.path)
