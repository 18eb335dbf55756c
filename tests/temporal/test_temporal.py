"Time expressions, whatever the text and the year."
import importlib.util
import json
import re
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
import yaml
from git_notes_consolidation.temporal.calendar import (
    CYCLES, DAYS_OF, MONTHS_OF, civil, floor, index, masked, nearest, period, shifted, start)
from git_notes_consolidation.temporal.resolve import find_references
from git_notes_consolidation.temporal.lexicon import _WORDS
from helpers import FIXTURES, rows_of
from hypothesis import given, settings, strategies as st

ROWS = rows_of(__name__)
MONTH_NAMES = "January February March April May June July August September October November December".split()

_DATED = re.compile(
    r"(?P<y>\d{4})(?:-(?:(?P<m>\d\d)(?:-(?P<d>\d\d)(?:T(?:(?P<p>MO|AF|EV|NI)|(?P<t>\d\d(?::\d\d){0,"
    r"2})))?)?"
    r"|W(?P<w>\d\d)(?P<we>-WE)?|Q(?P<q>[1-4])|H(?P<h>[12])|(?P<s>SP|SU|FA|WI)))?|"
    r"(?P<dec>\d{3})|(?P<c>\d\d)")
_OTHER = re.compile(
    r"(?:PAST|PRESENT|FUTURE)_REF|P(?:\d+(?:\.\d+)?|X)(?:D|W|M|Y|Q|WE|DE|CE|SE)(?:\d+[DWM])?|"
    r"PT(?:\d+(?:\.\d+)?|X)[HMS](?:\d+[MS])?"
    r"|T\d\d(?::\d\d){0,2}|T(?:MO|AF|EV|NI)|XXXX-(?:WXX-(?:[1-7]|WE|WD)|XX-XX)(?:T\d\d:\d\d)?"
    r"|XXXX-(?:\d\d|SP|SU|FA|"
    r"WI)|FY\d{4,5}(?:-Q[1-4])?")


def is_value(text): return bool(_OTHER.fullmatch(text) or _DATED.fullmatch(text))


GRAINS = [*DAYS_OF, *MONTHS_OF]
DAYS = st.integers(-10**7, 10**7)
ZONES = [timezone.utc, timezone(timedelta(hours=-11)), timezone(timedelta(hours=14, minutes=15)), timezone(timedelta(seconds=1))]
MOMENTS = st.datetimes(timezones=st.one_of(st.none(), st.sampled_from(ZONES)))
EDGES = st.sampled_from([datetime.min, datetime.max, datetime(1, 1, 2), datetime(9999, 12, 30), datetime(2024, 2, 29, 23, 59),
                         datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12)))])
PIECES = sorted(_WORDS) + ["2024-03-12", "12/31/9999", "1.1.2000", "0001-01-01", "9999-12-31", "10:30", "5pm", "11th", "31st", "2020", "3d", "FY24",
                           "Q3 2024", "1990s", "00s", "W12",
                           "10000", "99999999999", "0", "we", "will", "said", "met", ".", ",", "'s", "\n\n", "(", "`", '"', "foo_bar", "٣", "²", "İ", "ﬁ", "\0"]
WORDY = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)


@given(DAYS, st.sampled_from(GRAINS))
def test_a_day_is_in_the_period_that_floors_it(day, grain):
    i = index(day, grain)
    assert start(i, grain) <= day + 6 * (grain == "weekend") and day < start(i + 1, grain)
    assert index(start(i, grain), grain) == i and floor(start(i, grain), grain) == floor(day, grain)
    assert period(i, grain).end <= period(i + 1, grain).start


@given(DAYS, st.integers(-5000, 5000), st.sampled_from(GRAINS))
def test_a_shift_clamps_and_never_overflows_its_month(day, n, grain):
    there = shifted(day, n, grain)
    if grain in DAYS_OF: assert there == day + n * DAYS_OF[grain]
    else:
        assert index(there, "month") == index(day, "month") + n * MONTHS_OF[grain] and civil(there)[2] <= civil(day)[2]
        assert civil(there)[2] == civil(day)[2] or index(there + 1, "month") > index(there, "month")
    assert shifted(day, 0, grain) == day


