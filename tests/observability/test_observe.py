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
