"""Changed values, later versions and titles that come again: a twin that is found beside each trap that is not, and no text that is too strange."""
import time
from dataclasses import replace


import pytest
from git_notes_consolidation.supersession import editions
from git_notes_consolidation.text import topics
from git_notes_consolidation.supersession import values
from git_notes_consolidation.supersession import statements as supersession_statements
from git_notes_consolidation.supersession import measures as supersession_measures
from git_notes_consolidation.supersession import restatements as supersession_restatements
from git_notes_consolidation.supersession.values import changed_value
from git_notes_consolidation.text.facts import find_facts
from git_notes_consolidation.supersession.judge import judge_pair, unsure, weigh
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.text.topics import SHORT_BODY, own_sentences
from hypothesis import given, settings
from hypothesis import strategies as st


def old(title, text="", **kw): return mem(title, text, days_ago=90, **kw)


# Two things of one form

@pytest.mark.parametrize(("a", "b", "apart"), [
    (("East: lamps", ""), ("West: lamps", ""), True), (("Lamps", "The hall closes late."), ("Lamps", "The hall opens."), False),
    (("East lamps: 3", ""), ("Lamps in the east: 4", ""), False), (("Lamps", "See `east_wing`."), ("Lamps", "See `lamps`, not `east_wing`."), False)])
def test_two_things_of_one_form(a, b, apart): assert topics.other_subject(old(*a), mem(*b)) == apart


# The same title again

SHELF = old("Order of the map shelf, v2", "Maps lie flat, by region and then by year.")
MAPS = "Maps lie flat, by region, then by scale and then by year."


def again(title="Order of the map shelf, v3", text=MAPS, older=SHELF, similarity=0.8, least=0.5, **kw):
    j = editions.same_title(older, mem(title, text, **kw), similarity, least)
    return j.confidence if j else None


def test_a_title_that_comes_again_replaces_the_first():
    assert again() == again("Order of the map shelf (revised)") == again("The new order of the map shelf") == again("ADR-009: Order of the map shelf") == 0.9
    j = editions.same_title(SHELF, mem("Order of the map shelf, v3", MAPS), 0.8, 0.5)
    assert (j.relation, j.kind, j.code, j.span) == ("supersede", "full", "T", "Order of the map shelf, v3")


@pytest.mark.parametrize("title", ["Order of the map shelf, v1", "Order of the atlas shelf, v3", "… order of the map shelf, v3", "Order of the map shelf, v3 …",
                                   "Order of the map shelf (OCR)"])
def test_another_title_or_an_earlier_edition_or_a_piece_of_one_does_not(title): assert again(title) is None


def test_initials_of_the_title_are_no_part_of_it():
    assert again("Map room rules (MRR)", older=old("Map room rules", "Flat.")) == 0.9


@pytest.mark.parametrize("changed", [
    {"older": old("Order of shelves", "Maps lie flat."), "title": "Order of shelves", "text": "Globes stand upright."},
    {"older": old("Weekly report of the map room", "Maps."), "title": "Weekly report of the map room"}])
def test_a_title_alone_is_a_guess(changed): assert again(**changed) == 0.6


def test_without_a_similarity_the_lexical_one_decides():
    assert again(similarity=None) == 0.9 and again(text="Whoever comes asks Ida at the desk, or rings twice and waits in the hall for the guard.",
        similarity=None) == 0.6


def test_a_long_text_discusses_and_decides(): assert again(text=MAPS + " Nothing is decided. " + "Maps lie flat. " * 120) == 0.9


# Versions

CATALOGUE = old("The catalogue runs on Solr 8", "One core for each branch, with German stems.")


def upgraded(title, text="", older=CATALOGUE, **kw): return editions.upgraded(older, mem(title, text, **kw))


@pytest.mark.parametrize(("title", "text", "span"), [
    ("The catalogue runs on Solr 9", "", "Solr 9"), ("Catalogue upgraded to Solr 9.4", "", "Solr 9.4"), ("Catalogue: solr v9", "", "solr v9"),
    ("New cores", "The catalogue moved to `solr` 9, one core a branch.", "`solr` 9"), ("Catalogue of the branches", "Solr is now 9.", "Solr is now 9"),
    ("The catalogue runs on Solr 9", "Goods per shop.", "Solr 9")])
