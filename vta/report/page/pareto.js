// The Pareto plot: any two columns, and the front of those that no other point beats in both.

// Points with values in both columns that no other one is at least as good as in both and better
// in one, the best in ``x`` first.
function paretoFront(points, x, y) {
  const signX = COLUMN.get(x).better === "max" ? -1 : 1;
  const signY = COLUMN.get(y).better === "max" ? -1 : 1;
  const costs = points
    .filter((point) => valueOf(point, x) !== null && valueOf(point, y) !== null)
    .map((point) => [signX * valueOf(point, x), signY * valueOf(point, y), point])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2].i - b[2].i);
  const front = [];
  for (const [costX, costY, point] of costs) {
    const last = front.at(-1);
    const equal = last && last[0] === costX && last[1] === costY;
    if (!last || costY < last[1] || equal) front.push([costX, costY, point]);
  }
  return front.map(([, , point]) => point);
}

const hoverTexts = new Map(); // by point; worked out once, for there may be thousands

function hoverText(point) {
  if (!hoverTexts.has(point)) hoverTexts.set(point, newHoverText(point));
  return hoverTexts.get(point);
}

function newHoverText(point) {
  const values = COLUMNS.filter(({ key, kind }) => kind !== "axis" && valueOf(point, key) !== null);
  const lines = [
    `<b>${escaped(point.label)}</b>`,
    ...VARIED.map((key) => `${key}: <b>${escaped(formatValue(key, valueOf(point, key)))}</b>`),
    ...values.slice(0, 9).map(({ key }) =>
      `${headingOf(key)}: ${escaped(formatValue(key, valueOf(point, key)))}`),
  ];
  return lines.join("<br>");
}

function drawPareto() {
  const { x, y, colour } = state;
  const points = shownPoints().filter(
    (point) => point.ok && valueOf(point, x) !== null && valueOf(point, y) !== null);
  if (!points.length) {
    drawNothing("pareto", 430);
    document.getElementById("front").textContent = "No point that is shown has both values.";
    return;
  }
  const front = paretoFront(points, x, y);
  const at = (chosen) => ({ x: chosen.map((p) => valueOf(p, x)), y: chosen.map((p) => valueOf(p, y)) });
  const marker = { size: points.length > 1000 ? 6 : 9, opacity: 0.85, color: cssColour("accent") };
  if (colour) {
    Object.assign(marker, {
      color: points.map((point) => valueOf(point, colour)), colorscale: scaleNow(),
      showscale: true, colorbar: { title: { text: headingOf(colour), side: "right" }, thickness: 12 },
    });
  }
  const traces = [
    { ...at(front), type: "scatter", mode: "lines", hoverinfo: "skip", name: "front",
      line: { color: cssColour("text"), width: 1.2, dash: "dot" } },
    { ...at(points), type: "scatter", mode: "markers", marker, name: "points",
      customdata: points.map((point) => point.i),
      text: points.map(hoverText), hovertemplate: "%{text}<extra></extra>" },
  ];
  const chosen = points.filter((point) => point === state.selected);
  traces.push({ ...at(chosen), type: "scatter", mode: "markers", hoverinfo: "skip", name: "selected",
                marker: { size: 16, color: "rgba(0,0,0,0)", line: { width: 3, color: cssColour("chosen") } } });
  const axis = (key, log) => ({ title: { text: headingOf(key) }, type: log ? "log" : "linear",
                               ticksuffix: COLUMN.get(key).unit === "byte" ? "B" : "" });
  Plotly.react("pareto", traces, layoutOf({
    showlegend: false, hovermode: "closest", height: 430,
    xaxis: axis(x, state.xLog), yaxis: axis(y, state.yLog),
  }), PLOT_OPTIONS);
  const word = (key) => `${COLUMN.get(key).better === "max" ? "large" : "small"} ${key}`;
  document.getElementById("front").textContent =
    `${front.length} of ${points.length} points are on the front of ${word(x)} and ${word(y)}: ` +
      front.slice(0, 12).map((point) => point.label).join(", ") + (front.length > 12 ? ", …" : "");
}
