(() => {
  "use strict";
  // Jobs as rectangles over time: bands are leafs with their GPUs, then spines with their links. Times are seconds.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000];
  const written = (time) => {
    const [size, unit] = UNITS.find(([least]) => Math.abs(time) >= 2 * least) ?? UNITS[3];
    return `${Number((time / size).toPrecision(4))}\u00a0${unit}`;
  };
  for (const figure of document.querySelectorAll("figure.cluster-map")) {
    const canvas = figure.querySelector("canvas");
    const tip = figure.querySelector(".tip");
    const { views, palette, axis } = JSON.parse(figure.querySelector("script").textContent);
    const paper = canvas.getContext("2d");
    const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
    let data = views[0];
    let view = [...data.span];
    let width = 0;
    let gutter = 0;
    let brush = null;
    let marked = -1;
    const SPACE = 20;
    const top = (band) => axis + band * data.pixels + (band >= data.leafs ? SPACE : 0);
    const x = (time) => gutter + ((time - view[0]) / (view[1] - view[0])) * (width - gutter);
    const time = (at) => view[0] + ((at - gutter) / (width - gutter)) * (view[1] - view[0]);
    const measure = () => {
      const ratio = window.devicePixelRatio || 1;
      width = figure.clientWidth;
      canvas.style.height = data.height + "px";
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(data.height * ratio);
      paper.setTransform(ratio, 0, 0, ratio, 0, 0);
      paper.font = font;
      gutter = Math.ceil(Math.max(0, ...data.bands.map((name) => paper.measureText(name).width)) + 14);
    };
    const frame = () => {
      const [muted, grid, panel] = [style("--muted"), style("--grid"), style("--panel")];
      paper.clearRect(0, 0, width, data.height);
      paper.font = font;
      paper.textBaseline = "middle";
      // Names of bands lower than a line of text would cover each other: every second, third … is written.
      const each = Math.ceil(13 / data.pixels);
      data.bands.forEach((name, band) => {
        paper.fillStyle = panel;
        paper.fillRect(gutter, top(band) + 0.5, width - gutter, data.pixels - 1);
        if ((band < data.leafs ? band : band - data.leafs) % each) return;
        paper.fillStyle = muted;
        paper.textAlign = "right";
        paper.fillText(name, gutter - 8, top(band) + data.pixels / 2);
      });
      const room = (view[1] - view[0]) / Math.max(2, Math.floor((width - gutter) / 110));
      const step = STEPS.find((size) => size >= room) ?? room;
      paper.textAlign = "center";
      for (let at = Math.ceil(view[0] / step) * step; at <= view[1]; at += step) {
        paper.fillStyle = grid;
        paper.fillRect(Math.round(x(at)), axis - 8, 1, data.height - axis);
        paper.fillStyle = muted;
        const text = at === 0 ? "0" : written(at);
        const half = paper.measureText(text).width / 2;
        paper.fillText(text, Math.min(x(at), width - half), axis - 20);
      }
    };
    const draw = () => {
      frame();
      const shade = dark.matches ? 1 : 0;
      let drawn = 0;
      paper.save();
      paper.beginPath();
      paper.rect(gutter, 0, width - gutter, data.height);
      paper.clip();
      for (const [band, low, high, start, end, job] of data.rect) {
        if (end < view[0] || start > view[1]) continue;
        const left = x(start);
        const wide = Math.max(x(end) - left, 0.5);
        const unit = (data.pixels - 1) / data.sizes[band];
        paper.globalAlpha = marked >= 0 && marked !== job ? 0.22 : 0.92;
        paper.fillStyle = palette[data.looks[job]][shade];
        const tall = (high - low) * unit;
        paper.fillRect(left, top(band) + 0.5 + low * unit, wide - (wide > 3 ? 0.6 : 0), tall - (tall > 4 ? 0.6 : 0));
        drawn++;
      }
      paper.globalAlpha = 1;
      if (brush) {
        paper.globalAlpha = 0.14;
        paper.fillStyle = style("--ink");
        paper.fillRect(Math.min(...brush), axis - 8, Math.abs(brush[1] - brush[0]), data.height - axis);
      }
      paper.restore();
      paper.globalAlpha = 1;
      canvas.dataset.drawn = String(drawn);
    };
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
      const [first, last] = data.span;
      const length = Math.min(Math.max(to - from, (last - first) * 1e-5), last - first);
      const begin = Math.min(Math.max(from, first), last - length);
      view = [begin, begin + length];
      draw();
    };
    const under = (px, py) => {
      if (px < gutter) return -1;
      const at = time(px);
      const near = ((view[1] - view[0]) / (width - gutter)) * 1.5;
      for (const [band, low, high, start, end, job] of data.rect) {
        const unit = (data.pixels - 1) / data.sizes[band];
        const y = top(band) + 0.5;
        if (py < y + low * unit || py >= y + high * unit || at < start - near || at > end + near) continue;
        return job;
      }
      return -1;
    };
    canvas.addEventListener("pointermove", (event) => {
      if (brush) return;
      const box = canvas.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const job = under(px, py);
      if (job !== marked) {
        marked = job;
        redraw();
      }
      tip.hidden = job < 0;
      if (job < 0) return;
      tip.textContent = data.jobs[job];
      tip.style.left = Math.max(0, Math.min(px + 14, width - tip.offsetWidth)) + "px";
      tip.style.top = canvas.offsetTop + py + 18 + "px";
    });
    canvas.addEventListener("pointerleave", () => {
      tip.hidden = true;
      marked = -1;
      redraw();
    });
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
        else redraw();
      }, { once: true });
    });
    canvas.addEventListener("dblclick", () => show(...data.span));
    const zoom = (factor) => {
      const middle = (view[0] + view[1]) / 2;
      show(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
    };
    const KEYS = {
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), Home: () => show(...data.span),
      ArrowLeft: () => show(view[0] - 0.2 * (view[1] - view[0]), view[1] - 0.2 * (view[1] - view[0])),
      ArrowRight: () => show(view[0] + 0.2 * (view[1] - view[0]), view[1] + 0.2 * (view[1] - view[0])),
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
    const choices = figure.querySelectorAll("[data-view]");
    for (const button of choices) {
      button.addEventListener("click", () => {
        data = views[Number(button.dataset.view)];
        view = [...data.span];
        marked = -1;
        for (const other of choices) other.setAttribute("aria-pressed", String(other === button));
        measure();
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
