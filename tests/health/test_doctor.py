"""`gnc doctor`: every damage is made for real, found, and left exactly as it was."""
import json
import random
import sqlite3
import subprocess
from contextlib import closing

import pytest
from calls import gnc, gnc_process, new_repo, run
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.store.damage import shattered
from git_notes_consolidation.health.doctor import checkup
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.store.git import MEM, open_repo
from git_notes_consolidation.store.reader import note_text, read_memories
from helpers import git, refs

DECISIONS = f"{MEM}decisions"
MERGE = ("notes", f"--ref={DECISIONS}", "merge", "--strategy=cat_sort_uniq", "refs/notes/origin/mem/decisions")


def look(home, env=None, **settings):
    "What the doctor finds in a repository."
    return checkup(open_repo(home), load_settings(settings, env={}), env or {}, SAMPLE_NOW)


def bad(found, *areas): return [f for f in found if f.level in ("warn", "broken") and (not areas or f.area in areas)]


def capture(home, *memories, commit="HEAD"):
    "As the plugin does it."
    for m in memories: git(home, "notes", f"--ref={MEM}{m.namespace}", "append", "-m", note_text(m), commit)


def fetch(home, other): git(home, "fetch", "--quiet", other, "+refs/notes/mem/*:refs/notes/origin/mem/*")


@pytest.fixture
def two(git_repo, tmp_path):
    "Two clones of a repository with one commit, and a memory that both know."
    capture(git_repo, mem("Use ruff", "It is quick.", days_ago=90))
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", git_repo, other)
    for k, v in (("user.name", "Other"), ("user.email", "other@example.org")): git(other, "config", k, v)
    git(other, "fetch", "--quiet", "origin", "refs/notes/*:refs/notes/*")
    return git_repo, other


MINE = [mem("Use Flask", "Small and known.\n\n    pip install flask\n\n- a list\n- of two", days_ago=60), mem("Use SQLite", "One file.", days_ago=50)]
THEIRS = [mem("Use cron", "It is there.", days_ago=40)]


@pytest.fixture
def torn(two):
    "The clone in which the plugin's merge has sorted a note of four memories."
    one, other = two
    capture(one, *MINE); capture(other, *THEIRS)
    fetch(one, other); git(one, *MERGE)
    return one


# Notes torn by a merge


def the_torn(found): return next(f for f in found if f.area == "notes" and f.level != "ok")


def test_a_torn_note_is_found_and_all_of_it_comes_back(torn):
    assert read_memories(open_repo(torn)).memories == ()
    f = the_torn(look(torn))
    assert f.level == "broken" and f.where == f"{DECISIONS} {git(torn, 'rev-parse', 'HEAD')}, byte 0" and "of 4 memories" in f.what
    by = {m.summary: m for m in [mem("Use ruff", "It is quick.", days_ago=90), *MINE, *THEIRS]}
    lost = next(f for f in look(torn) if f.recoverable)
    assert {r.summary for r in lost.recoverable} == {*by} and {r.namespace for r in lost.recoverable} == {"decisions"}
    for r in lost.recoverable:
        assert r.timestamp == by[r.summary].timestamp.isoformat() and r.command == f"git show {r.blob}"
        assert note_text(by[r.summary]).strip() in git(torn, *r.command.split()[1:])
    assert gnc("restore", "--lost", repo=torn).code == 0
    assert {m.id for m in read_memories(open_repo(torn)).memories} == {r.id for r in lost.recoverable}
    assert the_torn(look(torn)).level == "note" and "before the first ---" in the_torn(look(torn)).remedy  # Which the plugin's reader stumbles over
    assert "Nothing is lost" in gnc("restore", "--lost", repo=torn).out


