"""What the research notebooks on clusters rest on: the stored labels, the repository that a reader names, and a slider in a real browser."""
import json

import numpy as np
import pytest
from helpers import ROOT

from git_notes_consolidation.similarity.neighbours import first_seen
from git_notes_consolidation.core.memory import digest, sample_memories
from git_notes_consolidation.store.git import git, open_repo, tips
from git_notes_consolidation.store.reader import write_memories
from git_notes_consolidation.consolidation.scan import living_memories

MAP = ROOT / "nbs" / "research" / "03_cluster-map.ipynb"
STORED = MAP.with_name("cluster-map-minilm.json")


def code(path): return ["".join(c["source"]) for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]


def sample_texts(): return list(dict.fromkeys(m.text for m in living_memories(sample_memories())))


def test_stored_labels_are_of_the_sample_and_nothing_but_numbers():
    found, texts = json.loads(STORED.read_text()), sample_texts()
    assert found["texts"] == digest("texts", texts)
    labels = [x for kind in ("cuts", "density") for x in found[kind].values()]
    assert len(labels) == 10 and all(len(x) == len(texts) and {type(k) for k in x} == {int} for x in labels)
    for x in found["cuts"].values(): assert first_seen(np.array(x)).tolist() == x
    alone = [np.unique(x, return_counts=True)[1].tolist().count(1) for x in found["cuts"].values()]
    assert alone == sorted(alone), "a higher threshold leaves more memories alone"


@pytest.mark.slow
def test_the_map_of_a_readers_own_repository_only_reads(tmp_path, monkeypatch):
    "Fourteen memories, so that no UMAP is needed; MiniLM's labels are of other texts and must not be used."
    home = tmp_path / "own"
    home.mkdir()
    git(home, "init", "-q", "-b", "main")
    write_memories(open_repo(home), sample_memories()[:14])
    before, seen = tips(open_repo(home), "refs/"), []
    monkeypatch.chdir(MAP.parent)
    space = {"display": seen.append}
    cells = code(MAP)
    start = next(i for i, c in enumerate(cells) if c.startswith("REPO = None"))
    imports = next(c for c in cells if "import ipywidgets" in c)
    for cell in [imports, f"REPO = {str(home)!r}", *cells[start + 1:]]: exec(compile(cell, "cluster-map", "exec"), space)
    assert len(space["there"]) == 14 and space["minilm"] == {} and seen == []
    assert tips(open_repo(home), "refs/") == before and not (home / ".memory").exists()
