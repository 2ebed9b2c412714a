(() => {
  "use strict";
  // Bars on a canvas: tens of thousands of them redraw while a reader zooms. Times are whole nanoseconds.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const SCALE = [1, 2, 5];
  const written = (time) => {
    const [size, unit] = UNITS.find(([least]) => Math.abs(time) >= least) ?? UNITS[3];
    return `${Number((time / size).toPrecision(4))}\u00a0${unit}`;
  };
  const light = (colour) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return 0.299 * red + 0.587 * green + 0.114 * blue > 150;
  };

  for (const figure of document.querySelectorAll("figure.timeline")) {
    const canvas = figure.querySelector("canvas");
    const tip = figure.querySelector(".tip");
    const data = JSON.parse(figure.querySelector("script").textContent);
    const { axis, row: rowHeight, gap } = data.pixels;
    const bars = data.start.length;
    const hidden = new Set();
    const tops = [];
    const lanes = [];
    let top = axis;
    for (const gpu of data.lanes) {
      const from = top;
      for (const stream of gpu.streams) {
        lanes.push({ name: stream.name, top, height: stream.rows * rowHeight });
        for (let row = 0; row < stream.rows; row++, top += rowHeight) tops.push(top);
      }
      lanes.push({ name: gpu.name, group: true, top: from, height: top - from });
      top += gap;
    }
    const height = top;
    let view = [0, data.span];
    let width = 0;
    let gutter = 0;
    let brush = null;
    const paper = canvas.getContext("2d");
    const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
    const bold = "600 " + font;
    const x = (time) => gutter + ((time - view[0]) / (view[1] - view[0])) * (width - gutter);
    const time = (at) => view[0] + ((at - gutter) / (width - gutter)) * (view[1] - view[0]);

    const measure = () => {
      const ratio = window.devicePixelRatio || 1;
      width = figure.clientWidth;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = height + "px";
      paper.setTransform(ratio, 0, 0, ratio, 0, 0);
      paper.font = bold;
      const names = Math.max(...lanes.filter((lane) => lane.group).map((lane) => paper.measureText(lane.name).width));
      paper.font = font;
      const streams = Math.max(...lanes.filter((lane) => !lane.group).map((lane) => paper.measureText(lane.name).width));
      gutter = Math.ceil(names + streams + 34);
    };

    const ticks = () => {
      const room = (view[1] - view[0]) / Math.max(2, Math.floor((width - gutter) / 110));
      const power = 10 ** Math.floor(Math.log10(room));
      const step = Math.max(1, SCALE.map((factor) => factor * power).find((size) => size >= room) ?? 10 * power);
      const found = [];
      for (let at = Math.ceil(view[0] / step) * step; at <= view[1]; at += step) found.push(at);
      return found;
    };

    const drawFrame = () => {
      const [ink, muted, grid] = [style("--ink"), style("--muted"), style("--grid")];
      paper.clearRect(0, 0, width, height);
      paper.textBaseline = "middle";
      paper.lineWidth = 1;
      for (const lane of lanes) {
        paper.font = lane.group ? bold : font;
        paper.fillStyle = lane.group ? ink : muted;
        paper.textAlign = lane.group ? "left" : "right";
        paper.fillText(lane.name, lane.group ? 0 : gutter - 12, lane.top + rowHeight / 2);
        if (!lane.group) continue;
        paper.fillStyle = grid;
        paper.fillRect(0, Math.round(lane.top + lane.height + gap / 2), width, 1);
      }
      paper.font = font;
      paper.textAlign = "center";
      for (const at of ticks()) {
        const place = x(at);
        paper.fillStyle = grid;
        paper.fillRect(Math.round(place), axis - 8, 1, height - axis + 8);
        const text = at === 0 ? "0" : written(at);
        const half = paper.measureText(text).width / 2;
        paper.fillStyle = muted;
        paper.fillText(text, Math.min(place, width - half), axis - 20);
      }
    };

    const drawBar = (left, wide, row, colour, alpha, critical, ink) => {
      const y = tops[row];
      paper.globalAlpha = alpha;
      paper.fillStyle = colour;
      paper.fillRect(left, y + 1, wide, rowHeight - 4);
      paper.globalAlpha = 1;
      if (!critical) return;
      paper.fillStyle = ink;
      paper.fillRect(left, y + rowHeight - 3, wide, 1.6);
    };

    const drawBars = () => {
      const shade = dark.matches ? 1 : 0;
      const ink = style("--ink");
      let drawn = 0;
      // Bars thinner than a pixel are gathered in its column: how much of it they cover is how dark it is.
      const columns = tops.map(() => null);
      const flush = (row) => {
        const column = columns[row];
        if (column) drawBar(column.at, 1, row, column.colour, Math.min(1, Math.max(0.3, column.cover)), column.critical, ink);
        columns[row] = null;
      };
      paper.save();
      paper.beginPath();
      paper.rect(gutter, 0, width - gutter, height);
      paper.clip();
      paper.textAlign = "left";
      for (let bar = 0; bar < bars; bar++) {
        const from = data.start[bar];
        const to = from + data.length[bar];
        if (to < view[0] || from > view[1] || hidden.has(data.look[bar])) continue;
        drawn++;
        const colour = data.looks[data.look[bar]][shade];
        const busy = data.busy[bar] / 100;
        const row = data.row[bar];
        const left = Math.max(x(from), gutter - 2);
        const wide = Math.min(x(to), width + 2) - left;
        if (wide < 1) {
          const at = Math.floor(left);
          if (columns[row]?.at !== at) flush(row);
          const column = (columns[row] ??= { at, cover: 0, widest: 0, colour, critical: false });
          column.cover += wide * busy;
          column.critical ||= Boolean(data.critical[bar]);
          if (wide > column.widest) [column.widest, column.colour] = [wide, colour];
          continue;
        }
        // A hair of paper between neighbours, where there is room for it.
        drawBar(left, wide - (wide > 3 ? 0.75 : 0), row, colour, Math.max(0.2, busy), data.critical[bar], ink);
        if (wide < 46) continue;
        const text = named(bar);
        if (paper.measureText(text).width > wide - 10) continue;
        paper.fillStyle = busy < 0.6 ? ink : light(colour) ? "#1d2129" : "#ffffff";
        paper.fillText(text, left + 5, tops[row] + rowHeight / 2 - 0.5);
      }
      tops.forEach((_, row) => flush(row));
      if (brush) {
        paper.globalAlpha = 0.14;
        paper.fillStyle = ink;
        paper.fillRect(Math.min(...brush), axis - 8, Math.abs(brush[1] - brush[0]), height - axis + 8);
      }
      paper.restore();
      canvas.dataset.drawn = String(drawn);
    };

    const named = (bar) =>
      data.count[bar] > 1 ? `${data.count[bar]} operations` : data.labels[data.label[bar]];
    const draw = () => {
      drawFrame();
      drawBars();
    };
    // While a pointer drags, one picture a frame is enough.
    let waiting = false;
    const redraw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        draw();
      });
    };

    const show = (from, to) => {
      const least = Math.max(data.span * 1e-6, 20);
      const length = Math.min(Math.max(to - from, least), data.span);
      const first = Math.min(Math.max((from + to - length) / 2, 0), data.span - length);
      view = [first, first + length];
      draw();
    };
    const zoom = (factor, at = (view[0] + view[1]) / 2) =>
      show(at - (at - view[0]) * factor, at + (view[1] - at) * factor);
    const move = (part) => {
      const by = Math.min(Math.max((view[1] - view[0]) * part, -view[0]), data.span - view[1]);
      show(view[0] + by, view[1] + by);
    };

    const under = (px, py) => {
      const row = tops.findIndex((y) => py >= y && py < y + rowHeight);
      if (row < 0 || px < gutter) return -1;
      const at = time(px);
      const near = ((view[1] - view[0]) / (width - gutter)) * 1.5;
      let best = -1;
      for (let bar = 0; bar < bars; bar++) {
        if (data.row[bar] !== row || hidden.has(data.look[bar])) continue;
        if (data.start[bar] - near > at || data.start[bar] + data.length[bar] + near < at) continue;
        if (best < 0 || data.length[bar] > data.length[best]) best = bar;
      }
      return best;
    };
    const explain = (event) => {
      const box = canvas.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const bar = brush ? -1 : under(px, py);
      tip.hidden = bar < 0;
      if (bar < 0) return;
      const [from, length] = [data.start[bar], data.length[bar]];
      const many = data.count[bar] > 1 ? `${data.count[bar]} operations, the longest: ` : "";
      tip.replaceChildren();
      const name = document.createElement("b");
      name.textContent = many + data.labels[data.label[bar]];
      const when = document.createElement("span");
      const gaps = data.count[bar] > 1 ? `, busy ${data.busy[bar]}\u00a0% of it` : "";
      when.textContent = `${written(from)} to ${written(from + length)}, ${written(length)} long${gaps}`;
      tip.append(name, when);
      if (data.critical[bar]) {
        const path = document.createElement("span");
        path.textContent = "on the critical path";
        tip.append(path);
      }
      const below = py + 18 + tip.offsetHeight < height || py < tip.offsetHeight + 18;
      tip.style.left = Math.max(0, Math.min(px + 14, width - tip.offsetWidth)) + "px";
      tip.style.top = canvas.offsetTop + (below ? py + 18 : py - tip.offsetHeight - 10) + "px";
    };

    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      const place = (moved) => Math.min(Math.max(moved.clientX - canvas.getBoundingClientRect().left, gutter), width);
      brush = [place(event), place(event)];
      canvas.setPointerCapture(event.pointerId);
      const drag = (moved) => {
        brush[1] = place(moved);
        redraw();
      };
      canvas.addEventListener("pointermove", drag);
      canvas.addEventListener("lostpointercapture", () => {
        canvas.removeEventListener("pointermove", drag);
        const [from, to] = [Math.min(...brush), Math.max(...brush)];
        brush = null;
        if (to - from > 4) show(time(from), time(to));
        else draw();
      }, { once: true });
    });
    canvas.addEventListener("pointermove", explain);
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("dblclick", () => show(0, data.span));
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(Math.exp(event.deltaY / 300), time(event.clientX - canvas.getBoundingClientRect().left));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        move((event.deltaX || event.deltaY) / 800);
      }
    }, { passive: false });
    const KEYS = {
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), Home: () => show(0, data.span),
    };
    canvas.addEventListener("keydown", (event) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    for (const button of figure.querySelectorAll("[data-key]")) {
      button.addEventListener("click", () => KEYS[button.dataset.key]());
    }
    for (const chip of figure.querySelectorAll("button[data-group]")) {
      chip.addEventListener("click", () => {
        const look = Number(chip.dataset.group);
        if (!hidden.delete(look)) hidden.add(look);
        chip.setAttribute("aria-pressed", String(!hidden.has(look)));
        draw();
      });
    }
    dark.addEventListener("change", draw);
    new ResizeObserver(() => {
      measure();
      draw();
    }).observe(figure);
    measure();
    draw();
  }
})();
