// Numbers, ticks and axes of figures. A figure is a dictionary of traces and a layout; `axis.py` writes both.
const scales = (() => {
  "use strict";
  const INFINITE = "∞";

  // 1.25e9 -> "1.25G", to so many significant digits.
  const prefixed = (value, digits) => {
    if (value === 0) return "0";
    const power = Math.max(-8, Math.min(8, Math.floor(Math.log10(Math.abs(value)) / 3)));
    return Number((value / 1000 ** power).toPrecision(digits)) + ["y", "z", "a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E", "Z", "Y"][power + 8];
  };
  // The few formats that figures use: ",d" ",.0f" ".4g" ".0%" ".4s".
  const formatted = (value, format = "") => {
    if (!Number.isFinite(value)) return value > 0 ? INFINITE : String(value);
    const [, comma, digits, kind] = /^(,?)(?:\.(\d+))?~?([dfgs%]?)$/.exec(format) ?? [];
    if (kind === "s") return prefixed(value, Number(digits ?? 6));
    if (kind === "g" || !kind) return String(Number(value.toPrecision(Number(digits ?? 6)))).replace("-", "−");
    const places = kind === "d" ? 0 : Number(digits ?? 6);
    const digitsOf = { minimumFractionDigits: places, maximumFractionDigits: places, useGrouping: Boolean(comma) };
    return (kind === "%" ? value * 100 : value).toLocaleString("en-US", digitsOf) + (kind === "%" ? "%" : "");
  };

  // Multiples of 1, 2 or 5 within a range.
  const roundTicks = ([low, high], most) => {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
    const ticks = [];
    for (let number = Math.ceil(low / step - 1e-9); number * step <= high + step * 1e-9; number++) {
      ticks.push(Number((number * step).toPrecision(12)));
    }
    return ticks;
  };
  const ticksOf = (axis, range) => {
    const inside = (value) => {
      const at = axis.type === "log" ? Math.log10(value) : value;
      return at >= Math.min(...range) - 1e-9 && at <= Math.max(...range) + 1e-9;
    };
    if (axis.tickvals && range === axis.range) {
      const texts = axis.ticktext ?? axis.tickvals.map((value) => formatted(value, axis.tickformat));
      return axis.tickvals.map((value, number) => [value, texts[number]]).filter(([value]) => inside(value));
    }
    const span = range[0] < range[1] ? range : [range[1], range[0]];
    return roundTicks(span, axis.nticks ?? 6).map((value) => [value, formatted(value, axis.tickformat) + (axis.ticksuffix ?? "")]);
  };

  // Pixels of a value on an axis whose ends are the pixels of `range`.
  const scale = (axis, range, first, last) => {
    const [low, high] = range;
    const place = axis.type === "log" ? (value) => Math.log10(value) : (value) => value;
    const pixel = (value) => first + ((place(value) - low) / (high - low)) * (last - first);
    pixel.value = (at) => {
      const found = low + ((at - first) / (last - first)) * (high - low);
      return axis.type === "log" ? 10 ** found : found;
    };
    return pixel;
  };

  // Labels may be bold and have several lines; signs that mean something to HTML are written as entities.
  const ENTITIES = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#x27;": "'", "&#39;": "'" };
  const decoded = (text) => text.replace(/&(?:lt|gt|amp|quot|#x27|#39);/g, (entity) => ENTITIES[entity]);
  const pieces = (text) =>
    String(text).split("<br>").map((line) =>
      line.split(/(<b>.*?<\/b>)/).filter(Boolean).map((part) => {
        const bold = /^<b>(.*)<\/b>$/.exec(part);
        return { bold: Boolean(bold), text: decoded(bold ? bold[1] : part) };
      }),
    );
  // What is shown of a mark: %{customdata}, %{x:.4g} and their like.
  const filled = (template, known) =>
    template.replace(/<extra>.*?<\/extra>/, "").replace(/%\{(\w+)(?::([^}]*))?\}/g, (_, name, format) => {
      const value = known[name];
      return typeof value === "number" ? formatted(value, format) : String(value ?? "");
    });

  const pen = document.createElement("canvas").getContext("2d");
  const widthOf = (text, size) => {
    pen.font = `${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif`;
    return Math.max(0, ...pieces(text).map((line) => pen.measureText(line.map((part) => part.text).join("")).width));
  };
  // Words in lines that are at most so wide.
  const wrapped = (text, size, most) =>
    text.split(" ").reduce((lines, word) => {
      const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
      if (lines.length && widthOf(longer, size) > most) lines.push(word);
      else lines.splice(-1, 1, longer);
      return lines;
    }, []);

  return { formatted, ticksOf, scale, pieces, filled, widthOf, wrapped };
})();
