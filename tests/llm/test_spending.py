"""The budget: no number of threads or processes oversteps it, and no crash gives back what may have been spent."""
import subprocess
import sys
from contextlib import closing

import pytest
from hypothesis import given, strategies as st

from git_notes_consolidation.llm.providers import Bound, BudgetExceeded, Ledger

NOW = 1_790_000_000.0


def ledger(path=":memory:", tokens=1000, usd=1.0, now=NOW): return Ledger(path, tokens, usd, lambda: now)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400), st.one_of(st.none(), st.tuples(st.integers(0, 400), st.integers(0, 400)))), max_size=30))
def test_the_limit_holds_at_every_step(calls):
    with closing(ledger()) as books:
        paid = 0
        for a, b, bill in calls:
            try: ticket = books.reserve(Bound(a, b))
            except BudgetExceeded:
                assert paid + a + b > 1000
                continue
            assert books.spent()[0] == paid + a + b <= 1000
            usage = bill and (min(bill[0], a), min(bill[1], b))
            paid += books.settle(ticket, usage).tokens
            assert books.spent()[0] == paid


def test_who_dies_between_call_and_bill_stays_charged(tmp_path):
    code = f"""
import os
from git_notes_consolidation.llm.providers import *
Ledger({str(tmp_path / 'c.db')!r}, clock=lambda: {NOW}).reserve(Bound(70, 7))
os._exit(9)"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 9
    with closing(ledger(tmp_path / "c.db")) as books: assert books.spent()[0] == 77


def test_processes_share_one_budget(tmp_path):
    code = f"""
from git_notes_consolidation.llm.providers import *
books, n = Ledger({str(tmp_path / 'c.db')!r}, 300, clock=lambda: {NOW}), 0
for _ in range(100):
    try: books.settle(books.reserve(Bound(2, 0)), (1, 0)); n += 1
    except BudgetExceeded: pass
print(n)"""
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    got = [int(r.communicate()[0]) for r in runs]
    with closing(ledger(tmp_path / "c.db", 300)) as books: assert 280 < books.spent()[0] == sum(got) < 300


@pytest.mark.parametrize("spoil", ["garbage", "directory", "read only place"])
def test_a_file_that_cannot_be_used_is_replaced_by_memory(spoil, tmp_path):
    path = tmp_path / "c.db"
    if spoil == "garbage": path.write_bytes(b"nothing like a database " * 99)
    if spoil == "directory": path.mkdir()
    if spoil == "read only place": path = tmp_path / "nowhere" / "c.db"
    with closing(ledger(path)) as books:
        books.settle(books.reserve(Bound(5, 5)), (1, 1))
        assert books.spent()[0] == 2
    if spoil == "garbage": assert path.read_bytes().startswith(b"nothing like")  # the file is left as it is
