"""What leaves a process: logs, OTLP to a real receiver, and numbers for Prometheus; and that none of it can do harm."""
import gzip
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent import futures
from importlib import import_module

import pytest
from calls import COMMAND, gnc as here, new_repo
from git_notes_consolidation.apps.cli import research as metrics_command
from git_notes_consolidation.observability import metrics as tally
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.observability.signals import METRICS, SPANS, prometheus_name
from helpers import git, story

NOW = SAMPLE_NOW.isoformat()


class Receiver:
    "A collector: takes OTLP over HTTP, and answers as it is told."
    def __init__(self, status=200, delay=0.0):
        self.traces, self.metrics, self.agents = [], [], []
        mine = self
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip": body = gzip.decompress(body)
                if delay: time.sleep(delay)
                mine.take(self.path, body)
                self.send_response(status); self.send_header("Content-Length", "0"); self.end_headers()
            def log_message(self, *_): pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, path, body):
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        kind, into = {"/v1/traces": (ExportTraceServiceRequest, self.traces), "/v1/metrics": (ExportMetricsServiceRequest, self.metrics)}[path]
        (said := kind()).ParseFromString(body)
        into.append(said)

    def __enter__(self): threading.Thread(target=self.server.serve_forever, daemon=True).start(); return self
    def __exit__(self, *_): self.server.shutdown(); self.server.server_close()

    @property
    def spans(self): return [s for r in self.traces for x in r.resource_spans for y in x.scope_spans for s in y.spans]
    @property
    def numbers(self): return {m.name: m for r in self.metrics for x in r.resource_metrics for y in x.scope_metrics for m in y.metrics}
    @property
    def service(self): return {a.key: a.value.string_value for r in self.traces for x in r.resource_spans for a in x.resource.attributes}


def gnc(repo, *args, cwd=None, **env):
    "A command in a process of its own, with nothing of ours in its environment but this."
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_", "OTEL_"))}
    begin = time.monotonic()
    command = [*COMMAND, "--repo", str(repo), "--now", NOW, *args]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=clean | env, cwd=cwd, stdin=subprocess.DEVNULL, timeout=120)
    done.seconds = time.monotonic() - begin
    return done


@pytest.fixture
def repo(tmp_path): return new_repo(tmp_path / "repo", story())


# OTLP


def test_spans_and_metrics_of_a_run_arrive(repo):
    with Receiver() as r:
        done = gnc(repo, "consolidate", MEMORY_PLUGIN_OTLP_ENDPOINT=r.url)
    assert (done.returncode, done.stderr) == (0, "")
    by_id = {s.span_id: s.name for s in r.spans}
    names = {s.name for s in r.spans}
    assert {"consolidation.run", "consolidation.scan", "consolidation.tier", "consolidation.persist", "store.edge.write"} <= names <= SPANS.keys()
    assert {by_id[s.parent_span_id] for s in r.spans if s.name == "consolidation.tier"} == {"consolidation.run"}
    assert r.service["service.name"] == "git-notes-consolidation" and r.numbers.keys() <= METRICS.keys()
    runs, = r.numbers["consolidation.runs"].sum.data_points
    assert runs.as_int == 1 and r.numbers["consolidation.duration_seconds"].unit == "s"
    assert [*r.numbers["retention.score_distribution"].histogram.data_points[0].explicit_bounds] == [*METRICS["retention.score_distribution"].buckets]
    assert "Supersedes" not in str(r.traces)


