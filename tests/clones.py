"""For tests: clones of one hub, and what must hold when they have met."""
import subprocess
from datetime import UTC, datetime

from calls import state_of
from helpers import git

from git_notes_consolidation.core.models import (
    CaptureConfidence, EdgeType, MemoryEdge, MemorySummary, MemoryTier)
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.store.events import Append, append, edge_append, our_tips, summary_append, tier_append
from git_notes_consolidation.store.git import note_paths, open_repo, read_blobs
from git_notes_consolidation.store.sync import sync

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
OBJECTS = [c * 40 for c in "abcd"]
A, B, C = (mem(t, days_ago=d, commit_sha=o) for t, d, o in (("one", 3, OBJECTS[0]), ("two", 2, OBJECTS[1]), ("three", 1, OBJECTS[2])))


def learn(home, run, newer=B, older=A):
    "A run that has something to say in each of our refs."
    told = MemorySummary(f"sum_{run}", "decisions", NOW, (A.timestamp, B.timestamp), "Both", (), (), (), (A.id, B.id), run, CaptureConfidence(0.8))
    records = [tier_append(older, MemoryTier.HOT, MemoryTier.COLD, run, 0.1, run), summary_append(newer.commit_sha, told, run),
               edge_append(newer.commit_sha, MemoryEdge(newer.id, older.id, EdgeType.SUPERSEDES, reason=run), run, NOW),
               Append("runs", newer.commit_sha, {"kind": "run", "id": run, "at": NOW.isoformat()})]
    append(open_repo(home), lambda e: records, NOW)


def go(home, *args, **kw): return sync(open_repo(home), *args, **kw)
def at(home): return our_tips(open_repo(home))


def lines(home, tip=None, ref=None):
    "Annotated object and line, of one notes commit or of all our refs."
    repo = open_repo(home)
    if tip is None: return {(ref, *x) for ref, tip in at(home).items() for x in lines(home, tip)}
    rows = note_paths(repo, tip)
    blobs = read_blobs(repo, [b for *_, b in rows])
    return {(obj, line) for obj, _, blob in rows for line in blobs[blob].split(b"\n") if line}


def ever(home):
    "Every line that any of our refs has held at any time, by git's own log of each ref."
    moves = {ref: set(git(home, "log", "-g", "--format=%H", ref).split()) for ref in at(home)}
    return {(ref, *x) for ref, tips in moves.items() for tip in tips for x in lines(home, tip)}


def make(place, *names, bare=(), remote="team.git", **options):
    "A bare remote and clones of it that log every move of a ref."
    new = ["init", "--quiet", "--template=", "--initial-branch=main", *(f"--{k}={v}" for k, v in options.items())]
    git(place, *new, "--bare", remote)
    for n in names:
        git(place, *new, *(["--bare"] if n in bare else []), n)
        git(place / n, "remote", "add", "origin", "x")
        git(place / n, "config", "remote.origin.url", f"../{remote}" if n not in bare else str(place / remote))
        for k, v in (("core.logAllRefUpdates", "always"), ("user.name", "Tester"), ("user.email", "tester@example.org")): git(place / n, "config", k, v)
    git(place / remote, "config", "core.logAllRefUpdates", "always")
    return [place / n for n in names]


def agree(*homes):
    "Every clone in turn, twice: then there is nothing left to bring."
    for _ in range(2):
        for home in homes: last = go(home)
    assert sum(last.came.values()) == sum(last.went.values()) == 0
    assert all(at(h) == at(homes[0]) for h in homes) and all(state_of(h) == state_of(homes[0]) for h in homes)
    return state_of(homes[0])


def blob(home, data):
    return subprocess.run(["git", "-C", home, "hash-object", "-w", "--stdin"], input=data, capture_output=True, check=True).stdout.decode().strip()
