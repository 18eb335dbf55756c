"""gnc doctor compact: the commits go, and no record does; whatever comes in between, and back again."""
import json
import shutil
import subprocess
from datetime import timedelta

import pytest
from calls import gnc, new_repo, run, serve, state_of
from helpers import git, refs, story
from hypothesis import given, settings, strategies as st

from git_notes_consolidation.consolidation.status import undo
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import MemoryTier
from git_notes_consolidation.store import audit, sync as compacting, git as store_git, sync as store_remote
from git_notes_consolidation.store.sync import compact, histories, publish, restore, sync
from git_notes_consolidation.store.events import Append, REFS, append, encode, our_tips, read_events, tier_append
from git_notes_consolidation.store.git import MEM, open_repo

pytestmark = pytest.mark.slow

DAY = timedelta(days=1)
A = mem("Serve the API with Flask", now=SAMPLE_NOW, commit_sha="a" * 40)


def learn(home, name, at=SAMPLE_NOW):
    "A run with a record and its own."
    moved = tier_append(A, MemoryTier.HOT, MemoryTier.COLD, name, 0.1, name)
    append(open_repo(home), lambda e: [moved, Append("runs", A.commit_sha, {"kind": "run", "id": name, "at": at.isoformat()})], at)


def make(path, runs=6, *options):
    "A repository with runs ten days apart, the last of them now."
    home = new_repo(path, (), *options)
    for n in range(runs): learn(home, f"run_{n}", SAMPLE_NOW - 10 * DAY * (runs - 1 - n))
    return home


def told(home): return {(store, obj, encode(r)) for store, obj, r in read_events(open_repo(home)).records}
def count(home, store="meta"): return int(git(home, "rev-list", "--count", REFS[store]))
def squashed(home): return compact(open_repo(home), SAMPLE_NOW)


@pytest.fixture(scope="session")
def template(tmp_path_factory): return make(tmp_path_factory.mktemp("compacting") / "repo")
@pytest.fixture
def home(template, tmp_path): return shutil.copytree(template, tmp_path / "home")


# What stays


@settings(max_examples=6)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-40, 40)), min_size=1, max_size=7), st.integers(0, 3))
def test_the_state_is_the_same_whatever_the_history(tmp_path_factory, steps, more):
    "Two clones write at any times, clocks going wrong, and meet now and then; then one is compacted, goes on, and is restored."
    place = tmp_path_factory.mktemp("dag")
    homes = {c: new_repo(place / c) for c in "ab"}
    for n, (c, day) in enumerate(steps):
        learn(homes[c], f"run_{n}", SAMPLE_NOW + day * DAY)
        if n % 3 == 2: sync(open_repo(homes["a"]), str(homes["b"]), timeout=30)
    home, repo = homes["a"], open_repo(homes["a"])
    records, state, then = told(home), state_of(home), our_tips(repo)
    done = squashed(home)
    assert (told(home), state_of(home)) == (records, state)
    assert squashed(home).name == ""
    for n in range(more): learn(home, f"more_{n}")
    records = told(home)
    if done.name: restore(repo, done.name)
    assert told(home) == records and histories(repo) == {}
    assert all(git(home, "merge-base", "--is-ancestor", tip, ref, check=False) == "" for ref, tip in then.items())


USED = ("activation_count", "last_accessed", "retention_score", "score")


def test_every_look_behind_the_horizon_says_what_it_said(tmp_path):
    "Runs of which no commit is left are listed, shown, audited, and undone."
    home = new_repo(tmp_path / "repo", [m for m in story() if "number" not in m.content])
    for n in (45, 0): run(home, SAMPLE_NOW - n * DAY)
    first = min(state_of(home).runs.values(), key=lambda r: r["seq"])["id"]
    adr = next(m for m in story() if m.summary.startswith("ADR-000"))
    asked = [("runs",), ("diff", first), ("log", "--all"), ("audit",), ("history", adr.id), ("explain", adr.id),
             *(("history", adr.id, "--known-at", f"{SAMPLE_NOW - n * DAY:%Y-%m-%d}") for n in (350, 50, 20, 0))]
    def told():  # `explain` is a use, and counts
        found = [json.loads(gnc("--json", *a, repo=home).out) for a in asked]
        return [{k: v for k, v in x.items() if k not in USED} if isinstance(x, dict) else x for x in found]
    said, theirs = told(), refs(home, MEM)
    assert squashed(home).commits > 0
    assert told() == said and refs(home, MEM) == theirs
    assert not run(home).changed
    assert undo(serve(home), first, SAMPLE_NOW, confirmed=True)[1] == first
    assert first in state_of(home).undone and [f for f in audit.audit(home).findings if f.level == "broken"] == []


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)], ids=["sha1", "sha256"])
def test_there_and_back(tmp_path, options):
    home = make(tmp_path / "repo", 6, *options)
    before = our_tips(open_repo(home))
    done = squashed(home)
    assert (count(home), done.commits) == (1, 10) and git(home, "fsck", "--no-dangling") == ""
    assert gnc("compact", "--restore", done.name, repo=home).code == 0
    assert count(home) == 8 and {*before.values()} <= {*git(home, "rev-list", "--all").split()}


