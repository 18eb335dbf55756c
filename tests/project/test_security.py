"""What the threat model promises: no shell, no pickle, safe YAML, limits of size, and nothing from outside that git takes for an option."""
import ast
import asyncio
import importlib
import inspect
import os
import pytest
import re
import sqlite3
import yaml
from calls import gnc
from functools import cache
from helpers import ROOT, SOURCES, add_memories, git, module_of, tracked
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.llm.calls import _body
from git_notes_consolidation.store.cache import open_index
from git_notes_consolidation.store.git import LARGEST_NOTE, RepoError, open_repo, read_blobs
from git_notes_consolidation.store.reader import read_memories



@pytest.fixture
def told(git_repo):
    add_memories(git_repo, [mem("Use SQLite for the queue", namespace="decisions")])
    return git_repo


# What a repository may bring


@pytest.mark.parametrize("name", ["consolidation.db", "consolidation.db-wal", "consolidation.db-journal"])
def test_a_cache_that_is_a_link_leaves_the_other_file_alone(told, tmp_path, name):
    theirs = tmp_path / "theirs.db"
    with sqlite3.connect(theirs) as conn: conn.execute("CREATE TABLE bookmarks (url)")
    conn.close()
    before = theirs.read_bytes()
    (told / ".memory").mkdir()
    (told / ".memory" / name).symlink_to(theirs)
    with pytest.raises(RepoError, match="is a link to somewhere else"): open_index(open_repo(told))
    assert theirs.read_bytes() == before
    said = gnc("recall", "queue", repo=told)
    assert "Traceback" not in said.out + said.err and theirs.read_bytes() == before


def note(repo, kind, obj):
    "One more note in the decisions: on an object of zeros, leading to whatever object."
    tree = git(repo, "ls-tree", "refs/notes/mem/decisions") + f"\n100644 {kind} {obj}\t{'0' * 40}\n"
    commit = git(repo, "commit-tree", git(repo, "mktree", "--missing", input=tree.replace(f" {kind} ", " blob ")), "-m", "x")
    git(repo, "update-ref", "refs/notes/mem/decisions", commit)


def test_a_note_that_leads_to_a_commit_hides_no_other(told):
    "Its text looks like the reply of cat-file: a header, and what another note would say."
    blob = git(told, "hash-object", "-w", "--stdin", input="---\ntype: decisions\ntimestamp: 2026-01-01T00:00:00Z\nsummary: true\n---\n")
    fake = git(told, "commit-tree", git(told, "write-tree"), "-m", f"{blob} blob 3\nlie\n")
    commit = git(told, "rev-parse", "HEAD")
    assert read_blobs(open_repo(told), [fake, blob, commit]) == {blob: b"---\ntype: decisions\ntimestamp: 2026-01-01T00:00:00Z\nsummary: true\n---\n"}


@pytest.mark.slow
def test_a_note_larger_than_any_is_told_and_not_read(told):
    huge = git(told, "hash-object", "-w", "--stdin", input="x" * (LARGEST_NOTE + 1))
    note(told, "blob", huge)
    scan = read_memories(open_repo(told))
    assert [m.summary for m in scan.memories] == ["Use SQLite for the queue"] and ["more than 64 MB" in p.reason for p in scan.problems] == [True]


# What the code does not do


@cache
def trees():
    "Every module of the package and every tool, parsed."
    return [(p, ast.parse(p.read_text(encoding="utf-8"))) for p in tracked() if p.suffix == ".py" and (p in SOURCES or p.parent.name == "tools")]


def dotted(node):
    "`os.path.join` of its nodes; empty for anything else."
    if isinstance(node, ast.Attribute): return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


@cache
def calls():
    return [(f"{p.name}:{n.lineno}", p, n) for p, tree in trees() for n in ast.walk(tree) if isinstance(n, ast.Call)]

FORBIDDEN = ("eval", "exec", "compile", "__import__", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "tempfile.mktemp",
             "joblib.load", "pandas.read_pickle", "pd.read_pickle", "torch.load")