def test_a_later_version_is_found(title, text, span):
    j = upgraded(title, text)
    assert (j.relation, j.kind, j.code, j.span) == ("supersede", "full", "V", span) and j.confidence >= 0.8


@pytest.mark.parametrize(("title", "text"), [
    ("The catalogue runs on Solr 7", ""), ("The catalogue runs on Solr 8.11", ""),  # Not later
    ("A word on what the reading room plans next", "The catalogue could be on Solr 9."), ("A word on what the reading room does",
    "The catalogue also runs on Solr 9."),
    ("Solr 9", "The catalogue is also tested on Solr 9."), ("A word on what the reading room has read", "Solr 9 has better stems for a catalogue."),
    ("Invoices", "The shop is on Solr 9."), ("… catalogue runs on Solr 9", ""), ("The catalogue runs on Solr 9", "One core each. " * 120),
    ("Catalogue tests", "It now runs on phase 9 of the core."), ("Catalogue runs on Solr 9 days", ""), ("Catalogue runs on Solr 9%", ""),
    ("Catalogue runs on Solr 2027", ""), ("Catalogue runs on SOLR-9.1", ""), ("Catalogue", "Solr is now 9."),
    ("A word on the catalogue of all our branches",
    "Someone proposed to have the core of each branch on Solr 9."),
    ("A word on the catalogue of all our branches", "When each core is on Solr 9, we rest.")])
def test_no_later_version(title, text): assert upgraded(title, text) is None


def test_the_same_product_elsewhere_is_another():
    assert upgraded("Loans of the branches", "They moved to Solr 9, one core each.") is None
    older = old("Solr 8 for the catalogue", "One core each.")
    assert upgraded("Solr 9 for the shop", "One core each.", older) is None and upgraded("Solr 9 for the catalogue", "One core each.", older)
    assert upgraded("The archive's branches", "The core for each branch is now on Solr 9, with stems.") is None
    assert upgraded("Stems", "Every core of the catalogue, for each branch, is on Solr 9.")


def test_the_number_of_a_document_is_no_version():
    older = old("TIDE-41: Order of maps", "TIDE 41 is for the branches.")
    assert upgraded("TIDE-42: Order of maps", "TIDE 42 is now for the branches.", older) is None


def test_what_an_older_text_only_mentions_is_not_pinned():
    older = old("Catalogue of the branches", "One core for each. German stems. Later perhaps more. Somebody read of Solr 8.")
    assert upgraded("Catalogue of the branches on Solr 9", "", older) is None


@pytest.mark.parametrize("text", ["task 9", "on port 9", "the 9", "batch 9", "timeout 9", "RFC 9", "use 9", "wave-9", "wave-b 9", "blue-wave 9",
    "since 09", "q9", "9"])
def test_most_words_before_a_number_name_no_product(text): assert not list(editions.versions(text))


# One changed value

LOAN = old("Loans of picture books", "A picture book may be kept for 14 days, and then a letter is sent.")
LONGER = "A picture book may be kept for 21 days, and then a letter is sent."


def value(title="Loans of picture books now", text=LONGER, older=LOAN, **kw):
    j = values.changed_value(older, mem(title, text, **kw))
    return j.confidence if j else None


def test_one_changed_value_is_found():
    j = values.changed_value(LOAN, mem("Loans of picture books now", LONGER))
    assert (j.relation, j.kind, j.code, j.confidence, j.span) == ("supersede", "full", "V", 0.9, LONGER)
    assert value(text="A picture book may now be kept for 3 weeks, and then a letter is sent.") == 0.9
    assert value(text="A picture book may be kept for 21 days; children asked for it.") == 0.9


@pytest.mark.parametrize("text", [
    "A picture book may be kept for two weeks, and then a letter is sent.", "A picture book may be kept for 14 days.",  # The same value
    "A picture book may not be kept for 21 days, and then a letter is sent.", "A comic may be kept for 21 days, and then a letter is sent.",
    "A picture book may be kept for 21 MB, and then a letter is sent.", "A picture book may be kept for 21 days?", "Perhaps " + LONGER,
    "A picture book and 3 pencils may be kept for 21 days, and then a letter is sent.",
    "We propose: a picture book may be kept for 21 days, and then a letter is sent."])
def test_no_changed_value(text): assert value(text=text) is None


