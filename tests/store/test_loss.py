"""What git prunes, a fetch removes or a push sets back is seen, named and brought back; what a person removes is left alone."""
import subprocess
from dataclasses import replace

import pytest
from calls import add_memories, gnc, made, new_repo, serve, state_of
from helpers import git, refs

from git_notes_consolidation.consolidation.service import run
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import ConsolidationPhase
from git_notes_consolidation.store.events import REFS
from git_notes_consolidation.store.git import MEM, open_repo
from git_notes_consolidation.store.loss import keep, losses
from git_notes_consolidation.store.reader import read_memories

OLD = mem("The API runs on Flask", "Small, and all of us know it.", days_ago=40, namespace="decisions")
NEW = mem("The API runs on FastAPI", "Replaces “The API runs on Flask”.", days_ago=20, namespace="decisions")
LOGS = mem("Logs are kept for 30 days", days_ago=3, namespace="decisions")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    "A replacement, found by a run; the newest commit carries a memory and the run's record."
    home = made(tmp_path_factory.mktemp("loss") / "repo", [OLD, NEW, LOGS])
    for k, v in (("name", "a"), ("email", "a@example.org")): git(home, "config", f"user.{k}", v)
    assert gnc("consolidate", repo=home).code == 0
    return home


@pytest.fixture
def home(template, tmp_path):
    subprocess.run(["cp", "-r", str(template), str(tmp_path / "repo")], check=True)
    return tmp_path / "repo"


def amended(home):
    "The newest commit goes, as after an amend and a gc."
    git(home, "commit", "--amend", "--quiet", "--message=again", "--allow-empty")
    git(home, "reflog", "expire", "--expire=now", "--all")
    git(home, "gc", "--quiet", "--prune=now")


def prune(home, *names):
    for ref in names: git(home, "notes", f"--ref={ref}", "prune")


def verdicts(home): return gnc("audit", repo=home).code, gnc("doctor", repo=home).code
def summaries(home): return {m.summary for m in read_memories(open_repo(home)).memories}


def test_a_pruned_memory_is_named_and_comes_back(home):
    before, all_ = refs(home, MEM), summaries(home)
    amended(home)
    prune(home, *refs(home, MEM), *REFS.values())
    assert summaries(home) < all_ and verdicts(home) == (1, 1)
    said = gnc("doctor", "-v", repo=home).out
    assert "removed by git notes prune" in said and "gnc restore --lost" in said
    assert gnc("restore", "--lost", "--dry-run", repo=home).out.count(LOGS.summary) == 1 and summaries(home) < all_
    assert gnc("restore", "--lost", repo=home).code == 0
    assert summaries(home) == all_ and verdicts(home) == (0, 0) and refs(home, MEM).keys() == before.keys()
    assert "Nothing is lost" in gnc("restore", "--lost", repo=home).out


@pytest.mark.parametrize("store", REFS)
def test_a_run_does_not_act_on_half_of_its_records(home, store):
    held = state_of(home)
    amended(home)
    prune(home, REFS[store])
    lost = state_of(home) != held
    r = gnc("consolidate", repo=home)
    assert r.code == 0 and ("had gone from the notes" in r.out + r.err) == lost
    now = state_of(home)
    assert (now.edges, now.tiers) == (held.edges, held.tiers) and verdicts(home) == (0, 0)


def test_a_fetch_that_prunes_and_one_that_is_forced_lose_nothing(home, tmp_path):
    team, all_ = tmp_path / "team.git", summaries(home)
    git(tmp_path, "init", "--quiet", "--bare", str(team))
    git(home, "remote", "add", "origin", str(team))
    git(home, "config", "--add", "remote.origin.fetch", "+refs/notes/mem/*:refs/notes/mem/*")
    first = git(home, "rev-list", "--max-parents=0", f"{MEM}decisions").strip()
    for there in ("", first):
        if there: git(home, "push", "--quiet", "--force", "origin", f"{there}:{MEM}decisions")
        git(home, "fetch", "--quiet", "--prune", "origin")
        assert (f"{MEM}decisions" in refs(home)) is bool(there)
        if summaries(home) == all_: continue  # The sample's first commit may hold all
        assert verdicts(home) == (1, 1) and gnc("restore", "--lost", repo=home).code == 0 and summaries(home) == all_


