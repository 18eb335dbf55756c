"""Spans and metrics: nothing without a listener, everything with one."""
import asyncio
import subprocess
import sys

import pytest
from git_notes_consolidation.observability import tracing as observe

OTEL = "[m for m in sys.modules if m.split('.')[0] == 'opentelemetry']"


@pytest.fixture
def seen(monkeypatch):
    "A listener of this test's own: the finished spans."
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter.get_finished_spans


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


def test_coroutines_side_by_side_keep_their_own_children(seen):
    async def work(i):
        with observe.span("work"), observe.span("step", i=i): await asyncio.sleep(0.001 * (3 - i))
    async def both():
        with observe.span("run"): await asyncio.gather(*(work(i) for i in range(3)))
    asyncio.run(both())
    by_id = {s.context.span_id: s for s in seen()}
    steps = [s for s in seen() if s.name == "step"]
    assert len({s.parent.span_id for s in steps}) == 3
    assert {by_id[s.parent.span_id].name for s in steps} == {"work"} and {by_id[s.parent.span_id].name for s in seen() if s.name == "work"} == {"run"}
