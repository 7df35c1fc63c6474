"use strict";
// Show the pages of the two trials that the address names, and move both to the same section.
const main = document.querySelector("main"), nothing = main.firstElementChild;
function show(section) {
  const keys = location.hash.slice(1).split(",").filter(key => /^[0-9a-f]{32}$/.test(key)).slice(0, 2);
  if (keys.length < 2) return main.replaceChildren(nothing);
  const frames = keys.map((key, at) => {
    const frame = document.createElement("iframe");
    // No scripts. A page from disk leads to another one only with an origin.
    frame.setAttribute("sandbox", "allow-same-origin allow-top-navigation-by-user-activation");
    frame.title = `trial ${at + 1}`;
    frame.src = `${key}.html${section ? `#${section}` : ""}`;
    return frame;
  });
  main.replaceChildren(...frames);
}
for (const button of document.querySelectorAll("button[data-section]")) {
  button.addEventListener("click", () => show(button.dataset.section));
}
addEventListener("hashchange", () => show(""));
show("");
