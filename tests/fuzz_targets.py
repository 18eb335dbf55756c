"""Everything that reads bytes from outside, as functions of bytes: nothing but the documented refusals comes out, in bounded time, and what is promised holds.

Hypothesis drives the list, in test_fuzz.py the same examples every time, in tools/fuzz.py others.
"""
import json
import os
from collections import defaultdict
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache
from fuzz_base import NEW, OLD, PLACED, SUMMARY, folder, put, target, text_of, typed
from io import StringIO
from pathlib import Path
from second_reader import note_memories
from git_notes_consolidation.apps.cli import program as cli, program as apps_program
from git_notes_consolidation.apps.mcp import tools as replies, server as apps_server, tools as workspace
from git_notes_consolidation.consolidation import plan as service, service as consolidation_service
from git_notes_consolidation.core import loading as config, settings as core_settings, visible as tokens
from git_notes_consolidation.core.memory import Place, SAMPLE_NOW, UTC, as_utc
from git_notes_consolidation.core.models import ConsolidationPhase, ConsolidationResult, EdgeType, MemoryEdge, MemoryTier
from git_notes_consolidation.evaluation import (
    pairs as evaluation, scoring)
from git_notes_consolidation.llm import (
    protocol as llm, redact as redacting, summary_prompts as prompts)
from git_notes_consolidation.recall import rank as ranking, service as recall
from git_notes_consolidation.retention import forecast
from git_notes_consolidation.session import fast_start as packing, fast_start as starting, hooks
from git_notes_consolidation.staleness import definitions, file_names, history as gitlog, mentions as naming
from git_notes_consolidation.store import (
    cache as index, changes as arrivals, events as notes, git as store_git, reader as store_reader, state
    as store_state, tables as store_tables)
from git_notes_consolidation.summaries import quotations as summarizing
from git_notes_consolidation.supersession import judge as judging
from git_notes_consolidation.temporal import calendar as masking, resolve as temporal
from git_notes_consolidation.text import facts, words as text_words
from git_notes_consolidation.writing import archive as files_archive, notes as files_notes, reading as files_reading, tidy as files_tidy
from git_notes_consolidation.writing.markdown import BadFile
from git_notes_consolidation.evaluation import scoring as answers
from git_notes_consolidation.consolidation import scan as consolidation_scan
from git_notes_consolidation.similarity import lexical as embedding
from git_notes_consolidation.llm import prompts as llm_prompts
from git_notes_consolidation.session import prepared
from git_notes_consolidation.recall import rank
from git_notes_consolidation.similarity import embedders as similarity_endpoint
from git_notes_consolidation.evaluation import stories



# The plugin's notes

BOMB = "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nsummary: *c\n"

@target(store_reader.note_text(OLD), store_reader.note_text(NEW, escape=True) + "\n" + store_reader.note_text(OLD),
        "---\ntype: x\ntimestamp: 2026-01-01\nsummary: s\n---\nbody\r\n",
        f"---\ntype: d\ntimestamp: '2026-01-01T00:00:00+14:00'\n{BOMB}---\n", "---\nsummary: a\nsummary: b\ntimestamp: 0001-01-01T00:00:00+14:00\n---\n\\---\n",
        "---\nsummary: !!python/object/apply:os.system [x]\ntimestamp: 9999-12-31T23:59:59-14:00\nimportance: .nan\n---\n",
        words=("---\n", "summary: ", "timestamp: ", "\r\n", "\0", "\udcff", "&a ", "*a", "!!binary ", "<<: ", "? ", "[", "{", "- ", ": ", "|\n", ">-\n",
               "escape: \\\n",
               "\u0085", "\u2028", "importance: 1e999", "tags: [a, b]\n", "valid_from: ", "'", '"'))
def note(data):
    "A note: every record becomes a memory, and what is written of it reads back as the same."
    records, problems = store_reader.parse_note(data)
    for a in (*records, *problems): assert 0 <= a.offset <= len(data) and str(a)
    assert [r.offset for r in records] == sorted({r.offset for r in records})
    found = defaultdict(list)
    for i, r in enumerate(records): found["decisions", r.front["timestamp"], r.front["summary"], r.body].append((Place("decisions", "a" * 40, i, r.offset), r))
    for m in store_reader._scan(found, [], {}, 1).memories:
        again, bad = store_reader.parse_note(store_reader.note_text(m, escape=True).encode())
        assert len(again) == 1 and not bad, bad
        front = again[0].front
        assert (front["summary"], as_utc(front["timestamp"]), again[0].body) == (m.summary, m.timestamp, m.content)
        assert {k: front.get(k) for k in ("spec", "phase")} == {"spec": m.spec, "phase": m.phase} and tuple(front.get("tags", ())) == m.tags


@target(store_reader.note_text(OLD), store_reader.note_text(NEW, escape=True) + "\n" + store_reader.note_text(OLD),
        "---\ntimestamp: 2026-01-01\nsummary: a\n---\n\\---\n\n---\n",
        "---\nsummary: " + "[" * 9000 + "\n---\n", "---\ntags:\n" + "- " * 9000 + "\n---\n", "---\ntype: d\r\nsummary: a\r\ntimestamp: 2026-01-01\r\n---\r\nx",
        words=("---\n", "--- \r\n", "summary: ", "timestamp: 2026-01-01\n", "&a ", "*a", "[", "{", "- ", ": ", "\udcff", "escape: \\\n", "valid_from: ", "\0",
               "\\---\n", "\n", "\v", "\u0085"))
def audited(data):
    "A second reader finds the same memories."
    mine, (theirs, _) = store_reader.parse_note(data)[0], note_memories(data)
    assert [(r.front["timestamp"], r.front["summary"], r.body) for r in mine] == [(m.stamp, m.summary, m.body) for m in theirs]


