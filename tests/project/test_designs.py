"""The designs' own tests, under their names, as far as this project is built. D1 to D3 are the three documents of git-notes-memory's consolidation.

Each says where it stands in them. Where one is adapted, it says why: the designs contradict themselves in places, and this project does what
its notebooks explain. Tests of what is not built yet are not here.
"""
import asyncio
import git_notes_consolidation as gnc
import json
import math
import numpy as np
import pytest
import re
import yaml
from calls import new_repo, run, serve, state_of
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from helpers import NOTES, add_memories, git, refs, story
from git_notes_consolidation.consolidation.stores import EdgeStore, MetadataStore, RunLogStore, SummaryStore
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import (
    CaptureConfidence, ConsolidationPhase, ConsolidationResult, EdgeType, MemoryEdge, MemoryMetadata, MemorySummary, MemoryTier, RetentionScore,
    SummaryDecision, SupersededFact, TierTransition)
from git_notes_consolidation.core.settings import NAMESPACE_IMPORTANCE, RetentionConfig, SubconsciousnessConfig
from git_notes_consolidation.retention.score import compute_retention_score
from git_notes_consolidation.store.audit import audit as gnc_audit
from git_notes_consolidation.store.events import REFS, read_events
from git_notes_consolidation.store.git import MEM, note_paths, open_repo
from git_notes_consolidation.store.reader import read_memories


NOW = SAMPLE_NOW
DAY = timedelta(days=1)


# D1 §2 "New Models": names, fields and their order


FIELDS = {
    "RetentionScore": "overall recency activation importance relevance",
    "MemoryMetadata": "memory_id tier activation_count last_accessed retention superseded_by consolidated_into created_at updated_at",
    "SummaryDecision": "decision rationale outcome confidence",
    "SupersededFact": "original_fact superseded_by source_memory_id",
    "MemorySummary": "id namespace created_at temporal_range summary key_facts decisions superseded_facts source_memory_ids consolidation_run_id confidence "
                     "tier activation_count",
    "MemoryEdge": "source_id target_id edge_type weight reason created_at consolidation_run_id",
    "TierTransition": "memory_id from_tier to_tier reason retention_score",
    "ConsolidationResult": "run_id started_at completed_at phase memories_processed clusters_found summaries_created supersessions_detected tier_transitions "
                           "errors",
}


@pytest.mark.parametrize("name", list(FIELDS))
def test_fields_in_the_designs_order(name):
    "So that what is built by position there is the same here; what we add comes after, and has a default."
    mine, theirs = [f.name for f in fields(getattr(gnc, name))], FIELDS[name].split()
    assert mine[:len(theirs)] == theirs


def test_retention_score_range_check():
    for name in ("overall", "recency", "activation", "importance"):
        for bad in (-0.01, 1.01, math.nan):
            with pytest.raises(ValueError, match=f"{name} must be between 0.0 and 1.0"): RetentionScore(**{"overall": 0.5} | {name: bad})
    assert RetentionScore(0.0) and RetentionScore(1.0)


# D1 §2: to_dict


def summary(**kw):
    start, end = datetime(2025, 1, 10, tzinfo=UTC), datetime(2025, 1, 17, tzinfo=UTC)
    given_ = {"id": "sum_x", "namespace": "decisions", "created_at": end, "temporal_range": (start, end), "summary": "We use PostgreSQL.",
              "key_facts": ("It is 16.",), "decisions": (SummaryDecision("Use PostgreSQL", "JSONB", None, "high"),),
              "superseded_facts": (SupersededFact("SQLite", "PostgreSQL", "mem_a"),),
              "source_memory_ids": ("mem_a", "mem_b"), "consolidation_run_id": "run_x", "confidence": CaptureConfidence(0.8, coherence=0.9)}
    return MemorySummary(**given_ | kw)


