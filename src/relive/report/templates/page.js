// Sorting and filtering the table of runs; the page reads the same without it.
(() => {
  const table = document.getElementById("run-table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const numeric = heads.map((head) => head.classList.contains("number"));
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    return numeric[column] ? parseFloat(text) : text;
  };
  for (const row of rows) numeric.forEach((is, column) => is && row.cells[column].classList.add("number"));

  const compare = (a, b, sign) => {
    if (typeof a === "number") return (Number.isNaN(a) - Number.isNaN(b)) || sign * (a - b); // unknown ones are last
    return sign * a.localeCompare(b, "en", { numeric: true });
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent.trim();
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map((row) => [valueOf(row, column), row]);
      keyed.sort((a, b) => compare(a[0], b[0], down ? -1 : 1));
      rows.splice(0, rows.length, ...keyed.map((pair) => pair[1]));
      body.append(...rows);
    });
  });

  const form = document.getElementById("filters");
  const search = document.getElementById("filter-text");
  const selects = [...form.querySelectorAll("select")];
  const shown = document.getElementById("shown");
  for (const select of selects) {
    const values = new Set(rows.flatMap((row) => row.dataset[select.dataset.key].split(", ")));
    for (const value of values) select.add(new Option(value, value));
  }
  const texts = new Map(rows.map((row) => {
    const cells = [...row.cells].map((cell) => cell.textContent).join(" ");
    return [row, `${Object.values(row.dataset).join(" ")} ${cells} seed${row.cells[4].textContent} `.toLowerCase()];
  }));
  // A word that ends in a digit must end there in the row too: seed1 is not seed10.
  const found = (text, word) => text.includes(/\d$/.test(word) ? `${word} ` : word);
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const fits = selects.every((select) => !select.value || row.dataset[select.dataset.key].split(", ").includes(select.value))
        && words.every((word) => found(texts.get(row), word));
      row.hidden = !fits;
      count += fits;
    }
    shown.value = `${count} of ${rows.length} runs`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
})();
