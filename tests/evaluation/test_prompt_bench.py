"""The prompt bench on the command line: a prompt from a file, beside the package's own, asked over real HTTP."""
import json

import pytest
from calls import gnc, new_repo
from git_notes_consolidation.evaluation import prompts
from git_notes_consolidation.evaluation.labelled import fixture
from git_notes_consolidation.evaluation.pairs import load_pairs
from git_notes_consolidation.llm.supersession_prompt import JUDGE
from llm_servers import FaultyServer, completion, sensible

BENCH = ("evaluate", "supersession", "--llm", "lmstudio")


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.chdir(new_repo(tmp_path / "here"))  # Replies are kept in the repository
    truth = {p.newer.text: p.relation for p in load_pairs(fixture("supersession"))}
    with FaultyServer(brain=sensible(lambda newer, older: truth[newer])) as s:
        monkeypatch.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", s.url)
        yield s


def test_three_steps_from_a_file_to_a_score(tmp_path, server):
    mine, home = tmp_path / "mine.yaml", new_repo(tmp_path / "repo")
    assert gnc("evaluate", "supersession", "--write-prompt", mine).code == 0
    mine.write_text(mine.read_text(encoding="utf-8").replace("for a supersession", "for one"), encoding="utf-8")
    r = gnc(*BENCH, "--prompt", mine, "--limit", "12", "--failures", "30", "--json", repo=home).json
    offline, default, tried = r["trials"]
    assert [t["name"] for t in r["trials"]] == ["offline", JUDGE.name, "mine"] and r["pairs"] == 12
    assert tried["four_way"]["right"]["k"] == 12 and default["wrong"]["k"] == 0 and offline["usage"]["calls"] == 0
    assert default["usage"]["tokens_in"] > 0 and r["differing"] == []
    calls = len(server.bodies)
    again = gnc(*BENCH, "--prompt", mine, "--limit", "12", "--json", repo=home).json
    assert len(server.bodies) == calls and again["trials"][2]["usage"]["cached"] == again["trials"][2]["usage"]["asked"]
    text = gnc(*BENCH, "--prompt", mine, "--limit", "12", repo=home).out
    for words in ("answers taken", "precision", "right of the four", "mine", "disagree about"): assert words in text


def test_a_dry_run_asks_nobody_and_says_the_cost(server, monkeypatch):
    assert gnc(*BENCH, "--dry-run", "--json").json["estimate"][0]["usd"] == 0 and server.bodies == []
    with_rank = gnc(*BENCH, "--limit", "4", "--dry-run", "--rank", "--json").json["estimate"]
    assert [e["calls"] for e in with_rank] == [1, 4] and with_rank[1]["tokens_out"] == 4
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.delenv("MEMORY_CONSOLIDATION_LLM_BASE_URL")
    said = gnc("evaluate", "supersession", "--llm", "openai", "--dry-run")
    assert "USD" in said.out and "Nobody was asked." in said.out


def test_what_a_server_gives_as_odds_unasked_or_beyond_numbers_harms_nothing(server, monkeypatch):
    judged = server.brain
    monkeypatch.setattr("llm_servers.completion", lambda body, text, *a, **k: odds(body, {"{": 10**400, "Yes": float("nan")}, text))
    server.brain = lambda body: "Yes" if body.get("logprobs") else judged(body)
    r = gnc(*BENCH, "--limit", "12", "--rank", "--json").json
    assert r["trials"][1]["answered"]["k"] == 12 and r["rankings"][1]["n"] == 0


def test_ranking_by_the_odds_of_a_yes(server, monkeypatch):
    "A server that gives log-probabilities for pairs that are ranked, and one that gives none."
    positive = {p.newer.text for p in load_pairs(fixture("supersession")) if p.positive}
    judged = server.brain

    def brain(body):
        if not body.get("logprobs"): return judged(body)
        yes = -0.1 if any(json.dumps(text, ensure_ascii=False)[1:40] in body["messages"][1]["content"] for text in positive) else -3.0
        return {"Yes": yes, "No": -1.0}

    monkeypatch.setattr("llm_servers.completion", lambda body, text, *a, **k: odds(body, text) if isinstance(text, dict) else completion(body, text, *a, **k))
    server.brain = brain
    ranked = gnc(*BENCH, "--limit", "12", "--rank", "--json").json["rankings"]
    assert [r["n"] for r in ranked] == [12, 12] and ranked[1]["auc"] == 1.0


def odds(body, said, text="Yes"):
    r = json.loads(completion(body, text, "stop" if text != "Yes" else "length").body)
    r["choices"][0]["logprobs"] = {"content": [{"top_logprobs": [{"token": t, "logprob": x} for t, x in said.items()]}]}
    return type(completion(body, ""))(body=json.dumps(r).encode())


@pytest.mark.parametrize(("words", "told"), [
    (["--limit", "3"], "--limit goes with --llm WHO"), (["--rank"], "--rank goes with --llm"),
    (["--llm", "openai"], "OPENAI_API_KEY"), (["--llm", "off"], "no model is configured"),
])
def test_what_cannot_be_is_said(words, told):
    said = gnc("evaluate", "supersession", *words)
    assert said.code == 2 and told in said.err


def test_a_prompt_that_is_none(tmp_path, server):
    bad = tmp_path / "bad.yaml"
    bad.write_text("sistem: x")
    said = gnc(*BENCH, "--prompt", bad)
    assert said.code == 2 and "sistem" in said.err and server.bodies == []
    said = gnc("evaluate", "supersession", "--write-prompt", bad)
    assert said.code == 2 and "already exists" in said.err and bad.read_text() == "sistem: x"


@pytest.mark.parametrize("more", [["--four-way"], ["--chains", "x"]])
def test_options_that_do_not_go_together(more, server): assert "do not go with --llm" in gnc(*BENCH, *more).err


def test_no_pair_of_the_locked_half_is_asked_about():
    pairs = load_pairs(fixture("supersession"))
    assert len(prompts.sample(pairs)) == 150 and {p.split for p in prompts.sample(pairs)} == {"dev"}
