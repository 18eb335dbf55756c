"""Can the documentation be made? What nbdev does to each notebook before Quarto gets it, without Quarto.

For the API pages nbdev runs the exported cells and every cell that imports something, and no other. So an import stands in a cell
without other code, and a name that only annotations use is imported in some cell, a hidden one if need be.
"""
import multiprocessing
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRELOADED = ["nbdev.processors", "nbdev.showdoc", "execnb.nbio", "execnb.shell", "numpy", "pandas", "plotly.graph_objects", "yaml", "fastcore.test"]


def fresh():
    "Processes that have run no notebook; where the system can fork one, what nearly all notebooks import is loaded once."
    names = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in names else "spawn")
    if "forkserver" in names: context.set_forkserver_preload(PRELOADED)
    return context


def fault(
    path,  # The notebook
):  # What went wrong, or None
    "Run nbdev's filters over one notebook, and throw the result away."
    from execnb.nbio import read_nb
    from nbdev.processors import FilterDefaults
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try: FilterDefaults()(read_nb(path))
        except Exception as e: return f"{e}\n{e.__cause__!r}" if e.__cause__ else repr(e)
    return None


def main():
    "Exit code 1 when a page cannot be made."
    paths = sorted(p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    with ProcessPoolExecutor(2, fresh(), max_tasks_per_child=1) as pool: faults = list(pool.map(fault, paths))
    for path, why in zip(paths, faults):
        if why: print(f"\n{path.relative_to(ROOT)}: {why}")
    if any(faults):
        print("\n" + __doc__.partition("\n\n")[2].strip())
        return 1
    print(f"{len(paths)} pages")
    return 0


if __name__ == "__main__": sys.exit(main())
