"""`gnc doctor` as a health check: each degraded state is made for real, seen, told apart from the others, and gone when it is mended."""
import json
from datetime import timedelta

import pytest
from calls import gnc, new_repo, run
from git_notes_consolidation.health import doctor as healths
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.health.doctor import COMPONENTS, WORST, document, nagios_line
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import write_memories
from helpers import git, story

DAY = timedelta(days=1)


def state(home, now=SAMPLE_NOW, env=None, online=False, quick=False, **settings):
    "How a repository is."
    return healths.health(open_repo(home), load_settings(settings, env={}), env or {}, now, online, quick)


def part(home, name, **kw): return {c.name: c for c in state(home, **kw).components}[name]
def hurt(home, **kw): return {c.name: c.status for c in state(home, **kw).components if c.status != "healthy"}


@pytest.fixture
def home(tmp_path):
    "A repository after a run."
    made = new_repo(tmp_path / "r")
    write_memories(open_repo(made), story()[:6])
    run(made)
    return made


def test_a_repository_after_a_run_is_healthy_in_every_component(home):
    h = state(home)
    assert h.status == "healthy" and {c.name for c in h.components} == {*COMPONENTS}, [c for c in h.components if c.status != "healthy"]
    assert all(c.detail and not c.remedy and c.latency_ms >= 0 for c in h.components) and h.latency_ms >= max(c.latency_ms for c in h.components) > 0
    assert "last run was on 2026-11-01 12:00, 0 days ago" in part(home, "runs").detail


# The document and the exit codes


TEXT, STATE = {"type": "string"}, {"enum": ["unhealthy", "degraded", "healthy"]}


def things(required, **more):
    return {"type": "object", "required": required.split(), "properties": {k: more.get(k, TEXT) for k in (*required.split(), *more)}}


SCHEMA_1 = things("schema status at latency_ms components ok counts findings recoverable", schema={"const": "gnc.health/1"}, status=STATE,
                  latency_ms={"type": "number"}, ok={"type": "boolean"}, counts={"additionalProperties": {"type": "integer"}}, recoverable={"type": "array"},
                  findings={"items": things("area level what remedy where")},
                  components={"required": "git notes records index embedder llm runs hooks sync observability packages".split(),
                              "additionalProperties": things("status latency_ms detail remedy", status=STATE, latency_ms={"type": "number", "minimum": 0})})


@pytest.mark.slow
def test_the_document_fits_its_schema_with_every_kind_of_finding(home, tmp_path):
    "A monitor was written against these names; whoever takes one away makes it version 2."
    check = pytest.importorskip("jsonschema").Draft202012Validator(SCHEMA_1).validate
    (home / ".memory/consolidation.db").write_bytes(b"junk" * 100)
    for h in (state(home), state(home, llm_provider="openai"), state(home, quick=True), state(new_repo(tmp_path / "empty"))):
        d = json.loads(json.dumps(document(h)))
        check(d)
        assert d["ok"] == (d["status"] != "unhealthy") and d["status"] == min((c["status"] for c in d["components"].values()), key=WORST.index)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("broken, codes", [("", (0, 0)), ("degraded", (0, 1)), ("unhealthy", (1, 2))])
def test_exit_codes(home, broken, codes, monkeypatch):
    if broken == "degraded": (home / ".memory/consolidation.db").write_bytes(b"junk" * 100)
    if broken == "unhealthy":
        (home / "gnc.toml").write_text("embedder = 'minilm'\n")
        monkeypatch.setenv("MEMORY_EMBEDDING_MODEL_DIR", str(home / "nowhere"))
    plain, quick, nagios = gnc("doctor", "--json", repo=home), gnc("doctor", "--quick", repo=home), gnc("doctor", "--quick", "--nagios", repo=home)
    assert (plain.code, nagios.code) == codes and quick.code == plain.code and plain.json["status"] == (broken or "healthy")
    assert f"{(broken or 'healthy').capitalize()}: " in quick.out
    assert nagios.out.startswith({"": "GNC OK", "degraded": "GNC WARNING", "unhealthy": "GNC CRITICAL"}[broken]) and nagios.out.count("\n") == 1
    assert nagios.out.count("|") == 1 and "time=" in nagios.out.partition("|")[2]
    as_json = gnc("doctor", "--nagios", "--json", repo=home)
    assert as_json.code == codes[1] and as_json.json["schema"] == "gnc.health/1"


def test_text_from_outside_cannot_forge_a_line_or_a_graph(home):
    git(home, "config", "remote.x|unhealthy=0\x1b[31m.push", "refs/notes/mem/x:refs/notes/mem/x")
    h = state(home)
    line = nagios_line(h)
    assert line.count("|") == 1 and "\x1b" not in line and "\n" not in line
    assert not any("\x1b" in c.detail + c.remedy for c in h.components)


@pytest.mark.slow
def test_looking_changes_nothing_and_a_quick_look_reads_no_note(home, monkeypatch):
    files = {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}
    state(home), state(home, quick=True)
    assert files == {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}
    def never(*args): raise AssertionError("a note was read")
    monkeypatch.setattr("git_notes_consolidation.health.doctor.read_snapshot", never)
    assert state(home, quick=True).status == "healthy" and part(home, "notes", quick=True).detail == "6 notes, counted and not read."
    with pytest.raises(AssertionError): state(home)


# Degraded states


@pytest.mark.slow
def test_an_index_that_is_gone_torn_or_of_another_version(home):
    db = home / ".memory/consolidation.db"
    for p in db.parent.iterdir(): p.unlink()
    for quick in (False, True):
        gone = part(home, "index", quick=quick)
        assert gone.status == "degraded" and "cache is gone" in gone.detail and gone.remedy == "gnc consolidate"
    for junk in (b"not a database" * 100, b""):
        db.write_bytes(junk)
        assert part(home, "index").status == part(home, "index", quick=True).status == "degraded" and "cannot be used" in part(home, "index").detail
    run(home, now=SAMPLE_NOW + timedelta(hours=1))
    assert hurt(home, now=SAMPLE_NOW + DAY) == {}
