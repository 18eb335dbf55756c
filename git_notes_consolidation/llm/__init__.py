"""Asking a language model safely."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "providers": "Provider is_local Ledger Bound BudgetExceeded price",
    "redact": "Finding findings",
    "protocol": "Request Answer BadReply RULES",
    "client": "Client as_client get_client ask_all Model Job",
    "prompts": "judge_request SUPERSESSION_SYSTEM_PROMPT",
    "summary_prompts": "summary_request SUMMARY_SYSTEM_PROMPT merge_request MERGE_SYSTEM_PROMPT Draft edges_request "
        "EDGES_SYSTEM_PROMPT Link",
})
