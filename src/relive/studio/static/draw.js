// Draw: a digit by mouse, pen or finger, and what every snapshot of two networks predicts.
import { post } from "./api.js";
import { state } from "./state.js";
import { h, percent, called, shade, picture, problem, empty, table, behind, dot } from "./dom.js";
import { picker, scrubber, taskChoice, NOT_KEPT } from "./picker.js";

export const title = "Draw";
const SIDE = 64, BRUSH = 0.075; // pixels per side that are sent; share of the pad's width

export function open(root, names) {
  const fits = (row) => row.snapshots?.length > 0 && row.grey;
  root.append(h("h1", {}, "Draw a digit"), h("p", { class: "lead" }, "Both networks learned two digits at a time. Draw one of the first two, then drag the slider from the first task to the last."));
  if (![...state.rows.values()].some(fits)) {
    root.append(empty("No snapshots yet", "Runs started here, or with relive run --snapshots, save a snapshot after each task.", h("a", { class: "button", href: "#/live" }, "Go to Live")));
    return {};
  }
  const answers = h("div", { "aria-live": "polite" }), tools = h("div");
  const choose = picker(names, fits, 2, () => { setUp(); ask(); }), given = taskChoice(() => ask());
  const pad = h("canvas", { class: "pad", width: 448, height: 448, role: "img", "aria-label": "Drawing area: draw with mouse, pen or finger" });
  const seen = h("div", { class: "row" });
  root.append(h("section", { class: "card no-export" }, choose.node, given.node), h("div", { class: "draw" },
    h("section", { class: "card" }, pad, h("div", { class: "row", style: { marginTop: "12px" } }, h("button", { type: "button", class: "quiet", onclick: clear }, "Clear"), seen)),
    h("section", { class: "card" }, tools, answers)));
  const ink = pad.getContext("2d", { willReadFrequently: true });
  let slider = null, found = null, last = null, waiting = null, asking = 0;

  function clear() {
    ink.fillStyle = "#000";
    ink.fillRect(0, 0, pad.width, pad.height);
    found = null;
    seen.replaceChildren(h("span", { class: "fine" }, "Draw here."));
    answers.replaceChildren(h("p", { class: "fine" }, "The networks’ predictions appear here as you draw."));
  }
  const at = (event) => {
    const box = pad.getBoundingClientRect();
    return [((event.clientX - box.left) * pad.width) / box.width, ((event.clientY - box.top) * pad.height) / box.height];
  };
  function stroke(from, to) {
    Object.assign(ink, { strokeStyle: "#fff", lineWidth: 2 * BRUSH * pad.width * 0.75, lineCap: "round", lineJoin: "round" });
    ink.beginPath();
    ink.moveTo(...from);
    ink.lineTo(to[0] + 0.01, to[1]);
    ink.stroke();
    clearTimeout(waiting);
    waiting = setTimeout(ask, 120);
  }
  pad.addEventListener("pointerdown", (event) => {
    pad.setPointerCapture(event.pointerId);
    last = at(event);
    stroke(last, last);
  });
  pad.addEventListener("pointermove", (event) => {
    if (last === null) return;
    const now = at(event);
    stroke(last, now);
    last = now;
  });
  for (const name of ["pointerup", "pointercancel"]) pad.addEventListener(name, () => { last = null; });

  function bytes() {
    const small = h("canvas", { width: SIDE, height: SIDE }).getContext("2d", { willReadFrequently: true });
    small.imageSmoothingQuality = "high";
    small.drawImage(pad, 0, 0, SIDE, SIDE);
    const { data } = small.getImageData(0, 0, SIDE, SIDE);
    let text = "", sum = 0;
    for (let i = 0; i < data.length; i += 4) {
      text += String.fromCharCode(data[i]);
      sum += data[i];
    }
    return sum ? btoa(text) : null;
  }
  async function ask() {
    const pixels = bytes(), rows = choose.rows(), mine = ++asking;
    if (!pixels || !rows.length) return;
    try {
      const said = await post("/api/draw", { pixels, runs: rows.map((row) => row.name), task: given.task });
      if (mine !== asking) return;
      found = { rows, ...said };
      seen.replaceChildren(picture(said.seen, said.shape, 56, "the drawing as the networks see it"), h("span", { class: "fine" }, "as the networks see it"));
      paint();
    } catch (error) {
      if (mine === asking) answers.replaceChildren(problem(error));
    }
  }
  function setUp() {
    slider?.stop();
    const rows = choose.rows(), moments = Math.max(1, ...rows.map((row) => row.tasks));
    given.show(rows);
    slider = scrubber(moments, Math.max(0, ...rows.map((row) => row.snapshots.at(-1))), () => paint());
    tools.replaceChildren(slider.node);
  }
  function paint() {
    if (!found) return;
    answers.replaceChildren(h("div", { class: "two always", style: { marginTop: "16px" } }, found.rows.map((row, i) => {
      const heading = h("h2", { class: "key", style: { fontSize: "1rem" } }, dot(row), called(row));
      const step = found.runs[i].find((s) => s.task === Math.min(slider.at, row.tasks - 1));
      if (!step) return h("div", {}, heading, h("p", { class: "fine" }, `No snapshot after task ${slider.at + 1}. ${NOT_KEPT}`));
      const best = step.p.indexOf(Math.max(...step.p)), answer = step.known.length ? step.classes[best] : "?";
      return h("div", {}, heading,
        h("div", { class: "row", style: { height: "96px", gap: "24px", flexWrap: "nowrap", marginBottom: "8px" } }, h("output", { class: "answer", "data-run": row.method, "aria-label": `${row.title} predicts` }, answer),
          step.again ? h("div", { class: "fine" }, picture(step.again, found.shape, 56, "the drawing as the network reconstructs it"), "reconstruction") : h("span", { class: "fine", style: { width: "5rem" } }, "cannot reconstruct")),
        h("div", { class: "bars", "aria-hidden": "true" }, step.classes.map((label, c) => h("div", { class: step.known.includes(label) ? "" : "unknown" }, h("span", {}, label),
          h("span", { class: "track" }, h("i", { style: { width: `${100 * step.p[c]}%`, background: shade(row.colour) } })), h("span", { class: "number" }, step.known.includes(label) ? percent(step.p[c], 0) : "")))),
        behind(table(`Predictions of ${called(row)}, task by task`, ["after task", "prediction", "probability"], found.runs[i].map((s) => [`${s.task + 1}`, ...(s.known.length ? [s.classes[s.p.indexOf(Math.max(...s.p))], percent(Math.max(...s.p))] : ["none yet", "–"])]))));
    })), h("p", { class: "fine", style: { marginTop: "12px" } }, "Digits in grey had not been learned yet."));
  }
  setUp();
  clear();
  return {
    update(message) {
      if (message.rows?.length && choose.refresh()) setUp();
    },
    close: () => slider?.stop(),
  };
}
