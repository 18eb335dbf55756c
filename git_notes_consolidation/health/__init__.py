"""What is wrong, and what heals it."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "checks": "git_findings index_findings reader_findings run_findings sync_findings",
    "doctor": "Check checks checkup worst_first Health health document exit_code nagios_line unknown_line "
        "collapse component_of",
})
