"""The documentation in _docs/: by Quarto where it is on the PATH, as the published site is, else the same pages by Sphinx, myst-nb and furo.

Either gets the notebooks through nbdev's filters, with the outputs that are stored in them; nothing is executed for them. What no
notebook holds (the CLI reference, the promises, how to cite, the lists of what there is) is made here, in tools/pages.py.
"""
import argparse
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pages
from pages import NBS, PLOTLY, ROOT

THEME = ROOT / "tools" / "docs_theme"
PRELOADED = ["nbdev.processors", "nbdev.showdoc", "execnb.nbio", "execnb.shell", "numpy", "pandas", "plotly.graph_objects", "yaml", "fastcore.test"]
OPTION = re.compile(r"^#\|\s*([\w-]+):\s*(\S+).*\n?", re.M)  # Quarto's cell options


def markdown(text): return {"cell_type": "markdown", "metadata": {}, "source": text}


def drawn(cells, folder, builder, static):
    "The cells with their figures as HTML that draws them; Quarto fetches scripts from elsewhere for a cell with HTML, so there it is Markdown."
    root, first = "../" if folder else "", True
    for cell in cells:
        for o in cell.get("outputs", []):
            data = o.get("data", {})
            if PLOTLY in data: html, first = pages.figure(data[PLOTLY], root, static, first), False
            elif "text/html" in data: html = "".join(data["text/html"])
            else: continue
            o["data"] = {"text/html": html} if builder == "sphinx" else {"text/markdown": pages.as_html(html, builder)}
    return cells