@pytest.mark.parametrize("changed", [
    {"namespace": "reviews"}, {"title": "Loans of picture books, measured"}, {"title": "… loans of picture books"}, {"text": LONGER + "\n" + "x" * SHORT_BODY},
    {"older": old("Loans of picture books", LOAN.content, namespace="retrospective")}, {"title": "Adults: loans", "older": old("Children: loans",
    LOAN.content)}])
def test_what_is_no_rule_or_another_thing_changes_none(changed): assert value(**changed) is None


def test_a_report_outside_of_the_stating_namespaces_needs_its_title_and_a_state():
    lamp = old("Lamps of the reading room", "The lamps of the reading room burn 9 hours a day.", namespace="learnings")
    def burns(title, verb): return value(title, f"The lamps of the reading room {verb} 11 hours a day.", lamp, namespace="learnings")
    assert burns("Lamps of the reading room", "burn") is None
    state = old(lamp.summary, "The lamps of the reading room need 9 hours a day.", namespace="learnings")
    assert value(lamp.summary, "The lamps of the reading room need 11 hours a day.", state, namespace="learnings") == 0.9
    assert value("Reading", "The lamps of the reading room need 11 hours a day.", state, namespace="learnings") is None


def test_a_bound_and_what_was_seen():
    limit = old("Letters to readers", "A letter to a reader of picture books goes out within at most 5 days.")
    assert value("Letters to readers", "A letter to a reader of picture books goes out within 3 days.", limit) is None
    assert value("Letters to readers", "A letter to a reader of picture books goes out within at most 3 days.", limit) == 0.9
    limit = old("Letters to readers", "A letter to a reader of picture books takes 5 days at most.")
    assert value("Letters to readers", "A letter to a reader of picture books takes 3 days.", limit) is None


def test_what_parts_early_or_changes_twice_or_is_a_version():
    def state(text): return next(x for x in supersession_statements.statements(mem(text)))
    assert supersession_statements.compared(state("Wait 5 s on the stairs"), state("Wait 8 s when it rains")) is None
    text = "The brown oak shelf by the stairs {} keeps {} old maps for the {} readers of Ida."
    assert value("Two", text.format("of hall 3", 40, "late"), old("One", text.format("of hall 5", 30, "late"))) is None
    assert value("Two", text.format("of v3", 40, "late"), old("One", text.format("of v5", 40, "late"))) == 0.6  # As a name
    assert value("One old shelf", text.format("of v3", 40, "late"), old("One old shelf", text.format("of v5", 40, "late"))) == 0.9


def test_two_places_with_a_value_each():
    east, west = "The door of the reading room closes at 6 s in the east wing.", "The door of the reading room closes at 9 s in the west tower."
    assert value("Doors of the reading room", west, old("Doors of the reading room", east)) is None
    more = "\n\nA reader of picture books at the desk waits {} minutes."
    assert value("Doors of the reading room", west + more.format(9), old("Doors of the reading room", east + more.format(6))) == 0.6


def test_how_much_must_be_the_same():
    def pair(n, title=""):
        words = " ".join("brown folio spine board hinge clasp".split()[:n])
        return old("One thing" + title, f"Mend the {words} after 5 days"), "Another matter" + title, f"Mend the {words} after 8 days"
    def sure(n, title=""): o, t, x = pair(n, title); return value(t, x, o)
    assert sure(5) == 0.9 and sure(3) is None and sure(3, " of folios and boards") == 0.9
    stays = old("One", "The brown folio spine is mended after 5 days."), "Two", "The brown folio spine is mended after 8 days."
    assert value(stays[1], stays[2], stays[0]) == 0.9


def test_names_and_bare_counts_in_titles_are_guesses():
    assert value("Keep 5 copies of each map", "", old("Keep 3 copies of each map")) == 0.6
    assert value("Keep maps for 5 days", "", old("Keep maps for 3 days")) == 0.9
    assert value("Where it is", "The list of all maps is kept in maps_b for the desk.", old("Where it is",
        "The list of all maps is kept in maps_a for the desk.")) == 0.6


def swap(a, b, title="Where the index lives", tail=""):
    return value(title, f"The index of old maps is kept in {b} for a year.{tail}", old("Where the index lives",
        f"The index of old maps is kept in {a} for a year."))