@pytest.mark.slow
def test_no_text_becomes_code(): assert [at for at, _, c in calls() if dotted(c.func) in FORBIDDEN] == []


def test_no_shell():
    "No shell=True, and no command that is one text."
    assert [at for at, _, c in calls() for k in c.keywords if k.arg == "shell" and getattr(k.value, "value", None) is not False] == []
    run = [(at, c) for at, _, c in calls() if dotted(c.func) in {f"subprocess.{f}" for f in ("run", "Popen", "call", "check_call", "check_output")} | {"Popen"}]
    assert [at for at, c in run if not c.args or not isinstance(c.args[0], (ast.List, ast.ListComp, ast.Name))] == []
    assert [at for at, _, c in calls() if dotted(c.func) in ("asyncio.create_subprocess_shell", "os.execl", "os.spawnl")] == []


# A constant, a constant with an argument that stands there, question marks; the names of what a cache holds, which may be dropped, and of a table's columns,
# as the database has them; and verbs that the callers write out.
SQL_PART = re.compile(r"_?[A-Z_]+|_[A-Z]+\.format\('[a-z.]*'\)|', '\.join\('\?' \* (\d+|_COLUMNS\[table\]|len\(columns\))\)|table|kind|name|how"
                      r"|', '\.join\(columns\)")


def test_sql_is_made_of_constants():
    "Values are handed over beside it. A text in a statement is a constant, or question marks."
    said = [(at, c.args[0]) for at, _, c in calls() if isinstance(c.func, ast.Attribute) and c.func.attr.startswith("execute") and c.args]
    found = [(at, ast.unparse(v.value)) for at, text in said if isinstance(text, ast.JoinedStr) for v in text.values if isinstance(v, ast.FormattedValue)]
    assert len(found) > 5 and [x for x in found if not SQL_PART.fullmatch(x[1])] == []


