"""Who may be asked and at what cost, what is kept of an answer, what an observer sees, and that no secret is in any of it."""
import json
import logging
import signal
import threading
from collections import Counter
from contextlib import closing
from functools import partial

import pytest
from llm_clients import KEY, SCHEMA, ask, cloud, held, local, parse, question
from llm_servers import BAD_REPLIES, completion, least, refused_url, sensible

from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.llm.client import ask_all, get_client
from git_notes_consolidation.llm.summary_prompts import edges_request, summary_request
from git_notes_consolidation.llm.prompts import judge_request

# Who may be asked


@pytest.mark.slow
def test_from_local_to_the_cloud_there_is_no_way(faulty_llm):
    cloudy, near = faulty_llm(), faulty_llm(always="500")
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": cloudy.url, "OLLAMA_HOST": f"127.0.0.1:{near.port}"}
    with closing(get_client(SubconsciousnessConfig(llm_provider="ollama", llm_timeout_s=5.0), env, ":memory:")) as client:
        a = ask(client)
    assert (a.failure, near.calls, cloudy.calls) == ("server", 3, 0)


# The budget


def test_what_is_not_in_the_budget_is_not_asked_and_the_local_one_is(faulty_llm, asking):
    dear, free = faulty_llm(), faulty_llm()
    a = ask(asking(cloud(dear), local(free), llm_daily_tokens=100))
    assert (a.provider, dear.calls, free.calls) == ("ollama", 0, 1)
    a = ask(asking(cloud(dear), llm_daily_tokens=100))
    assert (a.value, a.failure, a.calls, dear.calls) == (None, "budget", 0, 0) and "100" in a.note


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


# Secrets


def no_secret(text): return text.replace("hunter2-hunter2", "[secret:password]")


def test_a_secret_reaches_neither_server_nor_file_nor_error(faulty_llm, asking, tmp_path, caplog):
    def echo(body, good): return completion(body, json.dumps({"you said": body["messages"][1]["content"]}))
    server, db = faulty_llm("401", echo, echo, "ok"), tmp_path / "c.db"
    with caplog.at_level(logging.DEBUG):
        found = [ask(asking(cloud(server, key=f"sk-{i}"), cache_path=db, redact=no_secret), f"{i}: the password is hunter2-hunter2")
                 for i in range(3)]
    assert [a.failure for a in found] == ["auth", "schema", ""] and server.text.count("[secret:password]") >= 4
    assert "[secret:password]" in json.dumps(server.bodies) and "hunter2" not in "".join((server.text, held(db), caplog.text, repr(found)))


def test_a_key_that_a_server_repeats_is_not_passed_on(faulty_llm, asking, tmp_path):
    def gossip(body, good): return completion(body, json.dumps(json.loads(good) | {"why": f"your key is {KEY}"}))
    db, client = tmp_path / "c.db", asking(cloud(faulty_llm(always="401")))
    assert KEY not in repr(ask(client)) + repr(client.usage())
    a = ask(asking(cloud(faulty_llm(gossip)), cache_path=db))
    assert KEY not in repr(a) + held(db)


# Many questions, and servers that are wrong at any rate


@pytest.mark.slow
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


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to a thread on this system")
def test_what_was_answered_before_an_interruption_is_not_asked_again(faulty_llm, asking, tmp_path, request):
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler)))  # Whatever was set before
    texts, main = [f"Question {i}" for i in range(24)], threading.main_thread().ident
    for path in (tmp_path / f"{n}.db" for n in "abc"):  # A signal that arrives while something is being destroyed is lost
        server = faulty_llm(latency=0.1)
        client = asking(cloud(server), cache_path=path)
        try: ask_all(client, [(question(t), parse) for t in texts], progress=lambda done, of: done == 4 and signal.pthread_kill(main, signal.SIGINT))
        except KeyboardInterrupt: break
    else: raise AssertionError("not interrupted")
    client.close()
    kept, sent = held(path).count("INSERT INTO \"llm_replies\""), server.calls
    assert 4 <= kept <= sent <= kept + 8 < 24
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


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("fault", BAD_REPLIES)
def test_no_prompt_takes_a_bad_reply(fault, faulty_llm, asking):
    client = asking(cloud(faulty_llm(always=fault, brain=sensible(lambda newer, older: "supersede"))))
    for task, made in ASK.items():
        a = ask_all(client, [made()])[0]
        # In a summary no id stands, and a field that nobody asked for is read over; a pair that nobody asked about is not
        assert a.failure or (fault, task) in {("unknown id", "summary"), ("extra key", "summary"), ("extra key", "edges")}
