// ask.js - questions to a trained run: a sentence, a drawing, numbers; and samples of the model.

import { h, failure, readAddress, writeAddress } from "./dom.js";
import { number, modelName, compareTexts } from "./text.js";
import { get, post, runs, methodStyle } from "./api.js";
import { methodColour, swatch } from "./charts.js";
import { drawTree, drawPicture } from "./drawings.js";
import { drawAnswer, square, lists } from "./answers.js";
import { sentenceForm, canvasForm, numbersForm, testForm, givenPart } from "./forms.js";
import { nothing } from "./runs.js";

// ---- samples

// A number, or the first ones of a field of many.
function brief(value, digits = 4, most = 6) {
  if (!Array.isArray(value)) return number(value, digits);
  const items = value.slice(0, most).map(v => (Array.isArray(v) ? `(${brief(v, 3, 4)})` : brief(v, 3)));
  return items.join(" ") + (value.length > most ? " …" : "");
}

function samplePart(run, info, colour) {
  const body = h("div.samples");
  let seed = 1;
  async function draw() {
    try {
      const { samples } = await post(`/api/runs/${run.id}/sample`, {
        n: info.fields.some(f => f.dim > 100) ? 6 : 12,
        seed: seed++,
      });
      body.replaceChildren(
        ...samples.map(x => {
          const side = x.reports.picture ? square(x.reports.picture.length) : 0;
          if (side) return h("figure", drawPicture(x.reports.picture, side, lists(x.reports.where), "sample"));
          if (x.reports.tree)
            return h("details.sentence", h("summary", x.reports.sentence), drawTree(x.reports.tree, colour));
          return h(
            "p.chip",
            Object.entries(x.fields)
              .map(([k, v]) => `${k} ${brief(v)}`)
              .join("  "),
          );
        }),
      );
    } catch (error) {
      body.replaceChildren(failure(error));
    }
  }
  return h(
    "section.card.wide",
    h(
      "div.card-head",
      h("h2", "Samples"),
      h("span.quiet", "what the model makes by itself"),
      h("span.spring"),
      h("button", { id: "draw-samples", onclick: draw }, "Draw samples"),
    ),
    body,
  );
}

// ---- the page

function picker(run) {
  const list = [...runs.values()].filter(r => r.has_folder && r.iteration > 0);
  const models = [...new Set(list.map(r => r.model))].sort(compareTexts);
  return h(
    "select",
    {
      "aria-label": "run",
      onchange: e => {
        location.hash = `#/ask/${e.target.value}`;
      },
    },
    models.map(m =>
      h(
        "optgroup",
        { label: modelName(m) },
        list
          .filter(r => r.model === m)
          .sort((a, b) => compareTexts(a.name, b.name))
          .map(r => h("option", { value: r.id, selected: run && r.id === run.id }, r.name)),
      ),
    ),
  );
}

const defaults = { form: "", datum: "", given: "", particles: "" };
const MOST_LETTERS = 1500; // of a datum that is kept in the address

