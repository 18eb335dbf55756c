"""Endings, amendments and solved blockers: what is found, and for every guard a pair that only this guard holds back."""
import re

import pytest
from git_notes_consolidation.supersession.blockers import _NOT, _SOLVED, _UNSOLVED, solved
from git_notes_consolidation.supersession.ending_phrases import _PHRASES
from git_notes_consolidation.supersession.amendments import amended
from git_notes_consolidation.supersession.endings import ended, endings
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.text.factuality import _NO_CHANGE, is_fragment, hedge, undecided
from git_notes_consolidation.text.topics import SHORT_BODY, topic_of, any_of, content_stems, own_sentences
from git_notes_consolidation.text.scopes import continues, other_scope, scope
from hypothesis import given, settings
from hypothesis import strategies as st

LIFT = mem("Crates go up with the cable lift", "The cable lift brings every crate to the loft, two at a time. A bell rings when it is full.", days_ago=200)
BELL = mem("A bell calls the porters", "Each floor has a brass bell, rung when a crate waits on that floor. Two rings mean that it is heavy.", days_ago=200)


def note(text, title="Crates and the loft", **kw): return mem(title, text, **{"days_ago": 3} | kw)
def gone(text, older=LIFT, title="Crates and the loft", **kw): return ended(older, note(text, title, **kw))


# Things that ended

ACTIVE = ["We dropped the cable lift.", "We have retired the cable lift for good.", "Dropped the cable lift.", "We are removing the cable lift.",
          "We moved the crates away from the cable lift.", "We got rid of the cable lift.", "We took the cable lift out.", "We gave up on the cable lift.",
          "We switched off the cable lift.", "A conveyor takes over from the cable lift.", "Gone is the cable lift.", "Out goes the cable lift.",
          "A conveyor takes the place of the cable lift.", "In place of the cable lift there is a conveyor.", "We swapped the cable lift for a conveyor.",
          "We said goodbye to the cable lift.", "Farewell to the cable lift.", "We stopped using the cable lift.", "We agreed to drop the cable lift.",
          "Forget the cable lift.", "We turned away from the cable lift.", "We ended the cable lift.", "A conveyor replaces the cable lift.",
          "We no longer use the cable lift.", "There is no cable lift any more.",
          "We dropped the bell and the cable lift.", "We cancelled the cable lift in May.", "We dropped the old cable-lift.", "We reversed the cable lift."]
PASSIVE = ["The cable lift is gone.", "The cable lift has finally been removed.", "The cable lift no longer runs.", "The cable lift went away.",
           "The cable lift is a thing of the past.", "The cable lift is out of service.", "The cable lift is not used anymore.", "Cable lift removed.",
           "The cable lift disappeared.", "The cable lift is no longer in use.", "The cable lift was shut down.", "The bell and the cable lift are gone."]


@pytest.mark.parametrize("text", ACTIVE + PASSIVE)
def test_it_has_ended(text):
    j = gone(text)
    assert j and (j.relation, j.kind, j.code) == ("supersede", "full", "E") and j.confidence >= 0.8 and j.span in text and "lift" in j.span.lower()


