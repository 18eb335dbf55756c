"""Every piece of Python in the three designs of git-notes-memory: what it defines is here under the same name, and what can run runs as it stands.

Rust and Go of the other two designs are not run; their settings and examples are, in test_designs.py and in tests/writing.
"""
import ast
import asyncio
import dataclasses
import git_notes_consolidation as gnc
import importlib
import inspect
import os
import pkgutil
import pytest
import re
from calls import new_repo, run
from collections import namedtuple
from datetime import UTC, date, datetime
from functools import cache
from helpers import ROOT
from pathlib import Path
from git_notes_consolidation.core.loading import variable_name
from git_notes_consolidation.core.memory import sample_memories
from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import write_memories


DESIGNS = Path(os.environ.get("GNC_SHARED", ROOT.parent / "shared")) / "designs"
BLOCKS = {f"{path.name[0]}-{n}": text for path in sorted(DESIGNS.glob("[123]-*.md"))
          for n, text in enumerate(re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M), 1)}
LISTS = {"1-1", "1-3", "1-4", "1-7", "2-11", "2-13"}  # What is set as Python and is none: lists, trees, shell
# Another place does what these are for; each is a step inside of a class, or the plugin's own handler
ELSEWHERE = {"_format_memories_with_timestamps": "recall.answer", "_reason_over_memories": "recall.reason", "_remove_existing_block": "session.block",
             "_select_summaries": "session.budget", "_compute_session_relevance": "session.budget", "_format_summary_block": "session.budget",
             "_format_single_summary": "session.budget", "_estimate_tokens": "core.visible", "handle_session_start": "session.fast_start",
             "handle_recall_command": "apps.cli.ask"}
TESTS = {"test_summary_injection_replaces_not_accumulates", "test_temporal_resolution_yesterday"}  # Run below


@cache
def modules(): return [importlib.import_module(m.name) for m in pkgutil.walk_packages(gnc.__path__, "git_notes_consolidation.") if ".apps" not in m.name]


@cache
def ours(name):
    "What the package has under a name: the package itself, else one of its modules."
    return getattr(gnc, name, None) or next((vars(m)[name] for m in modules() if name in vars(m)), None)


def parameters(f): return {a.arg for a in (*f.args.args, *f.args.kwonlyargs)} - {"self"}


def lacking(block):
    "What a block defines and the package has not."
    for s in ast.parse(block).body:
        if isinstance(s, ast.ClassDef):
            cls = ours(s.name)
            there = {*dir(cls), *(f.name for f in dataclasses.fields(cls))} if dataclasses.is_dataclass(cls) else {*dir(cls)}
            named = {x.target.id for x in s.body if isinstance(x, ast.AnnAssign)} | {y.id for x in s.body if isinstance(x, ast.Assign) for y in x.targets}
            yield from (f"{s.name}.{x}" for x in sorted(named - there))
            for f in (x for x in s.body if isinstance(x, ast.FunctionDef | ast.AsyncFunctionDef) and x.name not in ELSEWHERE):
                own = getattr(cls, f.name, None)
                yield from [f"{s.name}.{f.name}"] if own is None else []
                if callable(own): yield from (f"{s.name}.{f.name}({x})" for x in sorted(parameters(f) - {*inspect.signature(own).parameters}))
        elif isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name not in {*ELSEWHERE, *TESTS}:
            own = ours(s.name) or getattr(gnc.RecallService, s.name, None)
            yield from [s.name] if own is None else []
            if callable(own): yield from (f"{s.name}({x})" for x in sorted(parameters(s) - {*inspect.signature(own).parameters}))
        elif isinstance(s, ast.Assign | ast.AnnAssign):
            names = [x.id for x in (s.targets if isinstance(s, ast.Assign) else [s.target]) if isinstance(x, ast.Name)]
            yield from (x for x in names if ours(x) is None and x not in gnc.HOOK_CONFIG and not hasattr(SubconsciousnessConfig, x))
        elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Name):  # A variable of the environment
            known = {*gnc.HOOK_CONFIG, *(variable_name(f.name) for f in dataclasses.fields(SubconsciousnessConfig))}
            yield from [] if s.value.id in known else [s.value.id]


@pytest.mark.parametrize("name", BLOCKS or [pytest.param("", marks=pytest.mark.skip(reason="../shared is not there; CI has it"))])
def test_what_a_snippet_defines_is_here(name):
    if name in LISTS:
        with pytest.raises(SyntaxError): ast.parse(BLOCKS[name])
    else: assert [*lacking(BLOCKS[name])] == []


def block(start): return next((b for b in BLOCKS.values() if start in b), None) or pytest.skip("../shared is not there; CI has it")


def executed(text, **names):
    "A block as it stands, in names of ours."
    exec(compile("from __future__ import annotations\n" + text, "design", "exec"), names)
    return names


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = new_repo(tmp_path_factory.mktemp("designs") / "repo")
    write_memories(open_repo(home), sample_memories())
    run(home, max_change=0.25)
    return home


def test_the_designs_test_of_yesterday_runs_as_it_stands():
    names = executed(block("def test_temporal_resolution_yesterday"), datetime=datetime, date=date, UTC=UTC,
                     resolve_temporal_reference=gnc.resolve_temporal_reference)
    names["test_temporal_resolution_yesterday"]()


def test_the_designs_recall_command_runs_as_it_stands(home, monkeypatch):
    monkeypatch.chdir(home)
    for reset in (gnc.reset_recall_service, gnc.reset_reasoned_recall_service): reset()
    answer = namedtuple("RecallResult", "answer confidence reasoning memories", defaults=("", 0.0, "", ()))
    names = executed(block("async def handle_recall_command"), re=re, RecallResult=answer, RetrievalMode=gnc.RetrievalMode,
                     get_recall_service=gnc.get_recall_service, get_reasoned_recall_service=gnc.get_reasoned_recall_service)
    asked = asyncio.run(names["handle_recall_command"]("When did we move to opaque API tokens?", mode="exhaustive"))
    plain = asyncio.run(names["handle_recall_command"]("opaque API tokens", mode="exhaustive"))
    assert asked.answer and asked.memories and plain.memories and not plain.answer


def test_the_table_of_hooks_is_the_designs():
    names = executed(block("HOOK_CONFIG = {"), ConsolidationResult=gnc.ConsolidationResult)
    executed(block("HOOK_CONFIG.update("), HOOK_CONFIG=names["HOOK_CONFIG"])
    assert names["HOOK_CONFIG"].items() <= gnc.HOOK_CONFIG.items()
