"""Questions for a person: what each answer changes, what it refuses, and that it can be taken back. Real repositories, real runs."""
import os
import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from calls import gnc, new_repo, run, serve, state_of
from git_notes_consolidation.store.audit import audit
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.writing.effects import BadFact
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType, MemoryTier
from git_notes_consolidation.store.reader import UnknownId, read_memories
from git_notes_consolidation.store.state import open_questions
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.writing.review import accept, edit, reject
from git_notes_consolidation.writing.proposals import _proposal, _web, proposals
from git_notes_consolidation.consolidation.stores import MetadataStore
from git_notes_consolidation.consolidation.status import questions, undo
from git_notes_consolidation.consolidation.scan import view
from git_notes_consolidation.writing.write import open_writing
from helpers import git, story
from hypothesis import HealthCheck, given, settings, strategies as st

STAGING = [mem("Where the staging cluster lives", "Staging lives in eu-west-1 with one database.", days_ago=50),
           mem("Staging cluster", "Staging lives in eu-central-1 with one database.", days_ago=40)]
RETURNED = [mem("ADR-001: Serve with Flask", "It is small.", days_ago=300), mem("ADR-002: Serve with FastAPI", "Supersedes ADR-001.", days_ago=100),
            mem("ADR-001: Serve with Flask", "It is small.", days_ago=90)]
WITHDRAWN = [mem("ADR-001: Serve the API with Flask", "It is small.", days_ago=190),
             mem("ADR-002: Serve the API with FastAPI", "Supersedes ADR-001.", days_ago=180),
             mem("ADR-002 withdrawn", "We will not move after all: ADR-002 is withdrawn. Both developers left.", days_ago=120)]


def writer(home, days=0, **settings):
    "A writer whose clock stands so many days after the sample's."
    w = open_writing(home, load_settings(settings, env={}), clock=lambda: SAMPLE_NOW + timedelta(days=days))
    return w


def committed(path, memories):
    home = new_repo(path, memories)
    git(home, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "x", date="2025-01-01T00:00:00+00:00")
    return home


def asked(home, about=None): return proposals(view(open_repo(home)), about)
def known(home): return MetadataStore(open_repo(home)).all()
def holds(state): return state.edges, state.reviews, state.verdicts, {i: r["tier"] for i, r in state.tiers.items()}
def drop_runs(state): return {i: replace(e, consolidation_run_id=None, created_at=None) for i, e in state.edges.items() if e.edge_type != EdgeType.REFERENCES}


def settled(home):
    "A look at everything adds and ends no relation and asks nothing; what is left is tiers, summaries, and which memory names which."
    before = state_of(home)
    result = run(home, full=True)
    after = state_of(home)
    open_ = [set(open_questions(x)) for x in (after, before)]
    assert (drop_runs(after), open_[0], after.verdicts) == (drop_runs(before), open_[1], before.verdicts)
    assert result.review_items == len(before.reviews) - len(after.reviews)  # What is over is closed
    assert result.edges_removed == result.supersessions_detected == result.duplicates_found == 0
    assert not run(home, full=True).changed


def persons(state): return {i: e for i, e in state.edges.items() if e.by == "person"}
def clean(home): return [f for f in audit(home).findings if "stand elsewhere too" not in f.what]


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    "A repository for each kind of question; not to be written to."
    place, out = tmp_path_factory.mktemp("review"), {}
    for name, memories in {"unsure": STAGING, "returned": RETURNED, "withdrawn": WITHDRAWN, "undone": story()}.items():
        out[name] = committed(place / name, memories)
        made = run(out[name])
        if name == "undone": undo(serve(out[name]), made.run_id); run(out[name])
    out["merge"] = committed(place / "merge", STAGING[:1])
    w = writer(out["merge"], write_confidence=1.0)
    old = next(iter(w.held().memories))
    new = w.remember("Staging: backups\n\nIts dump runs at 02:00 UTC, and never on `db-7`.", judge=False, tags=("Ops",))
    ask_merge(w, new.memory_id, old)
    return out


