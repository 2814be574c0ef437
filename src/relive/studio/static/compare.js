// Compare: any runs in one table and figure, the paper's tables with verdicts, and grid searches.
import { get, post, part } from "./api.js";
import { state, chosen, compareAddress, accuracies } from "./state.js";
import { h, shade, copy, copyButtons, loading, problem, empty, table, percent, mean, duration, called, described, dot } from "./dom.js";
import { scatter, timeLine, legend, curveTable, widthOf } from "./charts.js";

export const title = "Compare";
const VIEWS = { own: "Your runs", runs: "Chosen runs", paper: "The paper", grid: "Grid searches" };
const MOST_LINES = 12; // in one figure
const PAPER_ORDER = ["class", "domain", "task"]; // the headline first, so that a phone shows it

export function open(root, [named, ...names]) {
  root.append(h("h1", {}, "Side by side"), h("p", { class: "lead" }, "Runs on the same tasks, compared seed by seed, and next to the paper’s numbers where they repeat its experiments."));
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "What to compare" }), place = h("div", { style: { marginTop: "16px" } }, loading("Comparing …"));
  root.append(tabs, place);
  let found = null, shown = VIEWS[named] ? named : null, group = 0, paper = 0, scenario = null, wanted = 0;
  if (names.length) {
    chosen.clear();
    names.forEach((name) => chosen.add(name));
  }
  const address = () => history.replaceState(null, "", shown === "runs" ? compareAddress(chosen) : `#/compare/${shown}`); // to be kept or passed on
  for (const [name, text] of Object.entries(VIEWS)) tabs.append(h("button", { type: "button", "data-name": name, onclick: () => {
    shown = name;
    address();
    draw();
  } }, text));

  async function ask() {
    if (shown === "runs") return draw();
    try {
      found = await get("/api/compare");
      draw();
    } catch (error) {
      place.replaceChildren(problem(error));
    }
  }
  function draw() {
    wanted += 1;
    if (shown === "runs") {
      for (const button of tabs.children) button.setAttribute("aria-pressed", String(button.dataset.name === shown));
      return drawChosen();
    }
    if (!found) return ask();
    shown ??= found.groups.length || !found.tables.length ? "own" : "paper";
    for (const button of tabs.children) button.setAttribute("aria-pressed", String(button.dataset.name === shown));
    place.replaceChildren();
    ({ own: drawOwn, paper: drawPaper, grid: drawGrid })[shown]();
    if (found.damaged.length) place.append(h("section", { class: "card" }, h("h2", {}, "Left out: damaged results"), h("pre", {}, found.damaged.join("\n"))));
  }
  const choose = (label, options, value, onChange) => h("label", {}, label, h("select", { onchange: (event) => { onChange(event.target.value); draw(); } }, options.map(([name, text]) => h("option", { value: name, selected: String(name) === String(value) }, text))));

  function drawOwn() {
    if (!found.groups.length) return place.append(empty("No finished runs of your own yet", "Start some in the Live view.", h("a", { class: "button", href: "#/live" }, "Go to Live")));
    const now = found.groups[Math.min(group, found.groups.length - 1)];
    if (!now.scenarios.some((s) => s.name === scenario)) scenario = now.scenarios.at(-1).name;
    place.append(h("section", { class: "card" }, h("div", { class: "fields runs-to-choose" },
      choose("Experiment", found.groups.map((g, i) => [i, g.title]), group, (v) => { group = Number(v); }), choose("Scenario", now.scenarios.map((s) => [s.name, s.title]), scenario, (v) => { scenario = v; }))));
    place.append(groupCard(now, scenario));
    dots(place, dotsOf(now, scenario));
  }

  // Ticked runs: one table, one figure, and means and pairs of those that learned the same tasks.
  async function drawChosen() {
    const mine = wanted, names = [...chosen];
    if (!names.length) return place.replaceChildren(empty("No runs chosen", "Tick runs in the table of the Live view. The address of this page then names them, so you can bookmark it.", h("a", { class: "button", href: "#/live" }, "Go to Live")));
    try {
      const { groups, missing } = await post("/api/chosen", { runs: names });
      const rows = names.filter((name) => !missing.includes(name)).map((name) => state.rows.get(name)).filter(Boolean);
      const alike = rows.length <= MOST_LINES && new Set(rows.map((row) => `${row.tasks} ${row.iters}`)).size === 1;
      const lines = alike ? await Promise.all(rows.map(async (row) => ({ row: { ...row, title: called(row) }, ...(await accuracies(row.name)) }))) : [];
      if (mine === wanted) paintChosen(rows, groups, missing, lines);
    } catch (error) {
      if (mine === wanted) place.replaceChildren(problem(error));
    }
  }
  function without(name) {
    chosen.delete(name);
    address();
    draw();
  }
  function paintChosen(rows, groups, missing, lines) {
    const cells = (row) => [h("span", { class: "key" }, dot(row), h("a", { href: `#/matrix/${part(row.name)}` }, row.title)), percent(row.accuracy, 2), percent(row.forgetting), duration(row.seconds), `${row.seed}`, described(row), row.settings || "–",
      h("button", { type: "button", class: "quiet small", onclick: () => without(row.name) }, "Leave out ", h("span", { class: "unseen" }, called(row)))];
    place.replaceChildren(h("section", { class: "card" },
      h("div", { class: "row spread", style: { marginBottom: "12px" } }, h("h2", { style: { margin: 0 } }, `${rows.length} ${rows.length === 1 ? "run" : "runs"}`), rows.length ? h("span", { class: "row" }, copyButtons(() => post("/api/programs", { runs: rows.map((row) => row.name) })),
        h("button", { type: "button", class: "quiet small", onclick: () => copy(location.href, "the address, without the token") }, "Copy address")) : null),
      missing.length ? h("p", { class: "error" }, `Missing or not finished: ${missing.join(", ")}`) : null,
      rows.length ? table("The chosen runs", ["method", "accuracy", "forgetting", "training", "seed", "experiment", "settings", h("span", { class: "unseen" }, "Actions")], rows.map(cells), (i) => i < 4) : null));
    if (lines.length) {
      const card = h("section", { class: "card" });
      place.append(card);
      const width = widthOf(card) - 48;
      card.append(h("h2", {}, "Accuracy during training"), timeLine(lines, { width, title: "All tasks so far (%)", value: mean }), legend(lines), curveTable(lines));
    }
    dots(place, rows.map((row) => ({ ...row, x: row.seconds, y: 100 * row.accuracy })));
    for (const now of groups) for (const s of now.scenarios) if (now.entries.filter((entry) => entry.scenario === s.name).length > 1) place.append(groupCard(now, s.name));
  }

  function drawPaper() {
    if (!found.tables.length) return place.append(empty("No runs of the paper’s experiments", "relive paper does them; relive studio --from reproduction shows those that come with relive."));
    const now = found.tables[Math.min(paper, found.tables.length - 1)];
    const order = PAPER_ORDER.map((name) => now.scenarios.findIndex((s) => s.name === name));
    const cell = (c) => (c === null ? h("td", {}, "–") : h("td", {}, c.ours === null ? h("span", {}, "missing") : h("strong", {}, c.ours), h("small", {}, `n = ${c.n}, paper ${c.paper}`), h("span", { class: `verdict ${c.verdict.replaceAll(" ", "-")}` }, `${c.difference} ${c.said}`)));
    place.append(h("section", { class: "card" }, h("div", { class: "fields runs-to-choose" }, choose("Table", found.tables.map((t, i) => [i, t.short]), paper, (v) => { paper = Number(v); }), choose("Figure", now.scenarios.map((s) => [s.name, s.title]), scenario ?? "class", (v) => { scenario = v; }))),
      h("section", { class: "card" }, h("div", { class: "row spread", style: { marginBottom: "12px" } }, h("h2", { style: { margin: 0 } }, now.title), copyButtons(async () => ({ ...(await post("/api/programs", { runs: now.runs.map((run) => run.name) })), command: now.command }))), h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": now.title }, h("table", {}, h("caption", { class: "unseen" }, now.title),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "method"), order.map((i) => h("th", { scope: "col" }, now.scenarios[i].title)))),
        h("tbody", {}, now.rows.map((row) => h("tr", {}, h("th", { scope: "row" }, row.title, row.bound ? h("small", { class: "fine", style: { display: "block" } }, row.bound) : null), order.map((i) => cell(row.cells[i]))))))),
        h("p", { class: "fine", style: { marginTop: "12px" } }, now.rules), now.notes.map((note) => h("p", { class: "fine" }, note))));
    dots(place, now.runs.filter((run) => run.scenario === (scenario ?? "class")));
    if (found.claims.length) place.append(h("section", { class: "card" }, h("h2", {}, "The paper’s claims"), table("Checked claims", ["claim", "where", "status"], found.claims.map((c) => [h("span", { style: { whiteSpace: "normal" } }, c.title), c.protocol, h("span", { class: `badge ${{ holds: "good", "does not hold": "bad" }[c.status] || ""}` }, c.status)]), () => false)));
  }

  function drawGrid() {
    if (!found.searches.length) return place.append(empty("No grid searches", "relive grid --scenario task --method ewc does one."));
    for (const search of found.searches) {
      place.append(h("details", { class: "card" }, h("summary", {}, search.title), copyButtons(async () => ({ ...(await post("/api/programs", { runs: search.runs.map((run) => run.name) })), command: search.command })), table(search.title, ["settings", "accuracy %", "chosen"], search.tried.map((t) => [t.settings, t.accuracy.toFixed(2), t.best ? "best" : ""]))));
    }
  }
  ask();
  let asked = 0;
  return {
    report: () => (shown === "runs" ? { runs: [...chosen] } : {}),
    update(message) {
      if (message.resized) return draw();
      if (shown === "runs" && !message.gone?.length && !message.rows?.some((row) => chosen.has(row.name))) return;
      if (!message.gone?.length && !message.rows?.some((row) => row.state === "done") || Date.now() - asked < 3000) return;
      asked = Date.now();
      ask();
    },
  };
}

