"""What only the research notebooks use."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "tuning": "Prepared answer scores tiers",
    "tuning_panel": "Panel",
    "corpus": "Corpus load_corpus scratch",
    "tuning_desk": "tune",
    "labelling": "LabelFile edge_precision",
    "labelling_desk": "label",
})
