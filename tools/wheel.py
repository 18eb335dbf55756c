"""Does the wheel work where nothing else is installed? Build it from the sdist, install it into an empty environment, use it there."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "git_notes_consolidation"


def run(*command, cwd, input=""):
    "The command's output; its failure ends the check with what it said."
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV") and not k.startswith("GIT_")}
    pipes = {"input": input, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8", "errors": "replace"}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=env, **pipes)
    if done.returncode: sys.exit(f"{done.stdout}\nfailed with {done.returncode}: {' '.join(Path(c).name if i == 0 else str(c) for i, c in enumerate(command))}")
    return done.stdout


def missing(
    wheel,  # Path of the wheel
):  # Files of the package that are in git, but not in the wheel
    "What a user would not get."
    tracked = {f for f in run("git", "ls-files", PACKAGE, cwd=ROOT).split() if (ROOT / f).exists()}
    return sorted(tracked - set(zipfile.ZipFile(wheel).namelist()))


def main():
    "Build, compare, install, run."
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="a directory for the sdist and the wheel, once they passed")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as d:
        tmp = Path(d)
        run(sys.executable, ROOT / "tools" / "man.py", cwd=ROOT)
        run(sys.executable, "-m", "build", "--outdir", tmp / "dist", ROOT, cwd=tmp)
        wheel, = (tmp / "dist").glob("*.whl")
        if lost := missing(wheel): sys.exit(f"{wheel.name} lacks {', '.join(lost)}: see package_data in settings.ini and MANIFEST.in")
        print(run(sys.executable, "-m", "twine", "check", "--strict", *sorted((tmp / "dist").iterdir()), cwd=tmp).strip())
        print(f"{wheel.name}: {wheel.stat().st_size // 1024} kB, {len(zipfile.ZipFile(wheel).namelist())} files")

        venv.create(tmp / "venv", with_pip=True)
        bin = tmp / "venv" / ("Scripts" if os.name == "nt" else "bin")
        run(bin / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-c", ROOT / "constraints.txt", wheel, cwd=tmp)
        run(bin / "python", "-m", "pip", "check", cwd=tmp)
        if "scikit-learn" in run(bin / "python", "-m", "pip", "list", cwd=tmp): sys.exit("the base install brought scikit-learn, which belongs to an extra")

        repo = tmp / "repo"
        repo.mkdir()
        run("git", "init", "--quiet", cwd=repo)
        where = run(bin / "python", "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)", cwd=repo)
        if str(tmp.resolve()) not in str(Path(where.strip()).resolve()): sys.exit(f"imported from {where.strip()}, not from the wheel")
        run(bin / "gnc", "--help", cwd=repo)
        if not (tmp / "venv" / "share" / "man" / "man1" / "gnc.1").is_file(): sys.exit("the wheel brought no manual page")
        print(run(bin / "gnc", "status", cwd=repo).strip())
        print("The base install reads an empty repository.")

        demo = tmp / "demo"
        run(Path(sys.executable).parent / "gnc", "demo", demo, cwd=tmp)
        for what in (["inject"], ["context"], ["recall", "backups"], ["status", "-v"], ["doctor"], ["config"]): run(bin / "gnc", *what, cwd=demo)
        told = json.loads(run(bin / "gnc", "hook", "session-start", cwd=demo, input=json.dumps({"cwd": str(demo)})))
        if "## Project Memory Context" not in told["hookSpecificOutput"]["additionalContext"]: sys.exit(f"no session block: {told}")
        if out: shutil.copytree(tmp / "dist", out, dirs_exist_ok=True)
    print("The base install tells a session what another install consolidated.")


if __name__ == "__main__": main()