@pytest.mark.slow
def test_gits_sort_is_always_recognised(git_repo, tmp_path):
    "Whatever stands in the bodies: indented, ruled, empty, not ASCII, with carriage returns."
    rng = random.Random(5)
    lines = ["", "    indented", "---", "--- ", "- item", "ünïcode ⚙", "\ttab", "a: b", "#", "~", "z" * 300, "type: x", " ", "trailing  ", "cr\r", "🙂", '"q"']
    bodies = ["\n".join(rng.choices(lines, k=rng.randrange(12))) for _ in range(60)]
    for i, (a, b) in enumerate(zip(bodies[::2], bodies[1::2])):
        blobs = [git(git_repo, "hash-object", "-w", "--stdin", input=note_text(mem(f"S{i}{k}", x, days_ago=i + 1 + k))) for k, x in enumerate((a, b))]
        for ref, blob in zip(("mine", "theirs"), blobs): git(git_repo, "notes", f"--ref={ref}{i}", "add", "-C", blob, "HEAD")
        git(git_repo, "notes", f"--ref=mine{i}", "merge", "--quiet", "--strategy=cat_sort_uniq", f"theirs{i}")
        data = subprocess.run(["git", "cat-file", "blob", git(git_repo, "notes", f"--ref=mine{i}", "list", "HEAD")], cwd=git_repo, capture_output=True).stdout
        assert shattered(data) == "sorted", data


# The plugin's index


TABLES = """CREATE TABLE memories (id TEXT PRIMARY KEY, commit_sha TEXT NOT NULL, namespace TEXT NOT NULL, summary TEXT NOT NULL, content TEXT NOT NULL,
    timestamp TEXT NOT NULL, repo_path TEXT, spec TEXT, phase TEXT, tags TEXT, status TEXT DEFAULT 'active', relates_to TEXT, created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL);
CREATE TABLE vec_memories_rowids (rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, chunk_id INTEGER, chunk_offset INTEGER);"""


def rows_of(home, digits):
    "As the plugin's sync names them with 7 digits, and its capture with 40."
    for m in read_memories(open_repo(home)).memories:
        for p in m.places: yield f"{m.namespace}:{p.commit[:digits]}:{p.index}", p.commit, m.namespace, m.summary, m.content, m.timestamp.isoformat()


def indexed(home, rows, vectors=True):
    "The plugin's index of these rows."
    (home / ".memory").mkdir(exist_ok=True)
    (home / ".git/info").mkdir(exist_ok=True)
    (home / ".git/info/exclude").write_text("/.memory/\n")
    rows = list(rows)
    with closing(sqlite3.connect(home / ".memory/index.db")) as conn, conn:
        conn.executescript(TABLES)
        conn.executemany("INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, NULL, '', 'active', '', '', '')", rows)
        if vectors: conn.executemany("INSERT INTO vec_memories_rowids (id) VALUES (?)", [(r[0],) for r in rows])


def test_rows_in_no_note_memories_in_no_row_and_rows_without_a_vector(git_repo):
    capture(git_repo, *MINE)
    indexed(git_repo, rows_of(git_repo, 7), vectors=False)
    git(git_repo, "notes", f"--ref={DECISIONS}", "remove", "HEAD")
    capture(git_repo, *THEIRS)
    only, missing, bare = bad(look(git_repo), "index")
    assert [r.summary for r in only.recoverable] == ["Use Flask", "Use SQLite"] and "sync full would delete" in only.what
    assert missing.what == "1 memory of the notes not in the index." and bare.what.startswith("2 of 2 rows without a vector")
    assert missing.remedy == bare.remedy == "Save what stands nowhere else, then /memory:sync full."
    with closing(sqlite3.connect(git_repo / ".memory/index.db")) as conn:
        sql = only.recoverable[0].command.split('"')[1]
        assert conn.execute(sql).fetchone()[0] == MINE[0].content


@pytest.mark.slow
def test_hostile_rows_reach_neither_a_command_nor_the_terminal(git_repo):
    capture(git_repo, *MINE)
    evil = "x'; DROP TABLE memories; --\x1b[2J"
    indexed(git_repo, [*rows_of(git_repo, 7), (evil, "ab" * 20, "decisions", evil, "x", "not a date")])
    f = next(f for f in look(git_repo) if f.recoverable)
    assert f.remedy == "" and f.recoverable[0].command == ""
    said = gnc("doctor", repo=git_repo)
    assert "\x1b" not in said.out and json.loads(gnc("doctor", "--json", repo=git_repo).out)["recoverable"][0]["row"] == evil


# Git


