"""A small model with real weights, which judges at chance: nothing that it says makes a memory worse. From a recording; `make long` asks the model itself."""
import sys

import pytest
from git_notes_consolidation.consolidation import scan as consolidation_scan
from git_notes_consolidation.recall.evidence import unsupported
from git_notes_consolidation.recall.search import MemoryResult
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.summaries.verification import verify
from git_notes_consolidation.core.memory import SAMPLE_NOW
from helpers import FIXTURES, ROOT, long
from small_model import walk

sys.path.insert(0, str(ROOT / "tools"))
import model as tool  # noqa: E402  # the tool that serves it


def check(w):
    "What holds whatever a model says."
    for said in (w.run, w.answer, w.fact, w.bench): assert said.code == 0, said
    v = consolidation_scan.view(open_repo(w.home))
    there = {m.id: m for m in v.scan.memories}
    for e in v.state.edges.values():
        if e.by == "llm": assert e.span and e.span in there[e.source_id].text
    for s in v.state.summaries.values(): assert verify(s, [there[i] for i in s.source_memory_ids]).ok(), s
    heard = w.run.json["llm"]["pairs"]
    assert heard["asked"] > 0 and heard["taken"] + sum(heard["refused"].values()) == heard["asked"]
    a = w.answer.json
    mine = [MemoryResult(m) for m in there.values()]
    assert a["answer"] and (a["by"] == "offline" or not unsupported(a["answer"], mine, SAMPLE_NOW)), a
    fact = w.fact.json
    assert not fact["superseded_ids"] or fact["span"]
    offline, tried = w.bench.json["trials"]
    for t in (offline, tried): assert t["answered"]["k"] + sum(t["refused"].values()) == t["answered"]["n"] == w.bench.json["pairs"]
    assert tried["usage"]["asked"] > 0
    return w


def test_what_it_said_once_harms_nothing(tmp_path):
    w = check(walk(tmp_path, replay=FIXTURES / "smollm2.jsonl"))
    refused = w.run.json["llm"]["pairs"]["refused"] | w.bench.json["trials"][1]["refused"]
    assert not [r for r in refused if "is not recorded" in r], "the prompts have changed since: make recording"
    assert "is not recorded" not in w.answer.json["reasoning"]


@long
@pytest.mark.slow
@pytest.mark.skipif(tool.weights() is None, reason="the model is not here: make model fetches it (93 MB)")
def test_the_model_itself(tmp_path):
    with tool.served() as url: check(walk(tmp_path, url=url))
