// The form that starts runs; everything in it comes from the catalogue.
import { post } from "./api.js";
import { h, toast, problem, copyButtons } from "./dom.js";

const NUMBERS = { tasks: "Tasks", iters: "Steps per task", learning_rate: "Learning rate", hidden: "Hidden units", batch_size: "Batch size", latent: "Latent variables" };

export function runForm(catalogue) {
  const choice = (name, label, options, value) => h("label", {}, label, h("select", { name }, options.map((option) =>
    h("option", { value: option.name, selected: option.name === value }, option.title))));
  const number = (name, label) => h("label", {}, label, h("input", { name, type: "number", min: 0, step: "any", placeholder: " " }));
  const ticks = h("div", { class: "ticks" }, catalogue.methods.map((method) => h("label", { class: "tick", title: method.reference },
    h("input", { type: "checkbox", name: "methods", value: method.name, checked: catalogue.first.includes(method.name) }), method.title)));
  const settings = h("div", { class: "fields wide-field" }), failed = h("div", { class: "wide-field" });
  const form = h("form", { class: "stack" },
    h("fieldset", {}, h("legend", {}, "Methods; several run side by side"), ticks),
    h("div", { class: "fields" },
      choice("dataset", "Data set", catalogue.datasets, "digits"),
      choice("protocol", "Protocol", catalogue.protocols, "split"),
      choice("scenario", "Scenario", catalogue.scenarios, "class"),
      h("label", {}, "Repeats", h("select", { name: "often" }, h("option", { value: "one" }, "one seed"), h("option", { value: "many" }, "seeds 1 to n"))),
      h("label", {}, h("span", { class: "often" }, "Seed"), h("input", { name: "n", type: "number", min: 0, step: 1, value: 1, required: true })),
      Object.entries(NUMBERS).map(([name, label]) => number(name, label)),
      choice("encoder", "Encoder", [{ name: "", title: "the method’s default" }, ...catalogue.encoders.map((e) => ({ name: e.name, title: e.name }))], ""),
      choice("optimizer", "Optimizer", catalogue.optimizers.map((o) => ({ name: o.name, title: o.name })), "adam"),
      choice("fidelity", "Fidelity", [{ name: "as_run", title: "the paper’s code" }, { name: "as_written", title: "the paper’s equations" }], "as_run"),
      settings, failed),
    h("div", { class: "row" }, h("button", { type: "submit" }, "Start"), copyButtons(() => post("/api/programs", asked())), h("p", { class: "fine" }, "A snapshot is saved after each task, for the other views.")));

  const at = form.elements;
  const chosen = () => catalogue.methods.filter((method) => form.querySelector(`input[value="${method.name}"]`).checked);
  function follow() {
    const preset = catalogue.protocols.find((p) => p.name === at.protocol.value).preset;
    for (const name of Object.keys(NUMBERS)) at[name].placeholder = preset[name];
    if (!at.iters.dataset.touched) at.iters.value = at.dataset.value === "digits" ? 300 : "";
    const scenario = at.scenario.value;
    for (const method of catalogue.methods) {
      const box = form.querySelector(`input[value="${method.name}"]`), works = method.scenarios.includes(scenario);
      box.disabled = !works;
      if (!works) box.checked = false;
      box.parentNode.title = works ? method.reference : `not available in this scenario: ${method.why_not}`;
    }
    form.querySelector(".often").textContent = at.often.value === "many" ? "Number of seeds" : "Seed";
    const methods = chosen();
    const offered = methods.length === 1 ? methods[0].settings : [];
    const key = offered.map((setting) => setting.name).join();
    if (settings.dataset.key === key) return;
    settings.dataset.key = key;
    settings.replaceChildren(...offered.map((setting) => h("label", { title: setting.explain }, `${setting.symbol}: ${setting.explain}`,
      h("input", { type: "number", step: "any", min: setting.low ?? "", max: setting.high ?? "", "data-setting": setting.name, placeholder: setting.default }))));
  }
  at.iters.addEventListener("input", () => { at.iters.dataset.touched = "yes"; });
  form.addEventListener("change", follow);
  function asked() {
    const wanted = { methods: chosen().map((method) => method.name), dataset: at.dataset.value, protocol: at.protocol.value, scenario: at.scenario.value, optimizer: at.optimizer.value, fidelity: at.fidelity.value };
    wanted[at.often.value === "many" ? "seeds" : "seed"] = Number(at.n.value);
    if (at.encoder.value) wanted.encoder = at.encoder.value;
    for (const name of Object.keys(NUMBERS)) if (at[name].value !== "") wanted[name] = Number(at[name].value);
    const given = [...settings.querySelectorAll("input")].filter((input) => input.value !== "");
    if (given.length) wanted.settings = Object.fromEntries(given.map((input) => [input.dataset.setting, Number(input.value)]));
    return wanted;
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { jobs } = await post("/api/runs", asked());
      failed.replaceChildren();
      toast(jobs.length === 1 ? "Started." : `Started ${jobs.length} runs.`);
    } catch (error) {
      failed.replaceChildren(problem(error));
    }
  });
  follow();
  return form;
}
