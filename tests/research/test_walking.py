"""A walk through a repository leaves it as it was, whatever kind of repository it is."""
import hashlib

import pytest
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.git import RepoError, open_repo
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.consolidation.stores import open_service
from git_notes_consolidation.consolidation.service import run
from git_notes_consolidation.consolidation.undo import undo
from git_notes_consolidation.research.before_after import (
    differences, capture_report, moves, session_costs, scratch, snapshot, storage_counts)
from helpers import add_memories, git, refs, story


def everything(home): return {str(p.relative_to(home)): hashlib.sha1(p.read_bytes()).hexdigest() for p in sorted(home.rglob("*")) if p.is_file()}


def made(home, *init):
    home.mkdir()
    git(home, "init", "-q", "--template=", "-b", "main", *init)
    git(home, "config", "user.name", "Tester"); git(home, "config", "user.email", "tester@example.org")
    add_memories(home, story())
    return home


def with_commits(home):
    (home / "src").mkdir(); (home / "src" / "a.py").write_text("x = 1\n")
    git(home, "add", "."); git(home, "commit", "-q", "-m", "First")
    return home


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", ["commits", "below", "empty", "bare"])
def test_the_source_is_only_read(tmp_path, kind):
    source = made(tmp_path / "mine", *(["--bare"] if kind == "bare" else []))
    if kind in ("commits", "below"): with_commits(source)
    before = everything(source)
    (tmp_path / "walk").mkdir()
    repo = scratch(tmp_path / "walk" / "mine", source / "src" if kind == "below" else source)
    s = open_service(repo.path, load_settings({"max_change": 1.0}, env={}), clock=lambda: SAMPLE_NOW)
    first = snapshot(s, ["Which queue?"])
    result = run(s)
    assert (result.changed and sum(moves(result).values()) == len(result.tier_transitions)
            and session_costs(repo, s.settings, SAMPLE_NOW)["SessionStart block"] > 0)
    undo(s, result.run_id)
    assert differences(first, snapshot(s, ["Which queue?"])) == []
    assert everything(source) == before and refs(repo.path, "refs/notes/mem/") == refs(source, "refs/notes/")
    assert git(repo.path, "ls-files") == ("src/a.py" if kind in ("commits", "below") else "") and not (repo.path / "src").exists()


def test_no_repository_is_said_so(tmp_path):
    with pytest.raises(RepoError, match="not a git repository"): scratch(tmp_path / "walk", tmp_path)


@pytest.mark.slow
def test_what_is_read_tells_any_change(tmp_path):
    repo = scratch(tmp_path / "made", memories=story())
    s = open_service(repo.path, load_settings({"max_change": 1.0}, env={}), clock=lambda: SAMPLE_NOW)
    first, held = snapshot(s, ["Which queue?"]), storage_counts(repo)
    run(s)
    assert set(differences(first, snapshot(s, ["Which queue?"]))) >= {"counts", "tiers", "edges", "summaries", "context"}
    assert storage_counts(repo)["records"] > held["records"]
    add_memories(repo.path, [m for m in story()[:1]])
    assert "plugin's notes" in differences(first, snapshot(s))


def test_what_is_left_behind_is_counted(tmp_path):
    repo = scratch(tmp_path / "made", memories=story())
    left = capture_report(read_memories(open_repo(repo.path)))
    said = [(m.summary, m.content) for m in story()]
    days = (story()[-1].timestamp.date() - story()[0].timestamp.date()).days + 1
    assert (left.memories, left.texts, left.most, left.days) == (len(said), len(set(said)), 4, days)
