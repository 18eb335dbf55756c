"""Several memories told as one."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "verification": "verify Verification Finding Sources",
    "extraction": "summarize_cluster NothingToQuote SUMMARIZER",
    "quotations": "is_statement",
    "generation": "redraft draft_id merged_text inherited",
})
