"""Verifying summaries: what is quoted passes, what is changed is found, and no text breaks it."""
import json
import pytest
from collections import defaultdict
from helpers import ROOT, rows_of
from hypothesis import given, settings, strategies as st
from mutants import KINDS, mutate, retell
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.similarity.clusters import cluster_memories
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.summaries.extraction import summarize_cluster
from git_notes_consolidation.summaries.verification import verify
from git_notes_consolidation.text.words import split_sentences


ROWS = rows_of(__name__)
TOPIC = [mem("Retry webhooks six times", "Six attempts over 24 h, because receivers are down for a night at most. Never retry a 410.", days_ago=40),
         mem("Webhook retries need jitter", "Jitter of 20% in `src/webhooks/retry.py` spreads the load. Not cached.", days_ago=30, namespace="learnings"),
         mem("Webhook signatures are HMAC", "Sign webhooks with HMAC-SHA256. Since 3 May 2026 in v1.4.2, on Python 3.11.", days_ago=20)]


def doubts(text, sources=TOPIC, **kw): return {x.kind for f in verify(text, sources, **kw).wrong for x in f.faults}


@pytest.fixture(scope="module")
def summaries():
    "The sample's clusters, each with its summary."
    by_id, lexical = {m.id: m for m in sample_memories()}, LexicalEmbedder()
    rows = lexical.embed([m.text for m in by_id.values()])
    clusters = [[by_id[i] for i in c.memory_ids] for c in cluster_memories(list(by_id.values()), dict(zip(by_id, rows)), SubconsciousnessConfig())]
    return [(summarize_cluster(c, {}, lexical, coherence=0.5, created_at=SAMPLE_NOW), c) for c in clusters]


# One at a time


@pytest.mark.parametrize("text", ROWS["what is faithful"])
def test_what_is_faithful(text): assert doubts(text) == set()


@pytest.mark.parametrize("text,fault", ROWS["what is not"])
def test_what_is_not(text, fault): assert fault in doubts(text)


PUMPS = [mem("The pump has seven attempts"), mem("Six attempts for the motor", "And for the fan.")]
DOWN = [mem("Outage", "The relay was down yesterday, again on Tuesday.", days_ago=0)]


@pytest.mark.parametrize(("said", "sources", "faults"), [
    ("Retries: motor and fan six attempts, pump seven.", PUMPS, set()), ("The pump has seven attempts, the motor six.", PUMPS, set()),
    ("The pump has six attempts.", [*TOPIC, mem("The pump has seven attempts", "Its valves have two.", days_ago=1)], {"changed"}),
    ("The relay was down on 31 October 2026.", DOWN, set()), ("In November 2026 the relay was down.", DOWN, set()),
    ("The relay was down on 28 October 2026.", DOWN, {"invented"}),
    *((f"The pump runs {x}.", [mem("The pump runs each 8 hours")], set()) for x in ("three times a day", "every 8 hours", "once in 480 minutes"))])
def test_values_in_their_places(said, sources, faults): assert doubts(said, sources) == faults


def test_a_fault_names_both_sides():
    v = verify("A 410 is retried. Receivers are down.", TOPIC)
    (f,) = v.wrong
    assert (f.part, f.said, f.faults[0].instead, v.faithfulness) == ("summary", "A 410 is retried.", "Never retry a 410.", 0.5)
    assert f.source.holds(next(m for m in TOPIC if m.id == f.source.memory_id)) and "A 410 is retried. Receivers"[f.start:f.end] == f.said


def test_what_is_outdated_must_be_told_as_past():
    old = mem("Retry webhooks three times", "Three attempts within the hour, then the event is thrown away.", days_ago=90)
    told = {"outdated": {old.id: TOPIC[0]}}
    assert "outdated" in doubts("After three attempts the event is thrown away.", [*TOPIC, old], **told)
    for past in ("Formerly the event was thrown away after three attempts.", "Six attempts instead of three."):
        assert doubts(past, [*TOPIC, old], **told) == set()
    assert doubts("After three attempts the event is thrown away.", [*TOPIC, old]) == set()
    s = summarize_cluster([*TOPIC, old], {old.id: TOPIC[0]}, LexicalEmbedder(), coherence=0.5, created_at=SAMPLE_NOW)
    assert s.superseded_facts and verify(s, [*TOPIC, old], **told).ok() and verify(s, [*TOPIC, old]).ok()


def test_what_came_back_holds():
    chain = [mem("Returns within 30 days", "The buyer pays the post.", days_ago=30), mem("Returns within 90 days", days_ago=20),
             mem("30 days for returns again", days_ago=10)]
    told = {"outdated": {a.id: b for a, b in zip(chain, chain[1:])}}
    assert doubts("Returns are possible within 30 days, the buyer pays the post.", chain, **told) == set()
    assert doubts("Returns are possible within 90 days.", chain, **told) == {"outdated"}


