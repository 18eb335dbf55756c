"""Verifying summaries: what is quoted passes, what is changed is found, and no text breaks it."""
import json
from collections import defaultdict
from dataclasses import replace

import pytest
from git_notes_consolidation.similarity.clusters import cluster_memories
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.text.facts import find_facts
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.core.models import Quote, SupersededFact
from git_notes_consolidation.text.sentences import split_sentences
from git_notes_consolidation.summaries.extraction import summarize_cluster
from git_notes_consolidation.summaries.verification import parts, verify
from helpers import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from mutants import KINDS, mutate, retell

TOPIC = [mem("Retry webhooks six times", "Six attempts over 24 h, because receivers are down for a night at most. Never retry a 410.", days_ago=40),
         mem("Webhook retries need jitter", "Jitter of 20% in `src/webhooks/retry.py` spreads the load. Not cached.", days_ago=30, namespace="learnings"),
         mem("Webhook signatures are HMAC", "Sign webhooks with HMAC-SHA256. Since 3 May 2026 in v1.4.2, on Python 3.11.", days_ago=20)]


def doubts(text, sources=TOPIC, **kw): return {(f.status, f.kind) for f in verify(text, sources, **kw).findings if f.suspicion >= 0.5}


@pytest.fixture(scope="module")
def summaries():
    "The sample's clusters, each with its summary."
    by_id, lexical = {m.id: m for m in sample_memories()}, LexicalEmbedder()
    rows = lexical.embed([m.text for m in by_id.values()])
    clusters = [[by_id[i] for i in c.memory_ids] for c in cluster_memories(list(by_id.values()), dict(zip(by_id, rows)), SubconsciousnessConfig())]
    return [(summarize_cluster(c, {}, lexical, coherence=0.5, created_at=SAMPLE_NOW), c) for c in clusters]


# One at a time


@pytest.mark.parametrize("text", [
    "Webhooks are retried six times within one day.", "Webhook retries use a jitter of 20 percent, see retry.py.", "A 410 isn't retried.",
    "Webhooks have been signed with HMAC SHA-256 since May 2026.", "Since v1.4.2, on Python 3.11, webhooks are signed.", "86,400 seconds, 6 attempts.", "",
    "Receivers are down for a night at most; jitter of 0.2 spreads the load.", "Attempts happen six times per day, nearly 25 hours."])
def test_what_is_faithful(text): assert doubts(text) == set()


@pytest.mark.parametrize("text,finding", [
    ("Webhooks are retried seven times.", ("changed", "number")), ("Six attempts over 24 minutes.", ("changed", "number")),
    ("Sign webhooks with HMAC-SHA512.", ("changed", "identifier")), ("Since 4 May 2026 in v1.4.2.", ("changed", "date")),
    ("Since 3 May 2026 in v1.4.3.", ("changed", "version")), ("Jitter of 20% in `src/mail/retry.py` spreads the load.", ("changed", "path")),
    ("Always retry a 410.", ("changed", "negation")), ("Receivers are never down for a night.", ("changed", "negation")),
    ("Tenants pay by invoice in three currencies.", ("invented", "statement")), ("The cost is 90 EUR.", ("invented", "number"))])
def test_what_is_not(text, finding): assert finding in doubts(text)


def test_a_changed_value_names_both_places():
    v = verify("Webhooks are retried seven times.", TOPIC)
    (f,) = [f for f in v.findings if f.status == "changed"]
    assert (f.value, f.was, f.part) == ("7", "6", "summary") and f.source.holds(next(m for m in TOPIC if m.id == f.source.memory_id))
    assert "Webhooks are retried seven times."[f.start:f.end] == "seven times"


def test_a_value_in_anothers_place():
    sources = [*TOPIC, mem("Three users asked for webhooks", "One of them in March.", days_ago=1)]
    assert ("changed", "number") in doubts("Three attempts over 24 h, because receivers are down for a night at most.", sources)
    assert doubts("Three users asked for webhooks.", sources) == set()


def test_days_that_stand_in_no_text():
    m = mem("Outage", "The relay was down yesterday, again on Tuesday.", days_ago=0)
    assert doubts("The relay was down on 31 October 2026.", [m]) == doubts("In November 2026 the relay was down.", [m]) == set()
    assert doubts("The relay was down on 28 October 2026.", [m]) == {("invented", "date")}


