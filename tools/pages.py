"""What the pages of the documentation hold, whoever makes HTML of them: their order, the pages made from data, figures, links.

The order is nbs/sidebar.yml. Every link between pages becomes the address that the page has on the published site, as nbdev makes them
for symbols; Quarto's site is there, and the Sphinx site turns these addresses into local ones (tools/docs_theme/conf.py).
"""
import ast
import io
import json
import posixpath
import re
import tokenize
from configparser import ConfigParser
from functools import cache
from itertools import groupby
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
PLOTLY = "application/vnd.plotly.v1+json"
_ini = ConfigParser(delimiters=["="])
_ini.read(ROOT / "settings.ini", encoding="utf-8")
INI = _ini["DEFAULT"]
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

def figure(data, root, static, first, height=None):
    "HTML that draws a stored figure with the plotly script beside the pages; `first` on a page brings the script."
    layout = {k: v for k, v in data["layout"].items() if k not in ("width", "autosize", *(("sliders", "updatemenus") if height else ()))}
    tall = height or layout.get("height") or 450
    small = {"showlegend": False, "title": {"text": ""}, "margin": {"l": 40, "r": 10, "t": 10, "b": 30}} if height else {}
    if height: small["annotations"] = [a for a in layout.get("annotations", []) if a.get("yref") != "paper" or a.get("y", 0) < 1]
    spec = json.dumps({"data": data["data"], "layout": layout | small | {"height": tall}, "frames": data.get("frames", []), "still": bool(height)},
                      ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    script = "".join(f'<script defer src="{root}{static}/{s}"></script>' for s in ("plotly.min.js", "figures.js")) if first else ""
    return (f'{script}<div class="live-figure" style="min-height:{tall}px"><script type="application/json">{spec}</script>'
            "<noscript>This figure is drawn by JavaScript, which is switched off; its numbers are stored in the notebook.</noscript></div>")


def as_html(html, builder):
    "HTML in Markdown, for the one who reads it."
    return f"```{{=html}}\n{html}\n```\n" if builder == "quarto" else f"```{{raw}} html\n{html}\n```\n"


def figures(cells):
    "The stored figures of some cells."
    return [o["data"][PLOTLY] for c in cells for o in c.get("outputs", []) if PLOTLY in o.get("data", {})]


# Pages made from data

THEME = ROOT / "tools" / "docs_theme"


def home_page(builder, static):
    "The landing page: its text, and the live figure of the page that it leads to first."
    drawn = next(f for f in figures(heading(NBS / "guide" / "06_what-happens.ipynb")[2]) if f["data"][0]["type"] == "sankey")
    low = drawn | {"layout": drawn["layout"] | {"height": 330}}  # the doors shall be seen as well
    text = (THEME / "home.md").read_text(encoding="utf-8").replace("{figure}", as_html(figure(low, "", static, True), builder).strip())
    if builder == "quarto": return text
    text = re.sub(r"^> ", "{.subtitle}\n", text, flags=re.M)
    return re.sub(r"^::: \{\.(\w+)\}\n([\s\S]*?)^:::$", r"{.\1}\n\2", text, flags=re.M)


def titled(name):
    "Title and first line of a page, whoever makes it."
    if name.endswith(".ipynb"): return heading(NBS / name)[:2]
    text = made("sphinx", "_static")[name]
    return re.search(r"^# (.+)$", text, re.M)[1], next((x for x in text.splitlines()[1:] if x and x[0] not in "#{<`|"), "")


def llms():
    "llms.txt: what the site holds, in one Markdown file with a line and an address for each page."
    def plain(t): return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", t).replace(KEYS, "")
    def line(name):
        title, subtitle = titled(name)
        return f"- [{title}]({HOME}{docname(name)}.html): {plain(subtitle)}"
    def part(entries, name=None):
        own = [e if isinstance(e, str) else e["href"] for e in entries if not isinstance(e, dict) or "section" not in e]
        yield from ([f"\n## {name}\n"] if name else []) + [line(n) for n in own if n != "index.md"]
        for e in (e for e in entries if isinstance(e, dict) and "section" in e):
            yield from part(([e["href"]] if "href" in e else []) + e["contents"], e["section"])
    title, subtitle = titled("index.md")
    return "\n".join([f"# {title}\n\n> {plain(subtitle)}\n", *part(sections())]) + "\n"


def section_page(section, builder, static):
    "A page that lists the research notebooks, each with its first figure."
    folder, first = posixpath.dirname(section["href"]), True
    out = ["# Research gallery\n", "Experiments that export nothing. They run offline on the sample, or on your repository when one path is changed.\n"]
    for e in section["contents"]:
        title, subtitle, cells = heading(NBS / e)
        out.append(f"## [{title}]({posixpath.relpath(e, folder)})\n\n{subtitle}\n")
        if drawn := figures(cells):
            out.append(as_html(figure(drawn[0], "../", static, first, height=240), builder))
            first = False
    return "\n".join(out) + "\n"


def _cell(text): return " ".join(str(text).split()).replace("|", "\\|")


def _flags(text):
    "Options that a sentence names, as code: of two hyphens a typographer makes one dash."
    parts = re.split(r"(`[^`]*`)", text or "")
    return "".join(p if i % 2 else re.sub(r"(?<![\w`/-])(--[a-z][\w-]*|-[a-zA-Z])(?![\w-])", r"`\1`", p) for i, p in enumerate(parts))


def _option(p):
    "One row: how an option is written, what it defaults to, what it does."
    if p.param_type_name == "argument":
        name = (p.metavar or p.name.upper()).strip("[].").upper()
        return f"`{name}`", "required" if p.required else "", _flags(p.help)
    value = "" if p.is_flag else f" {p.metavar or 'VALUE'}"
    name = ", ".join(f"`{o}{value}`" for o in p.opts) + "".join(f", `{o}`" for o in p.secondary_opts)
    default = ""
    if p.is_flag: default = f"`{p.opts[-1]}`" if p.default is True and p.secondary_opts else ""
    elif p.default not in (None, "", ()) and not callable(p.default): default = f"`{p.default}`"
    return name, default, _flags(p.help) + (" Repeatable." if p.multiple and "again" not in p.help and "repeat" not in p.help else "")


def commands(command=None, name="gnc"):
    "Every command with its full name, a group before its own; hidden ones are left out."
    if command is None:
        import typer

        from git_notes_consolidation.apps.cli.program import app, register
        register()
        command = typer.main.get_command(app)
    if getattr(command, "hidden", False): return
    yield name, command
    for sub, c in getattr(command, "commands", {}).items(): yield from commands(c, f"{name} {sub}")


def _options(command):
    "The table of a command's arguments and options."
    rows = [_option(p) for p in command.params if not getattr(p, "hidden", False)]
    if not rows: return []
    return ["| option | default | |", "|---|---|---|", *("| " + " | ".join(map(_cell, r)) + " |" for r in rows), ""]


def cli_page():
    "Every command of `gnc`, read from the program itself."
    all_ = list(commands())
    (_, root), rest = all_[0], all_[1:]
    text = lambda s: (s or "").replace("  \n", "\n\n")
    out = ["# CLI reference\n", f"{root.help}\n", f"{text(root.epilog)}\n", "## Global options\n", *_options(root)]
    from git_notes_consolidation.apps.cli.program import PANELS
    panel_of = {name: panel for panel, names in PANELS.items() for name in names.split()}
    order = [*panel_of]
    first = lambda name: name.split()[1]
    rest.sort(key=lambda r: order.index(first(r[0])) if first(r[0]) in panel_of else len(order))
    for panel, own in groupby(rest, lambda r: panel_of.get(first(r[0]), "Others")):
        own = [*own]
        out += [f"## {panel}\n", "| command | |", "|---|---|"]
        out += [f"| [`{n}`](#{n.replace(' ', '-')}) | {_cell(_flags(c.help))} |" for n, c in own] + [""]
        for name, c in own: out += _command(name, c, text)
    return "\n".join(out)


def _command(name, c, text):
    "One command: what it does, how it is written, its options, its examples."
    words = [((p.metavar or p.name.upper()).strip("[].").upper(), p) for p in c.params if p.param_type_name == "argument"]
    usage = " ".join([name, *(w if p.required else f"[{w}]" for w, p in words), *(["[OPTIONS]"] if len(words) < len(c.params) else []),
                      *(["COMMAND"] if hasattr(c, "commands") else [])])
    return [f"### {name}\n", f"{_flags(c.help)}\n", f"```console\n{usage}\n```\n", *_options(c), *([f"{text(c.epilog)}\n"] if c.epilog else [])]


def promises_page():
    "The table of tests/promises.yml, each place a link."
    rows = yaml.safe_load((ROOT / "tests" / "promises.yml").read_text(encoding="utf-8"))
    names = {"C": "The design card", "G": "git-notes-memory", "S": "subcog", "M": "MycelicMemory"}
    shown = sum(not isinstance(r["shown_by"], str) for r in rows)
    out = ["# Promises\n", "What the systems that this project joins promise, and the notebook or the test that shows it kept: "
           f"{shown} of {len(rows)} are.\n"]
    for key, name in names.items():
        out += [f"## {name}\n", "| | promise | shown by |", "|---|---|---|"]
        for r in (r for r in rows if r["id"].startswith(key)):
            places = [] if isinstance(r["shown_by"], str) else r["shown_by"]
            links = [f"[{p.removeprefix('nbs/')}]({p[4:]})" if p.startswith("nbs/") else f"[{_place(p)}]({FILES}{p.partition('::')[0]})" for p in places]
            out.append(f"| {r['id']} | {_cell(_flags(r['promise']))} | {'<br>'.join(links) or _cell(r['shown_by'])} |")
        out.append("")
    return "\n".join(out)


def _place(p):
    "A test's name as it is read: its file, its function."
    file, _, name = p.partition("::")
    return f"`{posixpath.basename(file)}` " + name.replace("_", "\\_").replace("[", "\\[").replace("]", "\\]")


def citing_page():
    "How to cite, from CITATION.cff."
    c = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    who = " and ".join(a["name"] for a in c["authors"])
    fields = {"title": f"{{{c['title']}}}: {c['abstract'].strip()}", "author": f"{{{who}}}", "year": str(c["date-released"])[:4], "version": c["version"],
              "url": c["repository-code"], "license": c["license"]}
    bibtex = "@software{" + c["title"].replace("-", "_") + ",\n" + ",\n".join(f"  {k} = {{{v}}}" for k, v in fields.items()) + "\n}"
    return (f"# How to cite\n\n{c['message']}\n\n```bibtex\n{bibtex}\n```\n\n"
            f"The same for GitHub, Zenodo and reference managers is [CITATION.cff]({FILES}CITATION.cff). "
            "Whoever cites a figure says which version and which commit it is from: the outputs in the notebooks are those of that commit.\n")


@cache
def made(builder, static):
    "Every page that no notebook holds: its file, its Markdown."
    out = {"index.md": home_page(builder, static), "cli-reference.md": cli_page(), "promises.md": promises_page(), "citing.md": citing_page()}
    return out | {s["href"]: section_page(s, builder, static) for s in walk(sections()) if s.get("href", "").endswith(".md")}


# The API

def _linked(code, lookup):
    "A type, its names linked to where they are explained."
    if not code: return ""
    parts = re.split(r"([A-Za-z_][\w.]*)", code)
    known = lambda p: lookup.doc(p) if re.match(r"[A-Z_]\w*$", p) else None
    out, plain = [], ""
    for p in parts:
        if url := known(p):
            if plain: out.append(f"`{plain}`")
            out.append(f"[`{p}`]({url})"); plain = ""
        else: plain += p
    return "".join([*out, f"`{plain}`" if plain else ""]).replace("``", "` `")


def _text(words): return re.sub(r"([*<\[\]])", r"\\\1", words or "")


def _rows(args, notes, lookup):
    "A table: name, type, default and meaning of parameters or fields."
    if not args: return []
    lines = [(f"`{n}`", _linked(anno, lookup), f"`{default}`" if default else "", _text(notes.get(n))) for n, anno, default in args]
    return ["| | type | default | meaning |", "|---|---|---|---|", *("| " + " | ".join(map(_cell, x)) + " |" for x in lines), ""]


def _arguments(node):
    "Name, annotation and default of each parameter, and the signature without its types."
    a, formatted = node.args, lambda x: any(isinstance(n, ast.JoinedStr) for n in ast.walk(x))
    un = lambda x: "" if x is None else "..." if formatted(x) else ast.unparse(x)  # Sphinx reads no f-string
    plain = [*a.posonlyargs, *a.args]
    pairs = [*zip(plain, [None] * (len(plain) - len(a.defaults)) + a.defaults)]
    if pairs and pairs[0][0].arg in ("self", "cls"): pairs = pairs[1:]
    rows, words = [], []
    def put(arg, default, star=""):
        # A command's option is a call with its help in it
        value = "…" if isinstance(default, ast.Call) and len(un(default)) > 30 else un(default)
        rows.append((arg.arg, un(arg.annotation), value))
        words.append(star + arg.arg + (f"={value}" if default is not None else ""))
    for p, d in pairs: put(p, d)
    if a.vararg: put(a.vararg, None, "*")
    elif a.kwonlyargs: words.append("*")
    for p, d in zip(a.kwonlyargs, a.kw_defaults): put(p, d)
    if a.kwarg: put(a.kwarg, None, "**")
    return [(n, t, d) for n, t, d in rows], ", ".join(words)


def _source(module): return (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")


@cache
def _comments(module):
    "Line to comment, of a module's source: what stands beside a parameter or a field explains it."
    lines = io.StringIO(_source(module)).readline
    return {t.start[0]: t.string.lstrip("# ") for t in tokenize.generate_tokens(lines) if t.type == tokenize.COMMENT}


def _notes(module, nodes):
    "The comment of the last of them on each line, by name; or the lines above that are nothing but a comment."
    lines, source, said = {n.end_lineno: getattr(n, "arg", None) or n.target.id for n in nodes}, _source(module).split("\n"), _comments(module)
    def above(line): return [*above(line - 1), said[line]] if source[line - 1].lstrip().startswith("#") and not source[line - 1].startswith("# %%") else []
    found = {name: said[line] if line in said else " ".join(above(line - 1)) for line, name in lines.items()}
    return {name: text for name, text in found.items() if text}


def _block(kind, head, body, depth):
    "A directive that Sphinx knows as an object, so that search and index find it."
    fence = "`" * depth
    return "\n".join([f"{fence}{{py:{kind}}} {head}", *body, fence, ""])


def _function(
    node,  # Of the module's tree
    module,  # Where its comments stand
    lookup,  # nbdev's
    kind="function",  # Or method
    depth=5,  # Backticks of its fence
):  # A directive
    "Signature, docstring, a table of the parameters, what is returned."
    args, words = _arguments(node)
    a = node.args
    notes = _notes(module, [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])])
    returns, said = ast.unparse(node.returns) if node.returns else "", _comments(module).get(node.returns.end_lineno if node.returns else 0, "")
    if said in notes.values(): notes = {k: v for k, v in notes.items() if v != said}  # all on one line
    body = [_text(ast.get_docstring(node)), "", *_rows(args, notes, lookup)]
    if returns not in ("", "None"): body.append(f"Returns {_linked(returns, lookup)}" + (f": {_text(said)}" if said else "") + "\n")
    if {getattr(d, "id", getattr(d, "attr", "")) for d in node.decorator_list} & {"property", "cached_property"}:
        return _block("property", node.name, body, depth)
    return _block(kind, f"{node.name}({words})", body, depth)


