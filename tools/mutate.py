"""Mutation testing of the pure modules: a seeded sample of mutants for each, made and run by mutmut in a copy of the tree; what survives is listed.

mutmut, because it forks each mutant from a process that has imported everything, and runs only the tests that call the changed function. The examples
of the module's notebook are one of those tests. Only where `os.fork` is."""
import argparse
import ast
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "tests" / "mutants.yml"
PACKAGE = "git_notes_consolidation"
FOLD = ("undone_runs texts _tier_record _edge_record _summary_record _review_record _run_record _set_record _op_record _prune_record reading _count fold "
        "_decided _by_memory _later as_set grown _put _touched State").split()
NOTES = ("fold or order or undo or accesses or one_name or single_field or templates or examples or no_such_thing or all_that_is_known "
         "or beyond_belief")
SESSION = "not process and not hook and not gnc_inject and not bare and not many_sessions and not hash and not resumed and not imported and not long_texts"
# Module: its notebook, where that takes seconds; the tests that know it; and which of its functions are meant (all where none is named).
MODULES = {
    "retention": ("04_retention", ["tests/retention/test_retention.py"], []),
    "notes": ("08_notes", ["tests/store/test_records.py", "-k", NOTES], FOLD),
    "session": ("", ["tests/session/test_session.py", "-k", SESSION], []),
    "clustering": ("", ["tests/similarity/test_clustering.py"], []),
    "temporal": ("05_temporal", ["tests/temporal/test_temporal.py"], []),
    "relative": ("04_relative", ["tests/temporal/test_temporal.py"], []),
    "dates": ("04_dates", ["tests/temporal/test_temporal.py"], []),
    "readings": ("03_readings", ["tests/temporal/test_temporal.py"], []),
}
LIVED = (0, 5, 33)  # All passed, or no test calls it
CONFIG = """
[tool.mutmut]
source_paths = ["{package}"]
only_mutate = ["{package}/{module}.py"]
also_copy = {copied}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:xdist"]
pytest_add_cli_args_test_selection = {tests}
track_dependencies = false
use_git_change_detection = false
"""
CELLS = '''
import os
from pathlib import Path
from git_notes_consolidation import {module}
from helpers import example_cells


def test_the_examples_of_the_notebook():
    space, here = dict(vars({module})), os.getcwd()
    os.chdir(Path(__file__).parents[1] / "nbs")
    try:
        for cell in example_cells("{notebook}"): exec(compile(cell, "{notebook}", "exec"), space)
    finally: os.chdir(here)
'''
# Steps of mutmut's own `run`, up to where it begins to test: they make the names that a sample is drawn from.
GENERATE = """
from mutmut import __main__ as m
m.set_mutant_under_test("mutant_generation"); m.makedirs("mutants", exist_ok=True)
m.copy_src_dir(); m.copy_also_copy_files(); m.setup_source_paths(); m.create_mutants(1)
"""


def copy(to):
    "Everything in git, as it is in the working tree."
    said = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True, text=True)
    for name in filter(None, said.stdout.split("\0")):
        if not (ROOT / name).is_file(): continue
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


def function_of(name):
    "`git_notes_consolidation.session.inject.xǁInjectorǁlaid__mutmut_3` is about `Injector.laid`."
    mangled = name.rpartition("__mutmut_")[0].rpartition(".")[2]
    return mangled[1:].strip("ǁ").replace("ǁ", ".") if "ǁ" in mangled else mangled.removeprefix("x_")


def changes_of(path):
    "Of every mutant in a file of mutmut's the line that it took out, and what it put there."
    text = path.read_text(encoding="utf-8")
    lines, said = text.splitlines(), {}
    for n in ast.walk(ast.parse(text)):
        if isinstance(n, ast.FunctionDef) and "__mutmut_" in n.name: said[n.name] = [line.strip() for line in lines[n.body[0].lineno - 1:n.end_lineno]]
    out = {}
    for name, new in said.items():
        of, _, number = name.rpartition("__mutmut_")
        if not number.isdigit(): continue
        rows = [*difflib.unified_diff(said[f"{of}__mutmut_orig"], new, n=0, lineterm="")][3:]
        out[name] = ["\n".join(row[1:] for row in rows if row[0] == sign) for sign in "-+"]
    return out


