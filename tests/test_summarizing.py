"""Summaries: every sentence stands in a source, what is outdated is never told, and the order of the memories does not matter."""
import json
import random
from datetime import timedelta

import pytest
from git_notes_consolidation.embedding import LexicalEmbedder
from git_notes_consolidation.models import SAMPLE_NOW, MemorySummary, mem, sample_memories
from git_notes_consolidation.summarizing import appeal, beside, decision, faithfulness, flat, said, same, sentences, summarize_cluster
from hypothesis import given, settings
from hypothesis import strategies as st

LEXICAL = LexicalEmbedder()
PIECES = ["Retry six times.", "Jitter of 20% spreads the load!", "e.g. the mail worker", "“All. Of them.”", "\n", "\n\n", "- ", "1. ", "## Decision\n",
          "```\ncode\n```\n", "---\n", "> said", "...and then it", "it failed...", "Because of that, five", "日本語。", "v1.2", " ", "**bold** words",
          "| a | b |\n"]
bodies = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)
memories = st.lists(st.builds(lambda s, b, d, ns: mem(s, b, days_ago=d, namespace=ns), st.sampled_from(PIECES[:4] + ["", "Use HMAC",
"Webhooks are retried six times by the worker"]), bodies,
                              st.integers(0, 40), st.sampled_from(["decisions", "learnings",
                              "progress"])), min_size=1, max_size=8, unique_by=lambda m: m.id)


def summarize(ms, outdated=None, **kw): return summarize_cluster(ms, outdated or {}, LEXICAL, **{"coherence": 0.6, "created_at": SAMPLE_NOW} | kw)


# Sentences

@given(st.text(max_size=30), bodies | st.text(max_size=200))
@settings(max_examples=300)
def test_every_sentence_holds_where_it_says(summary, body):
    m = mem(summary, body)
    found = sentences(m)
    assert all(q.holds(m) and q.text == q.text.strip() != "" for q in found)
    body_quotes = [q for q in found if q.field == "content"]
    assert all(a.end <= b.start for a, b in zip(body_quotes, body_quotes[1:]))
    assert [q.field for q in found] == ["summary"] * (len(found) - len(body_quotes)) + ["content"] * len(body_quotes)


@given(st.lists(st.sampled_from(["One two.", "Three!", "- four", "5. five", "six e.g. seven", "\n", "\n\n", "“Eight. Nine.”"]), max_size=20))
def test_no_prose_is_lost(pieces):
    body = "\n".join(pieces)
    at, gaps = 0, ""
    for q in sentences(mem("", body)): gaps, at = gaps + body[at:q.start], q.end
    assert set(gaps + body[at:]) <= set(" \n-.5")


def test_code_headings_rules_and_tables_are_not_quoted():
    texts = [q.text for q in sentences(mem("", "# Head\n\nText.\n\n---\n\n```py\nx = 1\n```\n| a | b |\n|---|---|\n- item\n***\n"))]
    assert texts == ["Text.", "item"]


def test_a_fragment_is_worth_less():
    whole = "The worker retries six times before it gives up."
    assert appeal(whole) == 1.0 and all(appeal(t) < 0.5 for t in (f"...{whole}", f"… {whole}", f"{whole[:-1]}...", f"{whole[:-1]}…"))


# Summaries

@given(memories, st.randoms(use_true_random=False), st.data())
@settings(max_examples=150)
def test_a_summary_of_anything(ms, rnd, data):
    gone = {m.id: mem("What replaced it") for m in data.draw(st.lists(st.sampled_from(ms), max_size=3))}
    current = [m for m in ms if m.id not in gone]
    if not any(sentences(m) for m in current):
        with pytest.raises(ValueError, match="nothing to quote"): summarize(ms, gone)
        return
    s = summarize(ms, gone)
    shuffled = list(ms)
    rnd.shuffle(shuffled)
    assert summarize(shuffled, dict(reversed(gone.items()))) == s
    assert all(any(q.holds(m) for m in current) for q in s.quotes) and faithfulness(s.quotes, ms) == 1.0
    assert not {q.memory_id for q in s.quotes} & set(gone)
    assert sorted(f.source_memory_id for f in s.superseded_facts) == sorted(gone) and set(s.source_memory_ids) == {m.id for m in ms}
    assert s.temporal_range == (min(m.timestamp for m in ms), max(m.timestamp for m in ms))
    assert s.confidence.overall == pytest.approx(0.6) and 0 < s.coverage <= 1 and s.namespace in {m.namespace for m in current}
    assert len(s.title.split()) <= 10 and len(s.key_facts) <= 5 and len(s.decisions) <= 3 and s.summary
    quoted = {flat(q.text) for q in s.quotes}
    assert set(s.key_facts) <= quoted and {d.decision for d in s.decisions} <= quoted and {d.rationale for d in s.decisions} - {""} <= quoted
    assert MemorySummary.from_dict(json.loads(json.dumps(s.to_dict()))) == s


@given(memories)
@settings(max_examples=100)
def test_nothing_is_said_twice(ms):
    if not any(sentences(m) for m in ms): return
    s = summarize(ms)
    told = [said(f) for f in s.key_facts]
    assert not any(same(a, b) for i, a in enumerate(told) for b in told[:i]) and said(s.summary) not in told


def test_the_id_knows_sources_and_what_is_outdated_and_nothing_else():
    a, b, c = (mem(f"Use {w}", days_ago=d) for w, d in (("cron", 9), ("a queue", 5), ("NATS", 1)))
    assert summarize([a, b]).id == summarize([b, a], created_at=SAMPLE_NOW + timedelta(days=1), run_id="run_x", coherence=0.1).id
    assert len({summarize(x, y).id for x, y in (([a, b], {}), ([a, b, c], {}), ([a, b], {a.id: b}), ([a, b], {a.id: c}))}) == 4
    assert summarize([a, b], {c.id: b}).id == summarize([a, b]).id  # what is outdated elsewhere is not its business


def test_newer_ones_first_when_equally_near():
    old, new = (mem("Queue length", "The queue is short.", days_ago=d) for d in (9, 2))
    assert summarize([old, new]).quotes[0].memory_id == new.id


def test_a_long_sentence_does_not_become_the_text():
    ms = [mem("Retries", "word " * 300 + "retries."), mem("Retries of webhooks", "Webhook retries are six.", days_ago=3)]
    assert len(summarize(ms).summary.split()) <= 100
    assert len(summarize([mem("", "word " * 300 + "end.")]).summary.split()) == 301  # when there is nothing else


def test_a_reason_is_quoted_and_a_date_is_none():
    d, where = decision(mem("Use NATS", "Green since Wednesday. We switched so that polls stop."))
    assert d.rationale == "We switched so that polls stop." and len(where) == 2
    assert decision(mem("Use NATS", "In place since 3 May."))[0].rationale == ""


def test_outdated_is_struck_through_and_html_is_text():
    a, b = mem("Use <b>cron</b>", "Simple & old.", days_ago=9), mem("Use NATS", "Polls stop.", days_ago=1)
    shown = beside(summarize([a, b], {a.id: b}), [a, b])
    assert shown.count("<s>") == 1 and "&lt;b&gt;cron" in shown and "<mark" not in shown.split("<s>")[1].split("</s>")[0]


def test_the_sample():
    ms = list(sample_memories())
    random.Random(1).shuffle(ms)
    s = summarize(ms[:20])
    assert all(any(q.holds(m) for m in ms) for q in s.quotes) and len(s.summary.split()) <= 100 and s.coverage > 0.2
