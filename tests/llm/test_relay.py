"""`make relay`: whoever answers is a language model at an address of this machine."""
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.llm.client import ask_all, get_client
from git_notes_consolidation.llm.prompts import judge_request
from helpers import ROOT

OLD, NEW = mem("Logs are kept for 30 days", days_ago=9), mem("From today on logs are kept for 90 days")
REPLY = '{"P1": {"quote": "kept for 90 days", "reason": "90 now.", "relation": "supersede", "kind": "full", "confidence": "high"}}'


@pytest.fixture
def relay(tmp_path):
    "Starts one; the address."
    started = []
    def start(*words):
        p = subprocess.Popen([sys.executable, str(ROOT / "tools" / "relay.py"), str(tmp_path / "asked"), "--port", "0", "--patience", "20", *words],
                             stdout=subprocess.PIPE, text=True)
        started.append(p)
        return p.stdout.readline().split(" at ")[1].split()[0]
    yield start
    for p in started: p.kill(); p.communicate()


def ask(url):
    with_ = load_settings({"llm_provider": "lmstudio", "llm_base_url": url, "llm_model": "relay"}, env={}).config
    client = get_client(with_, {}, ":memory:")
    try: return ask_all(client, [judge_request([(OLD, NEW)])])[0]
    finally: client.close()


def test_a_program_answers_once(relay, tmp_path):
    url = relay("--answer", f"""sh -c 'cat > {tmp_path / "heard"}; cat {tmp_path / "reply"}'""")
    (tmp_path / "reply").write_text(REPLY)
    assert [ask(url).value[0].relation for _ in range(2)] == ["supersede"] * 2
    question, = (tmp_path / "asked").glob("*.txt")
    text = question.read_text()
    assert text == (tmp_path / "heard").read_text() and "kept for 30 days" in text and '"additionalProperties"' in text


def test_a_page_in_a_browser_is_not_answered(relay, tmp_path):
    url = relay("--answer", "true")
    for headers in ({"origin": "http://evil.example", "content-type": "application/json"}, {"content-type": "text/plain"},
                    {"host": "evil.example:80", "content-type": "application/json"}):
        with pytest.raises(HTTPError) as e: urlopen(Request(f"{url}/chat/completions", b"{}", headers))
        assert e.value.code == 403
    assert not [*(tmp_path / "asked").iterdir()] and (tmp_path / "asked").stat().st_mode & 0o077 == 0
