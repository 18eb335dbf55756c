"""Summaries: every sentence stands in a source, what is outdated is never told, and the order of the memories does not matter."""
import json
from datetime import timedelta

import pytest
from git_notes_consolidation.similarity.clusters import cluster_memories
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.core.models import MemorySummary
from git_notes_consolidation.summaries.extraction import (
    NothingToQuote, decision, find_outdated, is_decision, outcome, overturned_sentences, reason, summarize_cluster)
from git_notes_consolidation.summaries.quotations import as_title, headline, is_statement, lines, normalized, same_statement, sentences, with_dates
from git_notes_consolidation.summaries.verification import parts, verify
from helpers import rows_of
from hypothesis import given, settings, strategies as st

ROWS, LEXICAL = rows_of(__name__), LexicalEmbedder()
PIECES = ["Retry six times.", "Jitter of 20% spreads the load!", "e.g. the mail worker", "“All. Of them.”", "\n", "\n\n", "- ", "1. ", "## Decision\n",
          "```\ncode\n```\n", "---\n", "> said", "...and then it", "it failed...", "Because of that, five", "日本語。", "v1.2", " ", "**bold** words",
          "| a | b |\n"]
bodies = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)
memories = st.lists(st.builds(lambda s, b, d, ns: mem(s, b, days_ago=d, namespace=ns), st.sampled_from(PIECES[:4] + ["", "Use HMAC",
"Webhooks are retried six times by the worker"]), bodies,
                              st.integers(0, 40), st.sampled_from(["decisions", "learnings",
                              "progress"])), min_size=1, max_size=8, unique_by=lambda m: m.id)


def summarize(ms, outdated=None, **kw): return summarize_cluster(ms, outdated or {}, LEXICAL, **{"coherence": 0.6, "created_at": SAMPLE_NOW} | kw)


def places(summary):
    "Where each part of a summary stands in its sources."
    found = {name: [q for q in summary.quotes if same_statement(normalized(q.text), normalized(text))] for name, text in parts(summary).items()}
    most = {name: max((len(q.text) for q in quotes), default=0) for name, quotes in found.items()}
    return {name: [q for q in quotes if name == "summary" or len(q.text) == most[name]] for name, quotes in found.items()}


# Sentences

@pytest.mark.slow
@given(st.text(max_size=30), bodies | st.text(max_size=200))
@settings(max_examples=300)
def test_every_sentence_holds_where_it_says(summary, body):
    m = mem(summary, body)
    found = sentences(m)
    assert all(q.holds(m) and q.text == q.text.strip() != "" for q in found)
    body_quotes = [q for q in found if q.field == "content"]
    assert all(a.end <= b.start for a, b in zip(body_quotes, body_quotes[1:]))
    assert [q.field for q in found] == ["summary"] * (len(found) - len(body_quotes)) + ["content"] * len(body_quotes)


@pytest.mark.parametrize("text", ROWS["fragments"])
def test_a_fragment_does_not_stand(text): assert not is_statement(text)


@pytest.mark.parametrize("text", ROWS["statements"])
def test_a_statement_stands(text): assert is_statement(text)


# Summaries

def tellable(m, without=()):
    "What of a memory may be told: told by itself, whole, and more than one word."
    whole = [x.quote for x in lines(m) if x.own and is_statement(x.quote.text) and x.quote not in without]
    return [q for q in whole if not q.text.isascii() or " " in normalized(q.text)]


