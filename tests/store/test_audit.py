"""The auditor: silent on what a run leaves behind, and it names every way in which that can be broken."""
import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import second_reader
from helpers import git
from hypothesis import given
from hypothesis import strategies as st
from worlds import WORLD, Note, check, in_memory, snapshot_of

from git_notes_consolidation.consolidation import service as consolidation_service
from git_notes_consolidation.consolidation import stores as service
from git_notes_consolidation.consolidation import status as consolidation_status
from git_notes_consolidation.consolidation import scan as consolidation_scan
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, as_utc, digest, mem
from git_notes_consolidation.core.models import EdgeType, MemoryEdge
from git_notes_consolidation.store import events as store_events
from git_notes_consolidation.store import reader as notes
from git_notes_consolidation.store import events as store_writer
from git_notes_consolidation.store.audit import audit, read_snapshot
from git_notes_consolidation.store.damage import Finding
from git_notes_consolidation.store.events import REFS
from git_notes_consolidation.store.git import open_repo

MEMORIES = [
    mem("ADR-001: Serve the API with Flask", "Small, and all of us know it.", days_ago=300),
    mem("ADR-009: Serve the API with FastAPI", "Supersedes ADR-001. Its async handlers halve the latency.", days_ago=40),
    mem("Deploys run on Fridays", "Nobody knows why.", days_ago=120, namespace="patterns"),
    mem("Deploys run on Fridays", "Nobody knows why.", days_ago=90, namespace="patterns"),
    mem("Deploys run on Fridays", "Nobody knows why.", days_ago=60, namespace="patterns"),
    *(mem(f"Retry limit of the {w} worker is {n}", f"The {w} worker gives up after {n} attempts and logs the job id.", days_ago=n, namespace="learnings")
      for w, n in (("mail", 13), ("report", 15), ("billing", 18)))]


def consolidated(home, memories, now=SAMPLE_NOW, **settings):
    "A repository of these memories after one run."
    home.mkdir(parents=True)
    git(home, "init", "--quiet", "--initial-branch=main")
    s = service.open_service(home, load_settings(settings, env={}))
    notes.write_memories(s.repo, memories)
    assert consolidation_service.run(s, now).changed
    return home


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    "A small repository that holds every kind of record; not to be written to."
    home = consolidated(tmp_path_factory.mktemp("audit") / "repo", MEMORIES, consolidation_threshold=0.3)
    s = service.open_service(home, load_settings(env={}))
    seen = next(m for m in consolidation_scan.view(s.repo).scan.memories if m.namespace == "patterns")
    store_writer.append(s.repo, lambda e: [store_events.access_append(seen, "here", 2, SAMPLE_NOW)], SAMPLE_NOW)
    extra = service.EdgeStore(s.repo).put(MemoryEdge(MEMORIES[2].id, MEMORIES[0].id, EdgeType.RELATED_TO), SAMPLE_NOW)
    consolidation_status.undo(s, extra, SAMPLE_NOW)
    return home


@pytest.fixture
def repo(template, tmp_path):
    return Path(shutil.copytree(template, tmp_path / "repo"))


# ---- what is right

@pytest.mark.slow
def test_a_consolidated_repository_is_right(template):
    r = audit(template)
    assert (r.ok, r.findings) == (True, ())
    assert r.checked["memories"] == len(MEMORIES) and r.checked["runs"] == 2 and r.checked["undos"] == 1
    there = check(*in_memory(*WORLD)).checked
    assert all(n or there[k] for k, n in r.checked.items()), "the examples below need every kind of record"


@pytest.mark.slow
def test_the_real_corpus_is_right(corpus_repo):
    r = audit(corpus_repo)
    assert r.ok and (r.checked["notes of the plugin"], r.checked["records in them"], r.checked["memories"]) == (317, 6299, 4271)
    consolidation_service.run(service.open_service(corpus_repo, load_settings(env={})), as_utc("2025-12-28"))
    r = audit(corpus_repo)
    assert r.findings == () and r.checked["live edges"] > 2700 and r.checked["live summaries"] > 50


@pytest.mark.slow
def test_it_reads_and_does_nothing_else(template):
    def everything(): return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in template.rglob("*")}
    before = everything()
    audit(template)
    assert everything() == before


