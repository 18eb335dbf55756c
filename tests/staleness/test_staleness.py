"What memories name, beside the code of real repositories."
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from calls import gnc, new_repo
from helpers import ROOT, add_memories, git, refs
from histories import Step, write_history

from git_notes_consolidation.staleness import staleness
from git_notes_consolidation.staleness.history import walk
from git_notes_consolidation.core.memory import digest, mem, sample_memories
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories

POOL = "class PoolCache:\n    size_limit = 4\n" + "".join(f"    line_{i} = {i}\n" for i in range(20))


def day(n): return (datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=n)).isoformat()


def commit(repo, n, message, **files):
    "A commit on day n; a path's content, or none to delete it."
    for path, text in files.pop("files", {}).items():
        where = repo / path
        where.parent.mkdir(parents=True, exist_ok=True)
        if text is None: where.unlink()
        else: where.write_text(text)
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", message, date=day(n))
    return git(repo, "rev-parse", "HEAD")


def move(repo, n, old, new):
    (repo / new).parent.mkdir(parents=True, exist_ok=True)
    git(repo, "mv", "--", old, new)
    return commit(repo, n, f"Move {old}")


def told(text, n, commit, body="", **kw):
    return mem(text, body, **{"timestamp": datetime.fromisoformat(day(n)), "commit_sha": commit, "id": digest("mem", n, commit, text, body)} | kw)


def compare(repo, *memories): return staleness.compare(open_repo(repo), memories)
def said(repo, *memories): return [(s.name, s.what, s.now_at) for s in compare(repo, *memories).stale]


def one(repo, text, n, at, body=""):
    found, = compare(repo, told(text, n, at, body)).stale
    return found


# Paths


def test_a_deleted_path_is_stale_and_its_commit_named(git_repo):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL})
    memory = told("The pool is in src/pool.py", 1, at)
    assert said(git_repo, memory) == []
    gone = commit(git_repo, 5, "Without a pool", files={"src/pool.py": None})
    commit(git_repo, 6, "More", files={"b.py": "b = 1\n"})
    found, = compare(git_repo, memory).stale
    assert (found.what, found.by, found.subject, found.when.isoformat()) == ("deleted", gone, "Without a pool", day(5))
    assert memory.text[slice(*found.span)] == found.name == "src/pool.py"


def test_a_path_renamed_twice_is_at_its_last_name(git_repo):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL})
    first = move(git_repo, 3, "src/pool.py", "src/db/pool.py")
    move(git_repo, 4, "src/db/pool.py", "src/db/store.py")
    found = one(git_repo, "The pool is in `src/pool.py`", 1, at)
    assert (found.what, found.by, found.now_at) == ("renamed", first, "src/db/store.py")
    assert said(git_repo, told("src/pool.py, or src/db/store.py by now", 1, at)) == []  # It knows


def test_only_what_the_memory_could_see_counts(git_repo):
    early = commit(git_repo, 1, "Begin", files={"a.py": "a = 1\n"})
    commit(git_repo, 2, "Pool", files={"src/pool.py": POOL})
    late = commit(git_repo, 4, "Out", files={"src/pool.py": None})
    for at, n in ((early, 1), (late, 4)):
        assert said(git_repo, told("The pool is in src/pool.py", n, at, "`PoolCache` is not in src/never.py, `NeverThere`.")) == []
    assert said(git_repo, told("The pool is in src/pool.py", 3, "1" * 40)) == [("src/pool.py", "deleted", "")]  # By its time


def test_what_was_gone_when_it_was_written_is_said(git_repo):
    commit(git_repo, 1, "Pool", files={"src/pool.py": POOL, "a/x.py": "1", "b/x.py": "2", "back.py": "3"})
    out = commit(git_repo, 4, "Out", files={"src/pool.py": None, "a/x.py": None, "b/x.py": None, "back.py": None})
    at = commit(git_repo, 6, "More", files={"c.py": "c = 1\n", "back.py": "3"})
    found = one(git_repo, "The pool is in src/pool.py, not in src/never.py, x.py or back.py", 6, at)
    assert (found.name, found.what, found.by, found.now_at) == ("src/pool.py", "gone_before", out, "")
    assert "was not there when this was written: it went in" in found.reason
    assert said(git_repo, told("Out went src/pool.py", 4, out)) == said(git_repo, told("src/pool.py was removed", 6, at)) == []
    assert said(git_repo, told("src/pool.py", 9, "1" * 40)) == [("src/pool.py", "gone_before", "")]


