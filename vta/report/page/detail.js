// Everything about the selected point.

function tableOf(rows, headings) {
  const table = document.createElement("table");
  if (headings) {
    const head = table.createTHead().insertRow();
    for (const heading of headings) {
      const cell = document.createElement("th");
      cell.textContent = heading;
      head.append(cell);
    }
  }
  const body = table.createTBody();
  for (const { cells, varied } of rows) {
    const row = body.insertRow();
    row.className = varied ? "varied" : "";
    for (const text of cells) row.insertCell().textContent = text;
  }
  return table;
}

function titled(title, table) {
  const heading = document.createElement("h3");
  heading.textContent = title;
  const block = document.createElement("div");
  block.append(heading, table);
  return block;
}

function drawDetail() {
  const point = state.selected;
  document.getElementById("detail-title").textContent = point ? `Point ${point.label}` : "No point selected";
  for (const label of document.querySelectorAll(".selected-label")) label.textContent = point?.label ?? "–";
  const parts = [];
  if (point) {
    if (point.error) {
      const failure = document.createElement("p");
      failure.className = "failure";
      failure.textContent = `${point.status}: ${point.error}`;
      parts.push(failure);
    }
    const figures = COLUMNS.filter(({ key, kind }) => kind !== "axis" && valueOf(point, key) !== null);
    const machine = Object.entries(machineOf(point)).map(([key, value]) => ({
      cells: [key, formatValue(key, value)], varied: key in point.machine,
    }));
    machine.sort((one, other) => other.varied - one.varied); // first what sets it apart
    const columns = document.createElement("div");
    columns.className = "columns";
    if (figures.length) {
      columns.append(titled("figures", tableOf(figures.map(({ key }) => ({
        cells: [key, formatValue(key, valueOf(point, key)), unitOf(key)],
      })))));
    }
    columns.append(titled("machine", tableOf(machine)));
    parts.push(columns);
    if (point.layers.length) {
      const rows = point.layers.map((layer) => ({
        cells: [layer.name, layer.count, formatNumber(layer.cycles), formatPercent(layer.use),
                formatNumber(layer.bound), layer.limit],
      }));
      parts.push(titled("layers, one run of each",
        tableOf(rows, ["layer", "count", "cycles", "GEMM use", "bound", "limit"])));
    }
  }
  document.getElementById("detail").replaceChildren(...parts);
}