# ---- what is broken

@pytest.fixture(scope="session")
def right(template):
    "The small repository's notes, to be broken in memory: the plugin's and ours."
    return right_of(template)


def right_of(home):
    seen = read_snapshot(open_repo(home)).notes
    return tuple([Note(ref, obj, path, seen.texts[blob]) for ref, rows in seen.places.items() if (ref in REFS.values()) == ours for obj, path, blob in rows]
                 for ours in (False, True))


def canonical(r):
    "A record as a line, whatever is in it."
    return "- " + json.dumps(r, ensure_ascii=False, sort_keys=True)


def in_lines(ours, store, change):
    "The notes with the lines of one store changed; a line goes with its object."
    rows = [(n.object, line) for n in ours if n.ref == REFS[store] for line in n.data.split(b"\n") if line]
    texts = {}
    for obj, line in change(rows): texts[obj] = texts.get(obj, b"") + line + b"\n"
    return [n for n in ours if n.ref != REFS[store]] + [Note(REFS[store], obj, obj, text) for obj, text in texts.items()]


def restamp(store, r):
    "The record under the name that its content makes."
    return r | {"id": digest("r", store, {k: v for k, v in r.items() if k != "id"})[:18]} if r["id"].startswith("r_") else r


def in_record(ours, store, pick, change, stamp=True, beside=False):
    "The notes with the first record of a store that `pick` likes changed (or another one beside it); the new content gets its right name, or keeps the old."
    def each(rows):
        done = False
        for obj, line in rows:
            r = json.loads(line[2:])
            if pick(r) and not done:
                done = True
                if beside: yield obj, line
                line = canonical(restamp(store, change(r)) if stamp else change(r)).encode()
            yield obj, line
        assert done, "no record to change"
    return in_lines(ours, store, each)


def expect(report, level, what):
    "There is this finding, and no worse one."
    assert any(f.level == level and re.search(what, f.what) for f in report.findings), [str(f) for f in report.findings]
    assert report.ok == (level == "note")
    assert all(str(f.where).startswith("refs/") for f in report.findings) and json.dumps([asdict(f) for f in report.findings])
    return report.findings


def line(text): return lambda rows: [*rows, (rows[0][0], text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))]


RUN = '- {"at": "2026-11-01", "id": "x", "kind": "run", %s"seq": 9}'
UNDO = RUN.replace('"run"', '"undo"')
LINES = [
    *((line(x), "no record is left out") for x in ("- {oops", "- " + "[" * 90_000, b'- {"id": "\xff"}', RUN % '"n": "\\ud83d", ', RUN % '"n": NaN, ')),
    (lambda rows: [*rows, (rows[0][0], rows[0][1].replace(b'"at": "2026', b'"at": "2025'))], "than its namesake"),
    *((line(x), "no sound record") for x in ('- {"id": "x", "kind": "run", "seq": 9}', (RUN % "").replace("2026-11-01", "soon"), UNDO % "")),
    *((line((UNDO % "")[:-1] + f', "targets": ["{x}"]}}'), "no such run came before it") for x in "xy")]


@pytest.mark.parametrize("case", LINES)
def test_a_line(right, case):
    theirs, ours = right
    change, what = case
    expect(check(theirs, in_lines(ours, "runs", change)), "broken", what)


def kind(name, **kw): return lambda r: r["kind"] == name and all(r.get(k) == v for k, v in kw.items())


def put(**kw): return lambda r: r | kw


def turn(r):
    "An edge the other way round, under its right name."
    return ends(r, r["target"], r["source"])


def ends(r, source, target, **kw):
    return r | {"source": source, "target": target, "subject": digest("edge", kw.get("type", r["type"]), source, target)} | kw


def value(**kw): return lambda r: r | {"value": r["value"] | kw}


def sources(change): return lambda r: value(source_memory_ids=change(r["value"]["source_memory_ids"]))(r)


def first_quote(**kw):
    def change(r):
        q, *rest = r["value"]["quotes"]
        return r | {"value": r["value"] | {"quotes": [q | {k: v(q) if callable(v) else v for k, v in kw.items()}, *rest]}}
    return change


