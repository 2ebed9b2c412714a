// The cluster as it is now: the map, the queue, the jobs, the last day, and what may be done about them.
(() => {
  "use strict";
  const { at, lasted } = ui;
  const since = (seconds) => lasted(Math.max(0, Date.now() / 1000 - seconds));
  const anchor = (job) => ui.link(job.name || job.id, `/ui/jobs/${encodeURIComponent(job.id)}`);
  const number = (text) => ({ className: "number", textContent: text });
  const name = (job) => {
    const made = ui.row([anchor(job)]).cells[0];
    made.className = "name";
    made.title = job.name || job.id;
    return made;
  };
  // On phones nothing can be pointed at: the colour stands beside the name, too.
  const coloured = (job) => {
    const made = name(job);
    const swatch = Object.assign(document.createElement("i"), { className: "swatch" });
    swatch.style.background = map.colour(job.id);
    made.prepend(swatch);
    return made;
  };
  const nobody = (columns, text) => {
    const made = ui.row([text]);
    Object.assign(made.cells[0], { colSpan: columns, className: "nobody" });
    return made;
  };
  // Below one leaf, or on rails below those of one unit.
  const inside = (job) => (job.on_leafs > 1 ? "inside its unit" : "inside its leaf");
  const NETWORK = { "contention-free": "dedicated links", rearrangeable: "dedicated links", isolated: "cables of its own", none: "shared links" };
  const speed = (job) => (job.slowdown === null ? number(job.recent_step_s === null ? "–" : `${ui.seconds(job.recent_step_s)} a step`) : { className: `number ${job.slow ? "bad" : ""}`, textContent: job.slowdown > 1.005 ? `${((job.slowdown - 1) * 100).toFixed(0)} % slower` : "as promised" });
  const show = (found) => {
    const { gpus, links, jobs, settings, plant } = found.status;
    const out = found.out_of_service.drained.length + found.out_of_service.failed.length;
    at("policy").textContent = `${plant} · policy ${settings.policy} · queue ${settings.queue}${settings.backfill === "none" ? "" : `, backfill ${settings.backfill}`}`;
    at("headline").textContent = `${ui.count(jobs.running)} ${jobs.running === 1 ? "job" : "jobs"} on ${ui.count(gpus.used)} of ${ui.count(gpus.total)} GPUs, ${ui.count(jobs.pending)} waiting`;
    const fullest = map.show(found);
    ui.facts(at("numbers"), [
      ["GPUs in use", ui.percent(gpus.used / gpus.total)],
      ...(links.total ? [["Links reserved", `${ui.count(links.total - links.free)} of ${ui.count(links.total)}`], ["Load of the fullest link", `${Math.round(fullest * 100)} %`]] : []), // patch panels have no spines
      ["Held jobs", String(jobs.held)], ["Parts out of service", String(out)],
    ]);
    const parts = [...[...new Set(found.servers.flat())].slice(0, 500).map((name) => `server:${name}`), ...found.leafs.map((name) => `leaf:${name}`), ...found.spines.map((name) => `spine:${name}`), ...found.cores.map((name) => `core:${name}`)];
    at("parts").replaceChildren(...parts.map((name) => new Option(name)));
    const { waiting, held } = found.queue;
    at("queue").replaceChildren(...[...waiting, ...held].map((one) => ui.row([coloured(one), number(one.gpus), { className: "wide", textContent: one.reason.message }, number(since(one.submitted_at))])));
    if (!waiting.length && !held.length) at("queue").append(nobody(4, "No job waits."));
    at("running").replaceChildren(...found.jobs.slice(0, 200).map((one) => ui.row([
      coloured(one), number(one.gpus), number(one.dedicated_links), one.degraded ? { className: "bad", textContent: "lost links" } : one.stage === "server" ? "inside its server" : one.stage === "leaf" ? inside(one) : NETWORK[one.guarantee], speed(one), number(one.started_at ? since(one.started_at) : "–"),
    ])));
    if (!found.jobs.length) at("running").append(nobody(6, "No job runs."));
  };
  let [asking, again] = [false, false];
  // Many events at once are one look at the cluster.
  const refresh = async () => {
    if (asking) return (again = true);
    asking = true;
    try {
      show(await ui.ask("/v1/ui/live"));
      day.show(await ui.ask("/v1/ui/day"), map.colour);
      ui.complain(null);
    } catch (problem) {
      ui.complain(problem);
    }
    asking = false;
    if (again) {
      again = false;
      setTimeout(refresh, 300);
    }
    return undefined;
  };

  const begin = async () => {
    const first = await ui.ask("/v1/ui/live");
    show(first);
    day.show(await ui.ask("/v1/ui/day"), map.colour);
    const after = Math.max(0, first.latest_event - 30);
    const { events: latest } = await ui.ask(`/v1/history?after=${after}&limit=100`);
    at("events").replaceChildren(...[...latest].reverse().map(events.line));
    at("no-events").hidden = latest.length > 0;
    setInterval(refresh, 30000);
    events.follow(latest.at(-1)?.seq ?? first.latest_event, (event) => {
      at("events").prepend(events.line(event));
      at("no-events").hidden = true;
      while (at("events").children.length > 50) at("events").lastChild.remove();
      refresh();
    });
  };
  const asked = (form) => {
    const { name, gpus, hours } = Object.fromEntries(new FormData(form));
    return { name: name.trim() || "from-the-page", gpus: Number(gpus), ...(hours ? { expected_s: Number(hours) * 3600 } : {}) };
  };
  at("what-if").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const found = await ui.ask("/v1/what-if", asked(event.target));
      const reason = found.reason ?? found.now?.reason ?? found.now;
      const earliest = found.earliest_start_s ? ` By the expected ends of other jobs it starts in ${lasted(found.earliest_start_s)} at the earliest.` : "";
      at("would").textContent = found.would_start ? "It would start now." : `It would wait: ${reason?.message ?? "see the queue"}.${earliest}${reason?.remedy ? ` What helps: ${reason.remedy}.` : ""}`;
    } catch (problem) {
      at("would").textContent = problem.message;
    }
  });
  at("submit").addEventListener("click", async () => {
    const form = at("what-if");
    if (!form.reportValidity()) return;
    try {
      const found = await ui.ask("/v1/jobs", asked(form));
      at("would").replaceChildren(anchor(found), ` ${found.state === "running" ? "runs" : "waits"}`);
    } catch (problem) {
      at("would").textContent = problem.message;
    }
  });
  at("operate").addEventListener("submit", async (event) => {
    event.preventDefault();
    const part = new FormData(event.target).get("part");
    const act = event.submitter.value;
    if (act === "failures" && !confirm(`${part} has failed: jobs on it lose what they hold there.`)) return;
    try {
      const found = await ui.ask(`/v1/${act}`, { parts: [part] });
      const touched = found.jobs ?? found.affected ?? [];
      at("done").textContent = `Done.${touched.length ? ` Jobs on it: ${touched.map((one) => one.id ?? one).join(", ")}.` : ""}`;
    } catch (problem) {
      at("done").textContent = problem.message;
    }
  });
  begin().catch(ui.complain);
})();
