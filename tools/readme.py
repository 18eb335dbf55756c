"""README.md from nbs/index.ipynb: nbdev's filters, then nbconvert. `--check` writes nothing and fails when they differ.

Of a figure, GitHub can show only a picture: the one that is stored beside it, as `nbs/guide/images/figure-<hash>.png`. A figure without one is left out.
"""
import argparse
import base64
import difflib
import hashlib
import json
import posixpath
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLOTLY = "application/vnd.plotly.v1+json"
OPTION = re.compile(r"^#\|\s*([\w-]+):\s*(\S+).*\n?", re.M)  # Quarto's cell options, which nbdev leaves in place
TEMPLATE = """{% extends 'markdown/index.md.j2' %}
{% block input %}
``` {{ cell.metadata.language or 'python' }}
{{ cell.source }}
```
{% endblock %}
{% block stream %}

``` text
{{ output.text | strip_ansi | trim('\\n') }}
```
{% endblock %}
{% block data_text scoped %}

``` text
{{ output.data['text/plain'] | strip_ansi | trim('\\n') }}
```
{% endblock %}"""


def picture(data):
    "Name and bytes of an output's picture; the bytes are None for a figure that is stored without one."
    if PLOTLY in data:  # Named by what it shows: a picture drawn anew is no other figure
        raw = json.dumps({k: data[PLOTLY][k] for k in ("data", "layout")}, sort_keys=True).encode()
        stored = base64.b64decode("".join(data["image/png"])) if "image/png" in data else None
        return f"figure-{hashlib.sha256(raw).hexdigest()[:12]}.png", stored
    return None, None


def named(data):
    "What a picture is called by whoever cannot see it: its figure's title."
    title = data.get(PLOTLY, {}).get("layout", {}).get("title", "")
    return (title.get("text", "") if isinstance(title, dict) else title).replace("]", "").replace("[", "")


def shown(output, images, write):
    "An output as GitHub can show it, or None."
    if output["output_type"] == "stream": return output if output["name"] == "stdout" else None
    data = output.get("data", {})
    name, raw = picture(data)
    if name:
        path = images / name
        if write and raw is not None and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        text = f"![{named(data)}](nbs/guide/images/{name})" if path.exists() or raw is not None else None
    else: text = data.get("text/markdown")
    if text: return {"output_type": "display_data", "metadata": {}, "data": {"text/markdown": text}}
    if name or any("widget-view" in mime for mime in data) or "text/plain" not in data: return None
    return {"output_type": "display_data", "metadata": {}, "data": {"text/plain": data["text/plain"]}}


def relink(text):
    "Links that were relative to nbs/, relative to the README."
    def fix(m):
        target = m[2]
        if re.match(r"[a-z][a-z+.-]*:|[#/]", target): return m[0]
        return m[1] + posixpath.normpath(posixpath.join("nbs", target)) + m[3]
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", text, flags=re.M | re.S)
    return "".join(p if i % 2 else re.sub(r"(\]\()([^)\s]+)(\))", fix, p) for i, p in enumerate(parts))


def plain(x):
    "As JSON has it, without nbdev's own keys. (execnb's writer takes the `source` of a Sankey diagram for a cell's, and fails.)"
    if isinstance(x, dict): return {k: plain(v) for k, v in x.items() if not k.endswith("_")}
    return [*map(plain, x)] if isinstance(x, list) else x


def prepare(nb, images, write):
    "The cells as the README shows them."
    cells = []
    for cell in nb["cells"]:
        text, language = "".join(cell["source"]), cell["metadata"].get("language", "python")
        cell["metadata"] = {"language": language}
        if cell["cell_type"] == "code":
            options = {k: v.lower() for k, v in OPTION.findall(text)}
            if options.get("include") == "false": continue
            text = OPTION.sub("", text).strip("\n")
            cell["outputs"] = [] if options.get("output") == "false" else [o for o in (shown(o, images, write) for o in cell["outputs"]) if o]
            if options.get("echo") == "false": cell["metadata"]["transient"] = {"remove_source": True}
        else: text = relink(re.sub(r"^:::.*\n?", "", text, flags=re.M))  # Quarto's fenced divs mean nothing to GitHub
        if text.strip() or cell.get("outputs"): cells.append(cell | {"source": text})
    return nb | {"cells": cells}


def render(
    notebook,  # Path of the notebook
    images,  # Folder of its pictures
    write=False,  # Write the pictures that are missing
):  # The README's text
    "The notebook as Markdown for GitHub: the same bytes on every machine."
    import nbformat
    from execnb.nbio import read_nb
    from jinja2 import DictLoader
    from nbconvert import MarkdownExporter
    from nbdev.processors import FilterDefaults

    class Filters(FilterDefaults):
        "nbdev's, but for those that serve Quarto's front matter, API pages and links between them."
        def base_procs(self):
            skip = {"FrontmatterProc", "add_show_docs", "exec_show_docs", "add_links", "add_fold"}
            return [p for p in super().base_procs() if p.__name__ not in skip]

    nb = read_nb(notebook)
    Filters()(nb)
    nb = nbformat.reads(json.dumps(plain(nb)), as_version=4)
    nb = nbformat.from_dict(prepare(nb, images, write))
    exporter = MarkdownExporter(extra_loaders=[DictLoader({"readme.md.j2": TEMPLATE})], template_file="readme.md.j2")
    text, _ = exporter.from_notebook_node(nb)
    text = "\n".join(line.rstrip() for line in text.splitlines())
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def main(argv=None):
    "Exit code 1 when `--check` finds a difference."
    ap = argparse.ArgumentParser(description="README.md from nbs/index.ipynb")
    ap.add_argument("--check", action="store_true", help="write nothing, fail when README.md is not what the notebook renders to")
    args = ap.parse_args(argv)
    readme, images = ROOT / "README.md", ROOT / "nbs" / "guide" / "images"
    text = render(ROOT / "nbs" / "index.ipynb", images, write=not args.check)
    if args.check:
        old = readme.read_text(encoding="utf-8") if readme.exists() else ""
        lost = [p for p in re.findall(r"\]\((nbs/guide/images/[^)]+)\)", text) if not (ROOT / p).exists()]
        if old == text and not lost: return 0
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), "README.md", "nbs/index.ipynb"))
        for p in lost: print(f"{p} is missing")
        print("README.md is not what nbs/index.ipynb renders to: run make readme")
        return 1
    readme.write_text(text, encoding="utf-8")
    for p in images.glob("figure-*"):
        if p.name not in text: p.unlink()
    print(f"README.md: {len(text.split())} words")
    return 0


if __name__ == "__main__": sys.exit(main())
