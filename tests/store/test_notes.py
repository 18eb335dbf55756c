"""The reader loses nothing, and what is written says the same to every reader: counted independently on real notes, and over generated ones."""
import hashlib
import json
import re
import subprocess
import sys
import tarfile
from datetime import UTC, datetime

import pytest
from helpers import git
from hypothesis import example, given, settings
from hypothesis import strategies as st

from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import UnknownId, note_text, parse_note, read_memories, resolve

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
START = re.compile(r"^---[ \t\r]*\n(?:type|timestamp|summary|spec|phase|tags|status|relates_to|importance):", re.M)  # Where a record may start


# Real notes


def blobs_of(repo):
    "Namespace, annotated object and bytes of every memory note, by git alone."
    for ref in git(repo, "for-each-ref", "--format=%(refname)", "refs/notes/mem/").splitlines():
        for row in git(repo, "notes", "--ref", ref, "list").splitlines():
            blob, obj = row.split()
            yield ref.rsplit("/", 1)[1], obj, blob, subprocess.run(["git", "cat-file", "blob", blob], cwd=repo, capture_output=True, check=True).stdout


@pytest.mark.slow
def test_the_corpus_has_as_many_memories_as_counted_by_hand(corpus_template):
    count, memories, bodies, found = 0, set(), set(), list(blobs_of(corpus_template))
    for ns, _, _, data in found:
        before, *records = re.split(rb"(?m)^---\n(?=type: )", data)
        assert before == b""
        for text in records:
            count += 1
            front, close, body = text.partition(b"\n---\n")
            assert close
            when, body = re.search(rb"(?m)^timestamp: '?([^'\n]*)'?$", front)[1], body[1:].rstrip(b"\n")
            summary = re.search(rb"(?ms)^summary: (.*?)(?=^\w+:|\Z)", front)[1]
            memories.add(hashlib.sha256(b"\0".join((ns.encode(), when, summary, body))).digest())
            bodies.add(hashlib.sha256(body).digest())
    by_hand = len(found), count, len(memories), len(bodies)
    scan = read_memories(open_repo(corpus_template))
    assert (scan.notes, scan.records, len(scan.memories), len({m.content for m in scan.memories})) == by_hand == (317, 6299, 4271, 1407)
    assert len({m.id for m in scan.memories}) == 4271 and scan.problems == ()
    assert {hashlib.sha256(m.content.encode()).digest() for m in scan.memories} == bodies
    assert list(scan.memories) == sorted(scan.memories, key=lambda m: (m.timestamp, m.id))


@pytest.fixture(scope="session")
def sample(shared, tmp_path_factory):
    "The released plugin's own writing: the repository, and what was captured."
    home = tmp_path_factory.mktemp("plugin-sample")
    with tarfile.open(shared / "corpus" / "plugin-sample.tar.gz") as tar: tar.extractall(home, filter="data")
    return home / "repo", json.loads((home / "memories.json").read_text(encoding="utf-8"))


def test_the_plugins_sample_is_read_whole(sample):
    scan = read_memories(open_repo(sample[0]))
    assert scan.records == len(scan.memories) == 33 and scan.problems == ()
    assert {(m.namespace, m.summary, m.content, m.spec) for m in scan.memories} == {(x["ns"], x["summary"], x["content"], x.get("spec")) for x in sample[1]}
    (trap,) = (m for m in scan.memories if "\n---\n" in m.content)
    assert trap.content.endswith("Second part after a markdown horizontal rule.")


def test_both_of_the_plugins_spellings_and_beginnings_resolve(sample):
    memories = read_memories(open_repo(sample[0])).memories
    names = [m.id for m in memories]
    for m in memories:
        p = m.places[0]
        texts = (m.id, m.id[:14], m.id[4:12], f"{p.namespace}:{p.commit}:{p.index}", f"{p.namespace}:{p.commit[:7]}:{p.index}")
        assert {resolve(t, names, memories) for t in texts} == {m.id}
    for text in ("decisions:0000000:0", "nowhere:abc:0", "mem_zzzzzzz", "", "m", memories[0].id + "a"):
        with pytest.raises(UnknownId, match="nothing here is called"): resolve(text, names, memories)
    with pytest.raises(UnknownId, match="ambiguous"): resolve("mem_", names, memories)


# Notes that somebody made up


def unlike_a_record(body): return not START.search(f"\n{body}\n")


