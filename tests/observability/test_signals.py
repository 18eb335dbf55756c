"""The catalogue of spans and metrics: it is held against the code, and everything in it is emitted by what people do."""
import ast
import pytest
import re
import subprocess
import sys
from calls import new_repo
from dataclasses import replace
from helpers import SOURCES, git, replace_everywhere, story
from llm_servers import FaultyServer, sensible
from git_notes_consolidation.consolidation import (
    pipeline as consolidation_pipeline, plan as consolidation_plan, service as consolidation_service, status as consolidation_status, stores as service)
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.llm.client import Client, ask_all
from git_notes_consolidation.llm.protocol import Request
from git_notes_consolidation.observability import tracing as logs
from git_notes_consolidation.observability.tracing import METRICS, SPANS
from git_notes_consolidation.recall.reason import ReasonedRecallService
from git_notes_consolidation.recall.service import open_recall
from git_notes_consolidation.session.context import SessionStartSummaryInjector
from git_notes_consolidation.store import sync
from git_notes_consolidation.writing import write as writing


SPANNING, MEASURING = {"span", "detail_span"}, {"count", "count_up", "record", "measure", "gauge", "count_outcomes"}


def uses(functions):
    "Every name given to one of these functions of observe, with `*` for what is only known when it runs."
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^ *from \.[\w.]*\b(tracing|telemetry) import", text, re.M): continue
        tree = ast.parse(text)
        tracing = [x for x in ast.walk(tree) if isinstance(x, ast.ImportFrom) and (x.module or "").split(".")[-1] in ("tracing", "telemetry")]
        mine = {a.asname or a.name for x in tracing for a in x.names} & functions
        for x in ast.walk(tree):
            if not (isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id in mine): continue
            if isinstance(x.args[0], ast.JoinedStr): yield path.stem, "".join(p.value if isinstance(p, ast.Constant) else "*" for p in x.args[0].values)
            else: yield path.stem, ast.literal_eval(x.args[0])


def fits(name, used): return re.fullmatch(re.escape(used).replace(r"\*", r"[\w{}]+"), name) is not None


@pytest.mark.parametrize("functions, known", [(SPANNING, SPANS), (MEASURING, METRICS)], ids=["spans", "metrics"])
def test_code_and_catalogue_name_the_same(functions, known):
    used = {*uses(functions)}
    for module, name in used: assert any(fits(k, name) for k in known), f"{module} emits {name}, which signals does not list"
    for k in known:
        if not k.startswith("repository."): assert any(fits(k, name) for _, name in used), f"{k} is listed, and nothing emits it"


def test_the_designs_metrics_are_there(shared):
    "Every word of the table's column “Metrics” is one of ours, under its module."
    text = (shared / "designs" / "2-git-notes-memory-architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*\*([\w ()]+)\*\* \| ([^|]+) \|", text[text.index("### Instrumentation by Module"):text.index("### Trace Hierarchy")], re.M)
    words = {re.sub(r" \(.*\)", "", w) for _, column in rows for w in column.split(", ")}
    mine = {m.name.partition(".")[2] for m in METRICS.values()} | {m.name.replace(".", "_") for m in METRICS.values()}
    assert len(rows) == 10 and words - mine == {"run_duration"} and "consolidation.duration_seconds" in METRICS  # As the design's own code calls it


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    "A run with a language model, an undo, searches, answers, a session, a memory written, a sync: the spans and the metrics of it all."
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    root = tmp_path_factory.mktemp("signals")
    home = new_repo(root / "repo", [*story(), mem("Serve the API with Flask", "Small, and all of us know it.", days_ago=90),
                                    mem("The API speaks FastAPI", "Handlers are typed, and the schema comes for free.", days_ago=3)])
    git(root, "init", "--quiet", "--bare", "remote")
    git(home, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "--quiet", "--allow-empty", "--message=First")
    exporter, spans, reader = InMemorySpanExporter(), TracerProvider(), InMemoryMetricReader()
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider([reader])
    with pytest.MonkeyPatch.context() as m, FaultyServer(brain=sensible(lambda new, old: "supersede" if "FastAPI" in new else "coexist")) as server:
        m.setattr(trace, "get_tracer", spans.get_tracer); m.setattr(metrics, "get_meter_provider", lambda: meters)
        env = {"MEMORY_CONSOLIDATION_LLM_BASE_URL": server.url}
        m.setenv(*next(iter(env.items())))
        settings = load_settings({"llm_provider": "lmstudio", "llm_timeout_s": 5, "max_change": 1.0}, env=env)
        s = replace(service.open_service(home, settings), clock=lambda: SAMPLE_NOW)
        r = consolidation_service.run(s, SAMPLE_NOW)
        assert r.success and r.summaries_created and r.llm["calls"]
        consolidation_status.undo(s, consolidation_status.undo(s, r.run_id, SAMPLE_NOW)[0], SAMPLE_NOW)
        recall = open_recall(home, settings, clock=lambda: SAMPLE_NOW)
        assert recall.search("FastAPI handlers")
        with Client(settings.config, (), replay=lambda q: "{}") as said:
            for task in ("merge", "ping", "answer"): ask_all(said, [(Request(task, ({"role": "user", "content": task},), {}, 10, "1"), dict)])
            assert ReasonedRecallService(recall).answer("When did we last week decide on FastAPI?").answer
        assert SessionStartSummaryInjector(service.SummaryStore(s.repo)).inject_summaries("").memories
        writing.open_writing(home, load_settings({"llm_provider": "off"}, env={}), clock=lambda: SAMPLE_NOW).remember("The harbour worker has nine threads")
        sync.sync(s.repo, str(root / "remote"))
        replace_everywhere(m, consolidation_pipeline, "ALWAYS", 0)
        strict = serve_strict(new_repo(root / "strict", story()))
        plan = replace(strict, settings=settings, client=None).plan(SAMPLE_NOW).to_json()
        with pytest.raises(consolidation_plan.Guard): consolidation_service.apply_file(strict, plan)
        with FaultyServer(brain=lambda body: "no JSON") as broken:
            m.setenv("MEMORY_CONSOLIDATION_LLM_BASE_URL", broken.url)
            with Client(settings.config, service._client(s.repo, settings).providers) as c:
                ask_all(c, [(Request("judge", ({"role": "user", "content": "?"},), {}, 10, "1", {"older_id": [], "newer_id": []}), lambda text: 1 / 0)])
        data = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    return exporter.get_finished_spans(), {x.name: [*x.data.data_points] for x in data}


