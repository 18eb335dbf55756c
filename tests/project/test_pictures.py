"""A picture beside each stored figure: drawn when the figure changes, kept when it does not, left out where there is no room."""
import base64
import copy
import json
import shutil
import struct
import zlib

import outputs
import pictures
import pytest
from test_notebooks import PATHS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
def figure(y): return {"data": [{"type": "bar", "y": y}], "layout": {"height": 200}}
def notebook(*specs, **more):
    shown = [{"output_type": "display_data", "metadata": {}, "data": {pictures.PLOTLY: s, **more}} for s in specs]
    return {"cells": [{"cell_type": "code", "source": ["x"], "metadata": {}, "outputs": shown}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
def drawn(nb): return [o["data"].get(pictures.PNG) for _, o in pictures.figures(nb)]


def test_a_figure_that_shows_the_same_keeps_its_picture(monkeypatch):
    asked = []
    monkeypatch.setattr(pictures, "draw", lambda specs: asked.extend(specs) or ["new"] * len(specs))
    nb = notebook(figure([1.0, 2]), figure([3]))
    assert pictures.add(nb, notebook(figure([1.0000000001, 2]), png := figure([4]), **{pictures.PNG: "old"})) == 0 and png
    assert drawn(nb) == ["old", "new"] and asked == [figure([3])]


def test_the_first_get_theirs_where_there_is_no_room(monkeypatch):
    monkeypatch.setattr(pictures, "draw", lambda specs: ["x" * 100] * len(specs))
    nb = notebook(figure([1]), figure([2]), figure([3]))
    size = len(json.dumps(nb, ensure_ascii=False, indent=1))
    assert pictures.add(nb, notebook(), most=size + 200) == 2 and [bool(p) for p in drawn(nb)] == [True, False, False]
    monkeypatch.setattr(pictures, "draw", lambda specs: None)  # No Chromium
    assert pictures.add(fresh := notebook(figure([1])), notebook()) == 1 and drawn(fresh) == [None]


def test_a_picture_is_no_difference_and_a_picture_of_its_own_is():
    bare, beside = (notebook(figure([1]), **more)["cells"][0]["outputs"] for more in ({}, {pictures.PNG: "x"}))
    assert outputs.difference(bare, beside) is None
    alone = [{"output_type": "display_data", "data": {pictures.PNG: x}} for x in "ab"]
    assert outputs.difference(alone[:1], alone[1:])


def test_a_palette_is_a_png_with_the_frequent_colours():
    np = pytest.importorskip("numpy")
    pixels = np.zeros((20, 30, 3), np.uint8)
    pixels[:10], pixels[10:, :15] = (200, 30, 30), (255, 255, 255)
    pixels[0, 0] = (203, 33, 33)  # Nearly one of the others
    raw = pictures.png(pixels)
    assert raw[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", raw[16:24]) == (30, 20)
    colours, at = pictures.palette(pixels)
    assert len(colours) == 3 and np.abs(colours[at].astype(int) - pixels).max() <= 6
    start = raw.index(b"IDAT") + 4
    assert len(zlib.decompress(raw[start:raw.index(b"IEND") - 8])) == 20 * 31


@pytest.mark.slow
def test_a_figure_is_drawn_as_it_is():
    if not CHROMIUM: pytest.skip("no Chromium on the path")
    pytest.importorskip("playwright")
    slider = figure([3, 1]) | {"layout": {"height": 200, "sliders": [{"steps": [{"label": "a", "method": "skip"}]}]}}
    plain = figure([3, 1]) | {"layout": {"height": 200, "margin": {"b": 50}}}  # Where the slider was is no empty place
    one, two = (base64.b64decode(x) for x in pictures.draw([plain, copy.deepcopy(slider)]))
    assert struct.unpack(">II", one[16:24]) == (pictures.WIDTH, 200) and 500 < len(one) < 40_000 and one == two


def test_the_stored_figures_have_pictures():
    "Of a notebook that has any: those without stand at its end, where there was no room."
    for path in PATHS:
        found = [bool(p) for p in drawn(json.loads(path.read_text(encoding="utf-8")))]
        if any(found): assert found.count(False) <= 4, path
