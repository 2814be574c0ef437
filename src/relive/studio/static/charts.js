// Charts in SVG, drawn without a library at the available width.
import { h, s, mean, percent, shade, table, behind } from "./dom.js";

// The width in pixels available in a container.
export const widthOf = (node, most = 1200) => Math.max(260, Math.min(most, node.clientWidth || 600));

// Accuracy during training: a line per run, a band per task. lines: [{row, curve, matrix}], value: a row of accuracies → number.
export function timeLine(lines, { width, height = 240, title, value, cursor = null }) {
  const left = 38, right = 12, top = 26, bottom = 30;
  const tasks = Math.max(...lines.map((line) => line.row.tasks)), iters = lines[0].row.iters;
  const x = (step) => left + ((width - left - right) * step) / (tasks * iters);
  const y = (a) => top + (height - top - bottom) * (1 - a);
  const points = (line) => (line.curve.length
    ? line.curve.map(([task, step, row]) => [task * iters + step, value(row)])
    : line.matrix.map((row, k) => [(k + 1) * iters, value(row.slice(0, k + 1))])).filter(([, a]) => a !== undefined);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${title}: ${lines.map((line) => line.row.title).join(", ")}` });
  for (let k = 0; k < tasks; k++) {
    if (k % 2 === 0) svg.append(s("rect", { class: "band", x: x(k * iters), y: top, width: x(iters) - x(0), height: height - top - bottom }));
    const label = tasks > 6 || width < 420 ? `${k + 1}` : `task ${k + 1}`;
    svg.append(s("text", { x: x((k + 0.5) * iters), y: height - 10, "text-anchor": "middle" }, label));
  }
  for (const a of [0, 0.5, 1]) {
    svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: y(a), y2: y(a) }));
    svg.append(s("text", { x: left - 6, y: y(a) + 4, "text-anchor": "end" }, `${100 * a}`));
  }
  svg.append(s("text", { class: "strong", x: left, y: 14 }, title));
  if (cursor !== null) svg.append(s("line", { class: "cursor", x1: x(cursor), x2: x(cursor), y1: top, y2: height - bottom }));
  lines.forEach((line, i) => {
    const found = points(line);
    if (!found.length) return;
    const path = found.map(([step, a], j) => `${j ? "L" : "M"}${x(step).toFixed(1)} ${y(a).toFixed(1)}`).join("");
    svg.append(s("path", { d: path, fill: "none", stroke: shade(line.row.colour), "stroke-width": 2.5, "stroke-linejoin": "round", "stroke-dasharray": i % 2 ? null : lines.length > 1 ? "5 3" : null }));
    const [step, a] = found[found.length - 1];
    svg.append(s("circle", { cx: x(step), cy: y(a), r: 4, fill: shade(line.row.colour) }, s("title", {}, `${line.row.title}: ${percent(a)}`)));
  });
  return svg;
}

export function legend(lines) {
  return h("div", { class: "row" }, lines.map((line) => h("span", { class: "key" },
    h("span", { class: "dot", style: { background: shade(line.row.colour) } }), line.row.title)));
}

export function curveTable(lines) {
  const tasks = Math.max(...lines.map((line) => line.row.tasks));
  const rows = Array.from({ length: tasks }, (_, k) => [`after task ${k + 1}`, ...lines.flatMap((line) => {
    const row = line.matrix[k];
    return row ? [percent(mean(row.slice(0, k + 1))), percent(row[0])] : ["–", "–"];
  })]);
  return behind(table("Accuracy during training", ["", ...lines.flatMap((line) => [`${line.row.title}: tasks so far`, `${line.row.title}: task 1`])], rows));
}

// cividis, at ten points, the last repeated
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838", "#fee838"];
export function heat(a) {
  const at = Math.min(9, Math.max(0, a * 9)), i = Math.floor(at), t = at - i;
  const mix = [1, 3, 5].map((k) => Math.round(parseInt(CIVIDIS[i].slice(k, k + 2), 16) * (1 - t) + parseInt(CIVIDIS[i + 1].slice(k, k + 2), 16) * t));
  return `rgb(${mix.join(",")})`;
}

// Accuracy on every task (columns) after every task (rows) up to one of them; cells can be clicked.
export function heatMap(matrix, tasks, { width, upTo, chosen, onCell }) {
  const left = 56, top = 26, size = Math.min(64, (width - left - 4) / tasks);
  const svg = s("svg", { viewBox: `0 0 ${left + size * tasks + 4} ${top + size * tasks + 4}`, width: left + size * tasks + 4, height: top + size * tasks + 4, role: "group", "aria-label": "Accuracy on each task after each task" });
  for (let k = 0; k < tasks; k++) {
    svg.append(s("text", { x: left + (k + 0.5) * size, y: 16, "text-anchor": "middle" }, size < 44 ? `${k + 1}` : `on ${k + 1}`));
    svg.append(s("text", { x: left - 8, y: top + (k + 0.5) * size + 4, "text-anchor": "end" }, `after ${k + 1}`));
  }
  matrix.forEach((row, i) => row.forEach((a, j) => {
    if (i > upTo) return;
    const name = `after task ${i + 1}, on task ${j + 1}: ${percent(a)}`;
    const cell = s("g", {});
    const box = s("rect", { class: `cell${chosen && chosen[0] === i && chosen[1] === j ? " chosen" : ""}`, x: left + j * size + 1.5, y: top + i * size + 1.5, width: size - 3, height: size - 3, rx: 4,
      fill: j > i ? "var(--band)" : heat(a), tabindex: 0, role: "button", "aria-label": name });
    const act = () => onCell(i, j);
    box.addEventListener("click", act);
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    });
    cell.append(box);
    const number = s("text", { x: left + (j + 0.5) * size, y: top + (i + 0.5) * size + 4, "text-anchor": "middle", "pointer-events": "none", "aria-hidden": "true" }, size < 34 ? "" : (100 * a).toFixed(0));
    number.style.fill = j > i ? "var(--soft)" : a > 0.55 ? "#111" : "#fff";
    number.style.fontWeight = i === upTo ? "700" : "400";
    cell.append(number);
    svg.append(cell);
  }));
  return svg;
}

// Dots: [{x, y, colour, shape, label}] in two dimensions, with or without axes.
export function scatter(dots, { width, height = 320, label, axes = null, onDot = null }) {
  const left = axes ? 44 : 8, bottom = axes ? 40 : 8, top = 10, right = 12;
  const range = (values) => {
    const [low, high] = [Math.min(...values), Math.max(...values)], room = (high - low || 1) * 0.06;
    return [low - room, high + room];
  };
  const [x0, x1] = axes?.x || range(dots.map((d) => d.x)), [y0, y1] = axes?.y || range(dots.map((d) => d.y));
  const x = (v) => left + ((width - left - right) * (v - x0)) / (x1 - x0 || 1), y = (v) => top + (height - top - bottom) * (1 - (v - y0) / (y1 - y0 || 1));
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  if (axes) {
    for (const v of axes.yTicks) svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }), s("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, `${v}`));
    for (const v of axes.xTicks) svg.append(s("text", { x: x(v), y: height - bottom + 16, "text-anchor": "middle" }, `${v}`));
    svg.append(s("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, axes.xName));
  }
  for (const d of dots) {
    const at = { fill: d.hollow ? "none" : d.colour, stroke: d.colour, "stroke-width": d.hollow ? 1.5 : 0.5, "fill-opacity": d.faint ? 0.35 : 0.9, "stroke-opacity": d.faint ? 0.35 : 1 };
    const mark = s("circle", { ...at, cx: x(d.x).toFixed(1), cy: y(d.y).toFixed(1), r: d.r || 4 }, s("title", {}, d.label));
    if (onDot) mark.addEventListener("click", () => onDot(d));
    svg.append(mark);
  }
  return svg;
}
