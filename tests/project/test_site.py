"""The documentation: every notebook has its page, and the built site is walked through in a browser."""
import functools
import http.server
import importlib.util
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import threading
import time
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pages
import pytest
import git_notes_consolidation as gnc
from git_notes_consolidation.apps.cli.program import program
from helpers import ROOT
from test_notebooks import PATHS

NAMES = [*pages.files(pages.sections())]
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync".split()


def test_every_notebook_and_every_page_made_from_data_has_its_place_in_the_sidebar():
    there = {p.relative_to(pages.NBS).as_posix() for p in PATHS} | {*pages.made()}
    assert sorted([*NAMES, "index.ipynb"]) == sorted(there), "nbs/sidebar.yml names each once, but for the README, and none that is not there"


def test_the_cli_reference_has_every_command_and_every_option():
    page = pages.cli_page()
    def look(command, name):
        assert f"`{name}`" in page or f"`{name} " in page, name
        for p in command.params:
            if p.param_type_name == "option" and not p.hidden: assert any(f"{mark}{o}" in page for o in p.opts for mark in ("`", ", ")), (name, p.opts)
        for sub, c in getattr(command, "commands", {}).items():
            if not c.hidden: look(c, f"{name} {sub}")
    look(program(), "gnc")


def test_a_figure_cannot_end_its_own_script():
    html = pages.figure({"data": [{"name": "</script><b>"}], "layout": {}}, "", first=True)
    assert "</script><b>" not in html and html.count('src="_static/plotly.min.js"') == 1


# The site that is built here

@pytest.fixture(scope="session")
def built(tmp_path_factory):
    "The site, built once, whoever of several processes comes first."
    missing = [n for n in ("sphinx", "myst_nb", "furo", "plotly") if importlib.util.find_spec(n) is None]
    if missing: pytest.skip(f"{', '.join(missing)} not installed (pip install '.[docs,notebook]')")
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"): base = base.parent
    out, done = base / "site", base / "site.done"
    try: os.close(os.open(base / "site.begun", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        until = time.monotonic() + 900
        while not done.exists() and time.monotonic() < until: time.sleep(0.5)
    else:
        words = [ROOT / "tools" / "site.py", "--out", out, "--work", base / "site-work"]
        made = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        done.write_text(made.stdout + made.stderr if made.returncode else "")
    assert done.read_text() == "", "a warning of Sphinx is a failure here"
    return out


class Page(HTMLParser):
    "Anchors, links, what is loaded, and the text of the paragraphs outside of code."

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded, self.prose, self.inside = {""}, [], [], [], []
        self.feed(text)

    def handle_data(self, data):
        if "p" in self.inside and not {"code", "pre"} & {*self.inside}: self.prose.append(data)

    def handle_endtag(self, tag):
        if tag in self.inside: self.inside.remove(tag)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag in ("p", "code", "pre"): self.inside.append(tag)
        self.ids |= {a[k] for k in ("id", "name") if a.get(k)}
        if tag == "a" and a.get("href"): self.links.append(a["href"])
        if tag in ("img", "script", "iframe", "source") and a.get("src"): self.loaded.append(a["src"])
        if tag == "link" and a.get("href") and a.get("rel") not in ("canonical", "index", "search", "next", "prev", "author"): self.loaded.append(a["href"])


def dead(all_):
    "Links between some pages that lead nowhere, and what a page loads that is not among the files."
    out = []
    for name, page in all_.items():
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc: continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(url.path))) if url.path else name
            if target not in all_ or unquote(url.fragment) not in all_[target].ids: out.append((name, link))
    return out


@pytest.fixture(scope="session")
def read(built): return {p.relative_to(built).as_posix(): Page(p.read_text(encoding="utf-8")) for p in sorted(built.rglob("*.html"))}


@pytest.mark.slow
def test_no_markup_shows_through(read):
    "Tables as rows of bars, formulas that nobody sets (that takes a script from elsewhere), fences in a line, dashes for hyphens."
    raw = re.compile(r"\|\s*[-—:]{2,}|\$\\?\w+[_^]|```|\*\*\w|\[[^\]]+\]\([^)]+\)|(?<!\w)–[a-z]")
    assert [(name, t) for name, p in read.items() for t in p.prose if raw.search(t)] == []