def test_yaml_builds_nothing():
    "Each loader that is named makes texts, or plain values."
    found = [(at, p, c) for at, p, c in calls() if dotted(c.func) in ("yaml.load", "yaml.compose", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load")]
    assert len(found) >= 2
    for at, p, c in found:
        named = [*c.args[1:], *(k.value for k in c.keywords if k.arg == "Loader")]
        package = importlib.import_module(module_of(p)) if p in SOURCES else None
        loader = getattr(yaml, named[0].attr) if isinstance(named[0], ast.Attribute) else getattr(package, named[0].id)
        assert loader.__name__.lstrip("C") in ("SafeLoader", "BaseLoader") or issubclass(loader, (yaml.SafeLoader, yaml.BaseLoader)), at


# What git is told

# Words in calls of git that are not written out there, and why none of them can begin with a dash.
NO_OPTION = {
    "a full name of a ref, from git or written here": "ref *prefixes *refs *REFS.values() f'{spec}:{spec}'",
    "the name of an object, from git": "kept *([f'^{since}'] if since else []) "
                                     "then now tip commit base top f'{mine}...{tip}' f'{tip}^{{tree}}' mine *tips.values() *ours *theirs "
                                     "*commits here[ref] f'{commit}^1' f'{commit}^1:{path}' tip_of(repo)",
    "constants, or words that stand in the function, the names of objects last": "*LOG *LOG[2:] _FIELDS *args *fork *w.since(since) *since what how *flags",
    "a path that was resolved": "str(origin) str(home) str(file.absolute())"}


@pytest.mark.slow
def test_every_word_for_git_is_written_here_or_cannot_be_an_option():
    "Literals, texts that begin with one, what is known, and whatever follows `--` or `--end-of-options`."
    unknown, known = [], {w for words in NO_OPTION.values() for w in re.split(r" (?![^(]*\))", words)}
    for at, p, c in calls():
        if p not in SOURCES or dotted(c.func) not in ("git", "_git"): continue
        for word in c.args[1:]:
            if isinstance(word, ast.Constant) and word.value in ("--", "--end-of-options"): break
            written = isinstance(word, ast.Constant) or isinstance(word, ast.JoinedStr) and isinstance(word.values[0], ast.Constant)
            if not written and ast.unparse(word) not in known: unknown.append((at, ast.unparse(word)))
    assert unknown == []


COMMANDS = ["consolidate", "status", "recall pool", "sync", "doctor", "audit", "inject", "explain --output=owned"]


@pytest.mark.slow
def test_names_that_look_like_options_write_nothing(told, tmp_path):
    "A branch, a tag, a file, a remote and a namespace whose names are options of git's that write or run."
    head = git(told, "rev-parse", "HEAD")
    for ref in ("refs/heads/--output=owned", "refs/tags/--exec=owned", "refs/remotes/--upload-pack=owned/x"): git(told, "update-ref", ref, head)
    git(told, "symbolic-ref", "HEAD", "refs/heads/--output=owned")
    (told / "--output=owned").write_text("x")
    git(told, "add", "--", "--output=owned"); git(told, "commit", "-qm", "--output=owned")
    add_memories(told, [mem("`--output=owned` is where the pool is", namespace="--output=owned")])
    git(told, "config", "remote.--upload-pack=owned.url", "nowhere")
    before = {p.name for p in told.iterdir()}
    for words in COMMANDS:
        said = gnc(*words.split(), repo=told)
        assert "Traceback" not in said.out + said.err, (words, said.err)
    assert gnc("sync", "--", "--upload-pack=owned", repo=told).code != 0 and {p.name for p in told.iterdir()} - before <= {".memory"}
    assert not (told / "owned").exists() and not (tmp_path / "owned").exists()


# Limits


@pytest.mark.parametrize("name, data", [("gnc.toml", b"# x\n" * 2**15), ("gnc.yaml", b"workers: !!python/object/apply:os.getpid []\n"),
                                        ("gnc.yaml", b"workers: &a 2\nbatch_size: *a\n"), ("gnc.toml", None)], ids=["large", "tag", "alias", "device"])
def test_settings_come_from_a_small_regular_file(told, name, data):
    if data is not None: (told / name).write_bytes(data)
    elif os.path.exists("/dev/zero"): (told / name).symlink_to("/dev/zero")
    said = gnc("config", repo=told)
    assert (said.code, name in said.err) == ((2, True) if data else (0, False)) and "Traceback" not in said.err


PAGE = next((ROOT / "nbs").rglob("*threat-model.ipynb")).read_text(encoding="utf-8")
LIMITS = {"store.git.LARGEST_NOTE": 64 * 2**20, "core.startup._MOST": 2**16, "llm.calls._LONGEST_BODY": 4_000_000, "store.reader._too_deep": 200,
          "core.startup.read_event": 2**20, "session.hooks._log": 2**16, "writing.markdown.LARGEST": 32 * 2**20}


def test_every_limit_is_where_the_page_says():
    for name, most in LIMITS.items():
        module, _, thing = name.rpartition(".")
        found = getattr(importlib.import_module(f"git_notes_consolidation.{module}"), thing)
        assert f"`{name}`" in PAGE and (inspect.signature(found).parameters["most"].default if callable(found) else found) == most


def test_a_body_without_end_is_left():
    class Endless:
        async def iter_bytes(self):
            while True: yield b"x" * 2**20
    with pytest.raises(ValueError, match="more than 4,000,000 bytes"): asyncio.run(_body(Endless()))


# The page


def test_every_test_that_the_page_names_is_there():
    named = set(re.findall(r"`(tests/[\w/]+\.py::test_\w+)`", PAGE))
    there = {f"{p.relative_to(ROOT)}::{name}" for p in (ROOT / "tests").rglob("test_*.py")
             for name in re.findall(r"^(?:async )?def (test_\w+)", p.read_text(encoding="utf-8"), re.M)}
    assert len(named) > 40 and named - there == set()
