"""Do two runs of a notebook show the same? Outputs as they stand in the file, laid out as lines and compared in order.

A number with a fraction or an exponent equals another within a millionth of it, a whole number only itself. Everything else is text and must be equal,
but for the white space at a line's end, colours (ANSI codes) and addresses in memory (0x7f…). A figure (and any other JSON) is the values at its leaves,
with plotly's packed arrays unpacked. What a run cannot repeat is left out: counters of cells and the ids of widgets.
"""
import base64
import json
import math
import os
import re
from itertools import zip_longest

PLOTLY, PNG = "application/vnd.plotly.v1+json", "image/png"
ANSI = re.compile(r"\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])")
ADDRESS = re.compile(r"(?: at )?\b0x[0-9a-f]{6,}", re.I)  # nbdev_clean takes " at 0x…" out of what is stored
DECIMAL = re.compile(r"((?<![\w.])[-+]?\d+(?:\.\d+(?:e[-+]?\d{1,3})?|e[-+]?\d{1,3})(?![\d_]|\.\d))", re.I)
VOLATILE = re.compile(r"(?:\s*#\s*\|.*\n)*?\s*#\s*\|\s*volatile\s*(?:\n|$)")


def text_of(value): return "".join(value) if isinstance(value, list) else value
def is_volatile(cell): return bool(VOLATILE.match(text_of(cell["source"])))
def is_number(x): return isinstance(x, (int, float)) and not isinstance(x, bool)


def close(
    a, b  # Two numbers
):  # Equal, or nearly when one has a fraction
    if isinstance(a, int) and isinstance(b, int): return a == b
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12) or (math.isnan(a) and math.isnan(b))


def same(
    a, b  # Two leaves: numbers, strings, None
):  # As far as a reader is concerned
    if is_number(a) and is_number(b): return close(a, b)
    if not (isinstance(a, str) and isinstance(b, str)): return type(a) is type(b) and a == b
    if a == b: return True
    x, y = DECIMAL.split(a), DECIMAL.split(b)  # every second piece is a number
    return len(x) == len(y) and x[::2] == y[::2] and all(p == q or close(float(p), float(q)) for p, q in zip(x[1::2], y[1::2]))


def plain(text):
    "The lines of a text, without what differs from run to run."
    return [line.rstrip() for line in ADDRESS.sub("", ANSI.sub("", text)).rstrip().split("\n")]


def unpacked(value):
    "A packed array of plotly's as the numbers that are in it."
    import numpy as np
    flat = np.frombuffer(base64.b64decode(value["bdata"]), np.dtype(value["dtype"]).newbyteorder("<"))
    return flat.reshape([int(n) for n in str(value.get("shape", len(flat))).split(",")]).tolist()


def leaves(value, path=""):
    "Where each leaf of some JSON stands, and what it is."
    if isinstance(value, dict) and value.keys() >= {"bdata", "dtype"}: value = unpacked(value)
    if isinstance(value, dict) and value: return [leaf for k in sorted(value) if k != "model_id" for leaf in leaves(value[k], f"{path}.{k}".lstrip("."))]
    if isinstance(value, list) and value: return [leaf for i, v in enumerate(value) for leaf in leaves(v, f"{path}[{i}]")]
    if isinstance(value, str): return [(path, line) for line in plain(value)]
    return [(path, value)]


def merged(outputs):
    "Pieces of one stream that follow each other, as one."
    out = []
    for o in outputs:
        if o["output_type"] == "stream" and out and out[-1].get("name") == o["name"]: out[-1]["text"] += text_of(o["text"])
        else: out.append({**o, "text": text_of(o["text"])} if o["output_type"] == "stream" else o)
    return out


def lines(
    outputs,  # A cell's outputs, as nbformat has them
):  # (what kind and where, a leaf) each
    "A cell's outputs as a list of leaves, in the order in which they are shown."
    found = []
    for o in merged(outputs):
        kind = o.get("name") or o["output_type"]
        if kind == "error": found.append((kind, f"{o['ename']}: {o['evalue']}"))
        elif "text" in o: found += [(kind, line) for line in plain(o["text"])]
        for mime, data in sorted(o.get("data", {}).items()):
            if mime == PNG and PLOTLY in o["data"]: continue  # It is drawn from what is compared
            if isinstance(data, (dict, list)) and not mime.startswith(("text/", "image/")): found += [(f"{mime} {path}", leaf) for path, leaf in leaves(data)]
            else: found += [(mime, line) for line in plain(text_of(data))]
    return found


def told(leaf, start, wide=110):
    "A leaf as one line, from a little before some character of it."
    if leaf is None: return "nothing"
    kind, text = leaf[0], str(leaf[1])
    start = max(0, start - 30) if len(text) > wide else 0
    return f"{kind}: {'…' * (start > 0)}{text[start:start + wide]}{'…' * (len(text) > start + wide)}"


def difference(
    stored, fresh  # A cell's outputs in the file, and those of a run
):  # The first place where they part, both sides; None when they show the same
    for a, b in zip_longest(lines(stored), lines(fresh)):
        if a is None or b is None or a[0] != b[0] or not same(a[1], b[1]):
            parted = len(os.path.commonprefix([str(a[1]), str(b[1])])) if a and b else 0
            return told(a, parted), told(b, parted)
    return None


def compared(
    cells,  # Of a notebook, as stored
    fresh,  # The outputs of each of its code cells, up to the first that failed
):  # [(cell, its first line, stored, fresh)]; cells are counted from 1, code cells only
    "What a run shows otherwise than the file."
    found = []
    for number, (cell, outputs) in enumerate(zip(code_cells(cells), fresh), 1):
        failed = [o for o in outputs if o["output_type"] == "error"]  # what is not compared must run all the same
        if failed: parted = difference([], failed)
        else: parted = None if is_volatile(cell) else difference(cell["outputs"], outputs)
        if parted: found.append((number, next((s for s in text_of(cell["source"]).splitlines() if not re.match(r"\s*#\s*\||\s*$", s)), ""), *parted))
    return found


def code_cells(cells): return [c for c in cells if c["cell_type"] == "code"]
def read(path): return json.loads(path.read_text(encoding="utf-8"))["cells"]
