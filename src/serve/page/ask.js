// ask.js - questions to a trained run: a sentence, a drawing, numbers; and samples of the model.

import { h, number, share, plural, modelName, failure, compareTexts } from "./text.js";
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

// Few particles that count make an answer that is mostly chance.
function doubt(answer) {
  const worth = answer.ess * answer.particles;
  if (answer.log_evidence === null) return h("p", { class: "banner" }, "Every particle is impossible: the model cannot make this datum, or the guide does not find how. Ask with more particles.");
  return worth < 30 && answer.particles > 1 ? h("p", { class: "banner" }, `The answer rests on about ${plural(Math.max(1, Math.round(worth)), "particle")}: ask with more of them, or train longer.`) : null;
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

// Numbers for each field. The form begins with a datum that the model made itself.
const MOST_CELLS = 12; // a field of more numbers is a text
const numbers = text => text.trim().split(/[\s,;]+/).filter(Boolean).map(Number);

function formField(f, ask, range) {
  const say = whole => () => ask(whole);
  if (f.most > 0 || f.dim > MOST_CELLS) {
    const about = f.most ? `up to ${plural(f.most, "item")} of ${plural(f.item, "number")}, one item per line` : plural(f.dim, "number");
    const text = h("textarea", { rows: f.most ? "5" : "3", "aria-label": f.name, placeholder: about, oninput: say(false) });
    return {
      f, element: h("div", { class: "form-row" }, h("span", {}, f.name), h("small", {}, about), text),
      get: () => f.most ? text.value.split("\n").filter(l => l.trim()).map(l => f.item === 1 ? numbers(l)[0] : numbers(l)) : numbers(text.value),
      set: value => { text.value = f.most ? value.map(item => [item].flat().join(" ")).join("\n") : value.join(" "); },
    };
  }
  const cells = Array.from({ length: f.dim }, (_, i) => h("input", { type: "number", step: "any", value: "0", "aria-label": f.dim > 1 ? `${f.name}, number ${i + 1}` : f.name, oninput: () => { if (slide) slide.value = cells[0].value; ask(false); } }));
  const slide = f.dim === 1 && range ? h("input", { type: "range", min: range[0], max: range[1], step: "any", "aria-label": `${f.name}, by a slider`, oninput: e => { cells[0].value = Number(Number(e.target.value).toPrecision(4)); ask(false); } }) : null;
  return {
    f, element: h("div", { class: "form-row" }, h("span", {}, f.name), cells, slide),
    get: () => f.dim === 1 ? Number(cells[0].value) : cells.map(c => Number(c.value)),
    set: value => { [value].flat().forEach((v, i) => { cells[i].value = v; }); if (slide) slide.value = cells[0].value; },
  };
}

// The range of a field of one number in a few samples, a little wider; null if it is always the same.
function rangeOf(samples, name) {
  const all = samples.map(x => x.fields[name]).filter(v => typeof v === "number");
  const low = Math.min(...all), high = Math.max(...all);
  return all.length > 1 && high > low ? [low - 0.1 * (high - low), high + 0.1 * (high - low)].map(v => v.toPrecision(3)) : null;
}

function formWay(info, samples, ask) {
  const fields = info.fields.filter(f => !f.label).map(f => formField(f, ask, rangeOf(samples, f.name)));
  let at = 0;
  const put = () => { const sample = samples[at++ % samples.length]; fields.forEach(x => x.f.name in sample.fields && x.set(sample.fields[x.f.name])); };
  if (samples.length) put();
  return {
    element: h("div", { class: "way" }, fields.map(x => x.element),
      samples.length ? h("p", {}, h("button", { type: "button", class: "plain", id: "fill-form", onclick: () => { put(); ask(true); } }, "Another datum of the model")) : null),
    datum: () => ({ fields: Object.fromEntries(fields.map(x => [x.f.name, x.get()])) }),
  };
}

function testWay(info, ask) {
  const input = h("input", { type: "number", min: "0", max: "1000000", step: "1", value: "0", "aria-label": "number of the test datum", oninput: () => ask(false) });
  const move = by => { input.value = String(Math.max(0, Number(input.value) + by)); ask(true); };
  return { element: h("div", { class: "way row" }, h("label", { class: "field" }, "Test datum ", input), h("button", { type: "button", class: "plain", onclick: () => move(-1) }, "Previous"), h("button", { type: "button", class: "plain", onclick: () => move(1) }, "Next")),
    datum: () => ({ test: Number(input.value) }), particles: info.picture ? 60 : undefined, top: info.picture ? 4 : undefined };
}

// ---- choices that are known: lines such as "z = 3", or "z 2 = 0.5 1" for the third visit

function readGiven(text) {
  return text.split("\n").filter(l => l.trim()).map(line => {
    const parts = line.match(/^\s*(\S+)(?:\s+(\d+))?\s*=\s*(.+)$/), value = parts ? numbers(parts[3]) : [];
    if (!parts || value.length === 0 || value.some(Number.isNaN)) throw new Error(`“${line.trim()}” is not a choice: write SITE = VALUE, or SITE VISIT = VALUE.`);
    return { site: parts[1], visit: Number(parts[2] || 0), value: value.length === 1 ? value[0] : value };
  });
}

function givenPart(ask) {
  const text = h("textarea", { rows: "3", id: "given", "aria-label": "choices that are known", placeholder: "z = 3" });
  let timer = null;
  text.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => ask(true), 500); });
  return {
    element: h("details", { class: "given" }, h("summary", {}, "Choices that are known"), h("p", { class: "quiet" }, "One on each line: SITE = VALUE, or SITE VISIT = VALUE, visits counted from 0. The answer is then about the others."), text),
    read: () => readGiven(text.value),
  };
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
        return h("p", { class: "chip" }, Object.entries(x.fields).map(([k, v]) => `${k} ${Array.isArray(v) ? v.slice(0, 6).map(n => Array.isArray(n) ? `(${n.slice(0, 4).map(m => number(m, 3)).join(" ")}${n.length > 4 ? " …" : ""})` : number(n, 3)).join(" ") + (v.length > 6 ? " …" : "") : number(v, 4)}`).join("  "));
      }));
    } catch (error) {
      body.replaceChildren(failure(error));
    }
  }
  return h("section", { class: "card wide" }, h("div", { class: "card-head" }, h("h2", {}, "Samples"), h("span", { class: "quiet" }, "what the model makes by itself"), h("span", { class: "spring" }), h("button", { type: "button", id: "draw-samples", onclick: draw }, "Draw samples")), body);
}

