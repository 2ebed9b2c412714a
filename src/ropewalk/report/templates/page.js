(() => {
  "use strict";
  // A click on a heading, or Enter, sorts its table by that column, a second one turns it round.
  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    const key = (row, column) => {
      const cell = row.cells[column];
      return "value" in cell.dataset ? (cell.dataset.value === "" ? Infinity : Number(cell.dataset.value)) : cell.textContent;
    };
    headings.forEach((heading, column) => {
      const sort = () => {
        const up = heading.getAttribute("aria-sort") !== "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((first, second) => {
          const [a, b] = [key(first, column), key(second, column)];
          return (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1);
        });
        table.tBodies[0].append(...rows);
      };
      heading.tabIndex = 0;
      heading.addEventListener("click", sort);
      heading.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        sort();
      });
    });
  }
  // Drawings: buttons zoom, dragging moves.
  for (const figure of document.querySelectorAll("figure.explore")) {
    const svg = figure.querySelector("svg");
    const whole = svg.getAttribute("viewBox").split(" ").map(Number);
    let box = [...whole];
    const show = () => svg.setAttribute("viewBox", box.join(" "));
    for (const button of figure.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => {
        const factor = Number(button.dataset.zoom);
        const [x, y, width, height] = box;
        const wide = Math.min(whole[2], width * factor);
        const high = Math.min(whole[3], height * factor);
        box = factor === 0 ? [...whole] : [x + (width - wide) / 2, y + (height - high) / 2, wide, high];
        if (box[2] === whole[2]) box = [...whole];
        show();
      });
    }
    svg.addEventListener("pointerdown", (start) => {
      const from = [...box];
      const scale = Math.max(box[2] / svg.clientWidth, box[3] / svg.clientHeight);
      const move = (event) => {
        box = [from[0] - (event.clientX - start.clientX) * scale, from[1] - (event.clientY - start.clientY) * scale, from[2], from[3]];
        show();
      };
      svg.setPointerCapture(start.pointerId);
      svg.addEventListener("pointermove", move);
      svg.addEventListener("lostpointercapture", () => svg.removeEventListener("pointermove", move), { once: true });
    });
  }
  // In a frame, whoever made it is told how high the page is.
  if (parent !== window) {
    const tell = () => parent.postMessage({ height: document.documentElement.scrollHeight }, "*");
    new ResizeObserver(tell).observe(document.body);
    tell();
  }
})();