def plotly_script():
    "The one that the installed plotly brings."
    import plotly
    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def filtered(
    path,  # The notebook
    run=True,  # Also nbdev's step that runs exported cells, for what it documents
):  # The notebook as a dictionary
    """A notebook through nbdev's filters, with what stands below title and subtitle in one cell: they take all of that for front matter.

    nbdev's own writer is left out: it takes the `source` of a Sankey diagram for a cell's, and fails.
    """
    from execnb.nbio import dict2nb
    from nbdev.processors import FilterDefaults

    class Filters(FilterDefaults):
        def base_procs(self): return [p for p in super().base_procs() if run or p.__name__ not in ("exec_show_docs", "insert_warning")]

    # A page shows the inner names too
    nb = json.loads(path.read_text(encoding="utf-8").replace("#| exporti", "#| export"))
    i, top = next((i, c) for i, c in enumerate(nb["cells"]) if c["cell_type"] == "markdown")
    lead, rest = re.match(r"(\s*# .+\n+> .+)([\s\S]*)", "".join(top["source"])).groups()
    nb["cells"][i: i + 1] = [top | {"source": lead}, *([markdown(rest.strip()) | {"id": "lead"}] if rest.strip() else [])]
    nb = dict2nb(nb)
    nb["path_"] = str(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Filters()(nb)
    whole = lambda x: {k: whole(v) for k, v in x.items()} if isinstance(x, dict) else [*map(whole, x)] if isinstance(x, list) else x
    known = lambda x: {k: whole(v) for k, v in x.items() if k in ("cell_type", "id", "metadata", "source", "outputs", "execution_count")}
    return {"cells": [known(c) for c in nb.cells], "metadata": whole(nb.metadata), "nbformat": 4, "nbformat_minor": 5}


# Sphinx

def _shown(cell):
    "A code cell under Quarto's options, as myst-nb understands them; None for a hidden one."
    text = cell["source"]
    options = {k: v.lower() for k, v in OPTION.findall(text)}
    if options.get("include") == "false": return None
    tags = [*(["remove-input"] if options.get("echo") == "false" else []), *(["hide-input"] if options.get("code-fold") in ("true", "hide") else [])]
    outputs = [] if options.get("output") == "false" else [o for o in cell["outputs"] if o.get("name") != "stderr"]
    source = OPTION.sub("", text).strip("\n")
    return cell | {"source": source, "outputs": outputs, "metadata": {"tags": tags}} if source or outputs else None


def for_sphinx(
    path,  # A notebook in nbs/
    lookup,  # nbdev's, from names to addresses
):  # What myst-nb reads
    "One page: its title, its prose, its examples with their outputs, and the API where nbdev would show it."
    title, subtitle, raw = pages.heading(path)
    module = next((m[1] for c in raw if c["cell_type"] == "code" and (m := re.match(r"#\|\s*default_exp\s+(\S+)", "".join(c["source"])))), None)
    folder = path.parent.relative_to(NBS).as_posix().strip(".")
    cells = [markdown(f"# {title}\n\n{{.subtitle}}\n{pages.relink(lookup.linkify(subtitle), folder)}")]
    for cell in filtered(path, run=False)["cells"]:
        cell["source"] = "".join(cell["source"])
        if cell["cell_type"] == "raw": continue
        if cell["cell_type"] == "markdown": cells.append(markdown(bash(pages.relink(cell["source"], folder))))
        elif m := re.search(r"^show_doc\((\w+)\)", cell["source"], re.M):
            cells.append(markdown(pages.relink(pages.api(f"git_notes_consolidation.{module}", m[1], lookup), folder)))
        elif shown := _shown(cell): cells.append(shown)
    for i, cell in enumerate(drawn(cells, folder, "sphinx", "_static")): cell |= {"id": f"c{i}"} | ({"execution_count": None} if "outputs" in cell else {})
    kernel = {"name": "python3", "display_name": "python3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def bash(text): return re.sub(r"^```console$", "```bash", text, flags=re.M)  # to Sphinx a line of a console without a prompt is output


def toctree(names, folder="", caption=None):
    "The pages below a page, for the sidebar."
    def row(name, title=""):
        place = pages.posixpath.relpath(pages.docname(name), folder or ".")
        return f"{title} <{place}>" if title else place
    rows = [row(n) if isinstance(n, str) else row(n["href"], n.get("section", "")) for n in names]
    return "\n".join(["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *rows, "```", ""])


def trees(order):
    "The sidebar: what stands alone, then each section under its name, a chapter in it as one line that opens."
    alone = [e for e in order if isinstance(e, str)]
    parts = [toctree(alone), *(toctree(([e["href"]] if "href" in e else []) + e["contents"], caption=e["section"]) for e in order if "section" in e)]
    return "\n" + "\n".join(parts)


def write_sources(work):
    "What Sphinx reads, in `work`."
    from nbdev.doclinks import NbdevLookup
    lookup, order = NbdevLookup(), pages.sections()
    inner = {s["href"]: s["contents"] for top in order if "section" in top for s in pages.walk(top["contents"]) if "href" in s}  # Chapters' overviews
    for name in (n for n in pages.files(order) if n.endswith(".ipynb")):
        page = for_sphinx(NBS / name, lookup)
        if name in inner: page["cells"].append(markdown(toctree(inner[name], pages.posixpath.dirname(name))) | {"id": "sections"})
        out = work / f"{pages.docname(name)}.ipynb"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(page, ensure_ascii=False), encoding="utf-8")
    for name, text in pages.made("sphinx", "_static").items():
        folder = pages.posixpath.dirname(name)
        out = work / name
        out.parent.mkdir(parents=True, exist_ok=True)
        below = trees(order) if name == "index.md" else ""
        out.write_text(bash(pages.relink(text, folder)) + below, encoding="utf-8")


def sphinx(
    out,  # Folder of the site
    work,  # Folder for what is read and kept on the way
    jobs=2,  # Processes
):  # Sphinx's exit code: a warning is a failure
    "The pages by Sphinx: no Quarto, no network."
    src = work / "src"
    shutil.rmtree(src, ignore_errors=True)
    src.mkdir(parents=True)
    write_sources(src)
    shutil.copytree(THEME / "static", src / "_static")
    shutil.copy(plotly_script(), src / "_static" / "plotly.min.js")
    (src / "_static" / "llms.txt").write_text(pages.llms(), encoding="utf-8")
    html = work / "html"  # beside it myst-nb leaves a folder of its own
    shutil.rmtree(html, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-j", str(jobs), "-c", THEME, "-D", f"html_static_path={src / '_static'}", "-d", work / "doctrees", "-b", "html"]
    code = subprocess.run([sys.executable, "-m", "sphinx", *options, src, html], env=os.environ | {"PYTHONPATH": str(ROOT)}).returncode
    if code == 0:
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(html, out)
        shutil.move(out / "_static" / "llms.txt", out)
    return code


# Quarto

def for_quarto(
    job,  # A notebook in nbs/, and where its page goes
):
    "One page as nbdev makes it, but that its figures are drawn and its links lead somewhere."
    path, out = job
    folder, nb = path.parent.relative_to(NBS).as_posix().strip("."), filtered(path)
    nb["metadata"].pop("widgets", None)
    head = nb["cells"][0]
    head["source"] = re.sub(r"^output-file: .*$", f"output-file: {pages.docname(path.name)}.html", head["source"], flags=re.M)
    for cell in drawn(nb["cells"], folder, "quarto", "static"):
        if cell["cell_type"] == "markdown": cell["source"] = pages.relink("".join(cell["source"]), folder)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(nb, ensure_ascii=False), encoding="utf-8")


def quarto(
    out,  # Folder of the site
    proc,  # Folder of what Quarto reads
    jobs=2,  # Processes
):  # Quarto's exit code
    "The pages by Quarto, in the steps of `nbdev_docs`."
    from nbdev.quarto import refresh_quarto_yml
    shutil.rmtree(proc, ignore_errors=True)
    refresh_quarto_yml()
    skip = shutil.ignore_patterns("*.ipynb", "_*", ".*")
    shutil.copytree(NBS, proc, ignore=skip)
    shutil.copy(NBS / "_quarto.yml", proc)
    shutil.copytree(THEME / "static", proc / "static")
    shutil.copy(plotly_script(), proc / "static")
    work = [(NBS / n, proc / n) for n in pages.files(pages.sections()) if n.endswith(".ipynb")]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool: list(pool.map(for_quarto, work))
    for name, text in pages.made("quarto", "static").items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(pages.relink(text, pages.posixpath.dirname(name)), encoding="utf-8")
    (proc / "llms.txt").write_text(pages.llms(), encoding="utf-8")
    code = subprocess.run(["quarto", "render", "--no-cache"], cwd=proc).returncode
    if code == 0:
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(proc / pages.INI["doc_path"], out)
    return code


# Without building it

def fault(
    name,  # A notebook in nbs/
):  # What nbdev's filters refuse about it, or None
    """nbdev runs the exported cells and every cell that imports something, and no other. So an import stands in a cell without other
    code, and a name that only annotations use is imported in some cell, a hidden one if need be."""
    try: filtered(NBS / name)
    except Exception as e: return f"{e}\n{e.__cause__!r}" if e.__cause__ else repr(e)


def check(jobs=2):
    "Exit code 1 when Quarto would not get a page; each notebook in a process that has run no other."
    names = [n for n in pages.files(pages.sections()) if n.endswith(".ipynb")]
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks: context.set_forkserver_preload(PRELOADED)
    with ProcessPoolExecutor(jobs, context, max_tasks_per_child=1) as pool: faults = [*zip(names, pool.map(fault, names))]
    for name, why in faults:
        if why: print(f"\nnbs/{name}: {why}")
    print(f"{len(names)} pages")
    return int(any(why for _, why in faults))


def main(argv=None):
    "Exit code 1 when a page cannot be made or a link leads nowhere."
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--out", type=Path, default=ROOT / "_docs", help="where the site goes; default: _docs")
    ap.add_argument("--work", type=Path, default=ROOT / "build" / "site", help="what is kept on the way; default: build/site")
    ap.add_argument("--jobs", type=int, default=2, help="processes; default: 2")
    ap.add_argument("--sphinx", action="store_true", help="although Quarto is there")
    ap.add_argument("--check", action="store_true", help="build nothing: could every page be made?")
    args = ap.parse_args(argv)
    if args.check: return check(args.jobs)
    use = "Sphinx" if args.sphinx or not shutil.which("quarto") else "Quarto"
    out, work = args.out.resolve(), args.work.resolve()
    code = sphinx(out, work, args.jobs) if use == "Sphinx" else quarto(out, work / "quarto", args.jobs)
    if code == 0: print(f"{use}: {len(list(args.out.rglob('*.html')))} pages in {os.path.relpath(args.out)}; open {os.path.relpath(args.out)}/index.html")
    return code


if __name__ == "__main__": sys.exit(main())