def test_what_is_outdated_must_be_told_as_past():
    old = mem("Retry webhooks three times", "Three attempts within the hour, then the event is thrown away.", days_ago=90)
    told = {"outdated": {old.id: TOPIC[0]}}
    assert ("outdated", "statement") in doubts("After three attempts the event is thrown away.", [*TOPIC, old], **told)
    assert doubts("Formerly the event was thrown away after three attempts.", [*TOPIC, old], **told) == set()
    assert doubts("After three attempts the event is thrown away.", [*TOPIC, old]) == set()
    s = summarize_cluster([*TOPIC, old], {old.id: TOPIC[0]}, LexicalEmbedder(), coherence=0.5, created_at=SAMPLE_NOW)
    assert s.superseded_facts and verify(s, [*TOPIC, old], **told).ok() and verify(s, [*TOPIC, old]).ok()
    again = replace(s, summary="After three attempts the event is thrown away.", quotes=())
    assert verify(again, [*TOPIC, old], outdated={}).of("outdated") == () != verify(again, [*TOPIC, old]).of("outdated")  # What is given decides


def test_a_replacement_from_elsewhere_counts_as_a_source():
    new = mem("Webhooks go through a queue", "Delivered by the broker.", days_ago=1)
    s = summarize_cluster(TOPIC, {TOPIC[0].id: new}, LexicalEmbedder(), coherence=0.5, created_at=SAMPLE_NOW)
    assert verify(s, TOPIC, outdated={TOPIC[0].id: new}).ok()
    wrong = replace(s, superseded_facts=(SupersededFact("Retry webhooks six times", "Webhooks are mined on the moon by 9 robots", TOPIC[0].id),))
    assert not verify(wrong, TOPIC, outdated={TOPIC[0].id: new}).ok()


def test_a_quotation_that_is_no_longer_told():
    s = summarize_cluster(TOPIC, {}, LexicalEmbedder(), coherence=0.5, created_at=SAMPLE_NOW)
    v = verify(replace(s, summary="Webhook signatures are HMAC.", key_facts=(), decisions=()), TOPIC)
    assert any((f.status, f.kind) == ("dropped", "quote") for f in v.findings) and not v.ok() and verify(s, TOPIC).ok()


def test_what_was_expected():
    short, more = "Webhooks are retried six times within one day.", "Six attempts over 24 h. Never retry a 410."
    assert verify(short, TOPIC).ok() and not verify(short, TOPIC, expected=more).ok() and verify(more, TOPIC, expected=more).ok()


def test_the_figures():
    whole, half = verify(" ".join(f"{m.summary}. {m.content}" for m in TOPIC), TOPIC), verify("Webhook signatures are HMAC.", TOPIC)
    assert (whole.faithfulness, whole.coverage) == (1.0, 1.0) and (half.faithfulness, half.coverage) == (1.0, pytest.approx(1 / 3))
    assert verify("Moons.", TOPIC).faithfulness < 0.5 and verify("", []).ok() and 0 < whole.coherence < 1
    assert verify("", TOPIC, coherence=0.7).coherence == 0.7 and verify("x", TOPIC[:1]).coherence == 1.0


# Any text


texts = st.text(max_size=150) | st.lists(st.sampled_from([m.summary for m in TOPIC] + [m.content for m in TOPIC] + [
    "not", "six", "24 h", "- ", "\n", "```\n", "| a |", "v1.4.2", "3 May", "never", "`", "(", "…", "日本語。"]), max_size=10).map(" ".join)