# Our own records

def _lines(*appends):
    return "".join(notes.encode(notes.stamp(a, n)) + "\n" for n, a in enumerate(appends, 1))


def _run(i, **more): return notes.Append("runs", "a" * 40, {"kind": "run", "id": i, "at": SAMPLE_NOW.isoformat(), "counts": {"edge": 1}} | more)


EDGE = MemoryEdge(NEW.id, OLD.id, EdgeType.SUPERSEDES, 0.9, "it says so", SAMPLE_NOW, "run_1", "full")

@target(_lines(_run("run_1"), notes.edge_append("a" * 40, EDGE, "run_1", SAMPLE_NOW), notes.access_append(OLD, "me", 3, SAMPLE_NOW)).replace('"seq": 2',
    '"seq": 1'),
        _lines(_run("run_1"), notes.summary_append("a" * 40, SUMMARY, "run_1")).replace('"seq": 2', '"seq": 1'),
        _lines(_run("run_1"), notes.tier_append(OLD, MemoryTier.HOT, MemoryTier.COLD, "faded", 0.1, "run_1"),
               notes.set_append(OLD, "importance", 0.5, "run_1")).replace('"seq": 2', '"seq": 1').replace('"seq": 3', '"seq": 1'),
        _lines(_run("run_1"), _run("run_2", kind="undo", targets=["run_1"])),
        _lines(notes.op_append("a" * 40, {"operation": "ADD", "target": OLD.id, "at": SAMPLE_NOW.isoformat(), "touched": True}, "run_1"), _run("run_1")),
        words=('"seq": ', '"kind": ', '"run"', '"id": ', '"live": false', '"subject": ', '"at": ', "1e999", "-1", "9" * 19, "9" * 400, "9" * 4300, "NaN",
               "null", "[]", "{}", "true",
               "\\ud800", "\\u0000", OLD.id, NEW.id, "run_1", '"count": ', '"targets": ["run_1"]', '"value": ', "0001-01-01", "9999-12-31T23:59:59-14:00",
               "\n- "))
def records(data):
    "Lines of our refs: a line that is read is written the same, the state is the same in any order, and the tables take it."
    found, problems = notes._decode_note(data, "records")
    for r in found:
        try: line = notes.encode(r)
        except ValueError: continue  # A number that has no plain decimal form is read, and never written
        assert notes.decode(line) == notes._plain(r), "what is written reads back"
    rows = [(_STORE.get(r["kind"], "meta"), "a" * 40, r) for r in found]
    events = notes.Events(tuple(rows), tuple(problems), {})
    state = store_state.fold(events)
    assert state == store_state.fold(replace(events, records=tuple(reversed(rows)))) == store_state.fold(replace(events, records=tuple(rows[1::2] + rows[::2])))
    notes.encode(notes.stamp(_run("run_3"), events.seq + 1))  # The next run can be written
    v = consolidation_scan.View(store_reader.Scan(store_state.with_state(PLACED, state), (), {}), events, state)
    with closing(index.in_memory()) as conn: consolidation_service.refresh_tables(conn, v, _settings(), SAMPLE_NOW)


_STORE = {"run": "runs", "undo": "runs", "edge": "edges", "review": "edges", "summary": "summaries"}


@cache
def _settings(): return config.load_settings({}, env={})


# What git prints

@target("\x01" + "a" * 40 + "\ndiff --git a/x b/x\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old timeout\n+new timeout\n",
        'diff --git "a/\\303\\244" b/x\n--- "a/\\303\\244\\n.py"\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-timeout\n',
        words=("--- ", "+++ ", '"', "\\", "\\x", "\\N{", "@@", "\x01", "diff ", "\\777"))
def patches(data):
    "A patch: file names in any quoting, lines in any encoding."
    for t in gitlog._read_patches(text_of(data).split("\n"), frozenset({"timeout"})): assert isinstance(t.path, str) and set(t.less) <= {"timeout"}


@target("A U Thor <a@example.org>\nFirst\nSecond", "a\x1fb\nsubject\x1fwith\x1ffields\n", words=("\x1f", "\x1e", "\n", "\r"))
def authors(data):
    "A log whose authors and subjects are anything that git takes: whoever the parents are does not depend on it."
    who, _, subject = text_of(data).replace("\0", "").partition("\n")
    values = {"%H": "a" * 40, "%ct": "1767268800", "%at": "1767268799", "%ae": who, "%P": "b" * 40, "%s": subject.partition("\n")[0], "%x1f": "\x1f"}
    said = gitlog._FIELDS.removeprefix("--format=")
    for k, v in values.items(): said = said.replace(k, v.replace("%", "\ue000"))
    real, gitlog.git = gitlog.git, lambda *args, **kw: said.encode() + b"\0"
    try: commits = gitlog.read_commits(store_git.Repo(Path("."), Path("."), None, "0" * 40))
    finally: gitlog.git = real
    assert [(c.id, c.when, c.parents) for c in commits] == [("a" * 40, 1767268800, ("b" * 40,))]


# Hooks

EVENT = '{"session_id": "s", "transcript_path": "/x", "cwd": "/nowhere", "hook_event_name": "SessionStart", "source": "resume"}'

@target(EVENT, "{}", "[" * 3000, '{"a": ' * 2000, words=("\\ud800", "1e999", "NaN", "\0", '"cwd": ""', "9" * 5000, "[", "{"), refuses=(ValueError,))
def hook_event(data):
    "What a host writes to a hook."
    r, w = os.pipe()
    os.write(w, data[:60_000]); os.close(w)
    try: assert isinstance(hooks.event_of(hooks.read_event(r)), dict)
    finally: os.close(r)


