// runs.js - the table of runs: sorted, filtered, grouped, live.

import { h, empty, fillIf, calm, readAddress, writeAddress } from "./dom.js";
import { number, measured, duration, moment, keyName, modelName, metricName, compareTexts, plural } from "./text.js";
import { runs, problems, live, overview, methodStyle, helpOf } from "./api.js";
import { isDark, methodColour, swatch } from "./charts.js";
import { spark } from "./drawings.js";

const chosen = new Set(); // ids, kept while other pages are shown
export const chosenRuns = chosen;
const defaults = { filter: "", group: "model", sort: "", down: "", state: "", hide: "" }; // hide: ids of columns, with commas between
let view = { ...defaults };
const whole = new Set(); // names of groups whose rows are all shown
const MOST = 100; // rows of a group, until all are asked for

// Keys that every configuration has and that are in a column of their own, or say little.
const usual = new Set(
  "model method particles seed threads scalar eval_every eval_particles n_test iterations".split(" "),
);

const states = ["training", "finished", "failed", "stopped"];

// ---- filtering: words that all must occur; key=value compares a key of the configuration, key>value a metric or number

function meets(run, word) {
  const parts = word.match(/^([^=<>]+)([=<>])(.*)$/);
  if (!parts)
    return [run.name, run.model, run.method, run.state, run.failure].some(t =>
      (t || "").toLowerCase().includes(word.toLowerCase()),
    );
  const [, key, sign, text] = parts;
  const name = key.toLowerCase() === "k" ? "particles" : key;
  const value = run.last[name] ?? run.config[name] ?? run[name];
  if (value === undefined || value === null) return false;
  if (sign === "=") return text.split(",").some(t => String(value) === t || (t !== "" && Number(value) === Number(t)));
  return sign === "<" ? Number(value) < Number(text) : Number(value) > Number(text);
}

export function matching(filter) {
  const words = filter.trim().split(/\s+/).filter(Boolean);
  return [...runs.values()].filter(run => words.every(w => meets(run, w)));
}

// ---- columns

// Keys of the configuration in which runs differ.
export function differing(list, ignored = usual) {
  const keys = new Set(list.flatMap(r => Object.keys(r.config)));
  return [...keys].filter(
    k => !ignored.has(k) && new Set(list.filter(r => k in r.config).map(r => String(r.config[k]))).size > 1,
  );
}

export function progress(run, more = "") {
  const share = run.iterations ? Math.min(1, run.iteration / run.iterations) : 0;
  const title = `${number(run.iteration)} of ${number(run.iterations)} iterations`;
  return h("div.progress" + more, { "data-state": run.state, title }, h("i", { style: { width: `${100 * share}%` } }));
}

const kinds = { damaged: "damaged", closed: "branch closed?", falling: "falling", broken: "not a number" };

// Short signs of trouble, each with its message.
function badges(run) {
  return run.warnings
    .filter(w => w.kind !== "failed")
    .map(w =>
      h(
        "span.badge",
        { "data-kind": w.kind, title: w.message, tabindex: "0", "aria-label": w.message },
        kinds[w.kind] || w.kind,
      ),
    );
}

export function pill(run) {
  return h("span.pill", { "data-state": run.state }, run.state);
}