@pytest.mark.slow
@given(memories, st.randoms(use_true_random=False), st.data())
@settings(max_examples=200)
def test_a_summary_of_anything(ms, rnd, data):
    chosen = data.draw(st.lists(st.sampled_from(ms), max_size=3, unique_by=lambda m: m.id))
    half = data.draw(st.integers(0, len(chosen)))
    new = data.draw(st.sampled_from([mem("Retry webhooks ten times"), mem("What replaced it", "Ten times, not six."), mem("...ten times"), ms[-1]]))
    gone, part = {m.id: new for m in chosen[:half] if m is not new}, {m.id: new for m in chosen[half:] if m is not new}
    over = find_outdated(sorted(ms, key=lambda m: (m.timestamp, m.id)), gone, part)
    current = [m for m in ms if m.id not in gone]
    if not any(tellable(m, over.without) or (h := headline(m)) and h.quote not in over.without and " " in normalized(h.quote.text) for m in current):
        with pytest.raises(NothingToQuote, match="nothing to quote"): summarize(ms, gone, amended=part)
        return
    s = summarize(ms, gone, amended=part)
    shuffled = list(ms)
    rnd.shuffle(shuffled)
    assert summarize(shuffled, dict(reversed(gone.items())), amended=dict(reversed(part.items()))) == s
    assert all(any(q.holds(m) for m in (*ms, new)) for q in s.quotes) and set(s.source_memory_ids) == {m.id for m in ms}
    where = places(s)
    assert set(where) == set(parts(s)) and all(where.values())  # nothing without a quotation
    told = [q for name, quotes in where.items() if not name.startswith("superseded") for q in quotes]
    assert all(is_statement(q.text) for q in told if q.memory_id not in gone and q.memory_id not in part)
    assert {f.source_memory_id for f in s.superseded_facts} == {m.id for m in ms if m.id in {**gone, **part} and sentences(m) and sentences(new)}
    assert s.temporal_range == (min(m.timestamp for m in ms), max(m.timestamp for m in ms)) and s.created_at == SAMPLE_NOW
    assert 0 <= s.coverage <= 1 and s.namespace in {m.namespace for m in current}
    assert s.title and len(s.title.split()) <= 10 and len(s.key_facts) <= 5 and len(s.decisions) <= 3 and s.summary
    assert s.title[-1] not in ":,;" and not s.title.startswith(("...", "…", "#", "- ", "* ", "1. ")) and not s.title.endswith(("...", "…"))
    assert MemorySummary.from_dict(json.loads(json.dumps(s.to_dict()))) == s
    assert s.confidence.overall == pytest.approx(0.6) and s.coverage == verify(s, ms, outdated=gone, amended=part).coverage


@pytest.mark.slow
@given(memories, st.data())
@settings(max_examples=150)
def test_nothing_outdated_is_told_as_current(ms, data):
    gone = {m.id: mem("What replaced it") for m in data.draw(st.lists(st.sampled_from(ms), max_size=3))}
    try: s = summarize(ms, gone)
    except NothingToQuote: return
    current = {normalized(q.text) for m in ms if m.id not in gone for q in sentences(m)}
    texts = [s.title, *s.key_facts, *(d.decision for d in s.decisions), *(d.rationale for d in s.decisions)]
    assert all(any(same_statement(normalized(t), c) for c in current) for t in texts if t)
    assert not {d.decision for d in s.decisions} & {m.summary for m in ms if m.id in gone} - {m.summary for m in ms if m.id not in gone}


@pytest.mark.slow
@given(memories)
@settings(max_examples=100)
def test_nothing_is_said_twice(ms):
    try: s = summarize(ms)
    except NothingToQuote: return
    told = [normalized(f) for f in s.key_facts]
    assert not any(same_statement(a, b) for i, a in enumerate(told) for b in told[:i]) and normalized(s.summary) not in told


def test_the_id_knows_sources_and_what_is_outdated_and_nothing_else():
    a, b, c = (mem(f"Use {w}", days_ago=d) for w, d in (("cron", 9), ("a queue", 5), ("NATS", 1)))
    assert summarize([a, b]).id == summarize([b, a], created_at=SAMPLE_NOW + timedelta(days=1), run_id="run_x", coherence=0.1).id
    assert len({summarize(x, y).id for x, y in (([a, b], {}), ([a, b, c], {}), ([a, b], {a.id: b}), ([a, b], {a.id: c}))}) == 4
    assert summarize([a, b], {c.id: b}).id == summarize([a, b]).id  # what is outdated elsewhere is not its business


def test_a_fragment_is_not_told_where_something_better_is():
    body = "...| retry | done |\nLet me retry webhooks again.\n"
    torn = [mem(f"...| 5.{i} | Retry webhooks {i} times | done | Compl...", body, days_ago=i) for i in range(9)]
    s = summarize([*torn, mem("Webhooks are retried", "Webhooks are retried by the worker.", days_ago=20)])
    assert s.title == "Webhooks are retried" and "..." not in " ".join(parts(s).values()) and "Let me" not in s.summary
    with pytest.raises(NothingToQuote): summarize(torn)


