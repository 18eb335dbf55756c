"""The run: plan, look, apply, undo."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "scan": "Scope",
    "service": "ConsolidationService",
    "stores": "EdgeStore MetadataStore RunLogStore SummaryStore get_consolidation_service open_service "
        "reset_consolidation_service",
    "status": "is_consolidation_available",
})
