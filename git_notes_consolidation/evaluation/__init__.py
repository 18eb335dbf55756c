"""How good it is."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "scoring": "wilson Share share RELATIONS Report Table DataError LOCKED fixture load_rows unlocked_rows "
        "Accuracy Outcome evaluate_dates load_dated load_questions evaluate_recall",
    "pairs": "Pair load_pairs judge_pairs Failure Scores evaluate_pairs report_of evaluate_candidates",
    "prompts": "evaluate_four_ways",
    "stories": "load_stories evaluate_stories",
    "decay": "Tuned tuned file_touches memory_touches",
    "compare": "compare Comparison",
})