NOT_ENDED = {
    "hedged": "We might drop the cable lift.", "a question": "Is the cable lift gone?", "negated": "We did not drop the cable lift.",
    "never": "We never dropped the cable lift.", "a wish": "We want to drop the cable lift.",
    "a wish after an agreement": "We agreed, and want to drop the cable lift.",
    "a condition": "Once the cable lift is gone, crates wait.", "almost": "The cable lift is almost gone.",
    "an order to others": "The buttons remove the cable lift.", "a description": "A tool for dropping the cable lift.",
    "instead, in a sentence": "Crates wait instead of the cable lift.", "in place of, with words before it": "Crates wait in place of the cable lift.",
    "forget, with words before it": "Never mind; people forget the cable lift.", "another thing": "We dropped the rope lift.",
    "a number": "We dropped the 2 cable lifts.", "a place": "We dropped the cable lift in Tarn.", "a vague thing": "We dropped each cable lift.",
    "a document": "We dropped [the cable lift](lift.md).", "a named document": "We dropped the ADR-007 cable lift.",
    "of a third document": "ADR-009 dropped the cable lift.",
    "a quoted verb": "The cable lift “was dropped” in a joke.", "quoted": "They said “we dropped the cable lift” twice.",
    "a block quotation": "> We dropped the cable lift.",
    "an option": "## Options\n\n- Dropped the cable lift.",
    "code": "```\nWe dropped the cable lift.\n```", "by somebody else": "Our supplier dropped the cable lift.",
    "a bare participle in a relative clause": "The script that the cable lift removed.", "a part in words": "We dropped the lifted moods.",
    "a verb that somebody else does": "Crates remove the cable lift.", "a description of the loft": "Crates for dropping the cable lift.",
    "an order": "Crates jam: drop the cable lift.", "none of": "None of the cable lift crates is gone.",
    "unless": "Unless we drop the cable lift, crates wait.", "time to": "To drop the cable lift, ring.",
    "quoted, with crates": "Crates: “we dropped the cable lift” is on the wall.", "a reversing noun": "Reversing the cable lift list."}


@pytest.mark.parametrize("text", NOT_ENDED.values(), ids=NOT_ENDED)
def test_it_has_not_ended(text): assert gone(text) is None


def test_a_title_may_say_what_is_used_instead():
    assert gone("The loft has a belt now; a bell rings.", title="Use a belt instead of the cable lift for crates")
    assert not gone("Use a belt instead of the cable lift for crates.")
    assert not gone("The loft has a belt now; a bell rings.", title="Crates instead of the cable lift")


def test_the_place_in_a_title_may_stand_apart():
    text, title = "The crates wait in the loft.", "Dropped the cable lift, as all who live here had agreed, for {}"
    assert gone(text, title=title.format("crates")) and gone(text, title=title.format("May")) and not gone(text, title=title.format("Tarn"))


@pytest.mark.parametrize("older", [
    mem("Crates go up by hand", "The cable lift is gone. Every crate goes to the loft by hand, and a bell rings.", days_ago=200),
    mem("Crates go up with the cable lift", "Crates of the loft. " + "It is a long story about the loft. " * 60, days_ago=200),
    mem(LIFT.summary, LIFT.content, namespace="reviews", days_ago=200), mem("… go up with the cable lift", LIFT.content, days_ago=200),
    mem("Fees", "Paid monthly. A loft costs more, crates too. The cable lift is free.", days_ago=200)],
    ids=["it had ended before", "a long text", "a review", "a piece of a title", "mentioned in passing"])
def test_this_older_memory_has_not_ended(older): assert gone("The cable lift is gone.", older) is None


@pytest.mark.parametrize("newer", [note("The cable lift is gone.", namespace="reviews"), note("The cable lift is gone.", "…and the loft"),
                                   note("The cable lift is gone. " + "The loft is full. " * 100), note("The cable lift is gone.", "Fees")],
                         ids=["a review", "a piece of a title", "a long text", "nothing else in common"])
def test_this_newer_memory_does_not_end_it(newer): assert len(newer.text) > SHORT_BODY or ended(LIFT, newer) is None


def test_a_long_text_ends_nothing(): assert endings(note("The cable lift is gone. " + "The loft is full. " * 100)) == ()
def test_generic_words_are_no_thing(): assert gone("We dropped the old system.", mem("The old system lifts crates", LIFT.content, days_ago=200)) is None
def test_progress_may_tell_of_it(): assert gone("The cable lift is gone.", namespace="progress").kind == "full"


def test_what_had_not_ended_before_may_end():
    assert gone("The cable lift is gone.", mem(LIFT.summary, "We never dropped the cable lift. A bell rings in the loft.", days_ago=200))


def test_units_are_no_thing(): assert gone("We dropped 5 kg.", mem("Crates of 5 kg go up", "Each crate of 5 kg goes to the loft.", days_ago=200)) is None


