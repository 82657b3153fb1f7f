// charts.js - curves with bands, drawn by dygraphs, in the colours of the figures.

import { h, s, choice } from "./dom.js";
import { number, duration, metricName, metricUnit, lowerIsBetter } from "./text.js";
import { methodStyle } from "./api.js";

// ---- colours

const channels = colour => [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
const hex = rgb =>
  "#" +
  rgb
    .map(c =>
      Math.round(Math.min(255, Math.max(0, c)))
        .toString(16)
        .padStart(2, "0"),
    )
    .join("");
const mix = (a, b, share) => hex(channels(a).map((c, i) => c + (channels(b)[i] - c) * share));

function luminance(colour) {
  const [r, g, b] = channels(colour)
    .map(c => c / 255)
    .map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export const isDark = () =>
  document.documentElement.dataset.theme === "dark" ||
  (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);

// The method's colour of the figures; on dark ground, lighter until it can be seen (contrast 4 with the panel).
export function methodColour(method, shade = 0) {
  let colour = methodStyle(method).colour;
  const contrast = c => 1.05 / (luminance(c) + 0.05);
  if (!isDark() && shade && contrast(colour) < 3.6) return mix(colour, "#000000", 0.7 * shade);
  if (!isDark()) {
    // Paler only as long as it can be seen, as in the figures (rws__colour_shade).
    let most = 1;
    while (shade && contrast(mix(colour, "#ffffff", most)) < 3) most -= 0.01;
    return mix(colour, "#ffffff", shade * most);
  }
  if (luminance(colour) < 0.001) return "#e7ebef"; // black: the ink
  for (let i = 0; i < 40 && (luminance(colour) + 0.05) / (luminance("#1b2026") + 0.05) < 4; i++)
    colour = mix(colour, "#ffffff", 0.08);
  return mix(colour, "#1b2026", shade * 0.2); // a contrast of 3 is left
}

export function swatch(method, shade = 0) {
  const dash = methodStyle(method).dash;
  return s(
    "svg",
    { class: "swatch", viewBox: "0 0 22 8", "aria-hidden": "true" },
    s("path", {
      d: "M1 4H21",
      stroke: methodColour(method, shade),
      "stroke-width": "2.6",
      "stroke-dasharray": dash.length ? dash.join(" ") : null,
    }),
  );
}

// Colours of lines in style.css, read once for each theme: to read one makes the browser compute all styles.
const lines = new Map();
function lineColours() {
  const key = isDark();
  if (!lines.has(key)) {
    const probe = document.body.appendChild(h("i"));
    const read = name => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    lines.set(key, { axisLineColor: read("--line-strong"), gridLineColor: read("--grid") });
    probe.remove();
  }
  return lines.get(key);
}

// ---- axes

export const toggle = (name, on, change, title) =>
  h("button.toggle", { "aria-pressed": String(on), title: title || null, onclick: change }, name);

// What chooses the x axis, logarithmic axes and smoothing; set({x}), set({log}) or set({smooth}) takes the change.
const smoothings = [
  ["", "none"],
  ...["0.6", "0.8", "0.9", "0.97"].map(share => [share, share]),
];

export function axisControls({ x, log, smooth }, set) {
  const flip = axis =>
    log.includes(axis) ? log.replace(axis, "").replace(/^,|,$/g, "") : [log, axis].filter(Boolean).join(",");
  return [
    h(
      "div.set",
      { role: "group", "aria-label": "x axis" },
      toggle("iteration", x === "iteration", () => set({ x: "iteration" })),
      toggle("seconds", x === "seconds", () => set({ x: "seconds" }), "time of training"),
    ),
    h(
      "div.set",
      { role: "group", "aria-label": "logarithmic axes" },
      ["x", "y"].map(axis => toggle(`log ${axis}`, log.includes(axis), () => set({ log: flip(axis) }))),
    ),
    choice("Smoothing ", smooth, smoothings, v => set({ smooth: v })),
  ];
}

export function axisNumber(x) {
  const size = Math.abs(x);
  if (x === 0) return "0";
  if (size >= 1e6) return number(x / 1e6, 4) + " M";
  if (size >= 1e4) return number(x / 1e3, 4) + " k";
  if (size < 1e-3) return x.toExponential(0).replace("e-", "e−").replace("-", "−");
  return number(x, 4);
}

// Round numbers between two ends, as many as there is room for: steps of 1, 2 or 5; on a logarithmic axis powers of ten, with
// 2 and 5 between them if they fit, and steps like those of a linear axis within one power of ten.
export function ticks(low, high, most, log) {
  if (!(high > low)) return [low];
  if (log && low > 0 && high / low >= 10) {
    const first = Math.floor(Math.log10(low)),
      last = Math.ceil(Math.log10(high)),
      every = Math.ceil((last - first) / most);
    const parts = 3 * (last - first) <= most ? [1, 2, 5] : [1];
    const all = [];
    for (let e = first; e <= last; e += every) for (const part of parts) all.push(part * 10 ** e);
    return all.filter(v => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
  }
  const rough = (high - low) / Math.max(1, most),
    power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(s => s * power >= rough * (1 - 1e-9));
  const all = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++)
    all.push(Number((i * step).toPrecision(12)));
  return all;
}

const ticker = (low, high, pixels, options) =>
  ticks(low, high, Math.max(2, Math.floor(pixels / options("pixelsPerLabel"))), options("logscale")).map(v => ({
    v,
    label: axisNumber(v),
  }));

// The band between the quartiles as one polygon; the library's own draws a polygon for each pair of points.
function plotBand(e) {
  const points = e.points.filter(
    p => Number.isFinite(p.canvasx) && Number.isFinite(p.y_top) && Number.isFinite(p.y_bottom) && p.yval !== null,
  );
  const { area, fillAlpha } = { area: e.plotArea, fillAlpha: e.dygraph.getNumericOption("fillAlpha", e.setName) };
  if (points.length < 2 || !(fillAlpha > 0)) return;
  const y = share => area.y + area.h * share,
    pen = e.drawingContext;
  pen.save();
  pen.globalAlpha = fillAlpha;
  pen.fillStyle = e.color;
  pen.beginPath();
  points.forEach((p, i) => (i ? pen.lineTo(p.canvasx, y(p.y_top)) : pen.moveTo(p.canvasx, y(p.y_top))));
  for (let i = points.length - 1; i >= 0; i--) pen.lineTo(points[i].canvasx, y(points[i].y_bottom));
  pen.closePath();
  pen.fill();
  pen.restore();
}

// ---- a chart

// The library's own legend sets styles by attribute, which the content-security policy forbids; the page has its own.
const plugins = () =>
  Dygraph.PLUGINS.splice(0, Dygraph.PLUGINS.length, ...Dygraph.PLUGINS.filter(p => p !== Dygraph.Plugins.Legend));

// A mean over the points so far, whose weights fall by `share` from each to the one before it, as rws plot --smooth has it.
function smoothed(values, share) {
  let sum = 0,
    weight = 0;
  if (!(share > 0) || !values) return values;
  return values.map(v => {
    if (typeof v !== "number") return v;
    sum = share * sum + v;
    weight = share * weight + 1;
    return sum / weight;
  });
}

// The least and the largest number of some curves and their bands, with a margin; null if there is none.
export function rangeOf(curves, log) {
  const all = curves.flatMap(c => [c.y, c.low, c.high].flatMap(l => l || [])).filter(v => typeof v === "number" && (!log || v > 0));
  const low = all.reduce((a, b) => Math.min(a, b), Infinity),
    high = all.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!(high > low)) return null;
  const pad = log ? (high / low) ** 0.03 : 0.03 * (high - low);
  return log ? [low / pad, high * pad] : [low - pad, high + pad];
}

// Rows for dygraphs: all x of all curves, with [low, median, high] or null for each curve.
function merge(curves, logY, logX) {
  const rows = new Map();
  const good = v => v !== null && v !== undefined && (!logY || v > 0);
  curves.forEach((curve, c) =>
    curve.x.forEach((x, i) => {
      if (x === null || (logX && x <= 0) || !good(curve.y[i])) return;
      if (!rows.has(x)) rows.set(x, new Array(curves.length).fill(null));
      const low = curve.low && good(curve.low[i]) ? curve.low[i] : curve.y[i];
      const high = curve.high && good(curve.high[i]) ? curve.high[i] : curve.y[i];
      rows.get(x)[c] = [low, curve.y[i], high];
    }),
  );
  return [...rows.entries()].sort((a, b) => a[0] - b[0]).map(([x, values]) => [x, ...values]);
}

const MOST_LINES = 14; // of a tip

// curves: [{label, method, shade, x, y, low, high, count}]. options: {title, metric, xName, unit, log, height,
// hidden: Set of labels, smooth: a share, peers(): charts that show the same x, onZoom(from, to) or onZoom(null)}. The chart can be
// given new curves without losing its zoom; where there is an onZoom, set is told the window and the range of y.
export class Chart {
  constructor(options) {
    this.options = options;
    this.plot = h("div.plot", {
      role: "img",
      tabindex: "0",
      onkeydown: e => this.onKey(e),
      onblur: () => this.leave(),
    });
    this.plot.addEventListener("dblclick", () => (this.own = false), true); // before dygraphs shows everything
    this.tip = h("div.tip", { hidden: true });
    this.title = h("figcaption", options.title || metricName(options.metric || ""));
    this.note = h("span.chart-note");
    this.element = h(
      "figure.chart",
      h("div.chart-head", this.title, this.note, options.tools || null),
      h("div.plot-box", this.plot, this.tip),
      h("p.x-name", options.xName === "seconds" ? "training time (s)" : "iteration"),
    );
    const unit = metricUnit(options.metric || "");
    if (unit && !options.title) this.title.append(h("small", ` (${unit})`));
    this.element.style.setProperty("--chart-height", (options.height || 230) + "px");
    this.graph = null;
    this.curves = [];
    this.zoomed = false;
    this.size = new ResizeObserver(() => this.graph && this.plot.clientWidth > 0 && this.graph.resize());
    this.size.observe(this.plot);
  }

  // window: [from, to] of x, and range: [low, high] of y, or null: all, and what fits. Undefined: they stay.
  set(list, { window, range } = {}) {
    if (!this.element.isConnected) return; // the page was left meanwhile
    const share = Number(this.options.smooth);
    const curves = list.map(c => ({ ...c, y: smoothed(c.y, share), low: smoothed(c.low, share), high: smoothed(c.high, share) }));
    const sum = list => (list || []).reduce((total, v) => total + (v || 0), 0);
    const signature = JSON.stringify([
      isDark(),
      this.zoomed,
      window,
      range,
      curves.map(c => [c.label, c.shade, c.x.length, sum(c.x), sum(c.y), sum(c.low), sum(c.high), sum(c.count)]),
    ]);
    this.curves = curves;
    this.window = window;
    if (this.graph && signature === this.signature) return; // nothing is new: hundreds of runs change one curve at a time
    this.signature = signature;
    const logX = this.options.log.includes("x"),
      logY = this.options.log.includes("y");
    const data = merge(curves, logY, logX);
    const bands = curves.some(c => c.low);
    this.tellZoom(this.zoomed);
    this.data = data;
    if (data.length === 0) return this.blank();
    this.plot.setAttribute("aria-label", this.describe());
    const settings = {
      file: data,
      labels: [" x ", ...curves.map((c, i) => c.label + "\u200b".repeat(i))], // dygraphs wants them to differ
      colors: curves.map(c => c.colour || methodColour(c.method, c.shade)),
      visibility: this.visibility(),
      series: Object.fromEntries(
        curves.map((c, i) => [
          c.label + "\u200b".repeat(i),
          {
            strokePattern:
              methodStyle(c.method).dash.length && c.method ? methodStyle(c.method).dash.map(d => 1.3 * d) : null,
            drawPoints: c.x.length < 2,
            pointSize: 3,
          },
        ]),
      ),
      customBars: true,
      fillAlpha: bands ? (isDark() ? 0.22 : 0.16) : 0,
      logscale: !!logY,
      ...lineColours(),
    };
    const alone = data.length === 1; // then the axis needs a width
    if (alone !== !!this.alone)
      settings.dateWindow = alone ? (logX ? [data[0][0] / 2, data[0][0] * 2] : [data[0][0] - 1, data[0][0] + 1]) : null;
    this.alone = alone;
    if (window) settings.dateWindow = window;
    else if (window === null && !alone) settings.dateWindow = null;
    if (range !== undefined && !this.own) settings.valueRange = range;
    if (window !== undefined) this.tellZoom(!!window);
    if (this.graph && this.graphLogX === !!logX && this.graphBands === bands) this.graph.updateOptions(settings);
    else this.build(settings, bands);
  }

  build(settings, bands) {
    if (this.graph) this.graph.destroy();
    this.plot.replaceChildren();
    this.graphLogX = !!this.options.log.includes("x");
    this.graphBands = bands;
    const { file, ...rest } = settings;
    plugins();
    this.graph = new Dygraph(this.plot, file, {
      ...rest,
      legend: "never",
      connectSeparatedPoints: true,
      strokeWidth: 1.8,
      highlightCircleSize: 3.5,
      axisLabelFontSize: 12,
      gridLineWidth: 1,
      rightGap: 12,
      xRangePad: this.graphLogX ? 0 : 6, // pixels; they would lead below 0 on a logarithmic axis
      plotter: [plotBand, Dygraph.Plotters.linePlotter],
      yRangePad: 8,
      digitsAfterDecimal: 6,
      axes: {
        x: { logscale: this.graphLogX, ticker, pixelsPerLabel: 70, drawGrid: false },
        y: { ticker, axisLabelWidth: 56, pixelsPerLabel: 36, gridLinePattern: null },
      },
      highlightCallback: (e, x, points) => {
        this.showTip(e, x, points);
        for (const peer of this.peers()) peer.follow(x);
      },
      unhighlightCallback: () => this.leave(),
      zoomCallback: () => this.zoom(),
    });
  }

  tellZoom(zoomed) {
    this.zoomed = zoomed;
    this.note.textContent = zoomed ? "double-click to see everything" : "";
  }

  // After a drag: across, which all panels follow, or upwards, which is this panel's own.
  zoom() {
    if (!this.options.onZoom) return this.tellZoom(this.graph.isZoomed());
    const [from, to] = this.graph.xAxisRange(),
      across = this.graph.isZoomed("x");
    const moved = across && !(this.window && this.window[0] === from && this.window[1] === to);
    this.signature = null;
    if (across && !moved) this.own = true;
    this.options.onZoom(across ? from : null, to);
  }

  peers() {
    return this.options.peers ? [...this.options.peers()].filter(c => c !== this && c.graph) : [];
  }

  leave() {
    for (const chart of [this, ...this.peers()]) {
      chart.tip.hidden = true;
      if (chart !== this) chart.graph.clearSelection();
    }
  }

  // Shows the values at the x that is nearest to one in another chart.
  follow(x) {
    const near = this.data.reduce((a, r) => (Math.abs(r[0] - x) < Math.abs(a - x) ? r[0] : a), Infinity);
    if (Number.isFinite(near)) this.point(near);
  }

  blank() {
    if (this.graph) this.graph.destroy();
    this.graph = null;
    this.alone = false;
    const log = this.options.log.includes("y") && this.curves.some(c => c.y.some(v => v !== null));
    this.plot.replaceChildren(
      h("p.nothing", log ? "No number is above 0: a logarithmic axis cannot show them." : "Nothing was measured yet."),
    );
  }

  describe() {
    const parts = this.curves.filter(c => c.y.length).map(c => `${c.label}: ${number(c.y[c.y.length - 1])}`);
    return `${this.title.textContent}. Last values: ${parts.join("; ")}.`;
  }

  showTip(e, x, points) {
    const lines = points
      .filter(p => p.yval !== null && !Number.isNaN(p.yval))
      .map(p => {
        const at = this.graph.indexFromSetName(p.name) - 1,
          curve = this.curves[at];
        const i = curve.x.indexOf(x),
          band = curve.low && curve.count && curve.count[i] > 1;
        return {
          curve,
          y: p.yval,
          low: band ? curve.low[i] : null,
          high: band ? curve.high[i] : null,
          n: curve.count ? curve.count[i] : 0,
        };
      })
      .sort((a, b) => (lowerIsBetter(this.options.metric || "") ? a.y - b.y : b.y - a.y));
    if (lines.length === 0) return;
    this.tip.replaceChildren(
      h("div.tip-x", this.options.xName === "seconds" ? duration(x) : `iteration ${number(x)}`),
      ...lines
        .slice(0, MOST_LINES)
        .map(l =>
          h(
            "div.tip-row",
            swatch(l.curve.method, l.curve.shade),
            h("span.tip-name", l.curve.label),
            h("b", number(l.y)),
            h("span.tip-band", l.low !== null ? `${number(l.low, 3)} … ${number(l.high, 3)}` : ""),
          ),
        ),
      lines.length > MOST_LINES ? h("div.tip-more", `and ${lines.length - MOST_LINES} more, which are worse`) : "",
    );
    this.tip.hidden = false;
    const box = this.plot.getBoundingClientRect(),
      at = points[0].canvasx,
      wide = this.tip.offsetWidth;
    this.tip.style.left = Math.max(0, at + 16 + wide < box.width ? at + 16 : at - wide - 16) + "px";
  }

  // Hides the curves whose labels are in options.hidden, and shows the others.
  showHidden() {
    if (this.graph) this.graph.updateOptions({ visibility: this.visibility() });
  }

  visibility() {
    return this.curves.map(c => !this.options.hidden || !this.options.hidden.has(c.label));
  }

  // Arrow keys move from point to point, Escape shows everything again.
  onKey(e) {
    if (!this.graph) return;
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[e.key];
    if (e.key === "Escape") {
      this.tip.hidden = true;
      this.graph.clearSelection();
      if (this.graph.isZoomed()) {
        this.own = false;
        this.graph.resetZoom();
        this.zoom();
      }
      return;
    }
    if (by === undefined) return;
    e.preventDefault();
    const [from, to] = this.graph.xAxisRange(),
      seen = this.data.map(r => r[0]).filter(x => x >= from && x <= to);
    const now = seen.findIndex(x => x === this.at),
      next = Math.max(0, Math.min(seen.length - 1, (now < 0 ? (by > 0 ? -1 : seen.length) : now) + by));
    this.point(seen[next]);
  }

  // Shows the values at one x, as if the mouse was there.
  point(x) {
    this.at = x;
    const row = this.data.find(r => r[0] === x),
      shown = this.visibility(),
      names = this.graph.getLabels().slice(1);
    if (!row) return;
    this.graph.setSelection(this.data.indexOf(row));
    const points = names.map((name, i) => ({
      name,
      yval: row[i + 1] ? row[i + 1][1] : null,
      canvasx: this.graph.toDomXCoord(x),
    }));
    this.showTip(
      null,
      x,
      points.filter((p, i) => shown[i]),
    );
  }

  free() {
    this.size.disconnect();
    if (this.graph) this.graph.destroy();
    this.graph = null;
  }
}
