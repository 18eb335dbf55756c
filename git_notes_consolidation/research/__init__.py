"""What only the research notebooks use."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "lab": "Corpus load_corpus scratch Desk",
    "tuning": "Answer answer Panel tune",
})
