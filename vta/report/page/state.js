// What the reader has chosen. Views read it and are drawn again when it changes.

const state = {
  workload: 0,
  x: DATA.x,
  y: DATA.y,
  xLog: false,
  yLog: false,
  colour: "",
  selected: null, // a point
  filters: new Map(), // column key -> text
  brushes: new Map(), // column key -> a function: does a point's value lie in what was dragged
  sort: { key: "", descending: false }, // no key: in the order of the points
  page: 0,
  stage: "compute",
  share: true,
};

const SUFFIXES = { "": 1, k: 1e3, M: 1e6, G: 1e9, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };
const NUMBER = "(-?[0-9.]+(?:e[-+]?[0-9]+)?)\\s*(k|M|G|Ki|Mi|Gi)?B?(%)?";
const COMPARISON = new RegExp(`^(<=|>=|<|>|=)?\\s*${NUMBER}$`);
const RANGE = new RegExp(`^${NUMBER}\\s*\\.\\.\\s*${NUMBER}$`);

function parsedNumber(digits, suffix, percent) {
  return (Number(digits) * SUFFIXES[suffix ?? ""]) / (percent ? 100 : 1);
}

// A filter's text as a test of values, null where the text says nothing that could be meant.
function filterOf(text, isNumber) {
  const wanted = text.trim();
  if (!isNumber) {
    const lower = wanted.toLowerCase();
    return (value) => String(value ?? "").toLowerCase().includes(lower);
  }
  const range = RANGE.exec(wanted);
  if (range) {
    const low = parsedNumber(...range.slice(1, 4));
    const high = parsedNumber(...range.slice(4, 7));
    return (value) => typeof value === "number" && low <= value && value <= high;
  }
  const comparison = COMPARISON.exec(wanted);
  if (!comparison) return null;
  const limit = parsedNumber(...comparison.slice(2, 5));
  const tests = {
    "<": (value) => value < limit,
    "<=": (value) => value <= limit,
    ">": (value) => value > limit,
    ">=": (value) => value >= limit,
    "=": (value) => value === limit,
  };
  const test = tests[comparison[1] ?? "="];
  return (value) => typeof value === "number" && test(value);
}

// What the table can be sorted and filtered by besides columns: key -> value of a point.
const EXTRA = new Map([
  ["point", (point) => point.label],
  ["status", (point) => point.status],
  ["error", (point) => point.error ?? ""],
]);

function tableValue(point, key) {
  return EXTRA.has(key) ? EXTRA.get(key)(point) : valueOf(point, key);
}

// The points of the workload that pass every filter, in the order of the table.
function shownPoints({ brushed = true } = {}) {
  const tests = [...state.filters]
    .map(([key, text]) => [key, filterOf(text, NUMERIC.has(key))])
    .filter(([, test]) => test !== null);
  if (brushed) tests.push(...state.brushes);
  const points = POINTS.filter(
    (point) =>
      point.workload === state.workload &&
      tests.every(([key, test]) => test(tableValue(point, key))),
  );
  const { key, descending } = state.sort;
  if (!key) return descending ? points.reverse() : points;
  const sign = descending ? -1 : 1;
  // Points without a value come last, whichever way it is sorted.
  return points.sort((one, other) => {
    const a = key === "point" ? one.i : tableValue(one, key);
    const b = key === "point" ? other.i : tableValue(other, key);
    const missing = (a === null ? 1 : 0) - (b === null ? 1 : 0);
    if (missing || a === null) return missing || one.i - other.i;
    if (a === b) return one.i - other.i;
    return sign * (a < b ? -1 : 1);
  });
}
