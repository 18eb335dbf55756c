"""Git notes as a store."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "git": "Repo RepoError NoRepository open_repo MEM tips RaceLost",
    "reader": "read_memories parse_note Scan Record Problem resolve UnknownId write_memories note_text",
    "events": "REFS Events Append read_events our_tips encode decode append write run_lock Locked clone_id",
    "state": "State fold",
    "cache": "open_index embed_cached note_accesses flush",
    "tables": "refresh patch search_text",
    "versions": "Operation operations_of versions_of holds_since",
    "changes": "last_run memories_since",
    "sync": "SyncResult find_remote",
    "damage": "note_findings",
})
