"""Design 2, "Deep Observability": the table of its spans and attributes, and its trace hierarchy, walked over a run."""
import asyncio

import pytest
from calls import new_repo, run, serve
from git_notes_consolidation.observability import tracing as observe
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.observability.signals import SPANS
from git_notes_consolidation.consolidation.stores import EdgeStore, MetadataStore, SummaryStore
from git_notes_consolidation.consolidation.undo import undo
from git_notes_consolidation.consolidation.service import apply_file
from helpers import SOURCES, add_memories, replace_everywhere, story

# "Span Attributes by Operation", and the spans of "Instrumentation by Module" that it leaves out, with the attributes that its hierarchy shows.
SHOWN = {
    "consolidation.run": {"mode", "dry_run", "checkpoint_id"},
    "consolidation.scan": {"memories_count", "metadata_loaded"},
    "consolidation.cluster": {"clusters_found", "min_size", "max_size", "threshold"},
    "consolidation.summarize": {"cluster_id", "source_count", "tokens_used"},
    "consolidation.supersession": set(),
    "consolidation.tier": set(),
    "consolidation.persist": set(),
    "retention.compute": {"recency", "activation", "importance", "overall"},  # memory_id at log level trace
    "clustering.execute": set(),
    "clustering.compute_distances": set(),
    "store.metadata.read": {"count"},
    "store.metadata.write": set(),
    "store.summary.read": set(),
    "store.summary.write": set(),
    "store.edge.read": set(),
    "store.edge.write": set(),
}
ELSEWHERE = {  # In test_signals.py: what a run without a language model does not open
    "llm.summarize": {"model", "provider", "prompt_tokens", "completion_tokens"},
    "llm.detect_supersession": {"older_id", "newer_id", "result", "confidence"},
    "llm.reason": set(),
    "recall.search": {"query_length", "mode", "limit", "result_count"},
    "recall.filter_by_tier": set(),
    "recall.increment_activation": set(),
    "reasoning.recall": {"query", "temporal_patterns_found", "confidence"},
    "reasoning.resolve_temporal": set(),
    "reasoning.synthesize": set(),
    "session.inject_summaries": {"existing_replaced", "summaries_count", "tokens_used"},
    "session.select_summaries": set(),
    "session.format_block": set(),
    "store.summary.search": set(),
    "git.notes.sync": set(),
}


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


@pytest.fixture
def heard(monkeypatch): return listen(monkeypatch)


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


def test_the_table_is_the_designs(shared):
    "Every span that design 2 names is in the catalogue; test_signals.py sees each opened, with its attributes."
    import re
    text = (shared / "designs" / "2-git-notes-memory-architecture.md").read_text(encoding="utf-8")
    text = text[text.index("### Instrumentation by Module"):text.index("### Logging Guidelines")]
    named = set(re.findall(r"\b((?:consolidation|llm|recall|reasoning|session|store|git|retention|clustering)(?:\.[a-z]+)?\.[a-z_]+)\b", text))
    metrics = {"consolidation.runs", "consolidation.duration_seconds", "consolidation.scan.memories", "consolidation.mode", "consolidation.dry_run"}
    assert named - metrics == SHOWN.keys() | ELSEWHERE.keys() and not SHOWN.keys() & ELSEWHERE.keys()
    for name, attributes in re.findall(r"^\| `([a-z_.]+)` \| (.+) \|$", text, re.M):
        assert set(attributes.split(", ")) - {"memory_id"} == (SHOWN | ELSEWHERE)[name] - {"memory_id"}, name
    for name, attributes in (SHOWN | ELSEWHERE).items(): assert attributes <= {*SPANS[name].attributes}, name


@pytest.mark.slow
def test_attributes_say_what_happened(whole):
    trace, result = whole
    def said(name): return {k: v for k, v in trace.one(name).attributes.items() if k in SHOWN[name]}
    assert said("consolidation.run") == {"mode": "full", "dry_run": False, "checkpoint_id": "nightly-7"}
    assert said("consolidation.scan")["memories_count"] == result.memories_processed == len(story()) + 5 and said("consolidation.scan")["metadata_loaded"] == 31
    assert said("consolidation.cluster") == {"clusters_found": result.clusters_found, "min_size": 3, "max_size": 20, "threshold": 0.25}
    told = said("consolidation.summarize")
    assert told["tokens_used"] == 0 and told["source_count"] >= 3 * result.clusters_found and told["cluster_id"] == tuple(range(result.clusters_found))
    assert trace.one("consolidation.tier").attributes["transitions"] == len(result.tier_transitions)
    assert {s.attributes["count"] for s in trace.named("retention.compute")} == {result.memories_processed}
    assert all(0 <= s.attributes[k] <= 1 for s in trace.named("retention.compute") for k in ("recency", "activation", "importance", "overall"))
    assert trace.named("store.metadata.read")[-1].attributes["count"] > 0


