// Bars, lines, points, boxes and cells as SVG; each function answers with what can be pointed at.
const marks = (() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = { dash: "7 5", dot: "2 4", dashdot: "8 4 2 4", longdash: "12 6" };
  const PADDING = 5;

  const node = (parent, name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  // A text of one line, parts of it bold.
  const label = (parent, attributes, text) => {
    const made = node(parent, "text", attributes);
    for (const part of scales.pieces(text)[0] ?? []) node(made, "tspan", { "font-weight": part.bold ? 600 : undefined }, part.text);
    return made;
  };
  const of = (value, number) => (Array.isArray(value) ? value[number] : value);
  const stroke = (line = {}) => ({
    stroke: line.color, "stroke-width": line.width ?? 2, "stroke-dasharray": DASHES[line.dash], fill: "none", "stroke-linejoin": "round",
  });
  const target = (trace, number, shape) => {
    if (trace.hoverinfo === "skip" || !trace.hovertemplate) return [];
    const known = {
      customdata: of(trace.customdata, number), text: of(trace.text, number), x: of(trace.x, number), y: of(trace.y, number),
    };
    return [{ ...shape, text: scales.filled(trace.hovertemplate, known) }];
  };

  // Where stacked bars of earlier traces end, by place and sign.
  const heights = () => {
    const ends = new Map();
    return (axes, place, value) => {
      const key = `${axes} ${place} ${value < 0}`;
      const from = ends.get(key) ?? 0;
      ends.set(key, from + value);
      return from;
    };
  };
  const bars = (paper, trace, { x, y, stacked, gap, clip }) => {
    const across = trace.orientation === "h";
    const [places, values] = across ? [trace.y, trace.x] : [trace.x, trace.y];
    const [at, along] = across ? [y, x] : [x, y];
    const group = node(paper, "g", { "clip-path": clip });
    const texts = node(paper, "g", {});
    const targets = [];
    places.forEach((place, number) => {
      const value = values[number];
      if (value === null || value === undefined) return;
      const wide = of(trace.width, number) ?? 1 - gap;
      const from = trace.base ? of(trace.base, number) : stacked ? stacked(`${trace.xaxis} ${trace.yaxis}`, place, value) : 0;
      const sides = [at(place - wide / 2), at(place + wide / 2)].sort((a, b) => a - b);
      // A logarithmic axis has no zero: bars then begin at its near end.
      const low = along(from);
      const ends = [Number.isFinite(low) ? low : along.first, along(from + value)].sort((a, b) => a - b);
      const box = across
        ? { x: ends[0], y: sides[0], width: ends[1] - ends[0], height: sides[1] - sides[0] }
        : { x: sides[0], y: ends[0], width: sides[1] - sides[0], height: ends[1] - ends[0] };
      const edge = trace.marker?.line ?? {};
      node(group, "rect", {
        ...box, fill: of(trace.marker?.color, number), opacity: trace.marker?.opacity,
        rx: trace.marker?.cornerradius ? Math.min(trace.marker.cornerradius, box.width / 2, box.height / 2) : undefined,
        stroke: of(edge.width, number) ? of(edge.color, number) : undefined, "stroke-width": of(edge.width, number) || undefined,
      });
      written(texts, trace, number, box, across);
      targets.push(...target(trace, number, { box, at: [box.x + box.width / 2, box.y + box.height / 2] }));
    });
    return targets;
  };
  const written = (paper, trace, number, box, across) => {
    const text = of(trace.text, number);
    if (!text || !trace.textposition) return;
    const size = trace.textfont?.size ?? 12;
    const inside = trace.textposition === "inside";
    if (inside && String(text).length * size * 0.6 > box.width - 4) return;
    const middle = inside || !across;
    const made = label(paper, {
      x: middle ? box.x + box.width / 2 : box.x + box.width + PADDING,
      y: inside || across ? box.y + box.height / 2 : box.y - PADDING,
      "text-anchor": middle ? "middle" : "start", "dominant-baseline": inside || across ? "central" : "auto",
      "font-size": size, fill: of(trace.textfont?.color, number), class: inside ? undefined : "halo",
    }, text);
    if (!middle) keptInside(made);
  };
  // On narrow screens a text that would leave the figure ends at its edge, over the bar.
  const keptInside = (text) => {
    const room = Number(text.ownerSVGElement?.getAttribute("width"));
    const wide = scales.widthOf(text.textContent, text.getAttribute("font-size"));
    if (!room || Number(text.getAttribute("x")) + wide <= room) return;
    for (const [key, value] of Object.entries({ x: room - 2, "text-anchor": "end" })) text.setAttribute(key, value);
  };

  // The end of an axis that leaves room for what is written behind bars and points; `room` and what is `spare` beside it are pixels.
  const endWithTexts = (data, name, [low, high], log, [room, spare], stacked) => {
    const place = log ? Math.log10 : (value) => value;
    const isBar = (trace) => trace.type === "bar" && trace.orientation === "h";
    const written = (trace) => (isBar(trace) ? trace.textposition && trace.textposition !== "inside" : trace.mode?.includes("text"));
    const traces = data.filter((one) => (one.xaxis ?? "x") === name && one.visible !== false && (isBar(one) || written(one)));
    const ends = traces.flatMap((trace) => trace.y.map((at, number) => {
      const value = trace.x[number];
      if (value === null || value === undefined) return high;
      const bottom = () => (trace.base ? of(trace.base, number) : stacked ? stacked(`${trace.xaxis} ${trace.yaxis}`, at, value) : 0);
      const from = isBar(trace) ? bottom() : 0;
      const text = of(trace.text, number);
      if (!text || !written(trace)) return high;
      const most = room + spare - scales.widthOf(text, trace.textfont?.size ?? 12) - PADDING - 2;
      // A text that would leave less than a third for its bar is written over it.
      return most < room / 3 ? high : low + ((place(from + value) - low) * room) / most;
    }));
    return Math.max(high, ...ends.filter(Number.isFinite));
  };

  // Runs of points between gaps.
  const runs = (points) => points.reduce((found, point) => {
    if (point === null) found.push([]);
    else found.at(-1).push(point);
    return found;
  }, [[]]).filter((run) => run.length);
  const path = (run, steps) => run.map(([px, py], number) => {
    if (number === 0) return `M${px.toFixed(1)},${py.toFixed(1)}`;
    return steps ? `H${px.toFixed(1)}V${py.toFixed(1)}` : `L${px.toFixed(1)},${py.toFixed(1)}`;
  }).join("");
  const SYMBOLS = {
    circle: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
    diamond: (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0Z`,
    square: (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
    "line-ns": (r) => `M0,${-1.4 * r}V${1.4 * r}`,
  };
  const points = (paper, trace, { x, y, clip }) => {
    const mode = trace.mode ?? "lines";
    const places = trace.x.map((value, number) => {
      const other = trace.y[number];
      return value === null || other === null || other === undefined ? null : [x(value), y(other)];
    });
    const group = node(paper, "g", { "clip-path": trace.cliponaxis === false ? undefined : clip });
    if (trace.fill === "tozeroy" && trace.fillcolor !== "rgba(0,0,0,0)") {
      for (const run of runs(places)) {
        const ground = Number.isFinite(y(0)) ? y(0) : y.first;
        const area = `${path(run, trace.line?.shape === "hv")}V${ground}H${run[0][0]}Z`;
        node(group, "path", { d: area, fill: trace.fillcolor ?? trace.line?.color, "fill-opacity": trace.fillcolor ? undefined : 0.35 });
      }
    }
    if (trace.fill === "toself") {
      for (const run of runs(places)) node(group, "path", { d: `${path(run, false)}Z`, fill: trace.fillcolor, "fill-opacity": trace.opacity });
    }
    if (mode.includes("lines") && trace.line?.width !== 0) {
      for (const run of runs(places)) node(group, "path", { d: path(run, trace.line?.shape === "hv"), ...stroke(trace.line) });
    }
    const targets = [];
    places.forEach((place, number) => {
      if (place === null || !place.every(Number.isFinite)) return;
      if (mode.includes("markers")) point(group, trace.marker ?? {}, place, number);
      if (mode.includes("text")) {
        const beside = { x: place[0] + PADDING, y: place[1], "dominant-baseline": "central", "font-size": trace.textfont?.size ?? 12, class: "halo" };
        keptInside(label(group, { ...beside, fill: trace.textfont?.color }, of(trace.text, number)));
      }
      targets.push(...target(trace, number, { at: place }));
    });
    return targets;
  };
  const point = (paper, marker, [px, py], number) => {
    const [, name, open] = /^(.*?)(-open)?$/.exec(marker.symbol ?? "circle");
    const line = name === "line-ns" || Boolean(open);
    const colour = of(marker.color, number);
    node(paper, "path", {
      transform: `translate(${px.toFixed(1)},${py.toFixed(1)})`, d: SYMBOLS[name](of(marker.size ?? 6, number) / 2),
      fill: line ? "none" : colour, opacity: marker.opacity,
      stroke: (open ? colour : undefined) ?? marker.line?.color ?? (line ? colour : undefined),
      "stroke-width": marker.line?.width ?? (line ? 1.5 : undefined),
    });
  };

  // Five numbers of many, lying down.
  const boxes = (paper, trace, { x, y }) => {
    trace.y.forEach((place, number) => {
      const [least, low, middle, high, most] = ["lowerfence", "q1", "median", "q3", "upperfence"].map((key) => x(trace[key][number]));
      const sides = [y(place - trace.width / 2), y(place + trace.width / 2)].sort((a, b) => a - b);
      const look = { ...stroke(trace.line), fill: trace.fillcolor };
      const centre = (sides[0] + sides[1]) / 2;
      node(paper, "path", { d: `M${least},${centre}H${low}M${high},${centre}H${most}`, ...stroke(trace.line) });
      node(paper, "rect", { x: low, y: sides[0], width: high - low, height: sides[1] - sides[0], ...look });
      node(paper, "path", { d: `M${middle},${sides[0]}V${sides[1]}M${least},${centre - 6}v12M${most},${centre - 6}v12`, ...stroke(trace.line) });
    });
    return [];
  };

  const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const shade = (stops, part) => {
    const next = Math.max(1, stops.findIndex(([at]) => at >= part));
    const [[first, low], [last, high]] = [stops[next - 1], stops[next]];
    const weight = last > first ? (part - first) / (last - first) : 0;
    const [from, to] = [channels(low), channels(high)];
    return `rgb(${from.map((value, number) => Math.round(value + (to[number] - value) * weight)).join(",")})`;
  };
  const cells = (paper, trace, { x, y }) => {
    const targets = [];
    const group = node(paper, "g", { "shape-rendering": "crispEdges" });
    trace.z.forEach((row, down) => row.forEach((value, across) => {
      if (value === null) return;
      const [left, right] = [x(across - 0.5), x(across + 0.5)].sort((a, b) => a - b);
      const [top, bottom] = [y(down - 0.5), y(down + 0.5)].sort((a, b) => a - b);
      const box = { x: left, y: top, width: Math.max(0.5, right - left - trace.xgap), height: Math.max(0.5, bottom - top - trace.ygap) };
      node(group, "rect", { ...box, fill: shade(trace.colorscale, Math.min(1, (value - trace.zmin) / (trace.zmax - trace.zmin || 1))) });
      const text = scales.filled(trace.hovertemplate, { x: across, y: down, z: value });
      targets.push({ box, at: [left + box.width / 2, top + box.height / 2], text });
    }));
    return targets;
  };

  return { node, label, stroke, heights, endWithTexts, draw: { bar: bars, scatter: points, box: boxes, heatmap: cells } };
})();
