"""A run over what is new comes to the records and the tables of a run over everything, or says that it cannot."""
import pytest
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from helpers import add_memories, git, replace_everywhere, story
from hypothesis import given, settings as hypothesis_settings, strategies as st
from git_notes_consolidation.consolidation import (
    pipeline as phases, plan as consolidation_plan, scan as consolidation_scan, service as sv, status as consolidation_status, stores as
    consolidation_stores)
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem, sample_memories
from git_notes_consolidation.recall import service as recall_service
from git_notes_consolidation.recall.service import open_recall
from git_notes_consolidation.similarity.clusters import KnownClusters, near_clusters
from git_notes_consolidation.similarity.neighbours import reachable
from git_notes_consolidation.store import events as store_writer
from git_notes_consolidation.store.events import encode, read_events
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import note_text
from git_notes_consolidation.supersession import judge
from git_notes_consolidation.writing import review as rv
from git_notes_consolidation.writing.decide import BadFact
from git_notes_consolidation.writing.write import open_writing
from git_notes_consolidation.store import cache as index
from git_notes_consolidation.similarity import neighbours
from git_notes_consolidation.similarity import clusters as similarity_clusters



@pytest.fixture(autouse=True, scope="module")
def never_due():
    "Runs here are months apart, so that tiers change between them."
    with pytest.MonkeyPatch.context() as m:
        m.setattr(sv, "_MONTH", timedelta(days=9999))
        yield


def at(path, **change):
    return consolidation_stores.open_service(path, load_settings({"llm_provider": "off", "max_change": 1.0, **change}, env={}), clock=lambda: SAMPLE_NOW)


