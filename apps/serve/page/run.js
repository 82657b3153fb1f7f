// run.js - one run: curves, pictures, trees, Hinton diagrams, configuration.

import { h, empty, failure, fill, morph, calm } from "./dom.js";
import { number, duration, moment, share, keyName, modelName, plural, compareTexts } from "./text.js";
import { get, runs, live, methodStyle, helpOf } from "./api.js";
import { Chart, axisControls, methodColour, swatch } from "./charts.js";
import { pill, progress } from "./runs.js";
import { colourKey, drawHinton, drawBars, drawTree, parseTree } from "./drawings.js";

// ---- a slider over iterations, of which show(iteration) draws one

function iterationSlider(label, show) {
  const at = h("output");
  const input = h("input", { type: "range", min: "0", value: "0", "aria-label": label, oninput: () => draw() });
  let iterations = [];
  const isAtEnd = () => Number(input.value) >= iterations.length - 1;
  function draw() {
    const iteration = iterations[Number(input.value)];
    if (iteration === undefined) return;
    at.textContent = `iteration ${number(iteration)}`;
    show(iteration);
  }
  function move(by) {
    input.value = Number(input.value) + by;
    draw();
  }
  // A slider that is at its end stays there.
  function set(list) {
    const wasAtEnd = isAtEnd();
    iterations = list;
    input.max = String(list.length - 1);
    if (wasAtEnd) input.value = input.max;
    draw();
  }
  return { elements: [input, at], isAtEnd, draw, move, set };
}

// ---- pictures over the iterations

function picturesPart(run) {
  const image = h("img.gallery", { alt: "" });
  const slider = iterationSlider("iteration of the picture", iteration => {
    image.src = `/api/runs/${run.id}/pictures/${iteration}`;
    image.alt = `pictures at iteration ${iteration}`;
  });
  const play = h("button.plain", { onclick: () => toggle() }, "Play");
  const part = h(
    "section.card.wide",
    { hidden: true },
    h(
      "div.card-head",
      h("h2", "Pictures"),
      h("span.quiet", "test data with the windows that the guide looked at; below, what the model makes of them"),
    ),
    h("div.slide", play, slider.elements),
    image,
  );
  let n = 0,
    timer = null;

  function toggle() {
    play.textContent = timer ? "Play" : "Stop";
    if (timer) timer = clearInterval(timer);
    else {
      if (slider.isAtEnd()) slider.move(-Infinity);
      timer = setInterval(() => {
        slider.move(1);
        if (slider.isAtEnd()) toggle();
      }, 500);
    }
  }

  async function refresh() {
    if (!run.has_folder) return;
    const list = (await get(`/api/runs/${run.id}/pictures`)).iterations;
    if (list.length === n) return;
    n = list.length;
    part.hidden = false;
    slider.set(list);
  }
  return { part, refresh, free: () => clearInterval(timer) };
}

// ---- snapshots: distributions, probabilities of rules, trees, each over the iterations

const title = name =>
  ({ p: "p(z)", np: "Rules of NP", trees: "Trees that the guide prefers" })[name] ||
  name.replace(/^q_(.*)$/, "q(z | x = $1)").replaceAll("_", " ");

const isTrees = shot => shot.labels.every(l => l && parseTree(l));

function drawShot(run, shot, truth) {
  const colour = methodColour(run.method),
    black = methodColour("true");
  if (isTrees(shot))
    return h(
      "div.trees",
      shot.values.map((v, i) => h("figure.tree-card", h("figcaption", share(v)), drawTree(shot.labels[i], colour))),
    );
  const strips = [
    truth && { label: "True", values: truth.values, colour: black },
    { label: methodStyle(run.method).name, values: shot.values, colour },
  ].filter(Boolean);
  if (shot.labels.every(l => !l)) return drawHinton(strips, "z");
  return h(
    "div",
    colourKey(strips.map(t => [t.label, t.colour])),
    drawBars(
      shot.labels.map((l, i) => ({
        label: l || String(i),
        values: strips.map(t => ({ name: t.label, value: t.values[i], colour: t.colour })),
      })),
    ),
  );
}

function snapshotsPart(run) {
  const body = h("div.shots"),
    slider = iterationSlider("iteration of the snapshots", show);
  const part = h(
    "section.card.wide",
    { hidden: true },
    h("div.card-head", h("h2", "What it has learned")),
    h("div.slide", slider.elements),
    body,
  );
  let list = [];

  const latest = (name, iteration) =>
    list.filter(x => x.name === name && x.iteration <= iteration).sort((a, b) => b.iteration - a.iteration)[0];

  function show(iteration) {
    const names = [...new Set(list.map(x => x.name))].filter(n => !n.startsWith("true_")).sort(compareTexts);
    fill(
      body,
      names.map(name => {
        const shot = latest(name, iteration);
        return (
          shot &&
          h(
            "div.shot" + (isTrees(shot) ? ".whole" : ""),
            h("h3", title(name)),
            drawShot(run, shot, latest("true_" + name, Infinity)),
          )
        );
      }),
    );
  }

  async function refresh() {
    list = (await get(`/api/runs/${run.id}/snapshots`)).snapshots;
    const all = [...new Set(list.map(x => x.iteration))].sort((a, b) => a - b);
    if (all.length === 0) return;
    part.hidden = false;
    slider.set(all);
  }
  return { part, refresh, show: slider.draw };
}

