"""A finished run tells whoever is configured, and nobody's trouble is the run's."""
import json
import os
import shlex
import socket
import sys
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from calls import gnc, new_repo, run
from git_notes_consolidation.consolidation import notify as service
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.writer import run_lock
from helpers import refs, story

PYTHON = shlex.quote(sys.executable)
WHERE = "MEMORY_CONSOLIDATION_EVENT_"


@pytest.fixture
def told(tmp_path): return new_repo(tmp_path / "tidewater", story())


@pytest.fixture
def keeper(tmp_path):
    "A command that keeps what it is told, a line each, and the file."
    file, program = tmp_path / "kept.jsonl", tmp_path / "keep.py"
    program.write_text(f"import sys\nopen({str(file)!r}, 'a').write(sys.stdin.read() + '\\n')\n")
    return f"{PYTHON} {shlex.quote(str(program))}", lambda: [json.loads(x) for x in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def web(answer):
    "A server; `answer` gets the handler. The address, and all that was asked."
    got = []
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0)), dict(self.headers)))
            answer(self)
        def do_GET(self): got.append((self.path, b"", {})); self.send_response(200); self.end_headers()
        def log_message(self, *args): pass
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try: yield f"http://127.0.0.1:{server.server_port}", got
    finally: server.shutdown(); server.server_close()


def says(status, **headers):
    def answer(h):
        h.send_response(status)
        for name, value in headers.items(): h.send_header(name, value)
        h.send_header("Content-Length", "0"); h.end_headers()
    return answer


def problems(result): return [w for w in result.warnings if w.startswith("event: ")]


def test_a_run_that_changed_something_is_told_once(told, keeper):
    command, kept = keeper
    first, second = run(told, event_command=command), run(told, event_command=command)
    assert (first.changed, second.changed) == (True, False) and len(kept()) == 1 and problems(first) == []
    event = kept()[0]
    assert (event["event"], event["schema"], event["run_id"], event["repository"]) == ("consolidation_completed", 1, first.run_id, "tidewater")
    assert event["at"] == SAMPLE_NOW.isoformat() and 0 < event["duration_s"] < 120
    counts = event["counts"]
    assert (counts["memories_processed"], counts["supersessions_detected"], counts["edges_extracted"]) == (36, 3, 6 + first.relations_found)
    assert counts["clusters_formed"] == first.clusters_found and counts["tier_transitions"] == len(first.tier_transitions)
    assert not any(m.summary in json.dumps(event) for m in story())


@pytest.mark.slow
def test_a_plan_that_is_applied_is_told_and_a_dry_run_is_not(told, keeper, tmp_path, monkeypatch):
    command, kept = keeper
    monkeypatch.setenv(WHERE + "COMMAND", command)
    assert gnc("consolidate", "--plan", tmp_path / "p.json", repo=told).code == 0 and gnc("consolidate", "--dry-run", repo=told).code == 0 and kept() == []
    assert gnc("consolidate", "--apply", tmp_path / "p.json", repo=told).code == 0 and len(kept()) == 1


@pytest.mark.slow
def test_it_comes_after_the_commit_and_outside_of_the_lock(told, tmp_path):
    file, program = tmp_path / "seen", tmp_path / "look.py"
    program.write_text(
        "import sys\nfrom git_notes_consolidation.store.git import open_repo; from git_notes_consolidation.store.writer import run_lock\nfrom "
        "git_notes_consolidation.consolidation.view import view\n"
                       f"with run_lock(open_repo({str(told)!r})): open({str(file)!r}, 'w').write(' '.join(view(open_repo({str(told)!r})).state.runs))\n")
    result = run(told, event_command=f"{PYTHON} {shlex.quote(str(program))}")
    assert problems(result) == [] and file.read_text() == result.run_id


FAILS = {"ended with 3: no room": f"{PYTHON} -c 'import sys; print(\"no room\", file=sys.stderr); sys.exit(3)'",
         "cannot be started": "no-such-program --at-all", "Permission denied": "/etc/passwd", "split into words": "say 'half", "embedded null byte": "a\0b"}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("why", FAILS)
def test_a_command_that_fails(told, why):
    result = run(told, event_command=FAILS[why])
    assert result.success and result.run_id and refs(told, "refs/notes/mem-runs") and len(problems(result)) == 1 and why in problems(result)[0]


def test_a_command_is_no_shell(told, tmp_path):
    here = tmp_path / "here"
    result = run(told, event_command=f"{PYTHON} -c 'import sys; sys.exit(sys.argv[1] == \"$(touch\")' $(touch {here}) ; touch {here}")
    assert "ended with 1" in problems(result)[0] and not here.exists()


