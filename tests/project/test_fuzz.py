"""Whatever comes in from outside is read, or refused as documented: what was found once, and a search that is the same every time.

`make fuzz MINUTES=60` searches on. What it finds is written to tests/fixtures/fuzz, and is replayed here.
"""
import subprocess
import time
import tracemalloc

import pytest
from calls import gnc, new_repo
from fuzz_data import inputs
import fuzz_targets  # noqa: F401  # fills the list
from fuzz_base import NEW, OLD, TARGETS, check
from git_notes_consolidation.store.git import MEM, open_repo
from git_notes_consolidation.store.events import REFS
from git_notes_consolidation.store.reader import read_memories
from helpers import ROOT, add_memories, refs
from hypothesis import HealthCheck, given, settings

FOUND = sorted(p for p in (ROOT / "tests" / "fixtures" / "fuzz").glob("*/*") if p.is_file())
FEW = {False: 30, True: 10}  # Examples in CI, of a fast target and of a slow one


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_valid_goes_through(name):
    for seed in (*TARGETS[name].seeds, b""): check(name, seed)


@pytest.mark.parametrize("case", FOUND, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_what_was_found_once(case):
    data = case.read_bytes()
    check(case.parent.name, data)
    tracemalloc.start()
    try: TARGETS[case.parent.name].run(data)
    except TARGETS[case.parent.name].refuses: pass
    finally: peak = tracemalloc.get_traced_memory()[1]; tracemalloc.stop()
    assert peak < 30_000_000 + 400 * len(data), f"{len(data)} bytes took {peak / 1e6:.0f} MB"


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_new_is_found(name):
    here = settings()
    few = settings(max_examples=FEW[TARGETS[name].slow], database=None) if here.derandomize else here

    @settings(few, deadline=None, suppress_health_check=[*HealthCheck])
    @given(inputs(name))
    def search(data): check(name, data)
    search()


# Time

PUMPS = (b"a", b"A", b"0", b" ", b"\n", b"-", b"_", b"a ", b"a-", b"a_", b"aA", b"0-", b"1,000 ", b"a.", b"a/", b"(a", b"[", b"{", b"'", b'"', b"`", b"# ",
         b"* ", b"a: ", b"the day before ")
SIZE = 3000  # Bytes

def seconds(name, pump, size):
    "Processor time for a long run of a piece, behind whatever makes it a text of the kind."
    t = TARGETS[name]
    data = (t.seeds[0][:40] if t.seeds else b"") + pump * (size // len(pump)) + b"\x01"
    begin = time.thread_time()
    try: t.run(data)
    except (*t.refuses, AssertionError): pass
    return time.thread_time() - begin


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", [n for n, t in TARGETS.items() if not t.slow])
def test_time_grows_with_length_and_not_with_its_square(name):
    for pump in dict.fromkeys((*PUMPS, *(w for w in TARGETS[name].words if 0 < len(w) < 40))):
        if seconds(name, pump, SIZE) < 0.08: continue
        once, twice = (min(seconds(name, pump, n) for _ in "123") for n in (SIZE, 2 * SIZE))
        assert once < 0.08 or twice < 3 * once, f"{pump!r}: {once:.2f} s for {SIZE} bytes, {twice:.2f} s for twice as many"


# All at once, in a real repository

@pytest.mark.slow
def test_a_repository_of_everything_found_is_consolidated_and_audited(tmp_path):
    home = new_repo(tmp_path / "repo")
    add_memories(home, [OLD, NEW])
    kinds = ("note", "audited", "records")
    cases = [p.read_bytes() for p in FOUND if p.parent.name in kinds] + [s for n in kinds for s in TARGETS[n].seeds]
    stream, there = [], refs(home)
    for ref in (f"{MEM}decisions", *REFS.values()):
        stream.append(b"commit %s\ncommitter a <a@example.org> 0 +0000\ndata 1\nx\n" % ref.encode() + (b"from %s^0\n" % ref.encode() if ref in there else b""))
        stream += [b"M 100644 inline %040x\ndata %d\n%s\n" % (i, len(c), c) for i, c in enumerate(cases, 1)]
    subprocess.run(["git", "fast-import", "--quiet"], cwd=home, input=b"".join(stream), check=True, capture_output=True)
    assert {OLD.id, NEW.id} <= {m.id for m in read_memories(open_repo(home)).memories}
    for words in (["consolidate", "--json"], ["consolidate"], ["recall", "Flask"], ["log"], ["undo", "--last"], ["status"]):
        said = gnc(*words, repo=home)
        assert said.code in (0, 2) and said.err.count("\n") <= 1, (words, said)
    assert gnc("audit", repo=home).code in (0, 1)
