// Utilisation of every layer on every machine that is shown, in the order of the table.

const MOST_MACHINES = 250; // rows that can still be told apart

function drawHeatmap() {
  const all = shownPoints().filter((point) => point.ok);
  const points = all.slice(0, MOST_MACHINES);
  const names = layersOf(state.workload);
  const use = points.map((point) => {
    const layers = new Map(point.layers.map((layer) => [layer.name, layer]));
    return names.map((name) => (layers.get(name)?.macs ? layers.get(name).use : null));
  });
  const few = points.length <= 25;
  // Columns of one machine are wide enough for their numbers; ticks name machines while there is room.
  const trace = {
    type: "heatmap", z: use, x: names.map((_, i) => i), y: points.map((_, i) => i),
    zmin: 0, zmax: 1, colorscale: "Viridis", xgap: 1, ygap: few ? 1 : 0,
    colorbar: { tickformat: ".0%", thickness: 12 },
    text: points.map((point) => names.map((name) => `${escaped(describe(point))}<br>${escaped(name)}`)),
    hovertemplate: "%{text}: %{z:.1%}<extra></extra>",
    ...(few ? { texttemplate: "%{z:.0%}" } : {}),
  };
  const step = Math.ceil(points.length / 40) || 1;
  const ticks = points.map((_, i) => i).filter((i) => i % step === 0);
  heatmapPoints = points;
  if (!points.length) {
    drawNothing("heatmap", 220);
    return;
  }
  Plotly.react("heatmap", [trace], layoutOf({
    height: Math.max(220, Math.min(900, 90 + points.length * 22)),
    xaxis: { tickvals: names.map((_, i) => i), ticktext: names, side: "top", showgrid: false },
    yaxis: { tickvals: ticks, ticktext: ticks.map((i) => points[i].label), autorange: "reversed", showgrid: false },
    margin: { l: 60, r: 20, t: 40, b: 10 },
  }), PLOT_OPTIONS);
  const order = state.sort.key ? `sorted by ${state.sort.key}` : "in their own order";
  document.getElementById("heatmap-note").textContent =
    (all.length > points.length
      ? `The first ${points.length} of ${all.length} points of the table, ${order}. `
      : `The points of the table, ${order}. `) +
    "Multiply-accumulates asked for over those the GEMM core could have done; click to select.";
}

let heatmapPoints = [];