def test_what_was_remembered_before_any_run_is_kept(tmp_path):
    home = new_repo(tmp_path / "young", [])
    git(home, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "--message=one")
    assert gnc("remember", "Logs are kept for 30 days.", repo=home).code == 0
    git(home, "update-ref", "-d", f"{MEM}decisions")
    assert gnc("consolidate", repo=home).err.endswith("bring them back: gnc restore --lost\n")  # A fetch would not
    assert verdicts(home) == (1, 1) and gnc("restore", "--lost", repo=home).code == 0
    assert summaries(home) == {"Logs are kept for 30 days."} and verdicts(home) == (0, 0)


def test_what_a_person_removes_by_name_is_told_and_stays_removed(home):
    git(home, "notes", f"--ref={MEM}decisions", "remove", read_memories(open_repo(home)).memories[-1].commit_sha)
    repo, left = open_repo(home), summaries(home)
    assert [x.meant for x in losses(repo)] == [True] and keep(repo) == []
    assert "git notes remove" in gnc("doctor", "-v", repo=home).out and verdicts(home) == (0, 0)
    said = gnc("restore", "--lost", repo=home)
    assert said.code == 0 and "removed by hand" in said.out and LOGS.summary in said.out and "git show" in said.out and summaries(home) == left
    git(home, "notes", f"--ref={REFS['runs']}", "remove", git(home, "notes", f"--ref={REFS['runs']}", "list").split()[1])  # Ours is no memory
    assert verdicts(home) == (1, 1) and gnc("consolidate", repo=home).code == 0 and verdicts(home) == (0, 0)
    for m in read_memories(repo).memories: git(home, "notes", f"--ref={MEM}decisions", "remove", m.commit_sha)
    assert summaries(home) == set() and verdicts(home) == (0, 0)  # And the last one, too


def test_a_memory_that_is_written_over_is_named_and_comes_back_and_one_that_is_edited_is_there(home, monkeypatch):
    all_, at = summaries(home), read_memories(open_repo(home)).memories[-1].commit_sha
    text = git(home, "notes", f"--ref={MEM}decisions", "show", at)
    for n, edited in enumerate(("x", "y", text + "\n\nAnd more.")):
        git(home, "notes", f"--ref={MEM}decisions", "add", "--force", "--message", edited, at)
        assert verdicts(home) == ((1, 1) if n < 2 else (0, 0)), edited
        if n == 1: assert "written over by git notes add" in gnc("doctor", repo=home).out and gnc("restore", "--lost", repo=home).code == 0
    assert summaries(home) == all_ and gnc("consolidate", repo=home).code == 0 and verdicts(home) == (0, 0)
    monkeypatch.setenv("GIT_EDITOR", "echo no memory >")  # By hand, and so it is meant
    git(home, "notes", f"--ref={MEM}decisions", "edit", at)
    assert [x.meant for x in losses(open_repo(home))] == [True] and verdicts(home) == (0, 0)


def test_a_line_that_is_no_record_is_taken_out_as_doctor_says_and_stays_out(home, monkeypatch):
    ref, obj = REFS["edges"], git(home, "notes", f"--ref={REFS['edges']}", "list").split()[1]
    git(home, "notes", f"--ref={ref}", "append", "--message", "no record", obj)
    assert gnc("consolidate", repo=home).code == 0 and f"git notes --ref={ref} edit {obj}, and take it out" in gnc("doctor", repo=home).out
    monkeypatch.setenv("GIT_EDITOR", "sed -i '/no record/d; /^$/d'")
    git(home, "notes", f"--ref={ref}", "edit", obj)
    for _ in range(2):
        assert verdicts(home) == (0, 0) and "no record" not in git(home, "notes", f"--ref={ref}", "show", obj)
        assert gnc("consolidate", repo=home).code == 0


def run_while(home, happens):
    "A run, and what happens before it writes."
    todo = [happens]
    def progress(phase):
        if phase == ConsolidationPhase.PERSIST and todo: todo.pop()()
    return run(replace(serve(home), progress=progress), SAMPLE_NOW)


CACHE = mem("Sessions are cached in Redis", days_ago=1, namespace="decisions")


def test_refs_that_are_set_back_during_a_run_are_mended_by_the_next(home):
    before = {ref: tip for ref, tip in refs(home, "refs/notes/").items() if not ref.startswith(MEM)}
    assert gnc("undo", "last", repo=home).code == 0 and not state_of(home).edges
    add_memories(home, [CACHE])
    run_while(home, lambda: [git(home, "update-ref", ref, tip) for ref, tip in before.items()])
    assert state_of(home).edges and losses(open_repo(home))
    assert any("there again" in w for w in run(serve(home), SAMPLE_NOW).warnings)
    assert not state_of(home).edges and not losses(open_repo(home))
