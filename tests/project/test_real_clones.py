"""Repositories as people have them: partial, without their notes, of another owner, with notes by hand or written over. The remedy is named, and heals."""
import json
import os
import shutil
import subprocess

import pytest
from calls import gnc, gnc_process, made, new_repo, run
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.core.startup import NOT_FETCHED, PARTIAL
from git_notes_consolidation.session.fast_start import session_start
from git_notes_consolidation.store.events import REFS
from git_notes_consolidation.store.git import note_paths, open_repo
from git_notes_consolidation.store.reader import read_memories
from helpers import git, refs

STORY = [mem(f"We use Redis {n} for the queue", "Because it is fast.", days_ago=9 - n) for n in range(3)]


def cloned(source, to, *options):
    subprocess.run(["git", "clone", "-q", *options, f"file://{source}", str(to)], check=True)
    git(to, "config", "user.name", "T"); git(to, "config", "user.email", "t@example.org")
    return to


def shell(home, command):
    "A remedy, as somebody pastes it."
    subprocess.run(command, shell=True, check=True, cwd=home, capture_output=True)


def hook(home): return json.loads(session_start(json.dumps({"cwd": str(home), "source": "startup"}), {})[0])
def remedy_of(text): return text[text.index("git "):].strip().removesuffix(".")


@pytest.fixture
def source(tmp_path):
    home = made(tmp_path / "source", STORY)
    for option in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"): git(home, "config", option, "true")
    git(home, "config", "user.name", "T"); git(home, "config", "user.email", "t@example.org")
    run(home)
    return home


def test_a_partial_clone_names_the_fetch_that_makes_it_whole(source, tmp_path):
    home = cloned(source, tmp_path / "partial", "--filter=blob:none")
    git(home, "fetch", "-q", "origin", "refs/notes/*:refs/notes/*")
    for words in (["recall", "redis"], ["status"], ["consolidate"]):
        said = gnc(*words, repo=home)
        assert (said.code, said.err) == (1, f"gnc: {PARTIAL}\n"), words
    assert remedy_of(PARTIAL) in gnc("audit", repo=home).err and remedy_of(PARTIAL) in gnc("doctor", repo=home).out
    assert remedy_of(PARTIAL) in hook(home)["systemMessage"]
    shell(home, remedy_of(PARTIAL))
    assert "Redis 2" in gnc("recall", "redis", repo=home).out and gnc("audit", repo=home).code == 0


def test_a_clone_with_what_was_made_of_the_memories_alone_says_so_everywhere_and_the_fetch_brings_them(source, tmp_path):
    home = cloned(source, tmp_path / "plain")
    assert "A clone brings no notes along" in gnc("status", repo=home).out
    git(home, "fetch", "-q", "origin", "refs/notes/mem-*:refs/notes/mem-*")
    before = refs(home, "refs/notes/")
    assert REFS["runs"] in before
    for words in (["status"], ["recall", "redis"], ["tiers"]):
        assert remedy_of(NOT_FETCHED) in " ".join(gnc(*words, repo=home).out.split()), words
    refused = gnc("consolidate", repo=home)
    assert (refused.code, refused.err) == (1, f"gnc: {NOT_FETCHED}\n") and refs(home, "refs/notes/") == before  # Nothing is retired
    assert remedy_of(NOT_FETCHED) in gnc("doctor", repo=home).out
    audited = gnc("audit", "--json", repo=home)
    assert audited.code == 1 and [remedy_of(NOT_FETCHED) in f["what"] for f in audited.json["findings"]] == [True]
    assert remedy_of(NOT_FETCHED) in hook(home)["systemMessage"]
    shell(home, remedy_of(NOT_FETCHED))
    assert gnc("audit", repo=home).code == 0 and len(read_memories(open_repo(home)).memories) == 3