def test_options_and_quotations_of_others_are_not_told():
    s = summarize([mem("Webhooks are retried", "The worker retries webhooks.\n\n> Webhooks are never retried.\n\n## Options\n- Retry webhooks ten times.")])
    assert "never" not in str(parts(s)) and "ten times" not in str(parts(s)) and "The worker retries webhooks." in s.summary


# Titles


def title_of(text):
    q = as_title(sentences(mem(text))[0])
    return q and q.text


@pytest.mark.parametrize("text,title", ROWS["titles"])
def test_titles(text, title): assert title_of(text) == title


@given(st.text(alphabet="ab (),:;-#*|.` \n", min_size=1, max_size=120)
       | st.lists(st.sampled_from(["retry", "six", "times,", "because", "(now)", "- ", "not", "`x", ":"]), max_size=20).map(" ".join))
def test_a_title_is_a_place(text):
    m = mem(text)
    for q in sentences(m):
        made = as_title(q)
        if made is None: continue
        assert made.holds(m) and 0 < len(made.text.split()) <= 10 and q.start <= made.start < made.end <= q.end
        assert not made.text.endswith((" ", ".", ",", ";", ":")) and not made.text.startswith((" ", "- ", "* ", "# ", ": "))


def test_a_cut_headline_is_completed_from_the_body():
    m = mem("Webhooks are retried six times by the wor...", "Webhooks are retried six times by the worker\n\nReceivers are down at night.")
    assert headline(m).quote.field == "content" and summarize([m]).title == "Webhooks are retried six times by the worker"
    assert headline(mem("Webhooks are retried six times by the wor...", "Something else.")) is None


# Decisions


ADR = mem("Retry webhooks six times", "## Context\nReceivers are down at night.\n\n## Options\n- Ten attempts, because it is safe.\n\n"
          "## Decision\nWe retry six times.\n\n## Rationale\nSix cover a night.\n\n## Consequences\nEvents arrive late.\n\nOutcome: none was lost.\n")


def test_reasons_in_their_order():
    line = sentences(ADR)[0]
    assert reason(line, ADR).text == "Six cover a night." and outcome(line, ADR).text == "none was lost."
    def without(heading): return mem(ADR.summary, ADR.content.replace(heading, "Notes"))
    no_rationale = without("Rationale")
    assert reason(sentences(no_rationale)[0], no_rationale).text == "Receivers are down at night."
    late = mem("Retry six times", "## Consequences\nEvents arrive late.")
    assert reason(sentences(late)[0], late).text == "Events arrive late." and decision(late).came is None  # told once
    said_so = mem("Retry six times", "We saw it, and that is that.\n\nIt holds because a night is short.\n\n## Why\nIt is known.")
    assert reason(sentences(said_so)[0], said_so).text == "It holds because a night is short."


@pytest.mark.parametrize("text", ROWS["decisions"])
def test_decisions_are_seen(text): assert is_decision(lines(mem("x", text))[1])


@pytest.mark.parametrize("text", ROWS["no decisions"])
def test_what_is_no_decision(text): assert not any(map(is_decision, lines(mem("x", text))[1:]))


def test_authority_is_not_gained():
    learned = mem("Nights are long", "We decided to retry six times.", namespace="learnings")
    assert [decision(m).confidence for m in (ADR, mem("Retry six times"), learned)] == ["high", "medium", "medium"]
    assert [decision(m) for m in (mem("Nights are long", namespace="learnings"), mem("Proposal: ten times"), mem("Ten times?"))] == [None] * 3
    s = summarize([ADR, learned, *(mem(f"Retries of webhooks {i}", namespace="learnings", days_ago=i) for i in range(3))])
    assert s.namespace == "learnings" and s.tier == "warm" and s.activation_count == 0 and [d.confidence for d in s.decisions] == ["high", "medium"]


def test_an_outdated_decision_is_none():
    old = mem("Retry webhooks three times", "We decided it, because three is enough.", days_ago=90)
    s = summarize([old, ADR], {old.id: ADR})
    assert [d.decision for d in s.decisions] == [ADR.summary] and "three" not in s.title + s.summary + "".join(s.key_facts)
    assert [(f.original_fact, f.superseded_by) for f in s.superseded_facts] == [(old.summary, f"{ADR.summary} (2026-11-01)")]
    assert [len(places(s)[f"superseded_facts[0].{k}"]) for k in ("original_fact", "superseded_by")] == [1, 1]