def test_memory_summary_to_dict():
    "As it is printed in the design; ours has more (title, coverage, quotes), and comes back."
    d = json.loads(json.dumps(summary().to_dict()))
    assert {"id": "sum_x", "temporal_range": {"start": "2025-01-10T00:00:00+00:00", "end": "2025-01-17T00:00:00+00:00"}, "key_facts": ["It is 16."],
            "decisions": [{"decision": "Use PostgreSQL", "rationale": "JSONB", "outcome": None, "confidence": "high"}], "tier": "warm",
            "superseded_facts": [{"original_fact": "SQLite", "superseded_by": "PostgreSQL", "source_memory_id": "mem_a"}],
            "confidence": {"overall": 0.8, "relevance": 0.0, "actionability": 0.0, "novelty": 0.0, "specificity": 0.0, "coherence": 0.9}}.items() <= d.items()
    assert set(FIELDS["MemorySummary"].split()) <= set(d) and MemorySummary.from_dict(d) == summary()


def result(**kw): return ConsolidationResult(**{"run_id": "run_x", "started_at": NOW, "completed_at": NOW + DAY, "phase": ConsolidationPhase.COMPLETED} | kw)


def test_consolidation_result_success():
    assert result().success and not result(errors=("one",)).success and not result(phase=ConsolidationPhase.TIER).success


def test_consolidation_result_to_dict():
    made = result(memories_processed=3, errors=("bad",), tier_transitions=(TierTransition("m", MemoryTier.HOT, MemoryTier.COLD, "old", 0.3),))
    said = {"run_id": "run_x", "started_at": NOW.isoformat(), "phase": "completed", "memories_processed": 3, "errors": ["bad"],
            "tier_transitions": [{"memory_id": "m", "from_tier": "hot", "to_tier": "cold", "reason": "old", "retention_score": 0.3}]}
    assert said.items() <= json.loads(json.dumps(made.to_dict())).items() and result(completed_at=None).to_dict()["completed_at"] is None


# D1 §14.1 and D2 "Unit Tests": retention score calculation (boundary conditions, edge cases)


def by_design(memory, metadata, config, now):
    "D1 §5, copied."
    age_days = (now - memory.timestamp).total_seconds() / 86400
    access_age = (now - metadata.last_accessed).total_seconds() / 86400 if metadata.last_accessed else age_days
    recency = math.exp(-min(age_days, access_age) / config.half_life_days * math.log(2))
    activation = min(1.0, math.log1p(metadata.activation_count) / math.log1p(20))
    importance = NAMESPACE_IMPORTANCE.get(memory.namespace, 0.5)
    overall = config.recency_weight * recency + config.activation_weight * activation + config.importance_weight * importance
    if metadata.superseded_by: overall *= 0.2
    return min(1.0, max(0.0, overall)), recency, activation, importance


@pytest.mark.parametrize("days, count, accessed, by", [(0, 0, None, None), (30, 0, None, None), (30, 20, None, None), (300, 3, 30, None), (90, 5, 1, "m"),
                                                       (1e4, 10**6, None, None)])
def test_retention_score_calculation(days, count, accessed, by):
    "To the letter under preset gnm. Adapted: the default's importance fades (design-defects A2), so it is never above the design's."
    for ns in (*NAMESPACE_IMPORTANCE, "elsewhere"):
        m = mem("x", days_ago=days, namespace=ns)
        d = MemoryMetadata(m.id, activation_count=count, last_accessed=NOW - accessed * DAY if accessed else None, superseded_by=by)
        s = compute_retention_score(m, d, RetentionConfig.preset("gnm"), NOW)
        assert (s.overall, s.recency, s.activation, s.importance) == pytest.approx(by_design(m, d, RetentionConfig(), NOW), abs=1e-9)
        assert compute_retention_score(m, d, RetentionConfig(), NOW).overall <= s.overall


# D1 §14.1 "Tier assignment logic", D2 "threshold boundaries"


@pytest.mark.slow
def test_a_memory_left_alone_goes_down_one_tier_at_a_time(tmp_path):
    "The same, as runs write it down: hot, warm, cold, archived, with the reason of each move."
    home = new_repo(tmp_path, [mem("Left alone", namespace="decisions")])
    for days in range(0, 300, 10): run(home, NOW + days * DAY)
    moves = sorted((r for _, _, r in read_events(open_repo(home)).records if r["kind"] == "tier"), key=lambda r: r["seq"])
    assert [(r["from"], r["tier"]) for r in moves] == [("hot", "warm"), ("warm", "cold"), ("cold", "archived")]
    assert all("threshold" in r["reason"] for r in moves)


