// dom.js - elements: how they are made, filled and kept as they are.

const present = children => children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false);
const isAttributes = x => x !== null && x !== undefined && x.constructor === Object;

// An element, as h("p.quiet", { title: "a text" }, …children) with its classes behind its name; without attributes the
// children follow at once. Attributes: on… adds a listener, style is an object, data-… as in HTML; a child is an element
// or a text, which is never read as HTML.
export function h(name, ...children) {
  const [tag, ...classes] = name.split("."),
    element = document.createElement(tag);
  if (tag === "button") element.type = "button";
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(isAttributes(children[0]) ? children.shift() : {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name in element && name !== "list" && name !== "form" && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children));
  return element;
}

// The same for SVG, whose attributes must be given.
export function s(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  element.append(...present(children));
  return element;
}

// A list of [value, name] to choose from, behind its label.
export const choice = (label, value, options, change) =>
  h(
    "label.field",
    label,
    h(
      "select",
      { onchange: e => change(e.target.value) },
      options.map(([v, name]) => h("option", { value: v, selected: v === value }, name)),
    ),
  );

// The part of the address behind # says what is shown, so that it can be kept and sent: what differs from the defaults.
export function writeAddress(page, view, defaults) {
  const q = new URLSearchParams(Object.entries(view).filter(([k, v]) => k in defaults && v !== defaults[k] && v !== null));
  const hash = `#/${page}` + (q.size ? `?${q}` : "");
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

// The view of an address: the defaults, with what its parameters say.
export const readAddress = (parameters, defaults) =>
  Object.fromEntries(Object.entries(defaults).map(([k, v]) => [k, parameters.get(k) ?? v]));

// Replaces the children of an element; null is no child.
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

// Fills an element if what it shows has changed, so that a live page takes no focus, open list or selected text away.
const drawnAs = new WeakMap();
export function fillIf(element, signature, make) {
  const text = JSON.stringify(signature);
  if (drawnAs.get(element) === text) return;
  drawnAs.set(element, text);
  fill(element, make());
}

// Makes `now` look like `next` and keeps the elements that are alike, likewise.
export function morph(now, next) {
  if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName) {
    now.replaceWith(next);
    return;
  }
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.data !== next.data) now.data = next.data;
    return;
  }
  for (const { name } of [...now.attributes]) if (!next.hasAttribute(name)) now.removeAttribute(name);
  for (const { name, value } of [...next.attributes])
    if (now.getAttribute(name) !== value && name !== "style") now.setAttribute(name, value);
  if (now.style.cssText !== next.style.cssText) now.style.cssText = next.style.cssText;
  const before = [...now.childNodes],
    after = [...next.childNodes];
  after.forEach((child, i) => (before[i] ? morph(before[i], child) : now.append(child)));
  before.slice(after.length).forEach(child => child.remove());
}

// What is shown when there is nothing, or when something went wrong: what it is, and what to do.
export function empty(title, ...lines) {
  return h(
    "div.empty",
    h("h2", title),
    lines.map(l => (typeof l === "string" ? h("p", l) : l)),
  );
}

export function failure(error) {
  return h("div.empty.failed", { role: "alert" }, h("h2", "That did not work"), h("p", error.message || String(error)));
}

// Calls f at most once in so many milliseconds, and once more at the end.
export function calm(f, milliseconds) {
  let timer = null,
    again = false;
  const calmed = () => {
    again = timer !== null;
    if (again) return;
    f();
    timer = setTimeout(() => {
      timer = null;
      if (again) calmed();
    }, milliseconds);
  };
  return calmed;
}