function columns(list) {
  const several = key => new Set(list.map(r => r[key])).size > 1;
  const metrics = [...new Set(list.flatMap(r => Object.keys(r.last)))].sort();
  const all = [
    {
      id: "name",
      name: "run",
      cell: r => h("a.name", { href: `#/run/${r.id}`, title: r.store }, r.name),
      value: r => r.name,
    },
    {
      id: "state",
      name: "state",
      cell: r => h("div.state", pill(r), r.state === "finished" ? null : progress(r), badges(r)),
      value: r => r.state,
    },
    several("model") && {
      id: "model",
      name: "model",
      cell: r => h("span", { title: r.model }, modelName(r.model)),
      value: r => modelName(r.model),
    },
    {
      id: "method",
      name: "method",
      cell: r => h("span.method", swatch(r.method), methodStyle(r.method).name),
      value: r => r.method,
    },
    {
      id: "particles",
      name: "K",
      title: "particles",
      right: true,
      cell: r => number(r.config.particles),
      value: r => r.config.particles,
    },
    ...differing(list)
      .slice(0, 5)
      .map(k => ({
        id: "key:" + k,
        name: keyName(k),
        cell: r => String(r.config[k] ?? ""),
        value: r => r.config[k] ?? "",
        right: list.every(r => typeof (r.config[k] ?? 0) === "number"),
      })),
    { id: "seed", name: "seed", right: true, cell: r => number(r.config.seed), value: r => r.config.seed },
    { id: "iteration", name: "iteration", right: true, cell: r => number(r.iteration), value: r => r.iteration },
    {
      id: "time",
      name: "time",
      title: "time of training; of a run that is training, the time that is left",
      right: true,
      cell: r =>
        r.time_left !== null ? h("span.left", duration(r.time_left), h("small", " left")) : duration(r.seconds),
      value: r => r.time_left ?? r.seconds,
    },
    {
      id: "spark",
      name: list.every(r => r.spark.metric === "log_evidence") ? "log evidence" : "curve",
      cell: r =>
        spark(r.spark.values, methodColour(r.method), `${metricName(r.spark.metric || "")} over the iterations`),
    },
    ...metrics
      .filter(m => m !== "grad_std")
      .map(m => ({
        id: "metric:" + m,
        name: metricName(m),
        title: helpOf(m, list[0].model),
        right: true,
        cell: r => (m in r.last ? measured(r.last[m]) : ""),
        value: r => r.last[m] ?? null,
      })),
    { id: "started", name: "started", cell: r => h("span", { title: moment(r.started) }, moment(r.started, "short")), value: r => r.started || null },
  ];
  return all.filter(Boolean);
}

const columnClass = c => (c.right ? ".right" : "") + ".c-" + c.id.split(":")[0];

function sorted(list, cols) {
  const column = cols.find(c => c.id === view.sort);
  const running = r => r.state === "training";
  if (!column || !column.value) return list.sort((a, b) => running(b) - running(a) || compareTexts(a.name, b.name));
  const order = (a, b) => {
    const x = column.value(a),
      y = column.value(b);
    if (x === null || x === "" || y === null || y === "") return (x === null || x === "") - (y === null || y === "");
    const by = typeof x === "number" && typeof y === "number" ? x - y : compareTexts(x, y);
    return (view.down ? -by : by) || compareTexts(a.name, b.name);
  };
  return list.sort(order);
}

// ---- the page

function row(run, cols, onChoose) {
  const box = h("input", {
    type: "checkbox",
    checked: chosen.has(run.id),
    "aria-label": `choose ${run.name}`,
    onchange: e => {
      e.target.checked ? chosen.add(run.id) : chosen.delete(run.id);
      tr.classList.toggle("chosen", e.target.checked);
      onChoose();
    },
  });
  const tr = h(
    chosen.has(run.id) ? "tr.chosen" : "tr",
    {
      tabindex: "0",
      "data-id": run.id,
      onclick: e => {
        if (!e.target.closest("a, input, label")) location.hash = `#/run/${run.id}`;
      },
      onkeydown: e => {
        if (e.key === "Enter" && e.target === tr) location.hash = `#/run/${run.id}`;
        else if (e.key === " " && e.target === tr) {
          e.preventDefault();
          box.click();
        } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
          const rows = [...document.querySelectorAll("tr[data-id]")],
            next = rows[rows.indexOf(tr) + (e.key === "ArrowDown" ? 1 : -1)];
          if (next) {
            e.preventDefault();
            next.focus();
          }
        }
      },
    },
    h("td.check", h("label", box)),
    cols.map(c => h("td" + columnClass(c), { "data-name": c.name }, c.cell(run))),
  );
  if (!run.failure) return [tr];
  return [tr, h("tr.trouble", { "data-kind": "failed" }, h("td"), h("td", { colspan: cols.length }, run.failure))];
}

// Rows that are kept: a run that has not changed keeps its row, and one that has gets its new row in the same place, so that
// hundreds of runs are redrawn in a moment.
const kept = new Map(); // by id

function keptRow(run, cols, signature, onChoose) {
  const old = kept.get(run.id),
    now = signature + chosen.has(run.id);
  if (old && old.run === run && old.signature === now) return old.rows;
  const rows = row(run, cols, onChoose);
  if (old && old.rows[0].isConnected) {
    old.rows.slice(1).forEach(r => r.remove());
    old.rows[0].replaceWith(...rows);
  }
  kept.set(run.id, { run, signature: now, rows });
  return rows;
}

