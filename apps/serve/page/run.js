// run.js - one run: curves, pictures, trees, Hinton diagrams, configuration.

import {
  h,
  number,
  duration,
  moment,
  share,
  keyName,
  modelName,
  plural,
  empty,
  failure,
  morph,
  calm,
  compareTexts,
} from "./text.js";
import { get, runs, live, methodStyle, helpOf } from "./api.js";
import { Chart, methodColour, swatch } from "./charts.js";
import { pill } from "./runs.js";
import { drawHinton, drawBars, drawTree, parseTree } from "./drawings.js";

// ---- pictures over the iterations

function picturesPart(run) {
  const image = h("img", { alt: "", class: "gallery" });
  const at = h("output", {});
  const slider = h("input", {
    type: "range",
    min: "0",
    value: "0",
    "aria-label": "iteration of the picture",
    oninput: () => show(),
  });
  const play = h("button", { type: "button", class: "plain", onclick: () => toggle() }, "Play");
  const part = h(
    "section",
    { class: "card wide", hidden: true },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, "Pictures"),
      h(
        "span",
        { class: "quiet" },
        "test data with the windows that the guide looked at; below, what the model makes of them",
      ),
    ),
    h("div", { class: "slide" }, play, slider, at),
    image,
  );
  let iterations = [],
    timer = null;

  function show() {
    const iteration = iterations[Number(slider.value)];
    if (iteration === undefined) return;
    at.textContent = `iteration ${number(iteration)}`;
    image.src = `/api/runs/${run.id}/pictures/${iteration}`;
    image.alt = `pictures at iteration ${iteration}`;
  }

  function toggle() {
    if (timer) {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
      return;
    }
    play.textContent = "Stop";
    if (Number(slider.value) >= iterations.length - 1) slider.value = 0;
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) >= iterations.length - 1) toggle();
    }, 500);
  }

  async function refresh() {
    if (!run.has_folder) return;
    const list = (await get(`/api/runs/${run.id}/pictures`)).iterations;
    if (list.length === iterations.length) return;
    const last = Number(slider.value) >= iterations.length - 1;
    iterations = list;
    part.hidden = false;
    slider.max = String(iterations.length - 1);
    if (last) slider.value = String(iterations.length - 1);
    show();
  }
  return { part, refresh, free: () => clearInterval(timer) };
}

// ---- snapshots: distributions, probabilities of rules, trees, each over the iterations

const title = name =>
  ({ p: "p(z)", np: "Rules of NP", trees: "Trees that the guide prefers" })[name] ||
  name.replace(/^q_(.*)$/, "q(z | x = $1)").replaceAll("_", " ");

function drawShot(run, name, shot, truth) {
  const colour = methodColour(run.method),
    black = methodColour("true");
  if (shot.labels.every(l => l && parseTree(l)))
    return h(
      "div",
      { class: "trees" },
      shot.values.map((v, i) =>
        h("figure", { class: "tree-card" }, h("figcaption", {}, share(v)), drawTree(shot.labels[i], colour)),
      ),
    );
  const strips = [
    truth && { label: "True", values: truth.values, colour: black },
    { label: methodStyle(run.method).name, values: shot.values, colour },
  ].filter(Boolean);
  if (shot.labels.every(l => !l)) return drawHinton(strips, "z");
  return h(
    "div",
    {},
    h(
      "div",
      { class: "bar-key" },
      strips.map(t => {
        const dot = h("i");
        dot.style.background = t.colour;
        return h("span", {}, dot, t.label);
      }),
    ),
    drawBars(
      shot.labels.map((l, i) => ({
        label: l || String(i),
        values: strips.map(t => ({ name: t.label, value: t.values[i], colour: t.colour })),
      })),
    ),
  );
}

