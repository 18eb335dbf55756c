"""The notebooks as files: small, in order, with what they show stored and nothing else."""
import json
import re
import sys
from functools import cache

from helpers import ROOT, SOURCES, module_of

sys.path.insert(0, str(ROOT / "tools"))
from outputs import PLOTLY  # noqa: E402
from pictures import title_of  # noqa: E402

PACKAGE = "git_notes_consolidation"
PATHS = sorted(p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
DIRECTIVE = re.compile(r"^\s*#\s*\|\s*(\S+?):?(?:\s+(.*?))?\s*$", re.M)


@cache
def notebook(path): return json.loads(path.read_text(encoding="utf-8"))
def cells(path, kind=None): return [c for c in notebook(path)["cells"] if kind in (None, c["cell_type"])]
def source(cell): return "".join(cell["source"])
def directives(cell): return dict(DIRECTIVE.findall(source(cell))) if cell["cell_type"] == "code" else {}


def exports(path):
    "Name of the module that a notebook exports, or None."
    return next((d["default_exp"] for c in cells(path) if "default_exp" in (d := directives(c))), None)


def bundle(output):
    "All text of an output."
    data = {**output.get("data", {}), "text": output.get("text", "")}
    return "\n".join("".join(v) if isinstance(v, list) else v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in data.values())


# Assembled, so that this file may be checked for them too.
FOLDERS = ("work", "tmp", "root", "home", "Users", "opt", "var/folders", "var/tmp", "private", "mnt", "srv", "usr/" + "lib", "usr/" + "local", "workspace")
ABSOLUTE = re.compile(r"(?:(?<![\w.~/-])|(?<=file://))/(?:(?:" + "|".join(FOLDERS) + r")/[\w.]|(?:var/)?tmp(?![\w/.-]))|"
                      r"(?<![A-Za-z])[A-Z]:[\\/]+(?:Users|Windows|Program|Temp|temp|tmp|Python)[^\\/]*[\\/]+\w")


def strings(value):
    "Every text in some JSON, its keys too."
    if isinstance(value, str): yield value
    elif isinstance(value, dict): yield from (s for k, v in value.items() for s in (k, *strings(v)))
    elif isinstance(value, list): yield from (s for v in value for s in strings(v))


def absolute(text):
    "Paths of a machine. What is quoted once more, as in a repr or in JSON, has its ends of lines as two characters."
    return [m[0] for m in ABSOLUTE.finditer(re.sub(r"\\+[nrt](?=/|[A-Z]:)", " ", text).replace('\\"', '"'))]


def faults(
    raw,  # A notebook as it stands in its file: bytes
):  # What must not be in it
    nb = json.loads(raw)
    outputs = [o for c in nb["cells"] if c["cell_type"] == "code" for o in c["outputs"]]
    drawn = [o["data"] for o in outputs if PLOTLY in o.get("data", {})]
    pictures = ["".join(d.get("image/png", "")) for d in drawn]
    if (size := len(raw) - sum(map(len, pictures))) >= 300_000: yield f"{size // 1000} kB without its pictures; store lighter figures"
    for data, png in zip(drawn, pictures):
        if not title_of(data[PLOTLY]) or not png: yield f"no title or picture: python tools/notebooks.py --pictures; {str(data[PLOTLY])[:160]}"
        if len(png) > 60_000: yield f"a picture of {len(png) // 1000} kB"
    if "widgets" in nb["metadata"]: yield "widget state"
    if "vnd.jupyter.widget" in json.dumps(outputs): yield "a widget, which shows nothing without its state"
    for text in strings(nb): yield from (f"absolute path {found}: {text[:200]}" for found in absolute(text))
    for o in outputs:
        if o["output_type"] == "error": yield f"error {o['ename']}"
        if o.get("name") == "stderr": yield f"stderr, such as warnings and progress: {bundle(o)[:300]}"
        for word in ("\x1b[", "Traceback (most recent call last)", "ipykernel", "IPKernelApp", "Plotly.newPlot", "require.undef"):
            if word in bundle(o): yield f"{word!r}: {bundle(o)[:300]}"


def form(path):
    "What is wrong with a notebook's form."
    yield from faults(path.read_bytes())
    all_, d = cells(path), exports(path)
    # Without a kernelspec JupyterLab asks which kernel; what another program kept in the metadata is of no use to it
    if notebook(path)["metadata"] != {"kernelspec": {"display_name": "python3", "language": "python", "name": "python3"}}: yield "other metadata"
    if d and not directives(all_[0]).get("default_exp"): yield "the first cell is not `#| default_exp name`"
    at, title = next(((k, source(c)) for k, c in enumerate(all_) if c["cell_type"] == "markdown"), (9, ""))
    if not re.match(r"# \S.*\n+> \S", title) or at > 1: yield "the first text is not `# Title`, an empty line and `> subtitle`"
    # `nbs/05_temporal/11_rules.ipynb` exports `temporal.rules`; what has no number, and an overview, export nothing
    parts = [re.fullmatch(r"(?!00_overview)\d\d_(\w+)", part) for part in path.relative_to(ROOT / "nbs").with_suffix("").parts]
    if d != (".".join(p[1] for p in parts) if all(parts) else None): yield f"it exports {d}, and its name says otherwise"
    for line in (line for c in cells(path, "code") for line in source(c).splitlines() if len(line) > 110):
        yield f"JupyterLab and the site cut what is over 110 characters: {line}"


def test_the_form_of_all_notebooks(): assert [f"{path.relative_to(ROOT)}: {fault}" for path in PATHS for fault in form(path)] == []


def test_every_module_has_its_notebook():
    assert sorted(f"{PACKAGE}.{exports(p)}" for p in PATHS if exports(p)) == sorted(map(module_of, SOURCES))
