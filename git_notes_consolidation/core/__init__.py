"""Values and settings."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "memory": "as_memory as_utc digest Place Memory mem sample_memories SAMPLE_NOW UTC",
    "models": "MemoryTier RetentionScore MemoryMetadata TierTransition EdgeType edge_type MemoryEdge "
        "Relation Judgment Quote SummaryDecision SupersededFact CaptureConfidence MemorySummary "
        "TemporalReference",
    "reports": "ConsolidationPhase Failed ConsolidationResult",
    "extras": "need",
    "processes": "Pool using_pool process_count parallel_map write_ahead",
    "tokens": "estimate_tokens token_counter",
    "settings_files": "find_file read_file from_yaml from_toml",
    "settings": "ConfigError RetentionConfig SubconsciousnessConfig PRESETS NAMESPACE_IMPORTANCE "
        "DEFAULT_IMPORTANCE",
    "parsing": "HOOK_CONFIG parse_setting known_setting variable_name plugin_settings file_setting",
    "tables": "table_setting flatten_tables",
    "loading": "Settings load_settings preset_settings project_file",
    "remedies": "remedy NOT_FETCHED FETCH_NOTES PARTIAL",
    "visible": "visible json_line inert restored",
    "authors": "Author author_of",
    "saving": "Draft edit_line changed_settings",
})
