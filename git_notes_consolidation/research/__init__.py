"""What only the research notebooks use."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "corpus": "Corpus load_corpus scratch",
    "tuning": "Answer answer",
    "tuning_desk": "Panel tune",
})
