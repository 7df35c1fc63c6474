"use strict";
// Sort a table by the column whose head is pressed: numbers as numbers, missing last whichever way.
function compare(a, b) {
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x === y ? 0 : x < y ? -1 : 1;
}
function sort(head) {
  const table = head.closest("table"), at = head.cellIndex, body = table.tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending" ||
    (!head.hasAttribute("aria-sort") && !head.classList.contains("t"));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = row => row.cells[at].dataset.order;
  const rows = [...body.rows];
  const known = rows.filter(row => order(row) !== undefined);
  known.sort((a, b) => (down ? -1 : 1) * compare(order(a), order(b)));
  body.append(...known, ...rows.filter(row => order(row) === undefined));
}
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sort(button.parentElement));
}
