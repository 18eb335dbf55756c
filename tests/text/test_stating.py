"""For whom a memory holds, what goes on, and what states nothing at all."""
import re

import pytest
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.text.factuality import _NO_CHANGE, hedge, undecided
from git_notes_consolidation.text.topics import any_of, continues, other_scope, other_subject
from helpers import rows_of

ROWS = rows_of(__name__)

BELL = mem("A bell calls the porters", "Each floor has a brass bell, rung when a crate waits on that floor. Two rings mean that it is heavy.", days_ago=200)


@pytest.mark.parametrize(("a", "b", "apart"), ROWS["two things of one form"])
def test_two_things_of_one_form(a, b, apart): assert other_subject(mem(*a, days_ago=90), mem(*b)) == apart


# What a memory speaks of

@pytest.mark.parametrize("older,newer,limited", ROWS["for whom it holds"])
def test_for_whom_it_holds(older, newer, limited): assert bool(other_scope(mem(older), mem(newer))) == limited


@pytest.mark.parametrize("older,newer,limited", ROWS["a body may say for whom it holds"])
def test_a_body_may_say_for_whom_it_holds(older, newer, limited): assert bool(other_scope(mem("Bells", older), mem("Bells", newer))) == limited


@pytest.mark.parametrize("text,on", ROWS["what goes on"])
def test_what_goes_on(text, on): assert bool(continues(BELL, mem("Lifts", text))) == on


PHRASES = ROWS["phrases"]


@pytest.mark.parametrize("group,phrase", [(g, p) for g, phrases in PHRASES.items() for p in phrases])
def test_a_memory_that_states_no_change(group, phrase):
    others = re.compile(r"(?i)\b" + any_of(*(v for k, v in _NO_CHANGE.items() if k != group)) + r"\b")
    assert undecided(mem("Bells", f"The bell is gone. So {phrase}, then.")) and (phrase == "it would take" or not others.search(phrase)) or "declined" in phrase
    assert not undecided(mem("Bells", f"> {phrase}"))


@pytest.mark.parametrize("title,text", ROWS["a memory that states nothing"])
def test_a_memory_that_states_nothing(title, text): assert undecided(mem(title, text))


@pytest.mark.parametrize("title,text", ROWS["a memory that may state something"])
def test_a_memory_that_may_state_something(title, text): assert not undecided(mem(title, text))


HEDGES = ROWS["hedges"]


@pytest.mark.parametrize("word", HEDGES)
def test_a_hedge(word): assert hedge(f"They {word} the bell.") and hedge(f"{word.upper()} it.")
