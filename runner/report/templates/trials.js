// Search the trials, and tick two of them to be read side by side.
const words = document.getElementById("words"), said = document.querySelector("output");
const table = document.querySelector("table"), beside = document.querySelector(".beside");
const rows = [...table.tBodies[0].rows], texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
const ticked = [];
function search() {
  const asked = words.value.toLowerCase().split(/\s+/);
  let count = 0;
  for (const row of rows) {
    row.hidden = !asked.every(word => texts.get(row).includes(word));
    count += !row.hidden;
  }
  said.value = `${count} of ${rows.length} trials`;
}
function show() {
  beside.hidden = ticked.length < 2;
  beside.firstElementChild.hash = ticked.map(box => box.value).join(",");
}
function tick(box) {
  const at = ticked.indexOf(box);
  if (at >= 0) ticked.splice(at, 1);
  if (box.checked) ticked.push(box);
  if (ticked.length > 2) ticked.shift().checked = false;
  show();
}
for (const row of rows) {
  if (!row.dataset.key) continue;
  const box = Object.assign(document.createElement("input"), { type: "checkbox", value: row.dataset.key });
  box.setAttribute("aria-label", "put side by side");
  box.addEventListener("change", () => tick(box));
  row.cells[0].prepend(box, " ");
}
function begin() {
  const key = location.hash.slice(1);
  const row = rows.find(each => each.dataset.key && each.dataset.key === key);
  if (row) {
    words.value = row.cells[0].textContent.trim();
    const box = row.querySelector("input");
    if (!box.checked) { box.checked = true; tick(box); }
  }
  search();
}
words.addEventListener("input", search);
addEventListener("hashchange", begin);
document.querySelector(".filters").hidden = false;
begin();
