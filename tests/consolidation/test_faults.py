"""Git, SQLite, the disk and the clock fail, git once at each call: nothing is lost, one line says what happened, and the next run heals.

Here a sample of the calls; `make faults` tries every one (GNC_LONG=1).
"""
import json
import os
import random
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from calls import COMMAND, Said, gnc, holds, new_repo, state_of
from faulty_git import KINDS, faulty_git
from git_notes_consolidation.store import audit, cache as index, git as service, tables as store_tables
from git_notes_consolidation.consolidation import service as sv
from git_notes_consolidation.session import fast_start as starting
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.store.git import MEM, note_paths, open_repo, tips
from git_notes_consolidation.store.events import REFS
from git_notes_consolidation.store.reader import note_text, read_memories, write_memories
from git_notes_consolidation.core.runtime import write_ahead
from helpers import add_memories, git, refs, replace_everywhere, story

pytestmark = pytest.mark.slow

LONG = bool(os.environ.get("GNC_LONG"))
EARLIER = SAMPLE_NOW - timedelta(days=15)
NEW = "Mail is sent by Postmark\n\nReplaces “The mail worker retries 3 times”."
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


# Every call of git


def clone(home, name):
    for key, value in (("user.name", name), ("user.email", f"{name}@example.invalid"), ("gc.auto", "0")): git(home, "config", key, value)
    return home


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    "A clone with a run behind it, new memories since and a hub that knows another run: each command has something to do."
    place = tmp_path_factory.mktemp("faults")
    old, new = ([m for m in story() if (m.timestamp <= EARLIER) == early] for early in (True, False))
    home = clone(new_repo(place / "home"), "One")
    write_memories(open_repo(home), old)
    git(place, "init", "-q", "--bare", "--template=", "hub")
    git(home, "remote", "add", "origin", "../hub")
    assert gnc("consolidate", repo=home, now=EARLIER).code == 0
    git(home, "push", "-q", "origin", "main", "refs/notes/*:refs/notes/*")
    other = clone(Path(shutil.copytree(home, place / "other")), "Two")
    assert gnc("remember", "The other clone has a cat", repo=other, now=EARLIER + timedelta(days=1)).code == 0
    git(home, "fetch", "-q", other, "refs/notes/mem/*:refs/notes/mem/*")  # Its memory is here, and what it says of it only in the hub
    assert gnc("sync", repo=other, now=EARLIER).code == 0
    shutil.rmtree(other)
    add_memories(home, new)
    git(home, "gc", "-q"); git(place / "hub", "gc", "-q")
    return place


def named(home, summary): return next(m.id for m in read_memories(open_repo(home)).memories if m.summary == summary)


COMMANDS = {"consolidate": lambda home: ["consolidate"], "undo": lambda home: ["undo", [*state_of(home).runs][0], "--yes"],
            "remember": lambda home: ["remember", NEW], "forget": lambda home: ["forget", named(home, "About the harbour")], "sync": lambda home: ["sync"],
            "recall": lambda home: ["recall", "worker retries"], "inject": lambda home: ["inject"], "status": lambda home: ["status"]}
READERS = ("recall", "inject", "status")


class World:
    "What is in a repository: memories, what holds, and how many runs and operations say so. Their names depend on what else was there."
    def __init__(self, home):
        state = state_of(home)
        self.memories = {m.id: m.text for m in read_memories(open_repo(home)).memories}
        self.says = holds(state), len(state.runs), len(state.undone), len(state.operations), state.accesses, state.fields

    def __eq__(self, other): return (self.memories, self.says) == (other.memories, other.says)


def copied(template, place):
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(template, place)
    return place / "home"


def called(home, args, now=SAMPLE_NOW):
    "A command as a process would end: what it lets through is a traceback."
    try: return gnc(*args, repo=home, now=now)
    except Exception as e: return Said(1, "", f"Traceback: {type(e).__name__}: {e}")


def ended_well(done, codes=(0, 1)):
    "What is wrong with how a command ended."
    if done.code not in codes: yield f"exit code {done.code}: {done.err}"
    elif "Traceback" in done.err: yield done.err
    elif done.code and (done.err.count("\n") != 1 or not done.err.startswith("gnc: ") or len(done.err) < 12): yield f"says {done.err!r}"