def test_an_amended_memory_holds_but_for_the_value_that_was_changed():
    old, new = mem("Retries: base 5 s, max 10 min, 8 attempts", days_ago=9), mem("Correction: 6 attempts, not 8", days_ago=1)
    told = {"amended": {old.id: new}}
    assert doubts("Retries start at 5 s, with 6 attempts and at most 10 min.", [old, new], **told) == set()
    assert doubts("Retries have 8 attempts.", [old, new], **told) == {"outdated"}


def test_a_value_that_falls_falls_everywhere():
    assert len(verify("Webhooks get 7 attempts. The load is spread over seven attempts by jitter.", TOPIC).wrong) == 2


def test_relative_dates_mean_nothing_to_a_reader(): assert "undated" in doubts("Webhooks were retried six times yesterday.")


def test_what_is_missing_is_no_fault():
    short, more = "Webhooks are retried six times within one day.", "Six attempts over 24 h. Never retry a 410."
    v = verify(short, TOPIC, expected=more)
    assert v.ok() and v.missing == ("Never retry a 410.",) and verify(more, TOPIC, expected=more).missing == ()


def test_quotations_are_held_to_their_words():
    def shown(quote): return not verify("Webhooks are retried six times.", TOPIC, quotes={"Webhooks are retried six times.": quote}).wrong
    assert shown("retry webhooks SIX times") and shown("six  attempts, over 24 h") and not shown("seven attempts") and not shown("Not cached")
    assert verify("Jitter is 20%.", TOPIC, quotes={"another": "x"}).wrong[0].faults[0].kind == "unquoted"


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
    assert 0 <= v.faithfulness <= 1 and 0 <= v.coverage <= 1
    by_id = {m.id: m for m in sources}
    assert all(f.source.holds(by_id[f.source.memory_id]) for f in v.findings if f.source)
    assert all(f.part == "summary" and summary[f.start:f.end] == f.said for f in v.findings)


@given(st.lists(st.sampled_from(["Retry six times.", "- Jitter of 20 %", "It is not cached", "\n\n", "## Why", "Since 3 May.", "```\nx=1\n```",
                                 "v2.1 of src/a.py"]), min_size=1, max_size=8).map("\n".join))
def test_a_text_is_faithful_to_itself(text):
    v = verify(text, [mem("", text)])
    assert v.ok() and v.coverage == 1.0


# In numbers


@pytest.mark.slow
def test_the_sample_passes(summaries):
    checked = [verify(s, members) for s, members in summaries]
    assert all(v.ok() for v in checked) and all(0 < v.coverage <= 1 for v in checked)


def elsewhere(members):
    rest = [m.content for m in sample_memories() if m not in members]
    return [t[s.start:s.end] for t in rest for s in split_sentences(t)[:2] if s.kind == "text" and 40 < s.end - s.start < 200]


@pytest.mark.slow
def test_mutations_are_found(summaries):
    found, seed = defaultdict(list), "tests"
    for i, (s, members) in enumerate(summaries[::2]):
        foreign = elsewhere(members)
        for form in (s, f"{s.summary} {' '.join(s.key_facts)}", retell(s, f"{seed} {i}")):
            found["faithful"].append(not verify(form, members).ok())
            for kind in KINDS:
                if wrong := mutate(form, kind, f"{seed} {i}", foreign):
                    v = verify(wrong, members, expected=form)
                    found[kind].append(bool(v.missing) if kind == "dropped" else not v.ok())
    rate = {k: sum(x) / len(x) for k, x in found.items()}
    assert rate.pop("faithful") <= 0.05 and min(rate.values()) >= 0.75 and set(rate) == set(KINDS), rate
    assert sum(map(len, found.values())) > 300


@pytest.mark.slow
def test_summaries_told_freely():
    rows = [json.loads(line) for line in (ROOT / "tests" / "fixtures" / "retold.jsonl").read_text(encoding="utf-8").splitlines()]
    dropped, found = [], defaultdict(list)
    for i, row in enumerate(rows):
        members = [m for m in sample_memories() if m.summary in row["sources"]]
        dropped.append(len(verify(row["text"], members).wrong))
        for kind in ("number", "version", "path", "date", "invented"):
            if wrong := mutate(row["text"], kind, i, elsewhere(members)):
                found[kind].append(any(f.faults for f in verify(wrong, members).findings if f.said not in row["text"]))
    assert max(dropped) <= 1 and sum(dropped) <= 0.3 * len(rows) and all(sum(v) >= (0.85 if kind == "date" else 0.9) * len(v) for kind, v in found.items())


# Mutations