def serve_strict(home): return service.open_service(home, load_settings({"llm_provider": "off", "max_change": 0.0}, env={}))


def above(s, by_id): return [] if s.parent is None else [kind(by_id[s.parent.span_id].name), *above(by_id[s.parent.span_id], by_id)]
def kind(name): return "chat {model}" if name.startswith("chat ") else name


@pytest.mark.slow
def test_each_span_is_opened_with_its_attributes(everything):
    by_id = {s.context.span_id: s for s in everything[0]}
    assert SPANS.keys() == {kind(s.name) for s in everything[0]}
    for s in everything[0]:
        known = SPANS[kind(s.name)]
        if s.status.status_code.name != "ERROR": assert {*known.attributes} <= {*s.attributes}, (s.name, dict(s.attributes))
        if known.parent: assert known.parent in above(s, by_id), s.name


def test_each_metric_is_emitted_with_its_labels(everything):
    assert everything[1].keys() == {n for n in METRICS if not n.startswith("repository.")}
    for name, points in everything[1].items():
        for p in points: assert {*METRICS[name].labels} <= {*p.attributes}, (name, dict(p.attributes))
        extra = {k for p in points for k in p.attributes} - {*METRICS[name].labels}
        assert extra <= ({"error.type", "gen_ai.response.model"} if name.startswith("gen_ai") else set()), name


@pytest.mark.slow
def test_no_text_of_a_memory_or_a_question_is_in_a_span(everything):
    told = repr([s.to_json() for s in everything[0]])
    assert "FastAPI" not in told and "harbour" not in told and "Blueprints" not in told


def test_content_is_shown_where_somebody_asked_for_it(monkeypatch):
    assert logs.content("the secret plan") == "(15 characters)"
    monkeypatch.setattr(logs, "_CONTENT", [True])
    assert logs.content("the\nplan") == r"the\nplan" and len(logs.content("x" * 5000)) < 1100


def test_phases_come_one_after_the_other(everything):
    "Design 2's hierarchy, but for two things: effects come last, and a score is computed in TIER, after supersession."
    run = next(s for s in everything[0] if s.name == "consolidation.run")
    inside = [s for s in everything[0] if s.context.trace_id == run.context.trace_id]
    def one(phase): (s,) = [s for s in inside if s.name == f"consolidation.{phase}"]; return s
    order = [one(p) for p in ("scan", "supersession", "cluster", "tier", "persist")]
    assert all(a.end_time <= b.start_time for a, b in zip(order, order[1:]))
    told = [s for s in inside if s.name == "consolidation.summarize"]
    assert told and all(order[2].end_time <= s.start_time and s.end_time <= order[3].start_time for s in told)


def test_without_a_listener_nothing_is_imported_and_nothing_happens():
    code = """import sys
from git_notes_consolidation.observability.tracing import span; from git_notes_consolidation.observability.telemetry import count, record
def f(x):
    with span("s", a=1) as s: s.set(b=2)
    count("consolidation.runs"); record("llm.latency", 1.0, label="x")
    return x, s.inner
print(f(3), [m for m in sys.modules if m.split('.')[0] == 'opentelemetry'])"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "(3, None) []\n"
