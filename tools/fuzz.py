#!/usr/bin/env python3
"""Searches for what breaks a reader of outside bytes: tests/fuzz_targets.py, driven by Hypothesis.

    python tools/fuzz.py --minutes 60            every target, the time shared out
    python tools/fuzz.py --minutes 5 note times  these two
What is found lies in tests/fixtures/fuzz/TARGET/, is replayed by tests/project/test_fuzz.py, and stays there when it is mended.
"""
import argparse
import hashlib
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "fixtures" / "fuzz"
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


def main():
    import fuzz_targets  # noqa: F401  # fills the list
    from fuzz_base import TARGETS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    asked = parser.parse_args()
    names = asked.targets or [*TARGETS]
    if unknown := set(names) - set(TARGETS): parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    wrong = sum(by_hypothesis(name, 60 * asked.minutes / len(names)) for name in names)
    print(f"{wrong} found" if wrong else "Nothing found.")
    return int(wrong > 0)


if __name__ == "__main__": sys.exit(main())