def test_where_the_remote_has_no_memories_sync_is_named_and_no_fetch_that_brings_none(source, tmp_path):
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "init", "-q", "--bare", str(hub)], check=True)
    empty = cloned(hub, tmp_path / "empty")
    said = [" ".join(gnc(*words, repo=empty).out.split()) for words in (["sync"], ["status"], ["recall", "redis"])]
    assert all("The remote had none at the last sync." in x and "git fetch" not in x for x in said)
    git(source, "remote", "add", "hub", hub)
    assert gnc("sync", "hub", repo=source).code == gnc("sync", repo=empty).code == 0
    assert "Redis 2" in gnc("recall", "redis", repo=empty).out and gnc("audit", repo=empty).code == 0


def test_a_directory_of_somebody_else_brings_gits_remedy(source, monkeypatch):
    env = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for name, value in env.items(): monkeypatch.setenv(name, value)
    if not subprocess.run(["git", "-C", str(source), "status"], capture_output=True).returncode: pytest.skip("this git asks nobody whose a directory is")
    for words in (["status"], ["doctor"], ["consolidate"]):
        done = gnc_process("--repo", source, *words, env=os.environ | env)
        assert done.code == 1 and f"git config --global --add safe.directory {source}" in done.err, (words, done.err)
    assert "safe.directory" in hook(source)["systemMessage"]


WRITTEN = ["Fix: retry", "@alice decides", "`gnc` is the tool", "a\ttab", "- a list", "[x] done", "{a: b}", "# 12", "%percent", "!bang", "*star", "&amp",
           "|pipe", ">fold", "100%: yes", "what? yes: no", "'quoted' word"]


@pytest.mark.parametrize("said", WRITTEN)
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_front_matter_that_a_person_wrote_is_read_as_it_was_meant(tmp_path, said, bom):
    home = new_repo(tmp_path / "repo", [])
    (home / "note").write_text(f"{bom}---\ntype: decisions\ntimestamp: 2026-10-03T10:00:00Z\nsummary: {said}\ntags: api, web\n---\n\nIts body.\n")
    git(home, "config", "user.name", "T"); git(home, "config", "user.email", "t@example.org")
    git(home, "commit", "-q", "--allow-empty", "-m", "x")
    git(home, "notes", "--ref=mem/decisions", "add", "-F", str(home / "note"))
    scan = read_memories(open_repo(home))
    assert [(m.summary, m.content, m.tags) for m in scan.memories] == [(" ".join(said.split()) if "\t" not in said else said, "Its body.", ("api", "web"))]
    assert not scan.problems
    run(home)
    assert gnc("audit", repo=home).code == 0  # Read a second time, by other code
    assert "twice" not in gnc("doctor", repo=home).out and "without its dashes" not in gnc("doctor", repo=home).out


def test_a_note_of_ours_that_was_written_over_is_found_and_healed(source, monkeypatch):
    ref = REFS["edges"] if REFS["edges"] in refs(source) else REFS["runs"]
    obj, *_ = note_paths(open_repo(source), ref)[0]
    shutil.rmtree(source / ".memory", ignore_errors=True)
    git(source, "notes", f"--ref={ref}", "add", "-f", "-m", "a remark", obj)
    assert "gnc doctor says how to fix it" in gnc("status", repo=source).out
    broken = gnc("audit", repo=source)
    assert broken.code == 1 and "gnc restore --lost" in broken.out
    found = [f for f in gnc("doctor", "--json", repo=source).json["findings"] if f["level"] == "broken"]
    gone, remark, *_ = sorted(found, key=lambda f: ("gone" not in f["what"], "no record" not in f["what"]))
    assert "written over" in gone["what"] and gone["remedy"] == "gnc restore --lost"
    assert gnc("restore", "--lost", repo=source).code == 0
    after = gnc("audit", "--json", repo=source).json["findings"]
    assert [f["what"] for f in after if f["level"] == "broken"] == ["A line that is no record is left out."]  # The remark is left to its author
    monkeypatch.setenv("GIT_EDITOR", "sed -i '/a remark/d'")
    shell(source, remark["remedy"].partition(", and take")[0])
    assert gnc("doctor", repo=source).code == gnc("audit", repo=source).code == 0
