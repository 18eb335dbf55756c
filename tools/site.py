"""The documentation in _docs/, by Sphinx, myst-nb and furo; `--check` only looks whether every page can be written for Sphinx.

The notebooks are shown with the outputs that are stored in them; nothing is executed. What no notebook holds (the CLI reference, the promises, the list
of experiments) is made in tools/pages.py.
"""
import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pages
from pages import NBS, PLOTLY, ROOT

THEME = ROOT / "tools" / "docs_theme"
FOR_SPHINX = re.compile(r"^```\{(?:raw|toctree|index)\}.*?^```\n?|^\{\.\w+\}\n", re.M | re.S)  # What only Sphinx reads
DIRECTIVE = re.compile(r"^#\|\s*([\w-]+):?[ \t]*(\S*).*\n?", re.M)  # Of nbdev, and options of cells


def markdown(text): return {"cell_type": "markdown", "metadata": {}, "source": text}


def drawn(cells, folder):
    "The cells with their figures as HTML that draws them."
    root, first = "../" if folder else "", True
    for data in (o["data"] for cell in cells for o in cell.get("outputs", []) if PLOTLY in o.get("data", {})):
        html, first = pages.figure(data[PLOTLY], root, first), False
        data.clear()
        data["text/html"] = html
    return cells


def shown(cell, module, folder, lookup):
    "The cells that a page has for one of a notebook: its prose with links, the API of what it exports, an example with what it shows; none if hidden."
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown": return [markdown(bash(pages.relink(lookup.linkify(text), folder)))] if text.strip() else []
    said = {k: v.lower() for k, v in DIRECTIVE.findall(text)}
    if said.keys() & {"hide", "default_exp"} or said.get("include") == "false": return []
    if said.keys() & {"export", "exporti", "exports"}:
        names = [n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and n.name[0] != "_"]
        return [markdown(pages.relink(pages.api(f"git_notes_consolidation.{module}", n), folder)) for n in names]
    tags = [tag for tag, on in (("remove-input", said.get("echo") == "false"), ("hide-input", said.get("code-fold") in ("true", "hide"))) if on]
    outputs = [] if said.get("output") == "false" else [o for o in cell["outputs"] if o.get("name") != "stderr"]
    source = DIRECTIVE.sub("", text).strip("\n")
    return [{"cell_type": "code", "source": source, "outputs": outputs, "metadata": {"tags": tags}, "execution_count": None}] if source or outputs else []


