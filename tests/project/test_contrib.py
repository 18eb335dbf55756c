"""contrib/: every name in the dashboard, the alerts and the configuration is one that the program gives, and they fit each other; the GitHub Action."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from calls import new_repo
from git_notes_consolidation.observability.tracing import METRICS, prometheus_name
from helpers import ROOT

HERE = ROOT / "contrib" / "monitoring"
BOARD = json.loads((HERE / "grafana/dashboards/memory.json").read_text())
PANELS = [p for p in BOARD["panels"] if p["type"] != "row"]
RULES = [r for g in yaml.safe_load((HERE / "alerts.yaml").read_text())["groups"] for r in g["rules"]]
SERVICES = yaml.safe_load((HERE / "compose.yaml").read_text())["services"]


# PromQL, as far as names go

_LABELLED = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
_GROUP = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_WORDS = {"and", "or", "unless", "bool", "offset", "by", "without", "inf", "nan"}


def series_in(expr):
    "The series that a query asks for, with the labels that it names for each: those in its braces, and those that anything is grouped by."
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expr)
    groups = {w for g in _GROUP.findall(bare) for w in re.findall(r"\w+", g)}
    braces = {name: set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inner)) for name, inner in _LABELLED.findall(bare)}
    rest = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"\"", " ", _GROUP.sub(" ", bare))
    names = {m[0] for m in re.finditer(r"(?<![\w.$])[a-zA-Z_:][\w:]*(?!\s*\()\b(?!\s*\()", rest)} - _WORDS
    return {n: groups | braces.get(n, set()) for n in names}


def given():
    "Every series that the program gives, with its labels."
    out = {}
    for m in METRICS.values():
        labels = {label.replace(".", "_") for label in m.labels} | {"job", "repository"}  # Which Prometheus and `gnc metrics` add
        ends = ("_bucket", "_sum", "_count") if m.kind == "histogram" else ("",)
        out |= {prometheus_name(m) + end: (m, labels | ({"le"} if end == "_bucket" else set())) for end in ends}
    return out


QUERIES = [(p["title"], t["expr"]) for p in PANELS for t in p["targets"] if "expr" in t] + [(r["alert"], r["expr"]) for r in RULES]


@pytest.mark.parametrize("expr", [e for _, e in QUERIES], ids=[f"{i}-{t}" for i, (t, _) in enumerate(QUERIES)])
def test_a_query_asks_for_what_there_is(expr):
    there, asked = given(), series_in(expr)
    assert asked and {*asked} <= {*there}, {*asked} - {*there}
    for name, labels in asked.items():
        assert labels <= there[name][1], (name, labels - there[name][1])
        kind = there[name][0].kind
        over_time = re.search(rf"\b(rate|increase)\(\s*{name}(\{{[^}}]*\}})?\[", expr)
        assert bool(over_time) == (kind != "gauge"), f"{name} is a {kind}"
        if name.endswith("_bucket"): assert "histogram_quantile(" in expr and "le" in labels
    assert expr.count("(") == expr.count(")") and expr.count("{") == expr.count("}") and expr.count("[") == expr.count("]")


# The dashboard as Grafana reads it


def test_the_dashboard_can_be_imported_anywhere():
    variables = {v["name"]: v for v in BOARD["templating"]["list"]}
    assert {v["type"] for v in variables.values()} == {"datasource", "custom", "query"} and BOARD["id"] is None and BOARD["schemaVersion"] >= 36
    for p in PANELS:
        assert p["title"] and p["targets"] and {"h", "w", "x", "y"} == {*p["gridPos"]} and p["gridPos"]["x"] + p["gridPos"]["w"] <= 24
        for d in (p["datasource"], *(t["datasource"] for t in p["targets"])): assert d["uid"] == f"${{{d['type']}}}" and d["type"] in variables
        assert len({t["refId"] for t in p["targets"]}) == len(p["targets"])
    assert len({p["id"] for p in BOARD["panels"]}) == len(BOARD["panels"])


# How the parts fit


def test_nothing_is_reachable_from_another_machine():
    for name, s in SERVICES.items():
        for port in s.get("ports", ()): assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), (name, port)
        assert "network_mode" not in s and not s.get("privileged")
    env = SERVICES["grafana"]["environment"]
    assert env["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer" and env["GF_AUTH_BASIC_ENABLED"] == env["GF_ANALYTICS_REPORTING_ENABLED"] == "false"


def test_what_gnc_metrics_prints_has_the_dashboards_names(tmp_path, monkeypatch):
    "The names, checked against the program itself and not only against its list."
    from calls import gnc, new_repo, run
    from git_notes_consolidation.apps.cli import research as metrics_command  # noqa: F401
    from git_notes_consolidation.core.memory import mem
    home = new_repo(tmp_path / "r", [mem("Retry limit is 5", "Jobs are retried.", days_ago=d) for d in (1, 2)])
    run(home)
    said = gnc("metrics", repo=home)
    names = {m[1]: m[2] for m in re.finditer(r"^(\w+)\{([^}]*)\}", said.out, re.M)}
    asked = {n for _, e in QUERIES for n in series_in(e) if n.startswith("git_notes_consolidation_repository_")}
    assert said.code == 0 and asked - {*names} <= {"git_notes_consolidation_repository_edges"} and all('repository="r"' in labels for labels in names.values())


# The GitHub Action

@pytest.mark.parametrize(("text", "fail", "code"), [("[x](AGENTS.md)", "true", 0), ("[x](gone.md)", "true", 1), ("[x](gone.md)", "false", 0)])
def test_the_action_marks_a_line_and_ends_as_it_was_asked_to(tmp_path, text, fail, code):
    "Its last step, as a runner has it; the first installs the package from the action's own checkout."
    action = yaml.safe_load((ROOT / "contrib/tidy-action/action.yml").read_text())
    home = new_repo(tmp_path / "home", ())
    (home / "AGENTS.md").write_text(text)
    (tmp_path / "gnc").mkdir(); (tmp_path / "gnc" / "bin").symlink_to(Path(sys.executable).parent)
    env = {**os.environ, "RUNNER_TEMP": str(tmp_path), "GITHUB_ACTIONS": "true", "FILES": action["inputs"]["files"]["default"], "FAIL": fail}
    step = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", action["runs"]["steps"][-1]["run"]]
    said = subprocess.run(step, cwd=home, env=env, capture_output=True, text=True)
    assert said.returncode == code, said.stderr
    assert ("::warning file=AGENTS.md,line=1::gone.md" in said.stdout) == ("gone" in text)
