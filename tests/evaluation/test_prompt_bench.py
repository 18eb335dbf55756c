"""The prompt bench on the command line: a prompt from a file, beside the package's own, asked over real HTTP."""

import pytest
from calls import gnc, new_repo
from git_notes_consolidation.evaluation import prompts
from git_notes_consolidation.evaluation.scoring import fixture
from git_notes_consolidation.evaluation.pairs import load_pairs
from git_notes_consolidation.llm.prompts import JUDGE
from llm_servers import FaultyServer, sensible

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


def test_no_pair_of_the_locked_half_is_asked_about():
    pairs = load_pairs(fixture("supersession"))
    assert len(prompts.sample(pairs)) == 150 and {p.split for p in prompts.sample(pairs)} == {"dev"}
