"""The prompt bench on the command line: a model beside the judge without one, asked over real HTTP."""

import pytest
from calls import gnc, new_repo
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.evaluation import prompts
from git_notes_consolidation.evaluation.scoring import fixture
from git_notes_consolidation.evaluation.pairs import load_pairs
from git_notes_consolidation.llm.client import get_client
from git_notes_consolidation.llm.prompts import JUDGE
from helpers import ROOT
from llm_servers import FaultyServer, sensible

BENCH = ("evaluate", "supersession", "--llm", "lmstudio")


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.chdir(new_repo(tmp_path / "here"))  # Replies are kept in the repository
    truth = {p.newer.text: p.relation for p in load_pairs(fixture("supersession"))}
    with FaultyServer(brain=sensible(lambda newer, older: truth[newer])) as s:
        monkeypatch.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", s.url)
        yield s


def test_a_model_on_labelled_pairs_beside_the_judge(tmp_path, server):
    home = new_repo(tmp_path / "repo")
    r = gnc(*BENCH, "--limit", "12", "--json", repo=home).json
    offline, tried = r["trials"]
    assert [t["name"] for t in r["trials"]] == ["offline", JUDGE.name] and r["pairs"] == 12
    assert tried["four_way"]["right"]["k"] == 12 and tried["wrong"]["k"] == 0 and offline["usage"]["calls"] == 0 < tried["usage"]["tokens_in"]
    calls = len(server.bodies)
    again = gnc(*BENCH, "--limit", "12", "--json", repo=home).json
    assert len(server.bodies) == calls and again["trials"][1]["usage"]["cached"] == again["trials"][1]["usage"]["asked"]
    text = gnc(*BENCH, "--limit", "12", repo=home).out
    for words in ("answers taken", "precision", "right of the four", JUDGE.name): assert words in text


def test_no_pair_of_the_locked_half_is_asked_about():
    pairs = load_pairs(fixture("supersession"))
    assert len(prompts.sample(pairs)) == 150 and {p.split for p in prompts.sample(pairs)} == {"dev"}


def test_what_nobody_answered_is_told_and_not_scored(monkeypatch, tmp_path):
    monkeypatch.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", "http://127.0.0.1:9/v1")  # Nobody listens there
    home = new_repo(tmp_path / "repo")
    r = gnc(*BENCH, "--limit", "12", repo=home)
    assert r.code == 1 and "12 of 12 pairs have no reply" in " ".join(r.out.split()) and "takes 2 calls" in " ".join(r.out.split())
    tried = gnc(*BENCH, "--limit", "12", "--json", repo=home).json["trials"][1]
    assert (tried["unanswered"], tried["recall"]["n"], tried["four_way"]["right"]["n"], tried["refused"]) == (12, 0, 0, {})


@pytest.mark.parametrize("who", ["reader", "smollm2"])
def test_half_a_recording_is_scored_on_its_half(tmp_path, who):
    pairs, config = prompts.sample(load_pairs(fixture("supersession")), 24), load_settings({"llm_provider": "lmstudio"}, env={}).config
    lines = (ROOT / "nbs" / "research" / f"{who}-replies.jsonl").read_text(encoding="utf-8").splitlines()

    def trial(part):
        half = tmp_path / "replies.jsonl"
        half.write_text("\n".join(part), encoding="utf-8")
        with get_client(config, {}, replay=half) as client: return prompts.try_prompt(pairs, client)

    whole, nothing = trial(lines), trial(lines[:0])
    assert (len(whole.pairs), whole.unanswered, len(nothing.unanswered), nothing.recall.n) == (24, (), 24, 0)
    seen = {p.id: said for p, said in zip(whole.pairs, whole.said)}
    for cut in (lines[::2], lines[1::2]):  # What stays says the same, and only that is counted
        half = trial(cut)
        assert {p.id: said for p, said in zip(half.pairs, half.said)}.items() <= seen.items()
        assert len(half.pairs) + len(half.unanswered) == 24 and half.recall.n == sum(p.positive for p in half.pairs)