// ---- curves

function curvesPart(run) {
  const view = { x: "iteration", log: "", smooth: "" };
  const grid = h("div.panels.small");
  const tools = h("div.controls");
  const part = h("section", tools, grid);
  let charts = new Map(),
    metrics = [];

  function drawTools() {
    const set = change => {
      Object.assign(view, change);
      rebuild();
    };
    tools.replaceChildren(h("h2", "Metrics"), h("span.spring"), ...axisControls(view, set));
  }

  function draw() {
    for (const m of metrics) {
      if (!charts.has(m.name)) {
        const chart = new Chart({
          metric: m.name,
          xName: view.x,
          log: view.log,
          smooth: view.smooth,
          peers: () => charts.values(),
          height: 180,
          tools: h("span.last"),
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

  // Only what is new is fetched, until there are so many points that the server should choose fewer of them again.
  async function refresh() {
    const last = metrics.length ? Math.max(...metrics.map(m => m.iterations[m.iterations.length - 1] ?? -1)) : -1;
    const whole = last < 0 || metrics.some(m => m.values.length > 3000) || runs.get(run.id)?.iteration < last;
    const fetched = async after => (await get(`/api/runs/${run.id}/metrics?points=1500${after}`)).metrics;
    // The last points are fetched once more, because they may have been measured again.
    const added = await fetched(whole ? "" : `&since=${last - 1}`);
    const old = added.map(m => metrics.find(o => o.name === m.name));
    if (whole) metrics = added;
    else if (old.includes(undefined))
      metrics = await fetched(""); // a new metric may have earlier points
    else
      added.forEach((m, i) => {
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
    free: () => charts.forEach(c => c.free()),
  };
}

// ---- the page

function facts(run) {
  const row = (name, value) =>
    value === null || value === undefined || value === "" ? null : [h("dt", name), h("dd", value)];
  return h(
    "section.card",
    h("h2", "Run"),
    h(
      "dl",
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
      row("store", h("code", run.store)),
    ),
  );
}

function configuration(run) {
  return h(
    "section.card",
    h("h2", "Configuration"),
    h(
      "dl",
      Object.entries(run.config).map(([k, v]) => [h("dt", { title: k }, keyName(k)), h("dd", String(v))]),
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
        h("p", h("a.button", { href: "#/runs" }, "All runs")),
      ),
    );
    return { free() {}, repaint() {} };
  }
  const head = h("div.run-head"),
    trouble = h("div"),
    sides = h("div.sides");
  const curves = curvesPart(run),
    pictures = picturesPart(run),
    shots = snapshotsPart(run);
  main.replaceChildren(head, trouble, curves.part, pictures.part, shots.part, sides);

  // The elements stay, so that a link keeps its focus and a text its selection.
  function drawHead() {
    const state =
      run.time_left !== null
        ? `${duration(run.time_left)} left`
        : run.state === "stopped"
          ? `Stopped at iteration ${number(run.iteration)}` +
            (run.folder ? `; rws train ${run.model} --out ${run.folder} --resume continues.` : ".")
          : `${plural(run.iteration, "iteration")} in ${duration(run.seconds)}`;
    morph(
      head,
      h(
        "div.run-head",
        h(
          "div.head",
          h(
            "div",
            h(
              "p.crumb",
              h("a", { href: "#/runs" }, "Runs"),
              " / ",
              h("span", { title: run.model }, modelName(run.model)),
            ),
            h("h1", run.name),
          ),
          h("span.spring"),
          h(
            "span.method.big",
            swatch(run.method),
            methodStyle(run.method).name,
            h("small", `K = ${run.config.particles}, seed ${run.config.seed}`),
          ),
          pill(run),
          h("a.button", { href: `#/ask/${run.id}` }, "Ask"),
          h("a.button.plain", { href: `#/compare?model=${encodeURIComponent(run.model)}` }, "Compare"),
        ),
        progress(run, ".long"),
        h("p.quiet", state),
      ),
    );
    morph(
      trouble,
      h(
        "div",
        run.warnings.map(w =>
          h(
            "p.banner",
            { "data-kind": w.kind, role: "alert" },
            h(
              "b",
              {
                damaged: "Damaged. ",
                failed: "Failed. ",
                closed: "A branch may have closed. ",
                falling: "Evidence falls. ",
                broken: "Numerical failure. ",
              }[w.kind] || "",
            ),
            w.message,
          ),
        ),
      ),
    );
    morph(sides, h("div.sides", facts(run), configuration(run)));
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