def test_a_name_in_the_place_of_another():
    assert swap("Solr", "Elastic") == 0.85 and swap("Solr", "Elastic", "Storage") == 0.6
    assert swap("peace", "quiet") is None and swap("Cluster", "Server") is None and swap("Solr", "the big new Elastic") is None and swap("Solr", "Elastic",
        tail=" Solr stays for the shop.") is None
    assert values.changed_value(old("Index", "Maps in Solr"), mem("Index", "Maps in Elastic")) is None  # Two words around it
    assert value("Index", "The index of old maps went to Elastic for a year.", old("Index", "The index of old maps went to Solr for a year.")) is None


# A title with a value, a setting set anew, a former value

def test_a_title_with_a_value():
    older = old("Loans last 14 days", "Since the branch opened.")
    def j(title, text="So be it.", **kw): return values.title_value(older, mem(title, text, **kw))
    assert (j("Loans last 21 days").confidence, j("Loans last 21 days").code) == (0.8, "V") and j("Loans last days", "Now 21 days.")
    for title, text in (("Loans last 14 days", ""), ("Loans last 21 days", "Not 14 days."), ("Loans last 21 days?", ""), ("Loans might last 21 days", ""),
                        ("Loans last days, 21 MB", ""), ("… loans last 21 days", ""), ("Loans of maps last 21 days", "")): assert j(title, text) is None
    assert values.title_value(old("Loans may last 14 days"), mem("Loans last 9 days")) is None
    assert values.title_value(old("Loans last 14 days", "Maps."), mem("Loans last 21 days", "Globes.")) is None
    assert values.title_value(old("Loans last 14 days for 3 hours"), mem("Loans last 21 days for hours")) is None


FINE = old("The desk's `grace_days`", "A late reader of the branch has 3 days before a fine (`grace_days`).")


@pytest.mark.parametrize(("text", "found"), [
    ("`grace_days` was raised: a late reader of the branch has 5 days before a fine.", True),
    ("`grace_days` was raised.", False), ("We may raise `grace_days`: a late reader of the branch has perhaps 5 days before a fine.", False),
    ("`grace_days` was raised to 5 days.", True),
    ("`grace_days` was raised. Shops still have 5 days for a late reader before a fine.", False)])
def test_a_setting_set_anew(text, found): assert bool(values.setting_value(FINE, mem("Fines of the desk", text))) == found


def test_a_setting_of_another_thing():
    text = "`grace_days` was raised: a late reader of the branch has 5 days before a fine."
    assert values.setting_value(FINE, mem("Fines", text, namespace="learnings")) is None and values.setting_value(FINE, mem("… fines", text)) is None
    assert (values.setting_value(FINE, mem("Fines, measured", text)) is None
            and values.setting_value(FINE, mem("Limits", "`grace_days` is now 120 hours.")) is None)
    assert values.setting_value(old(FINE.summary, FINE.content + " After 9 weeks it is lost."), mem("Fines", text)) is None
    assert values.setting_value(old(FINE.summary, FINE.content.replace("has", "has at most")), mem("Fines", text)) is None
    assert values.setting_value(FINE, mem("Fines", "If a late reader of the branch has 5 days before a fine, `grace_days` was raised.")) is None


def told(title, text, older=LOAN, **kw):
    j, other = supersession_measures.former_value(older, mem(title, text, **kw))
    return (j.confidence if j else None), other


@pytest.mark.parametrize("text", ["A picture book is kept 21 days instead of 14 days.", "Picture book: kept 14 days → 21 days.",
    "The loan of a picture book goes from 14 to 21 days.",
                                  "A picture book is kept for 21 days, no longer two weeks.", "A loan of a picture book was 14 days and is 21 days."])
def test_a_former_value_ties_two_memories(text): assert told("Loans", text) == (0.85, "")


@pytest.mark.parametrize(("title", "text", "kw"), [
    ("Loans", "A picture book may be kept 21 days.", {}), ("Loans", "The loan of a picture book was 14 days.", {}), ("Loans",
    "A picture book is kept no longer than 14 days.", {}), ("Fees", "A fee is due after 21 days, not 14 days.", {}),
    ("Loans", "A picture book might be kept 21 days instead of 14 days.", {}), ("Loans", "A picture book was kept 21 days on average instead of 14 days.", {}),
    ("Loans", "A picture book is kept 21 days instead of 14 days.", {"namespace": "reviews"})])
