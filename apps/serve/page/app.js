// app.js - the page: which part is shown, colours, keys.

import { empty, failure } from "./dom.js";
import { start, live, state } from "./api.js";
import { showRuns } from "./runs.js";
import { showCompare } from "./compare.js";
import { showRun } from "./run.js";
import { showAsk } from "./ask.js";

const main = document.getElementById("main");
const pages = { runs: showRuns, compare: showCompare, run: showRun, ask: showAsk };
let now = null;

// #/run/0a1b?x=seconds: the page, what follows it, and parameters.
function route() {
  const [path, parameters] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").filter(Boolean);
  const page = pages[name] ? name : "runs";
  if (now) now.free();
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.dataset.page === page || (page === "run" && link.dataset.page === "runs");
    here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  document.title = `rws · ${page}`;
  main.dataset.page = page;
  now = pages[page](main, rest, new URLSearchParams(parameters || ""), parameters !== undefined);
  scrollTo(0, 0);
}

// ---- colours

const themes = ["system", "light", "dark"],
  signs = { system: "◐", light: "☀", dark: "☾" };
function setTheme(theme) {
  theme === "system" ? delete document.documentElement.dataset.theme : (document.documentElement.dataset.theme = theme);
  document.getElementById("theme").textContent = signs[theme];
  document.getElementById("theme").title = `Colours: ${theme}`;
  try {
    localStorage.setItem("rws-theme", theme);
  } catch {
    /* kept for this page only */
  }
  if (now) now.repaint();
}
function storedTheme() {
  try {
    return themes.includes(localStorage.getItem("rws-theme")) ? localStorage.getItem("rws-theme") : "system";
  } catch {
    return "system";
  }
}
let theme = storedTheme();
const nextTheme = () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  setTheme(theme);
};
document.getElementById("theme").addEventListener("click", nextTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => now && now.repaint());

// ---- keys

const keys = document.getElementById("keys");
document.getElementById("help").addEventListener("click", () => keys.showModal());
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog")) {
    if (e.key === "Escape" && e.target.matches("input")) e.target.blur();
    return;
  }
  const to = { r: "#/runs", c: "#/compare", a: "#/ask" }[e.key];
  if (to) location.hash = to;
  else if (e.key === "t") nextTheme();
  else if (e.key === "?") keys.showModal();
  else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && !e.target.closest("main *")) {
    const rows = document.querySelectorAll("tr[data-id]");
    if (rows.length) {
      e.preventDefault();
      rows[e.key === "ArrowDown" ? 0 : rows.length - 1].focus();
    }
  } else if (e.key === "/") {
    const filter = document.getElementById("filter");
    if (filter) {
      e.preventDefault();
      filter.focus();
    }
  }
});

// ---- whether the page is up to date

const words = { waiting: "connecting", live: "live", lost: "no connection" };
function showState() {
  const sign = document.getElementById("live");
  sign.dataset.state = state;
  sign.querySelector("b").textContent = words[state];
}
live.addEventListener("state", showState);

async function begin() {
  main.replaceChildren(empty("Reading the runs…"));
  setTheme(theme);
  try {
    await start();
  } catch (error) {
    main.replaceChildren(failure(error));
    setTimeout(begin, 3000);
    return;
  }
  addEventListener("hashchange", route);
  route();
}
begin();
