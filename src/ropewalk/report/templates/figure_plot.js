// A plot that answers: notes at what is pointed at, arrow keys that walk from mark to mark, dragging that zooms.
const charts = (() => {
  "use strict";
  const note = document.createElement("div");
  note.className = "tip";
  note.setAttribute("role", "status");
  note.hidden = true;
  document.body.append(note);
  const tell = (plot, target) => {
    note.hidden = !target;
    if (!target) return;
    note.replaceChildren(
      ...scales.pieces(target.text).flatMap((line, number) => [
        ...(number ? [document.createElement("br")] : []),
        ...line.map((part) => {
          const made = document.createElement(part.bold ? "b" : "span");
          made.textContent = part.text;
          return made;
        }),
      ]),
    );
    const page = plot.getBoundingClientRect();
    const [left, top] = [page.left + scrollX + target.at[0] + 12, page.top + scrollY + target.at[1] + 12];
    note.style.left = Math.max(4, Math.min(left, scrollX + document.documentElement.clientWidth - note.offsetWidth - 8)) + "px";
    note.style.top = top + "px";
  };

  // `show` is given a function that makes the figure, because colours and widths may change later.
  const follow = (plot) => {
    let [make, zoomed, picture, pointed, width] = [null, {}, null, -1, 0];
    const draw = () => {
      const drawing = make();
      plot.style.height = drawing.layout.height + "px";
      width = plot.clientWidth;
      picture = figure.drawn(plot, drawing, zoomed);
      pointed = -1;
      tell(plot, null);
    };
    const placeOf = (event) => {
      const page = plot.getBoundingClientRect();
      return [event.clientX - page.left, event.clientY - page.top];
    };
    plot.addEventListener("pointermove", (event) => picture && tell(plot, figure.nearest(picture.targets, placeOf(event))));
    plot.addEventListener("pointerleave", () => tell(plot, null));
    plot.addEventListener("blur", () => tell(plot, null));
    // Where an axis may be zoomed: dragging chooses a part of it, a double click shows all of it again.
    const brush = document.createElement("div");
    brush.className = "brush";
    brush.hidden = true;
    plot.append(brush);
    plot.addEventListener("pointerdown", (start) => {
      if (!picture || picture.axis.fixedrange || start.pointerType === "touch") return;
      const { box, x } = picture;
      const inside = (event) => Math.min(Math.max(placeOf(event)[0], box.x), box.x + box.width);
      const from = inside(start);
      const move = (event) => {
        const ends = [from, inside(event)].sort((a, b) => a - b);
        brush.hidden = ends[1] - ends[0] < 4;
        Object.assign(brush.style, { left: ends[0] + "px", width: ends[1] - ends[0] + "px", top: box.y + "px", height: box.height + "px" });
      };
      const end = (event) => {
        plot.removeEventListener("pointermove", move);
        brush.hidden = true;
        const ends = [from, inside(event)].sort((a, b) => a - b);
        if (event.type === "pointercancel" || ends[1] - ends[0] < 4) return;
        zoomed = { x: ends.map(x.value) };
        draw();
      };
      plot.addEventListener("pointermove", move);
      plot.addEventListener("pointerup", end, { once: true });
      plot.addEventListener("pointercancel", end, { once: true });
      plot.setPointerCapture(start.pointerId);
    });
    plot.addEventListener("dblclick", () => {
      zoomed = {};
      draw();
    });
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") tell(plot, null);
      if (!step || !picture?.targets.length) return;
      event.preventDefault();
      pointed = (pointed + step + picture.targets.length) % picture.targets.length;
      tell(plot, picture.targets[pointed]);
    });
    plot.tabIndex = 0;
    plot.querySelector("noscript")?.remove();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => make && draw());
    new ResizeObserver(() => make && plot.clientWidth !== width && draw()).observe(plot);
    const show = (makes, whole = false) => {
      make = makes;
      if (whole) zoomed = {};
      draw();
      plot.classList.add("drawn");
    };
    return { show };
  };
  return { follow };
})();