@pytest.mark.slow
def test_they_arrive_over_grpc_too(repo):
    "A collector that speaks gRPC alone, at a port that does not say so."
    grpc = pytest.importorskip("grpc")
    got, server = [], grpc.server(futures.ThreadPoolExecutor(2))
    for signal in ("Trace", "Metrics"):
        name = f"opentelemetry.proto.collector.{signal.lower()}.v1.{signal.lower()}_service_pb2"
        there, reply = import_module(f"{name}_grpc"), getattr(import_module(name), f"Export{signal}ServiceResponse")
        base = getattr(there, f"{signal}ServiceServicer")
        mine = type("Service", (base,), {"Export": lambda self, request, context, reply=reply: got.append(request) or reply()})
        getattr(there, f"add_{signal}ServiceServicer_to_server")(mine(), server)
    url = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try: done = gnc(repo, "consolidate", MEMORY_PLUGIN_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    finally: server.stop(None)
    assert (done.returncode, done.stderr) == (0, "") and {type(x).__name__ for x in got} == {"ExportTraceServiceRequest", "ExportMetricsServiceRequest"}


@pytest.mark.slow
def test_with_spans_a_line_names_its_trace(repo):
    with Receiver() as r:
        done = gnc(repo, "consolidate", "--dry-run", MEMORY_PLUGIN_LOG_LEVEL="info", MEMORY_PLUGIN_OTLP_ENDPOINT=r.url)
    rows = [json.loads(line) for line in done.stderr.splitlines()]
    ids = {s.name: s.span_id.hex() for s in r.spans}
    assert {row["trace_id"] for row in rows} == {s.trace_id.hex() for s in r.spans if s.name == "consolidation.run"}
    assert next(row["span_id"] for row in rows if row["event"] == "consolidation.tier ends") == ids["consolidation.tier"]


@pytest.mark.slow
def test_the_standard_variables_hold(repo):
    with Receiver() as r:
        done = gnc(repo, "consolidate", "--dry-run", OTEL_EXPORTER_OTLP_ENDPOINT=r.url, OTEL_SERVICE_NAME="nightly", MEMORY_PLUGIN_METRICS_ENABLED="false")
        assert done.returncode == 0 and r.spans and not r.metrics and r.service["service.name"] == "nightly"
        r.traces.clear()
        gnc(repo, "runs", OTEL_EXPORTER_OTLP_ENDPOINT=r.url, OTEL_SDK_DISABLED="true")
        gnc(repo, "runs", MEMORY_PLUGIN_OTLP_ENDPOINT=r.url, MEMORY_PLUGIN_OBSERVABILITY_ENABLED="false")
        assert not r.traces and not r.metrics


@pytest.mark.slow
def test_nothing_is_sent_because_a_file_of_the_repository_says_so(repo):
    with Receiver() as r:
        (repo / ".env").write_text(f"MEMORY_PLUGIN_OTLP_ENDPOINT={r.url}\nMEMORY_PLUGIN_TRACING_ENABLED=true\n", encoding="utf-8")
        done = gnc(repo, "recall", "trains", cwd=repo)
        assert done.returncode == 0 and not r.traces and not r.metrics
        (repo / "gnc.toml").write_text(f'otlp_endpoint = "{r.url}"\n', encoding="utf-8")
        assert here("status", repo=repo).code == 2  # No such setting


@pytest.fixture(scope="module")
def plain(tmp_path_factory): return gnc(new_repo(tmp_path_factory.mktemp("plain") / "repo", story()), "consolidate", "--dry-run", "--json")


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["refused", "slow", "500"])
def test_a_collector_that_is_away_delays_little_and_fails_nothing(repo, plain, fault):
    with Receiver(500 if fault == "500" else 200, 30.0 if fault == "slow" else 0.0) as r, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}" if fault == "refused" else r.url
        done = gnc(repo, "consolidate", "--dry-run", "--json", MEMORY_PLUGIN_OTLP_ENDPOINT=url)
    assert done.returncode == 0 and json.loads(done.stdout).keys() == json.loads(plain.stdout).keys()
    assert done.stderr.count("\n") == 1 and "could be sent" in done.stderr and "Traceback" not in done.stderr
    assert done.seconds < 2 * plain.seconds + 2.0 + 4.0  # The deadline, and what the SDK takes to be imported on a busy machine


@pytest.mark.slow
@pytest.mark.parametrize(("away", "env", "remedy"), [
    ("import opentelemetry\nopentelemetry.__path__ = []", {"MEMORY_PLUGIN_TRACING_ENABLED": "true"}, "'git-notes-consolidation[otel]'"),
    ("import sys\nsys.modules['opentelemetry.exporter.otlp.proto.grpc'] = None", {"MEMORY_PLUGIN_OTLP_ENDPOINT": "http://127.0.0.1:4317"},
     "opentelemetry-exporter-otlp-proto-grpc")], ids=["the SDK", "gRPC"])