@pytest.mark.slow
def test_no_link_is_dead(built, read):
    lost = [(name, link) for name, link in dead(read) if not (built / name).parent.joinpath(link).is_file()]  # Beside each page is its Markdown
    assert sum(len(p.links) for p in read.values()) > 1000 and lost == []


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(built, read):
    for name, page in read.items():
        for src in page.loaded:
            assert not urlsplit(src).netloc, f"{name} loads {src}"
            assert (built / posixpath.normpath(posixpath.join(posixpath.dirname(name), urlsplit(src).path))).is_file(), f"{name} loads {src}"


@pytest.mark.slow
def test_every_public_name_has_an_anchor(read):
    there = {i for page in read.values() for i in page.ids}
    things = ((n, getattr(gnc, n)) for n in gnc.__all__)
    names = {f"{x.__module__}.{n}" for n, x in things if getattr(x, "__name__", "") == n and tuple not in getattr(x, "__bases__", ())}  # Functions and classes
    assert len(names) > 50 and names - there == set()


# In a browser

@pytest.fixture(scope="module")
def address(built):
    "The site on this machine."
    handler = functools.partial(type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}), directory=str(built))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    "One browser for the tests here; no longer, because Playwright holds an event loop."
    program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if program is None: pytest.skip("no Chromium on the PATH")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium, address):
    "A page that keeps what went wrong on it: requests that leave the machine, errors, answers that are none."
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.wrong = []
    def request(r):
        if urlsplit(r.url).scheme not in ("data", "blob", "about") and urlsplit(r.url).hostname != "127.0.0.1": page.wrong.append(("request", r.url))
    context.on("request", request)
    page.on("response", lambda r: r.status >= 400 and page.wrong.append((r.status, r.url)))
    page.on("console", lambda m: m.type == "error" and page.wrong.append(("console", m.text)))
    page.on("pageerror", lambda e: page.wrong.append(("error", str(e))))
    yield page
    context.close()


UNDRAWN = """() => [...document.querySelectorAll('.live-figure')].filter(b => !(b.data && b.data.length &&
  b.querySelector('.main-svg .trace, .main-svg .sankey-node, .main-svg .hm image, .main-svg .slice, .main-svg .surface')) || b.clientHeight < 100).length"""


CUT = """() => [...document.querySelectorAll('.live-figure')].flatMap((b, i) => {
  const r = b.querySelector('.main-svg').getBoundingClientRect();
  const out = q => q.left < r.left - 2 || q.right > r.right + 2 || q.top < r.top - 2 || q.bottom > r.bottom + 2;
  const seen = t => t.textContent.trim() && getComputedStyle(t).visibility !== 'hidden' && t.getBoundingClientRect().width;
  return [...b.querySelectorAll('text')].filter(t => seen(t) && out(t.getBoundingClientRect())).map(t => `${i}: ${t.textContent}`) })"""


@pytest.mark.slow
def test_every_page_answers_and_draws(tab, address, read, built):
    drawn = 0
    for name in read:
        answer = tab.goto(address + name, wait_until="load")
        assert answer.status == 200 and tab.title(), name
        want = (built / name).read_text(encoding="utf-8").count('class="live-figure"')
        if want:
            tab.wait_for_function(f"({UNDRAWN})() === 0", timeout=30_000)
            drawn += want
            assert tab.evaluate(CUT) == [], f"{name}: text that runs out of its figure"
        assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, f"{name} is wider than the window"
        assert tab.wrong == [], name
    stored = sum(len(pages.figures(json.loads((pages.NBS / n).read_text())["cells"])) for n in NAMES if n.endswith(".ipynb"))
    assert drawn >= stored > 30


