// Live: a demo in one click, runs as they train, a form to start others, and every run of the store.
import { get, post, part } from "./api.js";
import { state, featured, accuracies, chosen, compareAddress } from "./state.js";
import { h, percent, mean, duration, SCENARIOS, described, dot, toast, problem, loading } from "./dom.js";
import { timeLine, curveTable, widthOf } from "./charts.js";
import { runForm } from "./form.js";

export const title = "Live";

export function open(root) {
  const hero = h("section", { class: "card", "aria-labelledby": "hero-title" });
  const running = h("section", { class: "card", "aria-labelledby": "running-title", hidden: true });
  const form = h("details", { class: "card no-export" }, h("summary", {}, "Start runs"), loading());
  const list = runTable();
  root.append(hero, running, form, list.node);
  form.addEventListener("toggle", async () => {
    if (!form.open || form.dataset.made) return;
    form.dataset.made = "yes";
    try {
      state.catalogue ||= await get("/api/catalogue");
      form.lastChild.replaceWith(runForm(state.catalogue));
    } catch (error) {
      form.lastChild.replaceWith(problem(error));
    }
  });

  let drawing = false, again = false;
  async function drawHero() {
    if (drawing) {
      again = true;
      return;
    }
    drawing = true;
    try {
      await heroOf(hero);
    } catch (error) {
      hero.replaceChildren(problem(error));
    }
    drawing = false;
    if (again) {
      again = false;
      drawHero();
    }
  }
  drawHero();
  drawRunning(running);
  return {
    update(message) {
      if (message.rows?.length || message.live || message.resized || message.gone?.length || message.ready) drawHero();
      drawRunning(running);
      list.update(message);
    },
  };
}

async function heroOf(hero) {
  const rows = featured();
  if (!state.ready && !rows.length) return hero.replaceChildren(loading("Reading the runs …"));
  const button = h("button", { type: "button", class: rows.length ? "quiet" : "big", onclick: firstLook }, "Show me: about a minute");
  if (!rows.length) {
    return hero.replaceChildren(h("div", { class: "empty" }, h("h1", { id: "hero-title" }, "See a network forget"),
      h("p", {}, "Two networks learn handwritten digits, two at a time. One simply continues training, the other replays what it remembers. Watch what happens to the first digits."), button));
  }
  const lines = await Promise.all(rows.map(async (row) => ({ row, ...(await accuracies(row.name)) })));
  const width = widthOf(hero) - 48, half = width > 720 ? (width - 24) / 2 : width;
  const finals = lines.map((line) => {
    const last = line.curve.at(-1)?.[2] || line.matrix.at(-1);
    return h("div", {}, h("div", { class: "big-number" }, last ? percent(mean(last), 0) : "–"), h("div", { class: "key" }, dot(line.row), line.row.title));
  });
  hero.replaceChildren(
    h("div", { class: "row spread" }, h("h1", { id: "hero-title" }, lines.length > 1 ? "Forgetting, side by side" : "The newest run"), rows.length > 1 ? null : button),
    h("p", { class: "lead" }, `${described(lines[0].row)}. `, lines.length > 1 ? "Every method learns the same tasks, one after the other, and is tested on all tasks so far." : "Accuracy over the tasks so far, during training."),
    h("div", { class: "row", style: { gap: "32px", marginBottom: "16px" } }, finals),
    h("div", { class: half === width ? "stack" : "two" },
      timeLine(lines, { width: half, title: "All tasks so far (%)", value: mean }),
      timeLine(lines, { width: half, title: "What is left of task 1 (%)", value: (row) => row[0] })),
    curveTable(lines),
    h("p", { class: "fine" }, "See also: ", h("a", { href: `#/matrix/${lines.map((line) => part(line.row.name)).slice(0, 2).join("/")}` }, "accuracy by task"), " · ",
      h("a", { href: "#/dreams" }, "what is replayed"), " · ", h("a", { href: "#/draw" }, "draw a digit")));
}

async function firstLook(event) {
  event.target.disabled = true;
  try {
    await post("/api/first");
    toast("Two runs have started. The first steps take a few seconds.");
  } catch (error) {
    toast(error.message);
    event.target.disabled = false;
  }
}

function drawRunning(place) {
  const jobs = [...state.jobs.values()];
  const owner = new Map(jobs.filter((job) => ["running", "waiting"].includes(job.state)).flatMap((job) => job.runs.map((name) => [name, job])));
  const rows = [...state.rows.values()].filter((row) => row.state === "running");
  const coming = jobs.filter((job) => ["running", "waiting"].includes(job.state) && !job.runs.some((name) => state.rows.get(name)?.state === "running"));
  const failed = jobs.filter((job) => job.state === "failed");
  place.hidden = !(rows.length || coming.length || failed.length);
  place.replaceChildren(h("h2", { id: "running-title" }, "Running"),
    h("div", { class: "live" }, rows.map((row) => runCard(row, owner.get(row.name))), coming.map(jobCard), failed.map(jobCard)));
}

