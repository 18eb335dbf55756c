"""The session block: one block, others' text unchanged, the budget kept, whatever the memories say."""
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from git_notes_consolidation.block import TAG, one_line, with_block, without_block

PIECES = st.sampled_from([f"<{TAG}>", f"</{TAG}>", f'<{TAG} version="1">', f"<{TAG}_v2>", f"<{TAG} ver", "\n", "\n\n", "a", "<", ">", " ", "Rules."])
BLOCK = f'<{TAG} version="9">\nbody\n</{TAG}>'


def blocks(text): return len(re.findall(rf"<{TAG}(?=[\s/>]|\Z)", text)), text.count(f"</{TAG}>")


@settings(max_examples=1000)
@given(st.lists(PIECES, max_size=12).map("".join), st.lists(st.sampled_from(["one", "two"]), min_size=1, max_size=4))
def test_one_block_after_any_sequence(text, bodies):
    for body in bodies: text, _ = with_block(text, BLOCK.replace("body", body))
    assert blocks(text) == (1, 1) and with_block(text, BLOCK.replace("body", bodies[-1])) == (text, True)


@given(st.text(), st.text())
def test_others_text_is_unchanged(before, after):
    assert without_block(with_block(before, BLOCK)[0])[0] == before
    assert without_block(with_block(before, BLOCK)[0] + after)[0] == before + after


@given(st.text())
def test_a_line_of_a_memory_is_harmless(text):
    line = one_line(text, 80)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|<[A-Za-z/!?]", line) and len(line) < 120


@pytest.mark.parametrize("text", [f"<{TAG} " * 50_000, f"<{TAG}>" * 50_000 + f"</{TAG}>" * 50_000, "x" * 10**7, f"</{TAG}>\n" * 50_000])
def test_long_texts_take_no_time(text): assert blocks(with_block(text, BLOCK)[0]) == (1, 1)
