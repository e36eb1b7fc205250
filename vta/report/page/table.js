// The table: one row per point, sorted and filtered, so many on a page.

const ROWS = 50;

function tableKeys() {
  const keys = ["point", "status", ...COLUMNS.map(({ key }) => key)];
  return POINTS.some((point) => point.error) ? [...keys, "error"] : keys;
}

function isText(key) {
  return !NUMERIC.has(key);
}

function buildTable() {
  const head = document.querySelector("#table thead");
  const headings = document.createElement("tr");
  const filters = document.createElement("tr");
  for (const key of tableKeys()) {
    const heading = document.createElement("th");
    heading.className = isText(key) ? "text" : "";
    heading.dataset.key = key;
    const button = document.createElement("button");
    button.type = "button";
    button.title = COLUMN.get(key)?.sentence ?? "";
    button.addEventListener("click", () => sortBy(key));
    heading.append(button);
    headings.append(heading);

    const cell = document.createElement("th");
    const input = document.createElement("input");
    input.type = "text";
    input.dataset.filter = key;
    input.setAttribute("aria-label", `filter ${key}`);
    input.addEventListener("input", () => {
      setFilter(key, input);
    });
    cell.append(input);
    filters.append(cell);
  }
  head.replaceChildren(headings, filters);
}

function setFilter(key, input) {
  const text = input.value.trim();
  const wrong = text !== "" && filterOf(text, NUMERIC.has(key)) === null;
  input.classList.toggle("wrong", wrong);
  if (text === "" || wrong) state.filters.delete(key);
  else state.filters.set(key, text);
  state.page = 0;
  drawSoon();
}

function sortBy(key) {
  const again = state.sort.key === key;
  state.sort = { key, descending: again ? !state.sort.descending : COLUMN.get(key)?.better === "max" };
  state.page = 0;
  draw();
}

function drawTable() {
  const points = shownPoints();
  const pages = Math.max(1, Math.ceil(points.length / ROWS));
  state.page = Math.min(state.page, pages - 1);
  for (const heading of document.querySelectorAll("#table thead th[data-key]")) {
    const key = heading.dataset.key;
    const arrow = state.sort.key !== key ? "" : state.sort.descending ? " ▼" : " ▲";
    const button = heading.firstElementChild;
    button.replaceChildren(key);
    if (COLUMN.has(key) && unitOf(key)) {
      const unit = document.createElement("span");
      unit.className = "unit";
      unit.textContent = ` ${unitOf(key)}`;
      button.append(unit);
    }
    button.append(arrow);
    heading.ariaSort = arrow ? (state.sort.descending ? "descending" : "ascending") : null;
  }
  const rows = points.slice(state.page * ROWS, (state.page + 1) * ROWS).map(rowOf);
  document.querySelector("#table tbody").replaceChildren(...rows);
  document.getElementById("page").textContent = points.length
    ? `${state.page * ROWS + 1}–${state.page * ROWS + rows.length} of ${points.length}` : "no points";
  document.getElementById("previous").disabled = state.page === 0;
  document.getElementById("next").disabled = state.page === pages - 1;
}

function rowOf(point) {
  const row = document.createElement("tr");
  row.dataset.point = point.i;
  row.className = [point === state.selected ? "selected" : "", point.ok ? "" : "failed"].join(" ").trim();
  for (const key of tableKeys()) {
    const cell = row.insertCell();
    const value = tableValue(point, key);
    cell.textContent = EXTRA.has(key) ? value : formatValue(key, value);
    if (key === "error") {
      cell.className = "error text";
      cell.title = value;
    } else if (isText(key)) cell.className = "text";
  }
  row.addEventListener("click", () => select(point));
  return row;
}

// Turn to the page with the selected row and bring it into view.
function revealSelected() {
  const number = shownPoints().indexOf(state.selected);
  if (number < 0) return;
  state.page = Math.floor(number / ROWS);
  drawTable();
  const box = document.querySelector("#table-section .scroll");
  const row = box.querySelector("tr.selected");
  const head = box.querySelector("thead").offsetHeight;
  const room = box.clientHeight - head - row.offsetHeight;
  const place = row.offsetTop - head - box.scrollTop;
  if (place < 0 || place > room) box.scrollTop += place - room / 2;
}
