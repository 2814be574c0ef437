// Models: drop a file, teach a model, query it, see what it remembers, make it forget, roll back.
import { get, post, send, part } from "./api.js";
import { h, percent, loading, problem, table, copyButtons, toast } from "./dom.js";

export const title = "Models";

export function open(root, [named]) {
  root.append(h("h1", {}, "Models"), h("p", { class: "lead" }, "A model is a file that keeps learning. Drop a table or images of new classes; next month, drop others. Old data are neither needed nor kept."));
  const place = h("div", {}, loading());
  root.append(place);
  let chosen = named || null, file = null, open = true, reading = null;

  async function refresh() {
    try {
      const { models, methods, folder } = await get("/api/models");
      if (open) draw(models, methods, folder);
    } catch (error) {
      place.replaceChildren(problem(error));
    }
  }

  function draw(models, methods, folder) {
    if (!chosen && models.length) chosen = models[0].name;
    const isNew = !models.some((model) => model.name === chosen);
    const name = h("input", { required: true, pattern: "[A-Za-z0-9][\\w.+\\-]*", value: isNew ? chosen || "" : "", placeholder: "e.g. flowers" });
    const select = h("select", { onchange: () => {
      chosen = select.value || null;
      draw(models, methods, folder);
    } }, models.map((model) => h("option", { value: model.name, selected: model.name === chosen }, model.name)), h("option", { value: "", selected: isNew }, "a new model"));
    const said = h("section", { class: "card", "aria-live": "polite", hidden: true }), memory = h("div");
    const picked = h("span", {}, file ? file.name : "No file chosen");
    const input = h("input", { type: "file", accept: ".csv,.npz,.zip", class: "unseen", onchange: () => { reading = take(input.files[0]); } });
    const drop = h("div", { class: "drop" }, h("p", {}, "Drop a CSV or NPZ file here, or a zip of a folder of pictures with a sub-folder per class"),
      h("label", { class: "button quiet" }, "Choose a file", input), h("p", { class: "fine", style: { marginTop: "8px" } }, picked));
    for (const kind of ["dragover", "dragleave", "drop"]) drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) reading = take(event.dataTransfer.files[0]);
    });
    const label = h("select"), labelField = h("label", {}, "Label column", label);
    async function take(given) {
      file = given;
      picked.textContent = `${file.name}, ${(file.size / 1e6).toFixed(2)} MB`;
      const columns = /\.csv$/i.test(file.name) ? (await file.slice(0, 65536).text()).split(/\r?\n/)[0].split(",").map((c) => c.trim().replace(/^"|"$/g, "")) : [];
      labelField.hidden = !columns.length;
      const usual = ["label", "species", "class", "target", "y"].find((c) => columns.includes(c)) || columns.at(-1);
      label.replaceChildren(h("option", { value: "" }, "as for the first task"), ...columns.map((c) => h("option", { value: c, selected: c === usual }, c)));
    }
    labelField.hidden = true;
    if (file) reading = take(file);
    const task = h("input", { placeholder: "0, 1, 2 …" });
    const method = h("select", {}, h("option", { value: "" }, "automatic"), methods.map((m) => h("option", { value: m.name }, m.title)));
    const forgettable = h("input", { type: "checkbox" });
    const target = () => (isNew ? name.value.trim() : chosen);

    async function run(what, query = {}, body = null) {
      if (!target()) return toast("Give the model a name first.");
      if (body === null && ["fit", "predict", "evaluate"].includes(what)) {
        if (!file) return toast("Choose a file first.");
        body = file;
      }
      said.hidden = false;
      said.replaceChildren(loading({ fit: "Training …", predict: "Predicting …", evaluate: "Evaluating …" }[what] || "Working …"));
      const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
      try {
        const answer = await (body ? send : post)(`/api/models/${part(target())}/${what}?${search}`, body || {});
        if (["fit", "forget", "rollback"].includes(what)) {
          chosen = target();
          const { models: now } = await get("/api/models");
          draw(now, methods, folder);
        }
        const live = place.querySelector("[data-said]");
        live.hidden = false;
        live.replaceChildren(...shown(what, answer));
        live.scrollIntoView({ block: "nearest" });
      } catch (error) {
        said.replaceChildren(problem(error));
      }
    }
    said.dataset.said = "";
    const given = () => ({ file: file?.name, label: labelField.hidden ? "" : label.value, task: task.value.trim() });
    const act = (text, what, query, quiet = true) => h("button", { type: "button", class: quiet ? "quiet" : "", onclick: async () => {
      await reading;
      run(what, query());
    } }, text);
    place.replaceChildren(h("div", { class: "two" },
      h("section", { class: "card" }, h("h2", {}, "Teach and predict"), h("div", { class: "fields", style: { marginBottom: "16px" } }, h("label", {}, "Model", select), isNew ? h("label", {}, "Its name", name) : null), drop,
        h("div", { class: "fields", style: { margin: "16px 0" } }, labelField, h("label", {}, "Task name", task), isNew ? h("label", {}, "Method", method) : null,
          isNew ? h("label", { class: "tick" }, forgettable, "can forget a class without a trace") : null),
        h("div", { class: "row" }, act("Teach", "fit", () => ({ ...given(), ...(isNew ? { method: method.value, forgettable: forgettable.checked ? "yes" : "" } : {}) }), false),
          isNew ? null : act("Predict", "predict", given), isNew ? null : act("Evaluate", "evaluate", given)),
        h("p", { class: "fine", style: { marginTop: "12px" } }, `Model files are in ${folder}/, with up to five earlier versions each.`)),
      h("section", { class: "card" }, h("h2", {}, "What it remembers"), memory)), said);
    if (isNew) memory.replaceChildren(h("p", { class: "fine" }, models.length ? "A new model remembers nothing yet." : "No model yet. Name one, choose a file, and teach it."));
    else remember(memory, chosen, run);
  }
  refresh();
  return { close: () => { open = false; } };
}