@target(EVENT, "[]", "[" * 3000, words=("\\ud800", "1e999", "NaN", "\0", '"cwd": ""', '"cwd": []', "9" * 5000), slow=True)
def hook_start(data):
    "A session begins: an answer in any case."
    said, why = starting.session_start(text_of(data), {"HOOK_CONSOLIDATION_ENABLED": "false"}, str(folder("nowhere")))
    assert isinstance(json.loads(said), dict) and all(isinstance(w, str) for w in why)


@target("[decision] The export runs at two", "- **[learning] One two three**", words=("[decision] ", "[blocker]", "\n", "```", "> ", "**", "\u202e"))
def proposals(data):
    "What an agent's answer marks as worth keeping."
    for namespace, fact in hooks.proposals_in(text_of(data)):
        assert namespace in ("decisions", "learnings", "blockers") and len(fact) <= 600 and len(fact.split()) > 2 and fact == tokens.visible(fact)


# Files beside the repository

def _laid(seen="x"):
    lines = [["heading", "Serving", 3, "serving"], ["text", "FastAPI serves.", 4, "fastapi serves"]]
    item = packing.SummaryEntry("sum_a", "decisions", 1.0, SAMPLE_NOW.isoformat(), 0, 0.9, lines=lines)
    return json.dumps({"format": [packing.FORMAT, starting.__version__], "seen": seen, "laid": packing.PreparedSession([item], {"serve": [0]})})


@target(_laid(), words=("[", "]", "null", "1e999", "-1", "9" * 400, '"', "\n", "\\ud800", "{}", "true"))
def session_file(data):
    "What a run laid out for the sessions, damaged: it is used, or as if it were not there."
    home = folder("session")
    (home / "gnc").mkdir(exist_ok=True)
    (home / "gnc" / "session.jsonl").write_bytes(data)
    (home / "gnc" / "told.json").write_bytes(data.partition(b"\n")[0])
    laid = starting.load(str(home), "x")
    assert laid is None or isinstance(laid, packing.PreparedSession)
    assert isinstance(starting.given(str(home), {"s": "v"})["s"], str) and starting.given(str(home), {"s": "v"}) == {"s": "v"}


@target("feature/serve-with-fastapi\nServe src/app/main.py with FastAPI 0.115\n",
        words=("-", "_", ".", "a.b", "/", "feat: ", "\n", "\0", "\udcff", "Aa", "9", "é"))
def session_words(data):
    "A branch, file names and first lines of commits, which anybody writes: what the session is about."
    branch, *rest = text_of(data).split("\n")
    words = packing.about(packing.SessionContext("", tuple(rest[1:]), branch, tuple(rest[:1])))
    assert all(w and w == w.lower() for w in words)


@target(json.dumps({"at": SAMPLE_NOW.isoformat(), "tips": {"refs/notes/mem/decisions": "a" * 40}, "at_hand": 7}), "[" * 3000,
        words=("null", "1e999", "-1", "[]", "{}", '"at": 5', "true", "\\ud800", "9" * 5000, "0001-01-01T00:00:00+14:00"))
def last_run(data):
    "What the last run left behind, damaged."
    home = folder("last")
    (home / "gnc").mkdir(exist_ok=True)
    for name in ("last-run.json", "last-hook.json"): (home / "gnc" / name).write_bytes(data)
    repo = store_git.Repo(home, home, None, "0" * 40)
    was = arrivals.last_run(repo)
    assert was.at_hand >= 0 and all(isinstance(x, str) for row in was.tips.items() for x in row)
    assert was.at is None or was.at.tzinfo is not None
    arrivals.last_start(repo)
    here = starting.Here.__new__(starting.Here)
    here.common_dir, here.memories = str(home), "a" * 40
    assert starting.something_new(here) in (True, False)


@cache
def _database():
    path = folder("made") / "consolidation.db"
    repo = store_git.Repo(path.parent, path.parent, None, "0" * 40)
    with closing(index.open_index(repo)) as conn:
        index.vectors_of(conn, [OLD.id, NEW.id], embedding.LexicalEmbedder(), lambda ids: [OLD.text, NEW.text])
        state = store_state.State()
        consolidation_service.refresh_tables(conn, consolidation_scan.View(store_reader.Scan(PLACED, (), {}), notes.Events((), (), {}), state), _settings(),
                                             SAMPLE_NOW)
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)"); conn.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


@target(b"SQLite format 3\0", b"", words=(b"\0\0\0\x03", b"CREATE TABLE meta (key)", b"\xff\xff"), slow=True)
def index_file(data):
    "A cache that is no database, or one with other bytes in it: it is used or made anew."
    home = folder("cache")
    for suffix in ("", "-wal", "-shm"): (home / f"consolidation.db{suffix}").unlink(missing_ok=True)
    raw = data
    if data[:1] == b"@":  # Edits of a real one: places and bytes
        raw = bytearray(_database())
        for i in range(1, len(data) - 3, 4): raw[int.from_bytes(data[i:i + 3], "big") % len(raw)] = data[i + 3]
    (home / "consolidation.db").write_bytes(raw)
    repo = store_git.Repo(home, home, None, "0" * 40)
    with closing(index.open_index(repo)) as conn: assert conn.execute("PRAGMA user_version").fetchone()[0] == index.SCHEMA


# Settings