@given(DAYS, st.sampled_from(sorted(CYCLES)), st.integers(0, 11))
def test_the_nearest_of_a_name(day, grain, k):
    n = CYCLES[grain]
    i, k = index(day, grain), k % n
    last, past, future, after = (nearest(i, k, grain, s) for s in ("last", "past", "future", "next"))
    assert last < i <= future and past <= i < after and all((x - k) % n == 0 for x in (last, past, future, after))
    assert after - last in (n, 2 * n) and future - past in (0, n)


def checked(text, recorded):
    "The references of a text, held against what all of them promise."
    refs, end = find_references(text, recorded), 0
    for r in refs:
        a, b = r.span
        assert end <= a < b <= len(text) and text[a:b] == r.original_text and r.memory_timestamp is recorded and r.rule
        end = b
        assert r.type in ("DATE", "TIME", "DURATION", "SET") and 0 <= r.confidence <= 1 and (r.value == "" or is_value(r.value)), r
        assert all(is_value(v) for v in r.alternatives), r
        assert (r.interval is None) == (r.resolved_date is None) == bool(r.reason), r
        if not r.interval: continue
        assert r.interval[0] < r.interval[1] and r.interval[0].utcoffset() == r.resolved_date.utcoffset() == recorded.utcoffset()
    return refs


@pytest.mark.slow
@given(st.one_of(st.text(max_size=80), WORDY), st.one_of(MOMENTS, EDGES))
@settings(max_examples=600)
def test_no_text_and_no_year_breaks_it(text, recorded): checked(text, recorded)


@given(st.one_of(st.text(max_size=120), st.text(alphabet="`'\"#@_/.-(){}<>$=~ a0Z\n“”‘’", max_size=120)))
@settings(max_examples=300)
def test_masking_keeps_every_place(text):
    blank = masked(text)
    assert len(blank) == len(text) and all(x in (y, "\0") for x, y in zip(blank, text))


def scored(shared):
    "The module that scores the shared files."
    spec = importlib.util.spec_from_file_location("score", shared / "temporal" / "score.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHARED = {"devnotes": (1, 1), "negatives": (1, 0), "platinum": (1, 0.94), "tweets": (0.94, 0.94), "duckling": (0.49, 0.49), "recognizers": (0.74, 0.69),
          "chrono": (0.57, 0.42), "dateparser": (0.6, 0.4), "parsedatetime": (0.8, 0.8)}  # Right, and both ends exact


@pytest.mark.parametrize("name", SHARED)
def test_the_shared_files(shared, name):
    s = scored(shared).score(shared / "temporal" / f"{name}.jsonl", 0)
    right, exact = SHARED[name]
    assert s["right"] >= right * s["n"] and s["exact"] >= exact * s["n"], s


@pytest.mark.parametrize("name", ["duckling", "recognizers", "chrono", "dateparser", "parsedatetime"])
def test_where_the_tools_disagree_is_written_down(shared, name):
    "Every relative reference of theirs is right, or listed with the reason."
    known = {key for group in yaml.safe_load((FIXTURES / "temporal_disagreements.yml").read_text()) for key in group["rows"]}
    score, wrong, rows = scored(shared), set(), set()
    for row in map(json.loads, (shared / "temporal" / f"{name}.jsonl").read_text().splitlines()):
        if not row["core"]: continue
        a, b = row["offset"], row["offset"] + len(row["phrase"])
        found = find_references(row["text"], datetime.fromisoformat(row["reference"]))
        refs = [(min(r.span[1], b) - max(r.span[0], a), r.interval) for r in found if r.interval]
        best = max((x for x in refs if x[0] > 0), key=lambda x: x[0], default=None)
        key = row["id"] if name == "recognizers" else f"{name}:{row['phrase'].strip()}"
        rows.add(key)
        if not best or not score.value_ok(best[1], row): wrong.add(key)
    assert not wrong - known and not (known & rows) - wrong