def ask_merge(w, new, old):
    "A question as the writer leaves it, when a model is not sure that two belong together."
    from git_notes_consolidation.writing.effects import Draft
    from git_notes_consolidation.core.models import MemoryEdge
    e = MemoryEdge(new, old, EdgeType.MERGED_INTO, 0.7, "a detail of it", by="llm")
    return w.commit(lambda held, now, client: Draft("NOOP", new, questions=((e, "the judge is not sure: a detail of it"),)), "")


@pytest.fixture
def copy(templates, tmp_path): return lambda name: shutil.copytree(templates[name], tmp_path / name)


# What a yes does


@pytest.mark.slow
def test_an_unsure_replacement_is_made_as_it_was_judged(copy):
    home = copy("unsure")
    [p] = asked(home)
    q = p.question
    assert (q["code"], q["weight"], p.case, p.short[:18], p.hides) == ("S", q["weight"], "edge", "archives the older", (q["target"],))
    assert "replaces “Where the staging cluster lives”, which is archived" in p.words
    r = accept(writer(home), q["id"], "moved in May", "monday")
    [e] = state_of(home).edges.values()
    assert (e.id, e.by, e.code, e.span, e.kind, e.weight) == (q["id"], "person", "S", q["span"], "full", q["weight"])
    assert (r.operation, r.classification, r.reasoning, r.superseded_ids) == ("SUPERSEDE", "SUPERSEDE", "moved in May", (q["target"],))
    d = known(home)[q["target"]]
    assert (d.superseded_by, d.tier) == (q["source"], MemoryTier.ARCHIVED) and d.valid_until == STAGING[1].timestamp
    [op] = state_of(home).operations.values()
    assert (op["operation"], op["question"], op["verdict"], op["session"], op["by"]) == ("SUPERSEDE", q["id"], "accepted", "monday", "person")
    assert op["before"][q["target"]]["tier"] != "archived" and op["after"][q["target"]]["tier"] == "archived"
    assert state_of(home).verdicts == {q["id"]: True} and not clean(home)
    settled(home)


@pytest.mark.slow
def test_two_that_belong_together_are_merged_by_the_writer(copy):
    home = copy("merge")
    [p] = asked(home)
    assert p.case == "merge" and set(p.hides) == {p.question["source"], p.question["target"]}
    r = accept(writer(home), p.question["id"])
    m = next(m for m in view(open_repo(home)).scan.memories if m.id == r.memory_id)
    assert r.merged and m.tags == ("ops",) and all(x in m.text for x in ("eu-west-1", "02:00 UTC", "never on `db-7`"))
    assert [len(m.places) for m in read_memories(open_repo(home)).memories] == [1, 1, 1]  # Both were there; only the merged one is written
    assert {known(home)[i].merged_into for i in p.hides} == {m.id} and set(r.sources) == set(p.hides) and not clean(home)
    settled(home)


# A no, and another answer


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", ["unsure", "returned", "withdrawn", "merge"])
def test_a_no_changes_nothing_and_nobody_asks_again(copy, name):
    home = copy(name)
    [p] = asked(home)
    before = state_of(home)
    r = reject(writer(home), p.question["id"], "two clusters")
    after = state_of(home)
    assert (r.operation, set(after.edges), after.reviews) == ("NOOP", set(before.edges), {}) and after.verdicts == {p.question["id"]: name == "withdrawn"}
    assert holds(after)[3] == holds(before)[3] and not clean(home)
    settled(home)
    undo(serve(home), r.run_id)
    assert [x.question["id"] for x in asked(home)] == [p.question["id"]]


def ask(w, new, old, type_, kind=None):
    "A question that a judge might leave."
    from git_notes_consolidation.writing.effects import Draft
    from git_notes_consolidation.core.models import MemoryEdge
    e = MemoryEdge(new, old, type_, 0.7, "it may be", kind=kind)
    return w.commit(lambda held, now, client: Draft("NOOP", new, questions=((e, "the judge is not sure: it may be"),)), ""), e.id


# What is refused


