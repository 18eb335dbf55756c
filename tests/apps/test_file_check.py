"""What files for agents name that is not there, as a person and as CI sees it; and texts of others that must not break it."""
import shutil

import pytest
from calls import gnc, new_repo
from git_notes_consolidation.staleness.definitions import Tree, commands_of, later_minimum
from git_notes_consolidation.staleness.file_check import agent_files, dead_names
from git_notes_consolidation.staleness.file_names import file_names
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
    assert told.out.endswith("2 files, 7 names: 4 not in the repository; 1 may be meant so.\n") and "\x1b" not in told.out and "\u202e" not in told.out
    assert (gnc("tidy", "--check", repo=home).code, gnc("tidy", home / "web" / "AGENTS.md", "--check", repo=home).code) == (1, 0)
    (home / "web" / "AGENTS.md").write_text("`../src/cache.py` caches.\n")
    assert gnc("tidy", home / "web" / "AGENTS.md", "--check", repo=home).code == 0, "a sentence may mean what is gone"
    (home / "style.md").write_text("x"); (home / "src" / "cache.py").write_text("x")  # Not committed, and there
    assert set(dead(home)) == {"src/app.py", "lint"}
    shutil.rmtree(home / "web")  # Committed, and not there
    assert set(dead(home)) == {"src/app.py"}, "without a package.json nothing is known of scripts"


@pytest.mark.parametrize(("text", "told"), [
    ("`src/cache.py` is used to store responses.", True), ("Use `src/cache.py` instead of calling Redis.", True), ("New code goes into `src/cache.py`.", True),
    ("Do not edit `src/cache.py` by hand.", True), ("Caching lives in `src/cache.py`, see `docs/old/x.md`.", True),
    ("Remove old entries with `src/cache.py`.", True),
    ("- ✅ DO: keep keys in `src/cache.py`", True), ("- [ ] Read `src/cache.py`", True), ("| 1 | `src/cache.py` | fast |", True),
    ("Use these:\n\n- `src/cache.py`", True), ("🚫 Never:\n\n- Recreate `src/cache.py`", False), ("**Archived externally:**\n\n- `src/cache.py`", False),
    ("# Suite (from a tools checkout)\n\n- `src/cache.py`", False), ("`src/cache.py` (in the tools repository)", False),
    ("* [2026-01-05 10:11:12] Cached in `src/cache.py`", False), ("- ✅ Cache created (`src/cache.py`)", False), ("| 1 | `src/cache.py` | Complete |", False),
    ("`src/cache.py` was removed.", False), ("Never create `src/cache.py`.", False), ("There is no `src/cache.py`.", False), ("`src/cache.py` → Redis", False)])
def test_only_what_tells_that_it_went_is_left_alone(home, text, told):
    (home / "CLAUDE.md").write_text(text + "\n")
    assert dead(home) == ({"src/cache.py": ("deleted", "")} if told else {})


@pytest.mark.parametrize("staged", [True, False])
def test_what_went_and_is_not_committed_yet_is_said_so(home, staged):
    (home / "CLAUDE.md").write_text("See [it](src/main/run.py) and `src/main/run.py`\n")
    git(home, "rm", "-q", "src/main/run.py") if staged else (home / "src/main/run.py").unlink()
    assert "in the last commit, but no longer in the worktree" in gnc("tidy", repo=home, width=200).out
    assert set(dead(home)) == {"src/main/run.py", "../src/main/run.py"}


@pytest.mark.parametrize("name", ["memory-bank/progress.md", "memory-bank/journal/start.md", "memory-bank/2026_03_01_start.md", "CHANGELOG.md",
                                  "memory-bank/decisionLog.md"])
def test_what_tells_of_its_day_may_name_what_is_gone(home, name):
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text("Begun in `src/cache.py`, see [it](none.md)\n")
    assert dead(home, home / name, "--check") == {"none.md": ("missing", "")}


