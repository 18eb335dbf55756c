"""The language model's layer over real HTTP: a server that works, and every way in which one does not."""
import asyncio
import json
import logging
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from functools import partial

import pytest
from git_notes_consolidation.config import SubconsciousnessConfig
from git_notes_consolidation.llm import BadReply, Client, Request, ask_all, get_client
from git_notes_consolidation.models import mem
from git_notes_consolidation.prompts import EdgesReply, JudgeReply, SummaryReply, edges_request, judge_request, read, summary_request
from git_notes_consolidation.providers import Provider
from git_notes_consolidation.spending import input_bound, price
from llm_servers import BAD_REPLIES, FAULTS, FaultyServer, Reply, changed, completion, error, fits, least, only, refused_url, refuses, sensible

SCHEMA = {"type": "object", "additionalProperties": False, "required": ["id", "verdict", "why"],
          "properties": {"id": {"type": "string", "enum": ["M1", "M2"]}, "verdict": {"type": "string", "enum": ["duplicate", "coexist"]},
                         "why": {"type": "string"}}}
GOOD = json.dumps(least(SCHEMA))
NOW = 1_790_000_000.0
KEY = "sk-" + "Ab3" * 14  # in no company's books


def question(text="Do M1 and M2 say the same?", version="1", max_tokens=300):
    return Request("judge", ({"role": "system", "content": "Judge."}, {"role": "user", "content": text}), SCHEMA, max_tokens, version)


def parse(text):
    "The three strings, or `BadReply`."
    try: value = json.loads(text)
    except ValueError as e: raise BadReply(str(e)) from e
    if not isinstance(value, dict) or set(value) != set(SCHEMA["required"]): raise BadReply("other keys")
    for k, spec in SCHEMA["properties"].items():
        if not isinstance(value[k], str) or not value[k].isprintable() or value[k] not in spec.get("enum", [value[k]]): raise BadReply(f"{k} is {value[k]!r}")
    return value


def nothing_fits(text): raise BadReply("never good enough")


def cloud(server, *models, name="openai", key=KEY):
    "A provider that costs something, wherever it really is."
    return Provider(name, getattr(server, "url", server), models or ("gpt-5-nano",), key, local=False)


def local(server, *models): return Provider("ollama", getattr(server, "url", server), models or ("llama3.2",), "", local=True)


@pytest.fixture
def asking():
    "Makes clients that wait for nothing but the network, and closes them."
    made = []

    def make(*who, redact=None, **settings):
        more = {k: settings.pop(k) for k in ("cache_path", "replay", "record", "sleep") if k in settings} | ({"redact": redact} if redact else {})
        now, waited = [NOW], []

        async def sleep(seconds):
            waited.append(seconds)
            await asyncio.sleep(0)

        config = SubconsciousnessConfig(**{"llm_provider": "auto", "llm_rpm": 0, "llm_timeout_s": 30.0} | settings)
        made.append(client := Client(config, who, **{"clock": lambda: now[0], "sleep": sleep, "rng": lambda: 0.5} | more))
        client.now, client.waited = now, waited
        return client

    yield make
    for client in made: client.close()


def ask(client, *texts, parse=parse, **more):
    "One answer, or as many as there are texts."
    answers = ask_all(client, [(question(t, **more), parse) for t in texts or ("Do M1 and M2 say the same?",)])
    return answers if len(texts) > 1 else answers[0]


def held(path):
    "Everything in a SQLite file, as one text."
    with closing(sqlite3.connect(path)) as conn: return "\n".join(conn.iterdump())


# A server that works


def real(server, key=None): return Provider("lmstudio", server.url, ("random",), server.key if key is None else key, local=True)


def test_a_real_reply_fits_its_schema_and_its_tokens_are_counted(real_llm, asking):
    client = asking(real(real_llm))
    a = ask(client)
    assert parse(json.dumps(a.value)) == a.value and not a.failure
    assert (a.provider, a.calls, a.cached, a.cost) == ("lmstudio", 1, False, 0.0)
    assert 20 < a.tokens_in < input_bound("Judge.", "Do M1 and M2 say the same?") and 10 < a.tokens_out <= 300
    u = client.usage()
    assert (u.calls, u.asked, u.answered, u.tokens_in, u.tokens_out) == (1, 1, 1, a.tokens_in, a.tokens_out)


def test_fifty_questions_eight_at_once_are_answered_in_their_order(real_llm, asking, tmp_path):
    client, seen = asking(real(real_llm), cache_path=tmp_path / "c.db"), []
    asked = [(question(f"Question {i}"), lambda text, i=i: (i, parse(text))) for i in range(50)]
    answers = ask_all(client, asked, progress=lambda done, of: seen.append((done, of)))
    assert [a.value and a.value[0] for a in answers] == list(range(50)), Counter(a.failure + a.note for a in answers if a.failure)
    u = client.usage()
    assert (u.asked, u.answered, u.calls - sum(u.faults.values())) == (50, 50, 50)
    assert (u.tokens_in, u.tokens_out) == (sum(a.tokens_in for a in answers), sum(a.tokens_out for a in answers))
    assert sorted(seen)[-1] == (50, 50) and [d for d, _ in seen] == sorted(d for d, _ in seen)
    again = ask_all(client, asked)
    assert [a.value for a in again] == [a.value for a in answers] and all(a.cached and not a.calls for a in again)
    assert client.usage().calls == u.calls


