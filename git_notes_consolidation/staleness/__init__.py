"""Memories whose code is gone."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "staleness": "stale compare Comparison Stale",
    "history": "tip_of",
    "file_check": "dead_names Dead",
})
