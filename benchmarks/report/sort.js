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
