// Draws every stored figure on the page, with the plotly script that lies beside it.
(function () {
  function draw(box) {
    var spec = JSON.parse(box.querySelector("script").textContent), layout = spec.layout;
    if (box.clientWidth < 560 && !layout.sliders) {  // a legend beside the figure would leave it no room
      layout.legend = Object.assign({}, layout.legend, { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" });
    }
    window.Plotly.newPlot(box, { data: spec.data, layout: layout, frames: spec.frames,
      config: { responsive: true, displaylogo: false, staticPlot: spec.still } });
  }
  function all() { document.querySelectorAll(".live-figure").forEach(draw); }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all); else all();
})();