def test_a_new_path_within_the_old_one_is_not_beside_it(home):
    (home / "docs").mkdir(); (home / "docs" / "setup.md").write_text("".join(f"step {n}\n" for n in range(20)))
    git(home, "add", "."); git(home, "commit", "-qm", "Docs"); git(home, "mv", "docs/setup.md", "setup.md"); git(home, "commit", "-qm", "Up")
    (home / "CLAUDE.md").write_text("Read `docs/setup.md` first.\n")
    assert dead(home) == {"docs/setup.md": ("renamed", "setup.md")}


def test_a_person_has_the_last_word(home):
    assert "<!-- gnc: ok NAME -->" in gnc("tidy", repo=home, width=200).out
    (home / "CLAUDE.md").write_text("Begin in `src/app.py`; `src/cache.py` caches. `npm run lint`\n<!-- gnc: ok src/cache.py, lint -->\n")
    assert set(dead(home)) == {"src/app.py"}


def test_who_names_the_new_path_beside_the_old_one_knows(home):
    (home / "CLAUDE.md").write_text("It lives in `src/main/run.py`, not `src/app.py`.\n")
    assert dead(home) == {}
    (home / "CLAUDE.md").write_text("`src/app.py` begins.\n\n`src/main/run.py` runs.\n")
    assert set(dead(home)) == {"src/app.py"}


def test_a_skill_may_be_of_any_repository(home):
    (home / "plan.md").write_text("x\n"); (home / "go.mod").write_text("go 1.26\n"); git(home, "add", "."); git(home, "commit", "-qm", "Plan")
    git(home, "rm", "-q", "plan.md"); git(home, "commit", "-qm", "No plan")
    text = "Reload `plan.md`, then `src/cache.py`.\n\nGo 1.21+, channels\n"
    assert {n.name.text for n in dead_names(open_repo(home), {".agents/skills/x/SKILL.md": text})[".agents/skills/x/SKILL.md"]} == {"src/cache.py"}
    assert {n.name.text for n in dead_names(open_repo(home), {"AGENTS.md": text})["AGENTS.md"]} == {"src/cache.py", "plan.md", "Go 1.21"}


def test_half_a_frame_in_common_is_no_new_name(home):
    def write(folder, own):
        (home / folder).mkdir()
        (home / folder / "build.props").write_text("".join(f"<frame {n}>\n" for n in range(20)) + "".join(f"<{own} {n}>\n" for n in range(13)))
    write("a", "alpha"); write("c", "gamma")
    git(home, "add", "a", "c"); git(home, "commit", "-qm", "a")
    git(home, "rm", "-q", "a/build.props"); write("b", "bravo"); git(home, "add", "b"); git(home, "commit", "-qm", "b")
    (home / "CLAUDE.md").write_text("Set it in `a/build.props`\n")
    assert dead(home) == {"a/build.props": ("deleted", "")}
    git(home, "rm", "-qr", "c"); git(home, "commit", "-qm", "c")
    assert dead(home) == {"a/build.props": ("renamed", "b/build.props")}, "the only one of its name"


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
    assert [x.partition(" file=CLAUDE.md,line=1::")[0] for x in marks].count("::warning") == 3 and len(marks) == 4 and "%250A" in marks[0]
    assert gnc("tidy", "--check", "--apply", repo=home).code == 2


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


@pytest.mark.parametrize("text, expected", [
    (f"[x]({'a' * 300}.md) [y](gone.md)", {"a" * 300 + ".md", "gone.md"}),  # Longer than a file system's names
    ("[x](:!src/x.py) [y](data/x.py) [z](gone.md)", {":!src/x.py", "gone.md"}),  # Git's sign for what to leave out
    ("[x](nested/b.py) [y](nested/gone.py) [z](gone.md)", {"gone.md"}),
    ("\ufeff---\nglobs: '[x](gone.md)'\n---\n[y](other.md)", {"other.md"}),
    (f"[x]({'a/' * 50_000}b.md) [y](gone.md)", {"gone.md"}),
    ("A line of no name.\n" * 60_000 + "[y](gone.md)", {"gone.md"}),  # Over 1 MB
], ids=["long", "magic", "nested", "mark", "deep", "large"])
def test_one_odd_name_costs_the_others_nothing(home, text, expected):
    (home / ".gitignore").write_text("data/\n"); (home / "CLAUDE.md").write_text(text); (home / "data").mkdir()
    new_repo(home / "nested", ()); (home / "nested" / "b.py").write_text("x")
    (home / "Makefile").symlink_to("Makefile")
    assert set(dead(home)) == expected