def test_the_real_bill_replaces_the_reservation(real_llm, asking):
    client = asking(cloud(real_llm, "gpt-5-nano", key=real_llm.key))
    a = ask(client)
    dollars = price("gpt-5-nano")
    assert not a.failure and client.ledger.spent()[0] == a.tokens_in + a.tokens_out
    assert client.ledger.spent()[1] == pytest.approx(a.cost) == pytest.approx((a.tokens_in * dollars[0] + a.tokens_out * dollars[1]) / 1e6)


def test_a_real_server_refuses_a_wrong_key(real_llm, asking):
    a = ask(asking(real(real_llm, "sk-wrong")))
    assert (a.value, a.failure, a.calls) == (None, "auth", 1)


def test_a_real_server_says_that_a_question_is_too_long(real_llm, asking):
    a = ask(asking(real(real_llm)), "x" * (real_llm.context + 100))
    assert (a.value, a.failure, a.calls) == (None, "context", 1)


def test_a_real_server_stops_at_the_limit(real_llm, asking):
    a = ask(asking(real(real_llm)), max_tokens=5)
    assert (a.value, a.failure, a.calls, a.tokens_out) == (None, "length", 2, 15)  # five, then ten


def test_a_model_without_a_schema_talks_nonsense_that_is_refused(real_llm, asking):
    client = asking(real(real_llm))
    a = ask_all(client, [(Request("free", ({"role": "user", "content": "Say something"},), {"type": "string"}, 100, "1"), parse)])[0]
    assert a.value is None and a.failure in ("schema", "truncated", "length", "empty", "parameter") and client.usage().failures == {a.failure: 1}