def test_a_dry_run_and_an_incremental_run_say_so(heard, tmp_path):
    home = new_repo(tmp_path, story())
    service = serve(home)
    asyncio.run(service.run_consolidation(dry_run=True))
    (s,) = Trace(heard.get_finished_spans()).named("consolidation.run")
    assert (s.attributes["mode"], s.attributes["dry_run"], s.attributes["checkpoint_id"]) == ("incremental", True, "")
    names = {s.name for s in heard.get_finished_spans()}
    assert "consolidation.tier" in names and not {"consolidation.persist", "store.metadata.write", "store.edge.write", "store.summary.write"} & names


# "Trace Hierarchy Example". Ours is the same but for two things: effects come last (every write lies in PERSIST, not in the phase that
# worked it out), and a score is computed in TIER, after supersession, not in SCAN (design-defects A11).

INSIDE = {
    "consolidation.scan": {"consolidation.run"}, "consolidation.cluster": {"consolidation.run"}, "consolidation.summarize": {"consolidation.run"},
    "consolidation.supersession": {"consolidation.run"}, "consolidation.tier": {"consolidation.run"}, "consolidation.persist": {"consolidation.run"},
    "clustering.compute_distances": {"consolidation.cluster", "consolidation.run"}, "clustering.execute": {"consolidation.cluster", "consolidation.run"},
    "store.metadata.write": {"consolidation.persist", "consolidation.run"}, "store.summary.write": {"consolidation.persist", "consolidation.run"},
    "store.edge.write": {"consolidation.persist", "consolidation.run"},
}


def test_what_lies_in_what(whole):
    trace, result = whole
    for name in INSIDE: assert all(set(trace.above(s)) == INSIDE[name] for s in trace.named(name)), name
    assert trace.one("consolidation.run").parent is None and len({s.context.trace_id for s in trace.spans}) == 1
    assert [s.attributes["count"] for s in trace.named("retention.compute") if "consolidation.tier" in trace.above(s)] == [result.memories_processed]
    assert {"store.metadata.read", "store.edge.read", "store.summary.read"} <= trace.under("consolidation.scan")


def test_each_memory_has_its_span_at_level_trace_alone(heard, tmp_path, caplog):
    from git_notes_consolidation.observability.logs import TRACE
    home = new_repo(tmp_path, story())
    with caplog.at_level(TRACE, "git_notes_consolidation"): result = run(home)
    each = [s for s in heard.get_finished_spans() if "memory_id" in (s.attributes or {})]
    assert {s.name for s in each} == {"retention.compute"} and len({s.attributes["memory_id"] for s in each}) == result.memories_processed
    assert {"recency", "activation", "importance", "overall"} <= set(each[0].attributes)


def test_phases_come_one_after_the_other(whole):
    trace, _ = whole
    order = [trace.one(f"consolidation.{p}") for p in ("scan", "supersession", "cluster", "tier", "persist")]
    assert all(a.end_time <= b.start_time for a, b in zip(order, order[1:]))
    told = trace.named("consolidation.summarize")
    assert all(order[2].end_time <= s.start_time and s.end_time <= order[3].start_time for s in told)


# The stores by themselves


@pytest.mark.slow
def test_stores_read_and_write_in_spans(heard, tmp_path):
    home = new_repo(tmp_path, story())
    run(home)
    repo = open_repo(home)
    for store, name in ((MetadataStore, "metadata"), (SummaryStore, "summary"), (EdgeStore, "edge")):
        heard.clear()
        x = next(iter(store(repo).all().values()))
        assert f"store.{name}.read" in {s.name for s in heard.get_finished_spans()}
        heard.clear()
        store(repo).put(x, SAMPLE_NOW)
        written = [s for s in heard.get_finished_spans() if s.name == f"store.{name}.write"]
        assert [s.attributes["count"] for s in written] == [1]


def test_an_error_is_on_the_span(heard, tmp_path, monkeypatch):
    from git_notes_consolidation.consolidation import pipeline as consolidation_pipeline
    from git_notes_consolidation.consolidation.plan import Guard
    home = new_repo(tmp_path, story())
    plan = serve(home, max_change=1.0).plan(SAMPLE_NOW).to_json()
    heard.clear()
    replace_everywhere(monkeypatch, consolidation_pipeline, "ALWAYS", 0)
    with pytest.raises(Guard): apply_file(serve(home, max_change=0.0), plan)
    s = Trace(heard.get_finished_spans()).one("consolidation.run")
    assert s.status.status_code.name == "ERROR" and s.events[0].attributes["exception.type"].endswith("Guard")


@pytest.mark.slow
def test_without_a_listener_there_is_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(observe, "listening", lambda signal="trace": False)
    monkeypatch.setattr(observe.Handle, "set", lambda self, **kw: (_ for _ in ()).throw(AssertionError) if self.inner is not None else None)
    home = new_repo(tmp_path, story())
    first = run(home)
    assert first.changed and undo(serve(home), first.run_id)


def test_only_observe_and_exporting_name_opentelemetry():
    for path in SOURCES:
        if path.name not in ("tracing.py", "metrics.py", "telemetry.py"): assert "opentelemetry" not in path.read_text(encoding="utf-8"), path.name
