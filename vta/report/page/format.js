// Numbers and names as people read them.

function formatNumber(value) {
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  if (Math.abs(value) >= 1e5) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(4)));
}

function formatBytes(value) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (value >= size) return `${Number((value / size).toPrecision(4))} ${unit}`;
  }
  return `${value} B`;
}

// A value with its unit, where that is not in the heading beside it.
function formatValue(key, value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const unit = COLUMN.has(key) ? COLUMN.get(key).unit : key.startsWith("sram.") ? "byte" : "";
  if (unit === "byte") return formatBytes(value);
  if (key === "utilization") return formatPercent(value);
  if (key === "clock") return `${value / 1e6} MHz`;
  return formatNumber(value);
}

function formatPercent(share) {
  return `${(100 * share).toFixed(1)}%`;
}

// The unit that formatValue leaves out, unless the name of the column says it.
function unitOf(key) {
  const unit = COLUMN.get(key).unit;
  const said = key.split(/[._]/).some((part) => unit && part.startsWith(unit));
  return said || ["byte", "Hz", "1"].includes(unit) ? "" : unit;
}

function headingOf(key) {
  const unit = unitOf(key);
  return unit ? `${key} (${unit})` : key;
}

// What tells a point from the others, on one line.
function describe(point) {
  const shown = VARIED.map((key) => `${key} ${formatValue(key, valueOf(point, key))}`);
  return [point.label, ...shown].join("  ");
}

// plotly reads < in texts as the begin of a tag.
function escaped(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");
}