# D1 §14.1, D2 "Unit Tests": clustering algorithm (mock embeddings)


def mock(*directions):
    "Unit vectors in few directions, a little apart."
    out = np.zeros((len(directions), 8))
    for i, d in enumerate(directions): out[i, d] = 1.0; out[i, 7] = 0.05 * (i % 3)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def clustered(directions, **kw):
    memories = [mem(f"memory {i}", days_ago=400 * (i % 2)) for i in range(len(directions))]
    config = SubconsciousnessConfig(**{"consolidation_threshold": 0.85} | kw)
    return memories, gnc.cluster_memories(memories, dict(zip((m.id for m in memories), mock(*directions))), config)


def test_clustering_filters_by_size():
    "Adapted: a cluster that is too large is split and not dropped (design-defects B20)."
    assert clustered([0, 0, 1, 1])[1] == [] and len(clustered([0, 0, 1, 1], min_cluster_size=2)[1]) == 2
    memories, found = clustered([0] * 9, max_cluster_size=4)
    assert all(3 <= len(c.memory_ids) <= 4 or len(c.memory_ids) >= 2 for c in found) and {i for c in found for i in c.memory_ids} == {m.id for m in memories}


# D1 §14.2, D2 "Integration Tests"


@pytest.mark.slow
def test_full_consolidation_pipeline(tmp_path):
    "End to end through the designs' methods (D1 §4)."
    home = new_repo(tmp_path, story())
    service = gnc.get_consolidation_service(home)
    assert isinstance(service, gnc.ConsolidationService)
    result = asyncio.run(service.run_consolidation(full=True))
    assert result.success and result.phase == ConsolidationPhase.COMPLETED and result.memories_processed == len(story())
    assert result.supersessions_detected == 3 and result.summaries_created >= 2 and result.tier_transitions and result.run_id in state_of(home).runs
    status = service.get_status()
    assert status["summaries"] == result.summaries_created and status["edges"]["supersedes"] == 3 and status["last_run"]["run"] == result.run_id
    assert not asyncio.run(service.incremental_consolidation()).supersessions_detected
    gnc.reset_consolidation_service()


def test_dry_run_computes_and_persists_nothing(tmp_path):
    home = new_repo(tmp_path, story())
    before = refs(home)
    result = asyncio.run(serve(home).run_consolidation(dry_run=True))
    assert result.supersessions_detected == 3 and refs(home) == before


@pytest.mark.slow
def test_git_notes_read_write_for_new_refs(tmp_path):
    "D1 §8: four refs, YAML, and the plugin's own as they were. Adapted: a ref cannot end in a slash, so each is a /v1 below it (design-defects C37)."
    home = new_repo(tmp_path, story())
    before = refs(home, MEM)
    run(home)
    assert set(refs(home, NOTES)) - set(before) == set(REFS.values()) and refs(home, MEM) == before
    for ref in REFS.values():
        rows = note_paths(open_repo(home), ref)
        notes = [yaml.safe_load(git(home, "cat-file", "blob", blob)) for _, _, blob in rows]
        assert notes and all(isinstance(n, list) and all({"id", "kind", "seq"} <= r.keys() for r in n) for n in notes)
        assert git(home, "notes", f"--ref={ref}", "list").count("\n") + 1 == len(rows)  # git's own command sees them all


# D1 §11 "Feature Gating", D3: what holds without configuration


def test_namespace_importance():
    "D1 §5."
    assert NAMESPACE_IMPORTANCE == {"decisions": 1.0, "learnings": 0.9, "patterns": 0.85, "retrospective": 0.8, "inception": 0.7, "blockers": 0.7,
                                    "research": 0.6, "elicitation": 0.6, "progress": 0.5, "reviews": 0.5}


def test_related_memories_of_different_dates_consolidate_together(tmp_path):
    "D1 §6 and D3: time is no factor."
    topic = [mem(f"Retry limit of the {w} worker is {n}", f"The {w} worker gives up after {n} attempts and logs the job id.", days_ago=d, namespace="learnings")
             for w, n, d in (("mail", 3, 2), ("report", 5, 200), ("billing", 8, 700))]
    home = new_repo(tmp_path, topic)
    run(home)
    (x,) = state_of(home).summaries.values()
    assert set(x.source_memory_ids) == {m.id for m in read_memories(open_repo(home)).memories} and (x.temporal_range[1] - x.temporal_range[0]).days == 698


