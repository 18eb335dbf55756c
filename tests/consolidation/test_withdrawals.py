"""A decision that is said again after it was replaced, and a chain of three."""
import shutil

import pytest
from calls import new_repo, run, state_of
from helpers import add_memories
from test_service import edges, memory

from git_notes_consolidation.core.models import EdgeType, MemoryTier
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.consolidation.stores import MetadataStore


@pytest.fixture
def home(story_before, tmp_path): return shutil.copytree(story_before, tmp_path / "repo")


@pytest.mark.slow
def test_a_decision_taken_back_stays_current_and_raises_a_question(tmp_path):
    old = [mem("ADR-001: Serve with Flask", "It is small.", days_ago=d) for d in (300, 10)]
    new = mem("ADR-002: Serve with FastAPI", "Supersedes ADR-001.", days_ago=100)
    home = new_repo(tmp_path, [*old, new])
    result = run(home)
    first, second = (next(m.id for m in read_memories(open_repo(home)).memories if m.timestamp == x.timestamp) for x in old)
    assert edges(home) == {(memory(home, "ADR-002").id, first)} and edges(home, EdgeType.DUPLICATE_OF) == set()
    (review,) = state_of(home).reviews.values()
    assert (review["source"], review["target"], review["type"]) == (second, first, "duplicate_of") and "said again after it was replaced" in review["reason"]
    assert result.review_items == 1 and MetadataStore(open_repo(home)).get(first).tier == MemoryTier.ARCHIVED
    assert MetadataStore(open_repo(home)).get(second).tier != MemoryTier.ARCHIVED and not run(home, full=True).changed


def current(home):
    known = MetadataStore(open_repo(home)).all()
    return {m.summary for m in read_memories(open_repo(home)).memories if not known[m.id].superseded_by}


def test_in_a_chain_of_three_decisions_the_first_stays_outdated(tmp_path):
    text = "Supersedes ADR-002. Flask stays in the tests, as before; orders may be cancelled or taken back."
    third = mem("ADR-003: Serve the API with Litestar", text, days_ago=20)
    home = new_repo(tmp_path, [mem("ADR-001: Serve the API with Flask", "It is small.", days_ago=90),
                               mem("ADR-002: Serve the API with FastAPI", "Supersedes ADR-001.", days_ago=80), third])
    run(home)
    assert current(home) == {third.summary} and not state_of(home).reviews


def test_a_summary_is_issued_anew_when_a_source_is_superseded(tmp_path):
    retries = [mem(f"ADR-{i}: The {w} worker retries {i} times", f"The {w} worker gives up after {i} attempts and logs the job id.", days_ago=40 + i)
               for i, w in ((3, "mail"), (4, "report"), (5, "billing"))]
    home = new_repo(tmp_path, retries)
    run(home)
    (old,) = state_of(home).summaries.values()
    assert old.superseded_facts == ()
    add_memories(home, [mem("ADR-9: Jobs are dropped at once", "Supersedes ADR-3.", days_ago=1)])
    result = run(home)
    (new,) = state_of(home).summaries.values()
    assert (result.summaries_created, result.summaries_retired) == (1, 1) and new.id != old.id and set(new.source_memory_ids) >= set(old.source_memory_ids)
    assert [f.original_fact for f in new.superseded_facts] == ["ADR-3: The mail worker retries 3 times"] and "mail" not in new.summary
    assert {d.consolidated_into for d in MetadataStore(open_repo(home)).all().values()} <= {new.id, None}
