"""Real notes through the whole pipeline: nothing of the plugin's is touched, nothing is said twice, and the way there does not matter."""
import fcntl
import json
import os
import pytest
import random
import shutil
import subprocess
import sys
import time
from calls import state_of
from collections import Counter
from datetime import UTC, datetime
from helpers import NOTES, ROOT, add_memories, git, long, refs, story
from git_notes_consolidation.apps.cli import program as cli
from git_notes_consolidation.consolidation import service, stores as consolidation_stores
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.core.models import MemoryTier
from git_notes_consolidation.store import events as notes
from git_notes_consolidation.store.events import REFS
from git_notes_consolidation.store.git import MEM, note_paths, open_repo, tips
from git_notes_consolidation.store.reader import read_memories
from git_notes_consolidation.text.words import split_sentences


pytestmark = pytest.mark.slow

NOW = datetime(2025, 12, 28, tzinfo=UTC)


def serve(home, **settings): return consolidation_stores.open_service(home, load_settings(settings, env={}))
def run(home, now=NOW, **settings): return service.run(serve(home, **settings), now)


def holds(state):
    "Tiers, edges by what they say, summaries by id and in full, whichever runs have written them."
    edges = {(e.source_id, e.target_id, e.edge_type, e.kind, e.span) for e in state.edges.values()}
    summaries = {i: {k: v for k, v in x.to_dict().items() if k != "consolidation_run_id"} for i, x in state.summaries.items()}
    return {i: state.tier(i) for i in state.tiers if state.tier(i) != MemoryTier.HOT}, edges, summaries, set(state.reviews)


