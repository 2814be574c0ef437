// The current view as one file that opens from disk, without network or scripts.
import { post } from "./api.js";
import { h, toast } from "./dom.js";

const escaped = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

// A view that compares runs is exported as their report, the page that `relive report` writes; any other as it looks.
export async function download(main, view) {
  if (!view?.report) return downloadView(main);
  toast("Writing the report …");
  try {
    save((await post("/api/report", view.report())).page, "report");
  } catch (error) {
    toast(error.message);
  }
}

function save(page, name) {
  const address = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  h("a", { href: address, download: `relive-${name}.html` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  toast("Saved as one HTML file.");
}

async function downloadView(main) {
  const copy = main.cloneNode(true), canvases = main.querySelectorAll("canvas");
  copy.querySelectorAll("canvas").forEach((canvas, i) => { // a copy of a canvas is empty
    const { width, height } = canvases[i].getBoundingClientRect();
    canvas.replaceWith(h("img", { src: canvases[i].toDataURL(), alt: canvas.getAttribute("aria-label") || "", width: Math.round(width), height: Math.round(height), className: canvas.className }));
  });
  const inputs = main.querySelectorAll("select, input");
  copy.querySelectorAll("select, input").forEach((field, i) => { // show what was chosen as text
    const live = inputs[i];
    if (live.closest("form")) return;
    field.replaceWith(h("strong", {}, live.tagName === "SELECT" ? live.selectedOptions[0]?.textContent || "" : live.value));
  });
  copy.querySelectorAll("button, form, .no-export").forEach((node) => node.remove());
  copy.querySelectorAll("details").forEach((node) => { node.open = true; });
  copy.querySelectorAll("a").forEach((link) => link.replaceWith(...link.childNodes));
  copy.querySelectorAll("[tabindex]").forEach((node) => { if (!node.classList.contains("scroll")) node.removeAttribute("tabindex"); });
  const css = await (await fetch("/static/studio.css")).text();
  const made = new Date().toISOString().slice(0, 16).replace("T", " ");
  const page = `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${escaped(document.title)}</title><style>${css}</style></head><body>
<header class="top"><span class="brand">relive <span>studio</span></span><span class="fine">${made} UTC</span></header>
<main>${copy.innerHTML}</main></body></html>\n`;
  save(page, document.title.split(" ")[0].toLowerCase());
}