def test_no_former_value(title, text, kw): assert told(title, text, **kw)[0] is None


def test_what_stands_behind_an_arrow_is_new():
    younger = old("Loans of picture books", "A picture book may be kept for 21 days.")
    assert told("Loans", "Picture book: kept 14 days → 21 days.", younger)[0] is None


def test_a_former_value_that_the_older_one_does_not_have_is_of_another_thing():
    text = "A picture book may be kept for 21 days instead of 9 days, and then a letter is sent."
    assert told("Loans of picture books", text) == (None, "it speaks of another value, 9 days")
    assert told("Loans of picture books", text.replace("instead of 9 days", "last year not 9 days"))[1] == ""
    assert judge_pair(LOAN, mem("Loans of picture books", text)).relation == "coexist"


def test_a_count_that_is_called_former_needs_a_namespace_that_states():
    older, text = old("Desks of the branch", "The branch has 14 desks for its readers."), "The branch has 21 desks for its readers, not 14."
    assert told("Desks", text, older)[0] and told("Desks", text, older, namespace="learnings")[0] is None


# The same in other words

RULE = old("Rooms are lit until 22:00", "The hall has 40 lamps of 15 W. A guard checks `lamp_plan` every 90 minutes.")
SAME = "In the hall 40 lamps of 15 W are lit; each 1.5 hours a guard checks `lamp_plan`."


def same(text=SAME, title="Rooms are lit in the hall", older=RULE, **kw):
    j = supersession_restatements.restated(older, mem(title, text), **kw)
    return j.confidence if j else None


def test_the_same_values_in_other_words():
    j = supersession_restatements.restated(RULE, mem("Rooms are lit", SAME))
    assert (j.relation, j.kind, j.code, j.span, j.confidence) == ("duplicate", None, "N", "Rooms are lit", 0.85)
    assert same(RULE.content, RULE.summary + " now") == 0.9


@pytest.mark.parametrize(("text", "found"), [
    (SAME.replace("40", "50"), None), (SAME.replace("`lamp_plan`", "`door_plan`"), None), (SAME.replace("1.5", "2.5"), None),
    ("A guard checks `lamp_plan`.", None),
    (SAME.replace("guard", "Securitas guard"), 0.6), (SAME.replace("are lit", "are not lit"), 0.6), (SAME + " " * SHORT_BODY, None),
    (SAME + " It weighs 77 kg.", None)])
def test_near_identical_but_for_one_thing(text, found): assert same(text) == found


def test_a_piece_of_a_reply_or_a_lone_not_is_a_guess():
    assert (same(), same(title="… as an old friend of the late director told me then")) == (0.85, None)
    assert same("A choir broke `lamp_plan` in a concert of 40 songs: 15 W of noise, and after 90 minutes sleep came, late but sweet.", "Night music") is None
    older = old("The hall is lit", "For 90 minutes in the evening.")
    assert (same("In the evening, for 90 minutes.", "The hall is lit", older), same("In the evening, for 90 minutes, not before.", "The hall is lit",
        older)) == (0.9, 0.6)


def test_no_likeness_hides_a_changed_value():
    for text in (SAME.replace("40", "50"), SAME.replace("`lamp_plan`", "`door_plan`")): assert same(text, similarity=0.999, near=0.85) is None


def test_an_embedder_may_propose_texts_without_values():
    a, b = old("Ask the guard at the gate", "Whoever is late rings there."), ("Late readers ring at the gate", "The guard is asked by them.")
    def j(**kw): return same(b[1], b[0], a, **kw)
    assert (j(), j(similarity=0.9, near=0.85), j(similarity=0.8, near=0.85), j(similarity=0.9)) == (None, 0.85, None, None)
    assert same("The guard is never asked.", b[0], a, similarity=0.9, near=0.85) is None
    assert same("The Securitas guard is asked by them.", "Late readers ring at the gate", a, similarity=0.9, near=0.85) is None


def test_a_blocker_and_its_end_say_the_same_and_are_not():
    stuck = old("Lift stuck on floor 12", "The lift waits for `door_sensor` on floor 12.", namespace="blockers")
    assert same("The lift waits no more for `door_sensor` on floor 12.", "Lift runs from floor 12", stuck) is None


