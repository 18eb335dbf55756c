"""For tests: git in one call, and the project's own files as text."""
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

long = pytest.mark.skipif(not os.environ.get("GNC_LONG"), reason="a minute or so: make long")
ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
SOURCES = sorted(p for p in (ROOT / "git_notes_consolidation").rglob("*.py") if not p.stem.startswith("_"))


def git(
    repo,  # Where
    *args,  # What
    date=None,  # Both of the commit's dates
    check=True,  # A failure is an error
    input=None,  # Text for its stdin
):  # What it printed, without the last newline
    "Run git in a repository."
    env = os.environ | ({"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {})
    done = subprocess.run(["git", *map(str, args)], cwd=repo, env=env, input=input, capture_output=True, encoding="utf-8", errors="surrogateescape")
    if check and done.returncode: raise AssertionError(f"git {' '.join(map(str, args))} failed with {done.returncode}: {done.stderr.strip()}")
    return done.stdout.rstrip("\n")


def rows_of(module):
    "The rows that a test module goes through, by the name of its test."
    return json.loads((FIXTURES / "rows" / f"{module}.json").read_text(encoding="utf-8"))


def module_of(path): return ".".join(path.relative_to(ROOT).with_suffix("").parts)


NOTES = "refs/notes/"  # Ours and the plugin's


def refs(repo, pattern="refs/"):
    "Every ref and the object it points to."
    return dict(line.split(" ")[::-1] for line in git(repo, "for-each-ref", "--format=%(objectname) %(refname)", pattern).splitlines())


def tracked():
    "The project's files: those in git and those that would be added, so that a new file is checked before it is committed."
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return sorted(p for p in (ROOT / n for n in names) if p.is_file() and not p.is_symlink())


def add_memories(repo, memories):
    "The plugin's notes for more memories: one note each, on an object of its own that need not exist."
    from git_notes_consolidation.store.git import MEM
    from git_notes_consolidation.store.reader import note_text
    stream, there = [], refs(repo, MEM)
    for ns in sorted({m.namespace for m in memories}):
        stream.append(f"commit {MEM}{ns}\ncommitter a <a@example.org> 0 +0000\ndata 1\nx" + (f"\nfrom {there[MEM + ns]}" if MEM + ns in there else ""))
        for m in sorted((m for m in memories if m.namespace == ns), key=lambda m: m.id):
            text = note_text(m)
            obj = hashlib.sha1((m.id or text).encode()).hexdigest()
            stream.append(f"M 100644 inline {obj[:2]}/{obj[2:]}\ndata {len(text.encode())}\n{text}")
    git(repo, "fast-import", "--quiet", input="\n".join(stream) + "\n")


def story():
    "36 memories, oldest first, with all that a run can find: repeats, decisions overturned, things that belong together, things gone cold."
    from git_notes_consolidation.core.memory import mem
    out = [mem("Retry limit is 5", "Jobs are retried five times.", days_ago=d, namespace="learnings") for d in (100, 90, 80, 3)]
    for i, w in enumerate(("mail", "report", "billing", "search", "import", "export")):
        body = f"The {w} worker gives up after {i + 3} attempts and logs the job id."
        out.append(mem(f"The {w} worker retries {i + 3} times", body, days_ago=60 - 10 * i, namespace="learnings"))
    for i, (w, t) in enumerate((("Flask", "FastAPI"), ("SQLite", "PostgreSQL"), ("cron", "a queue"))):
        out.append(mem(f"ADR-00{i}: We build on {w}", f"Small, and all of us know {w}.", days_ago=300 - i))
        out.append(mem(f"ADR-01{i}: We build on {t}", f"Supersedes ADR-00{i}. It is faster by half.", days_ago=40 - 19 * i))
    things = ("harbour lantern orchard violin glacier compass meadow anvil saffron tunnel quarry pigeon velvet magnet harvest barrel candle driftwood ember "
              "fountain").split()
    for i, t in enumerate(things):
        body = f"The {t} {' '.join(things[i - 3:i - 1])} is number {i * 7919}."
        out.append(mem(f"About the {t}", body, days_ago=17 * i, namespace=["progress", "patterns"][i % 2]))
    return sorted(out, key=lambda m: (m.timestamp, m.id))


def replace_everywhere(
    monkeypatch,
    module,  # Where it is defined
    name,  # A function or a constant
    value,  # What stands in its place
):
    "In every module of the package that has it by this name, as all of them import names and not modules."
    old = getattr(module, name)
    for m in [m for n, m in sys.modules.items() if n.startswith("git_notes_consolidation")]:
        if m.__dict__.get(name) is old: monkeypatch.setattr(m, name, value)