// The question and its answer, which is asked again whenever the datum changes. Models of one square field are drawn on. `view` is
// the question of the address.
function questionPart(run, info, samples, view) {
  const fields = info.fields.filter(f => !f.label),
    side = fields.length === 1 ? square(fields[0].dim) : 0;
  const out = h("div.answer", { "aria-live": "polite" });
  let form = null,
    controller = null;
  const forms = [],
    given = givenPart(whole => send(whole));
  const ask = whole => send(whole);
  if (side) forms.push(["Draw", () => canvasForm(info, fields[0], side, ask)]);
  else if (info.text) forms.push(["Sentence", () => sentenceForm(info, ask)]);
  else forms.push(["Numbers", () => numbersForm(info, samples, ask)]);
  forms.push(["Test data", () => testForm(info, ask)]);
  const particles = h("input", {
    type: "number",
    min: "1",
    max: String(info.max_particles),
    step: "1",
    "aria-label": "particles",
    onchange: () => ask(true),
  });
  const place = h("div"),
    tabs = h("div.set", { role: "tablist" });

  async function send(whole) {
    const datum = form.datum();
    if (controller) controller.abort(); // an answer to an older datum must not take the place of what follows
    if (!datum) {
      out.replaceChildren(h("p.quiet", side ? "The answer appears while you draw." : "Type something."));
      return;
    }
    controller = new AbortController();
    const K = Math.max(1, Math.min(info.max_particles, Number(particles.value) || 1000));
    try {
      keep(datum);
      const list = given.read();
      const answer = await post(
        `/api/runs/${run.id}/infer`,
        {
          ...datum,
          ...(list.length ? { given: list } : {}),
          particles: whole || !form.particles ? K : Math.min(K, form.particles),
          top: form.top ?? 12,
          marginals: true,
        },
        controller.signal,
      );
      show(answer);
    } catch (error) {
      if (error.name !== "AbortError") out.replaceChildren(failure(error));
    }
  }

  function keep(datum) {
    const text = form.set ? JSON.stringify(datum) : "";
    view.datum = text.length > MOST_LETTERS ? "" : text;
    view.given = given.text.value;
    view.particles = particles.value === usual() ? "" : particles.value;
    writeAddress(`ask/${run.id}`, view, defaults);
  }
  const usual = () => String(form.particles ? 5 * form.particles : 1000);

  // Puts the question of the address into the form.
  function restore() {
    try {
      if (view.datum && form.set) form.set(JSON.parse(view.datum));
    } catch {
      /* an address that was cut off */
    }
    given.text.value = view.given;
    if (view.given) given.element.open = true;
    if (Number(view.particles) > 0) particles.value = view.particles;
  }

  function show(answer) {
    const best = answer.answers[0];
    if (best && form.found) form.found(lists(best.reports.where));
    out.replaceChildren(...drawAnswer(answer, methodColour(run.method), form));
  }

  function choose(i, first) {
    [...tabs.children].forEach((t, k) => t.setAttribute("aria-selected", String(k === i)));
    form = forms[i][1]();
    particles.value = usual();
    if (first) restore();
    view.form = i ? String(i) : "";
    place.replaceChildren(form.element);
    send(true);
  }
  tabs.append(...forms.map(([name], i) => h("button.toggle", { role: "tab", onclick: () => choose(i) }, name)));
  const question = h(
    "section.card.question",
    h("div.card-head", tabs, h("span.spring"), h("label.field", "Particles ", particles)),
    place,
    given.element,
  );
  choose(view.form in forms ? Number(view.form) : 0, true);
  return {
    element: h("div.ask-grid" + (side ? ".drawn" : ""), question, h("section.card.result", out)),
    again: () => send(true),
    free: () => controller && controller.abort(),
  };
}

// A form begins with data that the model made; a sentence and a drawing do not need them.
async function samplesFor(run, info) {
  const fields = info.fields.filter(f => !f.label);
  if (info.text || (fields.length === 1 && square(fields[0].dim))) return [];
  return post(`/api/runs/${run.id}/sample`, { n: 20, seed: 1 }).then(
    answer => answer.samples,
    () => [],
  );
}

export function showAsk(main, rest, parameters) {
  const view = readAddress(parameters, defaults);
  const able = [...runs.values()].filter(r => r.has_folder && r.iteration > 0);
  const run = runs.get(rest[0]) || able.find(r => r.model === "pcfg") || able.find(r => r.model === "air") || able[0];
  if (!run) {
    main.replaceChildren(h("div.head", h("h1", "Ask")), nothing());
    return { free() {}, repaint() {} };
  }
  const body = h("div.ask", h("p.quiet", "Opening the run…"));
  main.replaceChildren(
    h(
      "div.head",
      h("h1", "Ask"),
      h("label.field.grow", "Run ", picker(run)),
      h("span.spring"),
      h("span.method", swatch(run.method), methodStyle(run.method).name),
      h("a.button.plain", { href: `#/run/${run.id}` }, "Curves"),
    ),
    body,
  );
  let part = null,
    left = false;

  async function open() {
    try {
      const info = await get(`/api/runs/${run.id}/ask`),
        samples = await samplesFor(run, info);
      if (left) return;
      part = questionPart(run, info, samples, view);
      body.replaceChildren(
        h("p.quiet", `${info.help} · iteration ${number(info.iteration)}`),
        part.element,
        samplePart(run, info, methodColour(run.method)),
      );
    } catch (error) {
      body.replaceChildren(failure(error));
    }
  }
  open();
  return {
    free() {
      left = true;
      if (part) part.free();
    },
    repaint: () => part && part.again(),
  };
}