def test_two_of_a_kind_are_no_repeat():
    assert same("Polls `bus_7` each 30 s.", "East: 15 W", old("West: 15 W", "Polls `bus_7` each 30 s.")) is None
    assert same("Each 30 s polls `bus_7`.", "East: 15 W", old("West: 15 W", "Polls `bus_7` each 30 s.")) is None


# Statements


PIECES = ["A berth", " holds ", "1,000 t", ", ", "5 s", ": ", " – ", "May 3, 2026", "(", ")", "`a, b`", "v1.2", "not ", "\n", "\n\n", "- ", "from ", "→ ",
    "12", " of ", "src/a.py", "é", "“", "”", ". "]


@pytest.mark.slow
@given(st.lists(st.sampled_from(PIECES), max_size=20), st.lists(st.sampled_from(PIECES), max_size=6))
@settings(max_examples=300)
def test_a_statement_is_a_piece_of_its_memory_with_the_values_that_stand_there(body, title):
    m = mem("".join(title), "".join(body))
    for x in supersession_statements.statements(m):
        assert x.text in m.summary or x.text in m.content
        assert all(f.kind != "negation" and x.text[f.start:f.end].strip() and 0 <= f.start < f.end <= len(x.text) for f in x.values)
        assert x.values == tuple(p for p in x.parts if not isinstance(p, str))


@pytest.mark.slow
@given(st.lists(st.sampled_from([p for p in PIECES if p not in ("\n", "\n\n", "- ", ". ")]), max_size=14))
@settings(max_examples=300)
def test_a_sentence_has_the_values_that_it_would_have_alone(pieces):
    m = mem("Title", "Alone " + "".join(pieces).strip())
    for s in own_sentences(m)[1:]:
        whole = next((x for x in supersession_statements.statements(m) if x.text == s.line), None)
        assert whole is None or [f.value for f in whole.values] == [f.value for f in find_facts(s.line) if f.kind != "negation"]


@pytest.mark.slow
@given(st.text(max_size=60), st.text(max_size=200), st.text(max_size=60), st.text(max_size=200), st.sampled_from([None, 0.0, 0.99]))
@settings(max_examples=300)
def test_nothing_raises_and_every_span_is_quoted(title, text, title2, text2, similarity):
    o, n = old(title, text), mem(title2, text2)
    for a, b in ((o, n), (n, o), (o, mem(title, text2)), (o, mem(title2, text))):
        j = weigh(a, b, similarity=similarity, near=0.85)
        assert j.span is None or j.span in b.summary or j.span in b.content
        assert a.timestamp <= b.timestamp or j.relation == "coexist"


@given(st.sampled_from(["Solr 8", "Solr 9", "14 days", "21 days", "`grace_days`", "3"]), st.sampled_from(["Solr 9", "21 days",
    "`grace_days` was raised to 5 days", "7"]),
       st.sampled_from(["A picture book is kept for {} at the desk.", "The catalogue runs on {} now.", "{}",
           "Readers of the branch have {} instead of 14 days."]))
def test_an_older_text_changes_no_newer_one(a, b, template):
    one, two = old("Catalogue of the branch", template.format(a)), mem("Catalogue of the branch", template.format(b))
    assert weigh(two, one).relation == "coexist"
    j = weigh(one, two)
    assert not unsure(j) or judge_pair(one, two).reason.startswith("unsure")


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("unit", ["a ", "A-", "ADR-", "v1.", "1.", "1,", "5 s ", "`a` ", "from 5 to ", "→ 5 ", ", ", "Solr 8 ", "solr-", "on 1 ", "(A",
    ": ", "é", "not ", "is at ", "a.b/", "\n- 5 s"])