YAML = "# ours\nretention_half_life_days: 45  # days\nconsolidation:\n  cluster_threshold: 0.4 # less\n  similarity:\n    threshold: strict\nworkers: 2\n"
TOML = "# ours\nretention_half_life_days = 45  # days\n[consolidation]\ncluster_threshold = 0.4 # less\n[consolidation.similarity]\nthreshold = \"strict\"\n"
WANTED = {"retention_half_life_days": 60.5, "workers": 3}
_SETTING_WORDS = ("retention_half_life_days", "consolidation:", "workers", ": ", " = ", "# ", "\r\n", "\n", "\0", "&a ", "*a", "!!int ", "<<: ", "[", "{", "}",
                  "'", '"', '"""', "null",
                  ".inf", ".nan", "1e999", "9" * 5000, "0x1f", "2026-01-01", "true", "---\n", "...\n", "%YAML 1.1\n", "\ufeff", "\u0085", "\u2028", "|\n  ",
                  "\udcff", "context.")


def _settings_file(name, data):
    home = folder(name.replace(".", "-"))
    (home / name).write_bytes(data)
    starting.settings_of({}, str(home), complaints := [])
    assert all("\n" not in c for c in complaints), complaints
    held = config.load_settings(env={}, file=home / name)
    assert config.load_settings(env={}, file=home / name).id == held.id
    draft = config.Draft(home, WANTED)
    (home / name).write_text(draft.text, encoding="utf-8", newline="")
    after = config.load_settings(env={}, file=home / name)
    assert {k: getattr(after.config, k) for k in WANTED} == WANTED, "what was set reads back"
    assert replace(after.config, **{k: getattr(held.config, k) for k in WANTED}) == held.config, "nothing else has changed"
    assert config.Draft(home, WANTED).text == draft.text, "the second time there is nothing to do"
    kept = [line for line in typed(data).split("\n") if line.lstrip().startswith("#")]
    assert [line for line in draft.text.split("\n") if line.lstrip().startswith("#")][:len(kept)] == kept, "comments stay"


@target(YAML, BOMB, "a: " * 300, "[" * 3000, "workers: 2\nworkers: 3\n", "? {}\n: x", words=_SETTING_WORDS, refuses=(core_settings.ConfigError,))
def settings_yaml(data): _settings_file("gnc.yaml", data)


@target(TOML, "a = " + "[" * 3000, "workers = 2\nworkers = 3\n", "[a.b.c]\n", words=_SETTING_WORDS, refuses=(core_settings.ConfigError,))
def settings_toml(data): _settings_file("gnc.toml", data)


@target("workers=3", "write_threshold=strict", "retention_half_life_days=1e2", "hook_schedule=0 3 * * *", "llm_daily_usd=none",
        words=(*(f"{name}=" for name in config._FIELDS), "1e999", "nan", "-1", "٣", "1_0", "true", "none", "\0", " ", "9" * 5000),
        refuses=(core_settings.ConfigError,))
def environment(data):
    "A variable: the value that its field wants, and the same from what that value is written as."
    name, _, value = typed(data).partition("=")
    if name not in config._FIELDS: return
    if "\0" in value: return  # No environment holds it
    held = config.load_settings(env={config.variable_name(name): value})
    again = config.load_settings({name: getattr(held.config, name)}, env={})
    assert getattr(again.config, name) == getattr(held.config, name)


# A language model's replies

def _reply(i, *bodies): return [f"{i}" + (b if isinstance(b, str) else json.dumps(b)) for b in bodies]


_JUDGED = {"P1": {"quote": "Supersedes ADR-007.", "reason": "It says so.", "relation": "supersede", "kind": "full", "confidence": "high"}}
_TOLD = {"title": "Serving", "summary": "FastAPI serves since ADR-012.", "key_facts": ["The limit is 200 requests/s."], "decisions":
         [{"decision": "FastAPI serves.", "rationale": "", "outcome": None, "confidence": "high"}], "superseded_facts": [], "insights": []}
_LINKED = {"edges": [{"source": "M1", "type": "references", "target": "M2", "hint": None, "confidence": "low", "quote": "Supersedes ADR-007."}]}

@target(*_reply("0", _JUDGED, "<think>\n{\n</think>" + json.dumps(_JUDGED)), *_reply("1", _TOLD), *_reply("2", _LINKED),
        *_reply("3", {"text": "FastAPI [email]."}),
        *_reply("0", '{"P1": [' + "[" * 3000), *_reply("1", '{"title": "a", "title": "b"}'), '0```json\n{"P1": []}\n```',
        words=("<think>", "</think>", "```", "{", "}", '"kind": null', '"quote": null', '"', "\\ud800", "\\u0000", "\u2028", "yesterday", "M1", "M9", "P2",
               "NaN", "1e999", "9" * 5000),
        refuses=(llm.BadReply,))
def reply(data):
    "A reply to one of the four questions: what is believed of it stands in the memories, or is printable and short."
    _, parse = _asked()[data[0] % 4 if data else 0]
    said = parse(text_of(data[1:]))
    whole = f"{OLD.text}\n\n{NEW.text}"
    for x in said if isinstance(said, tuple) else (said,):
        if (span := getattr(x, "span", None)): assert span in whole
        for line in (getattr(x, "reason", ""), getattr(x, "title", ""), getattr(x, "hint", "")): assert line.isprintable()
        for i in (getattr(x, "source_id", OLD.id), getattr(x, "target_id", None) or NEW.id): assert i in (OLD.id, NEW.id)


@cache
def _asked():
    return (llm_prompts.judge_request([(OLD, NEW)]), prompts.summary_request([OLD, NEW], {OLD.id: NEW}), prompts.edges_request([OLD, NEW]),
            prompts.merge_request(OLD, NEW))


