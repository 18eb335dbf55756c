"""Execute notebooks in place and store their outputs: all of them, or those named.

Widget state is not stored, and plotly stores its figures' data without its script: either would add megabytes.
"""
import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ |= {"PLOTLY_RENDERER": "plotly_mimetype", "TZ": "UTC"}


def run(
    path,  # The notebook, written back with its outputs
    timeout=900,  # Seconds for one cell
):  # Seconds it took
    "Execute one notebook, in its own folder."
    import nbformat
    from nbclient import NotebookClient
    start, nb = time.monotonic(), nbformat.read(path, as_version=4)
    client = NotebookClient(nb, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}, store_widget_state=False)
    with tempfile.TemporaryDirectory() as d:
        km = client.create_kernel_manager()
        if os.name == "posix": km.transport, km.ip = "ipc", f"{d}/kernel"  # over TCP the kernel warns that others can listen
        client.execute()
    nb.metadata.pop("widgets", None)
    nbformat.write(nb, path)
    return time.monotonic() - start


def main(argv=None):
    "The first notebook that fails ends it, and is not written."
    from nbclient.exceptions import CellExecutionError
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("notebooks", nargs="*", type=Path, help="default: all under nbs/")
    found = ap.parse_args(argv).notebooks or sorted(p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    for path in found:
        try: print(f"{path.resolve().relative_to(ROOT)}  {run(path.resolve()):.1f} s", flush=True)
        except CellExecutionError as e:
            print(f"{path}: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__": sys.exit(main())
