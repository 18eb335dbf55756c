"""What was replaced answers nothing: every question of every labelled story, asked with every labelled edge, by every door that answers."""
import pytest
from calls import state_of
from helpers import git

from git_notes_consolidation.apps.mcp.replies import hit
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.evaluation.labelled import fixture
from git_notes_consolidation.evaluation.stories import first_answer, load_stories
from git_notes_consolidation.recall.rank import about_the_past
from git_notes_consolidation.recall.service import open_recall
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.similarity.static import StaticEmbedder
from git_notes_consolidation.store.events import Append, edge_append
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories, write_memories
from git_notes_consolidation.store.writer import append

SETTINGS = load_settings(env={})


def with_edges(story, home):
    "A repository of a story with each replacement that is labelled, as a whole; of two for one memory the later."
    git(home, "init", "--quiet", "--template=", "--initial-branch=main")
    repo = open_repo(home)
    write_memories(repo, [*story.memories.values()])
    key = {(m.summary, m.timestamp): k for k, m in story.memories.items()}
    of = {key[m.summary, m.timestamp]: m.id for m in read_memories(repo).memories}
    pairs = sorted((p for p, r in story.pairs.items() if r == "supersede"), key=lambda p: story.memories[p[1]].timestamp)
    by = {of[older]: of[newer] for older, newer in pairs}
    made = [edge_append("0" * 40, MemoryEdge(b, a, EdgeType.SUPERSEDES, kind="full", created_at=story.now), "run_1", story.now) for a, b in by.items()]
    append(repo, lambda _: [*made, Append("runs", "0" * 40, {"kind": "run", "id": "run_1", "at": story.now.isoformat()})], story.now)
    assert len(state_of(home).edges) == len(by)
    return by


def assert_holds(story, home, embedder):
    by = with_edges(story, home)
    s = open_recall(home, SETTINGS, embedder=embedder, clock=lambda: story.now)
    for q in story.questions:
        if about_the_past(q.text): continue
        found = s.search(q.text, count=False)
        place = {r.id: n for n, r in enumerate(found)}
        for r in found:
            if r.id not in by: continue
            assert r.superseded_by and hit(r, q.text).superseded_by, q.text  # Marked wherever it is shown
            last = r.id
            while last in by: last = by[last]
            assert place.get(last, 99) < place[r.id], (q.text, r.summary)
        assert not found or found[0].id not in by, q.text
        first_answer(s, q.text)


@pytest.mark.parametrize("embedder", [LexicalEmbedder(), StaticEmbedder()], ids=lambda e: e.name)
def test_a_replaced_memory_stands_below_what_replaced_it(embedder, tmp_path):
    for n, story in enumerate(load_stories(fixture("stories"))):
        (home := tmp_path / str(n)).mkdir()
        assert_holds(story, home, embedder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dev", "dev-2"])
def test_so_it_is_in_stories_by_others(shared, name, tmp_path):
    for n, story in enumerate(load_stories(shared / "stories" / f"{name}.jsonl")):
        (home := tmp_path / str(n)).mkdir()
        assert_holds(story, home, StaticEmbedder())
