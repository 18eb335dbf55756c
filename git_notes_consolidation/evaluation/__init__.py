"""How good it is."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "intervals": "wilson Share share RELATIONS Report Table",
    "labelled": "DataError LOCKED fixture load_rows shown",
    "dates": "Accuracy Outcome evaluate_dates load_dated",
    "pairs": "Pair load_pairs judge_pairs",
    "judge": "Failure Scores evaluate_pairs report_of",
    "candidates": "CandidateReport evaluate_candidates",
    "chains": "Chain ChainReport load_chains evaluate_chains",
    "fourway": "FourWayReport evaluate_four_ways",
    "retrieval": "load_questions sample_questions evaluate_recall",
    "decay": "Tuned tuned evaluate_retention file_touches memory_touches",
})
