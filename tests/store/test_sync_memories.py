"""gnc sync carries the memories too: both sides keep all of theirs, whatever a note holds, and no push is forced."""
import pytest
from clones import go, make
from helpers import git, refs
from hypothesis import given, settings
from hypothesis import strategies as st

from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import note_text, parse_note, pieces, read_memories, with_pieces

MEMORIES = "refs/notes/mem/"
LOOSE = [b"a remark", b"---\ntype: decisions\nsummary: never closed", b"---\nno front\n---\ntext", "\ufeffé".encode(), b"\xff\n\n\n", b"```\n---\n```"]
SAID = [note_text(mem(t, b, days_ago=d)).encode() for t, b, d in (
    ("Use Redis", "", 1), ("Use Redis", "For the queue.", 1), ("Rule", "a\n\n---\n\nb", 2),
    ("Quote", "---\ntype: x\n---\nsaid", 3), ("Spaces", "end  \n\n", 4))]
NOTES = st.lists(st.sampled_from([*SAID, *LOOSE]), max_size=5).map(b"\n\n".join)


def known(note): return {(r.front["timestamp"], r.front["summary"], r.body) for r in parse_note(note)[0]}
def united(a, b): return with_pieces([a] if a else [], [p for p in pieces(b) if p not in pieces(a)])


@given(NOTES, NOTES)
@settings(deadline=None)
def test_a_union_of_two_notes_has_every_memory_of_either_and_no_other(a, b):
    for x, y in ((a, b), (b, a)):
        both = united(x, y)
        assert known(both) == known(a) | known(b)
        assert {*pieces(x), *pieces(y)} == {*pieces(both)}
        assert united(both, x) == united(both, y) == united(both, b"")


def write(home, namespace, *said, on):
    for text in said: git(home, "notes", f"--ref=mem/{namespace}", "append", "-m", text, on)


def record(title, body="", day=1): return f"---\ntype: decisions\ntimestamp: 2026-10-0{day}T10:00:00+00:00\nsummary: {title}\n---\n\n{body}"
def titles(home): return sorted(m.summary for m in read_memories(open_repo(home)).memories)


@pytest.fixture
def pair(tmp_path):
    one, two = make(tmp_path, "one", "two")
    git(one, "commit", "-q", "--allow-empty", "-m", "Work")
    git(one, "push", "-q", "origin", "HEAD:main"); git(two, "pull", "-q", "origin", "main")
    return one, two


def test_both_wrote_on_one_commit_and_both_have_all_of_it(pair, tmp_path):
    one, two = pair
    write(one, "decisions", record("Same"), record("Hers", "two\n\nlines", 2), on="HEAD"); write(one, "learnings", record("Only hers", day=3), on="HEAD")
    write(two, "decisions", record("Same"), record("His", day=4), on="HEAD")
    r = [go(one), go(two), go(one)]
    assert [(x.came["memories"], x.went["memories"]) for x in r] == [(0, 3), (2, 1), (1, 0)]
    assert titles(one) == titles(two) == ["Hers", "His", "Only hers", "Same"]
    assert refs(one, MEMORIES) == refs(two, MEMORIES) == refs(tmp_path / "team.git", MEMORIES)
    assert [go(h).went["memories"] for h in (one, two)] == [0, 0] and git(tmp_path / "team.git", "fsck", "--strict", "--no-dangling") == ""
    assert not any("notes" in git(h, "config", "--local", "--list") for h in pair)


@pytest.mark.slow
def test_the_plugins_settings_do_no_harm(pair):
    "As git-notes-memory 0.12 configures a clone: its merge strategy sorts lines."
    for home in pair:
        for k, v in (("remote.origin.push", "refs/notes/mem/*:refs/notes/mem/*"), ("remote.origin.fetch", "+refs/notes/mem/*:refs/notes/origin/mem/*"),
                     ("notes.rewriteRef", "refs/notes/mem/*"), ("notes.mergeStrategy", "cat_sort_uniq")): git(home, "config", "--add", k, v)
    for n, home in enumerate(pair): write(home, "decisions", record(f"Of {n}", "z\na"), on="HEAD")
    for home in (*pair, pair[0]): go(home)
    assert titles(pair[0]) == titles(pair[1]) == ["Of 0", "Of 1"]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abs"), st.integers(0, 3)), max_size=8))
@settings(max_examples=6, deadline=None)
def test_nothing_that_was_ever_written_is_lost(tmp_path_factory, steps):
    place = tmp_path_factory.mktemp("memories")
    one, two = make(place, "one", "two")
    written = set()
    for n, (who, k) in enumerate(steps):
        home = {"a": one, "b": two}.get(who)
        if home is None: go((one, two)[k % 2])
        else:
            written.add(f"m{n}")
            write(home, ("decisions", "learnings")[k % 2], record(f"m{n}"), on=git(home, "hash-object", "-w", "--stdin", input=str(k // 2)))
    for home in (one, two, one): go(home)
    assert set(titles(one)) == set(titles(two)) == written
