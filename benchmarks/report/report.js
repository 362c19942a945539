"use strict";

// A head of a table sorts its column: numbers as numbers, what is neither number nor word last.
function compare(a, b, sign) {
  const x = a.dataset.value, y = b.dataset.value;
  if (x !== undefined && y !== undefined) return sign * (x - y);
  if (x !== undefined || y !== undefined) return x !== undefined ? -1 : 1;
  return sign * a.textContent.localeCompare(b.textContent, "en", { numeric: true });
}
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...[...body.rows].sort((a, b) => compare(a.cells[column], b.cells[column], up ? 1 : -1)));
    });
  });
}

// A point of a plot says what it is under the mouse, a finger, or the arrow keys; the other lines fade meanwhile.
const REACH = 32;
const tip = document.body.appendChild(document.createElement("div"));
tip.id = "tip";
tip.setAttribute("role", "status");
tip.hidden = true;

function emphasise(plot, name) {
  for (const line of plot.querySelectorAll("[data-line]"))
    line.classList.toggle("faint", name !== undefined && line.dataset.line !== name);
}
function hide() {
  tip.hidden = true;
  for (const point of document.querySelectorAll(".point.on")) {
    point.classList.remove("on");
    emphasise(point.closest(".plot"));
  }
}
function show(point) {
  if (!point) return hide();
  if (point.classList.contains("on") && !tip.hidden) return;
  hide();
  point.classList.add("on");
  emphasise(point.closest(".plot"), point.closest("[data-line]")?.dataset.line);
  tip.textContent = point.dataset.text;
  tip.hidden = false;
  const at = point.getBoundingClientRect();
  const left = Math.min(Math.max((at.left + at.right - tip.offsetWidth) / 2, 8), innerWidth - tip.offsetWidth - 8);
  const above = at.top - tip.offsetHeight - 10;
  tip.style.transform = `translate(${left}px, ${above > 8 ? above : at.bottom + 10}px)`;
}
function nearest(points, event) {
  let best, least = REACH;
  for (const point of points) {
    const at = point.getBoundingClientRect();
    const x = event.clientX - (at.left + at.right) / 2, y = event.clientY - (at.top + at.bottom) / 2;
    const outside = Math.hypot(Math.max(Math.abs(x) - at.width / 2, 0), Math.max(Math.abs(y) - at.height / 2, 0));
    const distance = outside + Math.hypot(x, y) / 1000; // of boxes that overlap, the one whose middle is nearer
    if (distance < least) [best, least] = [point, distance];
  }
  return best;
}
for (const chart of document.querySelectorAll(".chart")) {
  const points = [...chart.querySelectorAll(".point")];
  for (const point of points) {
    const title = point.querySelector("title");
    point.dataset.text = title.textContent;
    title.remove();
  }
  let at = 0;
  const pointed = (event) => show(nearest(points, event));
  chart.tabIndex = 0;
  chart.addEventListener("pointermove", pointed);
  chart.addEventListener("pointerdown", pointed);
  chart.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
  chart.addEventListener("focus", () => chart.matches(":focus-visible") && show(points[at]));
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    at = (at + step + points.length) % points.length;
    show(points[at]);
  });
}
for (const entry of document.querySelectorAll(".legend li")) {
  entry.addEventListener("pointerenter", () => emphasise(entry.closest(".plot"), entry.dataset.line));
  entry.addEventListener("pointerleave", () => emphasise(entry.closest(".plot")));
}
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
document.addEventListener("pointerdown", (event) => event.target.closest(".chart") || hide());
addEventListener("scroll", hide, { passive: true });
