"""A team whose repositories are of another kind, or move at the same moment: all commands, one loss, one force, and the same in every clone."""
import subprocess

import pytest
from calls import COMMAND, gnc, new_repo, state_of
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
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
