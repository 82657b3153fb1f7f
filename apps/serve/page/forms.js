// forms.js - forms in which a datum is given: a sentence, a drawing, numbers, a test datum; and choices that are known.

import { h } from "./dom.js";
import { plural } from "./text.js";
import { drawBoxes } from "./drawings.js";

// Each form returns {element, datum(), set(datum) if a datum can be put into it}, and calls `ask` when the datum has changed.

const sentences = [
  "astronomers saw stars with ears",
  "stars saw astronomers with telescopes",
  "ears saw saw with astronomers with stars",
];

export function sentenceForm(info, ask) {
  const input = h("input.large", {
    type: "text",
    id: "sentence",
    value: sentences[0],
    "aria-label": "sentence",
    autocomplete: "off",
    spellcheck: "false",
    maxlength: "400",
  });
  let timer = null;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => ask(false), 350);
  });
  input.addEventListener("keydown", e => {
    if (e.key === "Enter") ask(true);
  });
  return {
    element: h(
      "div.form",
      input,
      info.model === "pcfg"
        ? h(
            "p.examples",
            "For example: ",
            sentences.map(t =>
              h(
                "button.link",
                {
                  onclick: () => {
                    input.value = t;
                    ask(true);
                  },
                },
                t,
              ),
            ),
          )
        : null,
    ),
    datum: () => (input.value.trim() ? { text: input.value.trim() } : null),
    set: datum => {
      input.value = datum.text ?? "";
    },
    text: () => input.value,
  };
}

// A canvas for white strokes on black. The drawing is scaled down to the model's pixels.
export function canvasForm(info, field, side, ask) {
  const size = 400,
    canvas = h("canvas.pad", {
      width: size,
      height: size,
      tabindex: "0",
      "aria-label": "draw digits here with the mouse or a finger",
    });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const ink = new OffscreenCanvas(size, size),
    pen = ink.getContext("2d", { willReadFrequently: true });
  let last = null,
    boxes = [],
    drawn = false,
    timer = null,
    asked = 0;
  const thick = (size / side) * (side >= 40 ? 2.3 : 2.2);

  function paint() {
    context.drawImage(ink, 0, 0);
    drawBoxes(context, boxes, size);
    if (!drawn) {
      context.fillStyle = "#8a949e";
      context.font = `16px ${getComputedStyle(document.body).fontFamily}`;
      context.textAlign = "center";
      context.fillText(
        side >= 40 ? "Draw one or two digits, each about a third as high" : "Draw a digit",
        size / 2,
        size / 2,
      );
    }
  }

  function clear() {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, size, size);
    drawn = false;
    boxes = [];
    paint();
  }
  const point = e => {
    const box = canvas.getBoundingClientRect();
    return [((e.clientX - box.left) * size) / box.width, ((e.clientY - box.top) * size) / box.height];
  };
  function stroke(from, to) {
    pen.strokeStyle = "#fff";
    pen.lineWidth = thick;
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(to[0] + 0.01, to[1]);
    pen.stroke();
    drawn = true;
    boxes = [];
    paint();
    const now = performance.now(); // during a stroke, about six times a second
    clearTimeout(timer);
    if (now - asked > 160) {
      asked = now;
      ask(false);
    } else
      timer = setTimeout(() => {
        asked = performance.now();
        ask(false);
      }, 160);
  }
  canvas.addEventListener("pointerdown", e => {
    e.preventDefault();
    canvas.setPointerCapture(e.pointerId);
    last = point(e);
    stroke(last, last);
  });
  canvas.addEventListener("pointermove", e => {
    if (!last) return;
    const next = point(e);
    stroke(last, next);
    last = next;
  });
  const end = () => {
    if (last) {
      last = null;
      clearTimeout(timer);
      ask(true);
    }
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  clear();

  function grey() {
    const small = new OffscreenCanvas(side, side),
      to = small.getContext("2d", { willReadFrequently: true });
    to.imageSmoothingQuality = "high";
    to.drawImage(ink, 0, 0, side, side);
    const data = to.getImageData(0, 0, side, side).data;
    return Array.from({ length: side * side }, (_, i) => data[4 * i]);
  }
  return {
    element: h(
      "div.form",
      canvas,
      h(
        "p",
        h(
          "button.plain",
          {
            onclick: () => {
              clear();
              ask(true);
            },
          },
          "Clear",
        ),
      ),
    ),
    datum: () =>
      !drawn
        ? null
        : info.picture
          ? { picture: { wide: side, high: side, grey: grey() } }
          : { fields: { [field.name]: grey().map(g => (g > 127 ? 1 : 0)) } },
    found(list) {
      boxes = list;
      paint();
    },
    particles: info.picture ? 60 : 100,
    top: 4,
  };
}

// Numbers for each field. The form begins with a datum that the model made itself.
const MOST_CELLS = 12; // a field of more numbers is a text
const numbers = text =>
  text
    .trim()
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);