def sound(home):
    "Errors of an audit, and leftovers that only the next run under the lock removes."
    yield from (str(f) for f in audit.audit(home).findings if f.level == "broken")


def clean(home):
    yield from sound(home)
    common = open_repo(home).common_dir
    yield from (f"{p.name} is left" for p in (common / "refs" / "notes").rglob("*.lock"))
    yield from (f"{ref} is left" for ref in tips(open_repo(home), "refs/gnc/tmp/"))


def superseded(world): return {e[:3] for e in world.says[0][1] if e[2] == "supersedes"}


def healed(name, home, args, new):
    "The same again without a fault, where it is not done, and then a run: what differs from the undisturbed."
    if World(home) != new:
        done = called(home, args)
        if name != "undo" or "taken back already" not in done.err: yield from ended_well(done, (0,))
    if name != "remember" and (World(home).says[0], World(home).memories) != (new.says[0], new.memories): yield "heals to something else"
    yield from ended_well(called(home, ["consolidate"]), (0,))
    now = World(home)
    if name == "remember":  # Its memory came without what was to be said of it: the run says that
        if now.memories != new.memories: yield "has other memories"
        if not superseded(new) <= superseded(now): yield f"never found {superseded(new) - superseded(now)}"
    yield from clean(home)


def examined(name, home, args, done, old, new, kind):
    "What is wrong after a command with one fault."
    yield from ended_well(done)
    now = World(home)
    if not now.memories.items() >= old.memories.items(): yield "memories are lost"
    if now.memories not in (old.memories, new.memories): yield "memories are neither old nor new"
    if now.says[0] not in (old.says[0], new.says[0]): yield "neither the old state nor the new"
    if done.code == 0 and name not in READERS and now.says[0] != new.says[0]: yield "it said that all was well"
    yield from sound(home)
    if name not in READERS: yield from healed(name, home, args, new)


def sample(name, calls):
    "Kind of fault and call. Where something is written every kind, where something is read a few; all of all in the long profile."
    if LONG: return [(kind, k) for kind in KINDS for k in range(1, len(calls) + 1)]
    rng, writes = random.Random(name), [k for k, c in enumerate(calls, 1) if any(w in f" {c} " for w in (" fast-import ", " update-ref ", " push ", " fetch "))]
    some = [(kind, rng.choice(writes)) for kind in KINDS if writes and kind != "slow"]
    return some[len(name) % 3::3] + [(kind, rng.randint(1, len(calls))) for kind in ("cut short", *(["fails"] if name in READERS else []))]


@pytest.mark.skipif(os.name == "nt", reason="the faulty git is a shell script")
@pytest.mark.parametrize("name", COMMANDS)
def test_git_fails_once_at_a_call(template, tmp_path, name):
    with faulty_git(tmp_path / "bin") as shim:
        home = copied(template, tmp_path / "w")
        args, old = COMMANDS[name](home), World(home)
        shim.set(0, "fails")
        assert called(home, args).code == 0
        calls, new, wrong = shim.calls, World(home), []
        for kind, k in sample(name, calls):
            home = copied(template, tmp_path / "w")
            shim.set(k, kind)
            done = called(home, args)
            shim.set(0, kind)
            wrong += [f"{kind} at {k} ({calls[k - 1][:80]}): {what}" for what in examined(name, home, args, done, old, new, kind)]
    assert wrong == []


@pytest.mark.skipif(os.name == "nt", reason="the faulty git is a shell script")
def test_a_session_starts_whatever_git_does(template, tmp_path):
    home = copied(template, tmp_path / "w")
    event, env = json.dumps({"cwd": str(home), "session_id": "s"}), {"HOOK_CONSOLIDATION_ENABLED": "false"}
    with faulty_git(tmp_path / "bin") as shim:
        shim.set(0, "fails")
        whole, _ = starting.session_start(event, env)
        n = len(shim.calls)
        for kind in KINDS if LONG else ("mute", "killed at half", "cut short"):
            for k in range(1, n + 1):
                shim.set(k, kind)
                answer, why = starting.session_start(event, env)
                assert (json.loads(answer).keys() <= {"continue", "hookSpecificOutput", "systemMessage"}) and all("\n" not in line for line in why), (kind, k)
        shim.set(0, kind)
        told = json.loads(starting.session_start(event, env)[0])
        assert n >= 2 and told["hookSpecificOutput"] == json.loads(whole)["hookSpecificOutput"]


