// What is known about runs and commands, kept up to date by the server's events.
import { listen, get, part } from "./api.js";
import { toast } from "./dom.js";

export const state = { rows: new Map(), live: new Map(), jobs: new Map(), ready: false, catalogue: null };
export const chosen = new Set(); // names of runs that are to be compared
export const compareAddress = (names) => `#/compare/runs/${[...names].map(part).join("/")}`;
const watchers = new Set();
export function watch(callback) {
  watchers.add(callback);
  return () => watchers.delete(callback);
}

function take(message) {
  if (message.all) for (const map of [state.rows, state.live, state.jobs]) map.clear();
  for (const row of message.rows || []) {
    state.rows.set(row.name, row);
    if (row.state === "done") state.live.delete(row.name);
  }
  for (const [name, progress] of Object.entries(message.live || {})) state.live.set(name, progress);
  for (const name of message.gone || []) [state.rows, state.live, chosen].forEach((kept) => kept.delete(name));
  for (const job of message.jobs || []) state.jobs.set(job.id, job);
  if (message.ready) state.ready = true;
  if (message.problem) toast(message.problem);
  for (const callback of [...watchers]) callback(message);
}

export async function follow(onLost, onFound) {
  let wait = 500;
  for (;;) {
    try {
      await listen((message) => {
        wait = 500;
        onFound();
        take(message);
      });
    } catch (error) {
      if (error.status === 401) throw error;
    }
    onLost();
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, 8000);
  }
}

// Everything about a run; fetched once, and again only when it has changed.
const abouts = new Map();
export async function about(name) {
  const row = state.rows.get(name);
  const kept = abouts.get(name);
  if (kept && kept.when === row?.when && kept.state === row?.state) return kept.promise;
  const promise = get(`/api/runs/${part(name)}`);
  if (row?.state === "done") {
    if (abouts.size > 60) abouts.delete(abouts.keys().next().value);
    abouts.set(name, { when: row.when, state: row.state, promise });
    promise.catch(() => abouts.delete(name));
  }
  return promise;
}
// A run's accuracies so far, done or running: { matrix, curve }.
export async function accuracies(name) {
  const live = state.live.get(name);
  if (live) return { matrix: live.matrix, curve: live.curve };
  const known = await about(name);
  return { matrix: known.accuracy_matrix || [], curve: known.curve || [] };
}

const same = (row) => JSON.stringify([row.dataset, row.protocol, row.scenario, row.seed, row.tasks, row.iters]);
export const newest = () => [...state.rows.values()].sort((a, b) => b.when - a.when);
// The runs to show together: the newest that were done on the same tasks by different methods.
export function featured(fits = () => true) {
  const rows = newest().filter((row) => row.state !== "damaged" && fits(row));
  const groups = new Map();
  for (const row of rows) groups.set(same(row), [...(groups.get(same(row)) || []), row]);
  for (const group of groups.values()) {
    const methods = [...new Map(group.map((row) => [row.title + row.settings, row])).values()];
    if (methods.length > 1) return methods.sort((a, b) => (b.bound === "lower bound") - (a.bound === "lower bound")).slice(0, 4);
  }
  return rows.slice(0, 1);
}