// ---- the page

function picker(run) {
  const list = [...runs.values()].filter(r => r.has_folder && r.iteration > 0);
  const models = [...new Set(list.map(r => r.model))].sort(compareTexts);
  return h("select", { "aria-label": "run", onchange: e => { location.hash = `#/ask/${e.target.value}`; } }, models.map(m => h("optgroup", { label: modelName(m) }, list.filter(r => r.model === m).sort((a, b) => compareTexts(a.name, b.name)).map(r => h("option", { value: r.id, selected: run && r.id === run.id }, r.name)))));
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
    const samples = side || info.text ? [] : await post(`/api/runs/${run.id}/sample`, { n: 20, seed: 1 }).then(a => a.samples, () => []);
    const out = h("div", { class: "answer", "aria-live": "polite" });
    let way = null;
    const ways = [], given = givenPart(whole => send(whole));
    const ask = whole => send(whole);
    if (side) ways.push(["Draw", () => canvasWay(info, fields[0], side, ask)]);
    else if (info.text) ways.push(["Sentence", () => sentenceWay(info, ask)]);
    else ways.push(["Numbers", () => formWay(info, samples, ask)]);
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
        const list = given.read();
        const answer = await post(`/api/runs/${run.id}/infer`, { ...datum, ...(list.length ? { given: list } : {}), particles: whole || !way.particles ? K : Math.min(K, way.particles), top: way.top ?? 12, marginals: true }, controller.signal);
        show(answer);
      } catch (error) {
        if (error.name !== "AbortError") out.replaceChildren(failure(error));
      }
    }

    function show(answer) {
      const colour = methodColour(run.method), best = answer.answers[0];
      const picture = best && best.reports.picture ? square(best.reports.picture.length) : 0;
      if (best && way.found) way.found(lists(best.reports.where));
      const parts = [evidence(answer), best && best.reports.tree && answer.exact_log_evidence === null ? null : doubt(answer)];
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
      h("div", { class: "ask-grid" + (side ? " drawn" : "") }, h("section", { class: "card question" }, h("div", { class: "card-head" }, tabs, h("span", { class: "spring" }), h("label", { class: "field" }, "Particles ", particles)), place, given.element), h("section", { class: "card result" }, out)),
      samplePart(run, info, methodColour(run.method)));
    again = () => send(true);
    choose(0);
  }
  open();
  return { free() { if (controller) controller.abort(); }, repaint: () => again() };
}
