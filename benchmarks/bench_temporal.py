"""How long it takes to find the time expressions of a sentence, and to see that there are none.

    python benchmarks/bench_temporal.py            sentences of this file
    python benchmarks/bench_temporal.py FILE       JSONL with `text` and `reference`; of a file with a `split`, the development half

Beside dateparser, parsedatetime and timefhuman where they are installed, and chrono where node has it (`npm install --prefix .bench chrono-node@2`),
in the same run, on the same sentences: the shared machine makes numbers of different runs incomparable. chrono keeps its own time, inside of one process
of node, so that starting it is not counted. The last lines are inputs of 20 and of 100 kilobytes: five times the text must not take much more than five
times as long.
"""
from __future__ import annotations
import importlib, json, os, shutil, statistics, subprocess, sys, time, warnings
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

SAID = datetime(2026, 3, 18, 10)
TOLD = """We migrated the scheduler to Postgres yesterday and dropped the old queue.|The regression landed last week with the upgrade of the parser.
Two days ago the index grew past 2 GB, so retention is 30 days now.|On Friday the runner image changed and the cache was lost.
The certificate expires in 3 days; renew it before the weekend.|In January we changed the default, see docs/changes.md and #412.
Deploy is scheduled for Monday morning, after the freeze.|Since 2024-03-12 all writes go through the outbox.
The outage of 9 March had the same cause as the one a few weeks ago.|Late last month we saw the leak again in `worker.py`.""".replace("\n", "|").split("|")
SILENT = """We chose SQLite over DuckDB because the platform team already runs it.|Callers may pass None here; the default is documented in the README.
Retry with backoff when the broker returns 503, but give up after the fifth attempt.|The parser handles nested quotes, see src/p.py and #123.
Rename the flag --dry-run to --plan everywhere in the CLI and the docs.|The second argument is ignored by getUser() and by its callers.
Upgraded from 3.11 to 3.12 without changes to a lock file.|All errors are wrapped, so that the cause stays visible in the log.""".replace("\n", "|").split("|")


def peers() -> dict[str, Callable[[str, datetime], object]]:
    "The resolvers that are installed, as functions of a text and the moment it was said."
    from git_notes_consolidation.temporal.resolve import find_references
    found: dict[str, Callable[[str, datetime], object]] = {"this package": find_references}
    def module(name: str):
        try: return importlib.import_module(name)
        except ImportError: print(f"{name:14} is not installed"); return None
    if d := module("dateparser.search"): found["dateparser"] = lambda t, said: d.search_dates(t, languages=["en"], settings={"RELATIVE_BASE": said})
    if p := module("parsedatetime"):
        calendar = p.Calendar(version=p.VERSION_CONTEXT_STYLE)
        found["parsedatetime"] = lambda t, said: calendar.nlp(t, sourceTime=said)
    if f := module("timefhuman"):
        config = f.tfhConfig(now=SAID)
        found["timefhuman"] = lambda t, said: f.timefhuman(t, config=config)
    return found


def micros(f: Callable[[str, datetime], object], rows: list[tuple[str, datetime]], repeat: int) -> float:
    "The median over the sentences of the fastest of several calls."
    best = []
    for text, said in rows:
        times = []
        for _ in range(repeat):
            t = time.perf_counter()
            try: f(text, said)
            except Exception: pass  # a peer that fails has answered too
            times.append(time.perf_counter() - t)
        best.append(min(times))
    return statistics.median(best) * 1e6


CHRONO = """
const chrono = require('chrono-node'), [rows, repeat] = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(rows.map(([text, said]) => {
  let best = Infinity;
  for (let i = 0; i < repeat; i++) {
    const t = process.hrtime.bigint();
    chrono.parse(text, new Date(said));
    best = Math.min(best, Number(process.hrtime.bigint() - t) / 1000);
  }
  return best;
})));"""


def chrono(rows: list[tuple[str, datetime]], repeat: int) -> float | None:
    "As `micros`, by node; None where node or chrono is missing."
    node, place = shutil.which("node"), Path(__file__).parent.parent / ".bench" / "node_modules"
    if node is None or not (place / "chrono-node").is_dir(): return None
    told = json.dumps([[(text, said.isoformat()) for text, said in rows], repeat])
    done = subprocess.run([node, "-e", CHRONO], input=told, capture_output=True, text=True, check=True, env=os.environ | {"NODE_PATH": str(place)})
    return statistics.median(json.loads(done.stdout))


def main() -> None:
    from git_notes_consolidation.temporal.resolve import find_references
    warnings.simplefilter("ignore")
    told, silent = [(t, SAID) for t in TOLD], [(t, SAID) for t in SILENT]
    if sys.argv[1:]:
        rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
        rows = [(r["text"], datetime.fromisoformat(r["reference"])) for r in rows if r.get("split", "dev") == "dev"]
        told, silent = ([r for r in rows if bool(find_references(*r)) == x] for x in (True, False))
    print(f"{'':14} {'with one':>10} {'with none':>10}   µs a sentence, median of {len(told)} and {len(silent)}")
    for name, f in peers().items():
        repeat = 20 if name == "this package" else 1  # some peers keep what they have parsed
        f(*told[0])
        print(f"{name:14} {micros(f, told, repeat):10.0f} {micros(f, silent, repeat):10.0f}")
    with_one, with_none = chrono(told, 20), chrono(silent, 20)
    if with_one is None or with_none is None: print("chrono         is not installed: npm install --prefix .bench chrono-node@2")
    else: print(f"{'chrono':14} {with_one:10.0f} {with_none:10.0f}")
    for piece in ("last ", "on Friday and ", "1.", "`", "\"a ", "the week before "):
        took = []
        for size in (20_000, 100_000):
            text = piece * (size // len(piece))
            t = time.process_time(); find_references(text, SAID); took.append(time.process_time() - t)
        print(f"{piece!r:18} 20 kB {took[0] * 1000:7.0f} ms   100 kB {took[1] * 1000:7.0f} ms   {took[1] / max(took[0], 1e-9):5.1f} times")


if __name__ == "__main__": main()
