// The shell: which view is shown, and whether the server is reachable.
import { takeToken, giveToken } from "./api.js";
import { state, follow, watch } from "./state.js";
import { h, loading, toast } from "./dom.js";
import { download } from "./export.js";
import * as live from "./live.js";
import * as matrix from "./matrix.js";
import * as dreams from "./dreams.js";
import * as draw from "./draw.js";
import * as models from "./models.js";
import * as compare from "./compare.js";

const VIEWS = { live, matrix, dreams, draw, models, compare };
const nav = document.getElementById("nav"), main = document.getElementById("view"), offline = document.getElementById("offline");
for (const [name, view] of Object.entries(VIEWS)) nav.append(h("a", { href: `#/${name}`, id: `nav-${name}` }, view.title));

let shown = null; // the open view: { update, close, report }
function show() {
  const [, name = "live", ...rest] = location.hash.split("/");
  const view = VIEWS[name] || live;
  shown?.close?.();
  for (const link of nav.children) link.removeAttribute("aria-current");
  const link = document.getElementById(`nav-${VIEWS[name] ? name : "live"}`);
  link.setAttribute("aria-current", "page");
  link.scrollIntoView({ block: "nearest", inline: "nearest" });
  document.title = `${view.title} · relive studio`;
  main.replaceChildren();
  shown = view.open(main, rest.map(decodeURIComponent)) || {};
}

// A bookmarked or shared page has no token: ask for it, then show the page.
function ask() {
  const field = h("input", { required: true, autocomplete: "off", spellcheck: false, placeholder: "http://127.0.0.1:…/#token=…" });
  const go = (event) => {
    event.preventDefault();
    if (giveToken(field.value)) location.reload();
    else toast("No token found: copy the whole address.");
  };
  main.replaceChildren(h("div", { class: "card empty" }, h("h1", {}, "Open the address from the terminal"),
    h("p", {}, "relive studio prints an address with a token in it. Without the token this page cannot load anything."),
    h("form", { class: "row", style: { justifyContent: "center" }, onsubmit: go }, h("label", {}, "or paste it here", field), h("button", { type: "submit", style: { alignSelf: "end" } }, "Open"))));
}

async function begin() {
  if (!takeToken()) return ask();
  let first = true;
  addEventListener("hashchange", () => {
    if (takeToken()) show();
  });
  let resizing, width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(resizing);
    resizing = setTimeout(() => shown?.update?.({ resized: true }), 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown?.update?.({ resized: true }));
  document.getElementById("export").addEventListener("click", () => download(main, shown));
  watch((message) => {
    if (first) {
      first = false;
      show();
    } else shown?.update?.(message);
  });
  main.replaceChildren(loading());
  try {
    await follow(() => { offline.hidden = false; }, () => { offline.hidden = true; });
  } catch {
    ask();
  }
}
begin();