const dotsOf = (group, scenario) => group.entries.filter((entry) => entry.scenario === scenario).flatMap((entry) => entry.runs.map((run) => ({ ...run, title: entry.title, colour: entry.colour })));

// Runs of one scenario that learned the same tasks: means, and every pair seed by seed.
function groupCard(now, scenario) {
  const entries = now.entries.filter((entry) => entry.scenario === scenario), pairs = now.pairs.filter((pair) => pair.scenario === scenario);
  const names = entries.flatMap((entry) => entry.runs.map((run) => run.name)), named = now.scenarios.find((s) => s.name === scenario).title;
  return h("section", { class: "card" }, h("div", { class: "row spread", style: { marginBottom: "12px" } }, h("h2", { style: { margin: 0 } }, `${now.title}, ${named}`), copyButtons(() => post("/api/programs", { runs: names }))),
    table("Means", ["method", ...now.headings], entries.map((entry) => [h("span", { class: "key" }, h("span", { class: "dot", style: { background: shade(entry.colour) } }), entry.title), ...entry.cells])),
    pairs.length ? h("div", { style: { marginTop: "24px" } }, table("Every pair", ["pair", "difference (points)", "seeds", "p", "p (Holm)"], pairs.map((pair) => pair.cells))) : "",
    h("p", { class: "fine", style: { marginTop: "12px" } }, now.rules));
}

