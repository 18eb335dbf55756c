"""The language model's layer over real HTTP: a server that works, and every way in which one does not."""

import pytest
from llm_clients import GOOD, ask, cloud, local
from llm_servers import FAULTS, Reply, changed, refuses

from git_notes_consolidation.llm.providers import input_bound


# One fault after the other: how often the first is asked, and that the second answers

ONCE = ("401", "403", "quota", "429 later", "bad request", "no model", "not found")
BROKEN = ("dropped", "short", "html", "not json", "a list", "json null", "nested", "bytes", "bad gzip", "not http", "flood", "redirect")
NOTHING = ("empty", "null", "no choices", "no message")
UNFIT = ("garbage", "wrong schema", "extra key", "unknown id", "half letters", "orders")
TWICE = (*BROKEN, *NOTHING, *UNFIT, "truncated")
THRICE = ("429", "429 silent", "500", "502", "503")
KIND = {"401": "auth", "403": "auth", "quota": "quota", "429": "rate", "429 later": "rate", "429 silent": "rate", "bad request": "parameter",
        "no model": "model", "not found": "model", "500": "server", "502": "server", "503": "server", "truncated": "schema"}
KIND |= dict.fromkeys(BROKEN, "broken") | dict.fromkeys(NOTHING, "empty") | dict.fromkeys(UNFIT, "schema")
CALLS = dict.fromkeys(ONCE, 1) | dict.fromkeys(TWICE, 2) | dict.fromkeys(THRICE, 3)
OPENS = ("401", "403", "quota")  # at once and for long
LEFT = (*OPENS, "429 later")  # not asked again in this run
COUNTS = ("500", "502", "503", *BROKEN)  # when it happens again and again


@pytest.mark.parametrize("fault", CALLS)
def test_a_fault_is_tried_again_as_often_as_it_makes_sense_and_the_next_provider_answers(fault, faulty_llm, asking):
    bad, good = faulty_llm(always=fault), faulty_llm()
    client = asking(cloud(bad), local(good))
    a = ask(client)
    assert (a.value["verdict"], a.provider, a.failure) == ("duplicate", "ollama", "")
    assert (bad.calls, good.calls, a.calls) == (CALLS[fault], 1, CALLS[fault] + 1)
    u = client.usage()
    assert u.faults == {KIND[fault]: CALLS[fault]} and not u.failures
    assert (u.asked, u.answered, u.calls) == (1, 1, CALLS[fault] + 1)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("fault", [f for f in CALLS if KIND[f] != "model"])
def test_the_breaker_knows_who_is_to_be_left_alone(fault, faulty_llm, asking):
    bad, good = faulty_llm(always=fault), faulty_llm()
    client = asking(cloud(bad), local(good))
    for i in range(4): assert ask(client, f"question {i}").provider == "ollama"
    assert bad.calls == (1 if fault in LEFT else 5 if fault in COUNTS else 4 * CALLS[fault])
    client.now[0] += 45
    ask(client, "later")
    assert bad.calls == (1 if fault in LEFT else 6 if fault in COUNTS else 5 * CALLS[fault])  # one looks whether it works again
    assert client.usage().failures == {} and good.calls == 5


def test_a_rate_limit_is_waited_for_as_long_as_the_server_says(faulty_llm, asking):
    client = asking(cloud(server := faulty_llm("429", "429")))
    assert (ask(client).failure, server.calls) == ("", 3)
    assert len(client.waited) >= 2 and sum(client.waited) == pytest.approx(2, abs=0.1)


# Nobody answers, or too late


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["silent", "trickle"])
def test_a_call_has_an_end_and_stays_charged(fault, faulty_llm, asking):
    bad, good = faulty_llm(always=fault), faulty_llm()
    client = asking(cloud(bad), local(good), llm_timeout_s=1.0)
    a = ask(client)
    assert (a.provider, bad.calls, good.calls, dict(client.usage().faults)) == ("ollama", 2, 1, {"timeout": 2})
    assert client.ledger.spent()[0] >= 2 * input_bound("Judge.", "Do M1 and M2 say the same?")


def no_bill(body, good): return changed(FAULTS["refusal"](body, good), usage=None)


@pytest.mark.parametrize("fault, kind", [("dropped", "broken"), ("short", "broken"), ("html", "broken"), ("no choices", "empty"), (no_bill, "refusal"),
                                         ("no usage", ""), ("false usage", "")])
def test_without_a_bill_the_reservation_stays_charged(fault, kind, faulty_llm, asking):
    client = asking(cloud(server := faulty_llm(always=fault)), redact=str)
    a = ask(client)
    assert a.failure == kind
    least_bound = input_bound("Judge.", "Do M1 and M2 say the same?") + 300
    assert client.ledger.spent()[0] >= server.calls * least_bound and a.cost == pytest.approx(client.ledger.spent()[1]) and a.cost > 0
    assert (a.tokens_in, a.tokens_out) == (0, 0)  # What was reserved is told apart from what came back


def test_who_is_redirected_goes_nowhere(faulty_llm, asking):
    other = faulty_llm()
    there = Reply(307, b"", (("location", f"{other.url}/chat/completions"),))
    assert ask(asking(cloud(faulty_llm(always=there)))).failure == "broken" and other.log == []


# Replies that stop everything


# Models and parameters


@pytest.mark.parametrize("model, names", [("gpt-5-nano", ["reasoning_effort"]), ("gpt-4o-mini", ["temperature"]), ("llama3.2", ["response_format"]),
                                          ("gpt-4o-mini", ["temperature", "max_tokens"])])
def test_a_parameter_that_is_not_supported_is_dropped_and_stays_so(model, names, faulty_llm, asking):
    server = faulty_llm(always=refuses(*names), brain=lambda body: GOOD)
    client = asking(cloud(server, model))
    assert [ask(client, f"{i}").failure for i in range(3)] == [""] * 3
    assert [sum(n in b for n in names) for b in server.bodies] == [*range(len(names), 0, -1), 0, 0, 0]
    assert all("max_tokens" in b or "max_completion_tokens" in b for b in server.bodies)


def test_a_reply_that_was_cut_is_asked_for_once_more_with_twice_the_room_and_never_repaired(faulty_llm, asking):
    bad, good = faulty_llm(always="length"), faulty_llm()
    a = ask(asking(cloud(bad), local(good)), max_tokens=300)
    assert (a.value, a.failure, good.calls) == (None, "length", 0)
    assert [b["max_completion_tokens"] for b in bad.bodies] == [300, 600]
