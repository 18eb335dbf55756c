"""Several memories told as one."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "verification": "verify Verification verification_html",
    "values": "Finding",
    "extraction": "summarize_cluster NothingToQuote SUMMARIZER sources_html",
    "quotations": "is_statement",
    "generation": "redraft draft_id",
    "merging": "merged_text inherited",
})
