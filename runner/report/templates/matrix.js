// Filter the rows and columns of each matrix by words in their names.
function wanted(text, field) {
  const name = text.toLowerCase();
  return field.value.toLowerCase().split(/\s+/).every(word => name.includes(word));
}
for (const box of document.querySelectorAll(".filters")) {
  const [rows, columns] = ["rows", "columns"].map(name => box.querySelector(`[data-filter=${name}]`));
  const table = box.parentElement.querySelector(".matrix table"), said = box.querySelector("output");
  const heads = [...table.tHead.rows[0].cells];
  const filter = () => {
    const shown = heads.map((head, at) => at < 2 || wanted(head.textContent, columns));
    const kept = [...table.tBodies[0].rows].filter(row => !(row.hidden = !wanted(row.cells[0].textContent, rows)));
    for (const row of table.rows) {
      for (const cell of row.cells) cell.hidden = !shown[cell.cellIndex];
    }
    said.value = `${kept.length} tasks × ${shown.filter(Boolean).length - 2} cells shown`;
  };
  for (const field of [rows, columns]) field.addEventListener("input", filter);
  box.hidden = false;
}
