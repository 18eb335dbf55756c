"""Remotes that mean no good, and none that keep somebody waiting."""
import os
import subprocess
import time

import pytest
from calls import gnc, state_of
from clones import OBJECTS, agree, at, blob, go, learn, lines
from helpers import git, refs

from git_notes_consolidation.store.events import REFS, read_events
from git_notes_consolidation.store.git import RepoError, open_repo


def tree(home, *entries):
    "A tree with whatever entries, as no ordinary command would make it."
    rows = b"".join(b"%s %s\0%s" % (mode.encode(), name, bytes.fromhex(obj)) for mode, name, obj in sorted(entries, key=lambda e: e[1]))
    done = subprocess.run(["git", "-C", home, "hash-object", "-t", "tree", "-w", "--stdin", "--literally"], input=rows, capture_output=True, check=True)
    return done.stdout.decode().strip()


def spoiled(home, tip, *entries):
    "A commit on top of a notes commit, with more in its tree."
    there = [(m.split()[0], p.encode(), m.split()[2]) for m, p in (row.split("\t") for row in git(home, "ls-tree", tip).splitlines())]
    return git(home, "commit-tree", "-p", tip, "-m", "x", tree(home, *there, *entries))


@pytest.mark.slow
def test_lines_that_are_no_records_are_carried_and_harmless(pair, tmp_path):
    one, two = pair
    agree(one, two)
    bad = [b"\xff\xfe\x00 not text", b"\x1b]0;owned\x07\x1b[2J", b'- {"id": "r_x", "kind": "edge", "seq": 1e999}', b"x" * 5_000_000, "\u202eevil".encode()]
    for ref, tip in at(one).items():
        note = blob(one, b"\n\n".join([*bad, min(x for _, x in lines(one, tip))]))
        git(one, "update-ref", ref, spoiled(one, tip, ("100644", OBJECTS[3].encode(), note)))
    written = lines(one) | lines(two)
    git(one, "push", "--quiet", "origin", *REFS.values())
    learn(two, "run_3")
    said = gnc("sync", repo=two)
    assert said.code == 0 and not set("\x1b\x07\u202e") & set(said.out + said.err)
    state = agree(one, two)
    assert lines(two) >= written and "run_3" in state.runs
    assert len(read_events(open_repo(two)).problems) == len(bad) * len(REFS)


@pytest.mark.slow
def test_other_things_in_the_tree_are_no_notes(pair, tmp_path):
    "A link, a submodule, names that climb out of the repository: they stay in the commit that brought them and reach no file."
    one, two = pair
    go(one)
    outside = sorted(p for p in tmp_path.rglob("*") if ".git" not in str(p.relative_to(tmp_path)))
    text, link, far = blob(one, b"- {}\n"), blob(one, b"/etc/passwd"), "1" * 40
    for ref, tip in at(one).items():
        deep = tree(one, ("100755", b"hook", text), ("120000", b"link", link))
        evil = spoiled(one, tip, ("100644", b"..", text), ("100644", b"../../escaped", text), ("120000", OBJECTS[3].encode(), link), ("160000", b"e" * 40, far),
                       ("40000", b".git", deep), ("100644", b'"quoted\nM 100644', text), ("100644", b"--upload-pack=touch pwned", text))
        git(one, "update-ref", f"refs/evil/{ref[11:]}", evil)
        git(one, "push", "--quiet", "origin", f"refs/evil/{ref[11:]}:{ref}")
    try: go(two)
    except RepoError as e: assert "fast-import" in str(e) and set(state_of(two).runs) == {"run_2"}
    else: assert set(state_of(two).runs) == {"run_1", "run_2"} and not any(obj == "e" * 40 for _, obj, _ in lines(two))
    assert sorted(p for p in tmp_path.rglob("*") if ".git" not in str(p.relative_to(tmp_path))) == outside
    assert not refs(two, "refs/gnc/tmp/")


