// The candidates of an estimate: the picture of them, and why one of them is not the answer.
const candidates = (() => {
  "use strict";
  const { at } = ui;
  const state = { found: null, chosen: null, question: null, turn: 0 };
  const parts = charts.follow(at("why-parts"));
  const COLOURS = ["#2a78d6", "#e4772b", "#868d99"];

  // A strategy with nothing left open, as `ropewalk plan --explain` reads it.
  const exactly = (point) => {
    const { columns } = state.found.estimate.candidates;
    const label = (title) => {
      const column = columns.find((one) => one.title === title);
      return column?.labels[column.at[point]];
    };
    const words = columns.map((column) => column.words[column.at[point]]).filter(Boolean);
    const silent = [label("Sequence") === "off" && "sp 0", label("ZeRO") === "0" && "zero 0", label("Recomputation") === "none" && "none"];
    return [...words, ...silent.filter(Boolean)].join(", ");
  };
  const close = () => {
    state.turn += 1;
    at("why").hidden = true;
  };
  const say = (sentences) => at("why-said").replaceChildren(...sentences.map((text) => Object.assign(document.createElement("p"), { textContent: text })));

  // The step of an average GPU, part by part: the best above, the other below.
  const draw = (explained) => {
    const names = ["best", "this one"];
    const total = Math.max(...["best_s", "other_s"].map((key) => explained.parts.reduce((sum, part) => sum + part[key], 0)));
    const [factor, unit] = total < 1 ? [1e3, "ms"] : [1, "s"];
    at("why-legend").replaceChildren(...explained.parts.map((part, number) => {
      const chip = document.createElement("span");
      const swatch = document.createElement("i");
      chip.className = "chip";
      swatch.className = "bar";
      swatch.style.setProperty("--light", COLOURS[number]);
      swatch.style.setProperty("--dark", dark(COLOURS[number]));
      chip.append(swatch, part.name);
      return chip;
    }));
    parts.show(() => ui.tinted({
      data: explained.parts.map((part, number) => ({
        type: "bar", orientation: "h", y: [0, 1], x: [part.best_s * factor, part.other_s * factor], marker: { color: COLOURS[number] },
        hovertemplate: "%{customdata}<extra></extra>",
        customdata: [part.best_s, part.other_s].map((value, row) => `<b>${names[row]}</b><br>${ui.escaped(part.name)}: ${ui.seconds(value)}`),
      })),
      layout: {
        height: 150, barmode: "stack", bargap: 0.35, margin: { l: 8, r: 12, t: 8, b: 48 },
        xaxis: ui.axis(`step of an average GPU, ${unit}`, [0, total * factor * 1.03]),
        yaxis: ui.axis("", [1.6, -0.6], { tickvals: [0, 1], ticktext: names, showgrid: false }),
      },
    }));
    at("why-parts").setAttribute("aria-label", explained.parts.map((part) => `${part.name}: best ${ui.seconds(part.best_s)}, this one ${ui.seconds(part.other_s)}`).join("; "));
  };
  const dark = (colour) => JSON.parse(at("dark-of-light").textContent)[colour] ?? colour;

  const why = async (point, words) => {
    const turn = ++state.turn;
    const asked = state.question();
    at("why").hidden = false;
    at("why").setAttribute("aria-busy", "true");
    at("why-asked").textContent = `Why not ${words}?`;
    say(["Simulating both …"]);
    at("why-parts").closest("figure").hidden = true;
    at("why").scrollIntoView({ block: "nearest" });
    at("why-asked").focus({ preventScroll: true });
    try {
      const found = await ui.ask("/v1/ui/estimates", { ...asked, values: { ...asked.values, explain: [exactly(point)] } });
      if (turn !== state.turn) return;
      const [explained] = found.estimate.explained;
      say(explained.sentences);
      state.command = found.command_line;
      at("why-parts").closest("figure").hidden = !explained.parts.length;
      if (explained.parts.length) draw(explained);
    } catch (problem) {
      if (turn === state.turn && problem.code !== "conflict") say([problem.message]);
    }
    at("why").removeAttribute("aria-busy");
  };

  // The estimate has changed: the same filters and colours, other points.
  const show = (found, question) => {
    const before = state.chosen?.();
    Object.assign(state, { found, question });
    close();
    at("cloud").innerHTML = found.cloud; // rendered and escaped by the server, as pages of commands are
    state.chosen = pointCloud(at("cloud").querySelector("figure.points"), before);
  };
  at("cloud").addEventListener("choose", (event) => why(event.detail.point, event.detail.words));
  at("why-close").addEventListener("click", () => {
    close();
    at("cloud").querySelector("canvas")?.focus();
  });
  at("why-copy").addEventListener("click", (event) => ui.copied(event.target, state.command ?? ""));
  return { show };
})();