@pytest.mark.parametrize("path", ["docs/my notes.md", "docs/über uns.md", "docs/-x.md", "-x.md", "docs/a'b.md", "docs/[x].md"])
def test_odd_paths_are_found(git_repo, path):
    at = commit(git_repo, 1, "Odd", files={path: POOL, "docs/line\nbreak.md": "x" + POOL, ":(top)x.md": "y" + POOL})
    commit(git_repo, 2, "Out", files={path: None, "docs/line\nbreak.md": None, ":(top)x.md": None})
    found = one(git_repo, f"It stands in `{path}`", 1, at)
    assert (found.name, found.what, found.subject) == (path, "deleted", "Out")


def test_hostile_names_reach_neither_git_nor_the_terminal(git_repo):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL})
    before = refs(git_repo)
    texts = ["`--output=x/y.py`", "`-rf/x.py`", "`$(touch owned)/a.py`", "`HEAD:src/pool.py`", "`:/src`", "`../../etc/passwd`", "`src/\x1b[31mpool.py`",
             "commit 0000000 and fffffff1", "branch `--all`", "`__import__('os')`", "`a.b.c.d()`", "`(a|b)+c_d`", "`x" + "/y" * 3000 + "`"]
    assert compare(git_repo, *(told(t, 1, at, t) for t in texts)).stale == ()
    assert refs(git_repo) == before and not (git_repo / "owned").exists()


# Symbols


def test_a_symbol_that_no_file_has(git_repo):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL, "src/use.py": "x = PoolCache()\n"})
    commit(git_repo, 2, "Half", files={"src/use.py": "x = 1\n"})
    memory = told("Sizes", 1, at, "`PoolCache.size_limit` is four, `PoolCache()` costs nothing, `RedisPool` would.")
    assert said(git_repo, memory) == []
    gone = commit(git_repo, 3, "No class", files={"src/pool.py": "size_limit = 4\n"})
    assert [(s.name, s.by) for s in compare(git_repo, memory).stale] == [("PoolCache.size_limit", gone), ("PoolCache", gone)]


def test_a_file_cannot_forge_a_patch(git_repo):
    forged = "--- a/src/other.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-PoolCache\n\x01" + "1" * 40 + "\ndiff --git a/x b/x\n"
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL, "x.py": f"PoolCache\n{forged}"})
    gone = commit(git_repo, 2, "Out", files={"src/pool.py": None, "x.py": forged.replace("PoolCache", "nothing")})
    assert one(git_repo, "`PoolCache` keeps it", 1, at).by == gone


# Commits and branches


def test_a_reverted_commit(git_repo):
    at = commit(git_repo, 1, "Fast path", files={"fast.py": POOL})
    memory = told("Speed", 1, at, f"Commit {at[:10]} halves the time.")
    assert said(git_repo, memory) == []
    git(git_repo, "revert", "--no-edit", at, date=day(2))
    by = git(git_repo, "rev-parse", "HEAD")
    found, = compare(git_repo, memory).stale
    assert (found.name, found.what, found.by) == (at[:10], "reverted", by)
    later = told("Later", 3, by, f"Commit {at[:10]} halves the time.")  # It was known by then
    assert [s.memory_id for s in compare(git_repo, memory, later).stale] == [memory.id]
    git(git_repo, "revert", "--no-edit", by, date=day(4))
    assert said(git_repo, memory) == []
    git(git_repo, "revert", "--no-edit", "HEAD", date=day(5))
    assert said(git_repo, memory) == [(at[:10], "reverted", "")]


def side(repo, name="spike/loop", n=2):
    "Two commits on a branch of their own; then back on main."
    git(repo, "checkout", "-q", "-b", name)
    first = commit(repo, n, f"Begin {name}", files={"loop.py": "def event_loop(): ...\nfirst_line = 1\n"})
    last = commit(repo, n + 1, f"End {name}", files={"loop.py": "def event_loop(): ...\nsecond_line = 2\n"})
    git(repo, "checkout", "-q", "main")
    return first, last