@target('{"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}',
        '{"error": {"message": "context length exceeded", "code": 400, "type": [], "param": {"a": 1}}}', '{"choices": [null], "usage": [1]}',
        words=('"content": ', '"refusal": ', '"finish_reason": "length"', "null", "[]", "{}", "1e999", "-1", "NaN", "\\ud800", '"message": []', '"error": ',
               "9" * 4000, "true"))
def http_body(data):
    "What a server sends: a reply, or a fault that the rules know."
    try: body = json.loads(text_of(data))
    except (ValueError, RecursionError): body = text_of(data)
    found = llm.read_reply(body)
    if isinstance(found, llm.Reply): assert found.text.encode() and len(found.model) <= 100 and found.model.isprintable()
    else: assert found.kind in llm.RULES
    for status in (200, 400, 404, 429, 500):
        fault = llm.fault_of_status(status, body, {"retry-after": text_of(data)[:60]} if status == 429 else {})
        assert fault.kind in llm.RULES and (fault.wait is None or 0 <= fault.wait < float("inf"))


# Texts

_TIMES = ("the day before ", "yesterday ", "last week of ", "two and a half years ago, ", "from 3 to 5 May 2026 ", "Q3 ", "in the 1990s ", "early next month ",
          "2026-02-30 ", "31/12/9999",
          "week 53 of 9999 ", "at noon on ", "99999999 days ago ", "the first Monday of ", "half past ", "every ", "FY26 ", "a fortnight hence ", "between ",
          "the week of ", "1st", "٣", "\0")

