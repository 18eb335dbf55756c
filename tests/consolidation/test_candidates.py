"""Candidates: who is put before the judge, with any embedder, and whichever way the memories came."""
import json
import numpy as np
import pytest
import random
import shutil
from calls import holds, new_repo, serve, state_of
from contextlib import closing
from dataclasses import dataclass, replace
from helpers import ROOT, add_memories
from test_service import tangle
from git_notes_consolidation.consolidation import service
from git_notes_consolidation.consolidation.relate import candidates
from git_notes_consolidation.consolidation.scan import Scanned, living_memories
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.similarity.lexical import LexicalEmbedder, round_vectors
from git_notes_consolidation.store import cache as index
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.state import State
from git_notes_consolidation.supersession.assertions import explicit_claims




@pytest.fixture
def home(story_before, tmp_path): return shutil.copytree(story_before, tmp_path / "repo")


@dataclass(frozen=True)
class Blurred:
    "Some other embedder: the lexical rows in 48 dimensions, so that strangers come near and neighbours part."
    name: str = "blurred/1"
    dimensions: int = 48
    cluster_threshold: float = 0.5
    floor: float = 0.3
    near_identical: float = 0.9
    same_title: float = 0.7

    def embed(self, texts): return round_vectors(LexicalEmbedder().embed(texts) @ np.random.default_rng(0).normal(size=(1024, 48)))


def scanned(memories, embedder=LexicalEmbedder(), **settings):
    "A scan without a repository, as the service makes it."
    ms = living_memories(memories)
    texts = [m.text for m in ms]
    lexical = None if embedder.name == LexicalEmbedder.name else LexicalEmbedder().embed(texts)
    return Scanned(ms, embedder.embed(texts), embedder, State(), SubconsciousnessConfig(**settings), SAMPLE_NOW, lexical=lexical)


def fixture(split):
    "The rows of one half of the labelled pairs."
    lines = (ROOT / "git_notes_consolidation" / "data" / "supersession.jsonl").read_text(encoding="utf-8").splitlines()
    return [r for r in map(json.loads, lines) if r["split"] == split]


def documents(rows):
    "Their memories, each once."
    docs = {d["id"]: d for r in rows for d in (r["older"], r["newer"])}
    return [mem(d["title"], d["text"], namespace=d["namespace"], timestamp=d["date"], id=i) for i, d in docs.items()]


def found(s): return {(a, b) for a, b, _ in candidates(s, s.memories)}


def test_another_embedder_is_asked_beside_the_words():
    both = scanned(sample_memories(), Blurred())
    pairs, only = candidates(both, both.memories), found(replace(both, lexical=None))
    cosines = both.vectors @ both.vectors.T
    assert all(x is None or x == cosines[a, b] for a, b, x in pairs)  # the embedder's, also where the words found the pair
    assert {(a, b) for a, b, x in pairs if x is not None and x < Blurred.floor} - only


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("embedder", [LexicalEmbedder(), Blurred()], ids=lambda e: e.name)
@pytest.mark.parametrize("k", [1, 60, 200])
def test_the_candidates_of_a_memory_depend_on_what_is_older(embedder, k):
    whole, part = scanned(sample_memories(), embedder), scanned(living_memories(sample_memories())[:k], embedder)
    assert [c for c in candidates(whole, whole.memories) if c[0] < k] == candidates(part, part.memories)


@pytest.mark.slow
def test_whatever_the_judge_can_read_as_a_name_is_a_candidate():
    ms = living_memories([*documents(fixture("dev")), *sample_memories()])
    read = {(a, b) for a, m in enumerate(ms) for b in range(a) if explicit_claims(ms[b], m)}
    assert len(read) > 40 and read <= found(scanned(ms))


@pytest.mark.slow
def test_nine_in_ten_true_pairs_of_the_fixture_are_candidates():
    for split in ("dev", "locked"):
        s, rows = scanned(documents(fixture(split))), fixture(split)
        at, there = s.row(), found(s)
        true = [(at[r["newer"]["id"]], at[r["older"]["id"]]) for r in rows if r["label"] in ("full", "partial")]
        missed = sum(p not in there for p in true)  # a number only: nobody looks at the locked half
        assert len(true) > 50 and missed <= 0.1 * len(true)


@pytest.mark.slow
def test_a_run_with_another_embedder_in_batches_comes_to_what_one_run_does(tmp_path):
    memories = tangle()
    one, ten = new_repo(tmp_path / "one", memories), new_repo(tmp_path / "ten")
    def go(home): return service.run(replace(serve(home, max_change=1.0), embedder=Blurred()), SAMPLE_NOW)
    go(one)
    random.Random(5).shuffle(memories)
    for k in range(4): add_memories(ten, memories[k::4]); go(ten)
    assert holds(state_of(ten))[:3] == holds(state_of(one))[:3] and not go(ten).changed
    with closing(index.open_index(open_repo(one))) as conn:
        assert {e for e, in conn.execute("SELECT DISTINCT embedder FROM vectors")} == {"blurred/1", LexicalEmbedder.name}
