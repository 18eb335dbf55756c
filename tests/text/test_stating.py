"""For whom a memory holds, what goes on, and what states nothing at all."""
import re

import pytest
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.text.factuality import _NO_CHANGE, is_fragment, hedge, undecided
from git_notes_consolidation.text.scopes import continues, other_scope, scope
from git_notes_consolidation.text.topics import any_of, content_stems, other_subject, own_sentences, topic_of

BELL = mem("A bell calls the porters", "Each floor has a brass bell, rung when a crate waits on that floor. Two rings mean that it is heavy.", days_ago=200)


@pytest.mark.parametrize(("a", "b", "apart"), [
    (("East: lamps", ""), ("West: lamps", ""), True), (("Lamps", "The hall closes late."), ("Lamps", "The hall opens."), False),
    (("East lamps: 3", ""), ("Lamps in the east: 4", ""), False), (("Lamps", "See `east_wing`."), ("Lamps", "See `lamps`, not `east_wing`."), False)])
def test_two_things_of_one_form(a, b, apart): assert other_subject(mem(*a, days_ago=90), mem(*b)) == apart


# What a memory speaks of

@pytest.mark.parametrize("older,newer,limited", [
    ("Ring the bell", "On staging, ring twice", True), ("Ring the bell on staging", "On staging, ring twice", False), ("Ring the bell",
    "Ring twice on the demo server", True),
    ("Ring the bell", "Ring twice in a demo", False), ("Ring the bell on prod", "In production ring twice", False), ("Ring the bell on stage-1",
    "Ring twice on stage-1", False),
    ("Ring the bell", "The night crew rings twice", True), ("The night crew rings", "The night crew rings twice", False), ("The day team rings",
    "The night team rings twice", True),
    ("The day team rings", "Ring twice", True), ("Ring the bell", "Our team rings twice", False), ("Ring the bell", "The yard group rings twice", False),
    ("The loft group rings", "The yard group rings twice", True), ("Ring on Android", "Ring twice on iOS", True), ("Ring the bell", "Ring twice on iOS", False),
    ("Ring the bell", "Ring twice, which goes for porters", True), ("Ring the bell for porters", "Ring twice, which goes for porters", False),
    ("Ring the bell", "Ring twice on `perf`", True), ("The bell of the yard", "The yard team rings twice", False), ("Ring the bell",
    "Scope: yard, ring twice", True),
    ("Ring the bell", "Ring twice, it holds for them", False), ("Ring the bell", "Ring twice in production", False)])
def test_for_whom_it_holds(older, newer, limited): assert bool(other_scope(mem(older), mem(newer))) == limited


@pytest.mark.parametrize("older,newer,limited", [
    ("The bell rings.", "Yard: the bell rings twice.", True), ("The bell of the yard rings.", "Yard: the bell rings twice.", False), ("Yard: it rings.",
    "It rings twice.", True),
    ("It rings.", "Context: it rings twice.", False), ("It rings.", "In the yard team it rings twice.", True), ("It rings.",
    "It rings twice, says the yard team.", False)])
def test_a_body_may_say_for_whom_it_holds(older, newer, limited): assert bool(other_scope(mem("Bells", older), mem("Bells", newer))) == limited


@pytest.mark.parametrize("text,on", [("The porters carry on.", True), ("They keep their porters.", True), ("Porters are not affected.", True),
                                     ("Porters have no such bell.", True),
                                     ("Crates carry on.", False), ("Porters ring. Crates carry on.", False), ("Porters are gone.", False)])
def test_what_goes_on(text, on): assert bool(continues(BELL, mem("Lifts", text))) == on


def test_a_scope_is_read_to_some_length():
    assert scope(mem("Bells", "On staging.")).environments == {"staging"} and not scope(mem("Bells", "It rings. " * 200 + "On staging.")).environments
    assert not scope(mem("Bells", "On iOS.")).sides


