(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const swap = JSON.parse(document.getElementById("dark-of-light").textContent);
  // Figures carry light colours; on a dark page each is replaced by its partner.
  const tinted = (value) => {
    if (typeof value === "string") return dark.matches && Object.hasOwn(swap, value) ? swap[value] : value;
    if (Array.isArray(value)) return value.map(tinted);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, tinted(part)]));
  };
  for (const chart of document.querySelectorAll("figure.chart")) {
    const views = JSON.parse(document.getElementById(chart.dataset.chart + "-figures").textContent);
    const plot = charts.follow(document.getElementById(chart.dataset.chart));
    const hidden = new Set();
    let shown = 0;
    const made = () => {
      const { data, layout } = tinted(views[shown]);
      for (const trace of data) if (hidden.has(trace.legendgroup)) trace.visible = false;
      return { data, layout };
    };
    const choices = chart.querySelectorAll("[data-view]");
    // A legend names what is drawn: of several figures, that of the one that is shown.
    const name = () => {
      const drawn = new Set(views[shown].data.map((trace) => trace.legendgroup));
      for (const chip of chart.querySelectorAll("button[data-group]")) chip.hidden = !drawn.has(chip.dataset.group);
    };
    for (const button of choices) {
      button.addEventListener("click", () => {
        shown = Number(button.dataset.view);
        for (const other of choices) other.setAttribute("aria-pressed", String(other === button));
        name();
        plot.show(made, true);
      });
    }
    for (const chip of chart.querySelectorAll("button[data-group]")) {
      chip.addEventListener("click", () => {
        const group = chip.dataset.group;
        if (!hidden.delete(group)) hidden.add(group);
        chip.setAttribute("aria-pressed", String(!hidden.has(group)));
        plot.show(made);
      });
    }
    if (views.length > 1) name();
    plot.show(made);
  }
})();
