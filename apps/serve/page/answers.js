// answers.js - what a run answers: evidence, trees, pictures, the distribution of every choice and number.

import { h } from "./dom.js";
import { number, share, plural } from "./text.js";
import { colourKey, drawTree, drawBars, drawPicture } from "./drawings.js";

// The side of a square picture of n pixels; 0 if it is none.
export const square = n => {
  const side = Math.round(Math.sqrt(n));
  return side * side === n && side >= 8 ? side : 0;
};
// A report as a list of lists: one that was made once is not a list of them.
export const lists = value => (Array.isArray(value) ? (Array.isArray(value[0]) ? value : [value]) : []);

function evidence(answer) {
  const item = (name, value, title) => h("div", { title: title || null }, h("dt", name), h("dd", value));
  return h(
    "dl.evidence",
    item(
      "log p(x)",
      answer.log_evidence === null
        ? "−∞"
        : number(answer.log_evidence, 5) + (answer.log_evidence_error ? ` ± ${number(answer.log_evidence_error, 2)}` : ""),
      "estimated by the particles' weights, with its standard error",
    ),
    "exact_log_evidence" in answer
      ? item(
          "exactly",
          answer.exact_log_evidence === null ? "−∞" : number(answer.exact_log_evidence, 5),
          "by the model's exact parser",
        )
      : null,
    item("particles", number(answer.particles)),
    item(
      "effective",
      number(Math.round(answer.ess * answer.particles)),
      "as many independent draws of the posterior they are worth",
    ),
    answer.k_hat === null
      ? null
      : item("k̂", number(answer.k_hat, 2), `the tail of the weights; above ${number(answer.k_limit, 2)} it is too heavy`),
    item("verdict", answer.verdict, answer.advice),
  );
}

// An answer that its weights do not make reliable says so above everything else.
function doubt(answer) {
  return answer.verdict === "reliable" ? null : h("p.banner", `${answer.verdict}: ${answer.advice}`);
}

function probabilities(answer) {
  const row = (name, value, title) => (value === undefined ? null : [h("dt", { title }, name), h("dd", share(value))]);
  return h(
    "dl.three",
    row("posterior", answer.posterior, `by importance weights, ± ${share(answer.error ?? 0)}`),
    row("exact", answer.exact, "by the exact parser"),
    row("guide", answer.guide, "share of the guide's particles"),
  );
}

function treeAnswers(answer, colour, sentence) {
  const words = sentence.trim().split(/\s+/).join(" ");
  const good = answer.answers.filter(
    a => a.posterior > 0.0005 || a.exact > 0.0005 || (a.posterior === null && a.guide > 0.01),
  );
  const shown = good.length ? good : answer.answers.slice(0, 3);
  const rest = answer.answers.filter(a => !shown.includes(a)).reduce((sum, a) => sum + a.guide, 0);
  return [
    answer.exact_log_evidence === null
      ? h("p.banner", "This sentence is impossible under the model. The guide proposes:")
      : null,
    h(
      "div.trees",
      shown.map((a, i) =>
        h(
          "figure.tree-card" + (i === 0 ? ".best" : ""),
          h(
            "figcaption",
            probabilities(a),
            a.reports.sentence && a.reports.sentence !== words ? h("p.quiet", a.reports.sentence) : null,
          ),
          drawTree(a.reports.tree, colour),
        ),
      ),
    ),
    rest > 0
      ? h("p.quiet", `${share(rest)} of the guide's particles are other trees, which are impossible or less probable.`)
      : null,
  ];
}

const isWhole = m => m.values !== undefined;

// The distribution of every choice and number.
function marginals(answer, colour) {
  const list = (answer.marginals || []).filter(m => m.posterior > 0.0005 || m.guide > 0.0005);
  const name = m => (m.site ?? m.report) + (m.visit ? ` (visit ${m.visit})` : "");
  return h(
    "div.marginals",
    list.slice(0, 24).map(m =>
      h(
        "section.marginal",
        h("h3", name(m), m.posterior < 0.9995 ? h("small", ` visited with probability ${share(m.posterior)}`) : null),
        isWhole(m)
          ? drawBars(
              m.values
                .filter(v => v.posterior > 0.0005 || v.guide > 0.0005)
                .map(v => ({
                  label: number(v.value),
                  values: [
                    { name: "posterior", value: v.posterior, colour },
                    { name: "guide", value: v.guide, colour: "var(--faint)" },
                  ],
                })),
              1,
            )
          : h("p", m.mean.map((x, i) => `${number(x, 3)} ± ${number(m.sd[i], 2)}`).join(", ")),
      ),
    ),
    list.some(isWhole)
      ? colourKey([
          ["posterior", colour],
          ["guide", "var(--faint)"],
        ])
      : null,
  );
}

function pictureAnswers(answer, side) {
  return h(
    "div.pictures",
    answer.answers
      .slice(0, 4)
      .map((a, i) =>
        h(
          i === 0 ? "figure.best" : "figure",
          drawPicture(a.reports.picture, side, lists(a.reports.where), "what the model makes of it"),
          h(
            "figcaption",
            { title: answer.advice },
            i === 0 ? "most probable, " : "",
            `${share(a.posterior)} ± ${share(a.error ?? 0)}`,
            answer.verdict === "reliable" ? null : `, ${answer.verdict}`,
          ),
        ),
      ),
  );
}

// A picture that the model makes beside the datum, and what the model reports of it.
function pictureParts(answer, best, side, colour, drawnHere) {
  const row = pictureAnswers(answer, side);
  if (!drawnHere && best.reports.seen)
    row.prepend(
      h(
        "figure",
        drawPicture(best.reports.seen, side, lists(best.reports.where), "the datum"),
        h("figcaption", "the datum"),
      ),
    );
  const reports = answer.marginals
    .filter(m => m.report)
    .map(m => (m.report === "n" ? { ...m, report: "number of objects" } : m));
  return [h("h2", "What the model makes of it"), row, marginals({ marginals: reports }, colour)];
}

// The elements of an answer. `form` is the form in which the datum was given.
export function drawAnswer(answer, colour, form) {
  const best = answer.answers[0],
    side = best && best.reports.picture ? square(best.reports.picture.length) : 0;
  // A drawing is asked with few particles while it is made: its captions have the verdict.
  const impossible = best && best.reports.tree && answer.exact_log_evidence === null; // which the trees say themselves
  const parts = [evidence(answer), impossible || form.found ? null : doubt(answer)];
  if (best && best.reports.tree)
    parts.push(...treeAnswers(answer, colour, form.text ? form.text() : best.reports.sentence || ""));
  else if (side) parts.push(...pictureParts(answer, best, side, colour, !!form.found));
  else parts.push(h("h2", "The posterior of each choice"), marginals(answer, colour));
  return parts.flat().filter(Boolean);
}
