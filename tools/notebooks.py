"""Execute notebooks in place and store their outputs: all of them, or those named. With --check, see whether a run shows what is stored.
With --pictures nothing runs: titles and pictures come to the figures that are stored without.

Widget state is not stored, and plotly stores its figures' data without its script: either would add megabytes. Beside a figure stands a picture of it,
for readers that run no script. A check works on a copy of the project
and writes nothing into it. `#| volatile` at the head of a cell says that no run repeats its outputs: the cell must run, and is not compared.
"""
import argparse
import asyncio
import atexit
import base64
import io
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import outputs
import pictures

from git_notes_consolidation.core.memory import AGENTS

ROOT = Path(__file__).resolve().parent.parent
os.environ |= {"PLOTLY_RENDERER": "plotly_mimetype", "TZ": "UTC"}
for name in AGENTS: os.environ.pop(name, None)  # What is stored shows a person's answers, whoever ran it


def run(
    path,  # The notebook, written back with its outputs
    timeout=900,  # Seconds for one cell
):  # Seconds it took
    "Execute one notebook, in its own folder."
    import nbformat
    from nbclient import NotebookClient
    start, nb, before = time.monotonic(), nbformat.read(path, as_version=4), json.loads(path.read_text(encoding="utf-8"))
    client = NotebookClient(nb, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}, store_widget_state=False,
                            coalesce_streams=True)
    with tempfile.TemporaryDirectory() as d:
        km = client.create_kernel_manager()
        if os.name == "posix": km.transport, km.ip = "ipc", f"{d}/kernel"  # over TCP the kernel warns that others can listen
        client.execute()
    nb.metadata.pop("widgets", None)
    left = pictures.add(nb, before)
    if left: print(f"{path.name}: {left} figures are stored without a picture: no Chromium", file=sys.stderr)
    nbformat.write(nb, path)
    return time.monotonic() - start


def draw(
    path,  # The notebook, written back if something was missing
):  # How many figures have no picture
    "Titles and pictures for what is stored; nothing is executed."
    raw = path.read_text(encoding="utf-8")
    nb = json.loads(raw)
    left = pictures.add(nb, json.loads(raw))
    if (text := json.dumps(nb, ensure_ascii=False, indent=1) + "\n") != raw: path.write_text(text, encoding="utf-8")
    return left


def copy(
    to,  # A folder that is not there yet
):
    "The project's files as they are now: those in git and those that would be added."
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    for name in names.stdout.split("\0")[:-1]:
        if not os.path.lexists(ROOT / name): continue  # deleted, not yet committed
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


def shell(
    shown,  # List that gets the outputs, as nbformat has them
):  # Runs cells
    "What a Jupyter kernel runs cells with, without the kernel: its start takes longer than most notebooks, and here a fork replaces it."
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from ipykernel import zmqshell
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, *, transient=None, update=False, **_):
            name = (transient or {}).get("display_id")
            for o in shown if update else ():
                if o.get("id") == name: o["data"] = data
            if not update: shown.append({"output_type": "display_data", "data": data, "id": name})

        def clear_output(self, wait=False): shown.clear()

    class Hook(DisplayHook):
        def write_output_prompt(self): pass
        def write_format_data(self, format_dict, md_dict=None): shown.append({"output_type": "execute_result", "data": format_dict})
        def log_output(self, format_dict): pass

    class ZMQInteractiveShell(zmqshell.ZMQInteractiveShell):  # rich and pandas know a notebook by this name
        displayhook_class, display_pub_class = Hook, Publisher
        def _showtraceback(self, etype, evalue, stb): shown.append({"output_type": "error", "ename": etype.__name__, "evalue": str(evalue)})

    return ZMQInteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))


class Stream(io.TextIOBase):
    "A stdout that ends in a cell's outputs."
    encoding, errors = "utf-8", "strict"

    def __init__(self, name, shown): self.name, self.shown = name, shown
    def writable(self): return True
    def write(self, text):
        if text: self.shown.append({"output_type": "stream", "name": self.name, "text": text})
        return len(text)


@contextmanager
def captured(
    shown,  # List that gets the outputs
):
    "What a cell prints, and behind it what the programs that it starts print past Python."
    with ExitStack() as stack:
        past = []
        for number, name in (1, "stdout"), (2, "stderr"):
            file, before = stack.enter_context(tempfile.TemporaryFile()), os.dup(number)
            os.dup2(file.fileno(), number)
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, number)
            past.append((file, name))
        with redirect_stdout(Stream("stdout", shown)), redirect_stderr(Stream("stderr", shown)): yield
        for file, name in past:
            file.seek(0)
            Stream(name, shown).write(file.read().decode(errors="replace"))


