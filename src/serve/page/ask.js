// ask.js - questions to a trained run: a sentence, a drawing, numbers; and samples of the model.

import { h, number, share, plural, empty, failure, compareTexts, keyName } from "./text.js";
import { get, post, runs, methodStyle } from "./api.js";
import { methodColour, swatch } from "./charts.js";
import { drawTree, drawBars, drawPicture, drawBoxes } from "./drawings.js";
import { nothing } from "./runs.js";

const square = n => { const side = Math.round(Math.sqrt(n)); return side * side === n && side >= 8 ? side : 0; };
const lists = value => Array.isArray(value) ? (Array.isArray(value[0]) ? value : [value]) : [];

// ---- answers

function evidence(answer) {
  const item = (name, value, title) => h("div", { title: title || null }, h("dt", {}, name), h("dd", {}, value));
  return h("dl", { class: "evidence" },
    item("log p(x)", answer.log_evidence === null ? "−∞" : number(answer.log_evidence, 5), "estimated by the particles' weights"),
    "exact_log_evidence" in answer ? item("exactly", answer.exact_log_evidence === null ? "−∞" : number(answer.exact_log_evidence, 5), "by the model's exact parser") : null,
    item("particles", number(answer.particles)), item("effective", number(Math.round(answer.ess * answer.particles)), "as many independent draws of the posterior they are worth"));
}

function probabilities(answer) {
  const row = (name, value, title) => value === undefined ? null : [h("dt", { title }, name), h("dd", {}, share(value))];
  return h("dl", { class: "three" }, row("posterior", answer.posterior, "by importance weights"), row("exact", answer.exact, "by the exact parser"), row("guide", answer.guide, "share of the guide's particles"));
}

function treeAnswers(answer, colour, sentence) {
  const words = sentence.trim().split(/\s+/).join(" ");
  const good = answer.answers.filter(a => a.posterior > 0.0005 || a.exact > 0.0005 || (a.posterior === null && a.guide > 0.01));
  const shown = good.length ? good : answer.answers.slice(0, 3);
  const rest = answer.answers.filter(a => !shown.includes(a)).reduce((sum, a) => sum + a.guide, 0);
  return [
    answer.exact_log_evidence === null ? h("p", { class: "banner" }, "This sentence is impossible under the model. The guide proposes:") : null,
    h("div", { class: "trees" }, shown.map((a, i) => h("figure", { class: "tree-card" + (i === 0 ? " best" : "") }, h("figcaption", {}, probabilities(a), a.reports.sentence && a.reports.sentence !== words ? h("p", { class: "quiet" }, a.reports.sentence) : null), drawTree(a.reports.tree, colour)))),
    rest > 0 ? h("p", { class: "quiet" }, `${share(rest)} of the guide's particles are other trees, which are impossible or less probable.`) : null,
  ];
}

const isWhole = m => m.values !== undefined;

// The distribution of every choice and number.
function marginals(answer, colour) {
  const list = (answer.marginals || []).filter(m => m.posterior > 0.0005 || m.guide > 0.0005);
  const name = m => (m.site ?? m.report) + (m.visit ? ` (visit ${m.visit + 1})` : "");
  return h("div", { class: "marginals" }, list.slice(0, 24).map(m => h("section", { class: "marginal" }, h("h3", {}, name(m), m.posterior < 0.9995 ? h("small", {}, ` visited with probability ${share(m.posterior)}`) : null),
    isWhole(m) ? drawBars(m.values.filter(v => v.posterior > 0.0005 || v.guide > 0.0005).map(v => ({ label: number(v.value), values: [{ name: "posterior", value: v.posterior, colour }, { name: "guide", value: v.guide, colour: "var(--faint)" }] })), 1)
      : h("p", {}, m.mean.map((x, i) => `${number(x, 3)} ± ${number(m.sd[i], 2)}`).join(", ")))),
    list.some(isWhole) ? h("p", { class: "bar-key" }, [["posterior", colour], ["guide", "var(--faint)"]].map(([n, c]) => { const dot = h("i"); dot.style.background = c; return h("span", {}, dot, n); })) : null);
}

function pictureAnswers(answer, side) {
  return h("div", { class: "pictures" }, answer.answers.slice(0, 4).map((a, i) => h("figure", { class: i === 0 ? "best" : null },
    drawPicture(a.reports.picture, side, lists(a.reports.where), "what the model makes of it"), h("figcaption", {}, i === 0 ? "most probable, " : "", share(a.posterior)))));
}

