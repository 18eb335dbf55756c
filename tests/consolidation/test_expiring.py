"""retention_days: what expires in a run, what must not, and that it can be taken back."""
import json
import pytest
import shutil
from calls import gnc, holds, new_repo, run, serve, state_of
from contextlib import closing
from datetime import timedelta
from helpers import add_memories, git, refs, replace_everywhere
from hypothesis import given, settings, strategies as st
from git_notes_consolidation.consolidation import pipeline as consolidation_pipeline
from git_notes_consolidation.consolidation.plan import Guard, load_plan
from git_notes_consolidation.consolidation.scan import view
from git_notes_consolidation.consolidation.service import apply_file
from git_notes_consolidation.consolidation.status import undo
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, as_utc, mem
from git_notes_consolidation.store import audit, cache as index
from git_notes_consolidation.store.cache import note_accesses
from git_notes_consolidation.store.git import MEM, open_repo
from git_notes_consolidation.writing.write import WritingService


DAY = timedelta(days=1)
LATER = SAMPLE_NOW + 200 * DAY
RULE = {"retention_days": "decisions=180"}


@pytest.fixture
def done(story_after, tmp_path): return shutil.copytree(story_after, tmp_path / "done")


def gone(home): return {m.summary for m in view(open_repo(home)).scan.memories if m.status == "tombstone"}
def problems(home): return [str(f) for f in audit.audit(home).findings]


OVER = {f"ADR-00{i}: We build on {w}" for i, w in enumerate(("Flask", "SQLite", "cron"))}


@pytest.mark.slow
def test_what_was_replaced_long_ago_expires_and_its_note_stays(done):
    theirs = refs(done, MEM)
    run(done, SAMPLE_NOW + DAY, **RULE)  # Relations are up to date, and the next run need not look at them but for the rule
    result = run(done, LATER, **RULE)
    assert (gone(done), result.memories_expired, result.changed) == (OVER, 3, True)
    assert refs(done, MEM) == theirs and problems(done) == []
    before = refs(done)
    for full in (False, True):
        assert not run(done, LATER, full=full, **RULE).changed
        assert refs(done) == before
    text = gnc("recall", "We build on Flask", "--mode", "exhaustive", repo=done, now=LATER).out
    assert "FastAPI" in text and "ADR-000:" not in text


@pytest.mark.slow
def test_undone_it_is_not_done_again(done):
    state = holds(state_of(done))
    r = run(done, LATER, **RULE)
    taken = undo(serve(done, **RULE), r.run_id, LATER)
    assert taken[1:] == (r.run_id,) and gone(done) == set() and holds(state_of(done)) == state
    run(done, LATER + DAY, **RULE)
    assert gone(done) == set()
    undo(serve(done, **RULE), taken[0], LATER + 2 * DAY)
    assert gone(done) == OVER


@pytest.mark.slow
def test_brought_back_by_hand_it_stays(done):
    run(done, LATER, **RULE)
    s = serve(done)
    one = next(m for m in view(s.repo).scan.memories if m.status == "tombstone")
    back = WritingService(s.repo, s.settings, s.embedder, clock=lambda: LATER + DAY).restore(one.id)
    assert (back.operation, gone(done)) == ("RESTORE", OVER - {one.summary})
    run(done, LATER + 400 * DAY, **RULE)
    assert one.summary not in gone(done)


@pytest.mark.slow
def test_what_somebody_asked_for_starts_again(done):
    flask = next(m for m in view(open_repo(done)).scan.memories if m.summary.endswith("Flask"))
    with closing(index.open_index(open_repo(done))) as conn: note_accesses(conn, [flask.id], SAMPLE_NOW + 150 * DAY, "a session")
    run(done, LATER, **RULE)  # The access waits in the cache when this run begins
    assert gone(done) == OVER - {flask.summary}
    run(done, SAMPLE_NOW + 331 * DAY, **RULE)
    assert gone(done) == OVER


@pytest.mark.parametrize("change", [{"retention_days": "progress=180"}, {"retention_days": "decisions=180", "forgetting_enabled": "off"}], ids=["other", "off"])
def test_other_namespaces_and_switched_off(done, change):
    run(done, LATER, **change)
    assert gone(done) == set()


@pytest.mark.slow
def test_a_plan_shows_it_and_is_applied(done):
    s = serve(done, **RULE)
    plan = s.plan(LATER)
    assert (plan.expires, plan.result.memories_expired, gone(done)) == (3, 3, set())
    again = load_plan(plan.to_json())
    assert (again.expires, again.result.memories_expired) == (3, 3)
    assert apply_file(s, plan.to_json()).memories_expired == 3
    assert gone(done) == OVER
    run_id = plan.result.run_id
    told = gnc("diff", run_id, repo=done).out
    assert told.count("retention_days: archived and asked for by nobody since 2026-11-01; decisions keeps that for 180 days") == 3
    assert sum(op["operation"] == "DELETE" for op in json.loads(gnc("--json", "diff", run_id, repo=done).out)["operations"]) == 3
    assert "retention_days" in gnc("log", repo=done).out


@pytest.mark.slow
def test_the_blast_radius_counts_it(done, monkeypatch):
    before = refs(done)
    replace_everywhere(monkeypatch, consolidation_pipeline, "ALWAYS", 2)
    with pytest.raises(Guard, match=r"make tombstones of 3 memories \(retention_days\), and may of 2"):
        run(done, LATER, max_change=0, **RULE)
    assert refs(done) == before
    replace_everywhere(monkeypatch, consolidation_pipeline, "ALWAYS", 3)
    assert run(done, LATER, max_change=0, **RULE).memories_expired == 3