def test_it_works_inside_a_running_loop_and_from_threads(real_llm, asking):
    client, found = asking(real(real_llm)), []

    async def inside():
        direct = await client.chat(question("direct"), parse)
        return [direct, *ask(client, "a", "b")]

    found += asyncio.run(inside())
    threads = [threading.Thread(target=lambda i=i: found.extend(ask(client, f"t{i}", f"u{i}"))) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert [a.failure for a in found] == [""] * 11 and client.usage().asked == 11


# One fault after the other: how often the first is asked, and that the second answers

ONCE = ("401", "403", "quota", "429 later", "bad request", "no model", "not found")
BROKEN = ("dropped", "short", "html", "not json", "a list", "json null", "nested", "bytes", "bad gzip", "not http", "flood", "redirect")
NOTHING = ("empty", "null", "no choices", "no message")
UNFIT = ("garbage", "wrong schema", "extra key", "unknown id", "half letters", "orders")
TWICE = (*BROKEN, *NOTHING, *UNFIT, "truncated")
THRICE = ("429", "429 silent", "500", "502", "503")
KIND = {"401": "auth", "403": "auth", "quota": "quota", "429": "rate", "429 later": "rate", "429 silent": "rate", "bad request": "parameter",
        "no model": "model", "not found": "model", "500": "server", "502": "server", "503": "server", "truncated": "truncated"}
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


@pytest.mark.parametrize("fault", CALLS)
def test_alone_it_is_a_failure_with_a_name_and_nothing_is_kept(fault, faulty_llm, asking, tmp_path):
    bad = faulty_llm(always=fault)
    client = asking(cloud(bad), cache_path=tmp_path / "c.db")
    a = ask(client)
    assert (a.value, a.calls, a.cached) == (None, CALLS[fault], False) and a.failure == KIND[fault]
    assert client.usage().failures == {a.failure: 1}
    assert not client._tables.rows("SELECT * FROM llm_replies")


@pytest.mark.parametrize("fault", [f for f in CALLS if CALLS[f] > 1])
def test_once_is_no_reason_to_leave(fault, faulty_llm, asking):
    server, other = faulty_llm(fault), faulty_llm()
    a = ask(asking(cloud(server), local(other)))
    assert (a.failure, a.provider, a.calls, server.calls, other.calls) == ("", "openai", 2, 2, 0)


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


def test_a_server_that_recovers_is_asked_again(faulty_llm, asking):
    server, other = faulty_llm(*["500"] * 5), faulty_llm()
    client = asking(cloud(server), local(other))
    assert [ask(client, f"{i}").provider for i in range(3)] == ["ollama"] * 3
    client.now[0] += 45
    assert [ask(client, f"later {i}").provider for i in range(3)] == ["openai"] * 3


@pytest.mark.parametrize("fault", OPENS)
def test_a_wrong_key_is_remembered_until_there_is_another(fault, faulty_llm, asking, tmp_path):
    bad, db = faulty_llm(fault), tmp_path / "c.db"
    assert ask(asking(cloud(bad), cache_path=db)).calls == 1
    a = ask(asking(cloud(bad), cache_path=db))
    assert (a.failure, a.calls, bad.calls) == ("open", 0, 1)
    assert ask(asking(cloud(bad, key="sk-another"), cache_path=db)).failure == ""
    assert KEY not in held(db)


def test_a_wrong_key_is_said_once_and_loudly(faulty_llm, asking, caplog):
    client = asking(cloud(faulty_llm(always="401")))
    with caplog.at_level(logging.WARNING): ask(client, *map(str, range(10)))
    said = [r.getMessage() for r in caplog.records if "openai" in r.getMessage()]
    assert len(said) == 1 and len([n for n in client.usage().notes if "401" in n]) == 1
    assert KEY not in caplog.text


def test_after_the_pause_one_question_finds_out_for_all(faulty_llm, asking):
    server, other = faulty_llm(*["500"] * 5, latency=0.05), faulty_llm()
    client = asking(cloud(server), local(other))
    for i in range(2): ask(client, f"{i}")
    client.now[0] += 45
    assert {a.failure for a in ask(client, *(f"later {i}" for i in range(8)))} == {""} and server.calls == 6


def test_a_rate_limit_is_waited_for_as_long_as_the_server_says(faulty_llm, asking):
    client = asking(cloud(server := faulty_llm("429", "429")))
    assert (ask(client).failure, server.calls) == ("", 3)
    assert len(client.waited) >= 2 and sum(client.waited) == pytest.approx(2, abs=0.1)


def test_a_wait_longer_than_the_deadline_is_not_begun(faulty_llm, asking):
    client = asking(cloud(faulty_llm("429 later")))
    a = ask(client)
    assert (a.failure, a.calls) == ("rate", 1) and not client.waited


def test_between_errors_of_the_server_the_pauses_grow(faulty_llm, asking):
    client = asking(cloud(faulty_llm("500", "503")))
    assert ask(client).failure == "" and len(client.waited) == 2 and 0 < client.waited[0] < client.waited[1] < 10


# Nobody answers, or too late


@pytest.mark.parametrize("fault", ["silent", "trickle"])
def test_a_call_has_an_end_and_stays_charged(fault, faulty_llm, asking):
    bad, good = faulty_llm(always=fault), faulty_llm()
    client = asking(cloud(bad), local(good), llm_timeout_s=1.0)
    a = ask(client)
    assert (a.provider, bad.calls, good.calls, dict(client.usage().faults)) == ("ollama", 2, 1, {"timeout": 2})
    assert client.ledger.spent()[0] >= 2 * input_bound("Judge.", "Do M1 and M2 say the same?")


def test_who_never_answers_is_left_alone_in_the_end(faulty_llm, asking):
    client = asking(cloud(bad := faulty_llm(always="silent")), llm_timeout_s=0.6)  # Long enough to reach a server on a busy machine
    assert [ask(client, f"{i}").failure for i in range(4)] == ["timeout", "timeout", "open", "open"] and bad.calls == 5


def test_who_is_not_there_is_left_at_once(faulty_llm, asking):
    good = faulty_llm()
    with refused_url() as url:
        client = asking(cloud(url), local(good))
        assert [ask(client, f"{i}").provider for i in range(8)] == ["ollama"] * 8
    assert client.usage().faults["connection"] == 5 and not client.waited  # then the breaker


def test_a_name_that_nobody_knows_is_left_at_once(faulty_llm, asking):
    client = asking(cloud("http://nobody.invalid/v1"), local(faulty_llm()))
    assert ask(client).provider == "ollama" and client.usage().faults == {"connection": 1}


@pytest.mark.parametrize("fault", ["401", "429 later", "quota", "500", "no model", "bad request"])
def test_what_was_not_worked_on_is_not_charged(fault, faulty_llm, asking):
    client = asking(cloud(faulty_llm(always=fault)))
    assert ask(client).failure and client.ledger.spent() == (0, 0.0)


def no_bill(body, good): return changed(FAULTS["refusal"](body, good), usage=None)


@pytest.mark.parametrize("fault, kind", [("dropped", "broken"), ("short", "broken"), ("html", "broken"), ("no choices", "empty"), (no_bill, "refusal"),
                                         ("no usage", ""), ("false usage", "")])
def test_without_a_bill_the_reservation_stays_charged(fault, kind, faulty_llm, asking):
    client = asking(cloud(server := faulty_llm(always=fault)), redact=str)
    a = ask(client)
    assert a.failure == kind
    least_bound = input_bound("Judge.", "Do M1 and M2 say the same?") + 300
    assert client.ledger.spent()[0] >= server.calls * least_bound and a.cost == pytest.approx(client.ledger.spent()[1]) and a.cost > 0


def test_a_refused_reply_is_paid_for_as_billed(faulty_llm, asking):
    client = asking(cloud(faulty_llm(always="wrong schema")))
    a = ask(client)
    assert client.ledger.spent()[0] == a.tokens_in + a.tokens_out == client.usage().tokens_in + client.usage().tokens_out < 200


def test_who_is_redirected_goes_nowhere(faulty_llm, asking):
    other = faulty_llm()
    there = Reply(307, b"", (("location", f"{other.url}/chat/completions"),))
    assert ask(asking(cloud(faulty_llm(always=there)))).failure == "broken" and other.log == []


# Replies that stop everything


@pytest.mark.parametrize("fault", ["refusal", "content filter", "prompt filter"])
def test_a_refusal_is_an_answer(fault, faulty_llm, asking):
    bad, good = faulty_llm(always=fault), faulty_llm()
    a = ask(asking(cloud(bad), local(good)))
    assert (a.value, a.failure, bad.calls, good.calls) == (None, "refusal", 1, 0)


def test_a_reply_that_was_cut_is_asked_for_once_more_with_twice_the_room_and_never_repaired(faulty_llm, asking):
    bad, good = faulty_llm(always="length"), faulty_llm()
    a = ask(asking(cloud(bad), local(good)), max_tokens=300)
    assert (a.value, a.failure, good.calls) == (None, "length", 0)
    assert [b["max_completion_tokens"] for b in bad.bodies] == [300, 600]


def test_even_whole_json_is_not_taken_from_a_reply_that_was_cut(faulty_llm, asking):
    server = faulty_llm(lambda body, good: completion(body, good, "length"))
    a = ask(asking(cloud(server)))
    assert (a.failure, server.calls) == ("", 2)


def test_what_is_too_long_is_left_to_who_can_split_it(faulty_llm, asking):
    bad, good = faulty_llm(always=fits(500)), faulty_llm()
    client = asking(cloud(bad), local(good))
    a = ask(client, "x" * 600)
    assert (a.failure, bad.calls, good.calls) == ("context", 1, 0)
    assert ask(client, "x" * 300).provider == "openai"


# Models and parameters


@pytest.mark.parametrize("fault", ["no model", "not found"])
def test_a_model_that_is_not_there_is_followed_by_the_next_and_remembered(fault, faulty_llm, asking, tmp_path):
    def has_two(body, good): return FAULTS["ok" if body["model"] == "gpt-4o-mini" else fault](body, good)
    server, db = faulty_llm(always=has_two), tmp_path / "c.db"
    client = asking(cloud(server, "gpt-5-nano", "gpt-5-mini", "gpt-4o-mini"), cache_path=db)
    assert [ask(client, f"{i}").failure for i in range(3)] == [""] * 3
    assert [b["model"] for b in server.bodies] == ["gpt-5-nano", "gpt-5-mini"] + ["gpt-4o-mini"] * 3
    assert ask(asking(cloud(server, "gpt-5-nano", "gpt-5-mini", "gpt-4o-mini"), cache_path=db), "new").calls == 1


def test_no_model_at_all_leads_to_the_next_provider(faulty_llm, asking):
    bad, good = faulty_llm(always=only("another")), faulty_llm()
    client = asking(cloud(bad, "gpt-5-nano", "gpt-5-mini"), local(good))
    assert [ask(client, f"{i}").provider for i in range(3)] == ["ollama"] * 3 and bad.calls == 2


@pytest.mark.parametrize("model, names", [("gpt-5-nano", ["reasoning_effort"]), ("gpt-4o-mini", ["temperature"]), ("llama3.2", ["response_format"]),
                                          ("gpt-4o-mini", ["temperature", "max_tokens"])])
def test_a_parameter_that_is_not_supported_is_dropped_and_stays_so(model, names, faulty_llm, asking):
    server = faulty_llm(always=refuses(*names), brain=lambda body: GOOD)
    client = asking(cloud(server, model))
    assert [ask(client, f"{i}").failure for i in range(3)] == [""] * 3
    assert [sum(n in b for n in names) for b in server.bodies] == [*range(len(names), 0, -1), 0, 0, 0]
    assert all("max_tokens" in b or "max_completion_tokens" in b for b in server.bodies)


def test_a_server_that_refuses_everything_is_not_asked_for_ever(faulty_llm, asking):
    names = ["reasoning_effort", "temperature", "max_completion_tokens", "max_tokens", "response_format", "messages", "model"]
    bad, good = faulty_llm(always=refuses(*names)), faulty_llm()
    assert ask(asking(cloud(bad), local(good))).provider == "ollama" and bad.calls <= 5


def test_the_schema_goes_along_with_the_question(faulty_llm, asking):
    ask(asking(cloud(server := faulty_llm())))
    form = server.bodies[0]["response_format"]
    assert form["type"] == "json_schema" and form["json_schema"]["strict"] is True and form["json_schema"]["schema"] == SCHEMA
    assert "n" not in server.bodies[0] and not server.bodies[0].get("stream")


def test_an_answer_in_the_field_of_the_thoughts_counts(faulty_llm, asking):
    assert ask(asking(cloud(faulty_llm("reasoning")))).value["verdict"] == "duplicate"


# Who may be asked


def test_from_local_to_the_cloud_there_is_no_way(faulty_llm):
    cloudy, near = faulty_llm(), faulty_llm(always="500")
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": cloudy.url, "OLLAMA_HOST": f"127.0.0.1:{near.port}"}
    with closing(get_client(SubconsciousnessConfig(llm_provider="ollama", llm_timeout_s=5.0), env, ":memory:")) as client:
        a = ask(client)
    assert (a.failure, near.calls, cloudy.calls) == ("server", 3, 0)


def test_local_only_sends_nothing_to_others():
    config = SubconsciousnessConfig(llm_provider="auto", llm_local_only=True)
    with closing(get_client(config, {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://nobody.invalid/v1"}, ":memory:")) as client:
        a = ask(client)
        assert (a.failure, a.calls) == ("none", 0) and any("llm_local_only" in n for n in client.usage().notes)


def test_off_is_off(faulty_llm):
    server = faulty_llm()
    with closing(get_client(SubconsciousnessConfig(), {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}, ":memory:")) as client:
        assert ask(client).failure == "none" and server.log == []


def test_the_environment_leads_to_the_servers_in_their_order(faulty_llm):
    first, second = faulty_llm(always="401"), faulty_llm()
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": first.url, "OLLAMA_HOST": f"127.0.0.1:{second.port}"}
    with closing(get_client(SubconsciousnessConfig(llm_provider="auto"), env, ":memory:")) as client: a = ask(client)
    assert (a.provider, first.calls, second.calls) == ("ollama", 1, 1)
    assert f"Bearer {KEY}" in first.heads[0][1]["authorization"] and KEY not in second.text


# The budget


def test_what_is_not_in_the_budget_is_not_asked_and_the_local_one_is(faulty_llm, asking):
    dear, free = faulty_llm(), faulty_llm()
    a = ask(asking(cloud(dear), local(free), llm_daily_tokens=100))
    assert (a.provider, dear.calls, free.calls) == ("ollama", 0, 1)
    a = ask(asking(cloud(dear), llm_daily_tokens=100))
    assert (a.value, a.failure, a.calls, dear.calls) == (None, "budget", 0, 0) and "100" in a.note


def test_dollars_are_a_budget_too_and_an_unknown_model_is_taken_for_the_dearest(faulty_llm, asking):
    server = faulty_llm()
    assert ask(asking(cloud(server, "gpt-5-nano"), llm_daily_usd=0.005)).failure == ""
    assert ask(asking(cloud(server, "never-heard-of"), llm_daily_usd=0.005)).failure == "budget" and server.calls == 1


def test_the_budget_is_that_of_the_day_and_of_all_clients(faulty_llm, asking, tmp_path):
    server, bound = faulty_llm(always="no usage"), []
    client = asking(cloud(server), cache_path=tmp_path / "probe.db")
    ask(client)
    bound = client.ledger.spent()[0]
    two = [asking(cloud(server), cache_path=tmp_path / "c.db", llm_daily_tokens=3 * bound + 20) for _ in range(2)]
    found = [ask(two[i % 2], f"Do M1 and M2 say the same{i}").failure for i in range(5)]
    assert found == ["", "", "", "budget", "budget"]
    for c in two: c.now[0] += 86_400
    assert ask(two[0], "tomorrow").failure == ""


def test_eight_at_once_do_not_overstep_the_budget(faulty_llm, asking):
    server = faulty_llm(always="no usage", latency=0.05)
    client = asking(cloud(server), llm_daily_tokens=4_000)
    answers = ask(client, *(f"{i:03}" for i in range(40)))
    assert 1 <= server.calls < 40 and client.ledger.spent()[0] <= 4_000
    assert Counter(a.failure for a in answers) == {"": server.calls, "budget": 40 - server.calls}


# What was answered once


def test_the_second_time_nothing_is_sent(faulty_llm, asking, tmp_path):
    server, db = faulty_llm(), tmp_path / "c.db"
    first = ask(asking(cloud(server), cache_path=db))
    seen = len(server.log)
    with refused_url() as url: second = ask(asking(local(url), cache_path=db), max_tokens=900)  # another provider, another limit
    assert second.value == first.value and (second.cached, second.calls, second.cost) == (True, 0, 0.0) and len(server.log) == seen
    assert ask(asking(cloud(server), cache_path=db), version="2").calls == 1
    assert ask(asking(cloud(server), cache_path=db), "Something else").calls == 1


def test_a_reply_that_was_refused_is_not_kept(faulty_llm, asking, tmp_path):
    server, db = faulty_llm("unknown id", "unknown id"), tmp_path / "c.db"
    assert ask(asking(cloud(server), cache_path=db)).failure == "schema"
    assert "M999" not in held(db)
    assert (ask(asking(cloud(server), cache_path=db)).failure, server.calls) == ("", 3)


def test_a_kept_reply_that_no_longer_fits_is_asked_for_again(faulty_llm, asking, tmp_path):
    server, db = faulty_llm(), tmp_path / "c.db"
    ask(asking(cloud(server), cache_path=db))
    a = ask(asking(cloud(server), cache_path=db), parse=lambda text: (server.calls > 1 and "new") or nothing_fits(text))
    assert (a.value, a.cached, server.calls) == ("new", False, 2)


def test_the_same_question_at_the_same_time_is_sent_once(faulty_llm, asking):
    server = faulty_llm(latency=0.2)
    answers = ask_all(asking(cloud(server)), [(question(), parse)] * 20)
    assert server.calls == 1 and sum(a.calls for a in answers) == 1 and [a.value["verdict"] for a in answers] == ["duplicate"] * 20


def test_the_same_question_that_fails_is_not_sent_twenty_times(faulty_llm, asking):
    server = faulty_llm(always="wrong schema", latency=0.1)
    answers = ask_all(asking(cloud(server)), [(question(), parse)] * 20)
    assert [a.failure for a in answers] == ["schema"] * 20 and server.calls == 2


def test_a_file_that_is_no_cache_stops_nobody(faulty_llm, asking, tmp_path):
    (tmp_path / "c.db").write_bytes(b"not a database " * 100)
    assert ask(asking(cloud(faulty_llm()), cache_path=tmp_path / "c.db")).failure == ""


def test_a_recording_is_played_without_a_server(faulty_llm, asking, tmp_path):
    server, tape = faulty_llm(), tmp_path / "tape.jsonl"
    recorded = [ask(asking(cloud(server), record=tape, cache_path=tmp_path / "c.db"), "one", "two") for _ in range(2)][0]
    player = asking(cloud(server), replay=tape)
    played = ask(player, "one", "two", "three")
    assert [a.value for a in played[:2]] == [a.value for a in recorded] and server.calls == 2
    assert (played[2].failure, played[2].value, player.usage().calls) == ("replay", None, 0)
    assert len(tape.read_text().splitlines()) == 2 and KEY not in tape.read_text()


def test_bad_replies_are_not_recorded(faulty_llm, asking, tmp_path):
    tape = tmp_path / "tape.jsonl"
    ask(asking(cloud(faulty_llm(always="unknown id")), record=tape))
    assert not tape.exists() or tape.read_text() == ""


def test_what_comes_from_the_cache_is_recorded_too(faulty_llm, asking, tmp_path):
    server, tape = faulty_llm(), tmp_path / "tape.jsonl"
    ask(asking(cloud(server), cache_path=tmp_path / "c.db"))
    ask(asking(cloud(server), cache_path=tmp_path / "c.db", record=tape))
    assert ask(asking(replay=tape)).failure == "" and server.calls == 1


# Secrets


def no_secret(text): return text.replace("hunter2-hunter2", "[secret:password]")


def test_a_secret_reaches_neither_server_nor_file_nor_error(faulty_llm, asking, tmp_path, caplog):
    def echo(body, good): return completion(body, json.dumps({"you said": body["messages"][1]["content"]}))
    server, db, tape = faulty_llm("401", echo, echo, "ok"), tmp_path / "c.db", tmp_path / "tape.jsonl"
    with caplog.at_level(logging.DEBUG):
        found = [ask(asking(cloud(server, key=f"sk-{i}"), cache_path=db, record=tape, redact=no_secret), f"{i}: the password is hunter2-hunter2")
                 for i in range(3)]
    assert [a.failure for a in found] == ["auth", "schema", ""] and server.text.count("[secret:password]") >= 4
    assert "[secret:password]" in json.dumps(server.bodies) and "hunter2" not in "".join((server.text, held(db), tape.read_text(), caplog.text, repr(found)))


def test_the_package_own_redaction_is_the_one_that_is_used(faulty_llm, asking, tmp_path):
    secret, server, db = "ghp_" + "k3Qz8WvT1bXr" * 3, faulty_llm(), tmp_path / "c.db"
    a = ask(asking(cloud(server), cache_path=db), f"The deploy token is {secret}, mail jane.roe@our-company.net about it.")
    assert not a.failure and secret not in server.text + held(db) and "jane.roe@our-company.net" not in server.text


def test_a_key_that_a_server_repeats_is_not_passed_on(faulty_llm, asking, tmp_path):
    def gossip(body, good): return completion(body, json.dumps(json.loads(good) | {"why": f"your key is {KEY}"}))
    db, client = tmp_path / "c.db", asking(cloud(faulty_llm(always="401")))
    assert KEY not in repr(ask(client)) + repr(client.usage())
    a = ask(asking(cloud(faulty_llm(gossip)), cache_path=db))
    assert KEY not in repr(a) + held(db)


def test_a_key_is_never_printed(faulty_llm, asking):
    client = asking(cloud(faulty_llm()))
    ask(client)
    assert KEY not in repr(client.providers) + repr(vars(client)) + repr(client.usage())


def test_a_client_that_nobody_closed_does_not_keep_the_process(faulty_llm):
    code = f"""
from git_notes_consolidation.config import SubconsciousnessConfig
from git_notes_consolidation.llm import Request, ask_all, get_client
client = get_client(SubconsciousnessConfig(llm_provider="ollama"), {{"OLLAMA_HOST": "127.0.0.1:{faulty_llm().port}"}})
print(ask_all(client, [(Request("t", ({{"role": "user", "content": "x"}},), {{"const": 3}}, 9, "1"), str)])[0].value)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout == "3\n"


def test_what_a_server_says_of_itself_is_one_short_line(faulty_llm, asking):
    a = ask(asking(cloud(faulty_llm(error(400, "half a \ud800 letter\n" + "and so on " * 999)))))
    assert a.note.startswith("400 half a ") and a.note.isprintable() and len(a.note) <= 200


def test_a_model_may_call_itself_anything_but_not_paint_the_terminal(faulty_llm, asking):
    a = ask(asking(cloud(faulty_llm(lambda body, good: changed(completion(body, good), model="m\n\x1b[31m" + "m" * 9999)))))
    assert a.model.isprintable() and len(a.model) <= 100 and not a.failure


# Many questions, and servers that are wrong at any rate


def test_as_many_at_once_as_allowed_and_no_more(faulty_llm, asking):
    server = faulty_llm(latency=0.05)
    answers = ask(asking(cloud(server), llm_concurrency=8), *map(str, range(100)))
    assert server.peak == 8 and server.calls == 100 and not [a for a in answers if a.failure]


def test_the_places_are_shared_by_all_that_is_asked_in_one_client(faulty_llm, asking):
    server = faulty_llm(latency=0.05)
    client = asking(cloud(server), llm_concurrency=3)
    threads = [threading.Thread(target=lambda i=i: ask(client, *(f"{i} {j}" for j in range(8)))) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert server.peak <= 3 and server.calls == 32


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 1.0])
def test_at_any_rate_of_bad_replies_each_answer_is_good_or_none(rate, faulty_llm, asking, tmp_path):
    server = faulty_llm(rate=rate, seed=4)
    client = asking(cloud(server), cache_path=tmp_path / "c.db")
    answers = ask(client, *(f"Question {i}" for i in range(120)))
    assert all((a.value == least(SCHEMA) and not a.failure) or (a.value is None and a.failure) for a in answers)
    u, failed = client.usage(), Counter(a.failure for a in answers if a.failure)
    assert u.failures == failed and (u.asked, u.answered, u.calls) == (120, 120 - failed.total(), server.calls)
    assert bool(failed) == (rate > 0.1) or rate == 0.1
    assert len(client._tables.rows("SELECT * FROM llm_replies")) == u.answered
    if rate == 1: assert u.answered == 0


def test_no_more_calls_a_minute_than_allowed(faulty_llm, asking):
    async def for_a_second(client):
        tasks = [asyncio.create_task(client.chat(question(f"{i}"), parse)) for i in range(9)]
        await asyncio.wait(tasks, timeout=1.0)  # the next place is free after fifteen
        for t in tasks: t.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.hang_up()
    asyncio.run(for_a_second(asking(cloud(server := faulty_llm()), llm_rpm=4)))
    assert server.calls == 4


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to a thread on this system")
def test_what_was_answered_before_an_interruption_is_not_asked_again(faulty_llm, asking, tmp_path, request):
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler)))  # Whatever was set before
    texts, main = [f"Question {i}" for i in range(24)], threading.main_thread().ident
    for path in (tmp_path / f"{n}.db" for n in "abc"):  # A signal that arrives while something is being destroyed is lost
        server = faulty_llm(latency=0.1)
        client = asking(cloud(server), cache_path=path, llm_concurrency=2)
        try: ask_all(client, [(question(t), parse) for t in texts], progress=lambda done, of: done == 4 and signal.pthread_kill(main, signal.SIGINT))
        except KeyboardInterrupt: break
    else: raise AssertionError("not interrupted")
    client.close()
    kept, sent = held(path).count("INSERT INTO \"llm_replies\""), server.calls
    assert 4 <= kept <= sent <= kept + 2 < 24
    assert not [a for a in ask(asking(cloud(server), cache_path=path), *texts) if a.failure] and server.calls == sent + 24 - kept


def test_a_run_that_was_cut_off_goes_on_where_it_was(faulty_llm, asking, tmp_path):
    server, db, texts = faulty_llm(), tmp_path / "c.db", [f"Question {i}" for i in range(30)]
    ask(asking(cloud(server), cache_path=db), *texts[:18])
    answers = ask(asking(cloud(server), cache_path=db), *texts)
    assert server.calls == 30 and sum(a.cached for a in answers) == 18


# The package's own prompts

OLD, NEW = mem("We build on Flask", "Small, and all of us know it.", days_ago=200), mem("We build on FastAPI", "Supersedes the choice of Flask.", days_ago=2)
ASK = {"judge": lambda: judge_request([(OLD, NEW)] * 3), "summary": lambda: summary_request([OLD, NEW], {OLD.id: NEW}),
       "edges": lambda: edges_request([OLD, NEW])}
SHAPES = {"judge": JudgeReply, "summary": SummaryReply, "edges": EdgesReply}


@pytest.mark.parametrize("task", ASK)
def test_a_real_server_takes_every_prompt_and_its_nonsense_fits_the_shape(task, real_llm, asking):
    said, (request, parse_it) = [], ASK[task]()
    client = asking(real(real_llm))
    a = ask_all(client, [(request, lambda text: said.append(text) or parse_it(text))])[0]
    assert a.calls == 2 and set(client.usage().faults) <= {"schema", "length"} or not a.failure  # nonsense quotes nothing that was written
    assert said and all(read(text, SHAPES[task]) for text in said)


def test_a_model_that_reads_is_understood(faulty_llm, asking):
    brain = sensible(lambda newer, older: "supersede" if "FastAPI" in newer else "coexist")
    client = asking(cloud(faulty_llm(brain=brain)))
    judged, summary, links = ask_all(client, [ask() for ask in ASK.values()])
    assert [(j.relation, j.kind, j.confidence) for j in judged.value] == [("supersede", "full", 0.9)] * 3 and judged.value[0].span in NEW.text
    assert summary.value.title == "We build on Flask" and [(x.source_id, x.target_id) for x in links.value] == [(OLD.id, NEW.id)]


@pytest.mark.parametrize("fault", BAD_REPLIES)
def test_no_prompt_takes_a_bad_reply(fault, faulty_llm, asking):
    client = asking(cloud(faulty_llm(always=fault, brain=sensible(lambda newer, older: "supersede"))))
    for task, made in ASK.items():
        a = ask_all(client, [made()])[0]
        assert a.failure or (fault, task) == ("unknown id", "summary")  # in which no id stands


# What an observer sees


@pytest.fixture
def observed(monkeypatch):
    "Finished spans, and the points of each metric, so far."
    from opentelemetry import metrics, trace
    from opentelemetry.sdk import metrics as m, trace as t
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    (spans := t.TracerProvider()).add_span_processor(SimpleSpanProcessor(seen := InMemorySpanExporter()))
    meters = m.MeterProvider([reader := InMemoryMetricReader()])
    monkeypatch.setattr(trace, "get_tracer", spans.get_tracer)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: meters)
    points = lambda: {m.name: list(m.data.data_points) for m in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics}
    return lambda: (seen.get_finished_spans(), points())


def test_each_attempt_is_a_span_with_the_names_of_the_convention(observed, faulty_llm, asking):
    ask(asking(cloud(faulty_llm("500", "401")), local(faulty_llm())), "a question of its own")
    spans, points = observed()
    spans = [s for s in spans if s.name.startswith("chat ")]  # Inside of the span of their question
    assert [s.name for s in spans] == ["chat gpt-5-nano", "chat gpt-5-nano", "chat llama3.2"]
    assert [s.attributes.get("error.type") for s in spans] == ["server", "auth", None]
    found = dict(spans[-1].attributes)
    assert [found[f"gen_ai.{k}"] for k in ("provider.name", "request.model", "response.model")] == ["ollama", "llama3.2", "llama3.2"]
    assert found["gen_ai.usage.input_tokens"] > 0 < found["gen_ai.usage.output_tokens"]
    assert "a question of its own" not in repr([s.to_json() for s in spans])
    assert sum(p.count for p in points["gen_ai.client.operation.duration"]) == 3
    assert {p.attributes["gen_ai.token.type"] for p in points["gen_ai.client.token.usage"]} == {"input", "output"}


# The servers themselves


def test_the_faults_of_a_rate_depend_on_seed_and_question_only():
    def kinds(order, seed):
        with FaultyServer(rate=0.5, seed=seed) as s: return {i: [s._draw(b"question %d" % i) for _ in range(3)] for i in order}
    assert kinds(range(20), 1) == kinds(range(19, -1, -1), 1) != kinds(range(20), 2)
    assert set(BAD_REPLIES) <= set(FAULTS)


def test_what_a_brain_says_fits_any_schema():
    pair = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}, "t": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    parts = {"a": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/p"}}, "b": {"const": 7}, "c": {"type": "boolean"}}
    schema = {"$defs": {"p": pair}, "type": "object", "properties": parts}
    assert least(schema) == {"a": [{"n": 3, "t": "as it says"}] * 2, "b": 7, "c": False}


def test_a_cache_that_another_process_holds_is_a_failure_and_no_error(tmp_path, faulty_llm, asking, monkeypatch):
    monkeypatch.setattr("git_notes_consolidation.spending.WAIT", 0.2)
    path = tmp_path / "cache.db"
    server = faulty_llm()
    client = asking(local(server), cache_path=path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = ask(client)
        other.execute("ROLLBACK")
        again = ask(client)
    assert answer.failure == "cache" and again.value is not None


def test_an_answer_in_the_cache_needs_no_lock(tmp_path, faulty_llm, asking, monkeypatch):
    monkeypatch.setattr("git_notes_consolidation.spending.WAIT", 0.2)
    path = tmp_path / "cache.db"
    client = asking(local(faulty_llm()), cache_path=path)
    first = ask(client)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        again = ask(client)
    assert again.value == first.value and again.cached and not first.cached
