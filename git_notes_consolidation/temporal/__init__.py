"""When a text says it happened."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "resolve": "find_references detect_temporal_references resolve_temporal_reference TEMPORAL_PATTERNS",
    "calendar": "masked BLANK Period ordinal civil index start period floor part at_time shifted nearest "
        "iso_week DAY CYCLES DAYS_OF MONTHS_OF",
    "tense": "cue",
    "lexicon": "Tokens tells_time",
    "names": "is_named is_habit keep_dates_only",
    "grammar": "Reading Rules Scene",
})
