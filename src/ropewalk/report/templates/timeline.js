(() => {
  "use strict";
  // Bars on a canvas: tens of thousands of them redraw while a reader zooms. Times are whole nanoseconds.
{% include "canvas_window.js" %}
{% include "durations.js" %}
  const light = (colour) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return 0.299 * red + 0.587 * green + 0.114 * blue > 150;
  };

  for (const figure of document.querySelectorAll("figure.timeline")) {
    const canvas = figure.querySelector("canvas");
    const tip = figure.querySelector(".tip");
    const data = JSON.parse(figure.querySelector("script").textContent);
    const { axis, row: rowHeight, gap } = data.pixels;
    for (const [name, runs] of Object.entries(data.runs)) {
      data[name] = runs.flatMap((value, at) => (at % 2 ? [] : Array(runs[at + 1]).fill(value)));
    }
    let begin = 0;
    data.start = data.steps.map((step) => (begin += step));
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
      lanes.push({ name: gpu.name, remark: gpu.streams.length > 1 ? gpu.remark : "", group: true, top: from, height: top - from });
      top += gap;
    }
    const height = top;
    const bold = "600 " + font;
    const gutterOf = (paper) => {
      paper.font = bold;
      const names = Math.max(...lanes.filter((lane) => lane.group).map((lane) => paper.measureText(lane.name).width));
      paper.font = font;
      const remarks = Math.max(...lanes.map((lane) => (lane.remark ? paper.measureText(lane.remark).width : 0)));
      const streams = Math.max(...lanes.filter((lane) => !lane.group).map((lane) => paper.measureText(lane.name).width));
      return Math.max(names, remarks) + streams + 34;
    };

    const ticks = () => {
      const step = Math.max(1, roundStep(look.room()));
      const found = [];
      for (let at = Math.ceil(look.view[0] / step) * step; at <= look.view[1]; at += step) found.push(at);
      return found;
    };

    const drawFrame = () => {
      const [ink, muted, grid] = [style("--ink"), style("--muted"), style("--grid")];
      paper.clearRect(0, 0, look.width, height);
      paper.textBaseline = "middle";
      paper.lineWidth = 1;
      for (const lane of lanes) {
        paper.font = lane.group ? bold : font;
        paper.fillStyle = lane.group ? ink : muted;
        paper.textAlign = lane.group ? "left" : "right";
        paper.fillText(lane.name, lane.group ? 0 : look.gutter - 12, lane.top + rowHeight / 2);
        if (!lane.group) continue;
        if (lane.remark) {
          paper.font = font;
          paper.fillStyle = muted;
          paper.fillText(lane.remark, 0, lane.top + 1.5 * rowHeight);
        }
        paper.fillStyle = grid;
        paper.fillRect(0, Math.round(lane.top + lane.height + gap / 2), look.width, 1);
      }
      paper.font = font;
      paper.textAlign = "center";
      for (const at of ticks()) look.drawMark(at === 0 ? "0" : written(at), at, axis, height);
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
      paper.rect(look.gutter, 0, look.width - look.gutter, height);
      paper.clip();
      paper.textAlign = "left";
      for (let bar = 0; bar < bars; bar++) {
        const from = data.start[bar];
        const to = from + data.length[bar];
        if (to < look.view[0] || from > look.view[1] || hidden.has(data.look[bar])) continue;
        drawn++;
        const colour = data.looks[data.look[bar]][shade];
        const busy = data.busy[bar] / 100;
        const row = data.row[bar];
        const left = Math.max(look.x(from), look.gutter - 2);
        const wide = Math.min(look.x(to), look.width + 2) - left;
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
      look.drawBrush(axis, height);
      paper.restore();
      canvas.dataset.drawn = String(drawn);
    };

    const named = (bar) =>
      data.count[bar] > 1 ? `${data.count[bar]} operations` : data.labels[data.label[bar]];
    const draw = () => {
      drawFrame();
      drawBars();
    };
    const look = canvasWindow(figure, canvas, {
      whole: () => [0, data.span], least: (span) => Math.max(span * 1e-6, 20), height: () => height, gutterOf, draw,
    });
    const paper = look.paper;

    const under = (px, py) => {
      const row = tops.findIndex((y) => py >= y && py < y + rowHeight);
      if (row < 0 || px < look.gutter) return -1;
      const at = look.at(px);
      const near = look.near();
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
      const bar = look.brush ? -1 : under(px, py);
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
      look.putTip(tip, px, py);
    };

    canvas.addEventListener("pointermove", explain);
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    for (const chip of figure.querySelectorAll("button[data-group]")) {
      chip.addEventListener("click", () => {
        const look = Number(chip.dataset.group);
        if (!hidden.delete(look)) hidden.add(look);
        chip.setAttribute("aria-pressed", String(!hidden.has(look)));
        draw();
      });
    }
    look.begin();
  }
})();