function formField(f, ask, range) {
  const say = whole => () => ask(whole);
  if (f.most > 0 || f.dim > MOST_CELLS) {
    const about = f.most
      ? `up to ${plural(f.most, "item")} of ${plural(f.item, "number")}, one item per line`
      : plural(f.dim, "number");
    const text = h("textarea", {
      rows: f.most ? "5" : "3",
      "aria-label": f.name,
      placeholder: about,
      oninput: say(false),
    });
    return {
      f,
      element: h("div.form-row", h("span", f.name), h("small", about), text),
      get: () =>
        f.most
          ? text.value
              .split("\n")
              .filter(l => l.trim())
              .map(l => (f.item === 1 ? numbers(l)[0] : numbers(l)))
          : numbers(text.value),
      set: value => {
        text.value = f.most ? value.map(item => [item].flat().join(" ")).join("\n") : value.join(" ");
      },
    };
  }
  const cells = Array.from({ length: f.dim }, (_, i) =>
    h("input", {
      type: "number",
      step: "any",
      value: "0",
      "aria-label": f.dim > 1 ? `${f.name}, number ${i + 1}` : f.name,
      oninput: () => {
        if (slide) slide.value = cells[0].value;
        ask(false);
      },
    }),
  );
  const slide =
    f.dim === 1 && range
      ? h("input", {
          type: "range",
          min: range[0],
          max: range[1],
          step: "any",
          "aria-label": `${f.name}, by a slider`,
          oninput: e => {
            cells[0].value = Number(Number(e.target.value).toPrecision(4));
            ask(false);
          },
        })
      : null;
  return {
    f,
    element: h("div.form-row", h("span", f.name), cells, slide),
    get: () => (f.dim === 1 ? Number(cells[0].value) : cells.map(c => Number(c.value))),
    set: value => {
      [value].flat().forEach((v, i) => {
        cells[i].value = v;
      });
      if (slide) slide.value = cells[0].value;
    },
  };
}

// The range of a field of one number in a few samples, a little wider; null if it is always the same.
function rangeOf(samples, name) {
  const all = samples.map(x => x.fields[name]).filter(v => typeof v === "number");
  const low = Math.min(...all),
    high = Math.max(...all);
  return all.length > 1 && high > low
    ? [low - 0.1 * (high - low), high + 0.1 * (high - low)].map(v => v.toPrecision(3))
    : null;
}

export function numbersForm(info, samples, ask) {
  const fields = info.fields.filter(f => !f.label).map(f => formField(f, ask, rangeOf(samples, f.name)));
  let at = 0;
  const put = () => {
    const sample = samples[at++ % samples.length];
    fields.forEach(x => x.f.name in sample.fields && x.set(sample.fields[x.f.name]));
  };
  if (samples.length) put();
  return {
    element: h(
      "div.form",
      fields.map(x => x.element),
      samples.length
        ? h(
            "p",
            h(
              "button.plain",
              {
                id: "fill-form",
                onclick: () => {
                  put();
                  ask(true);
                },
              },
              "Another datum of the model",
            ),
          )
        : null,
    ),
    datum: () => ({ fields: Object.fromEntries(fields.map(x => [x.f.name, x.get()])) }),
    set: datum => fields.forEach(x => datum.fields && x.f.name in datum.fields && x.set(datum.fields[x.f.name])),
  };
}

export function testForm(info, ask) {
  const input = h("input", {
    type: "number",
    min: "0",
    max: "1000000",
    step: "1",
    value: "0",
    "aria-label": "number of the test datum",
    oninput: () => ask(false),
  });
  const move = by => {
    input.value = String(Math.max(0, Number(input.value) + by));
    ask(true);
  };
  return {
    element: h(
      "div.form.row",
      h("label.field", "Test datum ", input),
      h("button.plain", { onclick: () => move(-1) }, "Previous"),
      h("button.plain", { onclick: () => move(1) }, "Next"),
    ),
    datum: () => ({ test: Number(input.value) }),
    set: datum => {
      input.value = String(datum.test ?? 0);
    },
    particles: info.picture ? 60 : undefined,
    top: info.picture ? 4 : undefined,
  };
}

// ---- choices that are known: lines such as "z = 3", or "z 2 = 0.5 1" for the third visit

function readGiven(text) {
  return text
    .split("\n")
    .filter(l => l.trim())
    .map(line => {
      const parts = line.match(/^\s*(\S+)(?:\s+(\d+))?\s*=\s*(.+)$/),
        value = parts ? numbers(parts[3]) : [];
      if (!parts || value.length === 0 || value.some(Number.isNaN))
        throw new Error(`“${line.trim()}” is not a choice: write SITE = VALUE, or SITE VISIT = VALUE.`);
      return { site: parts[1], visit: Number(parts[2] || 0), value: value.length === 1 ? value[0] : value };
    });
}

export function givenPart(ask) {
  const text = h("textarea", {
    rows: "3",
    id: "given",
    "aria-label": "choices that are known",
    placeholder: "z = 3",
  });
  let timer = null;
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => ask(true), 500);
  });
  return {
    element: h(
      "details.given",
      h("summary", "Choices that are known"),
      h(
        "p.quiet",
        "One on each line: SITE = VALUE, or SITE VISIT = VALUE, visits counted from 0. The answer is then about the others.",
      ),
      text,
    ),
    read: () => readGiven(text.value),
    text,
  };
}
