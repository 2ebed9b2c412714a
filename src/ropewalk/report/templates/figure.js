// A figure in a box of the page: axes in margins as wide as their labels, marks inside, and a note at what is pointed at.
const figure = (() => {
  "use strict";
  const { node, label, stroke } = marks;
  const REACH = 40;
  const { widthOf, wrapped } = scales;

  // The axes of a layout by the names that traces use: x, x2, y, …
  const axesOf = (layout) =>
    Object.fromEntries(
      Object.entries(layout).filter(([key]) => /^[xy]axis\d*$/.test(key)).map(([key, axis]) => [key.replace("axis", ""), axis]),
    );
  const titleLines = (axis, width) => wrapped(axis.title.text ?? "", axis.title.font.size, width - 8);
  const margins = (layout, axes, ranges, width) => {
    const found = { left: layout.margin.l, right: layout.margin.r, top: layout.margin.t, bottom: 0 };
    for (const [name, axis] of Object.entries(axes)) {
      const size = axis.tickfont.size;
      const texts = axis.showticklabels === false ? [] : scales.ticksOf(axis, ranges[name]).map(([, text]) => text);
      const lines = name.startsWith("x") ? titleLines(axis, width).length : 1;
      const title = axis.title.text ? lines * (axis.title.font.size + 3) + 7 : 0;
      if (name.startsWith("x")) {
        if ((axis.domain ?? [0, 1])[1] === 1 && texts.length) found.right = Math.max(found.right, widthOf(texts.at(-1), size) / 2);
        found.bottom = Math.max(found.bottom, (texts.length ? size + 12 : 4) + title + 4);
      } else if ((layout[`${axis.anchor?.replace(/^(x)/, "$1axis") ?? "xaxis"}`]?.domain ?? [0])[0] === 0) {
        // Names of rows leave at least half of a narrow page to what they name.
        const widest = Math.min(Math.max(0, ...texts.map((text) => widthOf(text, size))), width * 0.45);
        found.left = Math.max(found.left, widest + 10 + title);
      }
    }
    return found;
  };

  // A name in as many lines of words as there is room for; lines that it has anyway stay apart, with their numbers.
  const linesOf = (text, size, wide, tall) => {
    const given = String(text).split("<br>").map((line, number) => [line, number]);
    const broken = given.flatMap(([line, number]) => {
      if (widthOf(line, size) <= wide) return [[line, number]];
      const [, bold] = /^<b>(.*)<\/b>$/.exec(line) ?? [];
      return wrapped(bold ?? line, size, wide).map((part) => [bold === undefined ? part : `<b>${part}</b>`, number]);
    });
    return broken.length * (size + 1) <= tall ? broken : given;
  };
  // A text that is at most so wide; what had to be cut off is in its title.
  const fitted = (paper, attributes, text, most) => {
    const made = label(paper, attributes, text);
    const whole = made.textContent;
    if (widthOf(whole, attributes["font-size"]) <= most) return;
    let kept = whole;
    while (kept.length > 1 && widthOf(`${kept}…`, attributes["font-size"]) > most) kept = kept.slice(0, -1);
    made.textContent = `${kept}…`;
    node(made, "title", {}, whole);
  };
  // Of labels that would run into each other every second is written, or every third, …; on a logarithmic axis those that fit.
  const writtenOf = (ticks, pixel, size, log) => {
    const apart = ([value, text], [before, said]) =>
      Math.abs(pixel(value) - pixel(before)) >= (widthOf(text, size) + widthOf(said, size)) / 2 + 6;
    if (log) return ticks.reduce((some, tick) => (some.length && !apart(tick, some.at(-1)) ? some : [...some, tick]), []);
    for (let step = 1; step < ticks.length; step++) {
      const some = ticks.filter((_, number) => number % step === 0);
      if (some.every((tick, number) => !number || apart(tick, some[number - 1]))) return some;
    }
    return ticks.slice(0, 1);
  };
  const drawAxis = (paper, name, axis, range, pixel, [first, last]) => {
    const upright = name.startsWith("y");
    const size = axis.tickfont.size;
    const ticks = scales.ticksOf(axis, range);
    const written = upright ? ticks : writtenOf(ticks, pixel, size, axis.type === "log");
    const apart = Math.min(...ticks.slice(1).map(([value], before) => Math.abs(pixel(value) - pixel(ticks[before][0]))));
    for (const tick of ticks) {
      const [value, text] = tick;
      const at = pixel(value);
      if (axis.showgrid !== false) {
        node(paper, "path", { d: upright ? `M${first},${at}H${last}` : `M${at},${first}V${last}`, stroke: axis.gridcolor, "stroke-width": 1 });
      }
      if (axis.showticklabels === false) continue;
      const look = { "font-size": size, fill: axis.tickfont.color };
      if (upright) {
        // Lines below the first are smaller and paler.
        const lines = linesOf(text, size, first - 10, apart);
        const high = Math.min(size + 3, Math.max(size + 1, apart / lines.length));
        lines.forEach(([line, number], place) => {
          const y = at + (place - (lines.length - 1) / 2) * high;
          const below = number ? { "font-size": size - 2, opacity: 0.75 } : {};
          fitted(paper, { ...look, ...below, x: first - 8, y, "text-anchor": "end", "dominant-baseline": "central" }, line, first - 10);
        });
        continue;
      }
      if (!written.includes(tick)) continue;
      label(paper, { ...look, x: at, y: last + size + 6, "text-anchor": "middle" }, text);
    }
  };
  const drawTitle = (paper, name, axis, box, bottom, width) => {
    if (!axis.title.text) return;
    const look = { "font-size": axis.title.font.size, fill: axis.title.font.color, "text-anchor": "middle" };
    const middle = [box.x + box.width / 2, box.y + box.height / 2];
    if (name.startsWith("x")) {
      const lines = titleLines(axis, width);
      lines.forEach((line, number) => {
        const half = widthOf(line, axis.title.font.size) / 2 + 2;
        const x = Math.max(half, Math.min(middle[0], width - half));
        label(paper, { ...look, x, y: bottom - 6 - (lines.length - 1 - number) * (axis.title.font.size + 3) }, line);
      });
    } else label(paper, { ...look, transform: `translate(${axis.title.font.size},${middle[1]}) rotate(-90)` }, axis.title.text);
  };

  // Where a pair of axes lies; cells that are to be square take what the shorter side leaves.
  const boxOf = (inner, x, y, ranges) => {
    const [left, right] = x.axis.domain ?? [0, 1];
    const [low, high] = y.axis.domain ?? [0, 1];
    const box = {
      x: inner.x + left * inner.width, width: (right - left) * inner.width,
      y: inner.y + (1 - high) * inner.height, height: (high - low) * inner.height,
    };
    if (!y.axis.scaleanchor) return box;
    const span = ([first, last]) => Math.abs(last - first);
    const unit = Math.min(box.width / span(ranges[x.name]), box.height / span(ranges[y.name]));
    const [wide, tall] = [unit * span(ranges[x.name]), unit * span(ranges[y.name])];
    return { x: box.x + (box.width - wide) / 2, width: wide, y: box.y + (box.height - tall) / 2, height: tall };
  };
  const drawShape = (paper, shape, { x, y, box, inner }) => {
    const px = (value) => (shape.xref === "paper" ? inner.x + value * inner.width : x(value));
    const py = (value) => (shape.yref === "paper" ? inner.y + (1 - value) * inner.height : y(value));
    const [x0, x1] = [px(shape.x0), px(shape.x1)].map((at) => Math.min(Math.max(at, box.x), box.x + box.width));
    const [y0, y1] = [py(shape.y0), py(shape.y1)];
    if (shape.type === "line") node(paper, "path", { d: `M${x0},${y0}L${x1},${y1}`, ...stroke(shape.line) });
    else node(paper, "rect", { x: x0, y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0), fill: shape.fillcolor, opacity: shape.opacity });
  };
  const drawNote = (paper, note, inner, boxes) => {
    const [, axis] = /^(x\d*) domain$/.exec(note.xref ?? "") ?? [];
    const across = axis ? boxes[axis] : inner;
    const anchor = { left: "start", right: "end" }[note.xanchor] ?? "middle";
    label(paper, {
      x: across.x + note.x * across.width, y: inner.y + (1 - note.y) * inner.height - (note.yshift ?? 0) - 3,
      "text-anchor": anchor, "font-size": note.font.size, fill: note.font.color,
    }, note.text);
  };

  let number = 0;
  // Draws the figure into `plot`; `ranges` replaces those of axes that were zoomed. Answers with what can be pointed at.
  const drawn = (plot, { data, layout }, zoomed) => {
    const [width, height] = [Math.max(160, plot.clientWidth), layout.height];
    const axes = axesOf(layout);
    const ranges = Object.fromEntries(Object.entries(axes).map(([name, axis]) => [name, zoomed[name] ?? axis.range]));
    const room = margins(layout, axes, ranges, width);
    for (const [name, axis] of Object.entries(axes)) {
      if (zoomed[name] || !name.startsWith("x")) continue;
      const [from, to] = axis.domain ?? [0, 1];
      const wide = [(to - from) * (width - room.left - room.right), to === 1 ? room.right : 0];
      const stacked = layout.barmode === "stack" ? marks.heights() : null;
      const end = marks.endWithTexts(data, name, axis.range, axis.type === "log", wide, stacked);
      if (end > axis.range[1]) axes[name] = { ...axis, range: [axis.range[0], end] };
      ranges[name] = axes[name].range;
    }
    const inner = { x: room.left, y: room.top, width: width - room.left - room.right, height: height - room.top - room.bottom };
    const svg = node(document.createDocumentFragment(), "svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const boxes = {};
    const world = (trace) => {
      const [x, y] = [trace.xaxis ?? "x", trace.yaxis ?? "y"].map((name) => ({ name, axis: axes[name] }));
      const box = boxOf(inner, x, y, ranges);
      const across = scales.scale(x.axis, ranges[x.name], box.x, box.x + box.width);
      const up = scales.scale(y.axis, ranges[y.name], box.y + box.height, box.y);
      [across.first, up.first] = [box.x, box.y + box.height];
      return { x: across, y: up, box, names: [x.name, y.name], inner };
    };
    const pairs = new Map(
      (data.length ? data : [{}]).map((trace) => [`${trace.xaxis ?? "x"} ${trace.yaxis ?? "y"}`, world(trace)]),
    );
    // Panels above each other may share an axis, which is then drawn below the last of them.
    const lowest = new Map();
    for (const one of pairs.values()) {
      const bottom = one.box.y + one.box.height;
      lowest.set(one.names[0], Math.max(lowest.get(one.names[0]) ?? 0, bottom));
    }
    const clips = new Map();
    for (const [key, one] of pairs) {
      const [across, up] = one.names;
      boxes[across] ??= one.box;
      const bottom = one.box.y + one.box.height;
      const below = bottom === lowest.get(across);
      drawAxis(svg, across, below ? axes[across] : { ...axes[across], showticklabels: false }, ranges[across], one.x, [one.box.y, bottom]);
      drawAxis(svg, up, axes[up], ranges[up], one.y, [one.box.x, one.box.x + one.box.width]);
      if (below) drawTitle(svg, across, axes[across], one.box, bottom === inner.y + inner.height ? height : bottom + room.bottom, width);
      drawTitle(svg, up, axes[up], one.box, height, width);
      const id = `clip-${number++}`;
      node(node(svg, "clipPath", { id }), "rect", one.box);
      clips.set(key, `url(#${id})`);
    }
    const first = pairs.values().next().value;
    const [under, over] = [true, false].map((below) => (layout.shapes ?? []).filter((shape) => (shape.layer === "below") === below));
    for (const shape of under) drawShape(svg, shape, first);
    const stacked = layout.barmode === "stack" ? marks.heights() : null;
    const targets = data.filter((trace) => trace.visible !== false).flatMap((trace) => {
      const key = `${trace.xaxis ?? "x"} ${trace.yaxis ?? "y"}`;
      return marks.draw[trace.type](svg, trace, { ...pairs.get(key), stacked, gap: layout.bargap ?? 0.2, clip: clips.get(key) });
    });
    for (const shape of over) drawShape(svg, shape, first);
    for (const note of layout.annotations ?? []) drawNote(svg, note, inner, boxes);
    plot.querySelector("svg")?.remove();
    plot.prepend(svg);
    const shown = targets.filter(({ at }) => at[0] >= first.box.x - 1 || pairs.size > 1);
    return { targets: shown, x: first.x, box: first.box, axis: axes.x, range: ranges.x };
  };

  // What lies under the pointer, or is nearest to it.
  const nearest = (targets, [px, py]) => {
    let [best, least] = [null, REACH ** 2];
    for (const one of targets) {
      const { box, at } = one;
      if (box && px >= box.x && px <= box.x + box.width && py >= box.y - 1 && py <= box.y + box.height + 1) [best, least] = [one, -1];
      if (least < 0 || box) continue;
      const far = (at[0] - px) ** 2 + (at[1] - py) ** 2;
      if (far < least) [best, least] = [one, far];
    }
    return best;
  };
  return { drawn, nearest };
})();
