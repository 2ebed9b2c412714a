// Events of the service as they happen: a stream that heals itself and says so.
const events = (() => {
  "use strict";
  const say = (text) => (ui.at("connection").textContent = text);
  const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  const SILENT_MS = 45000; // the service sends something every 15 s: silence means that nobody is there
  const read = async (reply, seen, tell, gone) => {
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const silent = setTimeout(() => gone.abort(), SILENT_MS);
      const { value, done } = await reader.read().finally(() => clearTimeout(silent));
      if (done) return;
      text += value;
      const parts = text.split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const data = /^data: (.*)$/m.exec(part);
        const id = /^id: (\d+)$/m.exec(part);
        if (id) seen.last = Number(id[1]);
        if (data) tell(JSON.parse(data[1]));
      }
    }
  };
  // Calls `tell` for every event after the last one that was seen, for as long as the page is open.
  const follow = async (after, tell) => {
    const seen = { last: after };
    let failures = 0;
    for (;;) {
      try {
        const headers = sessionStorage.token ? { Authorization: `Bearer ${sessionStorage.token}` } : {};
        const gone = new AbortController();
        const reply = await fetch(`/v1/events?after=${seen.last}`, { headers, signal: gone.signal });
        if (reply.ok) {
          say("live");
          failures = 0;
          await read(reply, seen, tell, gone);
        } else if (reply.status === 401) await ui.ask("/v1/status");
      } catch {
        // said below: the connection is gone, and comes back by itself
      }
      failures += 1;
      say("connection lost; trying again");
      await pause(Math.min(10, 0.5 * 2 ** failures));
    }
  };
  const words = {
    "job-submitted": "was submitted", "job-started": "started", "job-ended": "ended", "job-requeued": "waits again", "job-held": "is held", "job-released": "is no longer held",
    "job-rerouted": "got other links", "job-degraded": "has lost dedicated links", "job-resized": "has another size", "job-adopted": "was taken over", "job-bound": "is bound to its scheduler",
    "job-slow": "is slower than its plan promised", "job-as-promised": "is as fast as promised again",
    "parts-drained": "drained", "parts-restored": "back in service", "parts-failed": "failed", "parts-repaired": "repaired", "policy-changed": "The policy has changed",
    "rules-ready": ": rules are in place", "rules-gone": ": rules are gone", "rules-failed": ": rules could not be put in place",
  };
  const ended = { failed: "failed", cancelled: "was cancelled", lost: "was lost" };
  const line = (event) => {
    const made = document.createElement("li");
    const when = document.createElement("time");
    const at = new Date(event.at * 1000);
    const day = at.toDateString() === new Date().toDateString() ? "" : `${at.toLocaleDateString()} `;
    when.textContent = day + at.toLocaleTimeString([], { hour12: false });
    when.dateTime = at.toISOString();
    made.append(when, " ");
    const who = event.name || event.job || (event.parts ?? []).join(", ");
    if (event.job) made.append(ui.link(who, `/ui/jobs/${encodeURIComponent(event.job)}`), " ");
    else if (who) made.append(`${who} `);
    made.append(ended[event.outcome] ?? words[event.kind] ?? event.kind.replaceAll("-", " "));
    if (event.gpus) made.append(` (${event.gpus} GPUs)`);
    if (event.note) made.append(`: ${event.note}`);
    return made;
  };
  return { follow, line };
})();
