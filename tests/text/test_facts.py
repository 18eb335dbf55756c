"""Facts of a text: the same value in any spelling, at its exact place, and no text that is slow to read."""
from time import process_time

import pytest
from git_notes_consolidation.text.facts import find_facts, frame, same_value, frame_stems
from hypothesis import given, settings
from hypothesis import strategies as st
from helpers import rows_of

ROWS = rows_of(__name__)

PIECES = ["24 h", "one", "day", "3.11", "v2", "1.4.2-rc1", "3 May 2026", "2026-05-03", "May", "14:30", "Q3", "src/a.py", "and/or", "/var/x", "`retry`",
          "FastAPI", "max_attempts", "--dry-run", "not", "never", "can't", "cached", "1,000", "10k", "20%", "half an hour", "every day", "ADR-007", "\n", ". ",
          "1. ", "(", "`", "https://example.org/x.", "UTF-8", "a", "to", "5", "s", "9" * 40, "1e99", "…", "日本"]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=120)


def values(text, kind=None): return [f.value for f in find_facts(text) if kind in (None, f.kind)]


SAME = ROWS["same"]
OTHER = ROWS["other"]


@pytest.mark.parametrize("a,b", SAME, ids=" = ".join)
def test_one_value_in_two_spellings(a, b):
    (x, *_), (y, *_) = ([f for f in find_facts(t) if f.value != "python"] for t in (a, b))
    assert same_value(x, y) and same_value(y, x)


@pytest.mark.parametrize("a,b", OTHER, ids=" ≠ ".join)
def test_two_values(a, b): assert not same_value(find_facts(a)[0], find_facts(b)[0])


@pytest.mark.parametrize("text", ["and/or", "read/write", "may fail", "the one that failed", "one of them", "a second attempt", "e.g. this", "well-known",
                                  "TCP/IP", "APIs", "not only here", "They march on", "HTTP", "1. first\n2) second", "I/O", "in order", ""])
def test_what_is_no_fact(text): assert find_facts(text) == ()


@pytest.mark.slow
@given(texts)
@settings(max_examples=400)
def test_spans_are_exact_and_only_negations_overlap(text):
    found = find_facts(text)
    assert all(0 <= f.start < f.end <= len(text) and text[f.start:f.end].strip() == text[f.start:f.end] and f.value for f in found)
    assert list(found) == sorted(found, key=lambda f: (f.start, f.end, f.kind))
    plain = [f for f in found if f.kind != "negation"]
    assert all(a.end <= b.start for a, b in zip(plain, plain[1:]))
    assert all(same_value(f, f) for f in found) and all(same_value(a, b) == same_value(b, a) for a in found for b in found)


@given(texts)
def test_frames_hold_every_value(text):
    f = frame(text)
    holes = [w for w in f.words if w.isupper() and w.isascii() and w.isalpha()]
    assert list(f.values) == [x for x in find_facts(text) if x.kind != "negation"] and len(holes) == len(f.values)
    assert set(frame_stems(f)) & set(holes) == set(holes)


NASTY = ROWS["nasty"]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("piece", NASTY, ids=repr)
def test_no_text_is_slow(piece):
    "What backtracks takes minutes; a busy machine delays one try, not three."
    for _ in range(3):
        find_facts.cache_clear()
        start = process_time()
        find_facts((piece * 20_000)[:20_000] + "x")
        if (spent := process_time() - start) < 2: return
    raise AssertionError(f"{spent:.1f} s for 20,000 characters")
