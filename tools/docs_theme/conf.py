"""Sphinx's configuration of the documentation, and how the published site's addresses become local ones."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from docutils import nodes
from pages import HOME, INI
from sphinx import addnodes
from sphinx.util import logging

project = INI["title"]
author = INI["author"]
project_copyright = INI["copyright"] % {"author": author} if "%(" in INI["copyright"] else INI["copyright"]
version = release = INI["version"]
extensions = ["myst_nb"]
exclude_patterns = []
language = "en"
smartquotes_action = "qe"  # quotes and ellipses; two hyphens begin an option

nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"  # else a table that a cell put out is a row of bars
nb_ipywidgets_js = {}  # from elsewhere by default
nb_mime_priority_overrides = [("html", "text/html", 0), ("html", "text/markdown", 1)]
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure", "ref.python", "myst.header"]

add_module_names = False
maximum_signature_line_length = 96
html_theme = "furo"
html_title = project
html_favicon = str(Path(__file__).parent / "static" / "icon.svg")
html_css_files = ["site.css", "doors.css"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_permalinks_icon = "#"
pygments_style = "default"
pygments_dark_style = "github-dark"
html_theme_options = {"footer_icons": [], "navigation_with_keys": False}

log = logging.getLogger(__name__)


def short_anchors(app, doctree):
    "Each symbol also under its bare name in lower case: the anchor that nbdev's links have."
    taken = {i for n in doctree.findall(nodes.Element) for i in n["ids"]}
    for sig in doctree.findall(addnodes.desc_signature):
        full = next((i for i in sig["ids"] if i.startswith("git_notes_consolidation.")), None)
        if full is None: continue
        name = full.split(".", 2)[2].lower()
        if name in taken: continue
        taken.add(name)
        sig["ids"].append(name)
        doctree.ids[name] = sig


def whole_pages(app, doctree):
    "A word of the index means its page from the top: at the directive's own anchor the search would have nothing to show."
    for node in doctree.findall(addnodes.index):
        node["entries"] = [(kind, word, "" if at.startswith("index-") else at, main, key) for kind, word, at, main, key in node["entries"]]


def symbols(env):
    "The full names that each page documents."
    out = {}
    for name, obj in env.get_domain("py").objects.items(): out.setdefault(obj.docname, []).append(name)
    return out


def anchor_of(names, docname, anchor, text):
    "Where on a page a symbol stands: under its own name, else its class, else the top."
    found = [n for n in names.get(docname, ()) if n.split(".", 2)[2].lower() == anchor.lower()]
    if found: return next((n for n in found if n.endswith("." + text)), found[0])
    return anchor_of(names, docname, anchor.rpartition(".")[0], text) if "." in anchor else None


def local_links(app, doctree, docname):
    "What leads to the published site leads to the page here."
    names = None
    for ref in doctree.findall(nodes.reference):
        uri = ref.get("refuri", "")
        if not uri.startswith(HOME): continue
        if names is None: names = symbols(app.env)
        page, _, anchor = uri[len(HOME):].partition("#")
        target = page.removesuffix(".html") or "index"
        if target not in app.env.found_docs: log.warning("no page %s, which %s links to", target, docname, location=ref); continue
        there = anchor_of(names, target, anchor, ref.astext().removesuffix("()")) if anchor else None
        if anchor and not there and nodes.make_id(anchor) in headings(app.env, target): there = nodes.make_id(anchor)
        ref["refuri"] = app.builder.get_relative_uri(docname, target) + (f"#{there}" if there else "")
        ref["internal"] = True
        ref["classes"] = [c for c in ref["classes"] if c != "external"]


def headings(env, docname): return {r["anchorname"].lstrip("#") for r in env.tocs[docname].findall(nodes.reference)}


def setup(app):
    app.connect("doctree-read", short_anchors)
    app.connect("doctree-read", whole_pages)
    app.connect("doctree-resolved", local_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
