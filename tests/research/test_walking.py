"""A walk through a repository leaves it as it was, whatever kind of repository it is."""
import hashlib

import pytest
from git_notes_consolidation.config import load_settings
from git_notes_consolidation.models import SAMPLE_NOW
from git_notes_consolidation.notes import RepoError, open_repo, read_memories
from git_notes_consolidation.service import open_service, run, undo
from git_notes_consolidation.walking import differences, left_behind, moves, paid, scratch, seen, stored
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
    first = seen(s, ["Which queue?"])
    result = run(s)
    assert result.changed and sum(moves(result).values()) == len(result.tier_transitions) and paid(repo, s.settings, SAMPLE_NOW)["SessionStart block"] > 0
    undo(s, result.run_id)
    assert differences(first, seen(s, ["Which queue?"])) == []
    assert everything(source) == before and refs(repo.path, "refs/notes/mem/") == refs(source, "refs/notes/")
    assert git(repo.path, "ls-files") == ("src/a.py" if kind in ("commits", "below") else "") and not (repo.path / "src").exists()


def test_no_repository_is_said_so(tmp_path):
    with pytest.raises(RepoError, match="not a git repository"): scratch(tmp_path / "walk", tmp_path)


def test_what_is_read_tells_any_change(tmp_path):
    repo = scratch(tmp_path / "made", memories=story())
    s = open_service(repo.path, load_settings({"max_change": 1.0}, env={}), clock=lambda: SAMPLE_NOW)
    first, held = seen(s, ["Which queue?"]), stored(repo)
    run(s)
    assert set(differences(first, seen(s, ["Which queue?"]))) >= {"counts", "tiers", "edges", "summaries", "context"}
    assert stored(repo)["records"] > held["records"]
    add_memories(repo.path, [m for m in story()[:1]])
    assert "plugin's notes" in differences(first, seen(s))


def test_what_is_left_behind_is_counted(tmp_path):
    repo = scratch(tmp_path / "made", memories=story())
    left = left_behind(read_memories(open_repo(repo.path)))
    said = [(m.summary, m.content) for m in story()]
    days = (story()[-1].timestamp.date() - story()[0].timestamp.date()).days + 1
    assert (left.memories, left.texts, left.most, left.days) == (len(said), len(set(said)), 4, days)
