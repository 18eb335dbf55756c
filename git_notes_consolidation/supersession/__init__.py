"""What a newer memory says of an older one."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "judge": "judge_pair weigh unsure repeat_key JUDGE SURE",
    "assertions": "ABSTAINS",
})
