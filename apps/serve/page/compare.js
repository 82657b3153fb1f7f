// compare.js - runs beside each other: medians with quartile bands over seeds, panel by panel.

import { h, empty, failure, fillIf, morph, calm, choice, readAddress, writeAddress } from "./dom.js";
import { number, measured, keyName, modelName, metricName, plural, metricUnit, compareTexts, lowerIsBetter } from "./text.js";
import { get, query, runs, live, helpOf } from "./api.js";
import { Chart, axisControls, swatch, toggle, isDark, rangeOf } from "./charts.js";
import { differing, matching, nothing } from "./runs.js";

const defaults = {
  runs: "",
  filter: "",
  model: "",
  metrics: "",
  x: "iteration",
  log: "",
  smooth: "",
  panel: "particles",
  axes: "shared", // or "own": the y axes of the panels of a metric
  from: "", // the ends of x that were zoomed to
  to: "",
  hidden: "", // labels of curves that were switched off, with | between
};
const POINTS = 300; // of a curve: a panel is about 600 pixels wide, and a range that is zoomed gets as many again

const ignored = new Set(["seed", "threads", "eval_every", "eval_particles", "n_test", "iterations", "model"]);

export function showCompare(main, rest, parameters) {
  const view = readAddress(parameters, defaults);
  const hidden = new Set(view.hidden.split("|").filter(Boolean));
  let charts = new Map(),
    shown = []; // by section and panel; what is drawn: [metric, the server's answer, the runs]
  // Each control has a part of its own, so that one that changes leaves focus and typing in the others alone.
  const parts = Object.fromEntries(
    ["models", "metrics", "axes", "panels", "filter", "chosen"].map(name => [name, h("div.part")]),
  );
  const controls = h("div.controls", Object.values(parts));
  const legend = h("div.legend", { role: "group", "aria-label": "curves" });
  const body = h("div.compare"),
    tables = h("div");
  const note = h("p.quiet");
  main.replaceChildren(h("div.head", h("h1", "Compare"), note), controls, legend, body, tables);

  function selected() {
    const ids = view.runs ? new Set(view.runs.split(",")) : null;
    const all = matching(view.filter).filter(r => !ids || ids.has(r.id));
    const list = all.filter(r => ids || r.state !== "failed"); // unless they were chosen
    const models = [...new Set(list.map(r => r.model))].sort();
    if (!models.includes(view.model))
      view.model = models.length
        ? models.reduce((a, b) =>
            list.filter(r => r.model === b).length > list.filter(r => r.model === a).length ? b : a,
          )
        : "";
    return {
      list: list.filter(r => r.model === view.model),
      models,
      n_failed: all.filter(r => r.model === view.model && !list.includes(r)).length,
    };
  }

  function metricsOf(list) {
    const all = [...new Set(list.flatMap(r => Object.keys(r.last)))].sort(compareTexts);
    const wanted = view.metrics.split(",").filter(m => all.includes(m));
    const first = ["p_error", "log_evidence", "count_accuracy", "q_error"].filter(m => all.includes(m)).slice(0, 2);
    return { all, wanted: wanted.length ? wanted : first.length ? first : all.slice(0, 1) };
  }

  function drawControls(list, models, metrics) {
    const keys = differing(list, ignored);
    const set = change => {
      Object.assign(view, change);
      refresh();
    };
    view.panelShown = keys.includes(view.panel) ? view.panel : "none";
    fillIf(parts.models, [models, view.model], () =>
      models.length > 1
        ? choice(
            "Model ",
            view.model,
            models.map(m => [m, modelName(m)]),
            v => set({ model: v, metrics: "" }),
          )
        : [],
    );
    fillIf(parts.metrics, [metrics, view.model], () =>
      h(
        "div.set",
        { role: "group", "aria-label": "metrics" },
        metrics.all.map(m =>
          toggle(
            metricName(m),
            metrics.wanted.includes(m),
            () => {
              const next = metrics.wanted.includes(m) ? metrics.wanted.filter(w => w !== m) : [...metrics.wanted, m];
              if (next.length) set({ metrics: next.join(",") });
            },
            helpOf(m, view.model),
          ),
        ),
      ),
    );
    fillIf(parts.axes, [view.x, view.log, view.smooth], () =>
      axisControls(view, change => set("x" in change ? { ...change, from: "", to: "" } : change)),
    );
    fillIf(parts.panels, [keys, view.panelShown, view.axes], () => [
      choice(
        "Panels ",
        view.panelShown,
        [...keys.filter(k => k !== "method"), "method", "none"]
          .filter((k, i, a) => a.indexOf(k) === i && (k === "none" || keys.includes(k)))
          .map(k => [k, k === "none" ? "none" : keyName(k)]),
        v => set({ panel: v }),
      ),
      view.panelShown === "none"
        ? null
        : toggle(
            "same y",
            view.axes === "shared",
            () => set({ axes: view.axes === "shared" ? "own" : "shared" }),
            "the panels of a metric share their y axis",
          ),
    ]);
    fillIf(parts.filter, view.filter, () =>
      h("input", {
        type: "search",
        id: "filter",
        placeholder: "Filter",
        value: view.filter,
        "aria-label": "filter the runs",
        onchange: e => set({ filter: e.target.value }),
      }),
    );
    fillIf(parts.chosen, view.runs, () =>
      view.runs
        ? h(
            "button.plain",
            { onclick: () => set({ runs: "" }) },
            `Only ${plural(view.runs.split(",").length, "chosen run")} ✕`,
          )
        : [],
    );
  }

  // Runs are named one by one only if they are not all that the model has, or all that have not failed.
  function parameters_(metric, list) {
    const all = [...runs.values()].filter(r => r.model === view.model),
      good = all.filter(r => r.state !== "failed");
    const where = [`model=${view.model}`],
      some = { metric, x: view.x, panel: view.panelShown, points: POINTS, where, from: view.from, to: view.to };
    if (list.length === all.length) return some;
    if (list.length === good.length && list.every(r => r.state !== "failed"))
      where.push("state=training,stopped,finished");
    else some.runs = list.map(r => r.id).join(",");
    return some;
  }

  function drawLegend(groups) {
    const seen = new Map();
    for (const g of groups) if (!seen.has(g.label)) seen.set(g.label, g);
    fillIf(legend, [[...seen.values()].map(g => [g.label, g.method, g.shade]), [...hidden], isDark()], () =>
      [...seen.values()].map(g =>
        h(
          "button.key",
          {
            "aria-pressed": String(!hidden.has(g.label)),
            title: "click to hide or show; with Shift, to see it alone",
            onclick: e => {
              if (e.shiftKey) {
                const alone = [...seen.keys()].every(l => l === g.label || hidden.has(l));
                for (const l of seen.keys()) alone || l === g.label ? hidden.delete(l) : hidden.add(l);
              } else hidden.has(g.label) ? hidden.delete(g.label) : hidden.add(g.label);
              view.hidden = [...hidden].join("|");
              write();
              draw();
            },
          },
          swatch(g.method, g.shade),
          g.label,
        ),
      ),
    );
  }

  function tools(metric, list) {
    const to = kind => `/api/compare.${kind}?` + query({ ...parameters_(metric, list), log: view.log, points: 2000 });
    return h(
      "span.tools",
      ["svg", "pdf", "csv"].map(k =>
        h("a", { href: to(k), download: "", title: `download as ${k.toUpperCase()}` }, k.toUpperCase()),
      ),
    );
  }

  const curve = g => ({ ...g, y: g.median });

  const zoomTo = (from, to) => {
    Object.assign(view, { from: from === null ? "" : String(from), to: from === null ? "" : String(to) });
    refresh();
  };
  function removeSection(section) {
    for (const [key, chart] of charts)
      if (key.startsWith(section.dataset.key)) {
        chart.free();
        charts.delete(key);
      }
    section.remove();
  }

  function drawMetric(metric, answer, list) {
    const panels = [...new Set(answer.groups.map(g => g.panel))].sort(compareTexts);
    const key = JSON.stringify([metric, panels, view.log, view.x, view.smooth]);
    let section = body.querySelector(`section[data-key="${CSS.escape(key)}"]`);
    if (!section) {
      section = h(
        "section",
        { "data-key": key, "data-metric": metric },
        h(
          "div.metric-head",
          h("h2", metricName(metric), metricUnit(metric) ? h("small", ` (${metricUnit(metric)})`) : null),
          h("span.quiet", helpOf(metric, view.model)),
          h("span.spring"),
          tools(metric, list),
        ),
        h("div.panels"),
      );
      for (const panel of panels) {
        const chart = new Chart({
          title: panel || " ",
          metric,
          xName: view.x,
          log: view.log,
          smooth: view.smooth,
          peers: () => charts.values(),
          height: panels.length > 2 ? 210 : 260,
          hidden,
          onZoom: zoomTo,
        });
        charts.set(key + panel, chart);
        section.lastChild.append(chart.element);
      }
      const old = body.querySelector(`section[data-metric="${CSS.escape(metric)}"]`);
      body.insertBefore(section, old);
      if (old) removeSection(old);
    }
    morph(section.querySelector(".tools"), tools(metric, list));
    const curves = answer.groups.map(curve);
    const range =
      view.axes === "shared" ? rangeOf(curves.filter(c => !hidden.has(c.label)), view.log.includes("y")) : null;
    const window = view.from ? [Number(view.from), Number(view.to)] : null;
    for (const panel of panels) {
      const chart = charts.get(key + panel);
      chart.set(
        curves.filter(c => c.panel === panel),
        { window, range },
      );
      chart.showHidden();
    }
  }

  // ---- below the charts: medians as numbers, and what chosen runs differ in

  const table = (title, about, head, rows) =>
    h(
      "section.group.numbers",
      h("h2", title, h("span.n", about)),
      h(
        "div.table-box",
        { tabindex: "0", role: "region", "aria-label": title },
        h("table", h("thead", h("tr", head.filter(Boolean).map((c, i) => h(i ? "th.right" : "th", { scope: "col" }, c)))), h("tbody", rows)),
      ),
    );
  const rowOf = (name, cells) => h("tr", h("th", { scope: "row" }, name), cells);

  function medians() {
    const cell = ([metric, answer], label, panel) => {
      const groups = answer.groups.filter(g => g.panel === panel && g.median.length),
        last = g => g.median[g.median.length - 1],
        own = groups.find(g => g.label === label);
      if (!own) return h("td.right");
      const best = Math[lowerIsBetter(metric) ? "min" : "max"](...groups.map(last));
      return h(
        last(own) === best && groups.length > 1 ? "td.right.best" : "td.right",
        { title: `${plural(own.runs.length, "run")}; quartiles ${number(own.low.at(-1))} … ${number(own.high.at(-1))}` },
        measured(last(own)),
      );
    };
    const groups = shown[0][1].groups,
      panels = view.panelShown !== "none";
    return table(
      "Medians",
      view.to ? `at ${number(Number(view.to))}` : "at the end",
      ["curve", panels && keyName(view.panelShown), "runs", ...shown.map(([m]) => metricName(m))],
      [...groups]
        .sort((a, b) => compareTexts(a.panel, b.panel))
        .map(g =>
          rowOf(h("span.method", swatch(g.method, g.shade), g.label), [
            panels && h("td.right", g.panel.replace(/^.* = /, "")),
            h("td.right", number(g.runs.length)),
            shown.map(part => cell(part, g.label, g.panel)),
          ]),
        ),
    );
  }

  const MOST_BESIDE = 6; // runs side by side
  function settings(list) {
    const all = [...new Set(list.flatMap(r => Object.keys(r.config)))],
      text = (r, k) => String(r.config[k] ?? "–"),
      differ = all.filter(k => new Set(list.map(r => text(r, k))).size > 1),
      metrics = [...new Set(list.flatMap(r => Object.keys(r.last)))].sort(compareTexts);
    return table(
      "Side by side",
      `${differ.length} of ${plural(all.length, "setting")} differ`,
      ["setting", ...list.map(r => h("a", { href: `#/run/${r.id}` }, r.name))],
      [
        ...differ.map(k => rowOf(keyName(k), list.map(r => h("td.right", text(r, k))))),
        ...metrics.map(m => rowOf(metricName(m), list.map(r => h("td.right", measured(r.last[m]))))),
      ],
    );
  }

  function drawTables() {
    const list = shown.length ? shown[0][2] : [];
    fillIf(tables, [shown.map(([m, a]) => [m, a.groups]), view.panelShown, list.map(r => [r.id, r.last]), isDark()], () => [
      shown.length ? medians() : null,
      view.runs && list.length > 1 && list.length <= MOST_BESIDE ? settings(list) : null,
    ]);
  }

  function draw() {
    for (const [metric, answer, list] of shown) drawMetric(metric, answer, list);
    drawLegend(shown.flatMap(([, answer]) => answer.groups));
    drawTables();
  }

  const write = () => writeAddress("compare", view, defaults);

  async function refresh() {
    const { list, models, n_failed } = selected();
    const blank = element => {
      note.textContent = "";
      fillIf(legend, null, () => []);
      body.replaceChildren(element);
      shown = [];
      drawTables();
    };
    if (runs.size === 0) {
      for (const part of Object.values(parts)) fillIf(part, null, () => []);
      return blank(nothing());
    }
    const metrics = metricsOf(list);
    drawControls(list, models, metrics);
    if (models.length < 2) view.model = "";
    write();
    view.model ||= models[0] ?? "";
    if (list.length === 0)
      return blank(empty("No run matches", "Change the filter, or choose other runs in the list."));
    try {
      const answers = await Promise.all(metrics.wanted.map(m => get("/api/compare?" + query(parameters_(m, list)))));
      for (const old of body.querySelectorAll("section"))
        if (!metrics.wanted.includes(old.dataset.metric)) removeSection(old);
      for (const old of body.querySelectorAll(".empty")) old.remove();
      shown = metrics.wanted.map((m, i) => [m, answers[i], list]);
      draw();
      const nDamaged = answers[0].groups.reduce((n, g) => n + g.damaged.length, 0);
      note.textContent = `${plural(list.length, "run")} of ${modelName(view.model)}, ${plural(answers[0].groups.length, "curve")}: medians over seeds, bands between the quartiles${n_failed ? `; ${plural(n_failed, "failed run")} left out` : ""}${nDamaged ? `; ${plural(nDamaged, "damaged run")} among them, whose numbers may be wrong` : ""}`;
    } catch (error) {
      body.replaceChildren(failure(error));
    }
  }

  const soon = calm(refresh, 1500);
  live.addEventListener("runs", soon);
  refresh();
  return {
    free() {
      live.removeEventListener("runs", soon);
      for (const c of charts.values()) c.free();
    },
    repaint() {
      for (const c of charts.values()) c.free();
      charts = new Map();
      body.replaceChildren();
      refresh();
    },
  };
}