@pytest.mark.skipif(os.name == "nt", reason="the faulty git is a shell script")
def test_half_an_answer_is_not_taken_for_the_whole(template, tmp_path):
    "Half a list of notes, or half of their contents, would end what the other half says: the run fails, or comes to what it came to."
    once, failed = copied(template, tmp_path / "once"), 0
    with faulty_git(tmp_path / "bin") as shim:
        shim.set(0, "fails")
        assert called(once, ["consolidate"]).code == 0
        for k in [n for n, c in enumerate(shim.calls, 1) if " ls-tree " in c or " cat-file " in c][:4 if not LONG else None]:
            home = copied(template, tmp_path / "w")
            before = refs(home)
            shim.set(k, "cut short")
            done = called(home, ["consolidate"])
            shim.set(0, "fails")
            if done.code: assert (done.code, "broke off in the middle of its answer" in done.err, refs(home)) == (1, True, before), done
            else: assert holds(state_of(home)) == holds(state_of(once)), k
            failed += done.code
    assert failed


# The disk


@contextmanager
def small_disk(place, size="6m"):
    "A filesystem of its own, where we may mount one."
    if not (ROOT and shutil.which("mount")): pytest.skip("only root can mount a small disk")
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], capture_output=True).returncode: pytest.skip("no disk can be mounted here")
    try: yield place
    finally: subprocess.run(["umount", "-l", place], check=True)


ROOM = (0, 4, 8, 16, 32, 64, 96, 128, 192, 224, 256, 300, 400)  # kB


@pytest.mark.parametrize("name, free", [(n, kb) for n in ("consolidate", "remember", "undo", "recall")
                                        for kb in (ROOM if LONG else (16, 256) if n == "consolidate" else (32,))])
def test_a_full_disk(template, tmp_path, name, free):
    with small_disk(tmp_path / "disk") as disk:
        home = copied(template, disk / "w")
        args, old = COMMANDS[name](home), World(home)
        room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
        (disk / "fill").write_bytes(bytes(room - 1024 * free))
        done = called(home, args)
        now = World(home)
        assert [*ended_well(done)] == [] and now.memories.items() >= old.memories.items(), done
        assert done.code == 0 or now.says[0] == old.says[0]
        (disk / "fill").unlink()
        assert [*sound(home)] == [] and (now != old or called(home, args).code == 0) and called(home, ["consolidate"]).code == 0 and [*clean(home)] == []


def test_a_run_has_happened_though_the_cache_could_not_follow(template, tmp_path, monkeypatch):
    home = copied(template, tmp_path / "w")
    def full(*a, **kw): raise sqlite3.OperationalError("database or disk is full")
    with monkeypatch.context() as m:
        replace_everywhere(m, store_tables, "refresh", full)
        m.setattr(sv, "patch", full)
        done = gnc("consolidate", "--json", repo=home)
        assert done.code == 0 and done.json["warnings"][-1].startswith("the cache is not up to date (database or disk is full); nothing is lost")
        assert called(home, ["undo", done.json["run_id"]]).code == 0
        assert called(home, ["recall", "worker"]).err.startswith("gnc: the cache ")
    assert gnc("recall", "worker", repo=home).code == 0 and gnc("consolidate", repo=home).code == 0


# SQLite


@pytest.fixture(scope="module")
def cached(template, tmp_path_factory):
    "The clone after a run and a recall: a full cache, with an access that waits."
    place = tmp_path_factory.mktemp("cached")
    home = copied(template, place / "w")
    assert gnc("consolidate", repo=home).code == gnc("recall", "retry limit", repo=home).code == 0
    return place / "w"


def db_of(home): return index.index_path(open_repo(home))