def is_text(old):
    "Is it a docstring that was changed?"
    return old.startswith('"') and old.endswith('"') and not old.endswith(',"')


def try_mutants(module, how_many, seed, keep=None):
    "What became of a sample of a module's mutants."
    notebook, tests, functions = MODULES[module]
    with tempfile.TemporaryDirectory() as d:
        tree = Path(keep or d)
        copy(tree)
        if notebook: (tree / "tests" / "test_cells.py").write_text(CELLS.format(module=module, notebook=notebook))
        copied = sorted(p.name for p in tree.iterdir() if p.name not in (PACKAGE, "tests", "pyproject.toml", "mutants", ".git")) + [PACKAGE]
        config = CONFIG.format(package=PACKAGE, module=module, copied=json.dumps(copied), tests=json.dumps(tests + ["tests/test_cells.py"] * bool(notebook)))
        with (tree / "pyproject.toml").open("a") as f: f.write(config)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PLOTLY_RENDERER": "plotly_mimetype"}
        def run(*command): return subprocess.run([str(c) for c in command], cwd=tree, env=env, check=True, capture_output=True, text=True).stdout
        run(sys.executable, "-c", GENERATE)
        made = Path("mutants") / PACKAGE / f"{module}.py"
        said = changes_of(tree / made)
        changes = {n: said.get(n.rpartition(".")[2], ["", ""]) for n in json.loads((tree / f"{made}.meta").read_text())["exit_code_by_key"]}
        names = [n for n, (old, _) in changes.items() if old and not is_text(old) and (not functions or function_of(n).split(".")[0] in functions)]
        chosen = names if how_many >= len(names) else sorted(random.Random(seed).sample(names, how_many), key=names.index)
        words = [str(Path(sys.executable).parent / "mutmut"), "run", "--max-children", "1", *chosen]
        done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True)
        if done.returncode: sys.exit(f"mutmut failed on {module}: {done.stdout[-3000:]}{done.stderr[-2000:]}")
        codes = json.loads((tree / f"{made}.meta").read_text())["exit_code_by_key"]
        if keep: (tree / "last.json").write_text(json.dumps({n: [codes[n], *changes[n]] for n in chosen}, indent=1))
    ends = {n: "survived" if codes[n] in LIVED else "killed" if codes[n] in (1, 3) else "timeout" for n in chosen}
    lived = [{"function": function_of(n), "line": changes[n][0], "mutant": changes[n][1]} for n in chosen if ends[n] == "survived"]
    return {"mutants": len(names), "tried": len(chosen), "seed": seed, **{w: [*ends.values()].count(w) for w in ("killed", "timeout")}, "survived": lived}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(MODULES)}; all of them where none is named")
    p.add_argument("--sample", type=int, default=100, help="mutants of each module")
    p.add_argument("--seed", type=int, default=9)
    p.add_argument("--keep", help="a directory to work in, that stays")
    a = p.parse_args()
    if unknown := set(a.modules) - set(MODULES): p.error(f"no module {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")
    report = yaml.safe_load(REPORT.read_text()) if REPORT.exists() else {}
    for module in a.modules or MODULES:
        said = {(s["function"], s["line"], s["mutant"]): s["why"] for s in report.get(module, {}).get("survived", ()) if "why" in s}
        found = try_mutants(module, a.sample, a.seed, a.keep)
        for s in found["survived"]:
            if why := said.get((s["function"], s["line"], s["mutant"])): s["why"] = why
        report[module] = found
        REPORT.write_text(yaml.safe_dump({m: report[m] for m in MODULES if m in report}, sort_keys=False, allow_unicode=True, width=160))
        print(f"{module}: {found['tried']} of {found['mutants']} mutants tried, {found['killed']} killed, {found['timeout']} timed out, "
              f"{len(found['survived'])} survived, {sum('why' not in s for s in found['survived'])} of these without a reason", flush=True)


if __name__ == "__main__": main()
