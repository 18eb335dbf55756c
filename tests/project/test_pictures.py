"""A picture beside each stored figure: drawn when the figure changes, kept when it does not, left out where there is no room."""
import json

import pictures
from test_notebooks import PATHS

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


def test_the_stored_figures_have_pictures():
    "Of a notebook that has any: those without stand at its end, where there was no room."
    for path in PATHS:
        found = [bool(p) for p in drawn(json.loads(path.read_text(encoding="utf-8")))]
        if any(found): assert found.count(False) <= 4, path