function snapshotsPart(run) {
  const part = h("section", { class: "card wide", hidden: true });
  const at = h("output", {}),
    body = h("div", { class: "shots" });
  const slider = h("input", {
    type: "range",
    min: "0",
    value: "0",
    "aria-label": "iteration of the snapshots",
    oninput: () => show(),
  });
  part.append(
    h("div", { class: "card-head" }, h("h2", {}, "What it has learned")),
    h("div", { class: "slide" }, slider, at),
    body,
  );
  let list = [],
    iterations = [];

  const latest = (name, iteration) =>
    list.filter(x => x.name === name && x.iteration <= iteration).sort((a, b) => b.iteration - a.iteration)[0];

  function show() {
    const iteration = iterations[Number(slider.value)];
    at.textContent = `iteration ${number(iteration)}`;
    const names = [...new Set(list.map(x => x.name))].filter(n => !n.startsWith("true_")).sort(compareTexts);
    body.replaceChildren(
      ...names
        .map(name => {
          const shot = latest(name, iteration);
          return shot
            ? h(
                "div",
                { class: "shot" + (shot.labels.every(l => l && parseTree(l)) ? " whole" : "") },
                h("h3", {}, title(name)),
                drawShot(run, name, shot, latest("true_" + name, Infinity)),
              )
            : null;
        })
        .filter(Boolean),
    );
  }

  async function refresh() {
    list = (await get(`/api/runs/${run.id}/snapshots`)).snapshots;
    const all = [...new Set(list.map(x => x.iteration))].sort((a, b) => a - b);
    if (all.length === 0) return;
    const last = Number(slider.value) >= iterations.length - 1;
    iterations = all;
    part.hidden = false;
    slider.max = String(iterations.length - 1);
    if (last) slider.value = String(iterations.length - 1);
    show();
  }
  return { part, refresh, show: () => list.length && show() };
}

// ---- curves

function curvesPart(run) {
  const view = { x: "iteration", logX: false, logY: false };
  const grid = h("div", { class: "panels small" });
  const tools = h("div", { class: "controls" });
  const part = h("section", {}, tools, grid);
  let charts = new Map(),
    metrics = [];

  function drawTools() {
    const toggle = (name, on, change) =>
      h(
        "button",
        {
          type: "button",
          class: "toggle",
          "aria-pressed": String(on),
          onclick: () => {
            change();
            rebuild();
          },
        },
        name,
      );
    tools.replaceChildren(
      h("h2", {}, "Metrics"),
      h("span", { class: "spring" }),
      h(
        "div",
        { class: "set" },
        toggle("iteration", view.x === "iteration", () => {
          view.x = "iteration";
        }),
        toggle("seconds", view.x === "seconds", () => {
          view.x = "seconds";
        }),
      ),
      h(
        "div",
        { class: "set" },
        toggle("log x", view.logX, () => {
          view.logX = !view.logX;
        }),
        toggle("log y", view.logY, () => {
          view.logY = !view.logY;
        }),
      ),
    );
  }

  function draw() {
    for (const m of metrics) {
      if (!charts.has(m.name)) {
        const chart = new Chart({
          metric: m.name,
          xName: view.x,
          logX: view.logX,
          logY: view.logY,
          height: 180,
          tools: h("span", { class: "last" }),
        });
        chart.title.title = helpOf(m.name, run.model);
        charts.set(m.name, chart);
        grid.append(chart.element);
      }
      const chart = charts.get(m.name);
      chart.element.querySelector(".last").textContent = number(m.values[m.values.length - 1]);
      chart.set([
        {
          label: methodStyle(run.method).name,
          method: run.method,
          shade: 0,
          x: view.x === "seconds" ? m.seconds : m.iterations,
          y: m.values,
        },
      ]);
    }
  }

  function rebuild() {
    for (const c of charts.values()) c.free();
    charts = new Map();
    grid.replaceChildren();
    drawTools();
    draw();
  }

  // Only what is new is fetched, until there are so many points that the server should thin them out again.
  async function refresh() {
    const last = metrics.length ? Math.max(...metrics.map(m => m.iterations[m.iterations.length - 1] ?? -1)) : -1;
    const whole = last < 0 || metrics.some(m => m.values.length > 3000) || runs.get(run.id)?.iteration < last;
    const fetched = async after => (await get(`/api/runs/${run.id}/metrics?points=1500${after}`)).metrics;
    // The last points are fetched once more, because they may have been measured again.
    const news = await fetched(whole ? "" : `&since=${last - 1}`);
    const old = news.map(m => metrics.find(o => o.name === m.name));
    if (whole) metrics = news;
    else if (old.includes(undefined)) metrics = await fetched(""); // a new metric may have earlier points
    else
      news.forEach((m, i) => {
        const at = old[i].iterations.findIndex(x => x >= m.iterations[0]);
        for (const key of ["iterations", "seconds", "values"])
          old[i][key].splice(at < 0 ? old[i][key].length : at, Infinity, ...m[key]);
      });
    draw();
  }
  drawTools();
  return {
    part,
    refresh,
    rebuild,
    free: () => {
      for (const c of charts.values()) c.free();
    },
  };
}

// ---- the page