# Parts


OLD = mem("Failed jobs are kept for 30 days", "Failed jobs are kept for 30 days in the archive.\n\nA job can be replayed from the archive.\n\n"
          "We decided to retry jobs six times.", days_ago=90)


@pytest.mark.parametrize("new,over", ROWS["which sentence is over"])
def test_which_sentence_is_over(new, over):
    found = [a.text for a, _ in overturned_sentences(OLD, mem(new))]
    assert len(found) == len(over) and all(sentences(OLD)[-1].text == f if o == -1 else f.startswith(o) for f, o in zip(found, over))


def test_the_amended_sentence_is_replaced_and_the_rest_stays():
    new = mem("Failed jobs are kept for 60 days", "The auditors asked for it.", days_ago=3)
    for ms in ([OLD], [OLD, new]):
        s = summarize(ms, amended={OLD.id: new})
        told = " ".join(t for name, t in parts(s).items() if not name.startswith("superseded"))
        assert "30 days" not in told and "60 days" in told and "six times" in told and "in part" not in told
        assert {f.original_fact for f in s.superseded_facts} == {"Failed jobs are kept for 30 days", "Failed jobs are kept for 30 days in the archive."}
        assert s.confidence.overall == pytest.approx(0.6) and {q.memory_id for q in s.quotes} == {OLD.id, new.id}
        assert s.source_memory_ids == tuple(m.id for m in ms)


def test_an_unclear_amendment_marks_what_it_amends():
    new = mem("Jobs of banks are exempt", "The auditors asked for it.", days_ago=3)
    s = summarize([OLD, mem("Archive of jobs", "The archive of jobs is on the second disk.", days_ago=5)], amended={OLD.id: new})
    told = {t for name, t in parts(s).items() if name not in ("title", "summary") and not name.startswith("superseded")}
    mine = {normalized(q.text) for q in sentences(OLD)}
    assert (all(("(in part outdated)" in t) == any(same_statement(normalized(t), x) for x in mine) for t in told if t)
            and any("in part" in t for t in told | {s.summary}))
    assert [f.superseded_by for f in s.superseded_facts] == ["in part: Jobs of banks are exempt (2026-10-29)"]
    assert any("exempt" in t for t in told | {s.summary})


def test_an_amendment_that_is_outdated_itself_is_not_told():
    new, newest = mem("Failed jobs are kept for 60 days", days_ago=30), mem("Failed jobs are kept for 90 days", days_ago=3)
    s = summarize([OLD, new, newest], {new.id: newest}, amended={OLD.id: new})
    told = " ".join(t for name, t in parts(s).items() if not name.startswith("superseded"))
    assert "30 days" not in told and "60 days" not in told and "90 days" in told


# Time


def test_relative_days_get_their_day():
    m = mem("Relay outage", "The relay was down yesterday.", days_ago=30)
    s = summarize([m])
    assert "The relay was down yesterday (2026-10-01)." in s.summary
    assert s.confidence.overall == pytest.approx(0.6)
    assert (with_dates("Yesterday's release", SAMPLE_NOW) == "Yesterday's release (2026-10-31)"
            and with_dates("Due on Monday", SAMPLE_NOW) == "Due on Monday (2026-11-02)")


def test_no_summary_of_summaries():
    s = summarize([ADR])
    with pytest.raises(ValueError, match="never summaries"): summarize([ADR, mem(s.title, s.summary, id=s.id)])


# In numbers


@pytest.fixture(scope="module")
def clusters():
    by_id = {m.id: m for m in sample_memories()}
    rows = LEXICAL.embed([m.text for m in by_id.values()])
    return [[by_id[i] for i in c.memory_ids] for c in cluster_memories(list(by_id.values()), dict(zip(by_id, rows)), SubconsciousnessConfig())]


@pytest.mark.slow
def test_the_sample(clusters):
    for ms in clusters:
        s = summarize(ms)
        assert s.confidence.overall == pytest.approx(0.6) and verify(s, ms).ok()
        assert all(any(q.holds(m) for m in ms) for q in s.quotes) and all(places(s).values()) and len(s.summary.split()) <= 100
        assert 0 < s.coverage <= 1 and s.title and places(s)["title"]
        assert as_title(max((q for q in places(s)["title"]), key=lambda q: len(q.text))) is not None
