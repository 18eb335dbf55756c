"""What others wrote, made harmless: nothing that acts is left, and where nothing may be lost nothing is."""
import json
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from git_notes_consolidation.core.visible import inert, json_line, restored, visible

PIECES = ["<", "a", "/", "!", "&", "lt;", "amp;", "]", "[", "\\", "(", ")", ":", "\n", " ", ">", "- ", "1. ", "&lt;", "<b>", "](", "]:", "\u202e", "\x1b"]
texts = st.text(st.characters(exclude_categories=())) | st.lists(st.sampled_from(PIECES), max_size=16).map("".join)


@given(texts)
@example("![x](y)\n> - [z]:\\: <a &amp;lt;b")
def test_what_is_made_harmless_comes_back_to_the_letter(text):
    said = inert(text)
    assert restored(said) == text and not re.search(r"<[A-Za-z/!?]|\]\(|^[ >\t-]*\[[^\[\]\n]+\]:", said, re.M)


@given(texts)
def test_what_is_seen_is_seen_for_good_and_json_loses_nothing(text):
    assert visible(visible(text)) == visible(text) and visible(json_line(text)) == json_line(text)
    assert json.loads(json_line({"x": text})) == {"x": text} and "<a" not in json_line(text)


@pytest.mark.parametrize("text", ["[" * 200_000, "[a\n" * 100_000, "]\\" * 100_000, "&amp;" * 100_000, ("[" + "a" * 900 + "\n") * 500, "> " * 100_000 + "["])
def test_long_texts_take_no_time(text):
    begin = time.perf_counter()
    restored(inert(visible(text)))
    assert time.perf_counter() - begin < 2
