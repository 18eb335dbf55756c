"""gnc sync: clones and worktrees that write at once and meet through a bare remote. All agree in the end, and no line that was ever written is lost."""
import multiprocessing
import os
import shutil
import signal
import subprocess

import pytest
from calls import gnc, gnc_process, state_of
from clones import A, B, C, agree, at, ever, go, learn, lines, make
from helpers import add_memories, git, refs

from git_notes_consolidation.store import sync as remote, sync as syncing
from git_notes_consolidation.store.events import REFS, hold, read_events, run_lock
from git_notes_consolidation.store.git import RaceLost, RepoError, open_repo
from git_notes_consolidation.store.reader import UnknownId
from git_notes_consolidation.store.sync import find_remote

def records(moved): return {n for store, n in moved.items() if store != "memories"}


# Meeting


@pytest.mark.slow
def test_the_memories_come_along_and_all_other_refs_are_left_to_others(pair, tmp_path):
    one, two = pair
    add_memories(one, [A])
    git(one, "update-ref", "refs/notes/mem-edges/v2", at(one)[REFS["edges"]])
    git(one, "notes", "--ref=commits", "add", "-m", "x", git(one, "hash-object", "-w", "--stdin", input="x"))
    go(one); go(two)
    assert set(refs(tmp_path / "team.git")) == {*REFS.values(), f"refs/notes/mem/{A.namespace}"}
    assert refs(two, "refs/notes/mem/") == refs(one, "refs/notes/mem/")


# Kinds of repositories


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", ["bare", "mirror", "sha256", "partial", "shallow"])
def test_clones_of_every_kind(tmp_path, kind):
    one, = make(tmp_path, "one", **({"object-format": "sha256"} if kind == "sha256" else {}))
    git(tmp_path / "team.git", "config", "uploadpack.allowFilter", "true")
    for text in "xy": git(one, "commit", "--quiet", "--allow-empty", "-m", text)
    git(one, "push", "--quiet", "origin", "HEAD")
    for i in range(3): learn(one, f"run_{i}")
    if kind != "partial": go(one)
    how = {"bare": ["--bare"], "mirror": ["--mirror"], "partial": ["--filter=blob:none"], "shallow": ["--depth=1"]}.get(kind, [])
    git(tmp_path, "clone", "--quiet", *how, f"file://{tmp_path}/team.git", "two")
    two = tmp_path / "two"
    learn(two, "run_x", C, A)
    assert set(agree(one, two).runs) == {"run_0", "run_1", "run_2", "run_x"} and read_events(open_repo(two)).problems == ()


@pytest.mark.slow
def test_a_refspec_that_would_overwrite_our_refs_does_not(pair, monkeypatch):
    "Whoever fetches refs/notes/* by force loses what was not pushed, at each fetch and at each push; but not through us."
    one, two = pair
    go(one)
    git(two, "config", "--add", "remote.origin.fetch", "+refs/notes/*:refs/notes/*")
    git(two, "config", "--add", "remote.origin.push", "refs/notes/mem/*:refs/notes/mem/*")
    real = syncing.push
    monkeypatch.setattr(syncing, "push", lambda *args: (real(*args), learn(two, "run_late") if "edges" in args[2] else None))
    settings = git(two, "config", "--list", "--local")
    go(two)
    assert set(state_of(two).runs) == {"run_1", "run_2", "run_late"} and git(two, "config", "--list", "--local") == settings
    assert lines(two) >= ever(two)
    assert "run_late" not in state_of(one.parent / "team.git").runs


def test_which_remote(pair, tmp_path):
    one, _ = pair
    repo = open_repo(one)
    assert find_remote(repo).name == "origin"
    git(one, "commit", "--quiet", "--allow-empty", "-m", "x")
    git(one, "remote", "add", "up=stream.x", "../mirror.git"); git(one, "config", "branch.main.remote", "up=stream.x")
    git(tmp_path, "init", "--quiet", "--bare", "mirror.git")
    assert find_remote(repo).name == "up=stream.x" and find_remote(repo, "origin").name == "origin"
    go(one)
    assert refs(tmp_path / "mirror.git") == at(one)
    git(one, "checkout", "--quiet", "--detach")
    assert find_remote(repo).name == "origin"
    git(one, "remote", "rename", "origin", "elsewhere")
    with pytest.raises(UnknownId, match="elsewhere, up=stream.x.*gnc sync NAME"): find_remote(repo)
    git(one, "remote", "remove", "elsewhere")
    assert find_remote(repo).name == "up=stream.x"
    assert go(one, str(tmp_path / "team.git")).sent == ("run_1",) and refs(tmp_path / "team.git") == at(one)


# Races


@pytest.mark.slow
def test_whoever_was_faster_is_not_overwritten(pair, monkeypatch):
    one, two = pair
    real, rivals = syncing.push, ["run_3", "run_4"]
    def push(repo, remote, commits, *rest):
        if rivals and "edges" in commits:
            learn(two, rivals.pop())
            monkeypatch.setattr(syncing, "push", real); go(two); monkeypatch.setattr(syncing, "push", push)
        return real(repo, remote, commits, *rest)
    monkeypatch.setattr(syncing, "push", push)
    r = go(one)
    assert r.tries == 3 and r.sent == ("run_1",) and records(r.went) == {1} and records(r.came) == {3}
    assert set(agree(one, two).runs) == {f"run_{i}" for i in (1, 2, 3, 4)}


