// Every table of a page: sorted by a click on a heading, copied as tab-separated values.
"use strict";
(() => {
  const value = (row, column) => {
    const cell = row.cells[column], text = cell ? cell.dataset.value ?? cell.textContent.trim() : "";
    const number = parseFloat(text.replace(/,(?=\d{3})/g, ""));
    return Number.isNaN(number) || cell.matches("th, .text") ? text : number; // names and times are no numbers
  };
  const order = (a, b) => {
    if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return typeof a === "number" ? 1 : -1; // what is no number comes first
  };
  function sort(table, heading) {
    const column = heading.cellIndex, falling = heading.ariaSort === "ascending";
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    rows.sort((a, b) => (falling ? -1 : 1) * order(value(a, column), value(b, column)));
    table.tBodies[0].prepend(...rows);
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.ariaSort = falling ? "descending" : "ascending";
  }
  const tsv = (table) =>
    [...table.rows].map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim()).join("\t"))
      .join("\n") + "\n";
  async function copy(table, button) {
    try {
      await navigator.clipboard.writeText(tsv(table));
      button.textContent = "copied";
    } catch {
      button.textContent = "the browser does not allow it";
    }
    setTimeout(() => { button.textContent = "copy as TSV"; }, 2000);
  }
  for (const table of document.querySelectorAll("table")) {
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading));
      heading.append(button);
    }
    const button = Object.assign(document.createElement("button"), { textContent: "copy as TSV", ariaLive: "polite" });
    button.className = "copy";
    button.addEventListener("click", () => copy(table, button));
    table.closest(".wide").after(button);
  }
})();
