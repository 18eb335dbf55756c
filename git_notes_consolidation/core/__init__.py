"""Values and settings."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "memory": "as_memory as_utc digest Place Memory mem sample_memories SAMPLE_NOW UTC Author author_of",
    "models": "MemoryTier RetentionScore MemoryMetadata TierTransition EdgeType edge_type MemoryEdge Relation "
        "Judgment Quote SummaryDecision SupersededFact CaptureConfidence MemorySummary TemporalReference "
        "ConsolidationPhase Failed ConsolidationResult",
    "runtime": "need process_count parallel_map write_ahead",
    "visible": "estimate_tokens token_counter visible json_line inert restored",
    "startup": "find_file read_file from_yaml from_toml remedy NOT_FETCHED FETCH_NOTES PARTIAL",
    "own": "OwnError",
    "settings": "ConfigError RetentionConfig SubconsciousnessConfig PRESETS NAMESPACE_IMPORTANCE "
        "DEFAULT_IMPORTANCE",
    "loading": "HOOK_CONFIG parse_setting known_setting variable_name plugin_settings file_setting "
        "table_setting flatten_tables Settings load_settings preset_settings project_file Draft "
        "edit_line changed_settings",
})
