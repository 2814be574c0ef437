// Dreams: what a network replays after each task, by class, and on a map next to real samples.
import { get, part } from "./api.js";
import { state } from "./state.js";
import { h, percent, called, picture, loading, problem, empty, table, behind, dot, copyButtons } from "./dom.js";
import { scatter, widthOf } from "./charts.js";
import { picker, scrubber, taskChoice, NOT_KEPT } from "./picker.js";

export const title = "Dreams";
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#a8a000", "#9467bd", "#8c564b", "#7f7f7f"];

export function open(root, names) {
  const fits = (row) => row.snapshots?.length > 0;
  root.append(h("h1", {}, "What is replayed"), h("p", { class: "lead" }, "The network generates these from noise; no picture is stored. What it does not replay, it will forget."));
  if (![...state.rows.values()].some(fits)) {
    root.append(empty("No snapshots yet", "Runs started here, or with relive run --snapshots, save a snapshot after each task.", h("a", { class: "button", href: "#/live" }, "Go to Live")));
    return {};
  }
  const usual = names.length ? names : [...state.rows.values()].filter((row) => fits(row) && row.dreams).sort((a, b) => b.when - a.when).slice(0, 1).map((row) => row.name);
  const choose = picker(usual, fits, 1, () => begin()), place = h("div"), controls = h("section", { class: "card no-export" }, choose.node);
  root.append(controls, place);
  let slider = null, wanted = 0, repaint = null;
  const kept = new Map(), given = taskChoice(() => again());
  let again = () => {};

  function begin() {
    slider?.stop();
    const [row] = choose.rows();
    if (!row) return;
    given.show([row]);
    again = () => show(row, slider.at);
    slider = scrubber(row.tasks, row.snapshots.at(-1), again);
    controls.replaceChildren(choose.node, given.node, h("div", { style: { marginTop: "12px" } }, slider.node));
    again();
  }
  async function show(row, after) {
    const on = row.scenario === "task" ? given.task : 0, mine = ++wanted, key = `${row.name} ${row.when} ${after} ${on}`;
    if (!row.snapshots.includes(after)) return place.replaceChildren(empty(`No snapshot after task ${after + 1}`, NOT_KEPT));
    if (row.scenario === "task" && on > after) return place.replaceChildren(empty(`Task ${on + 1} comes later`, `After task ${after + 1} its classes are not learned yet: choose another task, or move the slider.`));
    if (!kept.has(key)) {
      if (!place.childElementCount) place.replaceChildren(loading("Generating samples …"));
      if (kept.size > 20) kept.delete(kept.keys().next().value);
      kept.set(key, get(`/api/runs/${part(row.name)}/dreams?after=${after}&task=${on}`));
    }
    try {
      const found = await kept.get(key);
      if (mine === wanted) {
        repaint = () => paint(place, row, after, found);
        repaint();
      }
    } catch (error) {
      kept.delete(key);
      if (mine === wanted) place.replaceChildren(problem(error));
    }
  }
  begin();
  return {
    update(message) {
      if (message.resized) repaint?.();
      else if (message.rows?.length && choose.refresh()) begin();
    },
    close: () => slider?.stop(),
  };
}

function paint(place, row, after, found) {
  const missing = found.classes.filter((c) => c.share === 0).map((c) => c.label);
  const colour = new Map(found.classes.map((c, i) => [c.label, COLOURS[i % COLOURS.length]]));
  const classes = h("section", { class: "card" }, h("h2", { class: "key", style: { fontSize: "1.25rem" } }, dot(row), `${called(row)}, after task ${after + 1}${found.task === null ? "" : `, as classes of task ${found.task + 1}`}`),
    h("p", { class: missing.length ? "error" : "fine", style: { marginBottom: "12px" } }, missing.length ? `Not replayed: ${missing.join(", ")}. Nothing protects ${missing.length > 1 ? "these classes" : "this class"} in later tasks.` : found.task === null ? "Every class learned so far is replayed." : "Every class of this task is replayed."),
    h("div", { class: "classes" }, found.classes.map((c) => h("div", {}, h("div", {}, h("strong", { class: "key" }, h("span", { class: "dot", style: { background: colour.get(c.label) } }), c.label), h("div", { class: "fine" }, `${percent(c.share, 0)} of samples`)),
      c.pictures.length ? h("ul", { class: "pictures" }, c.pictures.map((p) => h("li", {}, picture(p.pixels, found.shape, 44, `replayed, classified as ${c.label}`), h("span", {}, percent(p.p, 0))))) : h("p", { class: "fine" }, c.share ? "no pictures" : "none")))),
    behind(table("Share of the replayed samples", ["class", "share"], found.classes.map((c) => [c.label, percent(c.share)]))),
    h("div", { style: { marginTop: "12px" } }, copyButtons(() => found)));
  const dots = (points, labels, real) => points.map(([x, y], i) => ({ x, y, colour: colour.get(labels[i]) || "#888", hollow: real, faint: real, r: real ? 4 : 3.5, label: `${real ? "real" : "replayed"}: ${labels[i]}` }));
  const map = h("section", { class: "card stay" });
  place.replaceChildren(h("div", { class: "two" }, classes, map));
  const all = [...dots(found.map.real, found.map.real_labels, true), ...dots(found.map.dreamt, found.map.dreamt_labels, false)];
  map.append(h("h2", {}, "Real and replayed samples"), h("p", { class: "fine" }, "Rings are real test samples of the tasks so far, dots are replayed ones. The axes are the first two principal components of all test samples and stay fixed over time."),
    scatter(all, { width: widthOf(map) - 48, height: 420, label: "Real and replayed samples in two dimensions" }),
    behind(table("Samples on the map", ["class", "real", "replayed"], found.classes.map((c) => [c.label, found.map.real_labels.filter((l) => l === c.label).length, found.map.dreamt_labels.filter((l) => l === c.label).length]))));
}
