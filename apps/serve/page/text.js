// text.js - numbers, times and names: how everything on the page is written.

const minus = text => text.replaceAll("-", "−");
const grouped = new Intl.NumberFormat("en-US"); // toLocaleString makes a new one each time, which is slow

// A number in few characters: 0.0123, 1.2 × 10⁻⁵ as 1.2e−5, 12,300.
export function number(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e15) return minus(grouped.format(x));
  if (size < 1e-4 || size >= 1e7)
    return minus(
      x
        .toExponential(Math.max(0, digits - 2))
        .replace(/\.?0+e/, "e")
        .replace("e+", "e"),
    );
  const rounded = Number(x.toPrecision(digits));
  return minus(size >= 1e4 ? grouped.format(rounded) : String(rounded));
}

// The same for a column of a table, where −11 stands as −11.00 below −11.06.
export function measured(x) {
  if (x === null || x === undefined || Number.isInteger(x)) return number(x);
  const size = Math.abs(x);
  return size < 1e-3 || size >= 1e4 ? number(x) : minus(x.toPrecision(4));
}

// A probability with three decimals; below them "<0.001".
export function share(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (x > 0 && x < 0.0005) return "<0.001";
  return x.toFixed(3);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.max(1, Math.round(1000 * seconds))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds >= 600 && seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  if (seconds < 86400)
    return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

export function moment(text, dateStyle = "medium") {
  const date = text ? new Date(text) : null;
  if (!date || Number.isNaN(date.getTime())) return "–";
  return date.toLocaleString(undefined, { dateStyle, timeStyle: "short" });
}

// The short name of a key of the configuration.
export const keyName = key => (key === "particles" ? "K" : key.replaceAll("_", " "));
export const metricName = metric => metric.replaceAll("_", " ");

// The name of a model; that of a shared object is its file's, without folder and ending.
export const modelName = model => (model || "").replace(/^.*\//, "").replace(/\.so$/, "");

// Metrics that the library adds to those of every model, and units.
const usual = {
  ess: "effective number of particles, as a share of K",
  kl: "KL(q‖p): how far the guide is from the posterior",
  log_evidence: "log p(x), estimated, mean over the test data",
  grad_std: "standard deviation of the gradient of phi",
};
const units = { kl: "nats", log_evidence: "nats", log_p_exact: "nats" };

// `models`: what the server says of the metrics of models that are built in.
export function metricHelp(metric, model, models = {}) {
  return (models[model] || {})[metric] || usual[metric] || "";
}
// Whether a smaller value of a metric is a better one.
export const lowerIsBetter = metric => /error|loss|^(final_)?kl$|grad_std|truncated/.test(metric);
export const metricUnit = metric => units[metric] || "";

// "a2" before "a10".
const collator = new Intl.Collator("en", { numeric: true });
export const compareTexts = (a, b) => collator.compare(String(a), String(b));

export function plural(n, one, many) {
  return `${grouped.format(n)} ${n === 1 ? one : many || one + "s"}`;
}