def test_a_word_may_have_another_form():
    assert gone("The emitters are gone.", mem("Bells emit a tone", "Bells of the loft emit a tone for crates.", days_ago=200))


def test_a_name_may_be_written_small():
    assert gone("Bluebird is gone.", mem("Crates go up", "A lift, the bluebird, takes crates to the loft.", days_ago=200))


def test_the_particle_is_not_part_of_the_thing(): assert gone("We took the cable lift out.").span == "took the cable lift"


def test_an_enumeration_ends_its_members(): assert gone("The stairs and the cable lift are gone.") and gone("We dropped the cable lift and the stairs.")


def test_a_word_within_a_title_is_no_topic():
    older = mem("Keys of the loft for porters", " ".join(f"Word{i} stands here." for i in range(30)) + " Porters of the yard read it.", days_ago=200)
    assert gone("The loft is gone, the yard reads it, porters too.", older, "Stairs").confidence == 0.6


def test_a_part_that_ended():
    older = mem("Rules for the bell", "Point one: crates go up. Point two: the bell rings in the loft.", days_ago=200)
    assert ended(older, note("We dropped the last point about the bell; crates stay.", "Rules of the bell")).kind == "partial"
    assert gone("Point two: the cable lift is gone.").kind == "partial"


def test_a_thing_far_down_is_for_a_person_to_see():
    older = mem("Porters", "A Bluebird lift takes the crates. " + " ".join(f"Word{i} stands here." for i in range(30)), days_ago=200)
    j = gone("Bluebird is gone: the lift stood still.", older)
    assert j is None or j.confidence < 0.8


@pytest.mark.parametrize("group", _PHRASES)
def test_every_group_of_phrases_is_needed(group):
    others = re.compile(r"(?i)(?<![\w-])" + any_of(*(v for k, v in _PHRASES.items() if k != group)))
    assert any(re.search("(?i)" + any_of(_PHRASES[group]), t) and not others.search(t) and (endings(note(t))) for t in ACTIVE)


# The rest stays

RULE = mem("Opening hours of the loft", "Porters open the loft at six and close it at nine. Crates wait in the yard until then, a guard counts them.",
           days_ago=100)
STAYS = ["Amends the opening hours: the loft closes at ten now. Everything else stays as it was.",
         "One change: the loft closes at ten. Porters, crates, yard and guard stay as before.",
         "The loft closes at ten now, on one point only; the rest of the opening hours is unchanged.",
         "An exception to the opening hours of the loft: it closes at ten in May.",
         "Only the closing time changes, to ten. The guard and the yard remain."]
GUARDED = {
    "nothing stays": "The loft closes at ten now. The crates of the yard are red.",
    "it muses": "Perhaps the loft closes at ten now, and everything else stays as it was.",
    "it asks": "The loft closes at ten now. Does everything else of the opening hours stay as it was?",
    "all of it stays": "The opening hours of the loft stay, the porters and the guard too. A crate is red now.",
    "it stays still": "A crate in the loft is now opened when the yard and the guard of the porters remain still.",
    "another document": "This amends ADR-003: the loft closes at ten now. Everything else stays as it was.",
    "nothing changes": "The loft, crates, porters: everything else as ever.",
    "only a word in common": "The lamps are red now, everything else stays as it was."}


@pytest.mark.parametrize("text", STAYS)
def test_a_part_changes_and_the_rest_stays(text):
    j = amended(RULE, note(text, "Opening hours of the loft in summer"))
    assert j and (j.relation, j.kind, j.code) == ("supersede", "partial", "E") and j.confidence >= 0.8 and j.span in text


@pytest.mark.parametrize("text", GUARDED.values(), ids=GUARDED)
def test_no_part_changes(text): assert amended(RULE, note(text, "Hours" if "lamps" in text else "Opening of a crate")) is None


def test_a_list_of_what_stays_needs_two_words():
    assert amended(RULE, note("The loft closes at ten now. The guard stays.", "Opening hours of the loft")) is None