hostile = st.sampled_from(["---", "--- ", "key: value", "- a", "'", '"', "!!int 3", "*alias", "&anchor", "{a: 1}", "[", "%TAG", "0123", "1e3", "2026-01-15",
                           "null", "~", "yes", "\t", "#x", ": ", " # ", "\x85", "\u2028", "\ufeff", "\x00", "\x1b[2J", "caf\u00e9", "\U0001f680", "x" * 120,
                           "a b " * 40, "...", "? x", "> y", "| z", "@", "`", "\\n"])
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
texts = any_text | st.lists(hostile | any_text, max_size=4).map("".join)
lines = st.lists(texts | st.sampled_from(["---", "", "type: decisions", "timestamp: 2026-01-01", "summary: no"]), max_size=6).map("\n".join)
memory_values = st.builds(
    lambda s, body, days, ns, tags, spec, i: mem(s, body.rstrip("\n"), days_ago=days, namespace=ns, tags=tuple(tags), spec=spec or None, importance=i),
    texts, lines.filter(unlike_a_record), st.integers(0, 900), st.sampled_from(["decisions", "progress", "my-own"]), st.lists(texts, max_size=2), texts,
    st.none() | st.floats(0, 1))


@pytest.mark.slow
@given(st.lists(memory_values, min_size=1, max_size=4, unique_by=lambda m: m.id))
@settings(max_examples=150)
def test_a_note_gives_back_what_went_in(written):
    records, problems = parse_note("\n".join(map(note_text, written)).encode())
    assert problems == []
    assert [(r.front["timestamp"], r.front["summary"], r.body) for r in records] == [(m.timestamp.isoformat(), m.summary, m.content) for m in written]


pieces = st.sampled_from([b"---\n", b"---", b"--- \r\n", b"type: x\n", b"timestamp: 2026-01-01\n", b"timestamp: '2026-01-01T10:00:00+00:00'\n", b"summary: a\n",
                          b"summary:\n  b: c\n", b"\n", b"\n\n", b"\xff", b"\xe2\x80", b"tags: [a,\n", b"tags: [a]\n", b"body\n", b"\r\n", b"importance: 9\n",
                          b"\x00", b"- ", b"timestamp: 0001-01-01T00:00+23:59\n", b"*x", b"!!python/object:os.system\n"])
good = st.just(b"---\ntype: x\ntimestamp: 2026-01-01\nsummary: a\n---\n\nbody\n")
some_notes = st.binary(max_size=60) | st.lists(pieces | good | st.binary(max_size=4), max_size=16).map(b"".join)


@pytest.mark.slow
@given(some_notes)
@example(b"\xef\xbb\xbf---\ntype:\ntimestamp:0001-01-01\nsummary:\n---")  # An editor's byte order mark belongs to the first line
@settings(max_examples=500)
def test_no_bytes_stop_the_reader_and_none_are_lost(data):
    records, problems = parse_note(data)
    cuts = [r.offset for r in records]
    assert cuts == sorted(set(cuts)) and all(0 <= p.offset <= len(data) for p in problems)
    before = data[:cuts[0] if cuts else len(data)]
    assert not before.strip() or any(p.offset == 0 for p in problems)  # said, not dropped in silence
    for r, end in zip(records, [*cuts[1:], len(data)]):
        text = data[r.offset:end].decode("utf-8", "replace").rstrip("\n") + "\n"
        head = text.removesuffix("\n").removesuffix(r.body) if r.body else text
        assert head + r.body in (text, text.removesuffix("\n"))
        assert re.fullmatch(r"\ufeff?---[ \t\r]*\n.*?\n---[ \t\r]*(\n\n?)?", head, re.S), head  # nothing but front matter stands before the body
        assert isinstance(r.front["summary"], str) and isinstance(r.front["timestamp"], str)


def test_what_cannot_be_read_is_named_with_its_place(git_repo):
    head, ok = git(git_repo, "rev-parse", "HEAD"), note_text(mem("Fine", "Body."))
    bad = ok + "\n---\ntype: decisions\nsummary: no time\n---\n\nstill here\n\n" + note_text(mem("Later")).replace("summary", "importance: high\nsummary")
    git(git_repo, "notes", "--ref", "mem/decisions", "add", "--file=-", head, input=bad)
    scan = read_memories(open_repo(git_repo))
    assert {str(p) for p in scan.problems} == {
        f"refs/notes/mem/decisions {head}, byte {bad.index('---', bad.index('Body.'))}: front matter has no timestamp",
        f"refs/notes/mem/decisions {head}, byte {bad.index('---', bad.index('still'))}: importance 'high' is not a number from 0 to 1, ignored"}
    assert {m.summary: m.content for m in scan.memories}["Fine"].endswith("still here")


def test_a_note_nested_without_end_does_not_kill_the_process():
    "In a process of its own: a C parser that runs out of stack takes its process with it."
    code = """if True:
        from git_notes_consolidation.store.reader import parse_note; from git_notes_consolidation.store.events import decode
        for n in (1_000, 50_000, 500_000):
            for deep in (b"[" * n, b"{a: " * n, b"\\n " + b"- " * n, b"\\n " + b"? " * n, b"[" * n + b"]" * n):
                records, problems = parse_note(b"---\\ntype: x\\ntimestamp: 2026-01-01\\nsummary: a\\ntags: " + deep + b"\\n---\\n\\nbody\\n")
                assert records or problems
            assert decode("- " + "[" * n) is None and decode('{"a":' * n) is None
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:] or f"exit {done.returncode}"
