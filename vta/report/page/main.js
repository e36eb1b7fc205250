// Puts the views together: controls change the state, and what depends on it is drawn again.

const element = (id) => document.getElementById(id);

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

// What depends on which points are shown.
function draw() {
  const shown = shownPoints();
  const here = POINTS.filter((point) => point.workload === state.workload);
  const failed = here.filter((point) => !point.ok).length;
  element("count").textContent = `${shown.length} of ${here.length} points` +
    (failed ? `, ${failed} without a result` : "");
  element("clear").disabled = !state.filters.size && !state.brushes.size;
  drawPareto();
  drawTable();
  drawHeatmap();
}

const MANY = 1000; // points whose lines may take a second without a graphics processor
let waiting = 0;

// While somebody types: not for every letter, and what takes long when they have finished.
function drawSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    draw();
    waiting = setTimeout(drawParallel, POINTS.length > MANY ? 800 : 0);
  }, 150);
}

function drawSelected() {
  drawDetail();
  drawRoofline();
  drawStalls();
}

function drawAll() {
  draw();
  drawParallel();
  drawSelected();
}

function select(point) {
  state.selected = point;
  drawPareto();
  drawSelected();
  revealSelected();
}

function showWorkload(workload) {
  state.workload = workload;
  state.page = 0;
  const here = POINTS.filter((point) => point.workload === workload);
  const before = state.selected;
  // The same machine with the other workload, else the best one of the first objective.
  state.selected = here.find((point) => before && samePlace(point, before)) ?? bestOf(here);
}

function samePlace(one, other) {
  return VARIED.every((key) => valueOf(one, key) === valueOf(other, key));
}

function bestOf(points) {
  const objective = COLUMNS.find(({ kind }) => kind === "figure");
  const sign = objective?.better === "max" ? -1 : 1;
  const ranked = points.filter((point) => point.ok && objective)
    .sort((a, b) => sign * (valueOf(a, objective.key) - valueOf(b, objective.key)) || a.i - b.i);
  return ranked[0] ?? points[0] ?? null;
}

function clearFilters() {
  state.filters.clear();
  state.brushes.clear();
  for (const input of document.querySelectorAll("#table th input")) {
    input.value = "";
    input.classList.remove("wrong");
  }
  drawAll();
}

function start() {
  element("title").textContent = DATA.title;
  element("about").textContent = DATA.about;
  element("version").textContent = DATA.version;
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

  options(element("workload"), DATA.workloads.map(({ name }, i) => [String(i), name]), "0");
  const numbers = COLUMNS.filter(({ key }) => NUMERIC.has(key)).map(({ key }) => [key, headingOf(key)]);
  options(element("x"), numbers, state.x);
  options(element("y"), numbers, state.y);
  options(element("colour"), [["", "one colour"], ...numbers], state.colour);
  options(element("stage"), STAGES.map((stage) => [stage, stage]), state.stage);
  buildTable();
  if (POINTS.length < 2) {
    element("pareto-section").hidden = true;
    element("detail-section").className = "wide";
  }

  const chosen = POINTS.find((point) => point.label === DATA.selected);
  state.selected = chosen ?? null;
  showWorkload(chosen?.workload ?? 0);
  if (chosen) state.selected = chosen;
  element("workload").value = String(state.workload);

  element("workload").addEventListener("change", (event) => {
    showWorkload(Number(event.target.value));
    drawAll();
  });
  for (const key of ["x", "y"]) {
    element(key).addEventListener("change", (event) => {
      state[key] = event.target.value;
      drawPareto();
    });
    element(`${key}-log`).addEventListener("change", (event) => {
      state[`${key}Log`] = event.target.checked;
      drawPareto();
    });
  }
  element("colour").addEventListener("change", (event) => {
    state.colour = event.target.value;
    drawPareto();
    drawParallel();
  });
  element("stage").addEventListener("change", (event) => {
    state.stage = event.target.value;
    drawStalls();
  });
  element("share").addEventListener("change", (event) => {
    state.share = event.target.checked;
    drawStalls();
  });
  element("clear").addEventListener("click", clearFilters);
  element("theme").addEventListener("click", () => {
    setTheme(themeNow() === "dark" ? "light" : "dark");
    drawAll();
  });
  for (const [id, step] of [["previous", -1], ["next", 1]]) {
    element(id).addEventListener("click", () => {
      state.page += step;
      drawTable();
    });
  }
  drawAll();
  element("pareto").on("plotly_click", ({ points }) => {
    const clicked = points.find((point) => point.customdata !== undefined);
    if (clicked) select(POINTS[clicked.customdata]);
  });
  element("heatmap").on("plotly_click", ({ points }) => select(heatmapPoints[points[0].y]));
  if (POINTS.length > 1) {
    element("parallel").on("plotly_restyle", () => {
      readBrushes();
      state.page = 0;
      draw();
    });
  }
  document.body.dataset.ready = "yes";
}

start();
