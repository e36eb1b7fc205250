// What a stage of the selected point spent its cycles on, layer by layer.

function drawStalls() {
  const layers = state.selected?.layers ?? [];
  if (!layers.length) {
    drawNothing("stalls", 320, "no layer was run");
    return;
  }
  const colours = causeColours(state.stage);
  const traces = [];
  DATA.causes.forEach(({ stage, cause, words, sentence }, i) => {
    if (stage !== state.stage || !layers.some((layer) => layer.causes[i])) return;
    traces.push({
      type: "bar", orientation: "h", name: words, marker: { color: colours.get(cause) },
      y: layers.map((_, row) => row),
      x: layers.map((layer) => (state.share ? layer.causes[i] / layer.cycles : layer.causes[i])),
      text: layers.map((layer) =>
        `<b>${escaped(layer.name)}</b> ${words}<br>${formatNumber(layer.causes[i])} of ` +
        `${formatNumber(layer.cycles)} cycles, ${formatPercent(layer.causes[i] / layer.cycles)}<br>${sentence}`),
      textposition: "none", hovertemplate: "%{text}<extra></extra>",
    });
  });
  Plotly.react("stalls", traces, layoutOf({
    barmode: "stack", height: Math.max(320, 110 + layers.length * 24),
    xaxis: state.share ? { tickformat: ".0%", range: [0, 1] } : { title: { text: "cycles of one run" } },
    yaxis: { tickvals: layers.map((_, i) => i), ticktext: layers.map((layer) => layer.name), autorange: "reversed" },
    legend: { orientation: "h", y: -0.14, x: 0, traceorder: "normal" },
    margin: { l: 60, r: 20, t: 10, b: 60 },
  }), PLOT_OPTIONS);
  document.getElementById("stalls-note").textContent =
    `Every cycle of the ${state.stage} stage has one cause. Blue and green: it works; the others: it waits.`;
}