@pytest.mark.slow
def test_what_would_break_a_chain_is_refused(tmp_path):
    home = committed(tmp_path / "one", [mem("Tea at four", "In the kitchen.", days_ago=d) if d < 9 else mem(f"Thing {d}", f"Number {d * 77}.", days_ago=d)
                                        for d in (50, 40, 30)])
    w = writer(home)
    a, b, c = (m.id for m in read_memories(open_repo(home)).memories)
    _, back = ask(w, a, b, EdgeType.SUPERSEDES, "full")
    with pytest.raises(BadFact, match="what replaces or repeats is the newer of the two"): accept(w, back)
    assert asked(home)[0].refused and asked(home)[0].short == "not possible as it stands"
    reject(w, back)
    _, good = ask(w, b, a, EdgeType.SUPERSEDES, "full")
    w.forget(a)
    with pytest.raises(BadFact, match="is forgotten; bring it back with gnc restore"): accept(w, good)
    w.restore(a)
    assert accept(w, good).superseded
    with pytest.raises(BadFact, match=r"no longer open: accepted on 2026-11-01 in run_\w+"): accept(w, good)
    with pytest.raises(UnknownId, match="gnc review list shows"): accept(w, "edge_nosuch")
    _, first = ask(w, c, b, EdgeType.SUPERSEDES, "full"); _, second = ask(w, c, a, EdgeType.DUPLICATE_OF)
    with pytest.raises(UnknownId, match="ambiguous|no question"): accept(w, "edge_")
    accept(w, first)
    p = next(p for p in asked(home) if p.question["id"] == second)
    assert p.case == "returned" and not p.made  # A was replaced by B, which C replaced already
    assert not clean(home)


@pytest.mark.parametrize("wrong", [{"type": "nonsense"}, {"weight": "much"}, {"weight": 7}, {"target": ""}, {"sources": 3, "what": "summary"}])
def test_a_question_that_makes_no_sense_is_shown_and_refused(copy, wrong):
    home = copy("unsure")
    v = view(open_repo(home))
    [q] = questions(v)
    p = _proposal(_web(v), q | wrong)
    assert p.refused and p.short == "not possible as it stands" and not p.made


# Back


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", ["unsure", "returned", "withdrawn", "merge", "undone"])
def test_a_yes_taken_back_leaves_everything_as_it_was(copy, name):
    home = copy(name)
    before, now = state_of(home), known(home)
    for p in asked(home)[:4]:
        r = accept(writer(home), p.question["id"])
        assert p.question["id"] not in state_of(home).reviews and not clean(home)
        undo(serve(home), r.run_id)
        assert holds(state_of(home)) == holds(before) and {i: d for i, d in known(home).items() if i in now} == now
        assert not clean(home)


SOME = [mem("Orders live in MySQL", "Version 8.", days_ago=60), mem("Orders live in Postgres", "Version 16.", days_ago=50), mem("Tea", "At four.", days_ago=40),
        mem("Tea", "At four.", days_ago=30), mem("Build cache", "Kept for 14 days.", days_ago=20), mem("Cache of builds", "It is in S3.", days_ago=20)]
TYPES = st.sampled_from([(EdgeType.SUPERSEDES, "full"), (EdgeType.SUPERSEDES, "partial"), (EdgeType.DUPLICATE_OF, None), (EdgeType.MERGED_INTO, None),
                         (EdgeType.RELATED_TO, None)])
QUESTIONS = st.lists(st.tuples(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda p: p[0] != p[1]), TYPES,
                               st.sampled_from(["accept", "accept", "reject", "supersede", "duplicate", "related"])), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("GNC_REVIEW_EXAMPLES", 3)), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(QUESTIONS)
def test_any_answers_keep_every_invariant_and_can_be_taken_back(some, told):
    with tempfile.TemporaryDirectory() as place:
        home = shutil.copytree(some, Path(place) / "one")
        w, ids = writer(home), [m.id for m in sorted(read_memories(open_repo(home)).memories, key=lambda m: (m.timestamp, m.id))]
        for (new, old), (type_, kind), how in told:
            _, id_ = ask(w, ids[new], ids[old], type_, kind)
            if id_ not in state_of(home).reviews: continue
            before = state_of(home)
            try: r = accept(w, id_) if how == "accept" else reject(w, id_) if how == "reject" else edit(w, id_, relation=how)
            except BadFact:
                assert state_of(home) == before
                reject(w, id_)
                continue
            assert w.held().view.state == state_of(home) and id_ not in state_of(home).reviews and not clean(home), told
            after = state_of(home)
            name, *_ = undo(serve(home), r.run_id)
            assert holds(state_of(home)) == holds(before) and not clean(home), told
            undo(serve(home), name)
            assert holds(state_of(home)) == holds(after)
        before = state_of(home)
        run(home, full=True)
        after = state_of(home)
        assert (after.verdicts, persons(after)) == (before.verdicts, persons(before)) and not after.verdicts.keys() & after.reviews.keys(), told
        assert not run(home, full=True).changed and not clean(home), told


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    home = committed(tmp_path_factory.mktemp("some") / "one", SOME)
    run(home)
    return home


