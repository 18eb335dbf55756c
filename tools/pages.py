"""What the pages of the documentation hold: their order, the pages made from data, figures, links.

The order is nbs/sidebar.yml. Every link between pages becomes the address that the page has on the published site, as nbdev makes them
for symbols; tools/docs_theme/conf.py turns these addresses into local ones.
"""
import ast
import copy
import json
import posixpath
import re
from configparser import ConfigParser
from enum import EnumType
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path

import yaml
from pictures import title_of

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
PLOTLY = "application/vnd.plotly.v1+json"
_ini = ConfigParser(delimiters=["="])
_ini.read(ROOT / "settings.ini", encoding="utf-8")
INI = _ini["DEFAULT"]
BINDER = f"https://mybinder.org/v2/gh/{INI['git_url'].removeprefix('https://github.com/').strip('/')}/{INI['branch']}?urlpath=lab/tree/nbs/"
HOME = f"{INI['doc_host']}{INI['doc_baseurl']}/"
FILES = f"{INI['git_url']}/blob/{INI['branch']}/"


# The sections

def sections(path=NBS / "sidebar.yml"):
    "The sidebar's entries: a file's name, or a dictionary with section, href and contents."
    return yaml.safe_load(path.read_text(encoding="utf-8"))["website"]["sidebar"]["contents"]


def files(entries):
    "Every file that the entries name, in order."
    for e in entries:
        if isinstance(e, str): yield e
        else: yield from ([e["href"]] if "href" in e else []) + list(files(e.get("contents", [])))


def walk(entries):
    "Every section, outer before inner."
    for e in entries:
        if isinstance(e, dict) and "section" in e:
            yield e
            yield from walk(e["contents"])


def docname(name):
    "A file's page as nbdev names it, without its suffix: `04_retention.ipynb` is `retention`. The module `index` must not take the home page's place."
    head, _, tail = str(name).rpartition("/")
    page = re.sub(r"^\d+[a-zA-Z0-9]*_", "", tail.lower()).rpartition(".")[0]
    return posixpath.join(head, f"{page}-module" if page == "index" and tail[0].isdigit() else page)


def heading(path):
    "A notebook's title, its subtitle, and the cells."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = next("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.search(r"^# (.+)$", text, re.M)[1], re.search(r"^> (.+)$", text, re.M)[1], cells


# Links

def absolute(target, folder):
    "Where a link goes that is written in a file of nbs/folder; None for one that stays as it is."
    if re.match(r"[a-z][a-z+.-]*:|[#/]", target): return None
    name, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join("nbs", folder, name))
    if path.startswith("nbs/") and path.endswith((".ipynb", ".md")):
        return f"{HOME}{docname(path[4:])}.html" + (f"#{anchor}" if anchor else "")
    return FILES + path if (ROOT / path).exists() and not path.endswith((".png", ".svg")) else None


KEYS = " (Shift+Enter twice)"  # Said in a notebook, and to nobody who reads a page


def relink(text, folder=""):
    "Markdown whose relative links are absolute, without keys that a page does not have; code stays as it is."
    text = text.replace(KEYS, "")
    codes = []  # code is set aside: what looks like a link in it is none, and a link's text may hold some
    def hide(m): codes.append(m[0]); return f"\0{len(codes) - 1}\0"
    bare = re.sub(r"^```.*?^```|`[^`\n]+`", hide, text, flags=re.M | re.S)
    bare = re.sub(r"(\]\()([^)\s]+)(\))", lambda m: m[1] + (absolute(m[2], folder) or m[2]) + m[3], bare)
    bare = bare.replace(f"{HOME}index.html#", f"{HOME}index-module.html#")  # the home page has no symbols
    return re.sub(r"\0(\d+)\0", lambda m: codes[int(m[1])], bare)


# Figures

def figure(
    data,  # As it is stored
    root,  # From the page to the site's top
    first,  # Brings the script that draws it
):  # HTML
    "A stored figure, drawn by the plotly script beside the pages."
    tall = data["layout"].get("height") or 450
    layout = {k: v for k, v in data["layout"].items() if k not in ("width", "autosize")} | {"height": tall}
    spec = json.dumps({"data": data["data"], "layout": layout, "frames": data.get("frames", [])}, ensure_ascii=False, separators=(",", ":"))
    script = "".join(f'<script defer src="{root}_static/{s}"></script>' for s in ("plotly.min.js", "figures.js")) if first else ""
    spec = spec.replace("</", "<\\/")
    title = escape(title_of(data), quote=True)
    return (f'{script}<div class="live-figure" role="group" aria-label="{title}" style="min-height:{tall}px"><script type="application/json">{spec}</script>'
            "<noscript>This figure is drawn by JavaScript, which is switched off; its numbers are stored in the notebook.</noscript></div>")


def as_html(html): return f"```{{raw}} html\n{html}\n```\n"


def figures(cells):
    "The stored figures of some cells."
    return [o["data"][PLOTLY] for c in cells for o in c.get("outputs", []) if PLOTLY in o.get("data", {})]


# Pages made from data

THEME = ROOT / "tools" / "docs_theme"


def home_page():
    "The landing page: its text, and the live figure of the page that it leads to first."
    drawn = next(f for f in figures(heading(NBS / "guide" / "06_what-happens.ipynb")[2]) if f["data"][0]["type"] == "sankey")
    low = drawn | {"layout": drawn["layout"] | {"height": 330}}  # the doors shall be seen as well
    text = (THEME / "home.md").read_text(encoding="utf-8").replace("{figure}", as_html(figure(low, "", True)).strip())
    text = re.sub(r"^> ", "{.subtitle}\n", text, flags=re.M)
    return re.sub(r"^::: \{\.(\w+)\}\n([\s\S]*?)^:::$", r"{.\1}\n\2", text, flags=re.M)


