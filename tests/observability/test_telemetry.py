"""What leaves a process: logs, OTLP to a real receiver, and numbers for Prometheus; and that none of it can do harm."""
import gzip
import http.server
import json
import os
import socket
import subprocess
import threading
import time

import pytest
from calls import COMMAND, gnc as here, new_repo
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.observability.tracing import METRICS, SPANS, prometheus_name
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