@target(*("".join(_TIMES[i:i + 6]) for i in range(0, len(_TIMES), 6)), "\x05We migrated yesterday, the day before the release on 3 March.", words=_TIMES)
def times(data):
    "Time expressions: their words stand where they say, and what they mean is a span of time, or nothing."
    i = data[0] if data else 0
    zone = (None, UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12)))[i % 4]
    when = (SAMPLE_NOW, datetime.min, datetime.max, datetime(2024, 2, 29, 23, 59, 59), datetime(1970, 1, 1))[i // 4 % 5].replace(tzinfo=zone)
    text, at = text_of(data[1:]), 0
    for r in temporal.find_references(text, when):
        a, b = r.span
        assert at <= a < b <= len(text) and r.original_text == text[a:b] and 0.0 <= r.confidence <= 1.0
        at = b
        if r.interval:
            begin, end = r.interval
            assert begin < end and begin.tzinfo == end.tzinfo and (begin.tzinfo is None) == (zone is None), r
        else: assert r.resolved_date is None


_PROSE = ("# Heading\n", "- item\n", "* [x] done\n", "| a | b |\n", "> quote\n", "```\ncode\n```\n", "`x_y`", "e.g. ", "Supersedes ADR-7. ", "mem_abcdefgh ",
          "decisions:abcdef1:2 ",
          "must not ", "5 s ", "1,000,000 ", "v1.2.3 ", "src/a/b.py:12 ", "https://a.b/c?d=e ", "a@b.co ", "200 requests/s ", "half a dozen ", "“quoted” ",
          "\t", "\r\n", "\0", "...", "–", "é", "不",
          "we no longer use ", "instead of ", "is ", "[link](x) ", "\u2028")

@target(OLD.text, NEW.text, "".join(_PROSE), words=_PROSE)
def prose(data):
    "A memory's text: everything that is found in it lies in it, and two texts can be judged."
    text = text_of(data)
    blank = masking.masked(text)
    assert len(blank) == len(text) and all(b in (a, masking.BLANK) for a, b in zip(text, blank))
    at = 0
    for s in text_words.split_sentences(text):
        assert at <= s.start < s.end <= len(text) and text[s.start:s.end].strip() == text[s.start:s.end]
        at = s.end
    for x in (*facts.find_facts(text), *text_words.references(text)): assert 0 <= x.start < x.end <= len(text)
    assert tokens.estimate_tokens(text) >= 0
    title, _, body = text.partition("\n")
    m = replace(NEW, id="mem_x", summary=title, content=body)
    for x in naming.mentions_of(m): assert x
    for a, b in ((OLD, m), (m, replace(NEW, id="mem_y")), (m, replace(m, id="mem_z"))):
        j = judging.judge_pair(a, b)
        assert 0 <= j.confidence <= 1 and (not j.span or j.span in b.text)
    assert all(q.holds(m) for q in summarizing.sentences(m))
    assert store_tables.names_in(m) is not None and packing.bag(text) is not None and prompts.relative_date(text) in text
    assert all("\x1b" not in said for said in (replies.visible_text(text, 400), cli.plain(text)))
    assert embedding.LexicalEmbedder().embed([text]).shape == (1, embedding.LexicalEmbedder().dimensions)


SECRETS = tuple("".join(p) for p in (("gh", "p_", "1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX"), ("AK", "IA", "Q4WX7ZP2LM9KT3VB"),
                                     ("xo", "xb-", "12345678901-abcdefGHIJKL12345"),
                                     ("sk-", "ant-", "api03-aB3dE5gH7jK9mN1pQ3sT5vW7"), ("npm", "_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6")))

@target("x\0a password: hunter2hunter2, and more", "\x01\n-----BEGIN", "\x02mailto:a@b.example.co", "\x03{\"key\": \"\\n",
        words=(*SECRETS, "@", "://", ":", "\\n", "\\", '"', "'", "-", "_", "BEGIN ",
        "PRIVATE KEY-----", "password=", "token: ", "Bearer ", "\\u0041", "[secret:", "]", "`", "sig=", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00",
        "$2b$", "::1", "+49 "))
def redact(data):
    "A secret between two lines, whatever stands in them: it does not come through, and twice is once."
    i, text = data[0] if data else 0, text_of(data[1:])
    secret, cut = SECRETS[i % len(SECRETS)], len(text) // 2
    shown = redacting.redact(f"{text[:cut]}\n{secret}\n{text[cut:]}")
    assert (secret not in shown or secret in text) and redacting.redact(shown) == shown
    spans = redacting.findings(text)
    assert all(0 <= f.start < f.end <= len(text) for f in spans) and all(a.end <= b.start for a, b in zip(spans, spans[1:]))


_TAG = packing.TAG

@target(f"before\n\n<{_TAG} version=\"1\" generated_at=\"x\">\nold\n</{_TAG}>", f"<{_TAG}>\n<{_TAG} version=\"1\">\n</{_TAG}>\n</{_TAG}>",
        f"about <{_TAG}> in a sentence",
        words=(f"<{_TAG} version=\"1\">", f"<{_TAG}>", f"</{_TAG}>", f"</{_TAG}", f"<{_TAG}", _TAG, "<", ">", "/", "\n\n", "\n", "\r", "version="))
def block_(data):
    "A context: whatever is not ours stays byte for byte, and putting a block in twice is putting it in once."
    text, new = typed(data), f"<{_TAG} version=\"2\" generated_at=\"y\">\nnew\n</{_TAG}>"
    rest, had = prepared.without_block(text)
    assert (had or rest == text) and prepared.without_block(rest) == (rest, False)
    whole, _ = prepared.with_block(text, new)
    assert prepared.with_block(whole, new) == (whole, True) and prepared.without_block(whole)[0] == rest and whole.startswith(rest) and whole.endswith(new)
    assert _TAG in text or rest == text
    theirs = text.replace("<", "‹")
    assert prepared.with_block(f"{theirs}\n\n{new}", new.replace("new", "newer"))[0] == (f"{theirs}\n\n" if theirs else "") + new.replace("new", "newer")
    for f in (prepared.one_line, prepared.paragraph): assert "\n" not in f(text) and "<" + _TAG not in f(text)


# Names and questions

@target(OLD.id, OLD.id[4:12], "decisions:aaaaaaa:0", "decisions:" + "a" * 40 + ":0", "mem_", ":", words=("mem_", ":", "a", "decisions:", "\0", "%", "*"),
        refuses=(store_reader.UnknownId,))
def name(data):
    "An id, a spelling of the plugin's, or a beginning of one: the one thing that it means."
    said, pool = typed(data), {m.id for m in PLACED}
    found = store_reader.resolve(said, pool, PLACED)
    assert found in pool and (said in found or any(said in p.aliases() for m in PLACED if m.id == found for p in m.places))


@target("what did we decide about Flask?", '"limit" OR (requests NEAR/2 x)', "*", "names : x", "-x ^y +z", "a AND NOT b", "{summary} : x",
        words=('"', "*", "NEAR(", "AND ", "OR ", "NOT ", "{summary content} : ", "^", "(", ")", "\0", "ADR-7", "'", ";--", "\udcff", "-", ":", "不", "\u0301"))
def query(data):
    "A question: never an error of the full text's language."
    said, conn = typed(data), _tables()
    assert set(store_tables.search_text(conn, said)) <= {m.id for m in PLACED}
    assert (x := ranking.word_scores(conn, said, 2, 2)) is None or x.shape == (2,)
    rank.read_question(said); rank.needs_reasoning(said)
    assert isinstance(ranking.listing(said, SAMPLE_NOW), ranking.Listing | None) and ranking.about_the_past(said) in (True, False)


@cache
def _tables():
    conn = index.in_memory()
    consolidation_service.refresh_tables(conn, consolidation_scan.View(store_reader.Scan(PLACED, (), {}), notes.Events((), (), {}), store_state.State()),
                                         _settings(), SAMPLE_NOW)
    return conn


_DATES = ("2026-01-31", "2026-01-31T12:00:00+02:00", "20260131T12", "2026-W05-6", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "yesterday",
          " 2026-01-31 ", "٢٠٢٦-01-31")

@target(*_DATES, words=("-", ":", "T", "Z", "+14:00", "-14:00", "0001", "9999", "W53", "\0", ".", "٣", "24:00"), refuses=(cli.Usage, store_git.RepoError))
def date(data):
    "A date that somebody typed: a moment, or what to write instead."
    said = typed(data)
    found = cli.parse_date(said, "--since")
    assert found.utcoffset() == timedelta(0) and cli.parse_date(found.isoformat(), "--now") == found
    assert workspace._time(said, "valid_from", as_utc) == found and workspace._time(said, "as_of") >= found and recall.asked_times(said, None) is not None


# Files that somebody names

def _plan(*appends):
    result = ConsolidationResult("run_1", SAMPLE_NOW, SAMPLE_NOW, ConsolidationPhase.PERSIST)
    return service.Plan(SAMPLE_NOW, {"refs/notes/mem/decisions": "a" * 40}, "cfg_x", appends, result)


@target(_plan().to_json(), _plan(_run("run_1"), notes.tier_append(OLD, MemoryTier.HOT, MemoryTier.COLD, "faded", 0.1, "run_1"),
        notes.edge_append("a" * 40, EDGE, "run_1", SAMPLE_NOW)).to_json(), "[" * 3000,
        words=("null", "1e999", "-1", "NaN", "[]", "{}", "\\ud800", "\\n", "9" * 5000, '"kind": ', '"records": ', '"hides": ', '"now": ',
               "0001-01-01T00:00:00+14:00", "true", "2.5"),
        refuses=(store_git.RepoError,))
def plan(data):
    "A plan: the same plan again, or no plan."
    made = service.load_plan(text_of(data))
    assert service.load_plan(made.to_json()).to_json() == made.to_json()
    for a in made.appends: notes.encode(notes.stamp(a, 1))
    service.check_blast_radius(made) if made.hides <= made.limit else None


@target("repo,item,day,kind\na,x,1,A\na,x,2.5,M\nb,y,3,D\n", "repo,item,day,kind\r\n\"a\",\"x\n\",1,A\r\n", b"\x1f\x8b\x08\0",
        words=(",", '"', "\n", "\r", "nan", "1e999", "kind", "\0", "\udcff", "9" * 400, ";"), refuses=(forecast.BadTable,))
def touches(data):
    "A table of events, plain and packed."
    named = put("tables/x.csv.gz" if data[:2] == b"\x1f\x8b" else "tables/x.csv", data)
    for t in forecast.read_touches(named): assert len(t.item) == len(t.day) == len(t.gone) and all(d == d for d in t.day)


def _first_line(name): return next(line for line in scoring.fixture(name).read_text(encoding="utf-8").splitlines() if '"locked"' not in line)


@target(*(f"{i}{_first_line(n)}" for i, n in enumerate(("supersession", "supersession_chains", "sample_questions"))),
        '3{"id": "a", "text": "yesterday", "reference": "2026-03-01T00:00:00", '
        '"phrase": "yesterday", "offset": 0, "expected_start": "2026-02-28T00:00:00", "expected_end": null}',
        "0" + "[" * 3000,
        words=("null", "[]", "{}", "1e999", "\\ud800", '"split": ', '"id": ', "9" * 5000, "true", "\n", '"alternatives": ', "-1", '"offset": '),
        refuses=(scoring.DataError,))
def labelled(data):
    "Lines of labelled data, of four kinds."
    load = (evaluation.load_pairs, stories.load_stories, answers.load_questions, answers.load_dated)[(data[0] - 48) % 4 if data else 0]
    assert load(put("tables/rows.jsonl", data[1:])) is not None


@target(b"SQLite format 3\0", b"", refuses=(similarity_endpoint.EmbeddingError,), slow=True)
def plugin_index(data):
    "The plugin's index, damaged."
    assert len(list(similarity_endpoint.plugin_rows(put("tables/index.db", data)))) >= 0


# The command line and the server

_COMMANDS = ("status", "recall", "explain", "log", "diff", "undo", "runs", "consolidate", "context", "history", "tiers", "edges", "summaries", "config",
             "remember", "forget", "update")

@target("\x01what\0--limit\x003", "\x02mem_x", "\x03--since\x002026-01-01", "\x07--dry-run\0--json", "\x0etext\0--title\0t\0--tags\0a",
        words=("\0", "--", "-", "=", "--json", "-v", "--now=", "--limit", "--help",
        "\udcff", "9" * 5000, "\x1b[31m", "--namespace", "--as-of", "*"), slow=True)
def arguments(data):
    "A command line: a known exit code and, where it is refused, one line on standard error."
    nowhere = str(folder("nowhere") / "none")
    words = [w for w in typed(data[1:]).split("\0") if w != "--" and not w.startswith(("--repo", "--config"))][:12]
    argv = ["--repo", nowhere, _COMMANDS[data[0] % len(_COMMANDS) if data else 0], *words, "--repo", nowhere]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err: code = apps_program.main(argv)
    assert code in (0, 1, 2, 3, 4), code
    if code: assert err.getvalue().startswith("gnc: ") and err.getvalue().count("\n") == 1, err.getvalue()
    if code and "--json" in words: assert json.loads(out.getvalue())["exit_code"] == code


_NAMES = ("MEMORY.md", "topic.md", "0003-record.md", "memory.jsonl")
_BEADS = {"id": "b-1", "title": "Retry", "status": "closed", "issue_type": "task", "created_at": "2026-01-01T00:00:00Z", "closed_at": "2026-01-02T00:00:00Z",
          "close_reason": "x", "dependencies": [{"type": "supersedes", "depends_on_id": "b-2"}]}
_SEEN = {"observations": [{"memory_session_id": "s", "project": "p", "type": "decision", "title": "T", "facts": "[\"a\"]", "created_at": "2026-01-01T00:00:00Z",
                           "created_at_epoch": 1}], "summaries": [{"memory_session_id": "s", "project": "q", "request": "R", "learned": "L", "created_at_epoch": 2}]}


@target("\0# Memory\n\n## Build\n\n- 2026-02-01: Use pnpm\n- Use pnpm\n\n```\n- no item\n```\n", "\x01---\nname: pnpm\ntype: project\n---\nUse it.\n",
        "\x02# 3. Redis\n\nDate: 2026-01-12\n\n## Status\n\nSuperseded by [7](0007-x.md)\n", "\0a\n§\nb\n",
        "\x03" + '{"type": "entity", "name": "g", "observations": ["a", {"text": "b"}]}\n{"from": "a", "to": "b", "relationType": "c"}\n{"text": "x", "at": "2026-01-01"}\n',
        f"\x03{json.dumps(_BEADS)}\n" + json.dumps(_BEADS | {"id": "b-2", "status": "open"}) + '\n{"_type": "memory", "key": "k", "value": "v"}\n',
        f"\0{json.dumps(_SEEN, indent=1)}", '\x03{"sessionId": "s", "uuid": "u", "type": "user", "message": {}}\n',
        "\x01---\ntitle: Gateway\npermalink: g\n---\n# Gateway\n\n- [decision] Retry #a (b)\n- part_of [[Shop]]\n",
        f"\0# Memory\n\n{files_notes.QUOTED}\n\n## A\n\n- a (mem_abcdefgh; in part replaced by mem_abcdefgh)\n\n<!-- gnc: abc -->\n",
        "\0# Log\n\n## 2026-03-01: Release\n\nProse.\nMore.\n\n## B\n\n### 2026-03-02\n\n- **State**: done\n",
        words=("[x] ", "[[", "]]", '"status": ', '"type": ', '"text": ', "<!-- gnc: ", "null", "{}", "## ", "**a**: ","---\n", "```\n", "- ", "\n\n", "\r\n", "\r", "\ufeff", "§\n", "[" * 200, "> " * 200, "| a |\n|---|\n", "<!--", "\t", "2026-02-30", "\0", "\udcff"),
        refuses=(BadFile,))
def memory_file(data):
    "A memory file: entries lie in its bytes, what is taken out is all that changes, and it comes back."
    name, raw = _NAMES[data[0] % 4 if data else 0], data[1:]
    found = files_reading.entries_of(raw, name)
    assert all(0 <= e.place.start <= e.place.end <= len(raw) and e.title and "\n" not in e.title for e in found)
    f = files_reading.MemoryFile(name, Path(name), raw, tuple(replace(e, time=e.time or SAMPLE_NOW) for e in found), SAMPLE_NOW)
    taken = sorted((files_tidy.Taken(e, "budget") for e in found[::2] if e.loose), key=lambda t: t.entry.place)
    p = files_tidy.FilePlan(f, tuple(taken))
    files_tidy.still_says(f, [t.entry.place for t in taken])
    last = json.loads(json.dumps(files_archive.archive_lines(p, SAMPLE_NOW)[1][-1]))
    assert last["was"].encode() == raw and last["text"].encode() == p.after
    exported_again(replace(f, entries=tuple(replace(e, dated=e.dated or "the file") for e in f.entries)))
    if not (among := files_archive.put_among(p.after, raw, raw[:len(raw) // 2])): return
    made, spans = among
    for a, b in reversed(spans): made = made[:a] + made[b:]
    assert made == raw[:len(raw) // 2]


_DEFINING = ("package.json", "Makefile", "justfile", "Taskfile.yml", "Cargo.toml", "pyproject.toml", ".env.example", "go.mod", "composer.json")


@target("# A\n\nSee `src/a.py:3`, [b](b.md#c), @c.md and `parse()` in `src/a.py`. `npm run x && make -C a y`\n\n```bash\n$ cargo run --bin z -- -p 1\n```\n",
        "```\na/\n├── b/\n│   └── c.py  # d\n└── e\n```\n\n| `a.b.C` | `x.ts::y` |\n|---|---|\n| `A_B=1` | Python 3.9+ |\n",
        '{"scripts": {"x": "y"}, "engines": {"node": ">=18"}}', "all: b c\n\tx\n-include $(x)\n", "set x := 'y'\n@a b='c': d\nalias e := f\n",
        "tasks:\n  a:b:\n    aliases: [c, d]\nincludes:\n", '[[bin]]\nname = "a"\nrequires-python = ">=3.11"\n# A_B=1\n',
        words=("`", "```bash\n", "├── ", "│   ", "](", "@", "npm run ", "yarn workspace ", "-w ", "--filter ", "cargo test -p ", "python -m ", "make ", "::", "()",
               " in `", "| ", "\r\n", "\0", "\udcff", "../", "*", "$", "a.b", ":", '": "', "[" * 200, "Python 3."))
def agent_file(data):
    "A file for agents, and what it names as a file that defines names: each name lies in its line, and nothing is made up."
    text = text_of(data)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tree = definitions.Tree(_DEFINING, lambda path: text)
    for n in file_names.file_names(text):
        assert n.text and 1 <= n.line <= len(lines) and "\n" not in n.text
        tree.has(n.text, "a"), tree.covers(n.text, "a"), tree.file(n.text, "a")
        if n.kind == "minimum": definitions.later_minimum(tree, n.text)
    for kind, names in definitions.commands_of(tree).items(): assert names is None or all(x in text for x in names), kind


def exported_again(f):
    "What is imported and exported is known again."
    def read(f, held, before): return files_notes.new_entries([f], held, before, "a" * 40, "learnings", SAMPLE_NOW, True)
    made = read(f, {}, {})
    before = {f.path: {x["words"]: files_notes._imported(x) for x in made.rows}}
    source = {x.id: x for x in before[f.path].values()}
    text = files_notes.as_markdown([files_notes.Held(m, 0.5, source=source.get(m.id)) for m in made.memories])
    found = files_reading.entries_of(text.encode(), "OUT.md")
    out = files_reading.MemoryFile("OUT.md", Path("OUT.md"), text.encode(), tuple(replace(e, time=SAMPLE_NOW) for e in found), SAMPLE_NOW)
    assert not read(out, {m.id: m for m in made.memories}, before).added, text


def _no_number(word): raise AssertionError(f"{word} is no JSON")

@target('["memory_recall", {"query": "Flask", "as_of": "2026-01-31"}]', '["memory_store", {"text": "We use Flask", "tags": ["a"]}]', '["x", {}]',
        words=("null", "[]", "{}", "1e999", "NaN", "\\ud800", '"limit": 51', '"tags": "a"', "true", "9" * 5000, '"memory_review"', '"memory_update"',
               '"memory_id": "mem_"', '"importance": 2'))
def tool_call(data):
    "What an MCP client calls a tool with: the answer is JSON, and none is an accident."
    try: name, given = json.loads(data)
    except (ValueError, TypeError, RecursionError): return
    if not isinstance(given, dict): return
    said = apps_server.call_tool(workspace.Workspace(str(folder("nowhere") / "none")), str(name), given)
    assert "the server's log" not in said["content"][0]["text"]
    json.loads(json.dumps(said).encode(), parse_constant=_no_number)
