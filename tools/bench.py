"""The benchmark suite: `make bench`, or `make bench SIZES=1000` for a quick look.

Every measurement runs in a process of its own (benchmarks/suite.py, or `gnc` itself), one after the other, beside what it is compared with. What was
measured goes to benchmarks/results.json, which nbs/research/06_scale.ipynb draws. Compare within a run, not across
machines. A measurement that takes longer than its limit is not run at larger sizes, and the file says so.
"""
import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITE, OUT = ROOT / "benchmarks" / "suite.py", ROOT / "benchmarks"
SIZES, LIMIT = (1_000, 10_000, 100_000), 600
GNC = [sys.executable, "-c", "from git_notes_consolidation.apps.entry import main; main()"]
# Name, job, what it is compared with, the most memories it is run for
JOBS = (
    ("matrix product, upper triangle", "product", "", 10**9),
    ("clustering", "clustering", "", 10**9),
    ("clustering, one component", "chained", "", 10**9),
    ("scikit-learn, full matrix", "full_matrix", "clustering", 10_000),
    ("neighbour graph", "neighbours", "", 10**9),
    ("read notes", "read", "", 10**9),
    ("git cat-file --batch", "cat_file", "read notes", 10**9),
    ("append records", "appending", "", 10**9),
    ("embedding, lexical", "lexical", "", 10**9),
    ("embedding, MiniLM", "minilm", "", 1_000),
)
AFTER = (
    ("index rebuild, cold", "rebuild", "", 10**9),
    ("recall, 20 questions", "searches", "", 10**9),
)
WHY = {"full_matrix": "n² float64 distances do not fit, or take minutes", "minilm": "its rate does not depend on n"}


def machine() -> dict[str, object]:
    "What it ran on; no name of it."
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.+)", info)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    told = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    return {"cpu": model[1] if model else platform.processor(), "cores": os.cpu_count(), "memory_gib": round(memory, 1),
            "os": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(), "git": told, "date": f"{datetime.now(UTC):%Y-%m-%d}"} | {
            x: version(x) for x in ("numpy", "scipy", "scikit-learn")}


def process(command: list[str], limit: float, said: str = "", **kw) -> tuple[dict[str, float], str]:
    "CPU seconds, wall seconds and peak MB of a process with its children, and what it printed."
    begin, out = time.perf_counter(), tempfile.TemporaryFile()
    err = tempfile.TemporaryFile()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True, **kw)
    over = threading.Timer(limit, child.kill)
    over.start()
    child.stdin.write(said.encode())
    child.stdin.close()
    _, status, usage = os.wait4(child.pid, 0)
    over.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begin
    for f in (out, err): f.seek(0)
    if child.returncode == -9 and wall >= limit: raise TimeoutError(f"stopped after {limit:.0f} s")
    if child.returncode: raise RuntimeError(err.read().decode()[-300:].strip() or f"exit code {child.returncode}")
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": wall, "mb": usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)}, out.read().decode()


class Suite:
    "What has been measured so far."

    def __init__(self, limit: float) -> None:
        self.limit, self.rows, self.left = limit, list[dict](), list[dict]()
        self.given_up: dict[str, str] = {}

    def note(self, what: str, n: int, found: dict, beside: str = "", **more: object) -> None:
        self.rows.append({"what": what, "n": n, "beside": beside} | {k: round(v, 4) if isinstance(v, float) else v for k, v in (found | more).items()})
        print(f"{what:34}{n:>9,}{found['cpu']:>10.2f} CPU-s{found['wall']:>10.2f} s{found['mb']:>9,.0f} MB", flush=True)

    def leave(self, what: str, n: int, why: str) -> None:
        self.left.append({"what": what, "n": n, "why": why})
        print(f"{what:34}{n:>9,}   not run: {why}", flush=True)

    def run(self, what: str, n: int, command: list[str], said: str = "", beside: str = "", inside: bool = False, **kw) -> str:
        "One measurement; what went wrong is said, and it is not tried for more."
        if what in self.given_up: self.leave(what, n, self.given_up[what]); return ""
        try: found, out = process(command, self.limit, said, **kw)
        except (TimeoutError, RuntimeError) as e:
            self.given_up[what] = re.sub(r"^[\w.]+(Error|Exception): ", "", str(e).splitlines()[-1]).split(". ")[0]
            self.leave(what, n, self.given_up[what])
            return ""
        if inside: found = {k: v for k, v in json.loads(out).items() if k != "question"}  # Less what a process costs that only gets ready
        self.note(what, n, found, beside)
        return out

    def jobs(self, jobs, n: int, place: Path) -> None:
        for what, job, beside, most in jobs:
            if n > most: self.leave(what, n, WHY[job]); continue
            self.run(what, n, [sys.executable, str(SUITE), job, str(n), str(place)], beside=beside, inside=True, env=environment())