def test_an_amendment_names_its_title():
    assert amended(RULE, note("An exception to the opening hours of the loft.", "May")).confidence == 0.85
    for text in ("An exception to the price of the crates.", "Perhaps an exception to the opening hours of the loft.",
                 "An exception to the opening hours of the loft?"):
        assert amended(RULE, note(text, "May")) is None


def test_unsure_amendments_are_for_a_person_to_see():
    assert amended(RULE, note("The loft closes at ten now. Everything else stays.",
                              "The loft opens longer hours for porters, crates, guards")).confidence == 0.7


@pytest.mark.parametrize("older,newer", [
    (mem(RULE.summary, RULE.content + " It is so." * 200, days_ago=9), note(STAYS[0])), (RULE, note(STAYS[0] + " It is so." * 200)),
    (mem("…hours of the loft", RULE.content, days_ago=9), note(STAYS[0])), (RULE, note(STAYS[0], "…hours of the loft"))],
    ids=["long older", "long newer", "piece of an older", "piece of a newer"])
def test_no_part_of_this_changes(older, newer): assert amended(older, newer) is None


def test_a_change_is_linked_to_what_it_changes():
    stays = "Amends the rule: {} now. Everything else stays as it was."
    assert amended(RULE, note(stays.format("lamps of the loft at six"), "Lamps")) is None  # One word of the title
    assert amended(RULE, note(stays.format("porters, crates and a guard of the yard"), "Lamps")) is None  # None of the title
    assert amended(mem("Opening hours of the loft", "At six.", days_ago=9), note(stays.format("lamps in opening hours of a loft"), "Lamps")) is not None
    assert amended(mem("Opening hours", "At six.", days_ago=9), note(stays.format("lamps in opening hours"), "Lamps")) is None  # Two words in all


def test_an_amendment_of_one_word_of_many_is_none():
    assert amended(RULE, note("An exception to the loft keys.", "May")) is None and amended(RULE, note("An exception to the opening of keys.", "May")) is None


# Blockers

JAM = mem("The lift door jams on floor two",
          "The lift door jams on floor two, so porters carry every crate over the stairs.", namespace="blockers", days_ago=40)
SOLUTIONS = ["The lift door on floor two is repaired, porters carry nothing over the stairs.",
             "The lift door runs again on floor two: no porter on the stairs, no crate.",
             "A hinge arrived, the lift door of floor two shuts, porters carry no crate.",
             "No more errors of the lift door on floor two, porters carry each crate upstairs."]
REPAIRED = "The lift door on floor two {} repaired{}, porters carry no crate over the stairs"
UNSOLVED = {
    "it is not over": REPAIRED.format("is", "") + ", it is still stuck in rain.", "a workaround": REPAIRED.format("is", " with a workaround") + ".",
    "a hedge": REPAIRED.format("might be", "") + ".", "a denial": "Nothing: " + REPAIRED.format("", "") + ".", "a question": REPAIRED.format("is", "") + "?",
    "later it says no": REPAIRED.format("is", "") + ". It didn't last.", "another thing": "The mill is repaired.",
    "no relief": REPAIRED.replace("repaired", "brown").format("is", "") + ".",
    "another title": REPAIRED.format("is", "") + ", see “The lift rope on floor nine tears”.",
    "an option": "## Options\n\n" + REPAIRED.format("is", "") + "."}


def fixed(text, title="News of the floor", namespace="progress"): return solved(JAM, note(text, title, namespace=namespace))


@pytest.mark.parametrize("text", SOLUTIONS)
def test_a_blocker_is_solved(text):
    j = fixed(text)
    assert j and (j.relation, j.kind, j.code) == ("supersede", "full", "E") and j.confidence >= 0.8 and j.span in text


@pytest.mark.parametrize("text", UNSOLVED.values(), ids=UNSOLVED)
def test_a_blocker_is_not_solved(text): assert fixed(text) is None


