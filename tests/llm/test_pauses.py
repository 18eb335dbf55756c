"""How long a server is left alone, and that nobody else pays for it."""
import json

import pytest
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.llm.client import Client, ask_all
from git_notes_consolidation.llm.protocol import BadReply, Request
from git_notes_consolidation.llm.providers import Provider

httpx2 = pytest.importorskip("httpx2")
SERVER = Provider("openai", "https://api.example.com/v1", ("gpt-5-nano",), "sk-test-123456789")
QUOTA = httpx2.Response(429, json={"error": {"code": "insufficient_quota", "message": "no"}})


def good(text='{"a": 1}'):
    return httpx2.Response(200, json={"model": "m", "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
                                      "usage": {"prompt_tokens": 5, "completion_tokens": 5}})


def parse(text):
    if "a" not in (said := json.loads(text)): raise BadReply("no a")
    return said


@pytest.fixture
def ask(tmp_path):
    "What becomes of some questions, each of a new process, when the server answers so at that time."
    def failures(first, *, n=1, at=0.0, start=0):
        calls = []
        def answer(request): calls.append(request); return first if first and len(calls) == 1 else good()
        async def at_once(seconds): pass
        with Client(SubconsciousnessConfig(llm_provider="openai"), [SERVER], (), tmp_path / "index.db", clock=lambda: 1e6 + at, sleep=at_once,
                    transport=httpx2.MockTransport(answer)) as c:
            asked = [(Request("judge", ({"role": "user", "content": f"q{start + i}"},), {"type": "object"}, 100, "1"), parse) for i in range(n)]
            return [a.failure for part in (asked[:1], asked[1:]) if part for a in ask_all(c, part)]
    return failures


def test_a_server_that_asks_for_time_delays_one_question(ask):
    assert ask(httpx2.Response(503, headers={"retry-after": "600"}, json={}), n=6) == ["server", *[""] * 5]


def test_after_a_pause_a_failure_of_another_kind_is_tried_again(ask):
    assert ask(QUOTA) == ["quota"]
    assert ask(None, at=60, start=10) == ["open"]
    assert ask(httpx2.Response(500, json={}), at=3700, start=20) == [""]
    assert ask(good('{"b": 1}'), at=3800, start=30) == [""]


def test_a_pause_that_is_over_costs_no_question(ask):
    assert ask(QUOTA) == ["quota"]
    assert ask(None, n=8, at=30 * 86_400, start=10) == [""] * 8