def section_page(section):
    "A page that lists the research notebooks."
    out = ["# Tutorials\n", "Notebooks with a question, a picture and a knob. They run offline on the sample; a path makes them yours.\n"]
    for title, subtitle, name in ((*heading(NBS / e)[:2], e) for e in section["contents"]):
        out.append(f"- [{title}]({posixpath.relpath(name, posixpath.dirname(section['href']))}): {subtitle}")
    return "\n".join(out) + "\n"


def _cell(text): return " ".join(str(text).split()).replace("|", "\\|")


def cli_page():
    "Every command of `gnc`, read from the program itself."
    import typer
    from typer.cli import get_docs_for_click

    from git_notes_consolidation.apps.cli.program import app, register
    register()
    command = typer.main.get_command(app)
    return get_docs_for_click(obj=command, ctx=command.make_context("gnc", [], resilient_parsing=True), name="gnc", title="CLI reference")


def promises_page():
    "The table of tests/promises.yml, each place a link."
    rows = yaml.safe_load((ROOT / "tests" / "promises.yml").read_text(encoding="utf-8"))
    shown = sum(not isinstance(r["shown_by"], str) for r in rows)
    out = ["# Promises\n", "What the systems that this project joins promise (C: the design card, G: git-notes-memory, S: subcog, M: MycelicMemory), and "
           f"the notebook or the test that shows it kept: {shown} of {len(rows)} are.\n", "| | promise | shown by |", "|---|---|---|"]
    for r in rows:
        places = [] if isinstance(r["shown_by"], str) else r["shown_by"]
        links = [f"[`{p.removeprefix('nbs/')}`]({p[4:]})" if p.startswith("nbs/") else f"[`{p.removeprefix('tests/')}`]({FILES}{p.partition('::')[0]})"
                 for p in places]
        out.append(f"| {r['id']} | {_cell(r['promise'])} | {'<br>'.join(links) or _cell(r['shown_by'])} |")
    return "\n".join([*out, ""])


@cache
def made():
    "Every page that no notebook holds: its file, its Markdown."
    out = {"index.md": home_page(), "cli-reference.md": cli_page(), "promises.md": promises_page()}
    return out | {s["href"]: section_page(s) for s in walk(sections()) if s.get("href", "").endswith(".md")}


# The API

def _text(words): return re.sub(r"([*<\[\]])", r"\\\1", words or "")


def _signature(node):
    "A function's parameters without their types. Sphinx reads no f-string, and nobody a command's option, a call with its help in it."
    def short(x): return ast.Constant(...) if x and (len(ast.unparse(x)) > 30 or any(isinstance(n, ast.JoinedStr) for n in ast.walk(x))) else x
    a = copy.deepcopy(node.args)
    for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))): x.annotation = None
    a.defaults, a.kw_defaults = [*map(short, a.defaults)], [*map(short, a.kw_defaults)]
    plain = a.posonlyargs or a.args
    if plain and plain[0].arg in ("self", "cls"): plain.pop(0)
    return f"({ast.unparse(a)})"


def _table(thing):
    "Name, type and meaning of parameters or fields, and of what is returned: the comments beside them, as nbdev reads them."
    from fastcore.docments import docments, empty
    try: said = docments(thing, full=True)
    except (TypeError, ValueError, OSError, SyntaxError): return []
    rows = [("returns" if n == "return" else f"`{n}`", f"`{x.anno}`" if isinstance(x.anno, str) else "", _text(x.docment)) for n, x in said.items()
            if n not in ("self", "cls") and (x.anno not in (empty, None, "None") or x.docment)]
    return ["| | type | meaning |", "|---|---|---|", *("| " + " | ".join(map(_cell, r)) + " |" for r in rows)] if rows else []


def _block(kind, head, node, thing, depth, below=()):
    "A directive that Sphinx knows as an object, so that search and index find it."
    fence = "`" * depth
    return "\n".join([f"{fence}{{py:{kind}}} {head}", *([":module: " + thing.__module__] if depth > 4 else []), "", _text(ast.get_docstring(node)), "",
                      *_table(thing), "", *below, fence, ""])


def _method(node, owner):
    kind = {getattr(d, "id", getattr(d, "attr", "")) for d in node.decorator_list} & {"property", "cached_property"}
    return _block("property" if kind else "method", node.name + ("" if kind else _signature(node)), node, getattr(owner, node.name), 4)


def api(
    module,  # The module that a notebook exports
    name,  # What it documents: a function or a class
):  # Markdown with the signature, and a table of parameters with their meaning
    "One symbol, from its source and its docments."
    source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    node = next(n for n in ast.parse(source).body if getattr(n, "name", None) == name)
    thing = getattr(import_module(module), name)
    code = ["{.source}", f"[source]({FILES}{module.replace('.', '/')}.py#L{node.lineno})"]
    if not isinstance(node, ast.ClassDef): return _block("function", name + _signature(node), node, thing, 5, code)
    functions = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    head = name + (_signature(functions["__init__"]) if "__init__" in functions else "")
    members = [f"- `{m.name}`: `{m.value}`" for m in thing] + [""] if isinstance(thing, EnumType) else []
    return _block("class", head, node, thing, 5, [*members, *(_method(n, thing) for n in functions.values() if n.name[0] != "_"), *code])
