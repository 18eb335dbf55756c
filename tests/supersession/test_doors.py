"""What hides without a word of replacement: each door with twins that only its guard holds back, and what is asked instead."""
import gc
import time
from dataclasses import replace

import pytest
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.supersession import editions
from git_notes_consolidation.supersession.editions import changed_amount, exact_repeat, resolution_of
from git_notes_consolidation.supersession.judge import judge_pair, unsure, weigh
from git_notes_consolidation.supersession.questions import likely
from git_notes_consolidation.text.topics import SHORT_BODY
from hypothesis import given, settings, strategies as st
from helpers import rows_of

ROWS = rows_of(__name__)


def old(title, text="", **kw): return mem(title, text, days_ago=90, **kw)
def said(a, b, **kw): return weigh(old(a, **kw), mem(b, **kw))


# The same words

@pytest.mark.parametrize("a, b", ROWS["a symbol is a word"])
def test_a_symbol_is_a_word(a, b):
    "What is no repeat hides nothing, either way."
    for x, y in ((a, b), (b, a)): assert exact_repeat(old(x), mem(y)) is None
    assert exact_repeat(old(a), mem(a)) and exact_repeat(old(b), mem(b))


OPPOSITES = ROWS["opposites"]


@pytest.mark.parametrize("pair", OPPOSITES, ids=lambda p: p[1])
def test_the_opposite_is_no_repeat_and_hides_nothing(pair):
    for a, b in (pair, pair[::-1]): assert judge_pair(old(a), mem(b)).relation == "coexist"


@pytest.mark.parametrize(("a", "b"), [("Held for 90 s", "held for ninety seconds."), ("The cap is 1,000 rows", "The cap is 1000 rows"),
                                      ("Cafe\u0301 is closed", "Caf\u00e9 is closed"), ("关闭缓存。", "关闭缓存"), ("Keep `a_b`", "Keep a_b!")])
def test_only_the_writing_differs(a, b): assert exact_repeat(old(a), mem(b)).relation == "duplicate"


APART = ROWS["apart"]


@pytest.mark.parametrize("titled", [True, False])
@pytest.mark.parametrize("pair", APART, ids=lambda p: p[1])
def test_two_things_with_one_value_are_no_repeat(pair, titled):
    "In the titles, or in the bodies under titles that tell nothing."
    a, b = (mem(t, days_ago=d) if titled else mem(f"Note {d}", t, days_ago=d) for t, d in zip(pair, (9, 2)))
    for older, newer in ((a, b), (replace(b, timestamp=a.timestamp), replace(a, timestamp=b.timestamp))):
        assert judge_pair(older, newer, similarity=0.97).relation != "duplicate"


# One slot

BROTHERS = ROWS["brothers"]


@pytest.mark.parametrize("pair", BROTHERS, ids=lambda p: p[1])
def test_a_brother_replaces_nothing(pair): assert judge_pair(old(pair[0]), mem(pair[1])).relation == "coexist"


TWO = ROWS["two"]


@pytest.mark.parametrize("titled", [True, False])
@pytest.mark.parametrize("pair", TWO, ids=lambda p: p[1])
def test_two_things_with_two_values_replace_nothing(pair, titled):
    for one, other in (pair, pair[::-1]):
        a, b = (mem(t, days_ago=d) if titled else mem(f"Limits of part {d}", t, days_ago=d) for t, d in ((one, 9), (other, 2)))
        assert judge_pair(a, b).relation == "coexist"


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


@pytest.mark.parametrize("title", ["Order of the map shelf, v1", "Order of the atlas shelf, v3", "Order of the map shelf, v3 …",
                                   "Order of the map shelf (OCR)"])
def test_another_title_or_an_earlier_edition_or_a_piece_of_one_does_not(title): assert again(title) is None


# Blockers

JAM = old("The parcel lift jams on floor two (LIFT-88)", "Nothing goes up.", namespace="blockers")


@pytest.mark.parametrize(("text", "found"), ROWS["a resolution names its blocker"])
def test_a_resolution_names_its_blocker(text, found): assert bool(resolution_of(JAM, mem(text, namespace="progress"))) == found


# What is asked

@pytest.mark.parametrize(("a", "b", "relation", "kind"), ROWS["a question proposes the right relation"])
def test_a_question_proposes_the_right_relation(a, b, relation, kind):
    j = said(a, b)
    assert unsure(j) and (j.relation, j.kind) == (relation, kind)


# Any text

@pytest.mark.slow
@given(st.text(max_size=60), st.text(max_size=200), st.text(max_size=60), st.text(max_size=200), st.sampled_from([None, 0.0, 0.99]))
@settings(max_examples=300)
def test_nothing_raises_and_every_span_is_quoted(title, text, title2, text2, similarity):
    o, n = old(title, text), mem(title2, text2)
    for a, b in ((o, n), (n, o), (o, mem(title, text2)), (o, mem(title2, text))):
        j = weigh(a, b, similarity=similarity)
        assert j.span is None or j.span in b.summary or j.span in b.content
        assert a.timestamp <= b.timestamp or j.relation == "coexist"
        assert j.confidence >= 0.6 or j.relation == "coexist"


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("unit", ["a ", "A-", "ADR-", "v1.", "1.", "1,", "5 s ", "`a` ", ", ", "solr-", "(A", ": ", "é", "not ", "is at ", "a.b/", "\n- 5 s",
                                  "web-1 ", "#1 ", "now "])
def test_no_text_is_too_long(unit):
    "Twice the text takes twice the time; four times would be its square."
    def took(n):
        text, start = unit * (n // len(unit)), time.process_time()
        o, m = old("Keep " + unit * 30, text), mem("Keep " + unit * 31, text + " 7")
        for f in (exact_repeat, changed_amount, likely, resolution_of, editions.new_edition): f(o, m)
        return time.process_time() - start
    gc.collect()
    gc.freeze()  # What other tests have left is not gone through again and again
    times = [took(n) for n in (SHORT_BODY, 50_000, 100_000)]
    gc.unfreeze()
    assert times[2] < 3 * times[1] + 0.5 and times[2] < 20, times


@pytest.mark.parametrize("namespace", ["decisions", "learnings"])
@pytest.mark.parametrize(("a", "b", "proposed"), ROWS["a yes makes the relation that holds"])
def test_a_yes_makes_the_relation_that_holds(a, b, proposed, namespace):
    j = likely(old(a, namespace=namespace), mem(b, namespace=namespace))
    assert (j and [j.relation, j.kind]) == proposed


REPORT = "The nightly report for the board goes out by Ada in March within 9 s"


@pytest.mark.parametrize(("was", "now"), [("9 s", "2 s"), ("Ada", "Bo"), ("March", "May"), ("by Ada", "by nobody"), ("the board", "the staff")])
@pytest.mark.parametrize("namespace", ["decisions", "learnings", "patterns"])
def test_nothing_that_differs_is_asked_about_as_the_same(was, now, namespace):
    j = likely(old(REPORT, namespace=namespace), mem(REPORT.replace(was, now), namespace=namespace))
    assert j is None or j.relation == "supersede"