def torn(one, two, remote, real, args, kw):
    "What a server gives that reads its refs one by one, the runs last, while another clone's sync comes in between."
    out, wrong = real(open_repo(one), remote, *args, **kw)
    go(two)
    if args[0] == "fetch": return real(open_repo(one), remote, *args[:-4], args[-1], **kw)  # the runs as they are now
    now, _ = real(open_repo(one), remote, *args, **kw)
    return "\n".join([*(x for x in out.splitlines() if "runs" not in x), *(x for x in now.splitlines() if "runs" in x)]), wrong


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("command", ["ls-remote", "fetch"])
@pytest.mark.parametrize("first", [True, False])
def test_whoever_fetches_in_the_middle_of_a_push_gets_no_half_run(pair, monkeypatch, command, first):
    "Whether the remote had refs of ours before or gets its first."
    one, two = pair
    if not first or command == "fetch": go(two); go(one); learn(two, "run_3", C, B); go(two); learn(two, "run_4", A, B)
    real, done = remote.talk, []
    def talk(repo, remote, *args, **kw):
        if repo.path == one and args[0] == command and not done:
            done.append(args)
            return torn(one, two, remote, real, args, kw)
        return real(repo, remote, *args, **kw)
    monkeypatch.setattr(remote, "talk", talk)
    go(one, send=False)
    state = state_of(one)
    by = [*(e.reason for e in state.edges.values()), *(x.consolidation_run_id for x in state.summaries.values())]
    assert done and sorted(by) == sorted([*state.runs] * 2)  # an edge and a summary of each


# kill -9


class Dying(subprocess.Popen):
    "The n-th process that is started is not: we die instead."
    left = 0

    def __init__(self, *args, **kw):
        Dying.left -= 1
        if Dying.left < 0: os.kill(os.getpid(), signal.SIGKILL)
        super().__init__(*args, **kw)


def dies(n, work):
    "Does the work end before its n-th process?"
    def child():
        Dying.left, subprocess.Popen = n, Dying
        work()
    p = multiprocessing.get_context("fork").Process(target=child)
    p.start(); p.join()
    assert p.exitcode in (0, -signal.SIGKILL)
    return p.exitcode == 0


@pytest.mark.slow
def test_kill_anywhere_and_nobody_counts_half_a_run(pair, tmp_path):
    """The clone that is killed, the remote, and whoever takes from it: each has a run whole or not at all, and the next sync completes.

    At every fifth process; `make faults` tries every one."""
    make(tmp_path, "three", remote="other.git")
    git(tmp_path / "three", "config", "remote.origin.url", "../team.git")
    one, two = pair
    go(two)
    base = tmp_path / "base"; base.mkdir()
    for n in ("team.git", "one", "three"): shutil.move(tmp_path / n, base / n)
    final = shutil.copytree(base, tmp_path / "final")
    old, before = state_of(base / "one"), state_of(base / "team.git")
    go(final / "one"); go(final / "one")
    new, seen = state_of(final / "one"), set()
    for n in range(0, 200, 1 if os.environ.get("GNC_LONG") else 5):
        here = shutil.copytree(base, tmp_path / "here")
        done = dies(n, lambda here=here: go(here / "one"))
        state, there = state_of(here / "one"), state_of(here / "team.git")
        assert state in (old, new) and there in (before, new)
        go(here / "three", send=False)
        assert state_of(here / "three") == there
        seen.add((state == new, there == new))
        go(here / "one")
        assert state_of(here / "one") == state_of(here / "team.git") == new and at(here / "one") == at(final / "one")
        with run_lock(open_repo(here / "one")): pass
        assert not refs(here / "one", "refs/gnc/tmp/")
        shutil.rmtree(here)
        if done: break
    assert done and n > 15 and seen == {(False, False), (True, False), (True, True)}


# The command


@pytest.mark.slow
def test_the_command(pair, tmp_path):
    one, two = pair
    assert gnc_process("--repo", one, "sync").code == 0
    r = gnc("sync", "--dry-run", "--json", repo=two).json
    assert (r["dry_run"], r["learned"], r["sent"], r["remote"], r["came"]["edges"]) == (True, ["run_1"], ["run_2"], "origin", 1)
    assert gnc("sync", "--no-push", repo=two).code == 0
    r = gnc("sync", repo=two)
    assert r.code == 0 and "Moved: origin" in r.out and "run_2" in r.out
    assert "refs/notes/mem/*" in gnc("sync", "--help").out
    with hold(open_repo(two), "sync.lock", ""): assert gnc("sync", "--timeout", "1", repo=two).code == 4
    git(two, "remote", "remove", "origin")
    assert (r := gnc("sync", repo=two)).code == 2 and "git remote add origin URL" in r.err
    assert (r := gnc("sync", "nowhere", repo=two)).code == 1 and "git ls-remote nowhere" in r.err


def test_a_race_that_is_never_won_ends(pair, monkeypatch):
    monkeypatch.setattr(syncing, "push", lambda *args: (_ for _ in ()).throw(RaceLost("origin has moved on.")))
    with pytest.raises(RepoError, match="has moved on.*3 times.*try again"): go(pair[0], tries=3)


@pytest.mark.slow
def test_a_lock_that_a_killed_fetch_left_is_removed(pair):
    one, two = pair
    agree(one, two)
    kept = find_remote(open_repo(one)).kept
    for name in refs(one, kept): (one / ".git" / f"{name}.lock").touch()
    learn(two, "run_3"); go(two)
    assert go(one).learned == ("run_3",)
