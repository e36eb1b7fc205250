// The points as vta/report/page_data.py wrote them, and lookups that every view needs.

const DATA = JSON.parse(document.getElementById("data").textContent);
const COLUMNS = DATA.columns;
const COLUMN = new Map(COLUMNS.map((column, i) => [column.key, { ...column, i }]));
const VARIED = DATA.varied.filter((key) => COLUMN.has(key));
const NUMERIC = new Set(DATA.numeric);
const POINTS = DATA.points.map((point, i) => ({
  ...point,
  i,
  ok: point.status === "ok",
  layers: (point.layers ?? []).map((row) =>
    Object.fromEntries(DATA.layer_fields.map((field, place) => [field, row[place]]))),
}));
const STAGES = [...new Set(DATA.causes.map((each) => each.stage))];

// A point's value in a column: a number, a word, a truth, or null.
function valueOf(point, key) {
  return point.values[COLUMN.get(key).i];
}

// The point's whole machine by dotted keys, in the order in which all machines have them.
function machineOf(point) {
  return { ...DATA.common, ...point.machine };
}

function layersOf(workload) {
  return DATA.workloads[workload].layers;
}