@pytest.mark.slow
@given(texts, st.lists(texts, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_any_text(summary, bodies, chance):
    sources = [*TOPIC, *(mem(b[:40], b, days_ago=i) for i, b in enumerate(bodies))]
    v = verify(summary, sources)
    chance.shuffle(sources)
    assert verify(summary, sources) == v
    assert all(0 <= x <= 1 for x in (v.faithfulness, v.coverage, v.coherence, v.suspicion)) and all(0 <= f.suspicion <= 1 for f in v.findings)
    by_id = {m.id: m for m in sources}
    assert all(f.source.holds(by_id[f.source.memory_id]) for f in v.findings if f.source)
    assert all(f.part == "summary" and summary[f.start:f.end].strip() for f in v.findings if f.status != "dropped")
    assert len([f for f in v.findings if f.part and f.kind not in ("statement", "negation")]) == len([f for f in find_facts(summary) if f.kind != "negation"])


@given(st.lists(st.sampled_from(["Retry six times.", "- Jitter of 20 %", "It is not cached", "\n\n", "## Why", "Since 3 May.", "```\nx=1\n```",
                                 "v2.1 of src/a.py"]), min_size=1, max_size=8).map("\n".join))
def test_a_text_is_faithful_to_itself(text):
    v = verify(text, [mem("", text)])
    assert v.ok() and v.faithfulness == 1.0 and v.coverage == 1.0 and not [f for f in v.findings if f.status == "changed"]


# In numbers


@pytest.mark.slow
def test_the_sample_passes(summaries):
    checked = [verify(s, members) for s, members in summaries]
    assert all(v.ok() for v in checked) and min(v.faithfulness for v in checked) >= 0.95
    assert all(0 < v.coverage <= 1 for v in checked)


def elsewhere(members):
    rest = [m.content for m in sample_memories() if m not in members]
    return [t[s.start:s.end] for t in rest for s in split_sentences(t)[:2] if s.kind == "text" and 40 < s.end - s.start < 200]


@pytest.mark.slow
def test_mutations_are_found(summaries):
    scores, seed = defaultdict(list), "tests"
    for i, (s, members) in enumerate(summaries[::2]):
        foreign = elsewhere(members)
        for form in (s, f"{s.summary} {' '.join(s.key_facts)}", retell(s, f"{seed} {i}")):
            scores["faithful"].append(verify(form, members, coherence=0.5).suspicion)
            for kind in KINDS:
                if kind == "dropped" and isinstance(form, str): continue
                if wrong := mutate(form, kind, f"{seed} {i}", foreign): scores[kind].append(verify(wrong, members, coherence=0.5).suspicion)
    rate = {k: sum(x >= 0.5 for x in v) / len(v) for k, v in scores.items()}
    assert rate.pop("faithful") <= 0.05 and min(rate.values()) >= 0.95 and set(rate) == set(KINDS), rate
    assert sum(map(len, scores.values())) > 300


@pytest.mark.slow
def test_summaries_told_freely():
    rows = [json.loads(line) for line in (ROOT / "tests" / "fixtures" / "retold.jsonl").read_text(encoding="utf-8").splitlines()]
    alarms, found = 0, defaultdict(list)
    for i, row in enumerate(rows):
        members = [m for m in sample_memories() if m.summary in row["sources"]]
        alarms += not verify(row["text"], members).ok()
        for kind in ("number", "version", "path", "date", "invented"):
            if wrong := mutate(row["text"], kind, i, elsewhere(members)): found[kind].append(not verify(wrong, members).ok())
    assert alarms <= 0.08 * len(rows) and all(sum(v) >= (0.85 if kind == "date" else 0.9) * len(v) for kind, v in found.items())


# Mutations


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutation_is_one_change_and_always_the_same(summaries, kind):
    for i, (s, _) in enumerate(summaries[:25]):
        made = mutate(s, kind, i, ["Cats are grey in Lisbon."])
        assert made == mutate(s, kind, i, ["Cats are grey in Lisbon."]) and (made is None or made != s and made.quotes == s.quotes)
        if made is None: continue
        if kind == "dropped": assert len(made.key_facts) + len(made.decisions) == len(s.key_facts) + len(s.decisions) - 1
        else: assert len(set(parts(made).items()) - set(parts(s).items())) == 1


@given(texts, st.sampled_from(KINDS), st.integers(0, 99))
def test_any_text_is_mutated_or_not(text, kind, seed):
    made = mutate(text, kind, seed, ["Cats are grey."])
    assert made is None or made != text
    assert isinstance(retell(text, seed), str)


def test_quotes_are_the_sources_own(summaries):
    s, members = summaries[0]
    assert all(isinstance(f.source, Quote) for f in verify(s, members).findings if f.status == "kept")
