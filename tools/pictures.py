"""A title on each stored plotly figure, and a picture beside it: GitHub and PyPI show a notebook without running the script that draws one.

A figure without a title of its own is called by the caption of its cell (`#| fig-cap: …`), else by the heading that it stands under.

Drawn by the plotly that is installed, in the Chromium that is installed, through playwright: both are there for the tests already, so nothing is added
for it. A figure that shows what it showed before keeps the picture that it had. Sliders are left out of a picture, because nobody can move them there.
"""
import base64
import copy
import json
import re
import shutil
import struct
import zlib
from collections import Counter
from pathlib import Path

import outputs
from outputs import PLOTLY, PNG

WIDTH = 860  # Pixels: as wide as a cell's output in a window of 1,280
COLOURS = 32  # Of a picture's palette
LONGEST = 80  # Characters of a title, or it does not fit above the picture
CAPTION = re.compile(r"^#\s*\|\s*fig-cap:\s*(.+?)\s*$", re.M)
HEADING = re.compile(r"^#+ (.+?)\s*$", re.M)


def figures(nb):
    "The outputs of a notebook that hold a figure, in order, each with its cell's number."
    code = [c for c in nb["cells"] if c["cell_type"] == "code"]
    return [(n, o) for n, c in enumerate(code) for o in c["outputs"] if PLOTLY in o.get("data", {})]


def title_of(figure):
    "What stands above it, or nothing."
    title = figure["layout"].get("title") or ""
    return title if isinstance(title, str) else title.get("text") or ""


def axes(figure):
    "What it shows of what, in the words of its axes."
    words = (((figure["layout"].get(axis) or {}).get("title") or {}).get("text") for axis in ("yaxis", "xaxis"))
    return " by ".join(filter(None, words))


def give_title(figure, text):
    "Above the figure and its legend, with as much more height as it takes."
    if not text: return
    layout, room = figure["layout"], 22
    layout["title"] = {"text": text, "font": {"size": 15}, "x": 0.01, "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 10}}
    legend, tall = layout.get("legend") or {}, layout.get("height") or 450
    if legend.get("y", 0) > 1:  # It stands where the title comes: below it, with room for two rows
        room = 44
        layout["legend"] = {**legend, "yref": "container", "y": 1 - 32 / (tall + room), "yanchor": "top"}
    layout["margin"] = {**layout.get("margin", {}), "t": layout.get("margin", {}).get("t", 40) + room}
    if layout.get("height"): layout["height"] += room


def add_titles(cells):
    "Every figure of a notebook's cells has a title; two under one heading are told apart by their axes."
    heading, under = "", {}
    for c in cells:
        text = outputs.text_of(c["source"])
        if c["cell_type"] == "markdown": heading = (HEADING.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)) or [heading])[-1].replace("`", "")
        for o in c.get("outputs", ()):
            if PLOTLY in o.get("data", {}) and not title_of(o["data"][PLOTLY]):
                caption = CAPTION.search(text)
                under.setdefault((heading, caption and caption[1]), []).append(o["data"][PLOTLY])
    several = Counter(heading for heading, _ in under for _ in under[heading, _])
    for (heading, caption), all_ in under.items():
        for figure in all_:
            more = f"{heading}: {axes(figure)}"
            give_title(figure, caption or (more if several[heading] > 1 and axes(figure) and len(more) <= LONGEST else heading))


def same_figure(a, b): return outputs.difference(*([{"output_type": "display_data", "data": {PLOTLY: x}}] for x in (a, b))) is None


def still(figure):
    "The figure as it is drawn where nothing can be moved."
    layout = {k: v for k, v in copy.deepcopy(figure["layout"]).items() if k not in ("sliders", "updatemenus", "width", "autosize")}
    if figure["layout"].get("sliders"): layout["margin"] = layout.get("margin", {}) | {"b": 50}
    return {"data": figure["data"], "layout": layout | {"width": WIDTH, "height": int(layout.get("height", 450))}}


def palette(pixels):
    "The colours of a picture that are frequent and not alike, (n, 3), and which of them each pixel is nearest to."
    import numpy as np
    flat = pixels.reshape(-1, 3).astype(int)
    codes, at, counts = np.unique((flat >> 3) @ [1024, 32, 1], return_inverse=True, return_counts=True)
    middle = np.stack([np.bincount(at, flat[:, k]) / counts for k in range(3)], 1)
    chosen = []
    for i in np.argsort(-counts, kind="stable"):
        if len(chosen) < COLOURS and all(np.abs(middle[i] - middle[j]).sum() > 40 for j in chosen): chosen.append(i)
    nearest = np.abs(middle[:, None] - middle[chosen][None]).sum(2).argmin(1)
    return np.round(middle[chosen]).astype(np.uint8), nearest[at].astype(np.uint8).reshape(pixels.shape[:2])


def png(pixels):
    "A picture with a palette as PNG: flat colours need no more than a few, and weigh a sixth."
    colours, index = palette(pixels)
    def chunk(name, data): return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + row.tobytes() for row in index)
    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 3, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"PLTE", colours.tobytes()) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def draw(specs):
    "A PNG of each figure; none where no Chromium is on the path."
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try: from playwright.sync_api import sync_playwright
    except ImportError: chromium = None
    if not specs or not chromium: return None
    import numpy as np
    import plotly
    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 600})
        page.set_content("<body style='margin:0'></body>")
        page.add_script_tag(path=str(script))
        shown = """async s => { const f = JSON.parse(s), box = document.createElement('div'); document.body.appendChild(box);
            await Plotly.newPlot(box, f.data, f.layout, {staticPlot: true});
            const {width, height} = f.layout, img = new Image(), canvas = document.createElement('canvas');
            img.src = await Plotly.toImage(box, {format: 'png', width, height, scale: 1});
            await img.decode(); canvas.width = width; canvas.height = height;
            const pen = canvas.getContext('2d'); pen.drawImage(img, 0, 0); Plotly.purge(box); box.remove();
            const raw = pen.getImageData(0, 0, width, height).data; let text = '';
            for (let i = 0; i < raw.length; i += 32768) text += String.fromCharCode.apply(null, raw.subarray(i, i + 32768));
            return btoa(text) }"""
        def drawn(spec):
            raw, tall = page.evaluate(shown, json.dumps(spec)), spec["layout"]["height"]
            return base64.b64encode(png(np.frombuffer(base64.b64decode(raw), np.uint8).reshape(tall, WIDTH, 4)[..., :3])).decode()
        try: return [drawn(still(s)) for s in specs]
        finally: browser.close()


def add(nb, before):
    "Put titles on the figures of a notebook and a picture beside each; `before` is the notebook as it stood. How many have none: no Chromium."
    old = [(o["data"][PLOTLY], "".join(o["data"][PNG])) for _, o in figures(before) if PNG in o["data"]]
    add_titles(nb["cells"])
    new = [o for _, o in figures(nb)]
    kept = [next((png for spec, png in old if same_figure(spec, o["data"][PLOTLY])), None) for o in new]
    drawn = iter(draw([o["data"][PLOTLY] for o, png in zip(new, kept) if png is None]) or ())
    for o, png in zip(new, kept):
        if png := png or next(drawn, None): o["data"][PNG] = png
    return sum(PNG not in o["data"] for o in new)
