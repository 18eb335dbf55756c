"""The whole path with a small model of real weights: a run, a question, a fact, the evaluation. Its replies come from a server or from a recording."""
import os
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from calls import Said, gnc, made
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.llm.client import Client

MEMORIES = [
    mem("Serve the API with Flask", "Small, and all of us know it.", days_ago=90),
    mem("The API speaks FastAPI", "Handlers are typed, and the schema comes for free.", days_ago=3),
    mem("Sessions are kept in Redis", "With a time to live of 30 minutes.", days_ago=60),
    mem("The nightly dump fails when the disk is full", "It ended with code 1 last night.", namespace="progress", days_ago=40),
    mem("The nightly dump failed again, the disk was full", "Old dumps stay for 30 days.", namespace="progress", days_ago=38),
    mem("The nightly dump failed, the disk is full", "We keep old dumps for 14 days from now on.", namespace="progress", days_ago=37),
]
QUESTION = "What does the API speak?"
FACT = "Sessions are kept in PostgreSQL from now on"
ENVIRONMENT = {"MEMORY_CONSOLIDATION_LLM_MODEL": "smollm2", "MEMORY_CONSOLIDATION_LLM_BASE_URL": "http://127.0.0.1:9/v1"}


class Walked(NamedTuple):
    "What each command printed."
    home: Path
    run: Said
    answer: Said
    fact: Said
    bench: Said


@contextmanager
def replies_from(replay):
    "Every client asks a recording, or a function."
    init = Client.__init__

    def played(self, config, providers, notes=(), cache_path=":memory:", given=None, **more):
        init(self, config, providers, notes, cache_path, replay or given, **more)

    with mock.patch.object(Client, "__init__", played): yield


def walk(home=None, url="", replay=None):
    "Everything that asks a model, once, on six memories and four labelled pairs."
    home = made(Path(home or tempfile.mkdtemp()) / "small", MEMORIES)
    where = ENVIRONMENT | ({"MEMORY_CONSOLIDATION_LLM_BASE_URL": url} if url else {})
    with mock.patch.dict(os.environ, where), (replies_from(replay) if replay else nullcontext()):
        return Walked(home, gnc("consolidate", "--llm", "lmstudio", "--threshold", "0.3", "--json", repo=home),
                      gnc("recall", QUESTION, "--reason", "--llm", "lmstudio", "--json", repo=home),
                      gnc("remember", FACT, "--namespace", "decisions", "--llm", "lmstudio", "--dry-run", "--json", repo=home),
                      gnc("evaluate", "supersession", "--llm", "lmstudio", "--limit", "4", "--json", repo=home))