FLASK, SECOND, THIRD = MEMORIES[0].id, MEMORIES[3].id, MEMORIES[4].id  # What is superseded, and the two that repeat
SUPERSEDES, REPEAT, SUMMARY, TIER, ACCESS = kind("edge", type="supersedes"), kind("edge", type="duplicate_of"), kind("summary"), kind("tier"), kind("access")
LAST_REPEAT = kind("edge", type="duplicate_of", source=THIRD)
UNSOUND = [
    ("edges", SUPERSEDES, lambda r: ends(r, r["source"], r["source"])), ("edges", SUPERSEDES, put(subject="edge_other")),
    ("edges", SUPERSEDES, put(weight="much")), ("edges", SUPERSEDES, put(edge_kind="half")), ("edges", SUPERSEDES, put(at="soon")),
    ("edges", SUPERSEDES, put(live="no")), ("summaries", SUMMARY, value(source_memory_ids=[], quotes=[])),
    ("summaries", SUMMARY, value(quotes=None)), ("summaries", SUMMARY, value(id="sum_" + "a" * 26)),
    ("summaries", SUMMARY, value(confidence={"overall": 1.2})), ("meta", TIER, put(tier="tepid")), ("meta", TIER, put(score=1.1)),
    ("meta", TIER, put(memory=None)), ("meta", ACCESS, put(count=2.5))]
RECORDS = [
    ("edges", SUPERSEDES, lambda r: ends(r, r["source"], "mem_gone"), "broken", "ends at mem_gone, and no note holds that"),
    ("edges", SUPERSEDES, turn, "broken", "from the older"),
    ("edges", SUPERSEDES, put(span="supersedes everything"), "broken", "does not say: 'supersedes everything'"),
    ("edges", REPEAT, lambda r: ends(r, r["source"], FLASK), "broken", "their texts differ"),
    ("edges", LAST_REPEAT, lambda r: ends(r, THIRD, SECOND), "broken", "which is a repeat itself"),
    ("edges", SUPERSEDES, put(run="run_gone"), "broken", "says supersessions_detected 1, and 0 are there"),
    ("edges", REPEAT, put(live=False), "broken", "says duplicates_found 2, and 1 are there"),
    ("summaries", SUMMARY, sources(lambda ids: [*ids, "mem_gone"]), "broken", "mem_gone, which is in no note"),
    ("summaries", SUMMARY, first_quote(start=lambda q: q["start"] + 1), "broken", "which does not stand at"),
    ("summaries", SUMMARY, first_quote(text="", end=lambda q: q["start"]), "broken", "quotes '', which does not stand"),
    ("summaries", SUMMARY, first_quote(memory_id=FLASK, field="summary", start=0, end=3, text="ADR"), "broken", "quotes 'ADR'"),
    ("summaries", SUMMARY, put(live=False), "broken", "says summaries_created 1, and 0 are there"),
    ("meta", TIER, put(memory="mem_gone"), "note", "No note holds these any more.*mem_gone"),
    ("runs", kind("undo"), put(seq=1), "broken", "no such run came before it")]


@pytest.mark.parametrize("case", [*RECORDS, *((*x, "broken", "is no sound") for x in UNSOUND)])
def test_a_record(right, case):
    theirs, ours = right
    store, pick, change, level, what = case
    expect(check(theirs, in_record(ours, store, pick, change)), level, what)


@pytest.mark.parametrize("store", ["meta", "edges", "summaries"])
def test_a_record_that_was_altered(right, store):
    "Something that nothing else would notice."
    theirs, ours = right
    changed = in_record(ours, store, lambda r: "run" in r, put(reason="because"), stamp=False)
    assert len(expect(check(theirs, changed), "broken", "was altered: its content makes the name r_")) == 1


def test_supersession_that_goes_round(right):
    theirs, ours = right
    expect(check(theirs, in_record(ours, "edges", SUPERSEDES, turn, beside=True)), "broken", "Supersession goes round: mem_.* → mem_.* → mem_")


def test_a_run_that_was_cut_off(right):
    "Without its own record a run is nothing: no edge is live, and nothing is broken."
    theirs, ours = right
    r = check(theirs, in_lines(ours, "runs", lambda rows: [x for x in rows if b"supersessions_detected" not in x[1]]))
    assert r.ok and r.checked["live edges"] == r.checked["live summaries"] == 0