def goes_on(home, *first):
    "Every command ends well, and after the next run everything is answered as from a cache made anew; memories come in between."
    before = World(home)
    for name in first or ("recall", "status", "remember", "consolidate"):
        yield from (f"{name}: {what}" for what in ended_well(called(home, COMMANDS[name](home))))
    add_memories(home, [mem("Afterwards there was a swan", days_ago=0.1)])
    if not World(home).memories.items() >= before.memories.items(): yield "memories are lost"
    for args in (["consolidate"], ["recall", "swan"]): yield from ended_well(called(home, args), (0,))
    there = gnc("recall", "worker retries", "--json", repo=home).json
    shutil.rmtree(home / ".memory")
    if gnc("recall", "worker retries", "--json", repo=home).json != there: yield "answers differently without its cache"
    yield from clean(home)


def test_a_cache_that_is_damaged_anywhere(cached, tmp_path):
    "A page is overwritten, or bits of it are turned: SQLite knows no checksums and finds the one at once, the other when it reads a row, or never."
    raw, wrong = db_of(cached / "home").read_bytes(), []
    pages = range(len(raw) // 4096)
    rng = random.Random(5)
    for how in ("page", "bits"):
        for p in pages if LONG else sorted({0, 23, *rng.sample(pages, 1)}):
            home, b = copied(cached, tmp_path / "w"), bytearray(raw)
            if how == "page": b[4096 * p + 100 * (p == 0):4096 * (p + 1)] = bytes([165]) * (4096 - 100 * (p == 0))
            for i in rng.sample(range(4096), 8 if how == "bits" else 0): b[4096 * p + i] ^= 0xff
            for x in db_of(home).parent.glob("consolidation.db*"): x.unlink()
            db_of(home).write_bytes(b)
            wrong += [f"{how} {p}: {what}" for what in goes_on(home, rng.choice(("recall", "status", "remember", "consolidate")))]
    assert wrong == []


@pytest.mark.parametrize("column, value", [("meta.value", "not json"), ("vectors.ids", b"[\xff"), ("vectors.vectors", b"odd"), ("memories.timestamp", "never"),
                                           ("memories.tier", "lukewarm"), ("accesses.at", "once"), ("accesses.memory_id", b"\xff\xfe"),
                                           ("mem_summaries.source_memory_ids", "{"), ("memories.copies", b"\xc3")])
def test_a_row_that_says_nothing(cached, tmp_path, column, value):
    home, (table, name) = copied(cached, tmp_path / "w"), column.split(".")
    with closing(sqlite3.connect(db_of(home))) as conn, conn:
        said = value if isinstance(value, str) else f"CAST(x'{value.hex()}' AS TEXT)"
        conn.execute(f"UPDATE OR IGNORE {table} SET {name} = " + ("?" if isinstance(value, str) else said), (value,) if isinstance(value, str) else ())
    assert [*goes_on(home, "recall" if "mem" in table else "consolidate")] == []


def test_a_write_ahead_log_that_is_damaged(cached, tmp_path):
    "The log that a killed process leaves is read up to its first bad frame; the rest is as if it had not been written."
    home = copied(cached, tmp_path / "w")
    conn = sqlite3.connect(db_of(home))  # Open: the log stays
    with conn: conn.execute("INSERT OR REPLACE INTO meta VALUES ('tables', '\"other\"')")
    wal, shm = (Path(f"{db_of(home)}-{x}").read_bytes() for x in ("wal", "shm"))
    main = db_of(home).read_bytes()
    conn.close()
    for at in (0, 20, 40, len(wal) // 2, len(wal) - 1)[::1 if LONG else 4]:
        home = copied(cached, tmp_path / "w")
        db_of(home).write_bytes(main)
        Path(f"{db_of(home)}-wal").write_bytes(wal[:at] + bytes([wal[at] ^ 0xff]) + wal[at + 1:])
        Path(f"{db_of(home)}-shm").write_bytes(shm)
        assert [*goes_on(home, "recall")] == [], at


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_cache_that_another_program_holds(cached, tmp_path, monkeypatch, how):
    "Nobody waits for ever; what a run has to say is said, and what a recall found is shown."
    home = copied(cached, tmp_path / "w")
    add_memories(home, [mem("While it was held there was a swan", days_ago=0.1)])
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **kw: real(*a, **(kw | {"timeout": 0.05})))
    monkeypatch.setattr(index, "write_ahead", lambda conn, seconds: write_ahead(conn, 0.1))
    with closing(real(db_of(home), isolation_level=None)) as other:
        if how == "EXCLUSIVE": other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute(f"BEGIN {how}"); other.execute("UPDATE meta SET value = value")
        done = gnc("consolidate", "--json", repo=home)
        assert done.code == 0 and len(state_of(home).runs) == len(state_of(cached / "home").runs) + bool(done.json["run_id"])
        for name in ("recall", "status", "inject", "remember", "undo"): assert [*ended_well(called(home, COMMANDS[name](home)))] == [], name
        other.execute("ROLLBACK")
    assert [*goes_on(home, "recall")] == []


@pytest.mark.parametrize("version", [1, 2, 3, index.SCHEMA + 1, 2**31 - 1])
def test_a_cache_of_another_schema(cached, tmp_path, version):
    "An older one with fewer tables and columns, a newer one with more: it is thrown away, but for the accesses that wait."
    home = copied(cached, tmp_path / "w")
    with closing(sqlite3.connect(db_of(home))) as conn, conn:
        if version < index.SCHEMA:
            for view, in conn.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall(): conn.execute(f"DROP VIEW {view}")
            for table in ("operations", "mem_summaries"): conn.execute(f"DROP TABLE {table}")
            conn.execute("DROP INDEX memories_chain")
            for column in ("holds_until", "holds_from", "supersession_chain_id"): conn.execute(f"ALTER TABLE memories DROP COLUMN {column}")
        else: conn.execute("CREATE TABLE of_tomorrow (id TEXT)"); conn.execute("ALTER TABLE memories ADD COLUMN mood TEXT")
        conn.execute(f"PRAGMA user_version = {version}")
        waits = {i for i, in conn.execute("SELECT memory_id FROM accesses")}
    assert gnc("consolidate", repo=home).code == 0 and waits and waits <= set(state_of(home).accesses)
    assert [*goes_on(home, "recall", "status")] == []


@pytest.mark.skipif(not ROOT or not shutil.which("setpriv"), reason="root may write everywhere, and cannot be held back here")
@pytest.mark.parametrize("what", ["refs/notes", ".memory", *(["objects", "gnc", "index.db of the plugin"] if LONG else [])])
def test_nothing_may_be_written(cached, tmp_path, what):
    home = copied(cached, tmp_path / "w")
    add_memories(home, [mem("Where nothing may be written there was a swan", days_ago=0.1)])
    old, bound = World(home), ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    if what.startswith("index.db"): (home / ".memory" / "index.db").write_bytes(b"x"); (home / ".memory" / "index.db").chmod(0)
    place = home / ".memory" if what == ".memory" or what.startswith("index.db") else home / ".git" / what
    for p in [place, *place.rglob("*")] if not what.startswith("index.db") else (): p.chmod(0o555 if p.is_dir() else 0o444)
    begin, now = time.monotonic(), SAMPLE_NOW.isoformat()
    said = [Said(d.returncode, d.stdout, d.stderr) for args in (["consolidate"], ["recall", "swan"], ["status"]) for d in
            [subprocess.run([*bound, *COMMAND, "--repo", home, "--now", now, *args], capture_output=True, text=True)]]
    assert time.monotonic() - begin < 25  # No race, so nobody tries again for half a minute
    for p in [place, *place.rglob("*")]: p.chmod(0o755 if p.is_dir() else 0o644)
    assert [x for d in said for x in ended_well(d)] == [] and said[2].code == 0, said
    assert said[0].code == (0 if place.name == ".memory" else 1) and World(home).memories == old.memories
    assert called(home, ["consolidate"]).code == 0 and [*clean(home)] == []


# Objects and refs


def loose(home, obj):
    "The file of an object; unpacked, if it has to be."
    packs = [*(home / ".git/objects/pack").glob("*.pack")]
    moved = [shutil.move(p, home / p.name) for p in packs]
    for p in (home / ".git/objects/pack").glob("*"): p.chmod(0o644); p.unlink()
    for p in moved: subprocess.run(["git", "unpack-objects", "-q"], cwd=home, stdin=open(p, "rb"), check=True); os.unlink(p)
    return home / ".git/objects" / obj[:2] / obj[2:]


def an_object(home, what):
    "One of ours or of the plugin's: a note, a directory, a commit."
    ref = MEM + "decisions" if what.startswith("memory") else REFS["runs"] if "run" in what else REFS["edges"]
    tip = tips(open_repo(home), ref)[ref]
    return note_paths(open_repo(home), tip)[0][2] if "note" in what else git(home, "rev-parse", f"{tip}^{{tree}}") if "tree" in what else tip


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "turned"])
@pytest.mark.parametrize("what", ["memory note", "memory tree", "memory commit", "edge note", "edge tree", "run note"])
def test_an_object_that_is_not_as_it_was(template, tmp_path, what, damage):
    "One line or a warning names it; nothing is written over it, and when it is back everything is as it was."
    if not LONG and sum(map(ord, what + damage)) % 4: pytest.skip("every fourth one, but for make faults")
    home = copied(template, tmp_path / "w")
    add_memories(home, [mem("After the damage there was a swan", days_ago=0.1)])
    old, obj = World(home), an_object(home, what)
    file = loose(home, obj)
    raw, before = file.read_bytes(), refs(home)
    file.chmod(0o644)
    if damage == "missing": file.unlink()
    else: file.write_bytes({"empty": b"", "cut": raw[:len(raw) // 2], "turned": bytes([x ^ (0xff if i > 8 else 0) for i, x in enumerate(raw)])}[damage])
    said = [called(home, args) for args in (["status"], ["consolidate"], ["recall", "swan"], ["remember", "A swan again"])]
    assert [x for d in said for x in ended_well(d)] == []
    assert any(obj[:12] in d.err + d.out or "missing" in d.err + d.out or "corrupt" in d.err for d in said[:2]), said[:2]
    file.write_bytes(raw)
    now = World(home)
    assert now.memories.items() >= old.memories.items() and (said[1].code == 0 or {r: t for r, t in refs(home).items() if "mem-" in r and said[3].code} in
                                                                ({}, {r: t for r, t in before.items() if "mem-" in r}))
    assert called(home, ["consolidate"]).code == 0 and [*clean(home)] == []


@pytest.mark.parametrize("ref", [*REFS.values(), MEM + "decisions", "packed-refs"])
def test_a_lock_that_somebody_left(template, tmp_path, ref, monkeypatch):
    "Ours are removed by the next run; one that is not ours stops a write in time, and says what to do."
    home = copied(template, tmp_path / "w")
    lock = home / ".git" / f"{ref}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True); lock.write_text("")
    done = called(home, ["consolidate"])
    assert done.code == 0 and lock.exists() != (ref in REFS.values()), done
    if ref.startswith(MEM):
        from git_notes_consolidation.writing.write import open_writing
        s = open_writing(home, load_settings(env={}), clock=lambda: SAMPLE_NOW, patience=0.2)
        with pytest.raises(service.RepoError, match="(?s)decisions.lock.*not ours, remove it by hand"): s.remember("A swan")
        lock.unlink()
    assert called(home, ["remember", "A swan"]).code == 0 and [*sound(home)] == []


def grafted(home):
    git(home, "replace", "--graft", "HEAD"); git(home, "replace", "HEAD~1", "HEAD~2")


def fetched(home, other, *options):
    git(home.parent, "clone", "-q", *options, f"file://{home}", other)
    git(other, "fetch", "-q", "origin", "refs/notes/*:refs/notes/*", *(o for o in options if o.startswith("--depth")))
    return clone(other, "Three")


PLACES = {"grafts": lambda home, other: (grafted(home), home)[1], "shallow": lambda home, other: fetched(home, other, "--depth=1"),
          "without blobs": lambda home, other: fetched(home, other, "--filter=blob:none", "--no-checkout"),
          "without trees": lambda home, other: fetched(home, other, "--filter=tree:0", "--no-checkout"),
          "linked worktree": lambda home, other: (git(home, "worktree", "add", "-q", "--detach", other), other)[1],
          "bare": lambda home, other: fetched(home, other, "--bare"), "objects borrowed": lambda home, other: fetched(home, other, "--shared")}


@pytest.mark.parametrize("kind", PLACES)
def test_every_kind_of_repository_says_the_same(template, tmp_path, kind):
    "Where what a run needs is in this clone; in a partial one it says what to fetch, and then does."
    home = copied(template, tmp_path / "w")
    git(home, "config", "uploadpack.allowFilter", "true"); git(home, "config", "uploadpack.allowAnySHA1InWant", "true")
    there = PLACES[kind](home, tmp_path / "other")
    old, first = World(home), called(there, ["consolidate"])
    if kind.startswith("without"):
        assert [*ended_well(first)] == [] and (first.code == 1 or "missing from this clone" in first.out), first
        while wants := [w[1:] for w in git(there, "rev-list", "--objects", "--all", "--missing=print").split("\n") if w[:1] == "?"]:
            git(there, "cat-file", "--batch-check", input="\n".join(wants))  # Directories first, then what is in them
        assert World(there).memories == old.memories and called(there, ["consolidate"]).code == 0
    else: assert first.code == 0
    assert called(home, ["consolidate"]).code == 0
    a, b = World(home), World(there)
    assert a.memories == b.memories and superseded(a) == superseded(b) and a.says[0][0] == b.says[0][0] and [*sound(there)] == []


# The clock


FIRST, LAST = datetime(1, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


@pytest.mark.parametrize("now", [FIRST, LAST, datetime(2026, 3, 29, 2, 30), *(datetime(y, 7, 20, tzinfo=timezone.utc) for y in (1969, 2106) if LONG)], ids=str)
def test_a_clock_that_is_wrong(template, tmp_path, now):
    "It was the year 1, or is the year 9999: everything is written, and with the right time back the state is that of somebody whose clock was never wrong."
    home, right = copied(template, tmp_path / "w"), copied(template, tmp_path / "right")
    for name in ("consolidate", "recall", "status", "inject", "remember"):
        args = COMMANDS[name](home) + ["--no-count"] * (name == "recall")  # What was used is kept longer, whenever that was
        assert [*ended_well(called(home, args, now), (0,))] == [], name
    assert len(World(home).memories) == len(World(right).memories) + 1
    writes = next(r for r, x in state_of(home).runs.items() if "operations" in x["counts"])
    assert called(home, ["undo", writes, "--yes"], now).code == 0
    for h in (home, right): assert called(h, ["consolidate"]).code == 0
    a, b = World(home), World(right)
    kept = {i: t for i, t in a.says[0][0].items() if i in b.memories}
    assert kept == b.says[0][0] and superseded(a) == superseded(b) and [*clean(home)] == []
    assert called(home, ["sync"]).code == 0 and called(right, ["sync"]).code == 0 and [*sound(home)] == []


STAMPS = ["0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59+00:00", "9999-12-31T23:59:59-12:00", "2026-06-30T23:59:60Z",
          "2026-02-30", "2026-06-30T24:00:00", "2026-06-30T12:00:00.123456789Z", "-0044-03-15", "10000-01-01", "20260630T120000Z", "2026-W27-2",
          "now", "1782820800", "", "null", "٢٠٢٦-٠٦-٣٠", "2026-06-30T12:00:00+99:99", "2026-06-30T12:00:00 Europe/Berlin", "9" * 400]


def test_memories_of_any_time(tmp_path):
    "What is a time counts as one, what is none is reported with its place; neither is in anybody's way."
    home, stream = new_repo(tmp_path / "w", story()), []
    for i, stamp in enumerate(STAMPS):
        text = note_text(mem(f"Swan number {i}", f"Swan {i * 7919}.")).replace(f"timestamp: '{SAMPLE_NOW.isoformat()}'", f"timestamp: '{stamp}'")
        assert stamp in text
        stream.append(f"M 100644 inline {i:040x}\ndata {len(text.encode())}\n{text}")
    git(home, "fast-import", "--quiet", input="\n".join([f"commit {MEM}blockers\ncommitter a <a@example.org> 0 +0000\ndata 1\nx", *stream]) + "\n")
    done = gnc("consolidate", "--json", repo=home)
    there = {m.summary for m in read_memories(open_repo(home)).memories}
    strange = [w for w in done.json["warnings"] if "is not a date" in w or "timestamp" in w]
    assert done.code == 0 and len(strange) + sum(s.startswith("Swan") for s in there) == len(STAMPS) and len(strange) >= 8
    for now in (SAMPLE_NOW, FIRST, LAST):
        for words in ("status", "recall swan", "consolidate", "context", "inject", "tiers"):
            assert [*ended_well(called(home, words.split(), now), (0,))] == [], (words, now)
    assert [*clean(home)] == []