function stopButton(job) {
  return h("button", { type: "button", class: "quiet small", onclick: async (event) => {
    event.target.disabled = true;
    try {
      await post(`/api/jobs/${job.id}/stop`);
    } catch (error) {
      toast(error.message);
    }
  } }, "Stop");
}

function runCard(row, job) {
  const live = state.live.get(row.name);
  const steps = live ? live.task * row.iters + live.iteration : 0, total = row.tasks * row.iters, share = steps / total;
  const before = live ? live.at_first / row.tasks : 0;
  const left = share > before ? ((Date.now() / 1000 - live.began) * (1 - share)) / (share - before) : NaN;
  const so_far = live?.curve.at(-1)?.[2] || [];
  return h("article", {}, h("div", { class: "row spread" }, h("h3", {}, dot(row), `${row.title}, seed ${row.seed}`), job ? stopButton(job) : h("span", { class: "badge" }, "started elsewhere")),
    h("p", { class: "fine" }, described(row)),
    h("progress", { max: 1, value: share, "aria-label": `progress of ${row.title}` }),
    h("p", { class: "fine" }, live ? `task ${live.task + 1} of ${row.tasks}, step ${live.iteration} of ${row.iters}${live.loss === null ? "" : `, loss ${live.loss.toFixed(3)}`}, ${Number.isFinite(left) ? `${duration(left)} left` : "time left not known yet"}` : "starting …"),
    h("div", { class: "chips" }, so_far.map((a, k) => h("span", {}, `task ${k + 1}: ${percent(a, 0)}`))));
}

function jobCard(job) {
  const words = { waiting: "waiting for a free core", running: "starting …", failed: "failed" }[job.state];
  return h("article", {}, h("div", { class: "row spread" }, h("h3", {}, job.state === "failed" ? "Failed" : "Starting"), job.state === "failed" ? null : stopButton(job)),
    h("code", {}, job.title), h("p", { class: "fine" }, words), job.state === "failed" && job.said ? h("pre", { class: "error" }, job.said.trim()) : null);
}