def test_no_text_is_too_long(unit):
    for n in (SHORT_BODY, 100_000):
        text, start = unit * (n // len(unit)), time.process_time()
        o, m = old("Keep " + unit * 30, text), mem("Keep " + unit * 31, text + " 7")
        for f in (editions.upgraded, values.changed_value, values.title_value, values.setting_value, supersession_measures.former_value,
                  supersession_restatements.restated, topics.other_subject, editions.new_edition):
            f(o, m)
        assert time.process_time() - start < 3


APART = [("Upload timeout is 30 s", "Download timeout is 30 s"), ("Reads time out after 30 s", "Writes time out after 30 s"),
         ("Retry failed uploads 5 times within 2 hours", "Retry failed downloads 5 times within 2 hours"),
         ("Enable caching for 30 s in the API gateway", "Disable caching for 30 s in the API gateway"),
         ("Cache search results for 60 s", "Do not cache search results for 60 s"),
         ("Alert when disk use is above 80 %", "Alert when memory use is above 80 %"),
         ("Alert when disk use is above 80 %", "Alert when disk use is below 80 %"),
         ("Minimum password length is 12 characters", "Maximum password length is 12 characters"),
         ("The upload endpoint in `api/files.py` allows 20 MB", "The avatar endpoint in `api/files.py` allows 20 MB"),
         ("Rate limit of 100 requests per minute for anonymous users", "Rate limit of 100 requests per minute for partners"),
         ("p95 latency of search is 300 ms", "p95 latency of checkout is 300 ms")]


@pytest.mark.parametrize("cosine", [None, 0.97])
@pytest.mark.parametrize("titled", [True, False])
@pytest.mark.parametrize("pair", APART, ids=lambda p: p[1])
def test_two_things_with_one_value_are_no_repeat(pair, titled, cosine):
    "In the titles, or in the bodies under titles that tell nothing; however close an embedder finds them."
    a, b = (mem(t, days_ago=d) if titled else mem(f"Note {d}", t, days_ago=d) for t, d in zip(pair, (9, 2)))
    for older, newer in ((a, b), (replace(b, timestamp=a.timestamp), replace(a, timestamp=b.timestamp))):
        assert judge_pair(older, newer, similarity=cosine, near=cosine and 0.9).relation != "duplicate"


def test_a_number_that_tells_which_one_is_no_value():
    for what in ("Phase {}", "Task {}", "Step {}", "Milestone {}"):
        texts = [f"{what.format(n)} of the rollout is now complete and all services have been moved" for n in (2, 4)]
        assert changed_value(*(mem("The rollout goes on", t, namespace="patterns", days_ago=d) for t, d in zip(texts, (9, 2)))) is None


def test_pieces_are_repeats_only_of_the_same_text():
    text = "...values / 2. Check for the old pattern `refs/notes/a:refs/notes/a` / 3. If it is found, remove it / 4. Add the new pattern `refs/notes/b`"
    a, longer = mem("...values", text + "...", days_ago=9), mem("...pattern", text + " / 5. Return", days_ago=2)
    other = mem("...pattern", text.replace("remove it", "leave it"), days_ago=2)
    assert judge_pair(a, longer).relation == "duplicate" and judge_pair(a, other).relation == "coexist"


def test_an_event_is_not_outdated_by_the_next_one():
    pair = [mem("Load test", f"The scrape cycle took a wait of {n} seconds, set by `scrape_wait` now", namespace="progress", days_ago=d) for n,
            d in ((17, 9), (40, 2))]
    assert judge_pair(*pair).relation == "coexist"


TWO = [("Upload timeout is 30 s", "Download timeout is 60 s"),
       ("Failed uploads are retried 5 times within 2 hours", "Failed downloads are retried 5 times within 4 hours"),
       ("Alert when disk use is above 80 %", "Alert when memory use is above 90 %"),
       ("Logs of the gateway are kept for 30 days", "Logs of the worker are kept for 14 days"),
       ("Rate limit of 100 requests per minute for anonymous users", "Rate limit of 500 requests per minute for partners"),
       ("Every invoice is kept for ten years in the archive bucket", "Every delivery note is kept for six years in the archive bucket"),
       ("Workers of the mail queue stop after 20 minutes", "Workers of the image queue stop after 5 minutes")]


@pytest.mark.parametrize("titled", [True, False])
@pytest.mark.parametrize("pair", TWO, ids=lambda p: p[1])
def test_two_things_with_two_values_replace_nothing(pair, titled):
    "Under one title too, if each text is that short."
    for one, other in (pair, pair[::-1]):
        a, b = (mem(t, days_ago=d) if titled else mem("Limits of the service", t, days_ago=d) for t, d in ((one, 9), (other, 2)))
        assert judge_pair(a, b).relation == "coexist"
    twin = mem("Limits of the service", pair[0], days_ago=9), mem("Limits of the service", pair[0].replace("30", "45").replace("20", "45"), days_ago=2)
    assert twin[0].content == twin[1].content or judge_pair(*twin).relation == "supersede"
