#!/usr/bin/env python3
"""Searches for what breaks a reader of outside bytes: tests/fuzz_targets.py, driven by Hypothesis, and by atheris where it is installed.

    python tools/fuzz.py --minutes 60            every target, the time shared out
    python tools/fuzz.py --minutes 5 note times  these two
What is found lies in tests/fixtures/fuzz/TARGET/, is replayed by tests/project/test_fuzz.py, and stays there when it is mended.
"""
import argparse
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES, CORPUS = ROOT / "tests" / "fixtures" / "fuzz", ROOT / ".fuzz"
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def keep(name, data):
    "A found case as a file, named by what is in it."
    path = CASES / name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def by_hypothesis(name, seconds):
    "Round after round, each with examples of its own; the smallest example of a failure is kept."
    from fuzz_data import inputs
    import fuzz_targets  # noqa: F401  # fills the list
    from fuzz_base import check
    from hypothesis import HealthCheck, given, seed, settings
    end, begin, tried, last = time.monotonic() + seconds, time.time_ns(), 0, b""
    for n in range(begin, begin + 10**9):
        if time.monotonic() > end: break

        @seed(n)
        @settings(max_examples=200, deadline=None, database=None, suppress_health_check=[*HealthCheck])
        @given(inputs(name))
        def search(data):
            nonlocal tried, last
            tried, last = tried + 1, data
            check(name, data)
        try: search()
        except Exception as e: print(f"{name}: {type(e).__name__}: {str(e)[:300]}\n  kept as {keep(name, last).relative_to(ROOT)}", flush=True); return 1
    print(f"{name}: {tried} inputs by Hypothesis, nothing found", flush=True)
    return 0


def by_atheris(name, seconds):
    "Guided by which lines of the package an input reaches; its own corpus grows in .fuzz/, and is not committed."
    if importlib.util.find_spec("atheris") is None:
        print(f"{name}: no coverage guidance, atheris is not installed (pip install atheris; Linux and macOS)")
        return 0
    home = CORPUS / name
    home.mkdir(parents=True, exist_ok=True)
    found = Path(tempfile.mkdtemp(prefix="gnc-found-"))
    args = [sys.executable, __file__, "--inside", name, str(home), f"-max_total_time={max(1, int(seconds))}", "-max_len=8192", "-timeout=20",
            "-rss_limit_mb=2048", f"-artifact_prefix={found}/", "-print_final_stats=1", "-verbosity=0",
            f"-dict={_dictionary(name, home.parent / f'{name}.dict')}"]
    done = subprocess.run(args, capture_output=True, text=True, errors="replace", env=os.environ | {"PYTHONPATH": str(ROOT)})
    units = next((line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "?")
    bad = [keep(name, p.read_bytes()) for p in found.iterdir()]
    kept = ", ".join(str(p.relative_to(ROOT)) for p in bad)
    if bad: print(f"{name}: atheris found\n{done.stdout[-1500:]}{done.stderr[-1500:]}\n  kept as {kept}", flush=True)
    elif done.returncode: print(f"{name}: atheris ended with {done.returncode}\n{done.stderr[-1500:]}", flush=True)
    else: print(f"{name}: {units} inputs by atheris, nothing found", flush=True)
    return int(bool(bad or done.returncode))


def _dictionary(name, path):
    import fuzz_targets  # noqa: F401  # fills the list
    from fuzz_base import TARGETS
    words = ["".join(f"\\x{b:02x}" for b in w) for w in TARGETS[name].words if 0 < len(w) <= 64]
    path.write_text("".join(f'"{w}"\n' for w in words))
    return path


def inside(name, home, *flags):
    "In a process of its own: libFuzzer ends it."
    import atheris
    with atheris.instrument_imports(include=["git_notes_consolidation"]):
        import fuzz_targets  # noqa: F401  # fills the list
        from fuzz_base import TARGETS, check
    for i, s in enumerate(TARGETS[name].seeds): (Path(home) / f"seed-{i}").write_bytes(s)
    atheris.Setup([sys.argv[0], *flags, home], lambda data: check(name, data))
    atheris.Fuzz()


def main():
    if sys.argv[1:2] == ["--inside"]: return inside(*sys.argv[2:])
    import fuzz_targets  # noqa: F401  # fills the list
    from fuzz_base import TARGETS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    asked = parser.parse_args()
    names = asked.targets or [*TARGETS]
    if unknown := set(names) - set(TARGETS): parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    each = 60 * asked.minutes / len(names) / 2
    wrong = sum(by(name, each) for name in names for by in (by_hypothesis, by_atheris))
    print(f"{wrong} found" if wrong else "Nothing found.")
    return int(wrong > 0)


if __name__ == "__main__": sys.exit(main())