@pytest.fixture(scope="session")
def consolidated(corpus_template, tmp_path_factory):
    "The corpus after one run, made once for all of pytest's workers; not to be written to."
    place = tmp_path_factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
    home, done = place / "consolidated-corpus", place / "consolidated-corpus.json"
    with open(place / "consolidated-corpus.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(corpus_template, home)
            done.write_text(json.dumps(run(home).to_dict()))
    return home, json.loads(done.read_text())


@pytest.fixture
def again(consolidated, tmp_path):
    "A copy of it, to be written to."
    return shutil.copytree(consolidated[0], tmp_path / "again")


# The corpus


def test_the_run_reads_all_of_it(consolidated):
    home, report = consolidated
    by_hand = {(m.summary.strip(), m.content.strip()) for m in read_memories(open_repo(home)).memories}
    assert report["success"] and not report["errors"] and not report["warnings"]
    near = {e.source_id for e in state_of(home).edges.values() if e.edge_type == "duplicate_of" and e.code == "N"}
    assert report["memories_processed"] == 4271 == report["memories_distinct"] + report["duplicates_found"]
    assert len(by_hand) - len(near) <= report["memories_distinct"] < len(by_hand)  # some repeats are no exact ones


def test_the_plugins_notes_are_what_they_were(consolidated, corpus_template):
    assert refs(consolidated[0], MEM) == refs(corpus_template, MEM) != {}
    assert set(refs(consolidated[0], NOTES)) - set(refs(corpus_template)) == set(REFS.values())


# Nothing is said twice


def gnc(home, *args, capsys):
    "A command's JSON."
    capsys.readouterr()
    assert cli.main(["--repo", str(home), "--now", NOW.isoformat(), "--json", *args]) == 0
    return json.loads(capsys.readouterr().out)


def test_no_list_and_no_count_shows_a_repeat_twice(consolidated, capsys):
    home, report = consolidated
    text = {m.id: (m.summary.strip(), m.content.strip()) for m in read_memories(open_repo(home)).memories}
    lists = {t.value: gnc(home, "tiers", "--show", t.value, capsys=capsys) for t in MemoryTier}
    shown = Counter(text[r["id"]] for rows in lists.values() for r in rows)
    near = {text[e.source_id] for e in state_of(home).edges.values() if e.edge_type == "duplicate_of" and e.code == "N"}
    again = Counter(text[r["source"]] for r in state_of(home).reviews.values() if r["what"] == "edge" and r["reason"].startswith("said again"))
    assert all(n <= 1 + again[t] for t, n in shown.items()) and set(shown) >= set(text.values()) - near
    status = gnc(home, "status", capsys=capsys)
    assert status["tiers"] == {t: len(rows) for t, rows in lists.items()} == gnc(home, "tiers", capsys=capsys)["tiers"]
    assert sum(status["tiers"].values()) == status["distinct"] == sum(shown.values()) == report["memories_distinct"]
    assert sum(n for row in status["namespaces"].values() for n in row.values()) == status["distinct"]
    assert (status["memories"], status["notes"], status["records"], status["edges"]["duplicate_of"]) == (4271, 317, 6299, 4271 - sum(shown.values()))


def plain(text): return " ".join(text.split()).casefold().strip(" .")
def sentences_of(text): return [plain(text[s.start:s.end]) for s in split_sentences(text)]


def test_the_edges_that_a_person_read(consolidated):
    """What was read and found wrong is not said again; of what was right, more than half is: only what is certain is done.
    Only new, sure supersessions and near duplicates were read."""
    verdicts = {}
    for line in (ROOT / "tests/fixtures/corpus_verdicts.jsonl").read_text().splitlines():
        row = json.loads(line)
        verdicts.setdefault(row["verdict"], set()).add(row["edge"])
    found = {e.id for e in state_of(consolidated[0]).edges.values() if e.code not in (None, "X")}
    assert not found & verdicts["wrong"]
    assert len(found & verdicts["right"]) > len(verdicts["right"]) / 2 and len(verdicts["right"]) + len(verdicts["unsure"]) >= 60


def test_no_summary_says_or_counts_anything_twice(consolidated):
    home, report = consolidated
    memories, state = {m.id: m for m in read_memories(open_repo(home)).memories}, state_of(home)
    copies = {e.source_id for e in state.edges.values() if e.edge_type == "duplicate_of"}
    assert len(state.summaries) == report["summaries_created"] > 50
    again = {r["source"] for r in state.reviews.values() if r["what"] == "edge" and r["reason"].startswith("said again")}
    for x in state.summaries.values():
        sentences = [*sentences_of(x.summary), *(s for fact in x.key_facts for s in sentences_of(fact))]
        assert len(sentences) == len(set(sentences)), x
        assert len(set(x.quotes)) == len(x.quotes) and len({plain(d.decision) for d in x.decisions}) == len(x.decisions), x
        assert not set(x.source_memory_ids) & copies and len(set(x.source_memory_ids)) == len(x.source_memory_ids) >= 3, x
        texts = {(memories[i].summary.strip(), memories[i].content.strip()) for i in x.source_memory_ids if i not in again}
        assert len(texts) == len(set(x.source_memory_ids) - again), x
        assert all(q.holds(memories[q.memory_id]) for q in x.quotes), x
    sources = Counter(i for x in state.summaries.values() for i in x.source_memory_ids)
    assert set(sources.values()) == {1}  # and no memory is told in two of them
    assert len({(x.title, x.summary) for x in state.summaries.values()}) == len(state.summaries)


# The way there does not matter


def in_batches(home, rows, now, n=10, **settings):
    "So many runs, each over as many notes more."
    for i in range(n):
        stream, some = [], rows[:len(rows) * (i + 1) // n]
        for ref in sorted({ref for ref, *_ in some}):
            stream.append(f"commit {ref}\ncommitter a <a@example.org> 0 +0000\ndata 1\nx\ndeleteall")
            stream += [f"M 100644 {blob} {obj[:2]}/{obj[2:]}" for r, obj, blob in some if r == ref]
        git(home, "fast-import", "--quiet", "--force", input="\n".join(stream) + "\n")
        assert run(home, now, **settings).success
    return state_of(home)


def shuffled_notes(home, seed):
    repo = open_repo(home)
    rows = [(ref, obj, blob) for ref, tip in tips(repo, MEM).items() for obj, _, blob in note_paths(repo, tip)]
    random.Random(seed).shuffle(rows)
    return rows


@long
def test_three_batches_of_the_corpus_come_to_what_one_run_does(corpus_repo, consolidated):
    rows = shuffled_notes(corpus_repo, 7)
    for ref in refs(corpus_repo, MEM): git(corpus_repo, "update-ref", "-d", ref)
    assert holds(in_batches(corpus_repo, rows, NOW, 3)) == holds(state_of(consolidated[0]))
    assert read_memories(open_repo(corpus_repo)).memories == read_memories(open_repo(consolidated[0])).memories


# Several at once


GNC = [sys.executable, "-c", "import sys; from git_notes_consolidation.apps.entry import main; sys.exit(main())"]


@pytest.fixture
def small(tmp_path):
    home = tmp_path / "small"; home.mkdir()
    git(home, "init", "--quiet", "--template=")
    add_memories(home, story())
    return home


def start(home, *args):
    "A command in a process of its own."
    return subprocess.Popen([*GNC, "--repo", home, "--now", SAMPLE_NOW.isoformat(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_of_four_at_once_one_runs_and_three_say_so(small):
    "A hook of git's holds the one that came first at its first write until the other three have ended."
    go = small / "go"
    hook = small / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    hook.write_text(f'#!/bin/sh\nwhile [ ! -e "{go}" ]; do sleep 0.05; done\n')
    hook.chmod(0o755)
    four = [start(small, "consolidate") for _ in range(4)]
    until = time.monotonic() + 120
    while sum(p.poll() is None for p in four) > 1:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert [p.poll() for p in four if p.poll() is not None] == [4, 4, 4]
    go.touch()
    told = [p.communicate() for p in four]
    assert sorted(p.returncode for p in four) == [0, 4, 4, 4]
    assert all(err.count("\n") == 1 and "another run is at work" in err for p, (_, err) in zip(four, told) if p.returncode)
    hook.unlink()
    assert len(state_of(small).runs) == 1 and not run(small, SAMPLE_NOW).changed and tips(open_repo(small), "refs/gnc/tmp/") == {}


def test_whoever_only_looks_need_not_wait(small, capsys):
    run(small, SAMPLE_NOW)
    with notes.run_lock(open_repo(small)):
        assert gnc(small, "status", capsys=capsys)["memories"] == len(story()) and gnc(small, "consolidate", "--dry-run", capsys=capsys)
        assert cli.main(["--repo", str(small), "consolidate"]) == 4 and cli.main(["--repo", str(small), "undo", "run_"]) == 4
