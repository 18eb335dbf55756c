"""What files for agents name that is not there, as a person and as CI sees it; and texts of others that must not break it."""
import shutil

import pytest
from calls import gnc, new_repo
from git_notes_consolidation.staleness.file_check import Tree, commands_of, dead_names, file_names
from git_notes_consolidation.store.git import open_repo
from helpers import git
from hypothesis import given, strategies as st

EVIL = "\x1b[2J\u202e::error::owned%0A\U000e0049"


@pytest.fixture
def home(tmp_path):
    "A repository whose program moved, whose cache went, and whose docs have a link to nowhere."
    made = new_repo(tmp_path / "home", ())
    for k, v in (("user.name", "Ada"), ("user.email", "ada@example.org")): git(made, "config", k, v)
    (made / "src").mkdir(); (made / "web").mkdir()
    (made / "src" / "app.py").write_text("".join(f"line {n}\n" for n in range(20)))
    (made / "src" / "cache.py").write_text("cache = {}\n")
    (made / "web" / "package.json").write_text('{"scripts": {"build": "x"}}')
    git(made, "add", "."); git(made, "commit", "-qm", "Begin")
    (made / "src" / "main").mkdir(); git(made, "mv", "src/app.py", "src/main/run.py"); git(made, "rm", "-q", "src/cache.py")
    git(made, "commit", "-qm", f"Move {EVIL}")
    (made / "CLAUDE.md").write_text("Begin in `src/app.py`; `src/cache.py` caches. `npm run build`, `npm run lint`, [style](style.md)\n")
    (made / "web" / "AGENTS.md").write_text("See `package.json` and `../src/main/run.py`.\n")
    return made


def dead(home, *words): return {r["name"]: (r["what"], r["now"]) for r in gnc("tidy", *words, "--json", repo=home).json["dead"]}


