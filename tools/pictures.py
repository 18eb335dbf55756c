"""A picture beside each stored plotly figure: GitHub and PyPI show a notebook without running the script that draws one.

Drawn by the plotly that is installed, in the Chromium that is installed, through playwright: both are there for the tests already, so nothing is added
for it. A figure that shows what it showed before keeps the picture that it had. Sliders are left out of a picture, because nobody can move them there.
"""
import base64
import copy
import json
import shutil
import struct
import zlib
from pathlib import Path

import outputs
from outputs import PLOTLY, PNG

WIDTH = 860  # Pixels: as wide as a cell's output in a window of 1,280
COLOURS = 32  # Of a picture's palette
MOST = 290_000  # Bytes of a notebook with its pictures; the first figures get theirs


def figures(nb):
    "The outputs of a notebook that hold a figure, in order, each with its cell's number."
    code = [c for c in nb["cells"] if c["cell_type"] == "code"]
    return [(n, o) for n, c in enumerate(code) for o in c["outputs"] if PLOTLY in o.get("data", {})]


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


def add(nb, before, most=MOST):
    "Put a picture beside the figures of a notebook that was just run, as many as fit; `before` is the notebook as it stood."
    old = [(o["data"][PLOTLY], "".join(o["data"][PNG])) for _, o in figures(before) if PNG in o["data"]]
    new = [o for _, o in figures(nb)]
    kept = [next((png for spec, png in old if same_figure(spec, o["data"][PLOTLY])), None) for o in new]
    drawn = iter(draw([o["data"][PLOTLY] for o, png in zip(new, kept) if png is None]) or ())
    room, left = most - len(json.dumps(nb, ensure_ascii=False, indent=1).encode()), 0
    for o, png in zip(new, kept):
        png = png or next(drawn, None)
        if png is None or len(png) > room: left += 1
        else:
            o["data"][PNG] = png
            room -= len(png) + 30
    return left
