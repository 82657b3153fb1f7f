// charts.js - curves with bands, drawn by dygraphs, in the colours of the figures.

import { h, number, duration, metricName } from "./text.js";
import { methodStyle } from "./api.js";

// ---- colours

const channels = colour => [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
const hex = rgb => "#" + rgb.map(c => Math.round(Math.min(255, Math.max(0, c))).toString(16).padStart(2, "0")).join("");
const mix = (a, b, share) => hex(channels(a).map((c, i) => c + (channels(b)[i] - c) * share));

function luminance(colour) {
  const [r, g, b] = channels(colour).map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export const isDark = () => document.documentElement.dataset.theme === "dark" ||
  (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);

// The method's colour of the figures; on dark ground, lighter until it can be seen (contrast 4 with the panel).
export function methodColour(method, shade = 0) {
  let colour = methodStyle(method).colour;
  if (!isDark()) return mix(colour, "#ffffff", shade);
  if (luminance(colour) < 0.001) return "#e7ebef"; // black: the ink
  for (let i = 0; i < 40 && (luminance(colour) + 0.05) / (luminance("#1b2026") + 0.05) < 4; i++) colour = mix(colour, "#ffffff", 0.08);
  return mix(colour, "#1b2026", shade * 0.75);
}

export function swatch(method, shade = 0) {
  const style = methodStyle(method);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  line.setAttribute("class", "swatch");
  line.setAttribute("viewBox", "0 0 22 8");
  line.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M1 4H21");
  path.setAttribute("stroke", methodColour(method, shade));
  path.setAttribute("stroke-width", "2.6");
  if (style.dash.length) path.setAttribute("stroke-dasharray", style.dash.join(" "));
  line.append(path);
  return line;
}

const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- axes

export function axisNumber(x) {
  const size = Math.abs(x);
  if (x === 0) return "0";
  if (size >= 1e6) return number(x / 1e6, 4) + " M";
  if (size >= 1e4) return number(x / 1e3, 4) + " k";
  if (size < 1e-3) return x.toExponential(0).replace("e-", "e−").replace("-", "−");
  return number(x, 4);
}

// ---- a chart

// The library's own legend sets styles by attribute, which the content-security policy forbids; the page has its own.
const plugins = () => Dygraph.PLUGINS.splice(0, Dygraph.PLUGINS.length, ...Dygraph.PLUGINS.filter(p => p !== Dygraph.Plugins.Legend));

// Rows for dygraphs: all x of all curves, with [low, median, high] or null for each curve.
function merge(curves, logY, logX) {
  const rows = new Map();
  const good = v => v !== null && v !== undefined && (!logY || v > 0);
  curves.forEach((curve, c) => curve.x.forEach((x, i) => {
    if (x === null || (logX && x <= 0) || !good(curve.y[i])) return;
    if (!rows.has(x)) rows.set(x, new Array(curves.length).fill(null));
    const low = curve.low && good(curve.low[i]) ? curve.low[i] : curve.y[i];
    const high = curve.high && good(curve.high[i]) ? curve.high[i] : curve.y[i];
    rows.get(x)[c] = [low, curve.y[i], high];
  }));
  return [...rows.entries()].sort((a, b) => a[0] - b[0]).map(([x, values]) => [x, ...values]);
}

// curves: [{label, method, shade, x, y, low, high, count}]. options: {title, metric, xName, unit, logX, logY, height,
// hidden: Set of labels, onZoom(from, to) or onZoom(null)}. The chart can be given new curves without losing its zoom.
export class Chart {
  constructor(options) {
    this.options = options;
    this.plot = h("div", { class: "plot", role: "img", tabindex: "0" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.title = h("figcaption", {}, options.title || metricName(options.metric || ""));
    this.note = h("span", { class: "chart-note" });
    this.element = h("figure", { class: "chart" }, h("div", { class: "chart-head" }, this.title, this.note, options.tools || null),
      h("div", { class: "plot-box" }, this.plot, this.tip),
      h("p", { class: "x-name" }, options.xName === "seconds" ? "training time (s)" : "iteration"));
    this.element.style.setProperty("--chart-height", (options.height || 230) + "px");
    this.graph = null;
    this.curves = [];
    this.zoomed = false;
    this.size = new ResizeObserver(() => this.graph && this.plot.clientWidth > 0 && this.graph.resize());
    this.size.observe(this.plot);
  }

  set(curves) {
    this.curves = curves;
    const { logX, logY } = this.options;
    const data = merge(curves, logY, logX);
    const bands = curves.some(c => c.low);
    this.note.textContent = this.zoomed ? "double-click to see everything" : "";
    if (data.length === 0) return this.blank();
    this.plot.setAttribute("aria-label", this.describe());
    const settings = {
      file: data,
      labels: [" x ", ...curves.map((c, i) => c.label + "\u200b".repeat(i))], // dygraphs wants them to differ
      colors: curves.map(c => c.colour || methodColour(c.method, c.shade)),
      visibility: curves.map(c => !this.options.hidden || !this.options.hidden.has(c.label)),
      series: Object.fromEntries(curves.map((c, i) => [c.label + "\u200b".repeat(i), {
        strokePattern: methodStyle(c.method).dash.length && c.method ? methodStyle(c.method).dash.map(d => 1.3 * d) : null,
        drawPoints: c.x.length < 2, pointSize: 3,
      }])),
      customBars: true,
      fillAlpha: bands ? (isDark() ? 0.22 : 0.16) : 0,
      logscale: !!logY,
      axisLineColor: variable("--line-strong"),
      gridLineColor: variable("--grid"),
    };
    if (this.graph && this.graphLogX === !!logX && this.graphBands === bands) this.graph.updateOptions(settings);
    else this.build(settings, bands);
  }

  build(settings, bands) {
    if (this.graph) this.graph.destroy();
    this.plot.replaceChildren();
    this.graphLogX = !!this.options.logX;
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
      xRangePad: 6,
      yRangePad: 8,
      digitsAfterDecimal: 6,
      axes: {
        x: { logscale: this.graphLogX, axisLabelFormatter: axisNumber, pixelsPerLabel: 80, drawGrid: false },
        y: { axisLabelFormatter: axisNumber, axisLabelWidth: 56, pixelsPerLabel: 32, gridLinePattern: null },
      },
      highlightCallback: (e, x, points) => this.showTip(e, x, points),
      unhighlightCallback: () => { this.tip.hidden = true; },
      zoomCallback: (from, to) => this.zoom(from, to),
    });
  }

  zoom() {
    this.zoomed = this.graph.isZoomed();
    this.note.textContent = this.zoomed ? "double-click to see everything" : "";
    if (!this.options.onZoom) return;
    const [from, to] = this.graph.xAxisRange();
    this.options.onZoom(this.zoomed ? from : null, to, this);
  }

  blank() {
    if (this.graph) this.graph.destroy();
    this.graph = null;
    const log = this.options.logY && this.curves.some(c => c.y.some(v => v !== null));
    this.plot.replaceChildren(h("p", { class: "nothing" }, log ? "No number is above 0: a logarithmic axis cannot show them." : "Nothing was measured yet."));
  }

  describe() {
    const parts = this.curves.filter(c => c.y.length).map(c => `${c.label}: ${number(c.y[c.y.length - 1])}`);
    return `${this.title.textContent}. Last values: ${parts.join("; ")}.`;
  }

  showTip(e, x, points) {
    const lines = points.filter(p => p.yval !== null && !Number.isNaN(p.yval)).map(p => {
      const at = this.graph.indexFromSetName(p.name) - 1, curve = this.curves[at];
      const i = curve.x.indexOf(x), band = curve.low && curve.count && curve.count[i] > 1;
      return { curve, y: p.yval, low: band ? curve.low[i] : null, high: band ? curve.high[i] : null, n: curve.count ? curve.count[i] : 0 };
    }).sort((a, b) => b.y - a.y);
    if (lines.length === 0) return;
    this.tip.replaceChildren(
      h("div", { class: "tip-x" }, this.options.xName === "seconds" ? duration(x) : `iteration ${number(x)}`),
      ...lines.slice(0, 14).map(l => h("div", { class: "tip-row" }, swatch(l.curve.method, l.curve.shade), h("span", { class: "tip-name" }, l.curve.label),
        h("b", {}, number(l.y)), h("span", { class: "tip-band" }, l.low !== null ? `${number(l.low, 3)} … ${number(l.high, 3)}` : ""))));
    this.tip.hidden = false;
    const box = this.plot.getBoundingClientRect(), at = points[0].canvasx, wide = this.tip.offsetWidth;
    this.tip.style.left = Math.max(0, at + 16 + wide < box.width ? at + 16 : at - wide - 16) + "px";
  }

  hide(label, hidden) {
    if (!this.graph) return;
    this.curves.forEach((c, i) => c.label === label && this.graph.setVisibility(i, !hidden));
  }

  free() {
    this.size.disconnect();
    if (this.graph) this.graph.destroy();
    this.graph = null;
  }
}
