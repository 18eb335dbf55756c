"""Labelled questions about the real corpus: found or not, before a run and after it."""
from datetime import UTC, datetime
from math import inf

import pytest
from git_notes_consolidation.consolidation import service, stores as consolidation_stores
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.recall.service import open_recall
from git_notes_consolidation.evaluation.scoring import answer_rank, evaluate_recall, load_questions
from helpers import FIXTURES, long

pytestmark = pytest.mark.slow

FILE = FIXTURES / "corpus_questions.jsonl"
NOW, SETTINGS = datetime(2025, 12, 28, tzinfo=UTC), load_settings({"max_change": 1.0}, env={})


@pytest.fixture(scope="module")
def questions(): return load_questions(FILE)


def asking(home, mode="exhaustive"):
    s = open_recall(home, SETTINGS, embedder=LexicalEmbedder(), clock=lambda: NOW)
    return lambda q: s.search(q.question, namespace=q.namespace, limit=10, mode=mode, count=False)


def test_the_questions_are_enough_and_their_halves_share_nothing(questions):
    halves = {h: [q for q in questions if q.split == h] for h in ("dev", "locked")}
    assert len(questions) >= 60 and min(map(len, halves.values())) >= 0.4 * len(questions)
    assert not frozenset().union(*(q.keys for q in halves["dev"])) & frozenset().union(*(q.keys for q in halves["locked"]))


@long
def test_what_is_asked_is_found(corpus_repo, questions):
    found = evaluate_recall(questions, asking(corpus_repo))
    assert found.recall.value > 0.6 and found.mrr > 0.5 and found.repeats.value < 0.01


def test_no_answer_is_lost_by_consolidating(corpus_repo, questions):
    def ranks(mode): return {q.id: answer_rank(q, ask(q)) for ask in [asking(corpus_repo, mode)] for q in questions}
    before = ranks("exhaustive")
    service.run(consolidation_stores.open_service(corpus_repo, SETTINGS), NOW)
    after, near = ranks("exhaustive"), ranks("standard")
    # One answer stood there before only as an earlier word of a memory on something else
    assert len([i for i, rank in before.items() if rank < inf == after[i]]) <= 1
    lost = [i for i, rank in before.items() if rank < inf == near[i]]  # What has gone cold is looked for deeper
    assert len(lost) <= 0.05 * sum(rank < inf for rank in before.values())