@pytest.mark.slow
def test_repeats_expire_together_or_not_at_all(tmp_path):
    a, b = (mem("Standup", "We met.", namespace="progress", days_ago=n) for n in (900, 2))
    home = new_repo(tmp_path / "repo", [a, b, mem("Another thing", "Entirely.", days_ago=1)])
    run(home)
    assert sorted(state_of(home).tier(m.id).value for m in view(open_repo(home)).scan.memories if m.summary == "Standup") == ["archived", "warm"]
    run(home, SAMPLE_NOW + 20 * DAY, retention_days="progress=10")
    assert gone(home) == set()  # The copy is archived, and the first of the two is not
    run(home, SAMPLE_NOW + 3000 * DAY)
    run(home, SAMPLE_NOW + 3010 * DAY, retention_days="progress=10")
    assert [m.status for m in view(open_repo(home)).scan.memories if m.summary == "Standup"] == ["tombstone"] * 2
    assert problems(home) == []


@pytest.mark.slow
def test_sources_expire_with_their_summary_or_not_at_all(tmp_path):
    "Six old notes about one thing; in the one repository one of them was read since, and the summary stands on all six."
    said = [(f"The parser fails on nested lists, case {i}", f"The parser fails on nested lists in case {i}.") for i in range(6)]
    ms = [mem(*x, namespace="progress", days_ago=900 + i) for i, x in enumerate(said)]
    home = new_repo(tmp_path / "repo", ms)
    run(home)
    state = state_of(home)
    assert len(state.summaries) == 1 and {r["tier"] for r in state.tiers.values()} == {"archived"}
    sources = next(iter(state.summaries.values())).source_memory_ids
    two = shutil.copytree(home, tmp_path / "two")
    with closing(index.open_index(open_repo(two))) as conn: note_accesses(conn, sources[:1], SAMPLE_NOW + 35 * DAY, "a session")
    for place in (home, two): run(place, SAMPLE_NOW + 40 * DAY, retention_days="progress=30", max_change=1)
    assert len(gone(home)) == 6 and not state_of(home).summaries and not run(home, SAMPLE_NOW + 40 * DAY, retention_days="progress=30").changed
    assert len(gone(two)) == 0 and len(state_of(two).summaries) == 1
    assert problems(home) == problems(two) == []


def test_what_matters_again_in_the_same_run_stays(tmp_path):
    "It is said again on the day before it would expire."
    home = new_repo(tmp_path / "repo", [mem("Standup", "We met.", namespace="progress", days_ago=900)])
    run(home)
    add_memories(home, [mem("Standup", "We met.", namespace="progress", now=SAMPLE_NOW + 8 * DAY)])
    r = run(home, SAMPLE_NOW + 9 * DAY, retention_days="progress=9")
    assert gone(home) == set() and [t.from_tier.value for t in r.tier_transitions if t.to_tier.value != "archived"] == ["archived"]


@pytest.mark.slow
@settings(max_examples=4)
@given(st.lists(st.integers(1, 399), max_size=2, unique=True))
def test_the_way_there_does_not_matter(story_after, tmp_path_factory, on):
    "Whenever runs look, what is archived and untouched is a tombstone in the end."
    home = shutil.copytree(story_after, tmp_path_factory.mktemp("cadence") / "repo")
    for d in (*sorted(on), 400): run(home, SAMPLE_NOW + d * DAY, full=d % 2 == 0, **RULE)
    assert gone(home) >= OVER
    state, late = state_of(home), SAMPLE_NOW + 400 * DAY
    for m in view(open_repo(home)).scan.memories:
        r = state.tiers.get(m.id)
        if m.namespace != "decisions" or not r or r["tier"] != "archived": continue
        assert (m.status == "tombstone") == (as_utc(state.runs[r["run"]]["at"]) <= late - 180 * DAY), m.summary


def test_it_is_read_from_no_file(tmp_path):
    "A repository's own file makes nothing expire."
    (tmp_path / "gnc.yaml").write_text("retention_days: {decisions: 180, progress: 30}\n")
    s = load_settings(env={}, file=tmp_path / "gnc.yaml")
    assert not s.config.expiry and "set MEMORY_RETENTION_DAYS" in s.remarks[0]
    s = load_settings({"retention_days": "progress=30, decisions=180"}, env={})
    assert (s.config.expiry, s.config.retention_days) == ({"decisions": 180, "progress": 30}, "decisions=180, progress=30")
    assert s.id != load_settings(env={}).id


def test_everything_may_expire(tmp_path):
    "A repository of which nothing is left still has a run record on an object."
    home = new_repo(tmp_path / "repo", [mem("Standup", "We met.", namespace="progress", days_ago=2000)])
    run(home)
    run(home, SAMPLE_NOW + 9 * DAY, retention_days="progress=9")
    assert gone(home) == {"Standup"} and problems(home) == [] and git(home, "fsck", "--no-dangling") == ""


@pytest.mark.slow
def test_a_scope_limits_it(done, monkeypatch):
    assert gnc("consolidate", "--namespace", "learnings", repo=done, now=LATER).code == 0
    monkeypatch.setenv("MEMORY_RETENTION_DAYS", "decisions=180")
    assert gnc("consolidate", "--strategy", "supersede", repo=done, now=LATER).code == 0
    assert gone(done) == set()
    look = gnc("consolidate", "--dry-run", repo=done, now=LATER)
    assert look.code == 0 and look.out.count("retention_days: archived") == 3 and gone(done) == set(), look.err
    said = gnc("consolidate", repo=done, now=LATER).out
    assert gone(done) == OVER and "expired (retention_days)" in said
