"""What a text says without a date."""
from git_notes_consolidation import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "words": "word_set Sentence split_sentences Reference references document_head document_kind names_of "
        "mentions stem stems_of words_of title_words mentions_title STOP_WORDS "
        "LIGHT_VERBS NEGATIONS MODALS",
    "facts": "parse_number quantity Fact find_facts same_value Frame frame frame_stems normal_name",
    "topics": "Topic topic_of own_sentences OwnSentence content_stems other_subject any_of Scope scope "
        "other_scope other_environment continues",
    "factuality": "is_fragment not_in_force undecided hedge",
})