async def shown_by(
    sources,  # The code of each cell
):  # The outputs of each, up to the first that fails
    "Run cells one after the other, in an event loop, as a kernel does."
    shown, out = [], []
    ip = shell(shown)
    for source in sources:
        with captured(shown):
            done = await ip.run_cell_async(source, store_history=True, transformed_cell=ip.transform_cell(source))
        for o in shown: o.pop("id", None)
        encode = lambda x: base64.b64encode(x).decode() if isinstance(x, bytes) else str(x)
        out.append(json.loads(json.dumps(shown, default=encode)))
        shown.clear()
        if not done.success: break
    return out


def child(
    path,  # The notebook, in the copy of the project
    root,  # The copy
    to,  # A pipe's end, which gets what the cells show and the processor's seconds
):
    "A process of its own: the notebook runs in its folder, and imports the copy's modules, as do the processes that it starts."
    os.chdir(path.parent)
    os.environ["IPYTHONDIR"] = str(root / ".ipython")
    sys.path[:0] = ["", str(root)]
    if "pandas" in sys.modules: sys.modules["pandas"].set_option("display.max_columns", 20)  # as in a notebook: it was loaded outside of one
    shown = asyncio.run(shown_by([outputs.text_of(c["source"]) for c in outputs.code_cells(outputs.read(path))]))
    to.send((shown, sum(os.times()[:4])))
    os.chdir(path.parent)  # a notebook may have gone to a folder that ends with it
    atexit._run_exitfuncs()  # a process of multiprocessing ends without them


def check(
    paths,  # Notebooks of the project
    workers,  # Processes at a time
    timeout=1200,  # Seconds for one notebook
):  # How many cells differ
    "Run notebooks, print what each shows otherwise than it stores. The largest files first: on the whole they take the longest."
    paths = sorted(paths, key=lambda p: -p.stat().st_size)
    names = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in names else "spawn")
    with tempfile.TemporaryDirectory() as d:
        root = Path(d) / ROOT.name
        copy(root)
        os.environ["PYTHONPATH"] = str(root)
        if "forkserver" in names: context.set_forkserver_preload(["tools.preloaded"])

        def one(path):
            start, (here, there) = time.monotonic(), context.Pipe(duplex=False)
            process = context.Process(target=child, args=(root / path.relative_to(ROOT), root, there))
            process.start()
            there.close()
            try: shown, cpu = here.recv() if here.poll(timeout) else (None, 0)
            except EOFError: shown, cpu = None, 0
            process.join(10 if shown else 0)
            process.kill()
            return path, shown, time.monotonic() - start, cpu

        differ, volatile = [], 0
        with ThreadPoolExecutor(workers) as pool:
            for done in as_completed([pool.submit(one, p) for p in paths]):
                path, shown, seconds, cpu = done.result()
                stored, fresh, name = outputs.read(path), iter(shown or ()), path.relative_to(ROOT / "nbs")
                cells = outputs.code_cells(stored)
                skipped = sum(map(outputs.is_volatile, cells))
                pictures.add_titles([c | {"outputs": next(fresh, [])} if c in cells else c for c in stored])
                found = [(0, "", "", f"no end after {timeout} s, or a sudden one")] if shown is None else outputs.compared(cells, shown)
                print(f"{name}  {seconds:.1f} s, processor {cpu:.1f} s, {len(cells) - skipped} cells" + f", {skipped} volatile" * (skipped > 0), flush=True)
                differ += [f"  {name}, code cell {n}: {line[:80]}\n    stored  {stored}\n    fresh   {fresh}" for n, line, stored, fresh in found]
                volatile += skipped
    print(*differ, f"{len(paths)} notebooks, {len(differ)} cells differ, {volatile} volatile cells not compared", sep="\n")  # last: a long log is cut
    return len(differ)


def main(argv=None):
    "The first notebook that fails ends it, and is not written."
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("notebooks", nargs="*", type=Path, help="default: all under nbs/")
    ap.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a run shows something else than is stored")
    ap.add_argument("--pictures", action="store_true", help="run nothing: titles and pictures for the figures that are stored without")
    ap.add_argument("--workers", type=int, default=2, help="notebooks that --check runs at a time (default: 2)")
    args = ap.parse_args(argv)
    found = [p.resolve() for p in args.notebooks] or sorted(p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if args.check: return int(check(found, args.workers) > 0)
    if args.pictures: return int(sum(map(draw, found)) > 0)
    from nbclient.exceptions import CellExecutionError
    for path in found:
        try: print(f"{path.relative_to(ROOT)}  {run(path):.1f} s", flush=True)
        except CellExecutionError as e:
            print(f"{path}: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__": sys.exit(main())
