"""Consolidation of agent memories kept in git notes.

Importing this package costs next to nothing: every public name is looked up in its module when it is first used.
"""
from __future__ import annotations

__version__ = "0.0.1"


TYPE_CHECKING = False
if TYPE_CHECKING: from collections.abc import Callable


def lazy_names(
    package: str,  # Its dotted name
    modules: dict[str, str],  # Module to the names that it has, divided by spaces
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:  # The package's `__getattr__`, `__dir__` and `__all__`
    "What a package needs to hand on names of its modules, each looked up when it is first used."
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def __getattr__(name: str) -> object:
        if name not in module_of: raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return __getattr__, lambda: sorted(module_of), sorted(module_of)


__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "core.memory": "Memory as_memory mem sample_memories",
    "core.models": "CaptureConfidence EdgeType Judgment MemoryEdge MemoryMetadata MemorySummary MemoryTier "
        "RetentionScore SummaryDecision SupersededFact TemporalReference TierTransition "
        "ConsolidationPhase ConsolidationResult Failed",
    "core.settings": "ConfigError NAMESPACE_IMPORTANCE RetentionConfig SubconsciousnessConfig "
        "DEFAULT_ACTIVATION_BOOST DEFAULT_CONSOLIDATION_BATCH_SIZE DEFAULT_CONSOLIDATION_INTERVAL_HOURS "
        "DEFAULT_HOT_THRESHOLD DEFAULT_MAX_CLUSTER_SIZE DEFAULT_MIN_CLUSTER_SIZE "
        "DEFAULT_RETENTION_HALF_LIFE_DAYS DEFAULT_SUMMARIES_MAX DEFAULT_SUMMARIES_MIN_CONFIDENCE "
        "DEFAULT_SUMMARIES_PRIORITIZE DEFAULT_SUMMARIES_TOKEN_BUDGET DEFAULT_WARM_THRESHOLD",
    "core.loading": "HOOK_CONFIG load_settings",
    "text.facts": "Fact same_value",
    "temporal.resolve": "TEMPORAL_PATTERNS detect_temporal_references find_references resolve_temporal_reference",
    "retention.score": "compute_retention_score retention_frame",
    "similarity.lexical": "Embedder EmbeddingError LexicalEmbedder calibrate",
    "similarity.embedders": "MiniLMEmbedder pull_minilm PluginVectors EndpointEmbedder get_embedder",
    "similarity.clusters": "flat_clusters MemoryCluster cluster_memories",
    "store.git": "Repo RepoError open_repo",
    "store.reader": "read_memories",
    "supersession.judge": "judge_pair",
    "summaries.verification": "Verification verify",
    "summaries.extraction": "summarize_cluster",
    "staleness.staleness": "stale",
    "consolidation.scan": "Scope",
    "consolidation.service": "ConsolidationService",
    "consolidation.status": "is_consolidation_available",
    "consolidation.stores": "EdgeStore MetadataStore RunLogStore SummaryStore get_consolidation_service open_service "
        "reset_consolidation_service",
    "llm.prompts": "SUPERSESSION_SYSTEM_PROMPT",
    "llm.summary_prompts": "SUMMARY_SYSTEM_PROMPT",
    "recall.search": "MemoryResult RetrievalMode",
    "recall.rank": "needs_reasoning _query_needs_reasoning",
    "recall.service": "RecallService get_recall_service open_recall reset_recall_service",
    "recall.evidence": "REASONING_SYSTEM_PROMPT REASONING_USER_PROMPT",
    "recall.reason": "ReasonedAnswer ReasonedRecallService RecallResult get_reasoned_recall_service "
        "handle_recall_command reset_reasoned_recall_service",
    "session.fast_start": "SessionContext SUMMARY_CONTEXT_END SUMMARY_CONTEXT_HEADER SUMMARY_CONTEXT_START "
        "SUMMARY_CONTEXT_TAG",
    "session.context": "ContextBuildConfig SessionContextBuilder format_context SessionStartSummaryInjector "
        "SummaryInjectionConfig SummaryInjectionResult get_session_start_additional_context "
        "get_summary_injector reset_summary_injector",
    "session.hooks": "ConsolidationHook",
    "health.doctor": "checkup",
    "evaluation.scoring": "wilson evaluate_dates load_dated",
    "evaluation.pairs": "load_pairs evaluate_pairs evaluate_candidates",
    "evaluation.stories": "evaluate_stories load_stories",
    "evaluation.compare": "compare",
})