def environment() -> dict[str, str]:
    "As it is, with this package first, with its bytecode as when installed, and without what would make `gnc` count another's tokens."
    return {k: v for k, v in os.environ.items() if k not in ("TIKTOKEN_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")} | {"PYTHONPATH": f"{ROOT}{os.pathsep}{OUT}"}


def packed(home: Path) -> int:
    "Bytes of the repository's objects after a gc."
    subprocess.run(["git", "gc", "-q"], cwd=home, check=True)
    return sum(f.stat().st_size for f in (home / ".git" / "objects").rglob("*") if f.is_file())


def consolidated(s: Suite, n: int, place: Path, question: str) -> None:
    "`gnc` in a repository: the first run, recall, a session's start, status, and a run after a hundred more, also where somebody has asked between."
    home, env = place / "repo", environment()
    def gnc(*args: str, day: str = "2026-11-02", at: Path = home) -> list[str]: return [*GNC, "--repo", str(at), "--now", day, *args]
    before = packed(home)
    out = s.run("full run", n, gnc("--json", "consolidate", "--yes"), env=env)
    if not out: return
    told = json.loads(out)
    changed = len(told["tier_transitions"]) or 1
    s.rows[-1] |= {"distinct": told["memories_distinct"], "summaries": told["summaries_created"], "changed": changed,
                   "bytes_each": round((packed(home) - before) / changed)}
    s.run("status", n, gnc("--json", "status"), env=env)
    s.run("recall, a process", n, gnc("recall", question), env=env)
    event = json.dumps({"cwd": str(home), "source": "startup", "session_id": "s"})
    s.run("session start (hook)", n, [*GNC, "hook", "session-start"], event, env=env)
    s.run("bare Python", n, [sys.executable, "-c", "pass"], beside="session start (hook)")
    shutil.copytree(home, twin := place / "asked" / "repo", symlinks=True)
    for where in (place, twin.parent): process([sys.executable, str(SUITE), "more", str(n), str(where)], s.limit, env=env)
    os.sync()  # The copy is the benchmark's own: its last pages need not be written while `gnc` is measured
    s.run("run after 100 more", n, gnc("--json", "consolidate", "--yes", day="2026-11-03"), env=env)
    s.run("recall after 100 more", n, gnc("recall", question, day="2026-11-03", at=twin), env=env)
    s.run("run after that recall", n, gnc("--json", "consolidate", "--yes", day="2026-11-03", at=twin), env=env)
    shutil.rmtree(twin)


def one_size(s: Suite, n: int, place: Path) -> None:
    place.mkdir()
    out = s.run("preparing (in no other row)", n, [sys.executable, str(SUITE), "prepare", str(n), str(place)], inside=True, env=environment())
    s.jobs(JOBS, n, place)
    consolidated(s, n, place, json.loads(out)["question"])
    s.jobs(AFTER, n, place)


def main(argv: list[str] | None = None) -> int:
    ap = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ap.add_argument("sizes", nargs="*", type=int, help="how many memories; default: 1000 10000 100000")
    ap.add_argument("--out", type=Path, default=OUT / "results.json", help="where to write; default: benchmarks/results.json")
    ap.add_argument("--limit", type=float, default=LIMIT, help="seconds for one measurement")
    args = ap.parse_args(argv)
    if os.name != "posix": ap.error("a child's CPU time and memory are read with wait4, which only POSIX systems have")
    s, begin, at = Suite(args.limit), time.perf_counter(), machine()
    with tempfile.TemporaryDirectory() as tmp:
        for n in args.sizes or SIZES:
            print(f"\n== {n:,} memories, after {time.perf_counter() - begin:.0f} s\n", flush=True)
            one_size(s, n, Path(tmp) / str(n))
    args.out.write_text(json.dumps({"machine": at, "seconds": round(time.perf_counter() - begin), "rows": s.rows, "not_run": s.left}, indent=1) + "\n")
    print(f"\n{args.out} is written, after {time.perf_counter() - begin:.0f} s; nbs/research/06_scale.ipynb draws it.")
    return 0


if __name__ == "__main__": sys.exit(main())
