// One job: its place, its routes, why it waits, and what happened to it.
(() => {
  "use strict";
  const { at, lasted } = ui;
  const id = at("job").dataset.job;
  const path = `/v1/jobs/${encodeURIComponent(id)}`;
  const button = (text, act, warning) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className: "plain", textContent: text });
    made.addEventListener("click", async () => {
      if (warning && !confirm(warning)) return;
      try {
        await ui.ask(`${path}/${act}`, {});
        await show();
      } catch (problem) {
        ui.complain(problem);
      }
    });
    return made;
  };
  const plot = charts.follow(at("steps"));
  // Step times as the job reports them; the line is what its plan promised.
  const drawSpeed = (speed) => {
    at("speed").hidden = !speed;
    if (!speed) return;
    const { promised_step_s: promised, recent_step_s: recent, slowdown, history = [] } = speed;
    const past = slowdown === null ? "" : `, ${slowdown > 1.005 ? `${((slowdown - 1) * 100).toFixed(1)} % longer than` : slowdown < 0.995 ? `${((1 - slowdown) * 100).toFixed(1)} % shorter than` : "as"} promised`;
    at("speed-said").textContent = recent === null
      ? `${promised === null ? "" : `Its plan promises ${ui.seconds(promised)} per step. `}${history.length ? "It has not reported its speed since its servers or links changed." : "It has not reported its speed yet (ropewalk cluster report)."}`
      : `Lately ${ui.seconds(recent)} per step${past}${promised === null ? "; it was submitted without a plan, so nothing was promised" : ""}.`;
    at("steps").closest("figure").hidden = !history.length;
    if (!history.length) return;
    const most = Math.max(promised ?? 0, ...history.map((one) => one.step_s)) * 1.12;
    const [factor, unit] = most < 1 ? [1e3, "ms"] : [1, "s"];
    const [first, last] = [history[0].step - history[0].steps, history.at(-1).step];
    at("promised").hidden = promised === null;
    at("promised").lastElementChild.textContent = promised === null ? "" : `promised ${ui.seconds(promised)}`;
    plot.show(() => ui.tinted({
      data: [
        ...(promised === null ? [] : [{ type: "scatter", mode: "lines", line: { color: "#868d99", width: 2, dash: "dash" }, x: [first, last], y: [promised * factor, promised * factor], hoverinfo: "skip" }]),
        {
          type: "scatter", mode: "lines+markers", line: { color: "#2a78d6", width: 2 }, marker: { color: "#2a78d6", size: 7 }, x: history.map((one) => one.step), y: history.map((one) => one.step_s * factor),
          customdata: history.map((one) => `<b>${ui.seconds(one.step_s)} per step</b><br>${one.steps} steps up to step ${ui.count(one.step)}`), hovertemplate: "%{customdata}<extra></extra>",
        },
      ],
      layout: {
        height: 230, margin: { l: 8, r: 14, t: 18, b: 48 }, xaxis: ui.axis("step", [first, last + (last - first) * 0.02 + 1e-9]), yaxis: ui.axis(`time of a step, ${unit}`, [0, most * factor]),
      },
    }));
    at("steps").setAttribute("aria-label", at("speed-said").textContent);
  };
  // A long list by its two ends and its length.
  const MOST_NAMED = 8;
  const few = (names) => (names.length > MOST_NAMED ? `${names.slice(0, 4).join(", ")}, … ${names.at(-1)} (${names.length})` : names.join(", "));
  // Servers after each other that give the same GPUs are one row.
  const alike = (held) => {
    const rows = [];
    for (const { name, gpus } of held) {
      const said = gpus.join(", ");
      if (rows.at(-1)?.gpus === said) rows.at(-1).names.push(name);
      else rows.push({ names: [name], gpus: said });
    }
    return rows;
  };
  const opened = new Set();
  const servers = (names) => {
    if (names.length <= MOST_NAMED) return { className: "wide", textContent: names.join(", ") };
    const [made, cell] = [document.createElement("details"), document.createElement("td")];
    const short = Object.assign(document.createElement("summary"), { textContent: few(names) });
    made.append(short, names.join(", "));
    made.open = opened.has(names[0]); // the page is drawn again every few seconds
    made.addEventListener("toggle", () => (made.open ? opened.add(names[0]) : opened.delete(names[0])));
    cell.className = "wide";
    cell.append(made);
    return cell;
  };
  const show = async () => {
    const job = await ui.ask(path);
    at("state").textContent = `${job.id} · ${job.state}${job.outcome ? `, ${job.outcome}` : ""}${job.user ? ` · ${job.user}` : ""}`;
    at("headline").textContent = job.name || job.id;
    const waits = job.state === "pending" && job.reason ? await ui.ask(`${path}/explain`) : null;
    const earliest = waits?.earliest_start_s ? ` By the expected ends of other jobs it starts in ${lasted(waits.earliest_start_s)} at the earliest.` : "";
    at("because").textContent = job.reason ? `It waits: ${job.reason.message}.${earliest} ${job.reason.remedy ? `What helps: ${job.reason.remedy}.` : ""}` : "";
    const held = job.allocation;
    const below = held && ({ server: "its server", leaf: held.leafs.length > 1 ? "its unit" : "its leaf" })[held.stage];
    const network = held && (below ? `none: it stays inside ${below}` : { "contention-free": "dedicated links; its NICs never wait for others", rearrangeable: "dedicated links; its own flows may meet", isolated: "cables of its own between its servers, which relay for each other", none: "links that it shares with other jobs" }[held.guarantee]);
    const [promised, recent] = [job.speed?.promised_step_s ?? null, job.speed?.recent_step_s ?? null];
    ui.facts(at("numbers"), [
      ["GPUs", ui.count(job.gpus)], ["Dedicated links", held ? `${ui.count(held.links)}${held.core_links ? ` + ${ui.count(held.core_links)} to cores` : ""}` : "–"],
      ["Step promised", promised === null ? "–" : ui.seconds(promised)], ["Step measured", recent === null ? "–" : ui.seconds(recent)],
    ]);
    const day = (seconds) => new Date(seconds * 1000).toLocaleString([], { hour12: false });
    ui.facts(at("facts"), [
      ["Submitted", day(job.submitted_at)], ["Started", job.started_at ? day(job.started_at) : "not yet"], ...(job.ended_at ? [["Ended", day(job.ended_at)]] : []),
      ["Network", job.degraded ? "it has lost dedicated links" : network ?? "none yet"], ...(job.restarts ? [["Restarts", ui.count(job.restarts)]] : []), ...(job.note ? [["Note", job.note]] : []),
    ]);
    drawSpeed(job.speed);
    at("place").replaceChildren(...alike(held?.servers ?? []).map(({ names, gpus }) => ui.row([servers(names), gpus])));
    const ahead = waits?.in_the_way ?? [];
    at("ahead").hidden = !ahead.length;
    at("ahead").replaceChildren("Blocked by ", ...ahead.slice(0, MOST_NAMED).flatMap((one, place) => [place ? ", " : "", ui.link(one, `/ui/jobs/${encodeURIComponent(one)}`)]), ahead.length > MOST_NAMED ? ` and ${ui.count(ahead.length - MOST_NAMED)} more.` : ".");
    if (!held) at("place").append(ui.row([{ className: "nobody", textContent: "No place yet.", colSpan: 2 }]));
    at("acts").replaceChildren(...(job.state === "running" ? [button("End it", "end", `End ${job.name || job.id}? Its ${ui.count(job.gpus)} GPUs and its links are given to others.`)] : []), ...(job.state === "pending" ? [button("Cancel it", "cancel")] : []), ui.link("The cluster", "/ui/cluster", "plain"));
    const rules = await ui.ask(`${path}/rules`);
    at("routes").textContent = held ? `${few(held.leafs ?? [])}${below ? `: nothing leaves ${below}` : held.spines?.length ? ` over ${few(held.spines)}` : held.guarantee === "isolated" ? ": cables from server to server" : " over links that it shares with others"}${held.cores?.length ? ` and ${few(held.cores)}` : ""}. ${rules.driver ? `${rules.rules.length} rules by the driver ${rules.driver}.` : "No driver puts rules on switches."}` : "No routes yet.";
    at("rules").hidden = !rules.rules.length;
    at("rules").textContent = JSON.stringify(rules.rules.slice(0, 50), null, 1);
    return job;
  };
  const begin = async () => {
    try {
      await show();
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      for (const one of [...at("job").children]) one.hidden = true;
      for (const one of ["headline", "acts"]) at(one).hidden = false;
      at("headline").textContent = `There is no job ${id}`;
      at("acts").replaceChildren(ui.link("The cluster", "/ui/cluster", "plain"));
      return;
    }
    const { events: own, latest } = await ui.ask(`/v1/ui/jobs/${encodeURIComponent(id)}/events`);
    at("events").replaceChildren(...own.reverse().map(events.line));
    setInterval(() => show().catch(ui.complain), 15000); // reports of speed are no events
    events.follow(latest, (event) => {
      if (event.job === id) at("events").prepend(events.line(event));
      show().catch(ui.complain);
    });
  };
  begin().catch(ui.complain);
})();