def test_what_moved_went_or_never_was(home, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    expected = {"src/app.py": ("renamed", "src/main/run.py"), "src/cache.py": ("deleted", ""), "style.md": ("missing", ""), "lint": ("missing", "")}
    assert dead(home) == expected == dead(home, home / "CLAUDE.md", "--check") and dead(home, home / "web" / "AGENTS.md", "--check") == {}
    told = gnc("tidy", repo=home)
    assert (told.code, told.err) == (0, "") and "CLAUDE.md: 4 names are not in the repository" in told.out and "now src/main/run.py" in told.out
    assert told.out.endswith("2 files, 7 names: 4 not in the repository.\n") and "\x1b" not in told.out and "\u202e" not in told.out
    assert (gnc("tidy", "--check", repo=home).code, gnc("tidy", home / "web" / "AGENTS.md", "--check", repo=home).code) == (1, 0)
    (home / "style.md").write_text("x"); (home / "src" / "cache.py").write_text("x")  # Not committed, and there
    assert set(dead(home)) == {"src/app.py", "lint"}
    shutil.rmtree(home / "web")  # Committed, and not there
    assert set(dead(home)) == {"src/app.py"}, "without a package.json nothing is known of scripts"


def test_a_file_by_name_is_checked_too(home, tmp_path):
    (home / "CLAUDE.md").write_text("- Begin in `src/app.py`\n- Lint\n- Lint\n")
    said = gnc("tidy", home / "CLAUDE.md", repo=home)
    assert said.code == 0 and "now src/main/run.py" in said.out and "duplicate of line 3" in said.out
    assert [r["name"] for r in gnc("tidy", home / "CLAUDE.md", "--json", repo=home).json["dead"]] == ["src/app.py"]
    (tmp_path / "MEMORY.md").write_text("- `src/app.py`\n")
    assert gnc("tidy", tmp_path / "MEMORY.md", repo=tmp_path).code == 0  # No repository


def test_ci_marks_the_line_and_a_commit_gives_no_command(home, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    marks = [x for x in gnc("tidy", "--check", repo=home).out.splitlines() if x.startswith("::")]
    assert len(marks) == 4 and all(x.startswith("::warning file=CLAUDE.md,line=1::") for x in marks) and "%250A" in marks[0]


def test_a_shallow_clone_says_what_it_cannot_know(home, tmp_path):
    git(home, "add", "."); git(home, "commit", "-qm", "Files")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{home}", "clone")
    said = gnc("tidy", "--json", repo=tmp_path / "clone")
    assert said.json["shallow"] and "fetch --unshallow" in said.err
    assert {r["name"]: r["reason"] for r in said.json["dead"]} == {"style.md": "the link leads to no file", "lint": "no package.json has a script lint"}


def test_a_copy_is_said_and_a_link_is_none(home):
    (home / "CLAUDE.md").write_text("# Rules\n" + "".join(f"- Rule {n}\n" for n in range(20)))
    (home / "GEMINI.md").write_text((home / "CLAUDE.md").read_text() + "- One more\n"); (home / "AGENTS.md").symlink_to("CLAUDE.md")
    said = gnc("tidy", "--json", repo=home).json
    assert [(c["path"], c["whole"]) for c in said["copies"]] == [("CLAUDE.md", "GEMINI.md")] and "AGENTS.md" not in said["files"]
    assert "CLAUDE.md: 21 of its 21 lines are in GEMINI.md too; a line @GEMINI.md" in " ".join(gnc("tidy", repo=home).out.split())


def test_what_cannot_be_known_is_not_said(home, tmp_path):
    (home / "link").symlink_to(tmp_path); (home / ".gitignore").write_text("reports/\n")
    quiet = ("`link/x.py`, [a](../elsewhere/b.md), `reports/today.md`, `~/.config/x.toml`, `src/cache.py` was removed, `node_modules/a/b.js`, "
             "`src/<name>.py`, `src/your/x.py`, write `src/new.py`, [web](https://example.org/a.md), `and/or`, [here](#there)")
    assert dead_names(open_repo(home), {"A.md": quiet}) == {"A.md": []}


def test_one_odd_name_does_not_switch_the_rest_off(home, tmp_path):
    (home / ".gitignore").write_text("data\n"); (home / "data").symlink_to(tmp_path)
    (home / "web" / ".gitignore").write_text("made/\n"); (home / "web" / "made").mkdir()
    texts = {"web/A.md": "[x](data/x.csv) [y](a/../../../x.md) [z](made/z.md) [w](made.md)"}
    assert [x.name.text for x in dead_names(open_repo(home), texts)["web/A.md"]] == ["made.md"]


def test_a_file_that_is_meant_badly(home):
    "Files that never end, or that a parser gives up on; a link out of the repository is not read."
    (home / "Makefile").symlink_to("/dev/zero"); (home / "deep").mkdir(); (home / "deep" / "package.json").write_text("[" * 100_000)
    (home / "justfile").write_text("a" + " " * 100_000 + "!\n")
    assert set(dead(home)) == {"src/app.py", "src/cache.py", "style.md", "lint"}


def test_a_file_elsewhere_is_said_to_be_unchecked(home, tmp_path):
    (tmp_path / "X.md").write_text("`a.py`")
    said = gnc("tidy", tmp_path / "X.md", "--check", repo=home)
    assert said.code == 2 and "does not lie in this repository" in " ".join(said.err.split())
    (home / ".gitignore").write_text("CLAUDE.local.md\n"); (home / "CLAUDE.local.md").write_text("[x](gone.md)\n")
    assert set(dead(home, home / "CLAUDE.local.md", "--check")) == {"gone.md"}


def test_without_such_a_file_or_a_repository(home, tmp_path):
    (home / "CLAUDE.md").unlink(); (home / "web" / "AGENTS.md").unlink()
    assert gnc("tidy", repo=home).code == 2 and "name one: gnc tidy FILE" in gnc("tidy", repo=home).err
    (tmp_path / "plain").mkdir()
    assert gnc("tidy", repo=tmp_path / "plain").code == 1 and gnc("tidy", "--check", "--apply", repo=home).code == 2


MARKDOWN = st.lists(st.sampled_from(["`", "[", "](", ")", "\n", "```\n", "├── ", "│   ", "    ", "| ", "a/b.py", "../", "@", "npm run ", "make ", "*", "---\n",
                                     "x" * 50, "\r\n", "é", "\0", "\\", "%zz", "::", "<b>", EVIL]), max_size=60).map("".join)


@given(MARKDOWN)
def test_any_text_is_read(text):
    tree = Tree(["a/b.py", "Makefile", "package.json"], lambda path: text)
    for n in file_names(text):
        assert n.text and 1 <= n.line <= text.count("\n") + text.count("\r") + 1
        tree.has(n.text, "a"), tree.covers(n.text, "a")
    commands_of(tree)


def test_a_large_file_takes_its_length():
    import time
    def seconds(n): begin = time.process_time(); file_names("See `src/a.py` and [b](c.md).\n\n" * n); return time.process_time() - begin
    few = max(seconds(1000), 0.01)
    assert seconds(8000) < 20 * few
    begin = time.process_time(); file_names("See `src/a.py` and [b](c.md). " * 8000)  # One paragraph
    assert time.process_time() - begin < 20 * few
