"""Asking is not using: what was opened, or stood first with a clear match, is kept nearer, and nothing else."""
import pytest
from calls import gnc

BROAD = ["backups", "timeouts", "how do we deploy", "retry policy", "what blocks the release", "cron", "tests are flaky", "who is on call",
         "what did we decide about caching", "how are secrets stored", "CI pipeline", "heartbeat interval"]
EXACT = ["feature flags in PostgreSQL", "msgspec decoding saves API CPU"]


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    home = tmp_path_factory.mktemp("asking") / "year"
    assert gnc("demo", home, now=None).code == 0
    return home


def moves(home):
    "Memories that a run would move now."
    return {r["memory"]: r["tier"] for _, _, r in gnc("consolidate", "--dry-run", "--json", repo=home).json["records"] if r["kind"] == "tier"}


def recall(home, question): return [r["id"] for r in gnc("recall", question, "--json", repo=home).json["results"]]


@pytest.mark.slow(after=1)
def test_ten_recalls_move_at_most_what_was_opened(year):
    before = moves(year)
    shown = [recall(year, q) for q in BROAD]
    assert sum(map(len, shown)) > 50 and moves(year) == before
    firsts = {recall(year, q)[0] for q in EXACT}
    assert moves(year).keys() - before.keys() <= firsts
    told = (gnc("explain", i, "--json", repo=year).json for ids in shown for i in ids[1:] if i.startswith("mem_"))
    opened = next(x["id"] for x in told if x["tier"] == "archived" and not x["superseded_kind"])
    assert opened in moves(year) and moves(year)[opened] == "hot"