@pytest.mark.slow
def test_a_command_that_does_not_end_is_ended_with_all_it_started(told, tmp_path, monkeypatch):
    monkeypatch.setattr(service.publish.__globals__["_command"], "__defaults__", (1.0,))
    child = ("import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
             f"with open({str(tmp_path / 'pid')!r}, 'w') as f: f.write(str(p.pid))\ntime.sleep(60)")
    begin = time.monotonic()
    result = run(told, event_command=f"{PYTHON} -c {shlex.quote(child)}")
    assert "did not end within 1 seconds" in problems(result)[0] and time.monotonic() - begin < 30
    pid = int((tmp_path / "pid").read_text())
    for _ in range(50):
        try: state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] if os.path.isdir("/proc/self") else os.kill(pid, 0) or "S"
        except (FileNotFoundError, ProcessLookupError): break
        if state == "Z": break
        time.sleep(0.1)
    else: pytest.fail("what it started goes on")


@pytest.mark.slow
def test_a_webhook(told):
    with web(says(204)) as (url, got): result = run(told, event_webhook=f"{url}/hook?key=s3cret")
    (path, body, headers), = got
    assert problems(result) == [] and path == "/hook?key=s3cret" and headers["Content-Type"] == "application/json"
    assert json.loads(body)["run_id"] == result.run_id


@pytest.mark.slow
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(told, status):
    with web(says(200)) as (other, reached), web(says(status, Location=f"{other}/x")) as (url, got): result = run(told, event_webhook=f"{url}/s3cret")
    assert len(got) == 1 and reached == [] and f"127.0.0.1 said {status}, which is not followed" in problems(result)[0] and "s3cret" not in problems(result)[0]


@pytest.mark.slow
def test_a_server_that_hangs_or_drips(told, tmp_path):
    def drip(h):
        for _ in range(600): h.wfile.write(b"H"); h.wfile.flush(); time.sleep(0.1)
    for n, answer in enumerate((lambda h: time.sleep(60), drip)):
        home = new_repo(tmp_path / str(n), story())
        begin = time.monotonic()
        with web(answer) as (url, _): result = run(home, event_webhook=url)
        assert result.success and "did not answer within 5 seconds" in problems(result)[0] or "timed out" in problems(result)[0]
        assert time.monotonic() - begin < 40


@pytest.mark.slow
def test_a_server_that_is_not_there_or_talks_nonsense(told, tmp_path):
    with socket.socket() as s: s.bind(("127.0.0.1", 0)); port = s.getsockname()[1]
    result = run(told, event_webhook=f"http://127.0.0.1:{port}/")
    assert result.success and "refused" in problems(result)[0]
    nonsense = b"\x00\xff\x1b[2J nonsense\r\n\r\n"
    with web(lambda h: h.wfile.write(nonsense)) as (url, _): result = run(new_repo(tmp_path / "two", story()), event_webhook=url)
    assert result.success and len(problems(result)) == 1


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("url", ["ftp://example.org/x", "file:///etc/passwd", "https://me:s3cret@example.org", "http://", "http://[::1",
                                 "http://exa mple.org", "x"])
def test_addresses_that_are_not_used(told, url):
    result = run(told, event_webhook=url)
    assert result.success and "event_webhook is no address" in problems(result)[0] and "s3cret" not in problems(result)[0]


@pytest.mark.slow
def test_local_only_holds_for_events(told):
    result = run(told, event_webhook="https://hooks.example.org/T0", llm_local_only=True)
    assert problems(result) == ["event: event_webhook: hooks.example.org is not told anything: llm_local_only, and it is not local"]
    with web(says(200)) as (url, got): result = run(new_repo(told.parent / "b", story()), event_webhook=url, llm_local_only=True)
    assert problems(result) == [] and len(got) == 1


@pytest.mark.slow
def test_off_by_default_and_never_by_a_file(told, tmp_path):
    for line in ('event_command = "touch here"', 'event_webhook = "http://127.0.0.1:1"'):
        (told / "gnc.toml").write_text(line)
        done = gnc("consolidate", repo=told)
        assert done.code == 0 and "event" not in done.out + done.err and not (told / "here").exists()
    assert problems(run(new_repo(tmp_path / "two", story()))) == []


def test_problems_are_seen_and_the_lock_is_free(told, monkeypatch):
    monkeypatch.setenv(WHERE + "COMMAND", "no-such\x1b[2J-program")
    done = gnc("consolidate", repo=told)
    assert done.code == 0 and "! event: event_command: no-such�[2J-program cannot be started" in done.out
    with run_lock(open_repo(told)): pass
