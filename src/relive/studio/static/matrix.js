// Matrix: accuracy on each task after each task, as an animated heat map; a cell shows its misclassified samples.
import { get, part } from "./api.js";
import { state, accuracies, about } from "./state.js";
import { h, percent, mean, called, described, picture, dot, copyButtons, loading, problem, empty, table, behind } from "./dom.js";
import { heatMap, timeLine, legend, curveTable, widthOf } from "./charts.js";
import { picker, scrubber } from "./picker.js";

export const title = "Matrix";

export function open(root, names) {
  const fits = (row) => row.tasks && row.state !== "damaged";
  root.append(h("h1", {}, "Accuracy by task"), h("p", { class: "lead" }, "Each row is the accuracy on every task after learning one more. Fine-tuning keeps the diagonal and loses everything to its left."));
  if (![...state.rows.values()].some(fits)) {
    root.append(empty("No runs yet", "Start some in the Live view.", h("a", { class: "button", href: "#/live" }, "Go to Live")));
    return {};
  }
  const place = h("div"), choose = picker(names, fits, 2, () => draw());
  root.append(h("section", { class: "card no-export" }, choose.node), place);
  let slider = null, current = 0, cells = null;

  async function draw() {
    slider?.stop();
    const rows = choose.rows();
    let found;
    try {
      found = await Promise.all(rows.map(async (row) => ({ row, ...(await accuracies(row.name)) })));
    } catch (error) {
      return place.replaceChildren(problem(error));
    }
    if (!found.length) return place.replaceChildren(h("p", { class: "fine" }, "Choose a run."));
    const tasks = Math.max(...rows.map((row) => row.tasks));
    const last = Math.max(0, Math.max(...found.map((line) => line.matrix.length)) - 1);
    current = last;
    const maps = h("div", { class: found.length > 1 ? "two" : "" }), lines = h("div"), wrong = h("section", { class: "card", "aria-live": "polite", hidden: true });
    slider = scrubber(tasks, last, (k) => { current = k; paint(); });
    cells = found.map(() => null);
    function paint() {
      const width = Math.min(560, widthOf(maps) / found.length - (found.length > 1 ? 80 : 48));
      maps.replaceChildren(...found.map((line, i) => {
        const row = line.matrix[current];
        return h("section", { class: "card" }, h("div", { class: "row spread" }, h("h2", { class: "key", style: { fontSize: "1.25rem" } }, dot(line.row), called(line.row)),
          h("span", { class: "big-number" }, row ? percent(mean(row.slice(0, current + 1)), 0) : "–")),
          h("p", { class: "fine" }, described(line.row)),
          line.matrix.length ? heatMap(line.matrix, line.row.tasks, { width: Math.max(240, width), upTo: current, chosen: cells[i], onCell: (after, on) => {
            cells = found.map(() => null);
            cells[i] = [after, on];
            paint();
            showWrong(wrong, line.row, after, on);
          } }) : h("p", { class: "fine" }, "No task is finished yet."),
          behind(table(`Accuracy of ${called(line.row)}`, ["", ...Array.from({ length: line.row.tasks }, (_, k) => `on task ${k + 1}`)], line.matrix.map((values, k) => [`after task ${k + 1}`, ...values.map((a) => percent(a))]))),
          h("div", { style: { marginTop: "12px" } }, copyButtons(() => about(line.row.name))));
      }));
      const full = widthOf(lines, 1160) - 48;
      lines.replaceChildren(h("section", { class: "card" }, h("h2", {}, "Learning curves"), timeLine(found, { width: full, title: "All tasks so far (%)", value: mean, cursor: (current + 1) * rows[0].iters }), legend(found), curveTable(found)));
    }
    place.replaceChildren(h("section", { class: "card no-export" }, slider.node), maps, wrong, lines);
    paint();
    place.repaint = paint;
  }
  draw();
  return {
    update(message) {
      const mine = choose.rows().map((row) => row.name);
      if (message.resized) return place.repaint?.();
      if (choose.refresh() || mine.some((name) => message.live?.[name] || message.rows?.some((row) => row.name === name))) draw();
    },
    close: () => slider?.stop(),
  };
}

async function showWrong(place, row, after, on) {
  place.hidden = false;
  place.replaceChildren(loading("Evaluating the snapshot …"));
  const heading = h("h2", {}, `${row.title} after task ${after + 1}, on task ${on + 1}`);
  try {
    const found = await get(`/api/runs/${part(row.name)}/wrong?after=${after}&task=${on}`);
    const list = h("ul", { class: "pictures" }, found.samples.map((sample) => h("li", {},
      sample.pixels ? picture(sample.pixels, found.shape, 56, `a ${sample.truth} classified as ${sample.said}`) : null, h("span", {}, `${sample.truth} → ${sample.said}`), h("span", {}, percent(sample.p, 0)))));
    place.replaceChildren(heading, h("p", { class: "fine", style: { marginBottom: "12px" } }, found.wrong ? `${found.wrong} of ${found.n} test samples are misclassified: true class → prediction, with its probability.${found.wrong > found.samples.length ? " The most confident are shown." : ""}` : `All ${found.n} test samples are classified correctly.`), list);
  } catch (error) {
    place.replaceChildren(heading, problem(error));
  }
}
