"""For tests: git in one call, and the project's own files as text."""
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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


def refs(repo, pattern="refs/"):
    "Every ref and the object it points to."
    return dict(line.split(" ")[::-1] for line in git(repo, "for-each-ref", "--format=%(objectname) %(refname)", pattern).splitlines())


def tracked():
    "The project's files: those in git and those that would be added, so that a new file is checked before it is committed."
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return sorted(p for p in (ROOT / n for n in names) if p.is_file() and not p.is_symlink())
