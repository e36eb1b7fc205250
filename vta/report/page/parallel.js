// Parallel coordinates of axes and objectives. What is dragged there filters the whole page.

const FEW = 12; // so many different values stand in a row, evenly spaced; more are a scale

// A dimension: where each point crosses it, the labels, and which column values a range stands for.
function dimensionOf(key, points) {
  const values = points.map((point) => valueOf(point, key));
  const present = [...new Set(values.filter((value) => value !== null))];
  if (!NUMERIC.has(key) || (COLUMN.get(key).kind === "axis" && present.length <= FEW)) {
    present.sort((a, b) => (a < b ? -1 : 1));
    const place = new Map(present.map((value, i) => [value, i]));
    return {
      values: values.map((value) => place.get(value) ?? -1),
      range: [-0.2, Math.max(present.length - 0.8, 0.2)],
      tickvals: present.map((_, i) => i),
      ticktext: present.map((value) => formatValue(key, value)),
      position: (value) => place.get(value) ?? -1,
    };
  }
  const low = Math.min(...present), high = Math.max(...present);
  const isLog = low > 0 && high / low > 20;
  const position = isLog ? (value) => Math.log10(value) : (value) => value;
  const ticks = isLog ? logTicks(low, high) : linearTicks(low, high);
  return {
    values: values.map((value) => (value === null ? position(low) : position(value))),
    range: low === high ? [position(low) - 1, position(high) + 1] : [position(low), position(high)],
    tickvals: ticks.map(position),
    ticktext: ticks.map((value) => formatValue(key, value)),
    position,
  };
}

function logTicks(low, high) {
  const ticks = [];
  const steps = high / low > 1000 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const step of steps) {
      const value = step * 10 ** power;
      if (low <= value && value <= high) ticks.push(value);
    }
  }
  return ticks;
}

function linearTicks(low, high) {
  if (low === high) return [low];
  return [0, 0.25, 0.5, 0.75, 1].map((part) => low + part * (high - low));
}

function parallelKeys() {
  const figures = COLUMNS.filter(({ key, kind }) => kind !== "axis" && NUMERIC.has(key) && varies(key));
  return [...VARIED, ...figures.map(({ key }) => key).slice(0, Math.max(3, 11 - VARIED.length))];
}

function varies(key) {
  return new Set(POINTS.filter((point) => point.ok).map((point) => valueOf(point, key))).size > 1;
}

let drawnDimensions = [];

function drawParallel() {
  const points = shownPoints({ brushed: false }).filter((point) => point.ok);
  document.getElementById("parallel-section").hidden = POINTS.length < 2;
  if (POINTS.length < 2) return;
  const figures = COLUMNS.filter(({ kind }) => kind === "figure");
  const colour = state.colour || figures[0]?.key;
  drawnDimensions = points.length
    ? parallelKeys().map((key) => ({ key, ...dimensionOf(key, points) }))
    : [];
  const dimensions = drawnDimensions.map(({ key, position, ...dimension }) => ({
    ...dimension, label: headingOf(key), constraintrange: state.brushes.get(key)?.ranges,
  }));
  const shades = colour ? points.map((point) => valueOf(point, colour) ?? 0) : 0;
  if (!points.length) {
    drawNothing("parallel", 360);
    return;
  }
  const trace = {
    type: "parcoords", dimensions, labelangle: dimensions.length > 8 ? -18 : 0, labelside: "top",
    labelfont: { size: 11 }, tickfont: { size: 10 }, rangefont: { size: 1, color: "rgba(0,0,0,0)" },
    line: { color: shades, colorscale: scaleNow(), showscale: true,
            colorbar: { title: { text: colour ? headingOf(colour) : "", side: "right" }, thickness: 12 } },
    unselected: { line: { color: cssColour("line"), opacity: 0.25 } },
  };
  Plotly.react("parallel", [trace], layoutOf({
    height: 360, margin: { l: 70, r: 40, t: dimensions.length > 8 ? 84 : 46, b: 26 },
  }), PLOT_OPTIONS);
}

// After a drag: ranges of positions become tests of column values.
function readBrushes() {
  const drawn = document.getElementById("parallel").data?.[0]?.dimensions ?? [];
  state.brushes = new Map();
  for (const dimension of drawn) {
    const ours = drawnDimensions.find(({ key }) => headingOf(key) === dimension.label);
    const given = dimension.constraintrange;
    if (!ours || !given?.length) continue;
    const ranges = Array.isArray(given[0]) ? given : [given];
    const [bottom, top] = ours.range;
    const hair = (top - bottom) * 1e-6; // ranges snap to ticks, but not to the last digit
    const test = (value) => value !== null && ranges.some(([low, high]) => {
      const position = ours.position(value);
      return low - hair <= position && position <= high + hair;
    });
    test.ranges = given;
    state.brushes.set(ours.key, test);
  }
}