async function remember(place, name, run) {
  place.replaceChildren(loading());
  try {
    const answer = await get(`/api/models/${part(name)}`), model = answer.result;
    const replays = model.classes.some((c) => c.replayed !== null);
    place.replaceChildren(h("p", {}, h("strong", {}, model.choice.method), model.choice.reason ? `, chosen: ${model.choice.reason}` : ""),
      h("p", { class: "fine" }, `${model.tasks.length} ${model.tasks.length === 1 ? "task" : "tasks"}, ${model.features} features. ${model.holds_data ? "This file contains real samples." : "No samples are stored in this file."}`),
      h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Classes" }, h("table", {}, h("caption", { class: "unseen" }, "Classes"), h("thead", {}, h("tr", {}, ["class", "samples", "tasks", ...(replays ? ["replayed"] : []), ""].map((head, i) => h("th", { scope: "col", class: i === 1 ? "number" : "" }, head || h("span", { class: "unseen" }, "Actions"))))),
        h("tbody", {}, model.classes.map((c) => h("tr", {}, h("th", { scope: "row" }, String(c.label)), h("td", { class: "number" }, c.n_samples), h("td", {}, c.tasks.join(", ")), replays ? h("td", {}, percent(c.replayed, 0)) : null,
          h("td", {}, h("button", { type: "button", class: "quiet small", onclick: () => run("forget", { class: String(c.label) }) }, h("span", {}, "Forget"), h("span", { class: "unseen" }, String(c.label))))))))),
      h("div", { class: "row", style: { marginTop: "12px" } }, h("button", { type: "button", class: "quiet", disabled: !model.kept.length, onclick: () => run("rollback") }, "Roll back one step"), h("span", { class: "fine" }, model.kept.length ? `${model.kept.length} earlier ${model.kept.length === 1 ? "version" : "versions"}` : "no earlier version yet")),
      model.changes.length ? h("p", { class: "fine", style: { marginTop: "8px" } }, model.changes.map((c) => `${c.what}: ${c.labels.join(", ")}${c.into === null ? "" : ` into ${c.into}`}`).join("; ")) : "",
      h("div", { style: { marginTop: "12px" } }, copyButtons(() => answer)));
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

function shown(what, answer) {
  const parts = [h("div", { class: "row spread" }, h("h2", { style: { margin: 0 } }, { fit: "Learned", predict: "Predictions", evaluate: "Accuracy", forget: "Forgotten", rollback: "Rolled back" }[what]),
    copyButtons(() => answer))];
  if (answer.notes) parts.push(h("p", { class: "fine", style: { whiteSpace: "pre-wrap" } }, answer.notes));
  if (answer.said) parts.push(h("pre", {}, answer.said));
  if (what === "predict") {
    const best = (row) => Object.entries(row.proba).sort((a, b) => b[1] - a[1])[0][1];
    parts.push(table(answer.total > answer.result.length ? `The first ${answer.result.length} of ${answer.total} predictions` : `${answer.total} predictions`, ["sample", "class", "probability"], answer.result.map((row, i) => [row.file || `${i + 1}`, String(row.label), percent(best(row))])));
  }
  if (what === "evaluate") {
    const { result } = answer;
    parts.push(h("p", { class: "big-number" }, percent(result.accuracy)), h("p", { class: "fine" }, `on ${result.n} samples; 95 % interval ${result.interval.map((a) => percent(a)).join(" to ")}`),
      table("By class", ["class", "samples", "accuracy", "95 % interval"], result.classes.map((c) => [String(c.label), c.n, percent(c.accuracy), c.interval.map((a) => percent(a)).join(" to ")])));
  }
  return parts;
}
