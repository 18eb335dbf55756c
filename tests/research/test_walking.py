"""A walk through a repository leaves it as it was, whatever kind of repository it is."""
import hashlib

import pytest
from git_notes_consolidation.consolidation.service import run
from git_notes_consolidation.consolidation.stores import open_service
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.research.lab import scratch
from git_notes_consolidation.store.git import RepoError
from helpers import add_memories, git, refs, story


def everything(home): return {str(p.relative_to(home)): hashlib.sha1(p.read_bytes()).hexdigest() for p in sorted(home.rglob("*")) if p.is_file()}


def made(home, *init):
    home.mkdir()
    git(home, "init", "-q", "--template=", "-b", "main", *init)
    git(home, "config", "user.name", "Tester"); git(home, "config", "user.email", "tester@example.org")
    add_memories(home, story())
    return home


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", ["commits", "below", "empty", "bare"])
def test_the_source_is_only_read(tmp_path, kind):
    source = made(tmp_path / "mine", *(["--bare"] if kind == "bare" else []))
    if kind in ("commits", "below"):
        (source / "src").mkdir(); (source / "src" / "a.py").write_text("x = 1\n")
        git(source, "add", "."); git(source, "commit", "-q", "-m", "First")
    before = everything(source)
    (tmp_path / "walk").mkdir()
    repo = scratch(tmp_path / "walk" / "mine", source / "src" if kind == "below" else source)
    assert run(open_service(repo.path, load_settings({"max_change": 1.0}, env={}), clock=lambda: SAMPLE_NOW)).changed
    assert everything(source) == before and refs(repo.path, "refs/notes/mem/") == refs(source, "refs/notes/")
    assert git(repo.path, "ls-files") == ("src/a.py" if kind in ("commits", "below") else "") and not (repo.path / "src").exists()


def test_no_repository_is_said_so(tmp_path):
    with pytest.raises(RepoError, match="not a git repository"): scratch(tmp_path / "walk", tmp_path)
