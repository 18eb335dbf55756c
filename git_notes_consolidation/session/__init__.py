"""What the next session is told."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "fast_start": "SessionContext",
    "context": "SessionStartSummaryInjector SummaryInjectionConfig SummaryInjectionResult "
        "get_session_start_additional_context get_summary_injector reset_summary_injector "
        "ContextBuildConfig SessionContextBuilder format_context",
    "hooks": "ConsolidationHook",
})
