// drawings.js - small drawings: sparks, bars, trees, Hinton diagrams, pictures.

import { h, s } from "./dom.js";
import { number, share } from "./text.js";

// An SVG element whose view box is its size plus a margin on all sides; the label is read aloud.
const drawing = (kind, wide, high, label, margin = 0) =>
  s("svg", {
    class: kind,
    viewBox: `${-margin} ${-margin} ${wide + 2 * margin} ${high + 2 * margin}`,
    width: wide + 2 * margin,
    height: high + 2 * margin,
    role: "img",
    "aria-label": label,
  });

// ---- a curve without axes, for a cell of a table

export function spark(values, colour, label) {
  const wide = 76,
    high = 22,
    points = values.map((v, i) => [i, v]).filter(p => p[1] !== null);
  const svg = drawing("spark", wide, high, label);
  if (points.length < 2) return svg;
  const ys = points.map(p => p[1]),
    least = Math.min(...ys),
    most = Math.max(...ys);
  const place = p => [
    2 + ((wide - 6) * p[0]) / Math.max(1, values.length - 1),
    high - 3 - (high - 6) * (most > least ? (p[1] - least) / (most - least) : 0.5),
  ];
  const path = points
    .map(place)
    .map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`)
    .join("");
  const [x, y] = place(points[points.length - 1]);
  svg.append(
    s("path", { d: path, fill: "none", stroke: colour, "stroke-width": 1.5, "stroke-linejoin": "round" }),
    s("circle", { cx: x, cy: y, r: 2, fill: colour }),
  );
  return svg;
}

// ---- trees

// "(S (NP stars) (VP shine))" as {label, word, below}; null if it is not one tree.
export function parseTree(text) {
  const tokens = (text || "").match(/[()]|[^\s()]+/g) || [];
  const stack = [];
  let root = null;
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i];
    if (token === "(") {
      const node = { label: tokens[++i], below: [], word: false };
      if (!node.label || node.label === "(" || node.label === ")") return null;
      if (stack.length) stack[stack.length - 1].below.push(node);
      else if (root) return null;
      else root = node;
      stack.push(node);
    } else if (token === ")") {
      if (!stack.pop()) return null;
    } else {
      if (!stack.length) return null;
      stack[stack.length - 1].below.push({ label: token, below: [], word: true });
    }
  }
  return stack.length ? null : root;
}

const pen = document.createElement("canvas").getContext("2d");

function measure(text, word) {
  pen.font = `${word ? "600 15" : "13"}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// Gives each node x (its middle) and depth; returns the width. A subtree takes a stretch as wide as its children together.
function place(node, left, depth, gap) {
  const own = measure(node.label, node.word);
  node.depth = depth;
  if (!node.below.length) {
    node.x = left + own / 2;
    return own;
  }
  let used = 0;
  node.below.forEach((child, i) => {
    used += i ? gap : 0;
    used += place(child, left + used, depth + 1, gap);
  });
  node.x = (node.below[0].x + node.below[node.below.length - 1].x) / 2;
  const over = own / 2 - (node.x - left);
  if (over > 0) {
    shift(node, over);
    used += over;
  }
  return Math.max(used, node.x - left + own / 2);
}

function shift(node, by) {
  node.x += by;
  node.below.forEach(child => shift(child, by));
}

const depthOf = node => 1 + Math.max(0, ...node.below.map(depthOf));

export function drawTree(text, colour) {
  const root = parseTree(text);
  if (!root) return h("code.brackets", text);
  const level = 44,
    wide = Math.ceil(place(root, 0, 0, 22)),
    high = depthOf(root) * level - 18;
  const svg = drawing("tree", wide, high, text, 4);
  const walk = node => {
    const y = node.depth * level + 14;
    for (const child of node.below) {
      const to = child.depth * level + 14;
      svg.append(s("path", { d: `M${node.x.toFixed(1)} ${y + 6}L${child.x.toFixed(1)} ${to - 15}`, class: "branch" }));
      walk(child);
    }
    svg.append(
      s(
        "text",
        {
          x: node.x.toFixed(1),
          y,
          "text-anchor": "middle",
          class: node.word ? "word" : "symbol",
          fill: node.word && colour ? colour : null,
        },
        node.label,
      ),
    );
  };
  walk(root);
  return h("div.tree-box", { tabindex: "0", role: "group", "aria-label": "tree" }, svg);
}

// ---- Hinton diagrams: the area of a square is a probability

// strips: [{label, values, colour}], each of the same length.
export function drawHinton(strips, xLabel) {
  const n = Math.max(...strips.map(t => t.values.length)),
    narrow = innerWidth < 760,
    left = narrow ? 62 : 104;
  const cell = narrow ? Math.max(9, Math.min(26, (innerWidth - left - 70) / n)) : Math.max(14, Math.min(26, 620 / n));
  const high = strips.length * (cell + 6),
    wide = left + n * cell + 4;
  const largest = Math.max(1e-9, ...strips.flatMap(t => t.values.map(v => v || 0)));
  const values = strips.map(t => `${t.label}: ${t.values.map(v => share(v)).join(" ")}`).join("; ");
  const svg = drawing("hinton", wide, high + 24, values);
  strips.forEach((strip, r) => {
    const middle = r * (cell + 6) + cell / 2 + 3;
    svg.append(
      s("text", { x: left - 12, y: middle + 4, "text-anchor": "end", class: "strip" }, strip.label),
      s("line", { x1: left, x2: wide - 4, y1: middle, y2: middle, class: "strip-line" }),
    );
    strip.values.forEach((v, i) => {
      if (!(v > 0.0005)) return;
      const side = (cell - 2) * Math.sqrt(v / largest);
      svg.append(
        s(
          "rect",
          {
            x: (left + (i + 0.5) * cell - side / 2).toFixed(2),
            y: (middle - side / 2).toFixed(2),
            width: side.toFixed(2),
            height: side.toFixed(2),
            fill: strip.colour,
            rx: 1,
          },
          s("title", {}, `${strip.label}, ${xLabel} = ${i}: ${share(v)}`),
        ),
      );
    });
  });
  for (let i = 0; i < n; i += n > 12 ? 5 : 1)
    svg.append(
      s("text", { x: left + (i + 0.5) * cell, y: high + 18, "text-anchor": "middle", class: "tick" }, String(i)),
    );
  svg.append(s("text", { x: left - 12, y: high + 18, "text-anchor": "end", class: "tick" }, xLabel));
  return h("div.scroll", svg);
}

// ---- bars with two numbers each

// What the colours mean: a list of [name, colour].
export const colourKey = list =>
  h(
    "p.bar-key",
    list.map(([name, background]) => h("span", h("i", { style: { background } }), name)),
  );

// rows: [{label, values: [{name, value, colour}]}]; values lie between 0 and `most`.
export function drawBars(rows, most) {
  const largest = most || Math.max(1e-9, ...rows.flatMap(r => r.values.map(v => v.value || 0)));
  return h(
    "div.bars",
    rows.map(row => [
      h("span.bar-label", row.label),
      h(
        "div.bar-set",
        row.values.map(v => {
          const width = `${100 * Math.max(0, Math.min(1, (v.value || 0) / largest))}%`;
          return h(
            "div.bar-line",
            { title: `${v.name}: ${number(v.value)}` },
            h("span.bar-track", h("i", { style: { width, background: v.colour } })),
            h("b", share(v.value)),
          );
        }),
      ),
    ]),
  );
}

// ---- pictures

// Numbers from 0 (black) to 1 (white) on a canvas of side x side, with boxes drawn over them.
export function drawPicture(values, side, boxes, label) {
  const scale = Math.max(1, Math.round(200 / side)),
    canvas = h("canvas.picture", {
      width: side * scale,
      height: side * scale,
      role: "img",
      "aria-label": label || "picture",
    });
  const context = canvas.getContext("2d"),
    small = new OffscreenCanvas(side, side),
    image = new ImageData(side, side);
  values.forEach((v, i) => {
    image.data.set([255 * v, 255 * v, 255 * v, 255], 4 * i);
  });
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, side * scale, side * scale);
  drawBoxes(context, boxes, side * scale);
  return canvas;
}

const boxColours = ["#E69F00", "#56B4E9", "#009E73", "#CC79A7"];

// A box is [scale x, scale y, shift x, shift y] in a picture whose sides are at −1 and 1.
export function drawBoxes(context, boxes, size) {
  (boxes || []).forEach((box, i) => {
    if (box.length !== 4) return;
    const [wide, high, x, y] = box.map(v => (v * size) / 2);
    context.lineWidth = Math.max(2, size / 110);
    context.strokeStyle = boxColours[i % boxColours.length];
    context.strokeRect(
      size / 2 + x - Math.abs(wide),
      size / 2 + y - Math.abs(high),
      2 * Math.abs(wide),
      2 * Math.abs(high),
    );
  });
}
