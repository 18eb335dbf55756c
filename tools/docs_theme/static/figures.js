// Draws every stored figure on the page, with the plotly script that lies beside it.
(function () {
  var LETTER = 6.3;  // Pixels, in a label

  function cut(text, most) { return text.length > most ? text.slice(0, most - 1) + "…" : text; }

  function named(spec) {  // What stands beside the y axis, where it is no number and no date
    var names = [].concat.apply([], spec.data.map(function (t) { return Array.isArray(t.y) ? t.y : []; }));
    return names.filter(function (s, i) { return typeof s === "string" && !/^\d{4}-\d\d/.test(s) && names.indexOf(s) === i; });
  }

  function beside(spec) {  // Pixels that the longest name beside the y axis takes
    var rows = [].concat.apply([], ((spec.layout.yaxis || {}).ticktext || named(spec)).map(function (s) { return s.split("<br>"); }));
    return LETTER * Math.max.apply(null, [0].concat(rows.map(function (s) { return s.length; })));
  }

  function cells(spec) {  // Pixels below which the numbers in a heat map lie on each other
    return Math.max.apply(null, [0].concat(spec.data.map(function (t) { return t.texttemplate && Array.isArray(t.x) ? 24 * t.x.length : 0; })));
  }

  function folded(text, most) {  // over several lines
    return text.split(" ").reduce(function (rows, word) {
      var last = rows[rows.length - 1];
      if (last && (last + " " + word).length > most) rows.push(word); else rows[rows.length - 1] = last ? last + " " + word : word;
      return rows;
    }, [""]).join("<br>");
  }

  function narrow(box, spec, layout) {
    layout.dragmode = false;  // a finger that moves over a figure scrolls the page
    var x = layout.xaxis || {}, y = layout.yaxis || {};
    if (y.ticktext) y.ticktext = y.ticktext.map(function (s) { return cut(s, 22); });
    if (x.visible === false) (layout.annotations || []).forEach(function (a) { a.text = cut(a.text, 17); });  // names around a circle
    if (!y.ticktext && beside(spec) > 0.35 * box.clientWidth && (layout.height || 450) > 26 * named(spec).length) {
      layout.yaxis = Object.assign(y, { tickvals: named(spec), ticktext: named(spec).map(function (s) { return folded(s, 15); }), tickfont: { size: 10 } });
    }
    var side = beside(spec), least = cells(spec), plot = box.clientWidth - side - 60;
    if (layout.title && layout.title.text) {  // above the figure as text: inside, it would lie on the legend
      box.dataset.title = layout.title.text.replace(/<[^>]+>/g, " ");
      layout.title = undefined;
      layout.margin = Object.assign({}, layout.margin, { t: 30 });
    }
    if (x.title && x.title.text) {
      x.title.text = folded(x.title.text, Math.max(16, Math.floor(plot / 8)));
      var margin = layout.margin || {};
      layout.margin = Object.assign({}, margin, { b: Math.max(margin.b || 50, 32 + 20 * x.title.text.split("<br>").length) });
    }
    if (plot < Math.max(90, least)) {  // as wide as it must be, and scrolled in its own place
      layout.width = side + Math.max(260, least) + 130;
      box.classList.add("wide");
    } else if (!layout.sliders) {  // a legend beside the figure would leave it no room
      layout.legend = Object.assign({}, layout.legend, { orientation: "h", x: 0, xanchor: "left", y: 1.02, yref: "paper", yanchor: "bottom" });
    }
  }

  // What is drawn for white paper, in the dark: ink becomes light, paper is the page's own; what stands inside of a bar stays as it is.
  var DARK = { "#000": "#EEE", "#000000": "#EEE", "#222": "#DDD", "#333333": "#DDD", "#444": "#999", "#555": "#AAA", "#777": "#999", "#CCC": "#555",
    "#E5E5E5": "#3A3A3A", "#FFFFFF": "#1C1D20" };

  function lit(value, key) {
    if (key === "insidetextfont" || key === "text") return value;
    if (typeof value === "string") return DARK[value] || value;
    if (Array.isArray(value)) return value.map(function (v) { return lit(v); });
    if (!value || typeof value !== "object") return value;
    return Object.keys(value).reduce(function (out, k) { out[k] = lit(value[k], k); return out; }, {});
  }

  function isDark() {
    var said = document.body.dataset.theme;
    return said === "dark" || said !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function draw(box) {
    var spec = JSON.parse(box.dataset.spec = box.dataset.spec || box.querySelector("script").textContent);
    if (isDark()) { spec.data = lit(spec.data); spec.layout = lit(spec.layout); spec.frames = lit(spec.frames); }
    var layout = spec.layout, clear = "rgba(0,0,0,0)";
    if (box.clientWidth < 560) narrow(box, spec, layout);
    (layout.updatemenus || []).forEach(function (m) { if (isDark()) m.bgcolor = "#2A2B2E"; });
    layout.paper_bgcolor = clear;
    layout.plot_bgcolor = layout.plot_bgcolor || clear;
    if (isDark()) layout.font = Object.assign({ color: "#DDD" }, layout.font);
    window.Plotly.newPlot(box, { data: spec.data, layout: layout, frames: spec.frames,
      config: { responsive: true, displaylogo: false } });
    box.dataset.drawn = isDark();
  }
  function all() { document.querySelectorAll(".live-figure").forEach(function (box) { if (box.dataset.drawn !== String(isDark())) draw(box); }); }
  function begin() {
    all();
    new MutationObserver(all).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
})();
