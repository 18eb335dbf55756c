"""For the journeys: what a person has, which is `gnc` beside this Python, git, a repository and a clock. Nothing here imports the package."""
import copy
import html
import json
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from helpers import git

QUIET = {"COLUMNS": "200", "NO_COLOR": "1", "HOOK_CONSOLIDATION_ENABLED": "false"}  # No run in the background, where a journey does not want one
GNC = shutil.which("gnc", path=str(Path(sys.executable).parent)) or "gnc"


def flat(text):
    "Words only, however the lines were broken and the letters escaped."
    return " ".join(html.unescape(text).lower().split())


def missing(text, *sentences):
    "Which of the sentences are not told there; the full stop does not count."
    return [s for s in sentences if flat(s).rstrip(".") not in flat(text)]


class Said(NamedTuple):
    "How a command ended and what it printed."
    code: int
    out: str
    err: str

    @property
    def json(self): return json.loads(self.out)
    @property
    def text(self): return flat(self.out + " " + self.err)


class Repo:
    "A repository, and somebody who types in it; a minute goes by with each command."
    def __init__(self, path, name="Ada"):
        self.path, self.now = Path(path), datetime(2026, 3, 2, 10, tzinfo=timezone.utc)
        self.path.mkdir(exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", name); self.git("config", "user.email", f"{name}@example.org".lower())

    def git(self, *words, **more): return git(self.path, *words, **more)
    def later(self, **more): self.now += timedelta(**more); return self

    def commit(self, message="First"):
        self.git("commit", "--quiet", "--allow-empty", f"--message={message}", date=self.now.isoformat())
        return self

    def gnc(self, *words, code=0, input="", env=None, cwd=None):
        "Type a command, and see how it ends; `code` is the exit code that is promised."
        self.later(minutes=1)
        done = subprocess.run([GNC, "--now", self.now.isoformat(), *map(str, words)], cwd=cwd or self.path, input=input, capture_output=True,
                              encoding="utf-8", timeout=100, env=os.environ | QUIET | (env or {}))
        assert "Traceback" not in done.stderr, done.stderr
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return Said(done.returncode, done.stdout, done.stderr)

    def remember(self, *texts, namespace="decisions"):
        "Write each, and what became of it."
        return [self.gnc("--json", "remember", "-n", namespace, "--", t).json for t in texts]

    def note(self, title, body="", namespace="decisions"):
        "A note as another tool writes it."
        front = f"---\ntype: {namespace}\ntimestamp: {self.later(minutes=1).now.isoformat()}\nsummary: {json.dumps(title)}\n---\n\n{body}\n"
        self.git("notes", f"--ref=mem/{namespace}", "append", "--file=-", "HEAD", input=front, date=self.now.isoformat())

    def hook(self, which="session-start", code=0, **more):
        "What an agent's host is answered."
        return self.gnc("hook", which, input=json.dumps({"cwd": str(self.path), "source": "startup"}), code=code, **more)

    def block(self, **more):
        "What a new session is told; one that comes before the block is made says so, and is followed by another."
        for _ in range(3):
            said = self.hook(**more)
            print(said.err)
            if "prepared yet" not in said.err: break
            time.sleep(0.5)
        return html.unescape(said.json.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def rows(self, question, *words):
        "What recall lists, the best first."
        found = self.gnc("--json", "recall", *words, "--", question).json
        return found["source_memories"] if "source_memories" in found else found["results"]

    def copy(self, path):
        "The same somewhere else, to be written to."
        twin = copy.copy(self)
        twin.path = Path(shutil.copytree(self.path, path))
        return twin


def says(row): return flat(f"{row['summary']} {row.get('content') or ''}")
