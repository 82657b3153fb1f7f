// calibration.js - is the guide calibrated? Simulations that the server makes, as a table with a curve for each quantity.

import { h, s, failure } from "./dom.js";
import { number, share } from "./text.js";
import { post } from "./api.js";
import { colourKey } from "./drawings.js";

const WIDE = 180,
  HIGH = 60,
  LEVEL = 0.05, // of adjusted p values
  MOST = 40; // quantities that are shown

// The distribution of ranks less the uniform one: by weights, by the guide, and the band that 95 % of uniform ones stay in.
function curves(weights, guide, colour) {
  const lists = [weights.low, weights.high, weights.difference, guide && guide.difference].filter(Boolean);
  const top = 1.05 * Math.max(...lists.flat().map(Math.abs)),
    grid = weights.difference.length + 1;
  const points = list =>
    [0, ...list, 0].map((y, i) => `${((i / grid) * WIDE).toFixed(1)} ${((1 - y / top) * (HIGH / 2)).toFixed(1)}`);
  const line = list => "M" + points(list).join("L");
  const path = (d, stroke, width) => s("path", { d, stroke, "stroke-width": width, fill: "none" });
  return s(
    "svg",
    { class: "ecdf", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `ranks of ${weights.quantity}` },
    s("path", { d: line(weights.low) + "L" + points(weights.high).reverse().join("L") + "Z", fill: "var(--grid)" }),
    guide && guide.difference ? path(line(guide.difference), "var(--faint)", 1.5) : null,
    path(line(weights.difference), colour, 2),
  );
}

const verdict = q =>
  q.p_adjusted === null
    ? h("td.quiet", "too few ranks")
    : h("td.right", q.p_adjusted < LEVEL ? h("strong", number(q.p_adjusted, 2)) : number(q.p_adjusted, 2));

function row(weights, guide, colour) {
  return h(
    "tr",
    h("td", weights.quantity),
    h("td", weights.difference ? curves(weights, guide, colour) : null),
    verdict(weights),
    guide ? verdict(guide) : h("td"),
    h("td.right", share(weights.coverage[2])),
    h("td.right", guide ? share(guide.coverage[2]) : ""),
  );
}

function results(answer, colour) {
  const of = by => answer.quantities.filter(q => q.by === by);
  const guides = new Map(of("guide").map(q => [q.quantity, q]));
  const rejected = by => of(by).filter(q => q.p_adjusted !== null && q.p_adjusted < LEVEL).length;
  const list = of("weights").sort((a, b) => (a.p ?? 2) - (b.p ?? 2));
  const say = (by, name) => `${name}: ${rejected(by)} of ${of(by).length} quantities are not calibrated. `;
  return [
    h(
      rejected("weights") ? "p.banner" : "p",
      say("weights", "Weighted answers"),
      say("guide", "The bare guide"),
      answer.impossible ? `${answer.impossible} of ${answer.simulations} simulated data are impossible for all particles.` : "",
    ),
    h(
      "div.table-box",
      h(
        "table.calibration",
        h(
          "thead",
          h(
            "tr",
            ["quantity", "ranks", "adj. p", "of the guide", "in 95 %", "of the guide"].map((x, i) => h(i > 1 ? "th.right" : "th", x)),
          ),
        ),
        h(
          "tbody",
          list.slice(0, MOST).map(q => row(q, guides.get(q.quantity), colour)),
        ),
      ),
    ),
    colourKey([
      ["weights", colour],
      ["guide", "var(--faint)"],
      ["95 % band", "var(--grid)"],
    ]),
  ];
}

export function calibrationPart(run, colour) {
  const body = h("div", { "aria-live": "polite" });
  const simulations = h("input", { type: "number", min: "50", max: "100000", value: "300", "aria-label": "simulations" });
  const button = h("button", { id: "calibrate", onclick: calibrate }, "Calibrate");
  async function calibrate() {
    button.disabled = true;
    body.replaceChildren(h("p.quiet", "The model makes data, and the guide is asked about them…"));
    try {
      const n = Math.max(50, Number(simulations.value) || 300);
      const answer = await post(`/api/runs/${run.id}/calibrate`, { simulations: n, particles: 200 });
      body.replaceChildren(...results(answer, colour));
    } catch (error) {
      body.replaceChildren(failure(error));
    }
    button.disabled = false;
  }
  return h(
    "section.card.wide",
    h(
      "div.card-head",
      h("h2", "Calibration"),
      h("span.quiet", "has the truth of simulated data a uniform rank among the answers?"),
      h("span.spring"),
      h("label.field", "Simulations ", simulations),
      button,
    ),
    body,
  );
}