# ---- what is broken in git

@pytest.mark.parametrize("store", ["meta", "edges", "summaries"])
def test_a_ref_that_was_not_fetched(repo, store):
    git(repo, "update-ref", "-d", REFS[store])
    expect(audit(repo), "broken", "says .*, and 0 are there")


def test_a_blob_that_is_missing(repo):
    "As in a partial clone. What was not looked at cannot be called right."
    tree = git(repo, "mktree", "--missing", input=f"100644 blob {'12' * 20}\t{'ab' * 20}\n")
    git(repo, "update-ref", "refs/notes/mem/reviews", tree)
    assert any(f.where.endswith("ab" * 20) for f in expect(audit(repo), "broken", "was not checked"))


# ---- two implementations, one answer


PIECES = [b"---\n", b"--- \n", b"---\r\n", b"---", b"type: x\n", b"timestamp: 2026-01-01\n", b"timestamp: '2026-01-01T10:00:00+02:00'\n",
          b"timestamp: soon\n", b"summary: s\n", b"summary: [\n", b"summary: \"\\ud800\"\n", b"tags: [a]\n", b"escape: \\\n",
          b"\\---\n", b" \\\\--- \n", "\u2003\\---\u2003\n".encode(), b"valid_from: 2026-02-01\n", b"valid_from: lately\n", b"text\n", b"\n", b"\xff", b"- a\n",
          b" \t\n", b"\r\n", "é\u2028\n".encode()]
HEAD = b"---\ntype: x\ntimestamp: 2026-01-01\nsummary: s\n---\n"
ESCAPED = HEAD[:-4] + b"escape: \\\n---\n"


@given(st.lists(st.sampled_from([*PIECES, HEAD, HEAD, ESCAPED]), max_size=14).map(b"".join))
def test_both_readers_read_the_same_memories(data):
    ours, problems = notes.parse_note(data)
    theirs, odd = second_reader.note_memories(data)
    assert [(m.stamp, m.summary, m.body) for m in theirs] == [(r.front["timestamp"], r.front["summary"], r.body) for r in ours]
    assert odd == sorted(p.offset for p in problems)


@pytest.mark.parametrize("made", [lambda home: read_snapshot(open_repo(home)), lambda home: snapshot_of(*in_memory(*WORLD))])
def test_both_folds_say_the_same(template, made):
    s = made(template)
    held, back = second_reader.fold([r for _, r in s.rows])
    assert back == s.state.undone and back
    for kind, of in (("tier", s.state.tiers), ("edge", s.state.edges), ("summary", s.state.summaries), ("review", s.state.reviews), ("op", s.state.operations)):
        assert set(held.get(kind, {})) == set(of)
    assert held["tier"] == s.state.tiers


JUNK = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from([m.id for m in MEMORIES]),
                    lambda x: st.lists(x, max_size=2) | st.dictionaries(st.sampled_from(["id", "quotes", "start", "confidence"]), x, max_size=2), max_leaves=4)


@pytest.mark.slow
@given(st.data())
def test_no_record_is_so_odd_that_the_audit_stops(right, data):
    "Any field of any record may hold anything; what comes out is findings that can be printed."
    theirs, ours = right
    more = in_memory(*WORLD)
    read = [(n.ref, json.loads(x[2:])) for n in (*ours, *more[1]) for x in n.data.decode().split("\n") if x]
    by = {(ref, r["kind"]): r for ref, r in read} | {("runs", i): r for i, (_, r) in enumerate(read) if r["kind"] in ("run", "undo")}
    for _ in range(data.draw(st.integers(1, 3))):
        r = data.draw(st.sampled_from(list(by.values())))
        inner = r["value"] if isinstance(r.get("value"), dict) and r["value"] and data.draw(st.booleans()) else r
        inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(JUNK)
    broken = [Note(REFS.get(ref, ref), f"{i:040}", "", canonical(r).encode("utf-8", "surrogatepass")) for i,
              ((ref, _), r) in enumerate(by.items())]
    found = check([*theirs, *more[0]], broken).findings
    assert found and all(isinstance(f, Finding) and str(f).encode() for f in found) and json.dumps([asdict(f) for f in found])