@pytest.mark.slow
def test_a_bare_push_that_leaves_the_branch_behind(two, tmp_path):
    "As the plugin configures it; what is said is what git does."
    one, other = two
    hub = tmp_path / "hub"
    git(tmp_path, "clone", "--quiet", "--bare", one, hub)
    git(other, "remote", "set-url", "origin", hub)
    for k, v in (("remote.origin.push", "refs/notes/mem/*:refs/notes/mem/*"), ("remote.origin.fetch", "+refs/notes/mem/*:refs/notes/origin/mem/*"),
                 ("notes.rewriteRef", "refs/notes/mem/*"), ("notes.mergeStrategy", "cat_sort_uniq")): git(other, "config", "--add", k, v)
    git(other, "commit", "--quiet", "--allow-empty", "--message=Two")
    push, strategy = (next(f for f in look(other) if f.where == k) for k in ("remote.origin.push", "notes.mergestrategy"))
    assert (push.level, strategy.level) == ("warn", "warn")
    before = refs(hub, "refs/heads/")
    git(other, "push", "--quiet")
    assert refs(hub, "refs/heads/") == before and DECISIONS in refs(hub)
    subprocess.run(push.remedy.partition("; or ")[2], shell=True, cwd=other, check=True)
    git(other, "push", "--quiet")
    assert refs(hub, "refs/heads/") != before and not any(f.where == "remote.origin.push" for f in look(other))


def test_a_fetch_that_overwrites(two):
    _, other = two
    git(other, "config", "--add", "remote.origin.fetch", "+refs/notes/*:refs/notes/*")
    git(other, "config", "--add", "remote.origin.fetch", "refs/notes/mem/*:refs/notes/mem/*")  # Without a plus git refuses to overwrite
    fetched, = (f for f in look(other) if "overwrites" in f.what)
    capture(other, *THEIRS)
    mine = refs(other, MEM)
    git(other, "fetch", "--quiet", check=False)
    assert refs(other, MEM) != mine  # indeed
    subprocess.run(fetched.remedy.partition("; ")[0], shell=True, cwd=other, check=True)
    assert not any("overwrites" in f.what for f in look(other))


# As a whole


HEALTHY = [m for m in sample_memories() if "\n---\n" not in f"\n{m.content}\n"]


def state(path):
    "Every file with its bytes, its times and its kind."
    return {str(p.relative_to(path)): (p.read_bytes() if p.is_file() else b"", p.lstat().st_mtime_ns, p.lstat().st_mode) for p in path.rglob("*")}


@pytest.fixture
def healthy(tmp_path):
    "Memories in whole notes, consolidated, with the plugin's index as a full sync leaves it."
    from git_notes_consolidation.store.reader import write_memories
    home = new_repo(tmp_path / "healthy")
    write_memories(open_repo(home), HEALTHY)
    assert run(home, max_change=0.25).success
    indexed(home, rows_of(home, 7))
    return home


@pytest.mark.slow
def test_a_healthy_repository_has_no_warning(healthy):
    found = look(healthy)
    assert bad(found) == []
    said = gnc("doctor", repo=healthy)
    assert said.code == 0 and "broken" not in said.out.splitlines()[-1]


@pytest.mark.slow
def test_nothing_at_all_is_changed(healthy, torn):
    for home in (healthy, torn):
        before = state(home)
        look(home); gnc("doctor", repo=home); gnc_process("--repo", home, "--now", "2026-11-01", "doctor", "--json")
        assert state(home) == before


@pytest.mark.slow
def test_the_command_puts_first_what_matters_and_fails_when_something_is_broken(torn):
    said = gnc("doctor", repo=torn)
    assert said.code == 1 and said.out.splitlines()[0].startswith("broken")
    data = gnc("doctor", "--json", repo=torn).json
    assert not data["ok"] and data["counts"]["broken"] == 1 and len(data["recoverable"]) == 4
    assert {*data["recoverable"][0]} == {"id", "namespace", "summary", "timestamp", "blob", "row", "command"}


def test_what_sessions_proposed_and_nobody_can_read_any_more(git_repo):
    assert bad(look(git_repo), "hooks") == []
    (git_repo / ".git/gnc").mkdir(exist_ok=True)
    (git_repo / ".git/gnc/proposed.json").write_text("[1")
    assert [f.level for f in bad(look(git_repo), "hooks")] == ["broken"]