def test_a_file_too_large_is_said_to_be_unchecked(home):
    with open(home / "CLAUDE.md", "wb") as f: f.truncate(17 * 2**20)
    said = gnc("tidy", "--check", repo=home)
    assert said.code == 1 and "CLAUDE.md has more than 16 MB and cannot be checked" in " ".join(said.err.split())


def test_odd_names_and_odd_days_of_commits(home, monkeypatch):
    forged = "\x01" + "a" * 40 + "\x1f1\x1fx"
    for name in ("\x01", "\x01x\x1fy", forged, "style.md"): (home / name).write_text(name)
    (home / "web" / "package.json").write_text('{"scripts": {\n"build": "x",\n"lint": "x"}}')
    git(home, "add", "."); git(home, "commit", "-qm", "Odd")
    for name in ("\x01", "\x01x\x1fy", forged, "style.md"): (home / name).unlink()
    (home / "web" / "package.json").write_text('{"scripts": {\n"build": "x"}}')
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@999999999999999 +0000")
    git(home, "commit", "-qam", "Far")
    found = {r["name"]: (r["what"], r["commit"]) for r in gnc("tidy", "--json", repo=home).json["dead"]}
    far = git(home, "rev-parse", "HEAD").strip()
    assert found["style.md"] == found["lint"] == ("deleted", far) and found["src/cache.py"][0] == "deleted"


def test_a_repository_starts_no_program(home, tmp_path):
    program, ran = tmp_path / "monitor", tmp_path / "ran"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\n"); program.chmod(0o755)
    git(home, "config", "core.fsmonitor", program)
    assert "style.md" in dead(home) and not ran.exists()
    git(home, "status"); assert ran.exists(), "or nothing is shown above"


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


DEFINING = {
    "package.json": ('{"scripts": {\n"build": "x",\n"lint:css": "x"},\n"dependencies": {\n"vite": "^7"}}', '{"scripts": {\n"build": "x"}}'),
    "composer.json": ('{"scripts": {\n"stan": "x"}}', "{}"),
    "Makefile": ("lint: deps\n\tx\nall:\n\tx\n", "all:\n\tx\n"), "justfile": ("doc:\n  x\nall:\n  x\n", "all:\n  x\n"),
    "Taskfile.yml": ("tasks:\n  gen:\n    cmds: [x]\n  all: x\n", "tasks:\n  all: x\n"),
    "Cargo.toml": ('[[bin]]\nname = "serve"\n\n[package]\nname = "core-x"\n', '[package]\nname = "core-x"\n'),
    "pyproject.toml": ('[project]\nrequires-python = ">=3.11"\n[project.scripts]\nrunit = "app.cli:main"\n', '[project]\nrequires-python = ">=3.11"\n'),
    ".env.example": ("API_KEY=x\nOLD_KEY=y\nUSED_KEY=z\n", "API_KEY=x\n"), "app/__init__.py": ("class Pool: ...\n", "USED_KEY = 1\n"),
    "app/db.py": ("def connect_all(): ...\n", "x = 1\n"), "app/cli.py": ("x = 1\n", None), "src/bin/tool.rs": ("x", "x")}