def test_non_deletion(tmp_path):
    "D1, D3: nothing is ever deleted."
    home = new_repo(tmp_path, story())
    before = read_memories(open_repo(home)).memories
    run(home, NOW + 3000 * DAY)
    add_memories(home, [mem("One more")])
    run(home, NOW + 6000 * DAY)
    after = read_memories(open_repo(home)).memories
    assert set(before) < set(after) and set(MetadataStore(open_repo(home)).all()) == {m.id for m in after}


# D1 §10.2 and §14 "Idempotency tests for SessionStart". `context_block` is the whole context in the one test and the block in the other: here it is the
# whole, and `summary_block` the block. The design's opening tag without attributes never occurs; it is looked for by its name.


def injecting(home): return gnc.SessionStartSummaryInjector(SummaryStore(open_repo(home)), None, gnc.SummaryInjectionConfig())
def blocks_in(text): return len(re.findall(r"<memory_consolidated_summaries[\s>]", text))


@pytest.fixture(scope="module")
def summed(tmp_path_factory):
    home = new_repo(tmp_path_factory.mktemp("summed") / "repo", story())
    run(home)
    return home


def test_summary_injection_replaces_not_accumulates(summed):
    injector, session = injecting(summed), gnc.SessionContext()
    result1 = injector.inject_summaries(None, session)
    result2 = injector.inject_summaries(result1.context_block, session)
    assert blocks_in(result2.context_block) == 1 and result2.replaced_existing is True
    assert blocks_in(injector.inject_summaries(result2.context_block, session).context_block) == 1


# The plugin's own values, and the designs' constructors


@dataclass(frozen=True)
class TheirMemory:
    "The released plugin's `Memory`, field for field: it knows no importance and no valid_from."
    id: str
    commit_sha: str
    namespace: str
    summary: str
    content: str
    timestamp: datetime
    repo_path: str | None = None
    spec: str | None = None
    phase: str | None = None
    tags: tuple[str, ...] = ()
    status: str = "active"
    relates_to: tuple[str, ...] = ()


def theirs(i, summary, content="", days_ago=0):
    return TheirMemory(f"decisions:1a2b3c4:{i}", "1a2b3c4" * 5 + "abcde", "decisions", summary, content, NOW - days_ago * DAY)


def test_the_plugins_memories_are_taken_everywhere():
    old, new = theirs(0, "Serve the API with Flask", days_ago=20), theirs(1, "Use FastAPI", "This supersedes \"Serve the API with Flask\".")
    assert gnc.compute_retention_score(old, MemoryMetadata(old.id), RetentionConfig(), NOW) == compute_retention_score(
        mem(old.summary, days_ago=20), MemoryMetadata("x"), RetentionConfig(), NOW)
    assert (said := gnc.judge_pair(old, new)).relation == "supersede" and said.span == "This supersedes \"Serve the API with Flask\""
    alike = [theirs(n, "x") for n in range(3)]
    clusters = gnc.cluster_memories(alike, {m.id: np.ones(4) for m in alike}, SubconsciousnessConfig())

    async def design(): return await gnc.cluster_memories(alike, {m.id: np.ones(4) for m in alike}, SubconsciousnessConfig())

    assert [c.memory_ids for c in clusters] == [tuple(m.id for m in alike)] and asyncio.run(design()) == clusters


