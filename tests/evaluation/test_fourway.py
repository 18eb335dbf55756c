"""The four relations, pair by pair: `remember` decides as the instrument says, and wrong replies over real HTTP change nothing."""
import json
import pytest
from calls import new_repo
from collections import Counter
from dataclasses import replace
from helpers import git
from llm_servers import BAD_REPLIES, FaultyServer, asked_about, sensible
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.evaluation.pairs import load_pairs
from git_notes_consolidation.evaluation.prompts import evaluate_four_ways, model_of, write_outcomes
from git_notes_consolidation.evaluation.scoring import RELATIONS, fixture
from git_notes_consolidation.llm.client import get_client
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.writing.write import open_writing


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pairs(): return load_pairs(fixture("supersession"))


@pytest.fixture(scope="module")
def dev(pairs):
    "Every fifth pair of each relation, of those that may be looked at."
    return [p for r in RELATIONS for p in [q for q in pairs if (q.split, q.relation) == ("dev", r)][::5]]


@pytest.fixture(scope="module")
def offline(dev): return write_outcomes(dev)


def ask(pairs, server, seconds=20.0):
    "What would be done, and what the client says of it."
    config = SubconsciousnessConfig(llm_provider="lmstudio", llm_base_url=server.url, llm_timeout_s=seconds)
    with get_client(config, {"MEMORY_CONSOLIDATION_LLM_API_KEY": ""}) as client:
        return write_outcomes(pairs, config=config, ask=model_of(client).judge), client.usage()


def test_remember_does_what_the_instrument_says(tmp_path, dev, offline):
    "Each pair in a repository of its own, written for real; one that came late is true from its own date on."
    seen = Counter()
    for i, x in enumerate(offline):
        older, newer = replace(x.pair.older, importance=None), x.pair.newer
        home = new_repo(tmp_path / str(i), [older])
        git(home, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "--quiet", "--allow-empty", "--message=x")
        there, = read_memories(open_repo(home)).memories
        assert (there.summary, there.content) == (older.summary, older.content)
        w = open_writing(home, load_settings({}, env={}), clock=lambda when=max(older.timestamp, newer.timestamp): when)
        r = w.remember(newer.content, namespace=newer.namespace, title=newer.summary, valid_from=newer.timestamp, dry_run=True)
        done = {"ADD": "supersede" if r.superseded_by else "coexist", "SUPERSEDE": "supersede", "NOOP": "duplicate", "UPDATE": "duplicate", "MERGE": "merge"}
        assert (done[r.operation], len(r.review), bool(r.considered)) == (x.done, bool(x.asked), x.near), x.id
        seen[x.done] += 1
    assert seen["supersede"] > 1 and seen["coexist"] > 10 and sum(seen.values()) == len(dev)


def test_the_report_holds_no_text_and_no_name_of_any_pair(pairs):
    told = json.dumps(evaluate_four_ways(pairs).to_dict())
    assert not any(p.id in told or p.older.summary in told or p.newer.id in told for p in pairs)


def quoting(relation, quote):
    "A model that says one thing of every pair, and quotes what it is told to."
    def brain(body):
        memories, found = asked_about(body)
        return json.dumps({p: dict(quote=quote(memories[n], memories[o]), reason="The words say so.", relation=relation, confidence="high",
                                   kind="full" if relation == "supersede" else None) for p, (n, o) in found.items()})
    return brain


@pytest.mark.parametrize("relation", ["duplicate", "supersede", "merge"])
@pytest.mark.parametrize("quote", [lambda newer, older: "this replaces all that was decided before", lambda newer, older: None,
                                   lambda newer, older: older[-60:].strip(), lambda newer, older: newer[:2]], ids=["invented", "none", "of the older", "short"])
def test_a_quote_that_does_not_stand_in_the_newer_memory_is_refused(dev, offline, quote, relation):
    "But where nothing is replaced, none is demanded."
    if quote("", "") is None and relation != "supersede": return
    with FaultyServer(brain=quoting(relation, quote)) as server: rows, u = ask(dev[:8], server)
    assert u.asked and (u.answered, u.failures) == (0, {"schema": u.asked}) and rows == offline[:8]


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_bad_replies_at_any_rate_do_nothing_wrong(dev, offline, rate):
    with FaultyServer(brain=sensible(), rate=rate, faults=BAD_REPLIES, seed=5) as server: rows, u = ask(dev, server, seconds=2.0)
    def right(rows): return sum(x.done == x.gold for x in rows)
    assert not any(a.wrong and a.done != b.done or a.asked and not b.asked for b, a in zip(offline, rows)) and right(rows) >= right(offline) and u.faults
    assert u.asked == u.answered + sum(u.failures.values()) and (rate < 1 or rows == offline)
