// Colours, of the page and of every plot. Causes have one colour wherever they appear.

const PALETTE = {
  busy: ["#0072b2", "#56b4e9", "#009e73", "#8fd3c0"],
  wait: ["#e69f00", "#d55e00", "#cc79a7", "#f0c987"],
  idle: "#b8bec9",
};

function themeNow() {
  return document.documentElement.dataset.theme;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Colour by cause of one stage, in the order of the causes: busy ones cool, waits warm, idle grey.
function causeColours(stage) {
  const colours = new Map();
  const used = { busy: 0, wait: 0 };
  for (const { cause } of DATA.causes.filter((each) => each.stage === stage)) {
    const kind = cause.split("_")[0];
    const shades = PALETTE[kind];
    colours.set(cause, kind === "idle" ? shades : shades[used[kind]++ % shades.length]);
  }
  return colours;
}

// For values that colour points and lines; as visible on paper as in the dark.
function scaleNow() {
  return themeNow() === "dark"
    ? [[0, "#57a9ff"], [0.5, "#b79bff"], [1, "#ffb14e"]]
    : [[0, "#0b66c3"], [0.5, "#8a3a9a"], [1, "#e8710a"]];
}

// What all plots share; ``more`` adds to it.
function layoutOf(more) {
  const { xaxis, yaxis, ...others } = more;
  const axis = {
    gridcolor: cssColour("line"), zerolinecolor: cssColour("line"), linecolor: cssColour("line"),
    automargin: true, title: { standoff: 8 },
  };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: cssColour("text"), size: 12 },
    margin: { l: 60, r: 20, t: 14, b: 46 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: cssColour("faint"), activecolor: cssColour("accent") },
    hoverlabel: { align: "left", bgcolor: cssColour("card"), bordercolor: cssColour("line"),
                  font: { color: cssColour("text"), size: 12 } },
    xaxis: { ...axis, ...xaxis, title: { ...axis.title, ...xaxis?.title } },
    yaxis: { ...axis, ...yaxis, title: { ...axis.title, ...yaxis?.title } },
    ...others,
  };
}

// In place of a plot without data, whose axes would have no range.
function drawNothing(id, height, text = "no point to show") {
  Plotly.react(id, [], layoutOf({
    height, xaxis: { visible: false, range: [0, 1] }, yaxis: { visible: false, range: [0, 1] },
    annotations: [{ text, showarrow: false, x: 0.5, y: 0.5 }],
  }), PLOT_OPTIONS);
}

const PLOT_OPTIONS = {
  responsive: true, displaylogo: false,
  modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
};