// Every run of the store; only the visible rows are in the page, so that many thousands scroll smoothly.
const ROW = 40;
function runTable() {
  const which = { own: true };
  const search = h("input", { type: "search", placeholder: "e.g. rtf class digits", oninput: () => refresh() });
  const tab = (name, own) => h("button", { type: "button", "aria-pressed": String(which.own === own), onclick: () => {
    which.own = own;
    refresh();
    for (const other of tabs.children) other.setAttribute("aria-pressed", String(other === tabs.children[own ? 0 : 1]));
  } }, name);
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Which runs" });
  tabs.append(tab("Your runs", true), tab("The paper’s", false));
  const body = h("tbody"), count = h("p", { class: "fine", role: "status" });
  const scroll = h("div", { class: "runs", tabIndex: 0, role: "region", "aria-label": "Table of runs", onscroll: () => paint() },
    h("table", {}, h("caption", { class: "unseen" }, "Runs, the newest first"), h("thead", {}, h("tr", {},
      h("th", { scope: "col", class: "narrow" }, h("span", { class: "unseen" }, "Compare")),
      ["Method", "Accuracy", "Scenario", "Data", "Settings", "Tasks", "Seed", "Forgetting", "Training", ""].map((head, i) =>
        h("th", { scope: "col", class: [[1, 7, 8].includes(i) ? "number" : "", [3, 4, 5, 6, 7, 8].includes(i) ? "wide" : ""].join(" ") }, head || h("span", { class: "unseen" }, "Actions"))))), body));
  const bar = h("div", { class: "row no-export", style: { marginTop: "12px" } });
  const node = h("section", { class: "card", "aria-labelledby": "runs-title" },
    h("div", { class: "row spread", style: { marginBottom: "12px" } }, h("h2", { id: "runs-title", style: { margin: 0 } }, "Runs"), tabs, h("label", { class: "no-export" }, h("span", { class: "unseen" }, "Search"), search)), scroll, h("div", { class: "row spread" }, count, bar));

  let rows = [], painted = "", last = null; // the row that was ticked last: Shift ticks all in between
  function tick(name, on, range) {
    const [from, to] = [last, name].map((each) => rows.findIndex((row) => row.name === each));
    const names = range && from >= 0 && to >= 0 ? rows.slice(Math.min(from, to), Math.max(from, to) + 1).filter((row) => row.state === "done").map((row) => row.name) : [name];
    for (const each of names) chosen[on ? "add" : "delete"](each);
    last = name;
    for (const box of body.querySelectorAll("input")) box.checked = chosen.has(box.closest("tr").dataset.name);
    drawBar();
  }
  function drawBar() {
    const n = chosen.size;
    bar.replaceChildren(...(n ? [h("a", { class: "button", href: compareAddress(chosen) }, `Compare ${n} ${n === 1 ? "run" : "runs"}`), h("button", { type: "button", class: "quiet", onclick: () => {
      chosen.clear();
      for (const box of body.querySelectorAll("input")) box.checked = false;
      drawBar();
    } }, "Clear")] : [h("span", { class: "fine" }, "Tick runs to compare them; Shift-click ticks all in between.")]));
  }
  function refresh() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => `${row.title} ${row.method} ${row.dataset} ${row.protocol} ${row.scenario} seed${row.seed} ${row.settings} ${row.state}`.toLowerCase();
    const order = { running: 0, stopped: 1, damaged: 1, done: 2 };
    rows = [...state.rows.values()].filter((row) => (row.own !== false) === which.own && words.every((word) => text(row).includes(word)))
      .sort((a, b) => order[a.state] - order[b.state] || b.when - a.when || a.name.localeCompare(b.name));
    const total = [...state.rows.values()].filter((row) => (row.own !== false) === which.own).length;
    count.textContent = state.ready ? `${rows.length.toLocaleString("en")} of ${total.toLocaleString("en")} runs` : `${total.toLocaleString("en")} runs, reading …`;
    if (!total && state.ready) count.textContent = which.own ? "No runs of your own yet: start some above, or with relive run in a terminal." : "No runs of the paper’s experiments: relive paper does them, and relive studio --from reproduction shows those that come with relive.";
    painted = "";
    paint();
    drawBar();
  }
  function paint() {
    const height = scroll.clientHeight || 640;
    const from = Math.max(0, Math.floor(scroll.scrollTop / ROW) - 8), to = Math.min(rows.length, from + Math.ceil(height / ROW) + 16);
    const key = `${from} ${to}`;
    if (key === painted) return;
    painted = key;
    const space = (n) => h("tr", { class: "spacer", "aria-hidden": "true" }, h("td", { colSpan: 11, style: { height: `${n * ROW}px` } }));
    const at = document.activeElement, focus = at?.closest?.(".runs tr")?.dataset.name;
    body.replaceChildren(space(from), ...rows.slice(from, to).map((row) => rowOf(row, tick)), space(rows.length - to));
    if (focus) [...body.rows].find((row) => row.dataset.name === focus)?.querySelector(at.tagName)?.focus();
  }
  refresh();
  return {
    node,
    update(message) {
      if (message.rows?.length || message.gone?.length || message.all || message.ready || message.resized) refresh();
    },
  };
}

function rowOf(row, tick) {
  const done = row.state === "done";
  const goOn = () => h("button", { type: "button", class: "quiet small", onclick: async (event) => {
    event.target.disabled = true;
    try {
      await post(`/api/runs/${part(row.name)}/go-on`);
    } catch (error) {
      toast(error.message);
    }
  } }, "Resume");
  const name = row.title || row.name;
  return h("tr", { "data-name": row.name },
    h("td", { class: "narrow" }, done ? h("input", { type: "checkbox", checked: chosen.has(row.name), "aria-label": `Compare ${name}, seed ${row.seed}`, onclick: (event) => tick(row.name, event.target.checked, event.shiftKey) }) : ""),
    h("th", { scope: "row" }, h("span", { class: "key" }, row.colour ? dot(row) : null, row.tasks ? h("a", { href: `#/matrix/${part(row.name)}` }, name) : name)),
    h("td", { class: "number" }, done ? percent(row.accuracy, 2) : h("span", { class: `badge ${row.state === "damaged" ? "bad" : ""}`, title: row.error }, row.state)),
    h("td", {}, SCENARIOS[row.scenario] || ""),
    h("td", { class: "wide" }, row.dataset ? `${row.dataset}, ${row.protocol}` : ""),
    h("td", { class: "wide cut", title: row.settings }, row.settings || ""),
    h("td", { class: "wide" }, row.tasks ? `${row.tasks} × ${row.iters}` : ""),
    h("td", { class: "wide" }, row.seed ?? ""),
    h("td", { class: "wide number" }, done ? percent(row.forgetting) : ""),
    h("td", { class: "wide number" }, done ? duration(row.seconds) : ""),
    h("td", {}, row.state === "stopped" && row.place === "here" ? goOn() : ""));
}
