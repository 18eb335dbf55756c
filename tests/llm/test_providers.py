"""Who may be asked: every way in which the environment can say it, and none in which memories leave the machine unasked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.settings import ConfigError, SubconsciousnessConfig
from git_notes_consolidation.llm.client import ask_all, get_client
from git_notes_consolidation.llm.protocol import Request
from git_notes_consolidation.llm.providers import MODELS, checked_url, is_local, providers

KEY = "sk-" + "Zz9" * 14  # in no company's books
SERVER = "http://127.0.0.1:8080/v1"
OWN = "MEMORY_CONSOLIDATION_LLM_"


def found(env, **settings):
    "Names and notes, as settings and environment lead to them."
    who, notes = providers(load_settings(settings, env=env).config, env)
    return [p.name for p in who], notes


# From the environment to the providers


def test_nothing_is_asked_unless_somebody_says_so():
    for env in ({}, {"OPENAI_API_KEY": KEY}, {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": SERVER, "OLLAMA_HOST": "127.0.0.1"}, {"MEMORY_LLM_API_KEY": KEY}):
        assert found(env) == ([], ())


@pytest.mark.parametrize("env, names", [
    ({}, []),
    ({"OPENAI_API_KEY": KEY}, ["openai"]),
    ({"OPENAI_BASE_URL": SERVER}, ["openai"]),
    ({f"{OWN}BASE_URL": "http://localhost:1234/v1"}, ["lmstudio"]),
    ({"OLLAMA_HOST": "0.0.0.0"}, ["ollama"]),
    ({"MEMORY_OLLAMA_BASE_URL": "http://localhost:11434"}, ["ollama"]),
    ({"OPENAI_API_KEY": KEY, f"{OWN}BASE_URL": "http://localhost:1234/v1", "OLLAMA_HOST": "127.0.0.1:11434"}, ["openai", "lmstudio", "ollama"]),
    ({"OPENAI_API_KEY": "  "}, []),
])
def test_auto_is_whoever_is_configured_in_the_order_of_the_designs(env, names): assert found(env | {f"{OWN}PROVIDER": "auto"}) == (names, ())


@pytest.mark.parametrize("theirs, names", [("openai", ["openai"]), ("Ollama", ["ollama"]), ("lmstudio", ["lmstudio"])])
def test_the_plugins_provider_is_inherited(theirs, names): assert found({"MEMORY_LLM_PROVIDER": theirs, "OPENAI_API_KEY": KEY})[0] == names


# Where memories may go


@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "http://8.8.8.8", "http://172.32.0.1", "http://[2606:4700::1]", "http://[::ffff:8.8.8.8]",
                                 "http://localhost.evil.example", "http://127.0.0.1.nip.io", "http://127.0.0.1@evil.example", "http://ollama",
                                 "http://2130706433", "http://0x7f.1", "http://127.1", "http://box.local", "", "not a url"])
def test_not_local(url): assert not is_local(url)


@given(st.lists(st.sampled_from(["http://127.0.0.1:1/v1", "https://llm.example/v1", "http://10.0.0.1/v1", ""]), min_size=3, max_size=3), st.booleans())
def test_nothing_that_is_not_local_follows_what_is(urls, only):
    openai, lmstudio, ollama = urls
    env = {k: v for k, v in {"OPENAI_BASE_URL": openai, "OLLAMA_HOST": ollama, "OPENAI_API_KEY": KEY}.items() if v}
    who, notes = providers(SubconsciousnessConfig(llm_provider="auto", llm_base_url=lmstudio, llm_local_only=only), env)
    flags = [p.local for p in who]
    assert flags == sorted(flags) and (not only or all(flags)) and [p.name for p in who] == [n for n in MODELS if n in {p.name for p in who}]
    assert len(who) + len(notes) == 1 + bool(lmstudio) + bool(ollama)


@pytest.mark.parametrize("url", ["api.openai.com/v1", "file:///etc/passwd", "http:///v1", "http://u:p@h/v1", "http://h:99999/v1", "http://h/v1?key=x",
                                 "http://h/#x",
                                 "http://h\n/v1", "http://evil.example\\@localhost/v1", "http://[::1/v1", "http://ho st/v1", "http://\u212aelvin/v1"])
def test_an_address_that_two_programs_could_read_in_two_ways_is_refused(url):
    with pytest.raises(ConfigError, match="is no address") as e: checked_url(url, "OPENAI_BASE_URL")
    assert "u:p" not in str(e.value) and "key=x" not in str(e.value)


def test_a_file_neither_sends_memories_nor_spends_money(tmp_path):
    for line in ('llm_provider = "auto"', 'llm_base_url = "http://h/v1"', "llm_local_only = false", "llm_daily_usd = 100",
                 "llm_daily_tokens = 1"):
        (tmp_path / "gnc.toml").write_text(line)
        s = load_settings(env={}, file=tmp_path / "gnc.toml")
        assert s.config == SubconsciousnessConfig() and "is ignored" in s.remarks[0]


# What reaches them


def asked(env, **settings):
    with get_client(load_settings(settings, env=env).config, env) as client:
        return ask_all(client, [(Request("t", ({"role": "user", "content": "x"},), {"const": 3}, 9, "1"), str)])[0]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_openais_reaches_nobody_else(name, faulty_llm, monkeypatch):
    server = faulty_llm(brain=lambda body: "3")
    mine = {"OPENAI_API_KEY": KEY, "OPENAI_ADMIN_KEY": "sk-admin", "OPENAI_ORG_ID": "org-mine", "OPENAI_PROJECT_ID": "proj-mine",
            "OPENAI_CUSTOM_HEADERS": "X-Pass: hunter2"}
    for k, v in mine.items(): monkeypatch.setenv(k, v)
    assert asked(mine, llm_provider=name, llm_base_url=server.url).value == "3"
    assert server.heads[0][0].startswith("POST /v1/chat/completions") and "sk-admin" not in server.text and KEY not in str(server.bodies)
    assert [s in server.text for s in (KEY, "org-mine", "proj-mine", "hunter2")] == [name == "openai"] * 4


def test_no_proxy_sees_what_stays_here(faulty_llm, monkeypatch):
    proxy = faulty_llm(brain=lambda body: "3")
    for k in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"): monkeypatch.setenv(k, f"http://127.0.0.1:{proxy.port}")
    assert asked({"OLLAMA_HOST": "127.0.0.1:1"}, llm_provider="ollama").failure == "connection" and proxy.log == []
    assert asked({"OPENAI_BASE_URL": "http://llm.example/v1"}, llm_provider="openai").value == "3"  # Elsewhere a proxy may be the only way
    assert proxy.heads[0][0].startswith("POST http://llm.example/v1/chat/completions")
