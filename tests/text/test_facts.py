"""Facts of a text: the same value in any spelling, at its exact place, and no text that is slow to read."""
from time import process_time

import pytest
from git_notes_consolidation.text.facts import find_facts, frame, same_value, frame_stems
from git_notes_consolidation.core.memory import sample_memories
from hypothesis import given, settings
from hypothesis import strategies as st

PIECES = ["24 h", "one", "day", "3.11", "v2", "1.4.2-rc1", "3 May 2026", "2026-05-03", "May", "14:30", "Q3", "src/a.py", "and/or", "/var/x", "`retry`",
          "FastAPI", "max_attempts", "--dry-run", "not", "never", "can't", "cached", "1,000", "10k", "20%", "half an hour", "every day", "ADR-007", "\n", ". ",
          "1. ", "(", "`", "https://example.org/x.", "UTF-8", "a", "to", "5", "s", "9" * 40, "1e99", "…", "日本"]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=120)


def values(text, kind=None): return [f.value for f in find_facts(text) if kind in (None, f.kind)]


SAME = [("1 h 30 min", "ninety minutes"), ("1h30m", "1.5 h"), ("20 percent", "20%"), ("10k", "10,000"), ("10_000", "ten thousand"), ("twelve", "12"),
        ("a dozen", "12"), ("half a million", "500,000"), ("3×", "three"), ("64 KiB", "65536 bytes"), ("two years", "24 months"), ("30-day", "30 days"),
        ("$5", "5 USD"), ("3 May 2026", "2026-05-03"), ("May 3rd, 2026", "2026/05/03"), ("Sept 2026", "2026-09"), ("2025-Q3", "Q3 2025"), ("2 pm", "14:00"),
        ("v2.1", "version 2.1"), ("Python 3.11", "python 3.11"), ("1.0.0-RC1", "1.0.0-rc1"), ("`max-attempts`", "max_attempts"), ("retry()", "`retry`"),
        ("ADR-007", "adr 7"), ("src/queue.py", "./src/queue.py"), ("queue.py", "src/queue.py"), ("never cached", "not cached"),
        ("without caching", "isn't cached"), ("https://a.org/x/", "http://a.org/x"), ("100 ms", "0.1 s"), ("5 per second", "5/s")]
OTHER = [("24 h", "24 min"), ("24 h", "24"), ("1 GiB", "1000 MiB"), ("3 May 2025", "3 May 2026"), ("3 May", "4 May"), ("3 May", "3 June"), ("14:30", "14:03"),
         ("3.11", "v3.12"), ("1.4.2", "1.4.3"), ("1.0.0", "1.0.0-rc1"), ("src/a.py", "src/b.py"), ("max_attempts", "max_age"), ("not cached", "not stored"),
         ("5%", "5"), ("10k", "10M"), ("five days", "six days"), ("p95", "p99"), ("#12", "#21"), ("2026-05", "2026-06")]


@pytest.mark.parametrize("a,b", SAME, ids=" = ".join)
def test_one_value_in_two_spellings(a, b):
    (x, *_), (y, *_) = ([f for f in find_facts(t) if f.value != "python"] for t in (a, b))
    assert same_value(x, y) and same_value(y, x)


@pytest.mark.parametrize("a,b", OTHER, ids=" ≠ ".join)
def test_two_values(a, b): assert not same_value(find_facts(a)[0], find_facts(b)[0])


@pytest.mark.parametrize("text", ["and/or", "read/write", "may fail", "the one that failed", "one of them", "a second attempt", "e.g. this", "well-known",
                                  "TCP/IP", "APIs", "not only here", "They march on", "HTTP", "1. first\n2) second", "I/O", "in order", ""])
def test_what_is_no_fact(text): assert find_facts(text) == ()


@pytest.mark.parametrize("text,kind,wanted", [
    ("3 to 5 s", "number", ["3 s", "5 s"]), ("two or three days", "number", ["172800 s", "259200 s"]), ("1 s, 5 s, 30 s", "number", ["1 s", "5 s", "30 s"]),
    ("three times a day", "number", ["3", "per 86400 s"]), ("waits for a day", "number", ["86400 s"]), ("Retry 6 times in 2.5 min", "number", ["6", "150 s"]),
    ("mid-2025", "date", ["2025"]), ("2026-05-03T14:30:00Z", "date", ["2026-05-03T14:30:00"]), ("in May", "date", ["--05"]), ("12:05 am", "date", ["T00:05"]),
    ("Wait 1.5 s", "version", []), ("redis:7.2", "version", ["7.2"]), ("10.0.0.1", "version", ["10.0.0.1"]), ("see src/a.py:42.", "path", ["src/a.py"]),
    ("`gnc consolidate`", "identifier", ["gnc consolidate"]), ("`v2.1`", "identifier", []), ("a1b2c3d", "identifier", ["a1b2c3d"]),
    ("do not use Redis", "negation", ["not redi"]), ("No.", "negation", ["not"]), ("neither fast nor small", "negation", ["not fast", "not small"])])
def test_what_is_found(text, kind, wanted): assert values(text, kind) == wanted


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


NASTY = ["a", "1", "1,", "1.", "a.", "a-", "/a", "`", "_", "one ", "not ", "May ", "n't", "{", "[", "(", "1 h ", "two and ", "3 May ", "http://", "v1.", "--",
         "#1 ", "é",
         "ADR-1 ", "1-", "x/y/", "half a ", "$", " ", "\n", "1) ", "*", "1h", "a b ", "~", "'", "€ 1", "1,111,", "per ", ".5", "e9", "𝟙", "²"]


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


def test_the_sample_holds_every_kind():
    found = [f for m in sample_memories() for f in find_facts(m.text)]
    assert len(found) > 2000 and {f.kind for f in found} == {"number", "date", "version", "identifier", "path", "negation"}