def test_a_branch_deleted_unmerged(git_repo):
    first, last = side(git_repo)
    on = told("The loop halves the latency", 2, first)
    assert said(git_repo, on) == []
    git(git_repo, "branch", "-q", "-D", "spike/loop")
    found, = compare(git_repo, on).stale
    assert (found.what, found.by) == ("unreachable", first)
    git(git_repo, "tag", "kept", last)
    assert said(git_repo, on) == []


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("how", ["merge", "fast-forward", "squash", "squash and more", "rebase", "cherry-pick", "remote", "squash elsewhere"])
def test_a_branch_that_arrived_is_not_dead(git_repo, how, tmp_path):
    first, last = side(git_repo)
    memories = [told("The loop halves the latency", 2, first), told("It is tried", 3, last, f"See {last[:9]}.")]
    if how != "fast-forward": commit(git_repo, 5, "Meanwhile", files={"other.py": "o = 1\n"})
    if how == "merge": git(git_repo, "merge", "-q", "--no-ff", "--no-edit", "spike/loop", date=day(6))
    elif how == "fast-forward": git(git_repo, "merge", "-q", "--ff-only", "spike/loop")
    elif how == "rebase":
        git(git_repo, "rebase", "-q", "main", "spike/loop")
        git(git_repo, "checkout", "-q", "main")
        git(git_repo, "merge", "-q", "spike/loop")
    elif how == "cherry-pick": git(git_repo, "cherry-pick", first, last)
    elif how == "remote":
        git(git_repo, "init", "-q", "--bare", str(tmp_path / "remote"))
        git(git_repo, "remote", "add", "origin", str(tmp_path / "remote"))
        git(git_repo, "push", "-q", "origin", "spike/loop")
    else:
        if "elsewhere" in how: git(git_repo, "checkout", "-q", "-b", "next")
        git(git_repo, "merge", "-q", "--squash", "spike/loop")
        commit(git_repo, 6, "Loop (#12)", files={"loop.py": (git_repo / "loop.py").read_text() + "# reviewed\n"} if "more" in how else {})
        git(git_repo, "checkout", "-q", "main")
    git(git_repo, "branch", "-q", "-D", "spike/loop")
    assert said(git_repo, *memories) == []
    git(git_repo, "reflog", "expire", "--expire=now", "--all")  # Nor when nobody remembers
    assert said(git_repo, *memories) == []


# What the memory says itself


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("text", [
    "Removed src/pool.py", "src/pool.py is gone", "We will delete src/pool.py", "Renamed src/pool.py to src/store.py", "src/pool.py → src/store.py",
    "git rm src/pool.py", "The pool moved out of src/pool.py", "src/pool.py is no longer used", "Reverted 1234567, which brought src/pool.py"])
def test_a_memory_that_reports_it_is_not_stale(git_repo, text):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL})
    commit(git_repo, 2, "Out", files={"src/pool.py": None})
    assert said(git_repo, told(text, 1, at)) == []
    assert said(git_repo, told("Housekeeping", 1, at, f"{text}.")) == []


# Clones


def test_a_shallow_clone_says_that_it_does_not_know(git_repo, tmp_path):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL})
    for n in range(2, 6): commit(git_repo, n, f"Day {n}", files={f"d{n}.py": "d = 1\n"})
    seen = git(git_repo, "rev-parse", "HEAD")
    gone = commit(git_repo, 8, "Out", files={"src/pool.py": None})
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{git_repo}", "shallow")
    old, new = told("The pool is in src/pool.py", 1, at), told("src/pool.py has it", 5, seen)
    c = compare(tmp_path / "shallow", old, new, told("By its time: src/pool.py", 5, "1" * 40))
    assert [(s.memory_id, s.by) for s in c.stale] == [(new.id, gone)]
    assert len(c.remarks) == 1 and "2 of 3" in c.remarks[0] and "shallow" in c.remarks[0]
    assert [s.memory_id for s in compare(git_repo, old).stale] == [old.id]


