// The roofline of the selected point; places and roof come worked out.

function drawRoofline() {
  const point = state.selected;
  const placed = (point?.layers ?? []).filter((layer) => layer.place);
  if (!placed.length) {
    drawNothing("roofline", 420, "no layer that multiplies");
    return;
  }
  const [peak, bandwidth] = point.roof;
  const ridge = peak / bandwidth;
  const across = placed.map((layer) => layer.place[0]);
  const up = placed.map((layer) => layer.place[1]);
  const left = Math.min(...across, ridge) / 2, right = Math.max(...across, ridge) * 2;
  const bottom = Math.min(...up, left * bandwidth) / 1.5;
  const text = placed.map((layer) =>
    `<b>${escaped(layer.name)}</b> × ${layer.count}<br>${formatNumber(layer.cycles)} cycles, ` +
    `bound ${formatNumber(layer.bound)} (${layer.limit})<br>GEMM use ${formatPercent(layer.use)}<br>` +
    `DRAM ${formatBytes(layer.read)} read, ${formatBytes(layer.written)} written`);
  const traces = [
    { x: [left, ridge, right], y: [left * bandwidth, peak, peak], type: "scatter", mode: "lines",
      hoverinfo: "skip", line: { color: cssColour("text"), width: 1.5 } },
    { x: across, y: up, text: placed.map((layer) => layer.name), customdata: text, type: "scatter",
      mode: placed.length <= 40 ? "markers+text" : "markers", textposition: "bottom right",
      textfont: { size: 11 }, hovertemplate: "%{customdata}<extra></extra>",
      marker: { size: 10, symbol: "diamond", color: placed.map((layer) => layer.use), colorscale: "Viridis",
                cmin: 0, cmax: 1, line: { width: 1, color: cssColour("card") } } },
  ];
  const note = (x, y, label, anchor) => ({
    x: Math.log10(x), y: Math.log10(y), text: label, showarrow: false, xanchor: anchor, yanchor: "bottom",
  });
  const ticks = (low, high) => {
    const tickvals = logTicks(low, high);
    return { tickvals, ticktext: tickvals.map(formatNumber) };
  };
  Plotly.react("roofline", traces, layoutOf({
    height: 420, showlegend: false,
    xaxis: { type: "log", title: { text: "operations per byte on the busier DRAM channel" },
             range: [Math.log10(left), Math.log10(right)], ...ticks(left, right) },
    yaxis: { type: "log", title: { text: "GOPS" }, range: [Math.log10(bottom), Math.log10(peak * 1.6)],
             ...ticks(bottom, peak * 1.6) },
    annotations: [note(right, peak, `${formatNumber(peak)} GOPS at ${formatValue("clock", machineOf(point).clock)}`, "right"),
                  note(left, left * bandwidth * 1.15, `${formatNumber(bandwidth)} GB/s`, "left")],
  }), PLOT_OPTIONS);
}