@pytest.fixture(scope="module")
def defining(tmp_path_factory):
    "A repository of many tools, in which each lost a name."
    made = new_repo(tmp_path_factory.mktemp("made") / "defining", ())
    for k, v in (("user.name", "Ada"), ("user.email", "ada@example.org")): git(made, "config", k, v)
    for subject, n in (("Begin", 0), ("Less", 1)):
        for path, texts in DEFINING.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            if texts[n] is None: (made / path).unlink()
            else: (made / path).write_text(texts[n])
        git(made, "add", "."); git(made, "commit", "-qm", subject)
    return made


@pytest.mark.parametrize("text, name", [
    ("`npm run lint:css`", "lint:css"), ("`pnpm lint:css`", "lint:css"), ("`yarn run lint:css`", "lint:css"), ("`composer run stan`", "stan"),
    ("`composer stan`", "stan"), ("`make lint`", "lint"), ("`just doc`", "doc"), ("`task gen`", "gen"),
    ("`cargo run --bin serve`", "serve"), ("`uv run runit`", "runit"), ("`poetry run runit`", "runit"), ("`python -m app.cli`", "app.cli"),
    ("`OLD_KEY`", "OLD_KEY"), ("`app.Pool`", "app.Pool"), ("`connect_all()` in `app/db.py`", "connect_all"),
    ("[`db.py`](app/db.py): `connect_all()`", "connect_all"), ("`app/db.py::connect_all`", "connect_all")])
def test_what_a_defining_file_lost_is_told_with_its_commit(defining, text, name):
    found, = dead_names(open_repo(defining), {"CLAUDE.md": f"{text}\n"})["CLAUDE.md"]
    assert (found.name.text, found.what, found.commit) == (name, "deleted", git(defining, "rev-parse", "HEAD")) and "Less" in found.reason


def test_a_symbol_that_moved_is_told_where_it_is(home):
    (home / "src" / "main" / "run.py").write_text("def start_all(): ...\n"); git(home, "add", "."); git(home, "commit", "-qm", "Start")
    (home / "src" / "main" / "run.py").write_text("x = 1\n"); (home / "src" / "begin.py").write_text("def start_all(): ...\n")
    git(home, "add", "."); git(home, "commit", "-qm", "Begin elsewhere")
    found, = dead_names(open_repo(home), {"A.md": "`start_all()` in `src/main/run.py`"})["A.md"]
    git(home, "config", "color.ui", "always")
    assert dead_names(open_repo(home / "src"), {"A.md": "`start_all()` in `src/main/run.py`"})["A.md"] == [found]
    assert found.reason.startswith("src/main/run.py has no start_all since ") and found.reason.endswith("“Begin elsewhere”; src/begin.py has it")


def test_what_another_project_may_define_is_not_said(defining):
    quiet = ("`yarn vite`, `pnpm vitest`, `bun build`, `uv run pytest`, `poetry run black`, `composer install`, `cargo test -p core-x`, "
             "`cargo run --bin tool`, `cargo test -p core_x`, `python -m http.server`, `app.requests`, `NEW_KEY`, `USED_KEY`, `json.dumps()`, "
             "`connect_all()` and `app/db.py`, "
             "`npm test:<name>`, `task all`, there is no `connect_all` in `app/db.py`, `connect_all()` was removed from `app/db.py`, Python 3.11+")
    assert dead_names(open_repo(defining), {"CLAUDE.md": quiet}) == {"CLAUDE.md": []}
    told = dead_names(open_repo(defining), {"CLAUDE.md": "`npm test` `make x` `cargo run --bin none`\n\n- **Language**: Python 3.9+\n"})["CLAUDE.md"]
    assert [(x.name.text, x.what) for x in told] == [(x, "missing") for x in ("test", "x", "none", "Python 3.9")]
    assert dead_names(open_repo(defining), {".cursor/rules/x.mdc": "`make x` `npm run none`"}) == {".cursor/rules/x.mdc": []}, "rules copied from elsewhere"


