"""Design 2, "Deep Observability": the table of its spans and attributes, and its trace hierarchy, walked over a run."""
import asyncio

import pytest
from calls import new_repo, run, serve
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from helpers import add_memories, story


class Trace:
    "Finished spans, by name and by parent."
    def __init__(self, spans): self.spans, self.by_id = spans, {s.context.span_id: s for s in spans}
    def named(self, name): return [s for s in self.spans if s.name == name]
    def one(self, name): (s,) = self.named(name); return s
    def above(self, s):
        "The names of all spans around one, innermost first."
        out = []
        while s.parent is not None: s = self.by_id[s.parent.span_id]; out.append(s.name)
        return out
    def under(self, name): return {s.name for s in self.spans if name in self.above(s)}


def listen(m):
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    m.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    "A full run by the designs' method, on a repository that knows something already."
    home = new_repo(tmp_path_factory.mktemp("spans") / "repo", story())
    run(home)
    more = [mem("ADR-099: We build on trains", "Supersedes ADR-010.", days_ago=1),
            *(mem(f"The {w} worker has {n} threads", f"The {w} worker has {n} threads and a pool.", days_ago=n, namespace="research")
              for n, w in enumerate(("audit", "thumbnail", "backup", "webhook"), 2))]
    add_memories(home, more)
    with pytest.MonkeyPatch.context() as m:
        exporter = listen(m)
        result = asyncio.run(serve(home).run_consolidation(full=True, checkpoint_id="nightly-7", now=SAMPLE_NOW))
        assert result.success and result.summaries_created and result.supersessions_detected and result.tier_transitions
        return Trace(exporter.get_finished_spans()), result


# "Trace Hierarchy Example". Ours is the same but for two things: effects come last (every write lies in PERSIST, not in the phase that
# worked it out), and a score is computed in TIER, after supersession, not in SCAN (design-defects A11).


def test_phases_come_one_after_the_other(whole):
    trace, _ = whole
    order = [trace.one(f"consolidation.{p}") for p in ("scan", "supersession", "cluster", "tier", "persist")]
    assert all(a.end_time <= b.start_time for a, b in zip(order, order[1:]))
    told = trace.named("consolidation.summarize")
    assert all(order[2].end_time <= s.start_time and s.end_time <= order[3].start_time for s in told)
