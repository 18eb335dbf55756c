"""What a fuzz target is, how one input is checked, and what all targets share."""
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from git_notes_consolidation.core.memory import SAMPLE_NOW, Place, mem
from git_notes_consolidation.core.models import CaptureConfidence, MemorySummary


class Target(NamedTuple):
    "Something that reads bytes."
    name: str
    run: Any  # bytes -> None; raises `AssertionError` where a promise is broken
    seeds: tuple[bytes, ...]  # Valid, or nearly
    words: tuple[bytes, ...]  # What is worth putting in somewhere
    refuses: tuple[type[Exception], ...]  # Documented: thing and remedy in one line
    slow: bool  # Starts a process, or opens a database, for every call


TARGETS: dict[str, Target] = {}


def target(*seeds, words=(), refuses=(), slow=False):
    "Puts a function into the list."
    def register(run):
        name = run.__name__.rstrip("_")
        def raw(things): return tuple(x.encode("utf-8", "surrogateescape") if isinstance(x, str) else x for x in things)
        TARGETS[name] = Target(name, run, raw(seeds), raw(words), tuple(refuses), slow)
        return run
    return register


SECONDS, PER_BYTE = 1.0, 1e-4  # Processor time that any input may take, and what each of its bytes may add

def check(name, data):
    "One input for one target. What takes too long is tried once more: a defect is slow twice, a collection of garbage is not."
    t = TARGETS[name]
    most = SECONDS + PER_BYTE * len(data)
    def run():
        begin = time.thread_time()
        try: t.run(data)
        except t.refuses as e: assert str(e) and "\n" not in str(e), f"not one line: {e!r}"
        return time.thread_time() - begin
    took = run()
    if took >= most: took = min(took, run())
    assert took < most, f"{len(data)} bytes took {took:.1f} s"


def text_of(data): return data.decode("utf-8", "replace")  # As notes are read
def typed(data): return data.decode("utf-8", "surrogateescape")  # As arguments come


@cache
def _folder():
    "A directory for as long as the process lives."
    made = tempfile.TemporaryDirectory(prefix="gnc-fuzz-")
    return made, Path(made.name)


def folder(name):
    path = _folder()[1] / name
    path.mkdir(exist_ok=True)
    return path


def put(name, data):
    path = folder(Path(name).parent.name or "files") / Path(name).name
    path.write_bytes(data)
    return path


OLD = mem("ADR-007: Serve with Flask", "We serve with Flask 3.0; the limit is 40 requests.\n\n- retries: 5\n- `worker.timeout` = 30 s", days_ago=90,
          tags=("http",))
NEW = mem("ADR-012: Serve with FastAPI", "Supersedes ADR-007. Since yesterday the limit is 200 requests/s; nothing is \"lost\".", days_ago=3)
PLACED = tuple(replace(m, commit_sha=c * 40, places=(Place(m.namespace, c * 40, 0),)) for m, c in ((OLD, "a"), (NEW, "b")))
SUMMARY = MemorySummary("sum_" + "a" * 26, "decisions", SAMPLE_NOW, (OLD.timestamp, NEW.timestamp), "FastAPI serves.", ("The limit is 200.",), (), (),
                        (OLD.id, NEW.id), "run_1", CaptureConfidence(0.8), title="Serving")
