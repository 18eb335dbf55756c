"""Spans, metrics and logs."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "tracing": "SPANS METRICS SpanSignal Metric prometheus_name LOG LEVELS log_event log_context is_logging "
        "is_enabled escaped show_content JsonLines TextLines span detail_span current_span listening "
        "has_sdk",
    "telemetry": "Tally Series count record gauge count_outcomes measuring tallying store_series load_series "
        "exposition Telemetry read_environment start_export instrumented",
})
