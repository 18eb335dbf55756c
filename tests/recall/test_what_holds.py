"""What was replaced answers nothing: every question of every labelled story, asked with every labelled edge, by every door that answers."""
import pytest
from calls import ask, gnc, new_repo, run, state_of
from helpers import git

from git_notes_consolidation.apps.mcp.tools import hit
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.evaluation.scoring import fixture
from git_notes_consolidation.evaluation.stories import load_stories
from git_notes_consolidation.recall.rank import about_the_past, needs_reasoning
from git_notes_consolidation.recall.reason import ReasonedRecallService
from git_notes_consolidation.recall.service import open_recall
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.similarity.embedders import StaticEmbedder
from git_notes_consolidation.store.events import Append, append, edge_append
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories, write_memories

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
        if about_the_past(q.q): continue
        found = s.search(q.q, count=False)
        place = {r.id: n for n, r in enumerate(found)}
        for r in found:
            if r.id not in by: continue
            assert r.superseded_by and hit(r, q.q).superseded_by, q.q  # Marked wherever it is shown
            last = r.id
            while last in by: last = by[last]
            assert place.get(last, 99) < place[r.id], (q.q, r.summary)
        assert not found or found[0].id not in by, q.q
        if not needs_reasoning(q.q): continue
        said = ReasonedRecallService(s).answer(q.q, count=False)
        assert said.confidence <= 0.2 or said.source_memories[0].id not in by, q.q  # The sentence rests on what holds


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


UPLOADS = ("The upload limit of the intake service is 50 MB", "The intake service writes its uploads to the bucket lark-in",
           "Uploads of the intake service are scanned for viruses by ClamAV before anyone can read them",
           "The upload limit of the intake service is 80 MB now, the scanner was made faster")


@pytest.mark.parametrize(("query", "first"), [("What is the upload limit?", UPLOADS[3]), ("How big may a file be that a customer sends us?", UPLOADS[3]),
                                              ("What was the upload limit at first?", UPLOADS[0])])
def test_a_summary_hides_no_source_that_answers_better(tmp_path, query, first):
    "A summary of four, entitled with one of them, stood for the one that was asked for."
    home = new_repo(tmp_path / "home")
    for key, value in (("user.name", "Tester"), ("user.email", "tester@example.org")): git(home, "config", key, value)
    git(home, "commit", "--quiet", "--allow-empty", "--message=First")
    for n, fact in enumerate(UPLOADS): gnc("remember", fact, repo=home, now=SAMPLE_NOW.replace(hour=13 + n))
    run(home, SAMPLE_NOW.replace(hour=18))
    for edge in state_of(home).reviews: assert gnc("review", "accept", edge, repo=home, now=SAMPLE_NOW.replace(hour=19)).code == 0
    assert state_of(home).summaries
    found = ask(home, embedder=StaticEmbedder(), clock=lambda: SAMPLE_NOW.replace(hour=20)).search(query, count=False)
    assert found[0].summary == first
