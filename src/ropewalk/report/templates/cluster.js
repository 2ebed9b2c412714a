(() => {
  "use strict";
  // Jobs as rectangles over time: bands are leafs with their GPUs, then spines with their links. Times are seconds.
{% include "canvas_window.js" %}
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000];
  const written = (time) => {
    const [size, unit] = UNITS.find(([least]) => time >= 2 * least || (time >= least && time % least === 0)) ?? UNITS[3];
    return `${Number((time / size).toPrecision(4))}\u00a0${unit}`;
  };
  for (const figure of document.querySelectorAll("figure.cluster-map")) {
    const canvas = figure.querySelector("canvas");
    const tip = figure.querySelector(".tip");
    const { views, palette, axis } = JSON.parse(figure.querySelector("script").textContent);
    // A job holds the same places of bands that follow each other: a rectangle each.
    for (const view of views) {
      view.rect = view.held.flatMap(([start, end, job, ...places]) => {
        const found = [];
        for (let at = 0; at < places.length; at += 4) {
          const [first, bands, low, high] = places.slice(at, at + 4);
          for (let band = first; band < first + bands; band++) found.push([band, low, high, start, end, job]);
        }
        return found;
      });
    }
    let data = views[0];
    let marked = -1;
    const SPACE = 20;
    const top = (band) => axis + band * data.pixels + (band >= data.leafs ? SPACE : 0);
    const gutterOf = (paper) => {
      paper.font = font;
      return Math.max(0, ...data.bands.map((name) => paper.measureText(name).width)) + 14;
    };
    const frame = () => {
      const [muted, panel] = [style("--muted"), style("--panel")];
      paper.clearRect(0, 0, look.width, data.height);
      paper.font = font;
      paper.textBaseline = "middle";
      // Names of bands lower than a line of text would cover each other: every second, third … is written.
      const each = Math.ceil(13 / data.pixels);
      data.bands.forEach((name, band) => {
        paper.fillStyle = panel;
        paper.fillRect(look.gutter, top(band) + 0.5, look.width - look.gutter, data.pixels - 1);
        if ((band < data.leafs ? band : band - data.leafs) % each) return;
        paper.fillStyle = muted;
        paper.textAlign = "right";
        paper.fillText(name, look.gutter - 8, top(band) + data.pixels / 2);
      });
      const room = look.room();
      const wide = STEPS.findIndex((size) => size >= room);
      const marks = (size) => Math.floor(look.view[1] / size) - Math.ceil(look.view[0] / size) + 1;
      // One mark says little about time: a shorter step has room for two where labels are narrow.
      const step = STEPS[wide > 0 && marks(STEPS[wide]) < 2 ? wide - 1 : wide] ?? room;
      paper.textAlign = "center";
      for (let at = Math.ceil(look.view[0] / step) * step; at <= look.view[1]; at += step) {
        look.drawMark(at === 0 ? "0" : written(at), at, axis, data.height - 8);
      }
    };
    const draw = () => {
      frame();
      const shade = dark.matches ? 1 : 0;
      let drawn = 0;
      paper.save();
      paper.beginPath();
      paper.rect(look.gutter, 0, look.width - look.gutter, data.height);
      paper.clip();
      for (const [band, low, high, start, end, job] of data.rect) {
        if (end < look.view[0] || start > look.view[1]) continue;
        const left = look.x(start);
        const wide = Math.max(look.x(end) - left, 0.5);
        const unit = (data.pixels - 1) / data.sizes[band];
        paper.globalAlpha = marked >= 0 && marked !== job ? 0.22 : 0.92;
        paper.fillStyle = palette[data.looks[job]][shade];
        const tall = (high - low) * unit;
        paper.fillRect(left, top(band) + 0.5 + low * unit, wide - (wide > 3 ? 0.6 : 0), tall - (tall > 4 ? 0.6 : 0));
        drawn++;
      }
      paper.globalAlpha = 1;
      look.drawBrush(axis, data.height - 8);
      paper.restore();
      canvas.dataset.drawn = String(drawn);
    };
    const look = canvasWindow(figure, canvas, {
      whole: () => [...data.span], least: (span) => span * 1e-5, height: () => data.height, gutterOf, draw,
    });
    const paper = look.paper;
    const under = (px, py) => {
      if (px < look.gutter) return -1;
      const at = look.at(px);
      const near = look.near();
      for (const [band, low, high, start, end, job] of data.rect) {
        const unit = (data.pixels - 1) / data.sizes[band];
        const y = top(band) + 0.5;
        if (py < y + low * unit || py >= y + high * unit || at < start - near || at > end + near) continue;
        return job;
      }
      return -1;
    };
    canvas.addEventListener("pointermove", (event) => {
      if (look.brush) return;
      const box = canvas.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const job = under(px, py);
      if (job !== marked) {
        marked = job;
        look.redraw();
      }
      tip.hidden = job < 0;
      if (job < 0) return;
      tip.textContent = data.jobs[job];
      look.putTip(tip, px, py);
    });
    canvas.addEventListener("pointerleave", () => {
      tip.hidden = true;
      marked = -1;
      look.redraw();
    });
    const choices = figure.querySelectorAll("[data-view]");
    for (const button of choices) {
      button.addEventListener("click", () => {
        data = views[Number(button.dataset.view)];
        marked = -1;
        for (const other of choices) other.setAttribute("aria-pressed", String(other === button));
        look.begin();
      });
    }
    look.begin();
  }
})();
