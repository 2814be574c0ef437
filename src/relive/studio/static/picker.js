// Choosing runs to show: one or two of those that suit a view.
import { state, newest, featured } from "./state.js";
import { h, described } from "./dom.js";

// names: runs named in the address; fits: which rows suit; count: how many; onChange: called with the chosen rows.
export function picker(names, fits, count, onChange) {
  const node = h("div", { class: "fields runs-to-choose no-export" });
  const kept = names.filter((name) => state.rows.has(name) && fits(state.rows.get(name)));
  const usual = featured(fits);
  const chosen = Array.from({ length: count }, (_, i) => kept[i] ?? (kept.length ? null : usual[i]?.name) ?? null);
  if (kept.length === 1 && count === 2) chosen[1] = usual.map((row) => row.name).find((name) => name !== kept[0]) ?? null;
  let offered = "";
  function refresh() {
    const rows = newest().filter(fits).slice(0, 300);
    const key = rows.map((row) => row.name).join();
    if (key === offered) return false;
    offered = key;
    node.replaceChildren(...chosen.map((_, i) => {
      if (!state.rows.has(chosen[i])) chosen[i] = i === 0 ? featured(fits)[0]?.name ?? null : featured(fits).find((row) => row.name !== chosen[0])?.name ?? null;
      const select = h("select", { onchange: () => {
        chosen[i] = select.value || null;
        onChange(rowsOf());
      } }, i ? h("option", { value: "" }, "none") : null, rows.map((row) => h("option", { value: row.name, selected: row.name === chosen[i] }, `${row.title}, seed ${row.seed} (${described(row)})`)));
      return h("label", {}, count === 1 ? "Run" : i ? "Compare with" : "Run", select);
    }));
    return true;
  }
  const rowsOf = () => chosen.map((name) => state.rows.get(name)).filter(Boolean);
  refresh();
  return { node, refresh, rows: rowsOf };
}

export const NOT_KEPT = "The run has not got that far, was stopped there, or its method has state that a model file cannot hold, such as XdG’s gates for future tasks.";

// In Task-IL the task is given: choose one of a run's tasks. Hidden where no run needs it.
export function taskChoice(onChange) {
  const select = h("select", { onchange: () => onChange(Number(select.value)) });
  const node = h("label", { class: "no-export", style: { marginTop: "12px", maxWidth: "320px" } }, "Task-IL: the task whose classes to choose from", select);
  return {
    node,
    show(rows) {
      const tasks = Math.max(0, ...rows.filter((row) => row.scenario === "task").map((row) => row.tasks)), kept = Number(select.value || 0);
      node.hidden = !tasks;
      if (select.options.length === tasks) return;
      select.replaceChildren(...Array.from({ length: tasks }, (_, k) => h("option", { value: k, selected: k === kept }, `task ${k + 1}`)));
    },
    get task() { return Number(select.value || 0); },
  };
}

// A slider along the tasks, with a button that plays it.
export function scrubber(tasks, at, onMove) {
  const range = h("input", { type: "range", min: 1, max: tasks, step: 1, value: at + 1, "aria-label": "after which task", oninput: () => move(Number(range.value) - 1) });
  const label = h("output", { class: "mono" });
  let playing = null;
  const play = h("button", { type: "button", class: "quiet small", onclick: () => (playing ? stop() : start()) }, "▶ Play");
  function move(k) {
    range.value = k + 1;
    label.textContent = `after task ${k + 1} of ${tasks}`;
    onMove(k);
  }
  function stop() {
    clearInterval(playing);
    playing = null;
    play.textContent = "▶ Play";
  }
  function start() {
    let k = Number(range.value) >= tasks ? 0 : Number(range.value);
    move(k);
    play.textContent = "❚❚ Pause";
    playing = setInterval(() => {
      k += 1;
      if (k >= tasks) return stop();
      move(k);
    }, 900);
  }
  label.textContent = `after task ${at + 1} of ${tasks}`;
  return { node: h("div", { class: "row", style: { flexWrap: "nowrap" } }, play, range, label), stop, get at() { return Number(range.value) - 1; } };
}