def test_a_partial_clone_fetches_nothing(git_repo, tmp_path):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL})
    commit(git_repo, 3, "Out", files={"src/pool.py": None})
    git(git_repo, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{git_repo}", "partial")
    there = tmp_path / "partial"
    def missing(): return [o for o in git(there, "rev-list", "--all", "--objects", "--missing=print").splitlines() if o.startswith("?")]
    before = missing()
    c = compare(there, told("The pool is in src/pool.py", 1, at, "`PoolCache` has it."))
    assert c.stale == () and "partial" in c.remarks[0] and missing() == before != []


def test_repositories_without_commits_are_silent(tmp_path, home):
    c = compare(new_repo(tmp_path / "empty"), told("It is in src/pool.py", 1, "0" * 40))
    assert (c.stale, c.tip, c.remarks) == ((), "", ())


# Precision


@pytest.mark.slow
def test_real_memories_raise_no_alarm_in_a_strange_history(corpus_repo, tmp_path):
    memories = read_memories(open_repo(corpus_repo)).memories
    assert compare(corpus_repo, *memories).stale == ()
    if not (ROOT / ".git").exists(): pytest.skip("this project's history is not here")
    w = walk(open_repo(ROOT))
    once_here = {path.rpartition("/")[2] for path in git(ROOT, "log", "--no-renames", "--name-only", "--format=").splitlines()}  # Both had a cache.py
    def words_at(commit): return git(ROOT, "grep", "-hoIE", "[A-Za-z_][A-Za-z_0-9]+", commit).split()
    for c in (w.commits[len(w.commits) // 2], w.commits[-1]):
        moved = [told(m.summary, 0, c.id, m.content, id=m.id) for m in (*memories[::5], *sample_memories())]
        gone = {*words_at(c.id)} - {*words_at("HEAD")}  # What both projects happened to name, and this one no longer has
        assert [s for s in compare(ROOT, *moved).stale if s.name.rpartition("/")[2] not in once_here and s.name.rpartition(".")[2] not in gone] == []


# Cost


def test_the_number_of_processes_does_not_grow(tmp_path, home, monkeypatch):
    calls, real = [], subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **kw: calls.append(a[0]) or real(*a, **kw))
    counts = {}
    for n in (5, 200):
        repo = open_repo(new_repo(tmp_path / str(n)))
        steps = [Step(i, f"Add {i}", {f"src/f{i}.py": f"class Thing_{i}: pass\n"}) for i in range(n)]
        ids = write_history(repo, [*steps, *(Step(n + i, f"Drop {i}", {f"src/f{i}.py": None}) for i in range(0, n, 2))])
        memories = [mem(f"Thing {i} is in src/f{i}.py", f"`Thing_{i}` of {ids[f'Add {i}'][:10]}.", commit_sha=ids[f"Add {i}"],
                        timestamp=datetime.fromisoformat(day(i))) for i in range(n)]
        calls.clear()
        found = staleness.compare(repo, memories).stale
        counts[n] = len(calls)
        assert len(found) == 2 * len(range(0, n, 2))
    assert counts[200] == counts[5] <= 20, counts


# The command


def with_notes(repo, *memories):
    add_memories(repo, memories)
    return repo


@pytest.mark.slow
def test_the_command_tells_what_when_and_by_whom(git_repo):
    commit(git_repo, 1, "Pool", files={"src/pool.py": POOL})
    with_notes(git_repo, told("The pool is in src/pool.py", 2, "0" * 40), told("Nothing named", 2, "0" * 40))
    before = refs(git_repo)
    quiet = gnc("status", "--stale", repo=git_repo)
    assert quiet.code == 0 and "Nothing stale: 2 current memories name 1 path;" in " ".join(quiet.out.split())
    gone = commit(git_repo, 5, "Out \x1b[31mnow", files={"src/pool.py": None})
    loud = gnc("status", "--stale", repo=git_repo)
    assert all(x in loud.out for x in ("src/pool.py", "deleted", gone[:9], "2026-01-06", "The pool is in")) and "\x1b" not in loud.out
    row, = gnc("status", "--stale", "--json", repo=git_repo).json
    assert (row["name"], row["what"], row["by"], row["when"], row["span"]) == ("src/pool.py", "deleted", gone, day(5), [15, 26])
    assert {k: v for k, v in refs(git_repo).items() if "notes" in k} == {k: v for k, v in before.items() if "notes" in k}


def test_a_merge_that_deletes(git_repo):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL})
    git(git_repo, "checkout", "-q", "-b", "side")
    commit(git_repo, 2, "Side", files={"side.py": "s\n"})
    git(git_repo, "checkout", "-q", "main")
    commit(git_repo, 3, "Main", files={"main.py": "m\n"})
    git(git_repo, "merge", "--quiet", "--no-ff", "--no-commit", "side")
    by = commit(git_repo, 4, "Merge side", files={"src/pool.py": None})
    assert one(git_repo, "The pool is in src/pool.py", 1, at).by == by


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("where", ["src", "bare", "worktree", "detached"])
def test_it_does_not_matter_where_one_stands(git_repo, tmp_path, where):
    at = commit(git_repo, 1, "Pool", files={"src/pool.py": POOL, "src/deep/x.py": "x = 1\n"})
    commit(git_repo, 2, "Top", files={"top.py": "class PoolCache: pass\n"})
    commit(git_repo, 3, "Out", files={"src/pool.py": None})
    git(git_repo, "config", "diff.relative", "true"); git(git_repo, "config", "diff.renames", "false"); git(git_repo, "config", "color.ui", "always")
    git(git_repo, "config", "diff.noprefix", "true"); git(git_repo, "config", "log.showSignature", "true"); git(git_repo, "config", "grep.fullName", "true")
    place = git_repo / "src"
    if where == "bare": git(tmp_path, "clone", "-q", "--bare", str(git_repo), "bare"); place = tmp_path / "bare"
    if where == "worktree": git(git_repo, "worktree", "add", "-q", "-b", "w", str(tmp_path / "wt")); place = tmp_path / "wt"
    if where == "detached": git(git_repo, "checkout", "-q", "--detach"); place = git_repo
    memory = told("The pool is in src/pool.py", 1, at, "`PoolCache` has it, `size_limit` too.")
    assert said(place, memory) == [("src/pool.py", "deleted", ""), ("size_limit", "deleted", "")]
