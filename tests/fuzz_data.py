"""What the targets are fed with: bytes near the valid ones, values in the wrong places of JSON, texts put together from words that matter, and anything."""
import json

import fuzz_targets  # noqa: F401  # fills the list
from fuzz_base import TARGETS
from hypothesis import strategies as st

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.sampled_from((10**400, -1, 2**63, 1e308, 5e-324)) | st.floats() | st.text(max_size=12)
                    | st.sampled_from(("\ud800", "2026-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "\0", "\u2028")),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6)


def edited(data, edits):
    "Bytes after some edits, each at a place and over a length of its own."
    for how, at, n, piece in edits:
        at = at % (len(data) + 1)
        if how == "cut": data = data[:at] + data[at + n:]
        elif how == "put": data = data[:at] + piece + data[at:]
        elif how == "over": data = data[:at] + piece + data[at + len(piece):]
        elif how == "again": data = data[:at] + data[at:at + n] * 3 + data[at + n:]
        elif how == "many": data = data[:at] + piece * min(400, 4000 // (len(piece) or 1)) + data[at:]
        else: data = data[at:] + data[:at]
    return data[:20_000]


def near(t):
    "Bytes near the valid ones of a target."
    piece = st.sampled_from((*t.words, *t.seeds, b"\n", b" ")) | st.binary(max_size=6) | st.text(max_size=6).map(str.encode)
    edit = st.tuples(st.sampled_from(("cut", "put", "put", "over", "again", "many", "turn")), st.integers(0, 4000), st.integers(1, 60), piece)
    return st.builds(edited, st.sampled_from(t.seeds), st.lists(edit, max_size=6))


def places(value, here=()):
    "Every place in a JSON value."
    yield here
    for k, v in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else (): yield from places(v, (*here, k))


def with_value(value, place, new):
    "The value with another one in a place."
    if not place: return new
    copy = value.copy()
    copy[place[0]] = with_value(value[place[0]], place[1:], new)
    return copy


def documents(t):
    "The lines of JSON in the valid bytes: for each what stands before it, the value, and what stands behind it."
    for seed in t.seeds:
        text = seed.decode("utf-8", "replace")
        lines = text.splitlines(keepends=True) if text[:1] != "{" else [text]
        for i, line in enumerate(lines):
            at = line.find("{")
            try: value = json.loads(line[at:]) if at >= 0 else None
            except (ValueError, RecursionError): continue
            if isinstance(value, dict): yield "".join(lines[:i]) + line[:at], value, "\n" + "".join(lines[i + 1:])


@st.composite
def misplaced(draw, found):
    "A document with one to three values where others belong."
    before, value, after = draw(st.sampled_from(found))
    for _ in range(draw(st.integers(1, 3))): value = with_value(value, draw(st.sampled_from([*places(value)])), draw(JSON))
    return f"{before}{json.dumps(value)}{after}".encode()


def joined(t):
    "Words of a target, one after the other, with anything between them."
    word = (st.sampled_from(t.words or (b"",)) | st.sampled_from(t.words or (b"",)) | st.binary(max_size=3)
            | st.integers(0, 10**5).map(lambda n: str(n).encode()))
    return st.lists(word, max_size=24).map(b"".join)


FORMS = {"date": r"\A\d{4}-\d\d-\d\d([T ]\d\d(:\d\d){0,2}(\.\d{1,7})?(Z|[+-]\d\d:\d\d)?)?\Z",
         "name": r"\A((mem|sum|run)_)?[a-z2-7]{0,27}\Z|\A[a-z]{1,9}:[0-9a-f]{0,41}:\d{1,3}\Z",
         "query": r"\A([A-Za-z]{1,7}[ \"*:^()+-]{0,2}){0,8}\Z",
         "times": r"\A[\0-\x30](the )?(first|last|next|day|week) (of|before|after) (next|last|May|Q[1-4]|2026|the) (week|month|year|Friday)s?\Z",
         "environment": r"\A[a-z]{3,9}_[a-z_]{3,20}=[0-9.e+-]{1,9}\Z"}


def inputs(name):
    "All that a target is fed with."
    t = TARGETS[name]
    found = [*documents(t)]
    ways = [near(t), near(t), joined(t), st.binary(max_size=200)]
    if found: ways += [misplaced(found), misplaced(found)]
    if name in FORMS: ways.append(st.from_regex(FORMS[name]).map(str.encode))
    if name == "index_file": ways.append(st.binary(min_size=4, max_size=80).map(b"@".__add__))
    return st.one_of(*ways)
