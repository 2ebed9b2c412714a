// The last day of the cluster: GPUs in use, and below them every job, waiting and running.
const day = (() => {
  "use strict";
  const { at, lasted } = ui;
  const LANES = 40;
  const STEPS_S = [60, 300, 900, 3600, 10800, 21600];
  const [used, jobs] = [charts.follow(at("used")), charts.follow(at("jobs"))];
  const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });

  // What can be read on a bar of this colour.
  const ink = (paper) => {
    const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(paper.slice(at, at + 2), 16) / 255) ** 2.2);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? "#14161a" : "#ffffff";
  };
  // Ticks at round times of the clock here.
  const timeAxis = (from, to, title) => {
    const step = STEPS_S.find((one) => (to - from) / one <= 9) ?? 21600;
    const shift = new Date().getTimezoneOffset() * 60;
    const tickvals = [];
    for (let tick = Math.ceil((from - shift) / step) * step + shift; tick <= to; tick += step) tickvals.push(tick);
    return ui.axis(title, [from, to], { tickvals, ticktext: tickvals.map(clock) });
  };
  // Every job in the first lane that is free when it was submitted.
  const inLanes = (found, from) => {
    const ends = [];
    return found.jobs.flatMap((job) => {
      const [begin, end] = [Math.max(job.submitted_at, from), job.ended_at ?? found.now];
      let lane = ends.findIndex((last) => last <= begin);
      if (lane < 0) lane = ends.length;
      ends[lane] = end + (found.now - from) / 400;
      return lane < LANES ? [{ ...job, lane, begin, end }] : [];
    });
  };
  const show = (found, colour) => {
    const first = Math.min(found.now - 120, ...found.jobs.map((job) => job.submitted_at));
    const from = Math.max(found.since, first);
    const drawn = inLanes(found, from);
    const lanes = Math.max(1, ...drawn.map((job) => job.lane + 1));
    const ran = drawn.filter((job) => job.started_at !== null);
    const left = found.left_out + found.jobs.length - drawn.length;
    at("day-note").textContent = found.jobs.length
      ? `A bar is a job, in the colour that it has above; thin while it waited.${left ? ` ${ui.count(left)} smaller jobs are not drawn.` : ""}`
      : "No job has waited or run in the last day.";
    at("jobs").closest("figure").hidden = !found.jobs.length;
    const course = [...found.used.filter(([time]) => time >= from), [found.now, found.used.at(-1)[1]]];
    const early = found.used.filter(([time]) => time < from).at(-1);
    if (early) course.unshift([from, early[1]]);
    used.show(() => ui.tinted({
      data: [{ type: "scatter", mode: "lines", line: { color: "#2a78d6", width: 2, shape: "hv" }, fill: "tozeroy", fillcolor: "rgba(42,120,214,0.14)", hoverinfo: "skip", x: course.map(([time]) => time), y: course.map(([, gpus]) => gpus) }],
      layout: { height: 190, margin: { l: 64, r: 14, t: 12, b: 30 }, xaxis: timeAxis(from, found.now, ""), yaxis: ui.axis("GPUs in use", [0, found.gpus * 1.05], { nticks: 4 }) },
    }));
    at("used").setAttribute("aria-label", `GPUs in use since ${clock(from)}: ${course.at(-1)[1]} of ${found.gpus} now`);
    const told = (job) => `<b>${ui.escaped(job.name || job.id)}</b><br>${job.gpus} GPUs${job.user ? `, ${ui.escaped(job.user)}` : ""}, ${ui.escaped(job.outcome ?? job.state)}<br>waited ${lasted((job.started_at ?? job.end) - job.submitted_at)}${job.started_at ? `, ran ${lasted(job.end - job.started_at)} from ${clock(job.started_at)}` : ""}`;
    const bar = (rows, begin, end, width, more) => ({
      type: "bar", orientation: "h", y: rows.map((job) => job.lane), base: rows.map(begin), x: rows.map((job) => Math.max(0, end(job) - begin(job))), width: rows.map(() => width),
      customdata: rows.map(told), hovertemplate: "%{customdata}<extra></extra>", ...more,
    });
    const waited = drawn.filter((job) => (job.started_at ?? job.end) > job.begin);
    jobs.show(() => ui.tinted({
      data: [
        bar(waited, (job) => job.begin, (job) => job.started_at ?? job.end, 0.2, { marker: { color: waited.map((job) => colour(job.id)), opacity: 0.55 } }),
        bar(ran, (job) => Math.max(job.started_at, from), (job) => job.end, 0.76, { marker: { color: ran.map((job) => colour(job.id)), cornerradius: 3 }, text: ran.map((job) => ui.escaped(job.name || job.id)), textposition: "inside", textfont: { size: 11, color: ran.map((job) => ink(colour(job.id))) } }),
      ],
      layout: { height: 44 + lanes * 18, margin: { l: 64, r: 14, t: 4, b: 30 }, xaxis: timeAxis(from, found.now, ""), yaxis: ui.axis("", [lanes - 0.5, -0.5], { showticklabels: false, showgrid: false }) },
    }));
    at("jobs").setAttribute("aria-label", `${drawn.length} jobs of the last day as bars; arrow keys walk through them`);
  };
  return { show };
})();
