// api.js - the server: requests, and the list of runs that is kept up to date by events.

import { metricHelp } from "./text.js";

export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function read(response) {
  if (response.ok) return response.json();
  const { error } = await response.json().catch(() => ({})); // no JSON: the status must do
  throw new Failure(response.status, error || `The server answered ${response.status}.`);
}

async function request(path, options) {
  try {
    return await fetch(path, options);
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Failure(0, "The server does not answer. Is rws serve still running?");
  }
}

export async function get(path, signal) {
  return read(await request(path, { signal }));
}

export async function post(path, body, signal) {
  return read(
    await request(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal,
    }),
  );
}

export function query(parameters) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (Array.isArray(value)) value.forEach(v => q.append(name, v));
    else if (value !== null && value !== undefined && value !== "") q.append(name, value);
  }
  return q.toString();
}

// ---- the runs

export const live = new EventTarget(); // "runs" with detail.ids: these have changed; "state"
export const runs = new Map(); // by id
export let problems = [];
export let overview = { methods: [], folders: [], version: "", limits: {} };
export let state = "waiting"; // or "live", "lost"
let event = 0;

function tell(ids) {
  live.dispatchEvent(new CustomEvent("runs", { detail: { ids: new Set(ids) } }));
}

function setState(now) {
  if (now === state) return;
  state = now;
  live.dispatchEvent(new Event("state"));
}

async function reload() {
  const all = await get("/api/runs");
  runs.clear();
  for (const run of all.runs) runs.set(run.id, run);
  problems = all.problems;
  event = all.event;
  tell(runs.keys());
}

function take(change) {
  for (const run of change.runs) runs.set(run.id, run);
  for (const id of change.gone) runs.delete(id);
  problems = change.problems;
  tell([...change.runs.map(r => r.id), ...change.gone]);
}

let source = null;

function listen() {
  source = new EventSource(`/api/events?after=${event}`);
  const own = source;
  const number = e => {
    event = Number(e.lastEventId) || event;
  };
  own.addEventListener("open", () => setState("live"));
  own.addEventListener("runs", e => {
    number(e);
    take(JSON.parse(e.data));
  });
  own.addEventListener("reset", e => {
    number(e);
    reload().catch(() => setState("lost"));
  });
  own.addEventListener("error", () => {
    if (own !== source) return;
    setState("lost");
    if (own.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    setTimeout(
      () =>
        reload()
          .catch(() => {})
          .finally(() => own === source && listen()),
      2000,
    );
  });
}

// A browser has six connections for one server and all its tabs: a tab that is not seen gives its own back.
function watchVisibility() {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else if (!document.hidden && !source) listen();
  });
  addEventListener("pagehide", () => {
    if (source) source.close();
    source = null;
  });
  addEventListener("pageshow", e => {
    if (e.persisted && !source) listen();
  });
}

export async function start() {
  overview = await get("/api");
  await reload();
  listen();
  watchVisibility();
}

export const helpOf = (metric, model) => metricHelp(metric, model, overview.models);
export const methodStyle = method =>
  overview.methods.find(m => m.method === method) || {
    method,
    name: method || "",
    colour: "#888888",
    dash: [3, 1, 1, 1],
  };