# In between


def test_an_append_in_between_is_not_lost(home, monkeypatch):
    calls, real = [], compacting.move_refs
    def late(repo, lines):
        calls.append(1)
        if len(calls) == 1: learn(home, "run_late")
        return real(repo, lines)
    monkeypatch.setattr(compacting, "move_refs", late)
    done = squashed(home)
    assert len(calls) == 2 and "run_late" in state_of(home).runs and [*histories(open_repo(home))] == [done.name]
    assert (git(home, "rev-list", "--count", f"refs/gnc/history/{done.name}/meta"), count(home)) == ("7", 1)


def dying(monkeypatch, after):
    "git stops working after so many calls, as if the process had been killed; how many there were."
    calls, real = [], subprocess.run
    def some(*args, **kw):
        calls.append(args[0])
        if len(calls) > after: raise OSError("gone")
        return real(*args, **kw)
    monkeypatch.setattr(store_git.subprocess, "run", some)
    return calls


def crashes(home, tmp_path, step):
    "Copies of a repository in which a step was killed at each of its calls of git, and one in which it was not."
    for after in range(99):
        place = shutil.copytree(home, tmp_path / f"crash{after}")
        with pytest.MonkeyPatch.context() as m:
            dying(m, after)
            try: step(place); whole = True
            except OSError: whole = False
        yield place
        if whole: break
    assert 5 < after < 60


def test_a_crash_at_any_step_loses_nothing(home, tmp_path):
    before, records = our_tips(open_repo(home)), told(home)
    for place in crashes(home, tmp_path, squashed):
        assert told(place) == records and {*before.values()} <= {*git(place, "rev-list", "--all").split()}
        squashed(place)
        assert told(place) == records and count(place) == 1 and len(histories(open_repo(place))) == 1


def test_a_crash_while_restoring_loses_nothing(home, tmp_path):
    name, records = squashed(home).name, told(home)
    for place in crashes(home, tmp_path, lambda place: restore(open_repo(place), name)):
        assert told(place) == records
        if histories(open_repo(place)): restore(open_repo(place), name)
        assert told(place) == records and count(place) == 8


# With others


@pytest.fixture
def team(home, tmp_path):
    "A bare remote that has everything, and a second clone with a run of its own."
    new_repo(tmp_path / "team.git", (), "--bare")
    other = new_repo(tmp_path / "other")
    sync(open_repo(home), str(tmp_path / "team.git"))
    sync(open_repo(other), str(tmp_path / "team.git"))
    learn(other, "run_other")
    return home, other, tmp_path / "team.git"


def test_published_it_reaches_all_and_nothing_comes_back(team):
    home, other, remote = team
    said = gnc("compact", "--push", remote, repo=home)
    assert said.code == 0 and "other clones get it with gnc sync" in said.out
    assert our_tips(open_repo(home)) == our_tips(open_repo(remote)) and count(remote) == 1
    mine = our_tips(open_repo(other))
    sync(open_repo(other), str(remote)); sync(open_repo(home), str(remote))
    assert told(home) == told(other) == told(remote) and "run_other" in state_of(home).runs
    assert [count(h) for h in (home, other, remote)] == [2, 2, 2]  # One more: what only the other had
    name, = histories(open_repo(other))
    assert histories(open_repo(other))[name] == {s: mine[ref] for s, ref in REFS.items() if ref in mine}
    restore(open_repo(other), name)
    assert told(other) == told(home) and {*mine.values()} <= {*git(other, "rev-list", "--all").split()}


def test_who_pushes_in_between_is_not_overwritten(team, monkeypatch):
    home, other, remote = team
    real, calls = store_remote.push, []
    def late(*args):
        calls.append(1)
        if len(calls) == 1:
            with monkeypatch.context() as m: m.setattr(compacting, "push", real); sync(open_repo(other), str(remote))
        return real(*args)
    monkeypatch.setattr(compacting, "push", late)
    publish(open_repo(home), SAMPLE_NOW, str(remote))
    assert len(calls) > 1 and told(home) == told(remote) and "run_other" in state_of(home).runs