PHRASES = {
    "nothing was decided": ["nothing has been decided", "nothing changes", "not yet decided", "no decision", "undecided", "not agreed", "nothing is signed",
                            "nobody has",
                            "isn't planned", "no date", "in favour, two against", "until we meet", "we talk again", "look at it again", "parked",
                            "for comments"],
    "it was declined": ["Ada said no", "was turned down", "got rejected", "turned it down", "Bells: declined"],
    "it was taken back": ["was reverted", "gone back", "all crates went back to hand"],
    "all stays": ["we stay with bells", "they stick to it", "it stays where it is", "we keep bells", "keep using bells", "kept our bells", "go on ringing",
                  "as it was until May"],
    "nothing is replaced": ["does not replace", "not a replacement", "replaces nothing", "not instead of"],
    "it is a thought": ["a proposal", "what if", "just a thought", "thought experiment", "played with the idea", "a sketch", "a prototype",
                        "proof of concept", "plan b",
                        "we discussed", "no longer considering", "need not do", "never had to", "for the day", "in case", "it would take"],
    "others did it": ["heard from them", "in their own fork"],
    "it is told again": ["looking back", "how we got here", "came about", "in hindsight", "for the record", "made up our minds", "typed in late"],
    "it still holds": ["still true", "still in force", "reminder"],
    "it holds for a while": ["for now"]}


@pytest.mark.parametrize("group,phrase", [(g, p) for g, phrases in PHRASES.items() for p in phrases])
def test_a_memory_that_states_no_change(group, phrase):
    others = re.compile(r"(?i)\b" + any_of(*(v for k, v in _NO_CHANGE.items() if k != group)) + r"\b")
    assert undecided(mem("Bells", f"The bell is gone. So {phrase}, then.")) and (phrase == "it would take" or not others.search(phrase)) or "declined" in phrase
    assert not undecided(mem("Bells", f"> {phrase}"))


@pytest.mark.parametrize("title,text", [("Bells: declined", ""), ("Bells", "Gone. Rejected."), ("Bells", "Gone. Again: ring."), ("Request: drop the bell",
                        ""), ("Drafts of bells", ""), ("Bells?", ""), ("Idea: bells", ""), ("Bells if it rains", ""),
                                        ("Bells", "Suppose the bell is gone."), ("Bells", "In case of rain, ring.")])
def test_a_memory_that_states_nothing(title, text): assert undecided(mem(title, text))


@pytest.mark.parametrize("title,text", [("Bells", ""), ("Bells on the floor", "The bell is gone. If it rains, knock."), ("Bells",
"The bell is gone.\n\n## Options\nStay with bells."),
                                        ("Bells", "Nobody rejected the bell."), ("Ringing", "The bell is gone.")])
def test_a_memory_that_may_state_something(title, text): assert not undecided(mem(title, text))


HEDGES = (
    "might may could would perhaps maybe possibly probably potentially eventually someday whether todo tbd almost nearly rarely seldom hardly barely unlikely "
    "failed thought asked try tried trying suppose imagine hoped refuses aims asks wonder wanted wishes attempted thinks expected avoids considering proposed "
    "evaluate discussed debate suggests explored investigating intend hypothetical tentatively rejected declined postponed deferred contemplate planned "
    "recommended").split()


@pytest.mark.parametrize("word", HEDGES)
def test_a_hedge(word): assert hedge(f"They {word} the bell.") and hedge(f"{word.upper()} it.")


def test_no_hedge():
    assert [t for t in ("They will ring the bell.", "Now it rings.", "The tribe rings it.", "It rings to be heard.") if hedge(t)] == []
    assert [hedge(t) for t in ("Bells?", "“Bells?”", "(bells?)")] == ["a question"] * 3


def test_what_a_memory_says_itself():
    m = mem("Bells", "Bells\n\n# Rings\n> quoted\n\nIt rings.\n\n## Rejected\n- two bells\n\n## Decision\nOne bell.")
    assert [(s.line, s.title) for s in own_sentences(m)] == [("Bells", True), ("It rings.", False), ("One bell.", False)]


def test_words_and_names():
    assert content_stems("out-of-the-box") == {"out-of-the-box", "box"} and len(own_sentences(mem("Bells", "It rings. " * 99))) == 41
    assert {"cable-lift", "cabl", "lift"} == content_stems("the cable-lift") and content_stems("a-b") == {"a-b"}
    a = topic_of(mem("Lifts of 2026 and Bells", "One `door_stop` stands by the Bluebird. S3 too. Then nothing.\nHere is HTTP/2 and more."))
    assert {"door_stop", "bluebird", "s3"} <= a.terms and not {"then", "one"} & a.terms
    assert a.subject == {"lift", "bell"} and "2026" in a.title and "http/2" not in a.lead


@pytest.mark.parametrize("title", ["… and the lift", "- ...then", 'x="1"', "# lift", "// lift", "$ lift", "import lift", "from lift import x", "def lift",
                                   "class lift",
                                   "Let me lift it", "I need to lift it", "I'll lift it", "I see", "I understand it", "12", "ok"])
def test_pieces_of_text(title): assert is_fragment(mem(title)) and not is_fragment(mem("The lift " + title[-1]))