def test_where_a_package_is_missing_one_line_says_what_to_install(repo, tmp_path, away, env, remedy):
    (tmp_path / "sitecustomize.py").write_text(f"{away}\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = gnc(repo, "consolidate", "--dry-run", PYTHONPATH=path, **env)
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and f"pip install {remedy}" in done.stderr


@pytest.mark.slow
def test_unset_nothing_of_it_is_imported(repo):
    code = ("import sys, runpy; from git_notes_consolidation.apps.entry import main\ntry: main()\nexcept SystemExit: pass\n"
            "print([m for m in sys.modules if m.startswith('opentelemetry') or m.endswith('.exporting')])")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_", "OTEL_"))}
    done = subprocess.run([sys.executable, "-c", code, "--repo", str(repo), "runs"], capture_output=True, encoding="utf-8", env=clean)
    assert done.stdout.splitlines()[-1] == "[]" and done.stderr == ""


def test_the_session_start_hook_loads_none_of_it(repo):
    code = ("import sys, os, git_notes_consolidation.apps.entry as e\nreal = os._exit\n"
            "def over(n): print([m for m in sys.modules if m.startswith(('opentelemetry', 'logging')) or m.endswith(('.observe', '.logs', '.telemetry'))]"
            ", file=sys.stderr, flush=True); real(n)\n"
            "os._exit = over\nsys.argv[1:] = ['hook', 'session-start']\ne.main()")
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps({"cwd": str(repo)}), capture_output=True, encoding="utf-8",
                          env=os.environ | {"MEMORY_PLUGIN_OBSERVABILITY_ENABLED": "true", "MEMORY_PLUGIN_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert done.stderr.splitlines()[-1] == "[]", done.stderr


# Logs


@pytest.mark.slow
def test_json_lines_of_a_run_belong_together_and_tell_what_was_decided(repo):
    done = gnc(repo, "consolidate", "--json", MEMORY_PLUGIN_LOG_LEVEL="info", MEMORY_PLUGIN_LOG_FORMAT="json")
    rows = [json.loads(line) for line in done.stderr.splitlines()]
    assert len({r["correlation_id"] for r in rows}) == 1 and {r["level"] for r in rows} == {"info"}
    events = [r["event"] for r in rows]
    for phase in ("scan", "supersession", "cluster", "summarize", "tier", "persist"): assert f"consolidation.{phase} ends" in events
    moves = [r for r in rows if r["event"] == "tier changed"]
    assert len(moves) == len(json.loads(done.stdout)["tier_transitions"]) > 0
    assert {"memory_id", "from_tier", "to_tier", "retention_score", "reason"} <= moves[0].keys()
    assert all(r["seconds"] >= 0 for r in rows if r["event"].endswith(" ends"))


@pytest.mark.slow
def test_debug_tells_of_every_block_and_quiet_of_none(repo):
    said = gnc(repo, "consolidate", "--dry-run", MEMORY_PLUGIN_LOG_LEVEL="debug", MEMORY_PLUGIN_LOG_FORMAT="text").stderr
    assert "store.edge.read ends count=" in said and " debug " in said and "correlation_id=" in said and "memory_id=" not in said
    assert gnc(repo, "recall", "trains", MEMORY_PLUGIN_LOG_LEVEL="quiet").stderr == ""


@pytest.mark.slow
def test_an_error_is_told_once_with_what_it_was_about(tmp_path):
    plan = str(tmp_path / "plan.json")
    things = ("database", "queue", "cache", "parser", "scheduler", "logo", "licence")
    many = [m for x in things for m in (mem(f"Choice of the {x}", f"The {x} is old.", days_ago=60),
                                        mem(f"Another {x}", f"This supersedes “Choice of the {x}”.", days_ago=20))]
    repo = new_repo(tmp_path / "many", many)
    gnc(repo, "consolidate", "--plan", plan, "--max-change", "1")
    done = gnc(repo, "consolidate", "--apply", plan, "--max-change", "0", MEMORY_PLUGIN_LOG_LEVEL="quiet")
    rows = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert done.returncode == 3 and [(r["level"], r["event"], r["mode"]) for r in rows] == [("error", "consolidation.run failed", "plan")]
    assert rows[0]["error"].startswith("Guard: ")


@pytest.mark.slow
def test_what_a_variable_may_not_be_is_said(repo):
    done = gnc(repo, "runs", MEMORY_PLUGIN_LOG_LEVEL="loud", MEMORY_PLUGIN_METRICS_RETENTION="1h", MEMORY_PLUGIN_OTLP_ENDPOINT="localhost:4318")
    assert done.returncode == 0 and [line.split()[1] for line in done.stderr.splitlines()] == [
        "MEMORY_PLUGIN_LOG_LEVEL", "MEMORY_PLUGIN_METRICS_RETENTION", "MEMORY_PLUGIN_OTLP_ENDPOINT"]


# Prometheus


def parsed(text):
    parser = pytest.importorskip("prometheus_client.parser")
    return {f.name: f for f in parser.text_string_to_metric_families(text)}


@pytest.mark.slow
def test_numbers_of_several_processes_add_up_and_prometheus_reads_them(repo):
    on = {"MEMORY_PLUGIN_METRICS_ENABLED": "true"}
    for args in (["consolidate"], ["consolidate", "--full"], ["recall", "trains"]): assert gnc(repo, *args, **on).returncode == 0
    here("recall", "trains", repo=repo)  # Not counted
    text = here("metrics", repo=repo).out
    families = parsed(text)
    assert [s.value for s in families["git_notes_consolidation_runs"].samples] == [2.0]
    assert {s.labels["mode"]: s.value for s in families["git_notes_consolidation_recall_recalls_by_mode"].samples}["standard"] == 1.0
    duration = families["git_notes_consolidation_duration_seconds"]
    assert duration.type == "histogram" and sum(s.value for s in duration.samples if s.name.endswith("_count")) == 2.0
    assert all(s.labels["repository"] == "repo" for f in families.values() for s in f.samples)
    known = {prometheus_name(m).removesuffix("_total") for m in METRICS.values()}
    assert families.keys() <= known and all(f.documentation for f in families.values())
    assert sum(s.value for s in families["git_notes_consolidation_repository_memories"].samples) == here("status", "--json", repo=repo).json["distinct"]
    assert families["git_notes_consolidation_repository_last_run_duration_seconds"].samples[0].value > 0


@pytest.mark.slow
def test_a_file_for_a_collector_is_whole_and_readable(repo, tmp_path):
    into = tmp_path / "text"
    into.mkdir()
    assert here("metrics", "-o", into / "gnc.prom", repo=repo).out == "" and [p.name for p in into.iterdir()] == ["gnc.prom"]
    assert parsed((into / "gnc.prom").read_text(encoding="utf-8")) and (os.name == "nt" or (into / "gnc.prom").stat().st_mode & 0o044 == 0o044)
    said = here("metrics", "-o", tmp_path / "nowhere" / "gnc.prom", repo=repo)
    assert said.code == 2 and "no directory" in said.err
    assert {x["name"] for x in here("metrics", "--json", repo=repo).json["series"]} <= METRICS.keys() and metrics_command


def test_processes_that_end_together_all_count(tmp_path):
    code = ("import sys; from pathlib import Path; from git_notes_consolidation.observability.metrics import *\n"
            "t = Tally(); t.add('consolidation.runs', 1, {}); t.add('llm.latency', 0.3, {})\nfor _ in range(20): store_series(Path(sys.argv[1]), t, 1.0)")
    path = tmp_path / "gnc" / "metrics.db"
    running = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(3)]
    assert [p.wait() for p in running] == [0, 0, 0]
    assert [(s.value, sum(s.counts)) for s in tally.load_series(path)] == [(60.0, 0), (pytest.approx(18.0), 60)]


@pytest.mark.slow
def test_a_file_that_is_no_database_costs_the_numbers_alone(repo):
    (repo / ".git" / "gnc").mkdir(exist_ok=True)
    (repo / ".git" / "gnc" / "metrics.db").write_text("not a database, whatever its name says", encoding="utf-8")
    done = gnc(repo, "consolidate", "--dry-run", MEMORY_PLUGIN_METRICS_ENABLED="true")
    assert (done.returncode, done.stderr) == (0, "")
    assert here("metrics", repo=repo).code == 0


# Memory text in a log


@pytest.mark.slow
def test_a_memory_cannot_write_a_line_of_its_own(tmp_path):
    evil = "ADR-010\u2028{\"level\": \"error\"}\x1b[31m"
    home = new_repo(tmp_path / "repo", [*story(), mem(evil, "x\ny", days_ago=2)])
    git(home, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "--quiet", "--allow-empty", "--message=First")
    said = gnc(home, "recall", f"{evil}\nERROR forged", "--reason", MEMORY_PLUGIN_LOG_LEVEL="trace", MEMORY_PLUGIN_LOG_FORMAT="text",
               MEMORY_CONSOLIDATION_TRACE_LLM_CONTENT="true").stderr
    assert "forged" in said and "\x1b" not in said and "\u2028" not in said
    assert not [line for line in said.splitlines() if line.startswith("ERROR")]
