// Who holds what: a row per leaf with its servers and its cables to spines; with three tiers, a row per spine with its cables to cores.
// With three tiers a switch has cables to those of its own pod or lane alone: only these have a place.
const map = (() => {
  "use strict";
  const { at } = ui;
  const COLOURS = ["#2b77d5", "#1ba673", "#e09900", "#d93f3e", "#7b52c7", "#d4619b", "#8a6d3b", "#0f8a8a", "#b5541c", "#4b3aa8"];
  const colour = (id) => ui.tinted(COLOURS[(Number(id.slice(1)) - 1) % COLOURS.length]); // ids are numbered: neighbours differ
  const HEAT = [0, 0.5, 1, 1.5, 2];
  let [shown, byLoad] = [null, false];

  const cell = (name, title) => Object.assign(document.createElement("i"), { className: name, title });
  const named = (job) => job.name || job.id;
  const server = (title, held, size) => {
    const made = cell("server", title);
    let from = 0;
    const stops = held.flatMap(([job, count]) => {
      const [first, last] = [(100 * from) / size, (100 * (from += count)) / size];
      return [`${colour(job.id)} ${first}% ${last}%`];
    });
    if (stops.length) made.style.background = `linear-gradient(90deg, ${stops.join(", ")}, var(--idle) ${(100 * from) / size}%)`;
    return made;
  };
  // How full a link is, in five steps; the last two are more than it carries.
  const heat = (load) => HEAT.findLastIndex((least) => load > least || (load === 0 && least === 0)) + (load > 0 ? 1 : 0);
  const cable = (below, above, count, job, load) => {
    if (!count) return cell("link none", `${below} has no cable to ${above}`);
    const held = job ? named(job) : "of no job alone";
    const made = cell("link", `${below} to ${above}: ${held}; ${Math.round(load * 100)} % of its bandwidth if everybody sends`);
    if (byLoad) made.style.background = load ? `var(--heat${Math.min(5, heat(load))})` : "var(--idle)";
    else if (job) made.style.background = colour(job.id);
    return made;
  };
  const row = (name) => {
    const [made, label] = [document.createElement("div"), document.createElement("span")];
    label.textContent = label.title = name;
    made.append(label);
    return made;
  };
  const head = (parts) => {
    const made = row("");
    made.className = "head";
    for (const [text, width] of parts) made.append(Object.assign(document.createElement("em"), { textContent: text, style: `width:${width}px` }));
    return made;
  };
  const draw = () => {
    const found = shown;
    const [gpus, links, cores] = [new Map(), new Map(), new Map()];
    for (const job of found.jobs) {
      for (const [leaf, place, count] of job.gpus_at) gpus.set(`${leaf} ${place}`, [...(gpus.get(`${leaf} ${place}`) ?? []), [job, count]]);
      for (const [leaf, spine] of job.links) links.set(`${leaf} ${spine}`, job);
      for (const [spine, core] of job.core_links) cores.set(`${spine} ${core}`, job);
    }
    const out = new Set([...found.out_of_service.drained, ...found.out_of_service.failed]);
    const marked = (made, ...parts) => {
      if (parts.some((part) => out.has(part))) made.classList.add("out");
      return made;
    };
    const widest = Math.max(0, ...found.servers.map((servers) => servers.length));
    // With two tiers a column is a spine; optical switches may be all that leafs have fibres to.
    const reached = found.spines.map((_, place) => !found.cores.length && found.cables.some((counts) => counts[place]));
    const rows = found.leafs.map((leaf, number) => {
      const made = row(leaf);
      found.servers[number].forEach((name, place) => {
        const held = gpus.get(`${number} ${place}`) ?? [];
        const said = held.map(([job, count]) => `${named(job)}: ${count} GPUs`).join(", ") || "free";
        made.append(marked(server(`${name} on ${leaf}: ${said}`, held, found.gpus_per_cell), `server:${name}`, `leaf:${leaf}`));
      });
      for (let place = found.servers[number].length; place < widest; place++) made.append(cell("server none", ""));
      made.append(document.createElement("b"));
      found.spines.forEach((spine, place) => (found.cables[number][place] || reached[place]) && made.append(marked(
        cable(leaf, spine, found.cables[number][place], links.get(`${number} ${place}`), found.load[number][place]),
        `link:${leaf}-${spine}`, `spine:${spine}`, `leaf:${leaf}`,
      )));
      return made;
    });
    at("map").replaceChildren(head([["servers", widest * 21 + 14], ...(found.spines.length ? [[found.optical ? "fibres to optical switches" : "cables to spines", 160]] : [])]), ...rows);
    at("cables-show").hidden = !found.spines.length;
    at("map-note").textContent = `A row is a ${found.spines.length ? "leaf: its servers with their GPUs, then its cables" : "rack: its servers with their GPUs"}. A colour is a job, as in the tables below. Grey is free, hatched is out of service.`;
    const above = found.core_cables.map((counts, number) => {
      const made = row(found.spines[number]);
      found.cores.forEach((core, place) => counts[place] && made.append(marked(
        cable(found.spines[number], core, counts[place], cores.get(`${number} ${place}`), found.core_load[number][place]),
        `link:${found.spines[number]}-${core}`, `core:${core}`, `spine:${found.spines[number]}`,
      )));
      return made;
    });
    at("cores").replaceChildren(...(above.length ? [head([["cables to cores", 140]]), ...above] : []));
    at("left-out").textContent = found.left_out ? `${ui.count(found.left_out)} more leafs are not drawn.` : "";
    const fullest = Math.max(0, ...found.load.flat(), ...found.core_load.flat());
    at("map").setAttribute("aria-label", `${found.jobs.length} jobs on ${found.leafs.length} leafs; the tables below list them. The fullest link would carry ${Math.round(fullest * 100)} % of its bandwidth.`);
    return fullest;
  };
  const show = (found) => {
    shown = found;
    return draw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());
  for (const button of document.querySelectorAll("[data-cables]")) {
    button.addEventListener("click", () => {
      byLoad = button.dataset.cables === "load";
      for (const other of document.querySelectorAll("[data-cables]")) other.setAttribute("aria-pressed", String(other === button));
      at("load-legend").hidden = !byLoad;
      if (shown) draw();
    });
  }
  return { show, colour };
})();
