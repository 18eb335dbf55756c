"""The worked examples of MycelicMemory's design: what each ends as without a model and with one, and what a bad answer does."""
from datetime import timedelta

import pytest
from calls import gnc, new_repo
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.writing.write import open_writing
from helpers import git
from llm_servers import FaultyServer, sensible

EXAMPLES = {"duplicate": ("User prefers dark mode", "User likes dark theme"), "supersede": ("User works at Google", "User now works at Anthropic"),
            "merge": ("User has a dog", "User's dog is named Max"), "coexist": ("User enjoys hiking", "User went hiking last weekend")}
MERGED = "The user has a dog named Max."


@pytest.fixture
def home(tmp_path):
    home = new_repo(tmp_path / "repo")
    git(home, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "--message=First")
    return home


def written(home, relation, server=None, **given):
    "Both facts of an example, a week apart."
    env = {"MEMORY_CONSOLIDATION_LLM_BASE_URL": server.url} if server else {}
    settings = load_settings(({"llm_provider": "lmstudio", "llm_timeout_s": 5} if server else {}) | given, env=env)
    for n, text in enumerate(EXAMPLES[relation]):
        r = open_writing(home, settings, clock=lambda n=n: SAMPLE_NOW + timedelta(days=7 * n)).remember(text, namespace="learnings")
    return r


def current(home): return {m.summary for m in read_memories(open_repo(home)).memories}


@pytest.mark.parametrize("relation, asks", [("duplicate", None), ("supersede", "replaces?"), ("merge", "completes it?"), ("coexist", None)])
def test_without_a_model_both_stand_and_the_right_question_is_asked(home, relation, asks):
    r = written(home, relation)
    assert r.operation == "ADD" and current(home) == {*EXAMPLES[relation]} and bool(r.review) is bool(asks)
    listed = gnc("review", "list", repo=home).out
    assert asks in listed if asks else "nothing" in listed.lower()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("relation, operation", [("duplicate", "NOOP"), ("supersede", "SUPERSEDE"), ("merge", "MERGE"), ("coexist", "ADD")])
def test_with_a_model_each_ends_as_the_design_says(home, relation, operation):
    with FaultyServer(brain=sensible(lambda newer, older: relation, lambda newer, older: MERGED)) as server: r = written(home, relation, server)
    assert (r.operation, r.review) == (operation, ())
    if relation == "merge": assert r.merged_content == MERGED and not r.warnings