// ---- ways to give a datum. Each returns {element, datum()}, and calls `ask` when the datum has changed.

const sentences = ["astronomers saw stars with ears", "stars saw astronomers with telescopes", "ears saw saw with astronomers with stars"];

function sentenceWay(info, ask) {
  const input = h("input", { type: "text", id: "sentence", class: "large", value: sentences[0], "aria-label": "sentence", autocomplete: "off", spellcheck: "false", maxlength: "400" });
  let timer = null;
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => ask(false), 350); });
  input.addEventListener("keydown", e => { if (e.key === "Enter") ask(true); });
  return {
    element: h("div", { class: "way" }, input, info.model === "pcfg" ? h("p", { class: "examples" }, "For example: ", sentences.map(t => h("button", { type: "button", class: "link", onclick: () => { input.value = t; ask(true); } }, t))) : null),
    datum: () => input.value.trim() ? { text: input.value.trim() } : null, text: () => input.value,
  };
}

// A canvas on which one draws white on black. The drawing is scaled down to the model's pixels.
function canvasWay(info, field, side, ask) {
  const size = 400, canvas = h("canvas", { width: size, height: size, class: "pad", tabindex: "0", "aria-label": "draw digits here with the mouse or a finger" });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const ink = new OffscreenCanvas(size, size), pen = ink.getContext("2d", { willReadFrequently: true });
  let last = null, boxes = [], timer = null, asked = 0;
  const thick = size / side * (side >= 40 ? 2.3 : 2.2);

  function paint() {
    context.drawImage(ink, 0, 0);
    drawBoxes(context, boxes, size);
    if (!drawn()) {
      context.fillStyle = "#8a949e";
      context.font = `16px ${getComputedStyle(document.body).fontFamily}`;
      context.textAlign = "center";
      context.fillText(side >= 40 ? "Draw one or two digits, each about a third as high" : "Draw a digit", size / 2, size / 2);
    }
  }
  let any = false;
  const drawn = () => any;
  function clear() {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, size, size);
    any = false;
    boxes = [];
    paint();
  }
  const point = e => { const box = canvas.getBoundingClientRect(); return [(e.clientX - box.left) * size / box.width, (e.clientY - box.top) * size / box.height]; };
  function stroke(from, to) {
    pen.strokeStyle = "#fff";
    pen.lineWidth = thick;
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(to[0] + 0.01, to[1]);
    pen.stroke();
    any = true;
    boxes = [];
    paint();
    const now = performance.now(); // while one draws, about six times a second
    clearTimeout(timer);
    if (now - asked > 160) { asked = now; ask(false); }
    else timer = setTimeout(() => { asked = performance.now(); ask(false); }, 160);
  }
  canvas.addEventListener("pointerdown", e => { e.preventDefault(); canvas.setPointerCapture(e.pointerId); last = point(e); stroke(last, last); });
  canvas.addEventListener("pointermove", e => { if (!last) return; const next = point(e); stroke(last, next); last = next; });
  const end = () => { if (last) { last = null; clearTimeout(timer); ask(true); } };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  clear();

  function grey() {
    const small = new OffscreenCanvas(side, side), to = small.getContext("2d", { willReadFrequently: true });
    to.imageSmoothingQuality = "high";
    to.drawImage(ink, 0, 0, side, side);
    const data = to.getImageData(0, 0, side, side).data;
    return Array.from({ length: side * side }, (_, i) => data[4 * i]);
  }
  return {
    element: h("div", { class: "way" }, canvas, h("p", {}, h("button", { type: "button", class: "plain", onclick: () => { clear(); ask(true); } }, "Clear"))),
    datum: () => !drawn() ? null : info.picture ? { picture: { wide: side, high: side, grey: grey() } } : { fields: { [field.name]: grey().map(g => g > 127 ? 1 : 0) } },
    found(list) { boxes = list; paint(); }, particles: info.picture ? 60 : 100, top: 4,
  };
}