def test_a_decision_record_tells_history_and_a_skill_what_may_be(home):
    record, skill = "docs/adr/0001-cache.md", ".claude/skills/x/SKILL.md"
    assert agent_files(Tree([record, skill, "docs/adr/template.md", ".claude/skills/x/more.md", ".github/prompts/a.prompt.md"])) == [
        skill, ".github/prompts/a.prompt.md", record]
    said = dead_names(open_repo(home), {
        record: "`src/cache.py` caches, see [style](style.md)",
        skill: "Look at `src/cache.py`, then at `src/none.py`.\n\n```\nx/\n└── src/\n    └── app.py\n```\n"})
    assert {p: [x.name.text for x in xs] for p, xs in said.items()} == {record: ["style.md"], skill: ["src/cache.py"]}


MARKDOWN = st.lists(st.sampled_from(["`", "[", "](", ")", "\n", "```\n", "├── ", "│   ", "    ", "| ", "a/b.py", "../", "@", "npm run ", "make ", "*", "---\n",
                                     "x" * 50, "\r\n", "é", "\0", "\\", "%zz", "::", "<b>", EVIL]), max_size=60).map("".join)


@given(MARKDOWN)
def test_any_text_is_read(text):
    tree = Tree(["a/b.py", "Makefile", "package.json"], lambda path: text)
    for n in file_names(text):
        assert n.text and 1 <= n.line <= text.count("\n") + text.count("\r") + 1
        tree.has(n.text, "a"), tree.covers(n.text, "a"), tree.file(n.text, "a")
    commands_of(tree); later_minimum(tree, "Python 3.9")


def test_a_large_file_takes_its_length():
    import time
    def seconds(n): begin = time.process_time(); file_names("See `src/a.py` and [b](c.md).\n\n" * n); return time.process_time() - begin
    few = max(seconds(1000), 0.01)
    assert seconds(8000) < 20 * few
    begin = time.process_time(); file_names("See `src/a.py` and [b](c.md). " * 8000)  # One paragraph
    assert time.process_time() - begin < 20 * few


@pytest.mark.parametrize("piece", [
    "npm -w ", "npm run -x ", "cargo run ", "cargo test -p ", "uv run -a b ", "yarn workspace a ", "composer run -", "python -m a.", "task -x ", "make -C x ",
    "a.b", "a_", "a.", "aA", "::", "a/", "_", "*", "\\_", " ", "-", "no ", "Python ", "a(", "$ ", "&& make "])
def test_no_piece_takes_more_than_its_length(piece):
    import time
    for text in (f"`{piece * (20_000 // len(piece))}`", f"```bash\n{piece * (100_000 // len(piece))}\n```", piece * (20_000 // len(piece))):
        begin = time.process_time(); file_names(text)
        assert time.process_time() - begin < 2


@pytest.mark.parametrize("head, piece, end", [("make ", "-C ", "-"), ("make ", "-C x ", "-"), ("", ":1", "x"), ("", "::a", "!"), ("", "::a", "")])
def test_no_end_takes_more_than_its_length(head, piece, end):
    import time
    for text in (f"`{head}{piece * 10_000}{end}`", f"```bash\n{head}{piece * 10_000}{end}\n```", f"[a](<{head}{piece * 10_000}{end}>)"):
        begin = time.process_time(); file_names(text)
        assert time.process_time() - begin < 1.5


@pytest.mark.parametrize("head, piece", [("", "\n"), ("", " "), ("", "\t\n"), ('"php": "', " "), ('"node":', " "), ("requires-python = '", ">="), ("", "a: "),
                                         ("", "a "), ("", "include x.mk\n"), ("", "a:b"), ("a ", "'"), ("", "#"), ("", "export "), ("", "project\n")])
def test_no_defining_file_takes_more_than_its_length(head, piece):
    import time
    tree = Tree(DEFINING, lambda path: head + piece * (100_000 // len(piece)))
    begin = time.process_time(); commands_of(tree)
    for x in ("PHP 8.1", "Node 18", "Python 3.9", "Go 1.2"): later_minimum(tree, x)
    assert time.process_time() - begin < 5
