// Candidates as points: memory to the right, time upwards. Columns come as text of so many digits per point.
const pointCloud = (() => {
  "use strict";
{% include "canvas_window.js" %}
{% include "durations.js" %}
  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const numbers = (text, digits) => {
    const found = new Uint16Array(text.length / digits);
    for (let at = 0; at < text.length; at++) {
      found[Math.floor(at / digits)] = found[Math.floor(at / digits)] * DIGITS.length + DIGITS.indexOf(text[at]);
    }
    return found;
  };
  const gigabytes = (size) => `${Number(size.toPrecision(4))}\u00a0GB`;
  const element = (tag, text, parts = {}) => Object.assign(document.createElement(tag), { textContent: text, ...parts });
  const NEAR = 9;
  const BEST = 0; // where strategies can be held against the best one, it comes first

  // Draws a figure; `before` is what another picture in its place had chosen. Answers with what is chosen now.
  return (figure, before = null) => {
    const canvas = figure.querySelector("canvas");
    const tip = figure.querySelector(".tip");
    const status = figure.querySelector(".status");
    const data = JSON.parse(figure.querySelector("script").textContent);
    const listed = document.getElementById(figure.dataset.table);
    const columns = data.columns.map((column) => ({ ...column, at: numbers(column.at, column.digits) }));
    const many = data.time.length;
    const timed = new Set(data.simulated);
    const simulated = (point) => timed.has(point);
    const scale = data.log ? Math.log10 : (time) => time;
    const unscale = data.log ? (height) => 10 ** height : (height) => height;
    const times = data.time.map(scale);
    const [AXIS, HEIGHT, TOP] = [44, 460, 22];
    const [placeX, placeY] = [new Float32Array(many), new Float32Array(many)];
    const off = columns.map(() => new Set());
    const radios = [...figure.querySelectorAll("input[type=radio]")];
    const kept = radios.find((radio) => radio.closest("label").textContent.trim() === before?.painted);
    if (kept) kept.checked = true;
    let painted = Number(radios.find((radio) => radio.checked)?.value ?? -1);
    let [shown, chosen] = [[], []];

    const nameOf = (box) => `${box.closest(".values").getAttribute("aria-label")} ${box.closest("label").textContent.trim()}`;
    const words = (point) => columns.map((column) => column.words[column.at[point]]).filter(Boolean).join(", ");
    const time = (point) => (simulated(point) ? "" : "≥ ") + written(data.time[point] * 1e9);
    const colour = (point, shade) => (painted < 0 ? data.looks[shade] : columns[painted].looks[columns[painted].at[point]][shade]);

    const marks = ([low, high], count) => {
      const step = roundStep((high - low) / count);
      const found = [];
      for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(Number(at.toPrecision(12)));
      return found;
    };
    // On a logarithmic axis round numbers of every decade, or of the view where it is less than a decade.
    const timeMarks = () => {
      const [low, high] = look.high.map(unscale);
      if (!data.log || high / low < 8) return marks([low, high], 6);
      const found = [];
      for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
        for (const factor of SCALE) if (factor * 10 ** power >= low && factor * 10 ** power <= high) found.push(factor * 10 ** power);
      }
      return found;
    };
    const drawFrame = () => {
      const [muted, grid] = [style("--muted"), style("--grid")];
      paper.clearRect(0, 0, look.width, HEIGHT);
      paper.font = font;
      paper.textBaseline = "middle";
      for (const at of timeMarks()) {
        const y = Math.round(look.y(scale(at)));
        paper.fillStyle = grid;
        paper.fillRect(look.gutter, y, look.width - look.gutter, 1);
        paper.fillStyle = muted;
        paper.textAlign = "right";
        paper.fillText(written(at * 1e9), look.gutter - 10, y);
      }
      paper.textAlign = "center";
      for (const at of marks(look.view, Math.max(2, Math.floor((look.width - look.gutter) / 54)))) {
        const x = look.x(at);
        paper.fillStyle = grid;
        paper.fillRect(Math.round(x), TOP, 1, HEIGHT - AXIS - TOP);
        paper.fillStyle = muted;
        paper.fillText(gigabytes(at), Math.min(x, look.width - 22), HEIGHT - AXIS + 14);
      }
      paper.fillText("peak memory", (look.gutter + look.width) / 2, HEIGHT - 10);
      paper.textAlign = "left";
      paper.fillText(data.log ? "step time, logarithmic" : "step time", 0, 8);
    };
    const drawLines = () => {
      const x = look.x(data.capacity);
      paper.fillStyle = style("--heat4");
      paper.fillRect(Math.round(x), TOP, 1.5, HEIGHT - AXIS - TOP);
      paper.textAlign = "right";
      const beyond = x > look.width ? " →" : "";
      if (x > look.gutter) paper.fillText(`capacity ${gigabytes(data.capacity)}${beyond}`, Math.min(x, look.width) - 6, TOP + 8);
      paper.strokeStyle = paper.fillStyle = style("--muted");
      paper.textAlign = "left";
      paper.setLineDash([5, 4]);
      paper.beginPath();
      for (const { seconds } of data.bounds) {
        paper.moveTo(look.gutter, look.y(scale(seconds)));
        paper.lineTo(look.width, look.y(scale(seconds)));
      }
      paper.stroke();
      paper.setLineDash([]);
    };
    const nameBounds = () => {
      paper.textAlign = "left";
      let [left, below] = [look.gutter + 6, 10];
      const names = data.bounds.map(({ name, seconds }) => {
        const text = `${name} ${written(seconds * 1e9)}`;
        // Next to each other where there is room, otherwise below each other.
        if (left > look.gutter + 6 && left + paper.measureText(text).width > look.width) [left, below] = [look.gutter + 6, below + 15];
        const at = left;
        left += paper.measureText(text).width + 24; // lines may lie close to each other, their names must not
        return [text, at, look.y(scale(seconds)) + below];
      });
      // Names that would run into the axis stand above their lines.
      const lift = Math.max(...names.map(([, , y]) => y)) > HEIGHT - AXIS + 2 ? below + 10 : 0;
      for (const [text, at, y] of names) {
        paper.fillStyle = style("--muted");
        onPaper(text, at, y - lift);
      }
    };
    // Text over lines and points keeps a rim of paper.
    const onPaper = (text, left, y) => {
      paper.lineJoin = "round";
      paper.lineWidth = 4;
      paper.strokeStyle = style("--paper");
      paper.strokeText(text, left, y);
      paper.fillText(text, left, y);
    };
    // Where a point of the same colour covers the same pixel already, another one would not be seen.
    const drawPoints = () => {
      const shade = dark.matches ? 1 : 0;
      const wide = Math.ceil(look.width) + 1;
      const cells = new Map();
      const batches = new Map();
      const faint = style("--grid");
      for (const point of shown) {
        const tint = inArea(point) ? colour(point, shade) : faint;
        const cell = Math.round(placeY[point]) * wide + Math.round(placeX[point]);
        if (!simulated(point) && cells.get(cell) === tint) continue;
        cells.set(cell, tint);
        const key = tint + simulated(point);
        if (!batches.has(key)) batches.set(key, { tint, filled: simulated(point), points: [] });
        batches.get(key).points.push(point);
      }
      paper.lineWidth = 1.2;
      for (const { tint, filled, points } of [...batches.values()].sort((a, b) => a.filled - b.filled)) {
        paper.beginPath();
        for (const point of points) {
          const size = filled ? 4.5 : 2.8;
          paper.moveTo(placeX[point] + size, placeY[point]);
          paper.arc(placeX[point], placeY[point], size, 0, 2 * Math.PI);
        }
        paper.fillStyle = paper.strokeStyle = tint;
        if (filled) paper.fill();
        else paper.stroke();
      }
    };
    const drawNames = () => {
      const ink = style("--ink");
      paper.textAlign = "left";
      for (const { name, memory, seconds } of data.named) {
        const [x, y] = [look.x(memory), look.y(scale(seconds))];
        paper.strokeStyle = paper.fillStyle = ink;
        paper.lineWidth = 2;
        paper.beginPath();
        paper.arc(x, y, 7.5, 0, 2 * Math.PI);
        paper.stroke();
        paper.font = "600 " + font;
        const left = x + 14 + paper.measureText(name).width < look.width ? x + 13 : x - 13 - paper.measureText(name).width;
        onPaper(name, left, y);
        paper.font = font;
      }
    };
    const visible = (point) =>
      data.memory[point] >= look.view[0] && data.memory[point] <= look.view[1]
      && times[point] >= look.high[0] && times[point] <= look.high[1]
      && columns.every((column, at) => !off[at].has(column.at[point]));
    const inArea = (point) => {
      const area = look.area;
      return !area || (data.memory[point] >= area.x[0] && data.memory[point] <= area.x[1] && times[point] >= area.y[0] && times[point] <= area.y[1]);
    };
    const draw = () => {
      shown = [];
      for (let point = 0; point < many; point++) {
        if (!visible(point)) continue;
        placeX[point] = look.x(data.memory[point]);
        placeY[point] = look.y(times[point]);
        shown.push(point);
      }
      chosen = shown.filter(inArea);
      drawFrame();
      paper.save();
      paper.beginPath();
      paper.rect(look.gutter, 0, look.width - look.gutter, HEIGHT - AXIS + 8);
      paper.clip();
      drawLines();
      drawPoints();
      nameBounds();
      drawNames();
      look.drawBrush();
      paper.restore();
      canvas.dataset.drawn = String(shown.length);
      canvas.dataset.selected = String(look.area ? chosen.length : 0);
      for (const button of figure.querySelectorAll("[data-of-area]")) button.disabled = !look.area;
      if (!look.brush) tell();
    };
    // The table beside the picture lists the fastest of what is shown, for readers who do not point.
    const tell = () => {
      const count = (number) => number.toLocaleString("en").replaceAll(",", "\u202f");
      const selected = look.area ? `, ${count(chosen.length)} selected` : "";
      status.textContent = `${count(shown.length)} of ${count(many)} strategies shown${selected}`;
      listed?.tBodies[0].replaceChildren(...chosen.slice(0, data.listed).map((point) => {
        const row = document.createElement("tr");
        row.append(
          element("td", words(point), { className: "wide" }),
          element("td", time(point), { className: "number" }),
          element("td", gigabytes(data.memory[point]), { className: "number" }),
          element("td", simulated(point) ? "simulated" : "bound"),
        );
        row.cells[1].dataset.value = data.time[point];
        row.cells[2].dataset.value = data.memory[point];
        if (listed.dataset.choose && point === BEST) row.append(element("td", "best"));
        else if (listed.dataset.choose) {
          const button = element("button", listed.dataset.choose, { type: "button", className: "chip" });
          button.setAttribute("aria-label", `${listed.dataset.choose} ${words(point)}`);
          button.addEventListener("click", () => choose(point));
          row.append(element("td", ""));
          row.cells[4].append(button);
        }
        return row;
      }));
    };

    const look = canvasWindow(figure, canvas, {
      whole: () => [...data.whole], least: (span) => span * 1e-3, height: () => HEIGHT, draw,
      gutterOf: (paper) => {
        paper.font = font;
        return paper.measureText(written(888.8e6)).width + 18;
      },
      tall: { whole: () => data.tall.map(scale), pixels: [HEIGHT - AXIS, TOP] },
    });
    const paper = look.paper;

    const nearest = (px, py) => {
      let [best, least] = [-1, NEAR ** 2];
      for (const point of shown) {
        const far = (placeX[point] - px) ** 2 + (placeY[point] - py) ** 2;
        if (far < least || (far === least && simulated(point))) [best, least] = [point, far];
      }
      return best;
    };
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const point = look.brush ? -1 : nearest(px, py);
      tip.hidden = point < 0;
      if (point < 0) return;
      const said = simulated(point) ? "simulated" : "bound: not simulated";
      tip.replaceChildren(
        element("b", words(point)),
        element("span", `${time(point)} (${said}), ${gigabytes(data.memory[point])}`),
      );
      look.putTip(tip, px, py);
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    // Pages that explain a strategy listen for it.
    const choose = (point) => figure.dispatchEvent(new CustomEvent("choose", { detail: { point, words: words(point) }, bubbles: true }));
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      const point = nearest(event.clientX - box.left, event.clientY - box.top);
      if (point > BEST && !look.area) choose(point);
    });
    for (const box of figure.querySelectorAll("input[type=checkbox]")) {
      const [column, value] = box.value.split(" ").map(Number);
      box.checked = !before?.off.has(nameOf(box)); // a browser may remember what a reader chose before
      if (!box.checked) off[column].add(value);
      box.addEventListener("change", () => {
        if (box.checked) off[column].delete(value);
        else off[column].add(value);
        draw();
      });
    }
    for (const radio of radios) {
      radio.addEventListener("change", () => {
        painted = Number(radio.value);
        draw();
      });
    }
    look.begin();
    return () => ({
      painted: radios.find((radio) => radio.checked)?.closest("label").textContent.trim(),
      off: new Set([...figure.querySelectorAll("input[type=checkbox]:not(:checked)")].map(nameOf)),
    });
  };
})();
document.querySelectorAll("figure.points").forEach((figure) => pointCloud(figure));