// Puts the children in place; those that are there already are not touched.
function place(parent, children) {
  let at = parent.firstChild;
  for (const child of children) {
    if (child === at) at = at.nextSibling;
    else parent.insertBefore(child, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function tableHead(list, cols, redraw) {
  const all = h("input", {
    type: "checkbox",
    "aria-label": "choose all of these runs",
    onchange: e => {
      list.forEach(r => (e.target.checked ? chosen.add(r.id) : chosen.delete(r.id)));
      redraw();
    },
  });
  const sign = c => (view.sort !== c.id ? "" : view.down ? "▼" : "▲");
  const sort = c => {
    view.down = view.sort === c.id && !view.down ? "1" : "";
    view.sort = c.id;
    redraw();
  };
  return h(
    "tr",
    h("th.check", h("label", all)),
    cols.map(c =>
      h(
        "th" + columnClass(c),
        {
          scope: "col",
          title: c.title || null,
          "aria-sort": view.sort === c.id ? (view.down ? "descending" : "ascending") : null,
        },
        c.value
          ? h("button.sort", { onclick: () => sort(c) }, c.name, h("span.arrow", { "aria-hidden": "true" }, sign(c)))
          : h("span.sort", c.name),
      ),
    ),
  );
}

// A group on the screen: its heading, its table, a button for the rows that are left out.
class Group {
  constructor(name) {
    this.name = name;
    this.heading = h("h2");
    this.head = h("thead");
    this.rows = h("tbody");
    this.more = h("p.more");
    this.element = h("section.group", this.heading, h("div.table-box", h("table", this.head, this.rows)), this.more);
  }

  draw(list, redraw, onChoose) {
    const hidden = view.hide.split(","),
      cols = columns(list).filter(c => !hidden.includes(c.id)),
      signature = [cols.map(c => c.id), isDark()].join();
    const shown = whole.has(this.name) ? list.length : MOST;
    this.list = list;
    fillIf(this.heading, [this.name, list.length, view.group], () =>
      this.name ? [h("small", keyName(view.group) + " "), this.name, h("span.n", plural(list.length, "run"))] : [],
    );
    fillIf(this.head, [signature, view.sort, view.down, list.map(r => r.id)], () => tableHead(list, cols, redraw));
    this.head.querySelector("input").checked = list.length > 0 && list.every(r => chosen.has(r.id));
    place(
      this.rows,
      sorted(list, cols)
        .slice(0, shown)
        .flatMap(r => keptRow(r, cols, signature, onChoose)),
    );
    fillIf(this.more, [list.length, shown], () =>
      list.length > shown
        ? h(
            "button.plain",
            {
              onclick: () => {
                whole.add(this.name);
                redraw();
              },
            },
            `Show all ${plural(list.length, "run")}`,
          )
        : [],
    );
  }
}

// The groups: a heading and its runs.
function groups(list) {
  if (view.group === "none") return [["", list]];
  const map = new Map();
  for (const run of list) {
    const own = { model: modelName(run.model), method: methodStyle(run.method).name, state: run.state };
    const value = own[view.group] ?? run.config[view.group];
    const key = String(value ?? "–");
    if (!map.has(key)) map.set(key, []);
    map.get(key).push(run);
  }
  return [...map.entries()].sort((a, b) => compareTexts(a[0], b[0]));
}

export function showRuns(main, rest, parameters, told) {
  if (told) view = readAddress(parameters, defaults); // else as it was left
  const filter = h("input", {
    type: "search",
    id: "filter",
    placeholder: "Filter: ww  K=20  p_error<0.1",
    value: view.filter,
    "aria-label": "filter the runs",
    autocomplete: "off",
    spellcheck: "false",
  });
  const group = h("select", { "aria-label": "group by" });
  const menu = h("details.menu", h("summary", "Columns"), h("div"));
  const counts = h("div.counts", { role: "group", "aria-label": "states" });
  const actions = h("div.actions");
  const notes = h("div"),
    body = h("div.groups");
  main.replaceChildren(
    h("div.head", h("h1", "Runs"), counts, h("span.spring"), filter, h("label.field", "Group by ", group), menu),
    notes,
    body,
    actions,
  );

  const sections = new Map(); // by the name of the group

  function drawGroups() {
    const keys = ["model", "method", "particles", "state", ...differing([...runs.values()]).slice(0, 12)];
    if (view.group !== "none" && !keys.includes(view.group)) view.group = "model";
    fillIf(group, keys, () =>
      [...keys, "none"].map(k => h("option", { value: k }, k === "none" ? "nothing" : keyName(k))),
    );
    group.value = view.group;
  }

  function drawMenu() {
    const all = columns([...runs.values()]).filter(c => c.id !== "name"),
      hidden = new Set(view.hide.split(",").filter(Boolean));
    const flip = id => {
      hidden.has(id) ? hidden.delete(id) : hidden.add(id);
      view.hide = [...hidden].join(",");
      draw();
    };
    fillIf(menu.lastChild, [all.map(c => [c.id, c.name]), view.hide], () =>
      all.map(c => h("label", h("input", { type: "checkbox", checked: !hidden.has(c.id), onchange: () => flip(c.id) }), c.name)),
    );
  }

  function drawCounts() {
    const all = [...runs.values()],
      numbers = states.map(s => [s, all.filter(r => r.state === s).length]).filter(([, n]) => n > 0);
    fillIf(counts, [numbers, view.state], () =>
      numbers.map(([s, n]) =>
        h(
          "button.count",
          {
            "data-state": s,
            "aria-pressed": String(view.state === s),
            onclick: () => {
              view.state = view.state === s ? "" : s;
              draw();
            },
          },
          h("b", number(n)),
          " ",
          s,
        ),
      ),
    );
  }

  function drawActions() {
    for (const id of chosen) if (!runs.has(id)) chosen.delete(id);
    actions.hidden = chosen.size === 0;
    const ids = [...chosen].join(",");
    fillIf(actions, ids, () => [
      h("span", plural(chosen.size, "run"), " chosen"),
      h("a.button", { href: `#/compare?runs=${ids}` }, "Compare"),
      chosen.size === 1 ? h("a.button.plain", { href: `#/ask/${ids}` }, "Ask") : null,
      h(
        "button.plain",
        {
          onclick: () => {
            chosen.clear();
            draw();
          },
        },
        "Clear",
      ),
    ]);
  }

  function drawNotes(n) {
    const clear = () => {
      view.filter = filter.value = "";
      view.state = "";
      draw();
    };
    fillIf(notes, [problems, runs.size, n], () => [
      problems.map(p => h("p.banner", { role: "alert" }, h("code", p.path), " ", p.message)),
      runs.size === 0
        ? nothing()
        : n === 0
          ? empty(
              "No run matches",
              "The filter takes words, key=value and metric<number. Every word must fit.",
              h("p", h("button", { onclick: clear }, "Show all runs")),
            )
          : null,
    ]);
  }

  function draw() {
    const focus = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.id : null;
    const list = matching(view.filter).filter(r => !view.state || r.state === view.state);
    if (runs.size) drawMenu();
    drawGroups();
    drawCounts();
    writeAddress("runs", view, defaults);
    drawActions();
    drawNotes(list.length);
    const parts = groups(list).filter(([, part]) => part.length > 0);
    for (const name of [...sections.keys()]) if (!parts.some(([n]) => n === name)) sections.delete(name);
    for (const [name, part] of parts) {
      if (!sections.has(name)) sections.set(name, new Group(name));
      sections.get(name).draw(part, draw, drawActions);
    }
    place(
      body,
      parts.map(([name]) => sections.get(name).element),
    );
    const row = focus && body.querySelector(`tr[data-id="${focus}"]`);
    if (row && row !== document.activeElement) row.focus({ preventScroll: true });
  }

  const soon = calm(draw, 1000);
  filter.addEventListener("input", () => {
    view.filter = filter.value;
    draw();
  });
  group.addEventListener("change", () => {
    view.group = group.value;
    draw();
  });
  live.addEventListener("runs", soon);
  draw();
  return {
    free() {
      live.removeEventListener("runs", soon);
      kept.clear();
    },
    repaint: draw,
  };
}

export function nothing() {
  return empty(
    "There are no runs here yet",
    `Looking in ${overview.folders.join(", ") || "the folder"}. A run that is trained there appears by itself:`,
    h(
      "pre",
      `rws train gmm --method ww --particles 20 --out ${(overview.folders[0] || "runs").replace(/\/$/, "")}/first`,
    ),
  );
}