# People


@pytest.mark.slow
def test_the_command_line_asks_shows_and_decides(copy):
    home = copy("unsure")
    listed = gnc("review", "list", repo=home)
    assert all(x in listed.out for x in ("yes", "archives the older", "gnc review accept 1"))
    [q] = gnc("--json", "review", "list", repo=home).json
    assert q["id"] in state_of(home).reviews and "which is archived" in q["if_accepted"]
    full = gnc("review", "list", q["id"][:12], "-v", repo=home)
    assert all(x in full.out for x in ("eu-west-1", "eu-central-1", "quoted “", "yes    “Staging cluster” replaces"))
    before = state_of(home)
    dry = gnc("review", "accept", q["id"][:12], "--dry-run", repo=home)
    assert dry.code == 0 and "yes    “Staging cluster” replaces" in dry.out and "undo" not in dry.out and state_of(home) == before
    done = gnc("review", "accept", q["id"][:12], "--reason", "moved", repo=home)
    assert done.code == 0 and "→ archived" in done.out and "gnc undo run_" in done.out
    late = gnc("review", "reject", q["id"], repo=home)
    assert late.code == 2 and "no longer open: accepted on" in late.err
    assert gnc("undo", done.out.split("gnc undo ")[1].split()[0], repo=home).code == 0
    assert [x["id"] for x in gnc("--json", "review", "list", repo=home).json] == [q["id"]]
    part = gnc("--json", "review", "accept", q["id"], "--as", "part", repo=home).json
    assert part[0]["after"][q["target"]]["superseded_kind"] == "partial"


@pytest.mark.slow
def test_many_at_once_need_a_yes_and_may_not_hide_too_much(tmp_path):
    home = committed(tmp_path / "one", [mem(f"Thing {i}", f"Number {i * 77}.", days_ago=50 - i) for i in range(14)])
    w = writer(home)
    ids = [m.id for m in sorted(read_memories(open_repo(home)).memories, key=lambda m: m.timestamp)]
    for i in range(7): ask(w, ids[2 * i + 1], ids[2 * i], EdgeType.SUPERSEDES, "full")
    assert gnc("review", "accept", repo=home).code == 2
    many = gnc("review", "accept", "--all", "--yes", repo=home)
    assert (many.code, "would hide 7 current memories, and may 5" in many.err, state_of(home).edges) == (3, True, {})
    assert gnc("review", "accept", "--all", "--max-change", "1", repo=home).code == 3 and not state_of(home).edges
    assert gnc("review", "accept", "--all", "--max-change", "1", "--yes", repo=home).code == 0
    assert len(state_of(home).edges) == 7 and not clean(home) and gnc("review", "reject", "--all", "--yes", repo=home).code == 0


@pytest.mark.slow
def test_a_hostile_question_reaches_no_terminal(tmp_path):
    evil = "<script>alert(1)</script>\x1b[2J"
    home = committed(tmp_path / "one", [replace(STAGING[0], summary=f"Where it lives {evil}"), replace(STAGING[1], summary=f"Staging {evil}")])
    w = writer(home)
    old, new = (m.id for m in sorted(read_memories(open_repo(home)).memories, key=lambda m: m.timestamp))
    ask(w, new, old, EdgeType.SUPERSEDES, "full")
    id_ = asked(home)[0].question["id"]
    for args in (("list",), ("list", id_, "-v"), ("accept", id_, "--dry-run"), ("accept", id_)):
        told = gnc("review", *args, repo=home)
        assert told.code == 0 and "\x1b" not in told.out
    gnc("undo", next(op["run"] for op in state_of(home).operations.values() if op.get("verdict")), repo=home)
