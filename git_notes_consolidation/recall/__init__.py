"""Asking the memory."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "search": "MemoryResult RetrievalMode",
    "service": "RecallService get_recall_service open_recall reset_recall_service",
    "reason": "ReasonedAnswer ReasonedRecallService RecallResult get_reasoned_recall_service "
        "handle_recall_command",
    "rank": "needs_reasoning",
    "evidence": "REASONING_SYSTEM_PROMPT REASONING_USER_PROMPT",
})