// Accuracy against training time: a dot for each run, linked to its matrix.
function dots(place, runs) {
  if (!runs.length) return;
  const card = h("section", { class: "card" });
  place.append(card);
  const width = widthOf(card) - 48, most = Math.max(...runs.map((run) => run.x)) || 1;
  const rough = most / (width / 90), size = 10 ** Math.floor(Math.log10(rough)), step = size * [1, 2, 5, 10].find((k) => k * size >= rough);
  const ticks = Array.from({ length: Math.floor((most * 1.05) / step) + 1 }, (_, i) => Number((i * step).toPrecision(3)));
  const lowest = Math.max(0, Math.min(...runs.map((run) => run.y)) - 3), apart = [2, 5, 10, 20].find((k) => (100 - lowest) / k <= 6);
  const low = Math.floor(lowest / apart) * apart, marks = Array.from({ length: (100 - low) / apart + 1 }, (_, i) => low + i * apart);
  card.append(h("h2", {}, "Accuracy against training time"), scatter(runs.map((run) => ({ ...run, colour: shade(run.colour), label: `${run.title}, seed ${run.seed}: ${run.y.toFixed(2)} % in ${run.x.toFixed(1)} s` })),
    { width, height: 320, label: "Accuracy against training time, a dot for each run", axes: { x: [0, most * 1.05], y: [low, 101], xTicks: ticks, yTicks: marks, xName: "training time (s)" }, onDot: (run) => { if (state.rows.has(run.name)) location.hash = `#/matrix/${part(run.name)}`; } }),
    h("div", { class: "row" }, [...new Map(runs.map((run) => [run.title, run.colour]))].map(([text, colour]) => h("span", { class: "key" }, h("span", { class: "dot", style: { background: shade(colour) } }), text))),
    h("details", {}, h("summary", {}, "As a table"), table("Runs", ["run", "seed", "accuracy %", "seconds"], runs.slice(0, 500).map((run) => [run.title, run.seed, run.y.toFixed(2), run.x.toFixed(1)]))));
}
