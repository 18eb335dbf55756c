"""What a text says without a date."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "sentences": "word_set Sentence split_sentences",
    "names": "Reference references document_head document_kind names_of mentions",
    "words": "stem stems_of words_of title_words mentions_title MemoryNames memory_names STOP_WORDS "
        "LIGHT_VERBS NEGATIONS MODALS",
    "quantities": "parse_number quantity",
    "facts": "Fact find_facts same_value Frame frame frame_stems normal_name",
    "topics": "Topic topic_of own_sentences OwnSentence content_stems other_subject any_of",
    "scopes": "Scope scope other_scope other_environment continues",
    "factuality": "is_fragment not_in_force undecided hedge",
})