@pytest.mark.parametrize("kind", ["blob", "tree", "tag"])
def test_a_ref_that_is_no_commit_is_refused(pair, tmp_path, kind):
    one, two = pair
    made = {"blob": lambda: blob(one, b"x"), "tree": lambda: tree(one),
            "tag": lambda: git(one, "mktag", input=f"object {at(one)[REFS['edges']]}\ntype commit\ntag x\ntagger a <a@example.org> 0 +0000\n\nx")}[kind]()
    git(one, "push", "--quiet", "origin", f"{made}:{REFS['edges']}", f"{REFS['meta']}:{REFS['meta']}")
    before, there = at(two), refs(tmp_path / "team.git")
    for dry in (True, False):
        with pytest.raises(RepoError, match=f"their {REFS['edges']}.*no commit of notes but: {kind}"): go(two, dry_run=dry)
    assert at(two) == before and refs(tmp_path / "team.git") == there


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", ["--upload-pack=touch pwned", "-u", "--", "ext::sh -c touch% pwned", "$(touch pwned)", "`touch pwned`",
                                  "x\n--upload-pack=touch pwned", "ssh://-oProxyCommand=touch pwned/x", "a;touch pwned"])
def test_a_remotes_name_is_never_run(pair, tmp_path, name):
    one, _ = pair
    before = refs(one)
    r = gnc("sync", "--", name, repo=one)
    assert r.code == (2 if name.startswith("-") else 1) and r.err.startswith("gnc: ") and refs(one) == before
    git(one, "config", "remote.origin.url", name)
    assert gnc("sync", repo=one).code == 1
    git(one, "config", "--rename-section", "remote.origin", f"remote.{name}", check=False)
    assert gnc("sync", repo=one).code in (1, 2)
    assert not list(tmp_path.rglob("pwned")) and not os.path.exists("pwned")


# Nobody is asked


def test_no_terminal_and_no_program_to_ask_with(pair, tmp_path, monkeypatch):
    "With a terminal at hand, and an askpass that would answer, git and ssh get neither."
    one, _ = pair
    script = tmp_path / "ask"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\necho secret\n"); script.chmod(0o755)
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\n(echo password: > /dev/tty) 2> /dev/null && touch {tmp_path}/asked\n"
                   f"env > {tmp_path}/env\nexit 255\n"); ssh.chmod(0o755)
    for k in ("GIT_ASKPASS", "SSH_ASKPASS"): monkeypatch.setenv(k, str(script))
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh)); monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    git(one, "config", "remote.origin.url", "ssh://example.org/x"); git(one, "config", "core.askPass", str(script))
    pid, tty = os.forkpty()
    if not pid:
        try: go(one, timeout=20)
        except RepoError as e: os.write(1, f"refused: {e}".encode())
        os._exit(0)
    out = b""
    try:
        while some := os.read(tty, 4096): out += some
    except OSError: pass
    os.waitpid(pid, 0); os.close(tty)
    env = (tmp_path / "env").read_text().splitlines()
    assert b"refused: origin cannot be reached" in out and b"password" not in out and not (tmp_path / "asked").exists()
    assert {"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never"} <= set(env)


@pytest.mark.slow
def test_a_remote_that_does_not_answer_is_given_up_with_all_it_started(pair, tmp_path, monkeypatch):
    one, _ = pair
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n"); ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh)); monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    git(one, "config", "remote.origin.url", "ssh://example.org/x")
    begin = time.monotonic()
    r = gnc("sync", "--timeout", "1", repo=one)
    assert r.code == 1 and "origin did not answer within 1 s" in r.err and time.monotonic() - begin < 20
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(50): os.kill(pid, 0); time.sleep(0.1)


def test_a_password_in_a_url_is_not_shown(pair):
    r = gnc("sync", "https://ada:hunter2@localhost:1/x.git", repo=pair[0])
    assert r.code == 1 and "localhost:1" in r.err and "hunter2" not in r.out + r.err