// Numbers for each field.
function formWay(info, ask) {
  const inputs = info.fields.filter(f => !f.label).map(f => {
    const several = f.most > 0 || f.dim > 1;
    const input = several ? h("textarea", { rows: "3", "aria-label": f.name, placeholder: f.most ? `up to ${f.most} items of ${plural(f.item, "number")}, one item per line` : plural(f.dim, "number") }, f.most ? "" : new Array(Math.min(f.dim, 2000)).fill(0).join(" "))
      : h("input", { type: "number", step: "any", value: info.model === "gmm" ? "30" : "0", "aria-label": f.name });
    const slide = info.model === "gmm" && !several ? h("input", { type: "range", min: "-20", max: "210", step: "1", value: "30", "aria-label": `${f.name}, by a slider`, oninput: e => { input.value = e.target.value; ask(false); } }) : null;
    input.addEventListener("input", () => { if (slide) slide.value = input.value; ask(false); });
    return { f, input, element: h("label", { class: "form-row" }, h("span", {}, f.name), input, slide) };
  });
  const numbers = text => text.trim().split(/[\s,;]+/).filter(Boolean).map(Number);
  function value({ f, input }) {
    if (f.most) return input.value.split("\n").filter(l => l.trim()).map(numbers);
    return f.dim === 1 ? Number(input.value) : numbers(input.value);
  }
  return { element: h("div", { class: "way" }, inputs.map(i => i.element)), datum: () => ({ fields: Object.fromEntries(inputs.map(i => [i.f.name, value(i)])) }) };
}

function testWay(info, ask) {
  const input = h("input", { type: "number", min: "0", max: "1000000", step: "1", value: "0", "aria-label": "number of the test datum", oninput: () => ask(false) });
  const move = by => { input.value = String(Math.max(0, Number(input.value) + by)); ask(true); };
  return { element: h("div", { class: "way row" }, h("label", { class: "field" }, "Test datum ", input), h("button", { type: "button", class: "plain", onclick: () => move(-1) }, "Previous"), h("button", { type: "button", class: "plain", onclick: () => move(1) }, "Next")),
    datum: () => ({ test: Number(input.value) }), particles: info.picture ? 60 : undefined, top: info.picture ? 4 : undefined };
}

// ---- samples

function samplePart(run, info, colour) {
  const body = h("div", { class: "samples" });
  let seed = 1;
  async function draw() {
    try {
      const { samples } = await post(`/api/runs/${run.id}/sample`, { n: info.fields.some(f => f.dim > 100) ? 6 : 12, seed: seed++ });
      body.replaceChildren(...samples.map(x => {
        const side = x.reports.picture ? square(x.reports.picture.length) : 0;
        if (side) return h("figure", {}, drawPicture(x.reports.picture, side, lists(x.reports.where), "sample"));
        if (x.reports.tree) return h("details", { class: "sentence" }, h("summary", {}, x.reports.sentence), drawTree(x.reports.tree, colour));
        return h("p", { class: "chip" }, Object.entries(x.fields).map(([k, v]) => `${k} ${Array.isArray(v) ? v.slice(0, 6).map(n => number(n, 3)).join(" ") + (v.length > 6 ? " …" : "") : number(v, 4)}`).join("  "));
      }));
    } catch (error) {
      body.replaceChildren(failure(error));
    }
  }
  return h("section", { class: "card wide" }, h("div", { class: "card-head" }, h("h2", {}, "Samples"), h("span", { class: "quiet" }, "what the model makes by itself"), h("span", { class: "spring" }), h("button", { type: "button", id: "draw-samples", onclick: draw }, "Draw")), body);
}

// ---- the page

function picker(run) {
  const list = [...runs.values()].filter(r => r.has_folder && r.iteration > 0);
  const models = [...new Set(list.map(r => r.model))].sort(compareTexts);
  return h("select", { "aria-label": "run", onchange: e => { location.hash = `#/ask/${e.target.value}`; } }, models.map(m => h("optgroup", { label: m }, list.filter(r => r.model === m).sort((a, b) => compareTexts(a.name, b.name)).map(r => h("option", { value: r.id, selected: run && r.id === run.id }, r.name)))));
}