def test_a_title_closes_a_blocker():
    assert fixed("“The lift door jams on floor two” is closed.", "Stairs").confidence == 0.9
    for text in ("“The lift door jams on floor two” is no news.", "“The lift door jams on floor two” may be closed.",
                 "“The lift door jams on floor two” is not fixed."):
        assert fixed(text, "Stairs") is None


def test_whose_words_count():
    assert fixed(SOLUTIONS[0], namespace="decisions") and solved(LIFT, note(SOLUTIONS[0])) is None
    assert [fixed(SOLUTIONS[0], namespace=n) for n in ("reviews", "retrospective", "research", "blockers")] == [None] * 4
    assert fixed(SOLUTIONS[0], "Resolved: lift door", "blockers") and fixed(SOLUTIONS[0], "Lift door: not fixed yet") is None
    assert fixed("“The lift door jams on floor two” is closed.", "Stairs: not fixed yet") is None


def test_a_title_of_one_word_closes_nothing():
    older = mem("Stairs", "So it is.", namespace="blockers", days_ago=40)
    assert solved(older, note("“On the stairs” is closed.", namespace="progress")) is None


def test_the_sentence_of_relief_speaks_of_the_blocker():
    assert fixed("The mill is repaired. The lift door jams on floor two: porters carry every crate over the stairs.").confidence == 0.6
    assert fixed("The door on floor two is repaired, porters ride.").confidence == 0.6  # Too little in common


def test_relief_late_in_a_text_is_about_something_else(): assert fixed("So it is. " * 8 + SOLUTIONS[0]) is None
def test_little_in_common_is_for_a_person_to_see(): assert fixed("The jams of the door are solved, porters hope.", "Door") is None


@pytest.mark.parametrize("pattern,texts", [
    (_SOLVED, ["fixed", "works again", "up again", "is usable", "went through", "can proceed", "are over", "no more errors", "running fast again",
               "re-issued"]),
    (_UNSOLVED, ["not yet fixed", "still failing", "doesn’t work", "no luck", "partially", "will be fixed", "came back"]),
    (_NOT, ["not", "nobody", "rather than", "wasn't"])], ids=["solved", "unsolved", "not"])
def test_words_of_relief_and_of_denial(pattern, texts): assert [t for t in texts if not pattern.search(t)] == []


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


# Any text

WORDS = ["We", "dropped", "removed", "is gone", "the", "cable lift", "crates", "loft", "everything else", "stays", "as it was", "amends", "only", "fixed",
         "still", "“", "”", "`",
         "(", ":", ",", ". ", "\n", "\n- ", "## Options", "?", "instead of", "and", "in", "2", "ADR-007", "[x](y)", "…", "took", "out", "exception to",
         "door jams on floor two", "日本", "-"]
texts = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join) | st.text(max_size=80)
spaces = st.sampled_from(["decisions", "blockers", "progress", "reviews"])


@pytest.mark.slow
@given(texts, texts, texts, spaces, spaces)
@settings(max_examples=400)
def test_any_text_is_read_and_every_span_is_quoted(title, body, old, ns, other):
    newer = mem(title, body, namespace=ns, days_ago=1)
    for older in (mem(old, body, namespace=other, days_ago=9), LIFT, RULE, JAM):
        for j in (ended(older, newer), amended(older, newer), solved(older, newer)):
            assert j is None or j.relation == "supersede" and 0 < j.confidence < 1 and j.span and (j.span in newer.summary or j.span in newer.content)
        assert isinstance(undecided(newer), str) and isinstance(other_scope(older, newer), str)
    for e in endings(newer): assert e.things and e.text[e.start:e.end].strip() and e.text in (newer.summary, newer.content)
    assert topic_of(newer).title >= topic_of(newer).subject and topic_of(newer).lead <= topic_of(newer).all | content_stems(title + "\n" + body)


@given(texts)
@settings(max_examples=200)
def test_nothing_ends_itself(text):
    m = note(text)
    assert ended(m, m) is None