def dated_lines():
    "Lines and the values of the dates in them, each as recorded at the moment that stands above it."
    for line in (FIXTURES / "dated_lines.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("@ "): at = datetime.fromisoformat(line[2:]); continue
        text, _, values = line.rpartition(" ->")
        yield pytest.param(text, at, values.split(), id=text)


@pytest.mark.parametrize("text, at, values", dated_lines())
def test_what_lines_mean(text, at, values): assert [r.value for r in checked(text, at) if r.interval] == values


def only(text, recorded=datetime(2026, 11, 1, tzinfo=UTC)): (r,) = find_references(text, recorded); return r.value, r.confidence


def test_a_weekday_that_contradicts_its_date_makes_it_less_certain():
    for day in ("2026-11-02", "2 November 2026", "02/Nov/2026", "02-Nov-2026"):
        assert only(f"Released on Monday, {day}.") == ("2026-11-02", 0.98)
        assert only(f"Released on Tuesday, {day}.") == only(f"Released on Sunday, {day}.") == ("2026-11-02", pytest.approx(0.68, abs=0.04))
    assert only("Released on 13/11/2025.") == ("2025-11-13", 0.95)


@pytest.mark.parametrize("text, day", ROWS["a day of a month is the nearest that makes sense"])
def test_a_day_of_a_month_is_the_nearest_that_makes_sense(text, day): assert only(text)[0] == day


def test_a_day_and_month_without_a_tense_is_the_nearest_of_all_years():
    "All twelve months around each day of a year; that on the other side may be meant as well."
    for today in (date(2028, 1, 1) + timedelta(n) for n in range(366)):
        for month in range(1, 13):
            r, = find_references(f"Opening of the office: 15 {MONTH_NAMES[month - 1]}", datetime(today.year, today.month, today.day, 9))
            days = [date(y, month, 15) for y in (2027, 2028, 2029)]
            there, side = r.resolved_date.date(), [abs(d - today) for d in days]
            assert abs(there - today) == min(side), (today, there)
            others = [d for d in days if (d > today) == (there <= today)]
            assert r.alternatives == (() if there == today else (str(min(others, key=lambda d: abs(d - today))),))


def test_a_month_or_a_day_of_the_month_without_a_tense_is_the_nearest():
    for today in (date(2028, 1, 1) + timedelta(n) for n in range(366)):
        at = datetime(today.year, today.month, today.day, 9)
        for name in MONTH_NAMES:
            r, = find_references(f"New office in {name}", at)
            away = r.interval[0].year * 12 + r.interval[0].month - today.year * 12 - today.month
            assert -6 < away <= 6 and len(r.alternatives) == 1
        day, = find_references("Board call on the 17th", at)
        assert abs((day.resolved_date.date() - today).days) <= 15 and day.resolved_date.day == 17


MONDAY = datetime(2026, 6, 15, 14)
@pytest.mark.parametrize("text, said, value", ROWS["what comes back is a set and no day"])
def test_what_comes_back_is_a_set_and_no_day(text, said, value):
    found = checked(text, MONDAY)
    assert (said, value) in [(r.original_text, r.value) for r in found if r.type == "SET"] and not any(r.interval for r in found)


def test_a_weekday_without_a_verb_goes_where_its_memory_looks():
    def day(outlook): (r,) = find_references("Handover Thursday", MONDAY, outlook=outlook); return r.value, r.alternatives, r.confidence
    assert day(1) == ("2026-06-18", ("2026-06-11",), 0.5) and day(-1) == day(0) == ("2026-06-11", ("2026-06-18",), 0.5)
    assert find_references("We met Thursday", MONDAY, outlook=1)[0].value == "2026-06-11"  # A verb says more