export function showAsk(main, rest) {
  const able = [...runs.values()].filter(r => r.has_folder && r.iteration > 0);
  const run = runs.get(rest[0]) || able.find(r => r.model === "pcfg") || able.find(r => r.model === "air") || able[0];
  const nothingToFree = { free() {}, repaint() {} };
  if (!run) { main.replaceChildren(h("div", { class: "head" }, h("h1", {}, "Ask")), nothing()); return nothingToFree; }
  const body = h("div", { class: "ask" }, h("p", { class: "quiet" }, "Opening the run…"));
  main.replaceChildren(h("div", { class: "head" }, h("h1", {}, "Ask"), h("label", { class: "field grow" }, "Run ", picker(run)), h("span", { class: "spring" }), h("span", { class: "method" }, swatch(run.method), methodStyle(run.method).name), h("a", { class: "button plain", href: `#/run/${run.id}` }, "Curves")), body);
  let again = () => {}, controller = null;

  async function open() {
    let info;
    try {
      info = await get(`/api/runs/${run.id}/ask`);
    } catch (error) {
      body.replaceChildren(failure(error));
      return;
    }
    const fields = info.fields.filter(f => !f.label), side = fields.length === 1 ? square(fields[0].dim) : 0;
    const out = h("div", { class: "answer", "aria-live": "polite" });
    let way = null;
    const ways = [];
    const ask = whole => send(whole);
    if (side && (info.picture || fields[0].dim >= 64)) ways.push(["Draw", () => canvasWay(info, fields[0], side, ask)]);
    else if (info.text) ways.push(["Sentence", () => sentenceWay(info, ask)]);
    else ways.push(["Numbers", () => formWay(info, ask)]);
    ways.push(["Test data", () => testWay(info, ask)]);
    const particles = h("input", { type: "number", min: "1", max: String(info.max_particles), step: "1", "aria-label": "particles", onchange: () => ask(true) });
    const place = h("div", {}), tabs = h("div", { class: "set", role: "tablist" });

    async function send(whole) {
      const datum = way.datum();
      if (!datum) { out.replaceChildren(h("p", { class: "quiet" }, side ? "The answer appears while you draw." : "Type something.")); return; }
      if (controller) controller.abort();
      controller = new AbortController();
      const K = Math.max(1, Math.min(info.max_particles, Number(particles.value) || 1000));
      try {
        const answer = await post(`/api/runs/${run.id}/infer`, { ...datum, particles: whole || !way.particles ? K : Math.min(K, way.particles), top: way.top ?? 12, marginals: true }, controller.signal);
        show(answer);
      } catch (error) {
        if (error.name !== "AbortError") out.replaceChildren(failure(error));
      }
    }

    function show(answer) {
      const colour = methodColour(run.method), best = answer.answers[0];
      const picture = best && best.reports.picture ? square(best.reports.picture.length) : 0;
      if (best && way.found) way.found(lists(best.reports.where));
      const parts = [evidence(answer)];
      if (best && best.reports.tree) parts.push(...treeAnswers(answer, colour, way.text ? way.text() : best.reports.sentence || ""));
      else if (picture) {
        const seen = !way.found && best.reports.seen ? h("figure", {}, drawPicture(best.reports.seen, picture, lists(best.reports.where), "the datum"), h("figcaption", {}, "the datum")) : null;
        const row = pictureAnswers(answer, picture);
        if (seen) row.prepend(seen);
        parts.push(h("h3", {}, "What the model makes of it"), row, marginals({ marginals: answer.marginals.filter(m => m.report).map(m => m.report === "n" ? { ...m, report: "number of objects" } : m) }, colour));
      } else parts.push(marginals(answer, colour));
      out.replaceChildren(...parts.flat().filter(Boolean));
    }

    function choose(i) {
      [...tabs.children].forEach((t, k) => t.setAttribute("aria-selected", String(k === i)));
      way = ways[i][1]();
      particles.value = String(way.particles ? 5 * way.particles : 1000);
      place.replaceChildren(way.element);
      send(true);
    }
    tabs.append(...ways.map(([name], i) => h("button", { type: "button", role: "tab", class: "toggle", onclick: () => choose(i) }, name)));
    body.replaceChildren(h("p", { class: "quiet" }, `${info.help}; iteration ${number(info.iteration)}.`),
      h("div", { class: "ask-grid" + (side ? " drawn" : "") }, h("section", { class: "card question" }, h("div", { class: "card-head" }, tabs, h("span", { class: "spring" }), h("label", { class: "field" }, "Particles ", particles)), place), h("section", { class: "card result" }, out)),
      samplePart(run, info, methodColour(run.method)));
    again = () => send(true);
    choose(0);
  }
  open();
  return { free() { if (controller) controller.abort(); }, repaint: () => again() };
}