def test_stores_take_the_plugins_ids_and_give_back_what_they_were_given_or_refuse_it(tmp_path):
    home = new_repo(tmp_path, story())
    result = run(home)
    repo, memories = open_repo(home), read_memories(open_repo(home)).memories
    known, edges, summaries, runs = MetadataStore(repo), EdgeStore(repo), SummaryStore(repo), RunLogStore(repo)
    one = memories[0]
    for alias in one.places[0].aliases():
        assert known.get(alias).memory_id == one.id and [*known.get_batch([alias, "nobody:1:2"])] == [alias]
    assert all(isinstance(store, kind) for store, kind in ((known, MetadataStore), (edges, EdgeStore), (summaries, SummaryStore), (runs, RunLogStore)))
    for lie in ({"activation_count": 42}, {"superseded_by": memories[1].id}, {"consolidated_into": "sum_x"}):
        before = refs(home)
        with pytest.raises(ValueError, match=f"{[*lie][0]} .* cannot be put: "): known.put(MemoryMetadata(one.id, **lie), NOW)
        assert refs(home) == before
    known.increment_activation(one.id, NOW)
    assert known.get(one.id).activation_count == 1
    known.put(MemoryMetadata(one.id, MemoryTier.COLD), NOW)
    assert one.id in {x.memory_id for x in known.get_by_tier(MemoryTier.COLD)} and known.get("nobody") is None
    summaries.put(summary(source_memory_ids=(one.id, memories[1].id)), NOW)
    assert summaries.get("sum_x").summary == "We use PostgreSQL."
    assert known.get(one.id).tier == MemoryTier.COLD and one.id in {x.memory_id for x in known.search(one.summary.split()[-1])}
    edge = MemoryEdge(memories[0].id, memories[1].id, EdgeType.REFERENCES, 0.5, "it says so", NOW)
    edges.put(edge, NOW); edges.update(MemoryEdge(edge.source_id, edge.target_id, EdgeType.REFERENCES, 0.9, "it says so", NOW), NOW)
    assert edges.get(edge.id).weight == 0.9
    ended = edges.delete(edge.id, NOW)
    assert edges.get(edge.id) is None and ended in runs.all()
    gone = next(iter(summaries.all()))
    assert summaries.get(gone) in summaries.search(summaries.get(gone).title)
    summaries.delete(gone, NOW)
    assert summaries.get(gone) is None
    for store, i in ((known, one.id), (runs, result.run_id)):
        with pytest.raises(NotImplementedError, match="gnc undo"): store.delete(i)
    told = runs.get(result.run_id)
    assert isinstance(told, ConsolidationResult)
    assert (told.memories_processed, told.supersessions_detected, told.summaries_created) == (
        result.memories_processed, result.supersessions_detected, result.summaries_created)
    assert {(t.memory_id, t.to_tier) for t in told.tier_transitions} == {(t.memory_id, t.to_tier) for t in result.tier_transitions}
    mine = ConsolidationResult("", NOW, NOW, ConsolidationPhase.COMPLETED, 3, 2, 1, errors=("boom",))
    back = runs.get(runs.put(mine, NOW))
    assert back.to_dict() | {"run_id": ""} == mine.to_dict()
    assert gnc_audit(home).ok


def test_the_service_is_made_as_the_designs_make_it(tmp_path):
    home = new_repo(tmp_path / "repo", story())
    asked = []

    class LLMClient:
        async def complete(self, prompt, system, json_mode):
            asked.append((prompt, system, json_mode))
            return "no JSON at all"

    recall = gnc.open_recall(home, clock=lambda: NOW)
    s = gnc.ConsolidationService(llm_client=LLMClient(), recall_service=recall, sync_service=None, config=SubconsciousnessConfig(min_cluster_size=2))
    assert s.repo.common_dir == open_repo(home).common_dir and s.settings.config.min_cluster_size == 2 and s.embedder.name.startswith("lexical")
    result = asyncio.run(s.run_consolidation(dry_run=True, now=NOW))
    assert result.memories_processed == 36 and asked and all(json_mode and prompt and system for prompt, system, json_mode in asked)
    assert result.supersessions_detected == 3  # What it says is no answer, and hurts nothing
    (home / "gnc.toml").write_text("hot_threshold = 0.9\n")
    for reset in (gnc.reset_consolidation_service, gnc.reset_recall_service, gnc.reset_reasoned_recall_service): reset()
    made = gnc.get_consolidation_service(home), gnc.get_recall_service(home), gnc.get_reasoned_recall_service(home).recall_service
    assert [x.settings.config.hot_threshold for x in made] == [0.9] * 3
    assert gnc.get_reasoned_recall_service(home) is gnc.get_reasoned_recall_service(home)