@pytest.mark.slow
@pytest.mark.parametrize("page", ["06_retention/score", "research/tuning", "research/cluster-map"])
def test_a_slider_moves_what_is_drawn(tab, address, page):
    tab.goto(f"{address}{page}.html", wait_until="load")
    tab.wait_for_function(f"({UNDRAWN})() === 0", timeout=30_000)
    with_slider = "[...document.querySelectorAll('.live-figure')].find(b => b.layout.sliders)"
    shown = f"JSON.stringify({with_slider}.data.filter(t => t.visible !== false).map(t => [t.x, t.y, t.marker]))"
    paths = f"{with_slider}.querySelector('.overplot').innerHTML"
    numbers, before = tab.evaluate(shown), tab.evaluate(paths)
    box = tab.evaluate_handle(f"{with_slider}.querySelector('.slider-rail-touch-rect')").as_element()
    box.scroll_into_view_if_needed()
    at = box.bounding_box()
    tab.mouse.click(at["x"] + at["width"] * 0.95, at["y"] + at["height"] / 2)
    tab.wait_for_function(f"old => {paths} !== old", arg=before, timeout=10_000)
    assert tab.evaluate(shown) != numbers and tab.wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("words,page", [("MEMORY.md", "guide/memory-files"), ("AGENTS.md", "guide/memory-files"), ("tuning", "research/tuning"),
                                        ("threat model", "guide/threat-model"), ("retention", "06_retention/overview")])
def test_search_finds_what_a_page_is_called_first(tab, address, words, page):
    tab.goto(f"{address}search.html?q={words}", wait_until="load")
    tab.wait_for_function("document.querySelectorAll('#search-results li a').length > 2", timeout=20_000)
    assert any(page in href for href in tab.eval_on_selector_all("#search-results li a", "all => all.slice(0, 3).map(a => a.href)"))


@pytest.mark.slow
def test_figures_follow_the_theme(tab, address):
    ink = "getComputedStyle(document.querySelector('.live-figure .xtick text')).fill"
    paper = "getComputedStyle(document.querySelector('.live-figure .main-svg')).background"
    tab.emulate_media(color_scheme="light")
    tab.goto(f"{address}06_retention/score.html", wait_until="load")
    tab.wait_for_function(f"({UNDRAWN})() === 0", timeout=30_000)
    light = tab.evaluate(ink)
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_function(f"{ink} !== '{light}'", timeout=10_000)
    assert sum(map(int, re.findall(r"\d+", tab.evaluate(ink))[:3])) > 450 > sum(map(int, re.findall(r"\d+", light)[:3]))
    assert "rgba(0, 0, 0, 0)" in tab.evaluate(paper) and tab.evaluate(f"({UNDRAWN})()") == 0
    tab.evaluate("document.body.dataset.theme = 'light'")  # The page's own button
    tab.wait_for_function(f"{ink} === '{light}'", timeout=10_000)
    assert tab.wrong == []


@pytest.mark.slow
def test_each_page_is_there_as_markdown(built, read):
    for name in (n for n in read if n not in ("search.html", "genindex.html")):
        text = (built / name).with_suffix(".md").read_text(encoding="utf-8")
        assert text.startswith("# ") and "{toctree}" not in text and "<div" not in text.split("````")[0], name
    whole = (built / "llms-full.txt").read_text(encoding="utf-8")
    assert "# Memory files" in whole and "# Time in texts" not in whole
    assert (built / "llms.txt").read_text(encoding="utf-8").count("\n- [") >= len(NAMES)


def test_binder_installs_extras_that_are_there():
    asked = re.search(r"\[(.+)\]", (ROOT / ".binder" / "requirements.txt").read_text(encoding="utf-8"))[1].split(",")
    assert {*asked} - {"consolidation"} <= {k.removesuffix("_requirements") for k in pages.INI if k.endswith("_requirements")}


@pytest.mark.slow
@pytest.mark.parametrize("symbol,page", [("find_references", "resolve.html"), ("WritingService", "write.html"), ("MemoryTier", "models.html")])
def test_search_finds_a_symbol(tab, address, symbol, page):
    tab.goto(f"{address}search.html?q={symbol}", wait_until="load")
    link = tab.wait_for_selector(f"#search-results a[href*='{page}'][href*='{symbol}']", timeout=20_000)
    link.click()
    tab.wait_for_load_state("load")
    name = unquote(urlsplit(tab.url).fragment)
    assert name.endswith(f".{symbol}") and tab.evaluate("n => document.getElementById(n) !== null", name) and tab.wrong == []
