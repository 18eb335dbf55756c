"""A team whose repositories are of another kind, or move at the same moment: all commands, one loss, one force, and the same in every clone."""
import subprocess

import pytest
from calls import COMMAND, gnc, new_repo, state_of
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.store.events import REFS
from git_notes_consolidation.store.git import MEM, open_repo
from git_notes_consolidation.store.reader import read_memories, write_memories
from helpers import git, refs

KINDS = {"sha256": ["--object-format=sha256"], "reftable": ["--ref-format=reftable"]}


def team(place, kind):
    "A bare remote, and two clones of it that have nothing in common yet."
    if kind == "reftable" and "ref-format" not in git(place, "init", "-h", check=False):
        pytest.skip(f"{git(place, 'version')} knows no reftable: 2.45 is the first that does")
    new_repo(place / "team.git", (), "--bare", *KINDS.get(kind, ()))
    for name in ("one", "two"):
        home = new_repo(place / name, (), *KINDS.get(kind, ()))
        for k, v in (("user.name", name), ("user.email", f"{name}@example.org")): git(home, "config", k, v)
        git(home, "remote", "add", "origin", place / "team.git")
    return place / "one", place / "two"


def done(home, *words):
    said = gnc(*words, repo=home)
    assert said.code == 0, (words, said)
    return said.out


def summaries(home): return {m.summary for m in read_memories(open_repo(home)).memories}


def alike(*homes):
    "After two rounds all hold the same, and nothing is wrong anywhere."
    for home in homes * 2: done(home, "sync")
    for home in homes: assert state_of(home) == state_of(homes[0]) and summaries(home) == summaries(homes[0]) and done(home, "audit") and done(home, "doctor")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_command_in_a_repository_of_another_kind(tmp_path, kind):
    one, two = team(tmp_path, kind)
    write_memories(open_repo(one), [mem("The API runs on Flask", days_ago=40), mem("The API runs on FastAPI", "Replaces “The API runs on Flask”.", days_ago=3)])
    done(one, "consolidate")
    for words in (["inject"], ["context"], ["recall", "What does the API run on?"]): assert "runs on FastAPI" in done(one, *words)
    alike(one, two)
    git(two, "commit", "--quiet", "--allow-empty", "--message=two")
    done(two, "remember", "Ports start at 8000.")
    alike(one, two)
    done(one, "undo", next(i for i, r in state_of(one).runs.items() if r["counts"].get("supersessions_detected")), "--yes")
    assert not state_of(one).edges
    done(one, "undo", "last")
    alike(one, two)
    held, all_ = state_of(one), summaries(one)
    git(one, "commit", "--amend", "--quiet", "--allow-empty", "--message=again")
    git(one, "reflog", "expire", "--expire=now", "--all"); git(one, "gc", "--quiet", "--prune=now")
    for ref in (*refs(one, MEM), *REFS.values()): git(one, "notes", f"--ref={ref}", "prune")
    assert summaries(one) < all_ and {gnc(c, repo=one).code for c in ("doctor", "audit")} == {1}
    done(one, "restore", "--lost")
    git(one, "update-ref", "-d", f"{MEM}decisions")
    assert summaries(one) == set() and {gnc(c, repo=one).code for c in ("doctor", "audit")} == {1}
    done(one, "restore", "--lost")
    assert summaries(one) == all_ and state_of(one) == held
    alike(one, two)
    assert git(one, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "reftable"])
def test_two_that_sync_at_the_same_moment_while_one_pushes_an_older_ref_by_force(tmp_path, kind):
    homes = team(tmp_path, kind)
    for home in homes: git(home, "commit", "--quiet", "--allow-empty", "--message=x")
    old = {}
    for n in range(2):
        begun = [subprocess.Popen([*COMMAND, *words], cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for home in homes
                 for words in (["remember", f"Port {8000 + n} belongs to {home.name}."], ["sync"], ["sync"])]
        if old: git(homes[0], "push", "--quiet", "--force", "origin", *(f"{tip}:{ref}" for ref, tip in old.items()))
        for p in begun: assert (said := p.communicate()[0]) is not None and p.returncode == 0, said
        old = old or refs(homes[0], "refs/notes/")
    alike(*homes)
    assert len(summaries(homes[0])) == 4 and not refs(homes[0], "refs/gnc/tmp/")