function facts(run) {
  const row = (name, value) =>
    value === null || value === undefined || value === "" ? null : [h("dt", {}, name), h("dd", {}, value)];
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Run"),
    h(
      "dl",
      {},
      row("iterations", `${number(run.iteration)} of ${number(run.iterations)}`),
      row("time", duration(run.seconds)),
      row("time left", run.time_left === null ? null : duration(run.time_left)),
      row(
        "speed",
        run.seconds > 0 && run.iteration > 0 ? `${number(run.iteration / run.seconds, 3)} iterations / s` : null,
      ),
      row("started", moment(run.started)),
      row("machine", run.host),
      row("version", run.version),
      row("store", h("code", {}, run.store)),
    ),
  );
}

function configuration(run) {
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Configuration"),
    h(
      "dl",
      {},
      Object.entries(run.config).map(([k, v]) => [h("dt", { title: k }, keyName(k)), h("dd", {}, String(v))]),
    ),
  );
}

export function showRun(main, rest) {
  const id = rest[0];
  let run = runs.get(id);
  if (!run) {
    main.replaceChildren(
      empty(
        "There is no such run",
        "It may have been moved or removed since.",
        h("p", {}, h("a", { class: "button", href: "#/runs" }, "All runs")),
      ),
    );
    return { free() {}, repaint() {} };
  }
  const head = h("div", { class: "run-head" }),
    trouble = h("div", {}),
    sides = h("div", { class: "sides" });
  const curves = curvesPart(run),
    pictures = picturesPart(run),
    shots = snapshotsPart(run);
  main.replaceChildren(head, trouble, curves.part, pictures.part, shots.part, sides);

  // The elements stay, so that a link keeps its focus and a text its selection.
  function drawHead() {
    const fill = h("i");
    fill.style.width = `${run.iterations ? 100 * Math.min(1, run.iteration / run.iterations) : 0}%`;
    const state =
      run.time_left !== null
        ? `${duration(run.time_left)} left`
        : run.state === "stopped"
          ? `Stopped at iteration ${number(run.iteration)}; rws train ${run.model} --out FOLDER --resume continues it.`
          : `${plural(run.iteration, "iteration")} in ${duration(run.seconds)}`;
    morph(
      head,
      h(
        "div",
        { class: "run-head" },
        h(
          "div",
          { class: "head" },
          h(
            "div",
            {},
            h(
              "p",
              { class: "crumb" },
              h("a", { href: "#/runs" }, "Runs"),
              " / ",
              h("span", { title: run.model }, modelName(run.model)),
            ),
            h("h1", {}, run.name),
          ),
          h("span", { class: "spring" }),
          h(
            "span",
            { class: "method big" },
            swatch(run.method),
            methodStyle(run.method).name,
            h("small", {}, `K = ${run.config.particles}, seed ${run.config.seed}`),
          ),
          pill(run),
          h("a", { class: "button", href: `#/ask/${run.id}` }, "Ask"),
          h("a", { class: "button plain", href: `#/compare?model=${encodeURIComponent(run.model)}` }, "Compare"),
        ),
        h("div", { class: "progress long", "data-state": run.state }, fill),
        h("p", { class: "quiet" }, state),
      ),
    );
    morph(
      trouble,
      h(
        "div",
        {},
        run.warnings.map(w =>
          h(
            "p",
            { class: "banner", "data-kind": w.kind, role: "alert" },
            h(
              "b",
              {},
              {
                damaged: "Damaged. ",
                failed: "Failed. ",
                closed: "A branch may have closed. ",
                falling: "Evidence falls. ",
                broken: "Numerical failure. ",
              }[w.kind] || "",
            ),
            w.sentence,
          ),
        ),
      ),
    );
    morph(sides, h("div", { class: "sides" }, facts(run), configuration(run)));
  }

  async function refresh() {
    try {
      await Promise.all([curves.refresh(), pictures.refresh(), shots.refresh()]);
    } catch (error) {
      trouble.append(failure(error));
    }
  }

  const soon = calm(refresh, 1000);
  const changed = e => {
    if (!e.detail.ids.has(id)) return;
    run = runs.get(id) || run;
    drawHead();
    soon();
  };
  live.addEventListener("runs", changed);
  drawHead();
  refresh();
  return {
    free() {
      live.removeEventListener("runs", changed);
      curves.free();
      pictures.free();
    },
    repaint() {
      drawHead();
      curves.rebuild();
      shots.show();
    },
  };
}
