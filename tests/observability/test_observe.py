"""Spans and metrics: nothing without a listener, everything with one."""
import subprocess
import sys


OTEL = "[m for m in sys.modules if m.split('.')[0] == 'opentelemetry']"


def run(code):
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_using_it_imports_nothing_and_does_nothing():
    assert run(f"""
from git_notes_consolidation.observability.tracing import span, traced; from git_notes_consolidation.observability.metrics import count, record
@traced("f")
def f(x):
    with span("s", a=1) as s: s.set(b=2)
    count("consolidation.runs"); record("llm.latency", 1.0, label="x")
    return x, s.inner
print(f(3), {OTEL})""") == "(3, None) []"


def test_whoever_imports_the_api_later_is_served():
    assert run("""
from git_notes_consolidation.observability.tracing import span
with span("before"): pass
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
seen = InMemorySpanExporter(); provider = TracerProvider(); provider.add_span_processor(SimpleSpanProcessor(seen)); trace.set_tracer_provider(provider)
with span("after"): pass
print([s.name for s in seen.get_finished_spans()])""") == "['after']"
