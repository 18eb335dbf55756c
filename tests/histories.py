"Repositories whose commits have given days and contents, for tests and for notebooks."
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from git_notes_consolidation.store.git import Repo, git


class Step(NamedTuple):
    "A commit to be made."
    day: int  # Days after 1 January 2026
    subject: str
    files: Mapping[str, str | None]  # Path to content; none deletes it
    branch: str = "main"
    start: str = ""  # Where a new branch begins: a commit, or its subject
    merge: str = ""  # Subject of a second parent


def change(path: str, text: str | None) -> bytes:
    name = '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if text is None: return b"D %s\n" % name.encode()
    return b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(text.encode()), text.encode())


def write_history(repo: Repo, steps: Iterable[Step]) -> dict[str, str]:  # Subject to commit
    "Make commits, hundreds in one process."
    out: list[bytes] = []
    marks: dict[str, bytes] = {}
    ends: dict[str, bytes] = {}
    for n, s in enumerate(steps, 1):
        message, begin = s.subject.encode(), ends.get(s.branch) or marks.get(s.start) or s.start.encode()
        out.append(b"commit refs/heads/%s\nmark :%d\ncommitter a <a@example.org> %d +0000\ndata %d\n%s\n" % (
            s.branch.encode(), n, 1767268800 + 86400 * s.day, len(message), message))
        out += [b"from %s\n" % begin] * bool(begin) + ([b"merge %s\n" % marks[s.merge]] if s.merge else [])
        out += [change(path, text) for path, text in s.files.items()]
        out.append(b"get-mark :%d\n" % n)
        marks[s.subject.partition("\n")[0]] = ends[s.branch] = b":%d" % n
    ids = git(repo.path, "fast-import", "--quiet", "--force", input=b"".join(out)).decode().split()
    return {subject: ids[int(mark[1:]) - 1] for subject, mark in marks.items()}
