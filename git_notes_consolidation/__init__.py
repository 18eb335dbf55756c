"""Consolidation of agent memories kept in git notes.

Importing this package costs next to nothing: every public name is looked up in its module when it is first used.
"""


__version__ = "0.0.1"

_NAMES = {
    "models": "CaptureConfidence ConsolidationPhase ConsolidationResult EdgeType Failed Judgment Memory MemoryEdge MemoryMetadata MemorySummary MemoryTier "
    "RetentionScore SummaryDecision SupersededFact TemporalReference TierTransition mem sample_memories",
    "config": "ConfigError NAMESPACE_IMPORTANCE RetentionConfig SubconsciousnessConfig load_settings",
    "retention": "compute_retention_score retention_frame",
    "facts": "Fact same_value",
    "embedding": "Embedder EmbeddingError EndpointEmbedder LexicalEmbedder MiniLMEmbedder PluginVectors calibrate get_embedder pull_minilm",
    "clustering": "MemoryCluster cluster_memories flat_clusters",
    "notes": "Repo RepoError open_repo read_memories",
    "verifying": "Verification verify",
    "judging": "judge_pair",
    "summarizing": "summarize_cluster",
    "phases": "Scope",
    "service": "ConsolidationService EdgeStore MetadataStore RunLogStore SummaryStore get_consolidation_service is_consolidation_available open_service "
    "reset_consolidation_service",
    "finding": "MemoryResult RetrievalMode",
    "recall": "RecallService get_recall_service open_recall reset_recall_service",
    "reasoning": "ReasonedAnswer ReasonedRecallService RecallResult get_reasoned_recall_service handle_recall_command",
    "questions": "needs_reasoning",
    "answering": "REASONING_SYSTEM_PROMPT REASONING_USER_PROMPT",
    "packing": "SessionContext",
    "session": "SessionStartSummaryInjector SummaryInjectionConfig SummaryInjectionResult get_session_start_additional_context get_summary_injector "
    "reset_summary_injector",
    "context": "ContextBuildConfig SessionContextBuilder format_context",
    "hooks": "ConsolidationHook",
    "staleness": "stale",
    "doctor": "checkup",
    "temporal": "TEMPORAL_PATTERNS detect_temporal_references find_references resolve_temporal_reference",
    "scoring": "wilson",
    "dating": "evaluate_dates load_dated",
    "evaluation": "audited evaluate_candidates evaluate_chains evaluate_pairs load_chains load_pairs sample_edges",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        from importlib import import_module
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
