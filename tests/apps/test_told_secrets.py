"""A secret that stands in the notes: who is told of it, who may write one, who may read what is kept, and how it is taken out of git."""
import json
import os
import re
import subprocess
import sys

import pytest
from calls import gnc, made, run
from clones import go, make
from git_notes_consolidation.apps.mcp.server import call_tool
from git_notes_consolidation.apps.mcp.tools import Workspace
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.session.fast_start import Here, settings_of, block_for, prepared, session_of
from helpers import ROOT, git, refs

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"  # Put together here, so that no file of ours holds one
WORD = "cobb" + "ler7"
NOTES = [mem(f"Deploys use the token {TOKEN}", "Since the vault is down.", days_ago=9),
         mem("Deploys use the token of the vault", f"It replaces {TOKEN}, which the runner had.", days_ago=3),
         mem("The printer's login", f"| user | password |\n|---|---|\n| kim | {WORD} |", days_ago=2, namespace="learnings"),
         mem("The staging login", f"The password, by the way, is {WORD}. Ask kim@kelp.io.", days_ago=1, namespace="blockers")]


@pytest.fixture
def home(tmp_path):
    home = made(tmp_path / "home", NOTES)
    git(home, "config", "user.name", "Tester"); git(home, "config", "user.email", "tester@example.org")
    run(home)
    return home


def tool(home, name, **given): return json.dumps(call_tool(Workspace(str(home), clock=lambda: SAMPLE_NOW), name, given))


def block(home):
    here = Here(str(home))
    return block_for(prepared(here, 20), session_of(str(home), here.top), settings_of({}, here.top, [])).block


TOLD = {"context": lambda h: gnc("context", repo=h).out, "export": lambda h: gnc("export", repo=h).out,
        "export jsonl": lambda h: gnc("export", "--format", "jsonl", repo=h).out, "export csv": lambda h: gnc("export", "--format", "csv", repo=h).out,
        "session": block, "session file": lambda h: (prepared(Here(str(h)), 20), (h / ".git" / "gnc" / "session.jsonl").read_text())[1],
        "recall": lambda h: gnc("recall", "which login or token do deploys use", "--mode", "exhaustive", repo=h).out,
        "recall json": lambda h: gnc("--json", "recall", "*", "--mode", "exhaustive", repo=h).out,
        "reason": lambda h: gnc("recall", "when did the token of deploys change", "--reason", repo=h).out,
        "memory_recall": lambda h: tool(h, "memory_recall", query="*", mode="exhaustive", limit=20),
        "memory_history": lambda h: "".join(tool(h, "memory_history", memory_id=m.id) for m in NOTES)}


@pytest.mark.parametrize("door", TOLD)
def test_no_secret_is_told(home, door):
    told = TOLD[door](home)
    assert TOKEN not in told and WORD not in told and TOKEN[:20] not in told
    assert "[secret:" in told and ("kim@kelp.io" in told or "kelp" not in told), told  # An address stays


def test_a_secret_is_refused_by_all_who_write(home):
    before = refs(home, "refs/notes/mem/")
    said = gnc("remember", f"The pw is {WORD}", repo=home)
    assert said.code == 2 and "hold a secret (password)" in said.err and WORD not in said.err and "--with-secrets" in said.err
    for more in ({"text": f"Pass phrase: {WORD}"}, {"text": "Login of the printer", "title": f"It is pw {TOKEN}"}):
        answer = tool(home, "memory_store", **more)
        assert '"isError": true' in answer and "hold a secret" in answer and WORD not in answer and TOKEN not in answer
    for way in ("with_secrets", "secrets"): assert '"isError": true' in tool(home, "memory_store", text=f"The pw is {WORD}", **{way: True})
    (home / "MEMORY.md").write_text(f"- The pw is {WORD}\n")
    assert gnc("--json", "import", str(home / "MEMORY.md"), repo=home).json["added"] == 0
    assert refs(home, "refs/notes/mem/") == before
    assert gnc("remember", "The password lies in the vault", repo=home).code == 0


def test_what_undo_and_forget_leave_is_said(home):
    said = gnc("--json", "remember", f"The pw is {WORD}", "--with-secrets", "--no-judge", repo=home)
    assert said.code == 0 and any("git keeps it" in w and "revoke" in w for w in said.json["warnings"])
    forgot = gnc("--json", "forget", said.json["memory_id"], repo=home)
    assert any("git keeps it" in w for w in forgot.json["warnings"])
    for name in (forgot.json["run_id"], said.json["run_id"]): undone = gnc("undo", name, repo=home)
    assert "git keeps it" in " ".join(undone.out.split()) and WORD not in undone.out
    plain = gnc("--json", "remember", "Orders live in Postgres", "--no-judge", repo=home)
    assert not plain.json["warnings"] and "git keeps it" not in gnc("undo", plain.json["run_id"], repo=home).out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_what_is_kept_is_its_owners_alone(home):
    old = os.umask(0)
    try:
        gnc("recall", "deploys", repo=home)
        (home / ".memory" / "consolidation.db").chmod(0o644)  # As an older version left it
        TOLD["session file"](home); gnc("recall", "login", repo=home)
    finally: os.umask(old)
    kept = [p for p in (*(home / ".memory").iterdir(), *(home / ".git" / "gnc").iterdir()) if p.stat().st_size and p.suffix != "" and "clone-id" not in p.name]
    assert len(kept) > 2 and {oct(p.stat().st_mode)[-3:] for p in kept} == {"600"}


def test_a_note_is_rewritten_as_the_guide_says(tmp_path):
    text = next((ROOT / "nbs" / "guide").glob("*threat-model.ipynb")).read_text(encoding="utf-8")
    page = next(s for c in json.loads(text)["cells"] if (s := "".join(c["source"])).startswith("## A secret in a note"))
    look, = re.findall(r"```text\n(.*?)```", page, re.S)
    change, everywhere = re.findall(r"```sh\n(.*?)```", page, re.S)
    first, second = make(tmp_path, "first", "second")
    for text in (NOTES[0].text, "The board has three columns"):
        git(first, "commit", "--quiet", "--allow-empty", "--message=x")
        gnc("remember", text, "--with-secrets", repo=first)
    gnc("consolidate", repo=first); go(first); go(second); gnc("recall", "deploys", repo=first); gnc("recall", "deploys", repo=second)

    def sh(where, script, **env):
        return subprocess.run(["sh", "-ec", script], cwd=where, env=os.environ | env, check=True, capture_output=True, encoding="utf-8").stdout

    def holders(where):
        names = sh(where, "git cat-file --batch-all-objects --batch-check | awk '$2 == \"blob\" {print $1}'").split()
        inside = [n for n in names if TOKEN in sh(where, f"git cat-file -p {n}")]
        files = [p for d in (".memory", ".git") for p in (where / d).rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]
        return [*inside, *files]

    assert holders(first) and holders(second)
    ref, commit = sh(first, look.replace("THE-SECRET", TOKEN)).strip().split(":")
    assert ref == "refs/notes/mem/decisions"
    sh(first, change.replace("COMMIT", commit.replace("/", "")), GIT_EDITOR=f"perl -pi -e s/{TOKEN}/gone/")
    assert holders(first)  # What the guide says: not yet
    for where in (first, second): sh(where, everywhere)
    assert not holders(first) and not holders(second)
    gnc("consolidate", repo=first); go(second); go(first)
    assert not holders(first) and not holders(second)
    shown = gnc("recall", "deploys", "--mode", "exhaustive", repo=second).out
    assert "Deploys use the token gone" in " ".join(shown.split())