@pytest.fixture
def home(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main", "here")
    for k in ("name", "email"): git(tmp_path / "here", "config", f"user.{k}", "a@example.org")
    return tmp_path / "here"


def records(path):
    "What was appended, without the names of runs, which hold the tips."
    out = []
    for store, obj, r in read_events(open_repo(path)).records:
        r = {k: v for k, v in r.items() if k not in ("run", "id", "seq", "clone")}
        if r["kind"] == "run": r["counts"] = {**r["counts"], "clusters_found": 0}
        out.append((store, obj, encode(r)))
    return sorted(out)


_VARIES = {"retention_score", "recency", "activation", "importance", "run_id", "consolidation_run_id", "value"}


def tables(path):
    "Every table, without the scores, which are as old as a row's last change, and the names of runs."
    out = {}
    with closing(sqlite3.connect(path / ".memory" / "consolidation.db")) as conn:
        for table in ("memories", "mem_summaries", "mem_edges", "operations"):
            found = conn.execute(f"SELECT * FROM {table}")
            names = [d[0] for d in found.description]
            keep = [i for i, n in enumerate(names) if n not in _VARIES and not (table == "operations" and n == "id")]
            out[table] = sorted((tuple(r[i] for i in keep) for r in found), key=repr)
        out["runs"] = conn.execute("SELECT kind, at, seq, undone FROM consolidation_runs ORDER BY seq").fetchall()
    return out


def rebuilt(path, now):
    "The tables as a look at everything makes them."
    s = at(path)
    with closing(index.open_index(s.repo)) as conn: sv.refresh_tables(conn, consolidation_scan.view(s.repo), s.settings, now)
    return tables(path)


def later(memories, share):
    "Cut in time: what a first run sees, and what comes after it."
    ordered = sorted(memories, key=lambda m: (m.timestamp, m.id))
    cut = max(1, min(len(ordered) - 1, int(share * len(ordered))))
    while cut < len(ordered) and ordered[cut].timestamp <= ordered[cut - 1].timestamp: cut += 1
    return ordered[:cut], ordered[cut:]


def asked(rng, home, now):
    "Perhaps somebody recalls before a run; what the tables say then is what a look at everything says."
    if rng.random() < 0.5: return
    open_recall(home, at(home).settings, clock=lambda: now).search("workers retry", 5, count=False)
    told, twin = tables(home), home.parent / "asked"
    shutil.copytree(home, twin)
    assert told == rebuilt(twin, now)
    shutil.rmtree(twin)


def both(home, tmp_path, old, steps, then=lambda home, first: None, ask=lambda home, now: None, **change):
    "The same notes and runs twice: with what is new alone, and with everything each time."
    add_memories(home, old)
    first = sv.run(at(home, **change), SAMPLE_NOW - timedelta(days=2))
    then(home, first)
    twin = tmp_path / "twin"
    shutil.copytree(home, twin)
    taken = []
    for k, new in enumerate(steps, 1):
        now = SAMPLE_NOW + timedelta(days=20 * k)
        for place in (home, twin):
            for some in (new[:len(new) // 2], new[len(new) // 2:]):
                if some: add_memories(place, some)
                if place == home: ask(home, now - timedelta(hours=1))
        result, short = tried(home, now, **change)
        taken.append(result if short else None)
        with closing(index.open_index(open_repo(twin))) as conn: index.remember(conn, "settled", None)
        sv.run(at(twin, **change), now)
        assert records(home) == records(twin), k
        assert tables(home) == tables(twin), k
    return first, taken


@pytest.mark.slow
def test_with_the_clusters_of_the_last_run(home, tmp_path, monkeypatch):
    known = []
    def kept(X, distance, before, at): known.append(before and len(before.names)); return near_clusters(X, distance, before, at)
    monkeypatch.setattr(phases, "_MANY", 1)
    replace_everywhere(monkeypatch, similarity_clusters, "near_clusters", kept)
    replace_everywhere(monkeypatch, neighbours, "reachable", partial(reachable, most=1))  # A component that is too large, as in a large repository
    memories = sorted(sample_memories(), key=lambda m: (m.timestamp, m.id))
    old, new = later(memories, 0.9)
    _, taken = both(home, tmp_path, old, [new[:20], new[20:]])
    assert None not in taken and tables(home) == rebuilt(home, SAMPLE_NOW)
    first, second = [n for n in known if n]
    assert known == [None, first, None, second, None] and 300 < first < second  # A look at everything asks for none, and keeps them as well
    def torn(path):
        with closing(index.open_index(open_repo(path))) as conn, conn: conn.execute("UPDATE near SET value = substr(value, 2)")
    torn(home)
    add_memories(home, [mem("Retries of the mail worker are counted in Redis", "Not in the job.", days_ago=-90)])
    assert tried(home, SAMPLE_NOW + timedelta(days=99))[1] and known[5:] == [None]
    with closing(index.open_index(open_repo(home))) as conn: kept = index.recalled_near(conn, at(home).embedder.name)
    assert len(KnownClusters.from_bytes(kept).names) > second


@pytest.mark.slow
@hypothesis_settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6))
def test_any_part_of_any_memories(tmp_path_factory, seed):
    rng, tmp_path = random.Random(seed), tmp_path_factory.mktemp("any")
    pool = [*story(), *rng.sample(sample_memories(), 60)]
    texts = rng.sample(pool, rng.randrange(5, 60))
    days = sorted(rng.sample(range(1, 4000), len(texts) + rng.randrange(20)), reverse=True)
    said = [replace(rng.choice(texts) if k >= len(texts) else texts[k], id="", commit_sha="0" * 40, timestamp=SAMPLE_NOW - timedelta(hours=h), places=())
            for k, h in enumerate(days)]
    rng.shuffle(said)
    git(tmp_path, "init", "-q", "-b", "main", "here")
    memories = [replace(m, id=f"mem_{k:05}", timestamp=SAMPLE_NOW - timedelta(hours=h)) for k, (m, h) in enumerate(zip(said, days))]
    old, new = later(memories, rng.choice((0.3, 0.6, 0.9)))
    half = rng.randrange(len(new) + 1)
    ask = partial(asked, rng)
    _, taken = both(tmp_path / "here", tmp_path, old, [new[:half], new[half:]], ask=ask, forgetting_enabled=rng.random() < 0.8)
    assert None not in taken


def taken_back(rng, home, first):
    "The first run is undone, or a part of what it made; some of what is then asked is answered."
    if not first.changed: return
    s = at(home)
    consolidation_status.undo(s, first.run_id, SAMPLE_NOW - timedelta(days=1, hours=12))
    if rng.random() < 0.3: return
    sv.run(s, SAMPLE_NOW - timedelta(days=1))
    w = open_writing(home, s.settings, clock=lambda: SAMPLE_NOW - timedelta(hours=20))
    for i in sorted(consolidation_scan.view(s.repo).state.reviews):
        if (x := rng.random()) < 0.6 and i in consolidation_scan.view(s.repo).state.reviews: rv.answer(w, i, "yes" if x < 0.3 else "no")
    sv.run(s, SAMPLE_NOW - timedelta(hours=12))


def afterwards(memories):
    "The same, one after the other, when all that the tests do by hand is done."
    return [replace(m, id="", timestamp=SAMPLE_NOW + timedelta(minutes=k)) for k, m in enumerate(memories)]


def written(rng, home, first):
    "People and agents write: what is merged, forgotten, replaced or changed by hand."
    w = open_writing(home, at(home).settings, clock=lambda: SAMPLE_NOW - timedelta(days=1))
    for k in range(rng.randrange(1, 5)):
        there = w.held().view.scan.memories if rng.random() < 0.5 else w.held().pool.memories  # Among all are copies, and what is replaced
        what, i = rng.choice(("merge", "merge", "forget", "replace", "change", "same")), rng.choice([m.id for m in there])
        try:
            if what == "merge": w.remember(f"Seen again, for the {k}th time: the mail worker {rng.random()}", merges=[i])
            elif what == "replace": w.remember(f"All else is over: queue number {rng.random()}", supersedes=[i])
            elif what == "same": w.remember(f"Said by a person to be the same, {rng.random()}", duplicate_of=i)
            elif what == "forget": w.forget(i)
            else: w.update(i, tags=(f"tag{k}",))
        except (BadFact, consolidation_plan.Guard): continue
    sv.run(at(home), SAMPLE_NOW - timedelta(hours=12))


@pytest.mark.slow
@hypothesis_settings(max_examples=2, deadline=None)
@given(st.integers(0, 10**6))
def test_after_much_was_written_by_hand(tmp_path_factory, seed):
    rng, tmp_path = random.Random(seed), tmp_path_factory.mktemp("any")
    git(tmp_path, "init", "-q", "-b", "main", "here")
    for k in ("name", "email"): git(tmp_path / "here", "config", f"user.{k}", "a@example.org")
    old, new = later([*story(), *rng.sample(sample_memories(), 80)], rng.choice((0.6, 0.8, 0.9)))
    old += [replace(m, id="", timestamp=SAMPLE_NOW - timedelta(days=3, minutes=k)) for k, m in enumerate(rng.choices(old, k=rng.randrange(30)))]
    new, half = afterwards(new), rng.randrange(len(new) + 1)
    again = [replace(m, id="", timestamp=SAMPLE_NOW + timedelta(days=50, minutes=k)) for k, m in enumerate(rng.sample(old, 30))]
    both(tmp_path / "here", tmp_path, old, [new[:half], new[half:], again], partial(written, rng), partial(asked, rng))


@pytest.mark.slow
@hypothesis_settings(max_examples=2, deadline=None)
@given(st.integers(0, 10**6))
def test_after_much_was_refused_or_taken_back(tmp_path_factory, seed):
    rng, tmp_path = random.Random(seed), tmp_path_factory.mktemp("any")
    git(tmp_path, "init", "-q", "-b", "main", "here")
    for k in ("name", "email"): git(tmp_path / "here", "config", f"user.{k}", "a@example.org")
    old, new = later([*story(), *rng.sample(sample_memories(), 80)], rng.choice((0.6, 0.8, 0.9)))
    again = [replace(m, id="", timestamp=SAMPLE_NOW + timedelta(days=50, minutes=k)) for k, m in enumerate(old[:9])]
    _, taken = both(tmp_path / "here", tmp_path, old, [*later(new, rng.random()), again], partial(taken_back, rng), partial(asked, rng))
    assert taken[1] and taken[2]


# What else may have happened

def append_to_head(home, memories):
    "As the plugin does: all of a session on the commit that is there."
    for m in memories: git(home, "notes", f"--ref=mem/{m.namespace}", "append", "-F", "-", input=note_text(m))


def tried(home, now=SAMPLE_NOW + timedelta(days=1), **change):
    "A run, and whether what is new was enough for it."
    whole = []
    def view(*a): whole.append(a); return consolidation_scan.view(*a)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(sv, "view", view)
        return sv.run(at(home, **change), now), not whole


def looked_at_whole(path, now):
    with closing(index.open_index(open_repo(path))) as conn: index.remember(conn, "base", {})
    sv.run(at(path), now)


@pytest.fixture
def settled(home):
    "A project with a commit, whose story is consolidated but for what came last."
    git(home, "commit", "-q", "--allow-empty", "-m", "work")
    old, new = later(story(), 0.9)
    append_to_head(home, old)
    sv.run(at(home), SAMPLE_NOW - timedelta(days=2))
    return home, new


@pytest.mark.slow
def test_somebody_writes_while_it_looks(settled, monkeypatch):
    "The soak found it, when a run, a sync and a write came together at its 40th step."
    (home, new), look = settled, sv.ConsolidationService.look
    append_to_head(home, new)
    def slowly(*a):
        plan = look(*a)
        if "The lake is frozen" not in {m.summary for m in consolidation_scan.view(open_repo(home)).scan.memories}:
            open_writing(home, at(home).settings, clock=lambda: SAMPLE_NOW).remember("The lake is frozen")
        return plan
    monkeypatch.setattr(sv.ConsolidationService, "look", slowly)
    result, short = tried(home)
    assert result.changed and not short and tables(home) == rebuilt(home, SAMPLE_NOW)
    assert "The lake is frozen" in {m.summary for m in consolidation_scan.view(open_repo(home)).scan.memories}


@pytest.mark.slow
def test_counts_of_another_clone_that_come_while_it_looks_bring_nothing_undone_back(settled):
    home, new = settled
    consolidation_status.undo(at(home), next(iter(consolidation_scan.view(open_repo(home)).state.runs)), SAMPLE_NOW - timedelta(days=1), confirmed=True)
    sv.run(at(home), SAMPLE_NOW)
    append_to_head(home, new)
    head, todo = git(home, "rev-parse", "HEAD").strip(), [1]
    access = index.access_append(mem("Somebody asked"), "another clone", 1, SAMPLE_NOW)
    def synced(phase):
        if phase.name == "PERSIST" and todo and todo.pop():
            store_writer.append(open_repo(home), lambda events: [replace(access, object=head)], SAMPLE_NOW)
    s = at(home)
    sv.run(sv.replace(s, progress=synced), SAMPLE_NOW + timedelta(days=1))
    assert not todo and tables(home) == rebuilt(home, SAMPLE_NOW + timedelta(days=1))


def nothing_whole(*a, **kw): raise AssertionError("all tables are made anew")


@pytest.mark.slow
def test_who_asks_between_two_runs_neither_waits_nor_makes_the_next_one_look_at_everything(settled, tmp_path):
    home, new = settled
    s, half = open_recall(home, at(home).settings, clock=lambda: SAMPLE_NOW), len(new) // 2
    with pytest.MonkeyPatch.context() as m:
        m.setattr(recall_service, "refresh_tables", nothing_whole)
        for part in (new[:half], new[half:]):
            append_to_head(home, part)
            assert part[-1].summary in {r.memory.summary for r in s.search(part[-1].summary, 3, count=False)}
    twin = tmp_path / "twin"
    shutil.copytree(home, twin)
    assert tables(home) == rebuilt(twin, SAMPLE_NOW)
    assert tried(home)[1] and tables(home) == rebuilt(home, SAMPLE_NOW)
    with closing(index.open_index(open_repo(twin))) as conn: index.remember(conn, "base", {})
    assert not tried(twin)[1] and records(home) == records(twin)
    append_to_head(home, [mem("Nobody said it before", "Quite new.", days_ago=-3)])
    other = open_recall(home, at(home, decay="power").settings, clock=lambda: SAMPLE_NOW)
    assert other.search("Nobody said it before", 1)[0].memory.summary == "Nobody said it before"
    assert tried(home)[1] and tables(home) == rebuilt(home, SAMPLE_NOW)


def remembered(home, **how):
    "As an agent does it."
    return open_writing(home, at(home).settings, clock=lambda: SAMPLE_NOW).remember("The lake is frozen", **how)


def learned(home): return min(m.id for m in consolidation_scan.view(open_repo(home)).scan.memories if m.namespace == "learnings")
def replaces(home): remembered(home, supersedes=[learned(home)])
def amended(home): remembered(home, duplicate_of=learned(home))
def long_ago(home): remembered(home, valid_from=SAMPLE_NOW - timedelta(days=80))
def withdrawn(home): consolidation_status.undo(at(home), remembered(home).run_id, SAMPLE_NOW, confirmed=True)
def tagged(home): open_writing(home, at(home).settings, clock=lambda: SAMPLE_NOW).update(remembered(home).memory_id, tags=["cold"])
def older(home): append_to_head(home, [mem("Found in an old notebook", "It was always so.", days_ago=200)])
def forgotten(home): consolidation_status.undo(at(home), next(iter(consolidation_scan.view(open_repo(home)).state.runs)), SAMPLE_NOW, confirmed=True)
def edited(home): git(home, "notes", "--ref=mem/decisions", "add", "-f", "-F", "-", input=note_text(mem("Another story", "All else is gone.", days_ago=1)))
def no_tables(home): shutil.rmtree(home / ".memory")
def no_ref(home): git(home, "update-ref", "-d", "refs/notes/mem/learnings")
def buried(home): append_to_head(home, [replace(mem("Gone", "Nobody needs it.", days_ago=0), status="tombstone")])
def other_seal(home): (home / ".git" / "gnc" / "seal.json").write_text('{"seal": "another"}')


def foreign(home):
    "Another clone's write, which came before ours."
    remembered(home)
    git(home, "notes", "--ref=mem-meta/v1", "append", "-m", "- " + encode({"id": "r_x", "kind": "wrote", "run": "run_x", "seq": 1, "subject": "mem_x"}), "HEAD")


def in_cache(change):
    "Something that is changed in the cache by hand."
    def spoil(home):
        with closing(index.open_index(open_repo(home))) as conn, conn: change(conn)
    return spoil


SPOILT = {f.__name__: f for f in (replaces, amended, long_ago, withdrawn, tagged, foreign, older, forgotten, edited, no_tables, no_ref, buried, other_seal)} | {
    "other tables": in_cache(lambda conn: index.remember(conn, "tables", "of something else")),
    "torn": in_cache(lambda conn: conn.execute("UPDATE mem_summaries SET value = '{'")),
    "meant": in_cache(lambda conn: index.remember(conn, "base", ["no", "base"]))}


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("what", SPOILT)
def test_what_cannot_be_told_from_what_is_new_is_looked_at_whole(settled, tmp_path, what):
    "By a run, and by whoever asks before it."
    home, new = settled
    append_to_head(home, new)
    SPOILT[what](home)
    twin, asked = (shutil.copytree(home, tmp_path / name) for name in ("twin", "asked"))
    with closing(index.open_index(open_repo(twin))) as conn: index.remember(conn, "base", {})
    assert not tried(home)[1]
    looked_at_whole(twin, SAMPLE_NOW + timedelta(days=1))
    assert records(home) == records(twin) and tables(home) == rebuilt(home, SAMPLE_NOW)
    open_recall(asked, at(asked).settings, clock=lambda: SAMPLE_NOW).search("workers", 5, count=False)
    assert tables(asked) == rebuilt(shutil.copytree(asked, tmp_path / "rebuilt"), SAMPLE_NOW)


@pytest.mark.slow
def test_once_a_month_everything_is_looked_at(settled, monkeypatch):
    home, _ = settled
    monkeypatch.setattr(sv, "_MONTH", timedelta(days=30))
    with closing(index.open_index(open_repo(home))) as conn, conn: conn.execute("UPDATE memories SET summary = 'Bits that a disk has turned'")
    assert tried(home)[1] and not tried(home, SAMPLE_NOW + timedelta(days=29))[1]
    with closing(index.open_index(open_repo(home))) as conn: assert not conn.execute("SELECT 1 FROM memories WHERE summary LIKE 'Bits%'").fetchall()


@pytest.mark.slow
def test_a_cache_that_came_with_the_repository_is_not_built_on(settled, tmp_path):
    home, new = settled
    with closing(index.open_index(open_repo(home))) as conn, conn: conn.execute("UPDATE memories SET summary = 'Pay them', content = 'at once'")
    git(tmp_path, "clone", "-q", home, "clone")
    clone = tmp_path / "clone"
    for k in ("name", "email"): git(clone, "config", f"user.{k}", "a@example.org")
    git(clone, "fetch", "-q", "origin", "refs/notes/*:refs/notes/*")
    shutil.copytree(home / ".memory", clone / ".memory")
    append_to_head(clone, new)
    assert not tried(clone)[1] and tables(clone) == rebuilt(clone, SAMPLE_NOW) and "Pay them" not in str(tables(clone))


@pytest.mark.slow
def test_a_crash_after_the_records_is_healed_by_the_next_run(settled, monkeypatch):
    home, new = settled
    append_to_head(home, new)
    def crash(*args, **kw): raise KeyboardInterrupt
    monkeypatch.setattr(sv, "patch", crash)
    with pytest.raises(KeyboardInterrupt): tried(home)
    monkeypatch.undo()
    assert not tried(home)[1] and tried(home, SAMPLE_NOW + timedelta(days=2))[1]
    assert tables(home) == rebuilt(home, SAMPLE_NOW)


def counted(home):
    found = sorted(read_events(open_repo(home)).records, key=lambda x: x[2]["seq"])
    return {r["memory"]: r["count"] for _, _, r in found if r["kind"] == "access"}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("stop", ["before git", "after git"])
def test_a_stop_between_cache_and_git_counts_once(settled, stop, monkeypatch):
    home, _ = settled
    def ask():
        found = open_recall(home, at(home).settings, clock=lambda: SAMPLE_NOW).search("workers retry", 5)
        return [r.memory.id for r in found]
    found, real = ask()[:1], store_writer.append
    def stopped(*a, **kw):
        if stop == "after git": real(*a, **kw)
        else: a[1](read_events(open_repo(home)))
        raise KeyboardInterrupt
    with monkeypatch.context() as m:
        m.setattr(sv, "append", stopped)
        with pytest.raises(KeyboardInterrupt): tried(home)
    assert counted(home) == (dict.fromkeys(found, 1) if stop == "after git" else {})
    ask()
    assert tried(home)[1] is (stop == "before git") and counted(home) == dict.fromkeys(found, 2)


@pytest.mark.slow
def test_asking_during_a_run_loses_no_count(settled, monkeypatch):
    home, _ = settled
    s, real = open_recall(home, at(home).settings, clock=lambda: SAMPLE_NOW), index.flush
    found = [s.search("workers retry", 5)[0].memory.id]  # What stands first counts
    other = open_recall(home, at(home).settings, clock=lambda: SAMPLE_NOW)
    def meanwhile(*a):
        due = real(*a)
        other.search("workers retry", 5)
        return due
    monkeypatch.setattr(sv, "flush", meanwhile)
    assert tried(home)[1] and counted(home) == dict.fromkeys(found, 1)
    monkeypatch.undo()
    assert tried(home)[1] and counted(home) == dict.fromkeys(found, 2) and tables(home) == rebuilt(home, SAMPLE_NOW)


@pytest.mark.slow
def test_what_a_judge_failed_at_is_tried_again(settled, monkeypatch):
    home, new = settled
    append_to_head(home, new)
    def broken(*a, **kw): raise RuntimeError("out of order")
    with monkeypatch.context() as m:
        replace_everywhere(m, judge, "weigh", broken)
        result, taken = tried(home)
    assert taken and "out of order" in result.errors[0] and not result.supersessions_detected
    again, taken = tried(home, SAMPLE_NOW + timedelta(days=2))
    assert not taken and again.supersessions_detected and not again.errors
    assert tables(home) == rebuilt(home, SAMPLE_NOW)