def _class(node, module, lookup):
    "Fields or members as a table, then the public methods."
    fields = [n for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and not n.target.id.startswith("_")]
    members = [n for n in node.body if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and not n.targets[0].id.startswith("_")]
    functions = [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    init = next((n for n in functions if n.name == "__init__"), None)
    bases = ", ".join(f"`{ast.unparse(b)}`" for b in node.bases)
    rows = [(n.target.id, ast.unparse(n.annotation), ast.unparse(n.value) if n.value else "") for n in fields]
    body = [_text(ast.get_docstring(node)), "", *([f"Bases: {bases}\n"] if bases else []), *_rows(rows, _notes(module, fields), lookup)]
    if init: body += _rows(_arguments(init)[0], _notes(module, [*init.args.args, *init.args.kwonlyargs]), lookup)
    if members:
        said = lambda n: _cell(_text(_comments(module).get(n.end_lineno)))
        body += ["| | value | meaning |", "|---|---|---|", *(f"| `{n.targets[0].id}` | `{_cell(ast.unparse(n.value))}` | {said(n)} |" for n in members), ""]
    body += [_function(n, module, lookup, "method", 4) for n in functions if not n.name.startswith("_")]
    return _block("class", f"{node.name}({_arguments(init)[1]})" if init else node.name, body, 5)


@cache
def _tree(module):
    "A module's source as a tree."
    return ast.parse(_source(module))


def api(
    module,  # The module that a notebook exports
    name,  # What it documents: a function or a class
    lookup,  # nbdev's, from names to addresses
):  # Markdown with the signature, and a table of parameters with their meaning
    "One symbol, from its source and its docments."
    node = next(n for n in _tree(module).body if getattr(n, "name", None) == name)
    code = f"[source]({FILES}{module.replace('.', '/')}.py#L{node.lineno})"
    text = (_class if isinstance(node, ast.ClassDef) else _function)(node, module, lookup)
    head, _, rest = text.partition("\n")
    return f"{head}\n:module: {module}\n\n{rest.rsplit('`````', 1)[0]}{{.source}}\n{code}\n`````\n"
