"use strict";
// Tables: a click on a heading sorts by it, a second one the other way round. Rows keep their order where values are equal.
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const isNumber = head.classList.contains("n");
    const before = head.getAttribute("aria-sort");
    const direction = before === "none" ? (isNumber ? "descending" : "ascending") : before === "ascending" ? "descending" : "ascending";
    const sign = direction === "ascending" ? 1 : -1;
    const value = (row) => row.cells[column].dataset.v;
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      // What is missing stands last, whichever way.
      if (x === "" || y === "") return (x === "") - (y === "");
      return sign * (isNumber ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true }));
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
    heads.forEach((other) => other.setAttribute("aria-sort", other === head ? direction : "none"));
  }));
}
// Figures of which one is shown at a time.
for (const tabs of document.querySelectorAll(".tabs")) {
  const figures = [...tabs.children].filter((child) => child.tagName === "FIGURE");
  if (figures.length < 2) continue;
  const list = document.createElement("div");
  list.className = "tablist";
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", "Which delay is shown");
  const buttons = figures.map((figure) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = figure.querySelector("figcaption").textContent.split(": ").pop();
    list.append(button);
    return button;
  });
  const show = (shown) => figures.forEach((figure, i) => {
    figure.hidden = i !== shown;
    buttons[i].setAttribute("aria-pressed", String(i === shown));
  });
  buttons.forEach((button, i) => button.addEventListener("click", () => show(i)));
  tabs.prepend(list);
  show(0);
}
// On paper everything is unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
