// Elements from plain values: text is always text, never markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (name in node && name !== "list" && !(node instanceof SVGElement)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export const percent = (x, digits = 1) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(digits)} %`);
export const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "not known yet";
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(Math.round(seconds % 60)).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.round((seconds % 3600) / 60)).padStart(2, "0")} min`;
}
export const SCENARIOS = { task: "Task-IL", domain: "Domain-IL", class: "Class-IL" };
export const called = (row) => `${row.title}, seed ${row.seed}`;
export const described = (row) => [row.dataset, row.protocol, SCENARIOS[row.scenario], `${row.tasks} × ${row.iters} steps`].join(", ");

let hiding;
export function toast(text) {
  const place = document.getElementById("toast");
  place.replaceChildren(h("p", {}, text));
  clearTimeout(hiding);
  hiding = setTimeout(() => place.replaceChildren(), 6000);
}
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}.`);
  } catch {
    toast(text); // no clipboard: to be copied by hand
  }
}
// Buttons that copy something as a command and as Python; programs: a function that returns { command, python }.
export const copyButtons = (programs) => h("span", { class: "row no-export" }, [["command", "Copy as command", "the command"], ["python", "Copy as Python", "the Python program"]].map(([kind, text, what]) =>
  h("button", { type: "button", class: "quiet small", onclick: async () => {
    try {
      await copy((await programs())[kind], what);
    } catch (error) {
      toast(error.message);
    }
  } }, text)));
export const loading = (text = "Loading …") => h("p", { class: "loading", role: "status" }, text);
export const problem = (error) => h("p", { class: "error", role: "alert" }, error.message || String(error));
export const empty = (title, text, ...more) => h("div", { class: "card empty" }, h("h2", {}, title), h("p", {}, text), ...more);

// A table, e.g. of a chart's values for those who cannot see it.
export function table(caption, heads, rows, numeric = () => true) {
  const cell = (text, i) => (i === 0 ? h("th", { scope: "row" }, text) : h("td", { class: numeric(i) ? "number" : "" }, text));
  return h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: i && numeric(i) ? "number" : "" }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}
export const behind = (...parts) => h("details", {}, h("summary", {}, "As a table"), ...parts);

const dark = matchMedia("(prefers-color-scheme: dark)");
// A method's colour, light enough for a dark background.
export function shade(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  if (!dark.matches || 0.3 * r + 0.59 * g + 0.11 * b > 110) return colour;
  const lift = (c) => Math.round(c + (255 - c) * 0.5);
  return `rgb(${lift(r)}, ${lift(g)}, ${lift(b)})`;
}
export const dot = (row) => h("span", { class: "dot", style: { background: shade(row.colour) } });

// Pixels (rows of 0 to 255 as base64, grey or colour) as a picture of a certain width.
export function picture(base64, shape, width = 48, label = "") {
  const [rows, columns, channels] = [shape[0], shape[1], shape[2] || 1];
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const canvas = h("canvas", { class: "picture", width: columns, height: rows, style: { width: `${width}px`, height: `${(width * rows) / columns}px` }, role: "img", "aria-label": label || "picture" });
  const image = new ImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = bytes[channels === 3 ? 3 * i + c : i];
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
