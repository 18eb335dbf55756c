"""A `git` that is found first on the PATH, counts its calls, and at one of them does what git does on a bad day; at all others it is git."""
import os
import shutil
from contextlib import contextmanager

KINDS = {
    "fails": 'echo "fatal: it did not work" >&2; exit 128',
    "mute": "exit 1",
    "killed": "kill -9 $$",
    "killed when done": '"$real" "$@" > /dev/null; kill -9 $$',
    "killed at half": '"$real" "$@" > "$here/out"; head -c $(($(wc -c < "$here/out") / 2)) "$here/out"; kill -9 $$',
    "cut short": '"$real" "$@" > "$here/out"; code=$?; head -c $(($(wc -c < "$here/out") / 2)) "$here/out"; exit $code',  # and says that all is well
    "slow": 'sleep 0.2; exec "$real" "$@"',
    "no room": "trap '' XFSZ; ulimit -f 0; exec \"$real\" \"$@\"",  # a write is refused, as on a full disk (there ENOSPC, here EFBIG)
    "locked": "echo \"fatal: cannot lock ref 'refs/notes/mem-runs/v1': Unable to create 'v1.lock': File exists.\" >&2; exit 128",
    "no memory": 'echo "fatal: Out of memory, malloc failed (tried to allocate 4096 bytes)" >&2; exit 128',
}

_SCRIPT = """#!/bin/sh
here={here}; real={real}
read n < "$here/count"; n=$((n + 1)); echo $n > "$here/count"
echo "$n $*" >> "$here/log"
read at < "$here/at"
[ $n = $at ] || exec "$real" "$@"
read kind < "$here/kind"
case $kind in
{cases}
esac
"""


class FaultyGit:
    "Its calls, and when it is to fail."
    def __init__(self, place, real):
        self.place = place
        place.mkdir()
        cases = "\n".join(f'"{kind}") {what} ;;' for kind, what in KINDS.items())
        (place / "git").write_text(_SCRIPT.format(here=f"'{place}'", real=f"'{real}'", cases=cases))
        (place / "git").chmod(0o755)
        self.set(0, "fails")

    def set(self, at, kind):
        "From now on the first call is number 1."
        for name, value in (("count", 0), ("at", at), ("kind", kind)): (self.place / name).write_text(f"{value}\n")
        (self.place / "log").write_text("")

    @property
    def calls(self):
        "What it was asked, in order."
        return [line.partition(" ")[2] for line in (self.place / "log").read_text().splitlines()]


@contextmanager
def faulty_git(place):
    "In the block, and for every process that it starts, `git` is the faulty one."
    was, real = os.environ["PATH"], shutil.which("git")
    made = FaultyGit(place, real)
    os.environ["PATH"] = f"{place}{os.pathsep}{was}"
    try: yield made
    finally: os.environ["PATH"] = was