def for_sphinx(
    path,  # A notebook in nbs/
    lookup,  # nbdev's, from names to addresses
):  # What myst-nb reads
    "One page: its title, its prose, its examples with their outputs, and the API where nbdev would show it."
    title, subtitle, raw = pages.heading(path)
    module = next((m[1] for c in raw if c["cell_type"] == "code" and (m := re.match(r"#\|\s*default_exp\s+(\S+)", "".join(c["source"])))), None)
    folder = path.parent.relative_to(NBS).as_posix().strip(".")
    cells = [markdown(entries(subtitle) + f"# {title}\n\n{{.subtitle}}\n{pages.relink(lookup.linkify(subtitle), folder)}"), markdown(run_line(path))]
    first = next(c for c in raw if c["cell_type"] == "markdown")
    first["source"] = re.sub(r"^\s*# .+\n+> .+", "", "".join(first["source"]))
    for cell in raw: cells += shown(cell, module, folder, lookup)
    for i, cell in enumerate(drawn(cells, folder)): cell["id"] = f"c{i}"
    kernel = {"name": "python3", "display_name": "python3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def entries(subtitle):
    "What a subtitle names in code, such as `MEMORY.md`, leads to its page in the index and in a search."
    names = dict.fromkeys(re.findall(r"`([\w.-]*\w)`", subtitle))
    return "".join(f"```{{index}} ! {n}\n```\n" for n in names) + "\n" * bool(names)


def run_line(path):
    "Where a page's notebook can be run, and the page as Markdown."
    name = path.relative_to(NBS).as_posix()
    twin = pages.posixpath.basename(pages.docname(name))
    return pages.as_html(f'<p class="run">Run this page: <a href="{pages.BINDER}{quote(name)}">on Binder</a>, or <code>make lab</code> in a clone, '
                         f'then <code>nbs/{name}</code>. <a href="{twin}.md">As Markdown</a></p>')


def said(output):
    "An output as Markdown: its text, or what its figure is called."
    data = output.get("data") or {"text/plain": output.get("text", "")}
    html, text = ("".join(data.get(kind, "")) for kind in ("text/html", "text/plain"))
    if called := re.search(r'class="live-figure"[^>]*aria-label="([^"]*)"', html): return f"(Figure: {unescape(called[1])})"
    if "text/markdown" in data: return "".join(data["text/markdown"])
    if text.startswith("<IPython"): text = unescape(re.sub(r"<[^>]+>", "", html.replace("<br>", "\n").replace("<sup>", " [").replace("</sup>", "]")))
    return f"````text\n{text.rstrip()}\n````" if text.strip() else ""


def twin(cells):
    "A page as Markdown, for who reads no HTML: prose, code and what it printed."
    parts = []
    for c in cells:
        if c["cell_type"] == "markdown": parts.append(FOR_SPHINX.sub("", "".join(c["source"])))
        else: parts += [f"````python\n{c['source']}\n````"] * ("remove-input" not in c["metadata"]["tags"]) + [*map(said, c["outputs"])]
    return "\n\n".join(filter(None, (p.strip() for p in parts))) + "\n"


def write_twins(twins, out):
    "The Markdown of each page beside it, a list of them (llms.txt), and all that is not the reference of a chapter in one file (llms-full.txt)."
    rows = [f"# {pages.INI['title']}\n\n> {pages.INI['description']}\n"]
    for name, text in twins.items():
        (out / f"{name}.md").write_text(text, encoding="utf-8")
        rows.append(f"- [{re.search('^# (.+)$', text, re.M)[1]}]({pages.HOME}{name}.md)")
    (out / "llms.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    whole = [text for name, text in twins.items() if not name[0].isdigit()]
    (out / "llms-full.txt").write_text("\n".join(whole), encoding="utf-8")


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
    "What Sphinx reads, in `work`; each page as Markdown comes back."
    from nbdev.doclinks import NbdevLookup
    lookup, order, twins = NbdevLookup(), pages.sections(), {}
    inner = {s["href"]: s["contents"] for top in order if "section" in top for s in pages.walk(top["contents"]) if "href" in s}  # Chapters' overviews
    for name in (n for n in pages.files(order) if n.endswith(".ipynb")):
        page = for_sphinx(NBS / name, lookup)
        twins[pages.docname(name)] = twin(page["cells"])
        if name in inner: page["cells"].append(markdown(toctree(inner[name], pages.posixpath.dirname(name))) | {"id": "sections"})
        out = work / f"{pages.docname(name)}.ipynb"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(page, ensure_ascii=False), encoding="utf-8")
    for name, text in pages.made().items():
        folder = pages.posixpath.dirname(name)
        out = work / name
        out.parent.mkdir(parents=True, exist_ok=True)
        below = trees(order) if name == "index.md" else ""
        twins[pages.docname(name)] = FOR_SPHINX.sub("", pages.relink(text, folder))
        out.write_text(bash(pages.relink(text, folder)) + below, encoding="utf-8")
    return twins


def sphinx(
    out,  # Folder of the site
    work,  # Folder for what is read and kept on the way
    jobs=2,  # Processes
):  # Sphinx's exit code: a warning is a failure
    "The pages by Sphinx, without a network."
    src = work / "src"
    shutil.rmtree(src, ignore_errors=True)
    src.mkdir(parents=True)
    twins = write_sources(src)
    shutil.copytree(THEME / "static", src / "_static")
    import plotly
    shutil.copy(Path(plotly.__file__).parent / "package_data" / "plotly.min.js", src / "_static")
    html = work / "html"  # beside it myst-nb leaves a folder of its own
    shutil.rmtree(html, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-j", str(jobs), "-c", THEME, "-D", f"html_static_path={src / '_static'}", "-d", work / "doctrees", "-b", "html"]
    code = subprocess.run([sys.executable, "-m", "sphinx", *options, src, html], env=os.environ | {"PYTHONPATH": str(ROOT)}).returncode
    if code == 0:
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(html, out)
        write_twins(twins, out)
    return code


def main(argv=None):
    "Exit code 1 when a page cannot be made or a link leads nowhere."
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--out", type=Path, default=ROOT / "_docs", help="where the site goes; default: _docs")
    ap.add_argument("--work", type=Path, default=ROOT / "build" / "site", help="what is kept on the way; default: build/site")
    ap.add_argument("--jobs", type=int, default=2, help="processes; default: 2")
    ap.add_argument("--check", action="store_true", help="build nothing: could every page be made?")
    args = ap.parse_args(argv)
    if args.check:
        with tempfile.TemporaryDirectory() as d: write_sources(Path(d))
        return 0
    out = args.out.resolve()
    code = sphinx(out, args.work.resolve(), args.jobs)
    if code == 0: print(f"{len(list(out.rglob('*.html')))} pages in {os.path.relpath(out)}; open {os.path.relpath(out)}/index.html")
    return code


if __name__ == "__main__": sys.exit(main())
