// What all pages share: requests with the token of this tab, numbers as people read them, charts and messages.
const ui = (() => {
  "use strict";
  const tab = sessionStorage.tab ?? (sessionStorage.tab = crypto.randomUUID());
  const at = (id) => document.getElementById(id);
  const askForToken = (refused) =>
    new Promise((resolve) => {
      const dialog = at("token-dialog");
      at("token-problem").hidden = !refused;
      at("token-problem").textContent = refused;
      dialog.addEventListener("close", () => {
        sessionStorage.token = at("token").value.trim();
        resolve();
      }, { once: true });
      if (!dialog.open) dialog.showModal();
    });
  // A refusal as the service words it.
  class Refused extends Error {
    constructor(status, found) {
      super([found?.message, found?.remedy].filter(Boolean).join(": ") || `the service answered ${status}`);
      Object.assign(this, { status, code: found?.code, retry: 0 });
    }
  }
  const ask = async (path, body, options = {}) => {
    const headers = { "X-Tab": tab };
    if (sessionStorage.token) headers.Authorization = `Bearer ${sessionStorage.token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const reply = await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body: body && JSON.stringify(body), ...options });
    if (reply.status === 401) {
      const { error } = await reply.json().catch(() => ({}));
      await askForToken((sessionStorage.token && error?.message) || ""); // its remedy is for commands
      return ask(path, body, options);
    }
    if (reply.ok) return reply.json();
    const refused = new Refused(reply.status, (await reply.json().catch(() => ({}))).error);
    refused.retry = Number(reply.headers.get("Retry-After") ?? 0);
    throw refused;
  };
  const encoded = async (file) => {
    const bytes = new Uint8Array(await file.arrayBuffer());
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text);
  };
  // Four significant digits at the most, with the prefix that fits.
  const digits = (value) => String(Number(value.toPrecision(4)));
  const seconds = (value) => {
    const [factor, unit] = [[1, "s"], [1e3, "ms"], [1e6, "µs"], [1e9, "ns"]].find(([factor]) => value * factor >= 1) ?? [1, "s"];
    return `${digits(value * factor)} ${unit}`;
  };
  const bytes = (value) => {
    const [factor, unit] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([factor]) => value >= factor) ?? [1, "B"];
    return `${digits(value / factor)} ${unit}`;
  };
  // Groups of three behind narrow spaces, as pages of commands write them.
  const count = (value) => Math.round(value).toLocaleString("en-US").replaceAll(",", "\u202f");
  // How long something has gone on, as people say it.
  const lasted = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`);
  const percent = (value) => `${(value * 100).toFixed(1)} %`;
  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value * 100).toFixed(1)} %`;
  // Of an answer: tokens where its samples are sequences of them.
  const throughput = ({ tokens_per_s: tokens, samples_per_s: samples }) => (tokens ? ["Tokens per second", count(tokens)] : ["Samples per second", count(samples)]);
  // What a page is about; on a phone the short of it stays in sight above the sliders.
  const headline = (text, short) => {
    at("headline").textContent = text;
    at("short").textContent = short;
  };
  const facts = (list, entries) => {
    list.replaceChildren(...entries.map(([name, value]) => {
      const box = document.createElement("div");
      const [term, said] = [document.createElement("dt"), document.createElement("dd")];
      [term.textContent, said.textContent] = [name, value];
      box.append(term, said);
      return box;
    }));
  };
  const row = (cells) => {
    const made = document.createElement("tr");
    for (const cell of cells) {
      if (cell instanceof HTMLTableCellElement) {
        made.append(cell);
        continue;
      }
      const one = document.createElement("td");
      if (cell instanceof Node) one.append(cell);
      else if (typeof cell === "object") Object.assign(one, cell);
      else one.textContent = cell;
      made.append(one);
    }
    return made;
  };
  const complain = (problem) => {
    const box = at("problem");
    box.hidden = !problem;
    box.textContent = problem ? String(problem.message ?? problem) : "";
  };
  // A command line breaks between words, not at the dashes of its options.
  const command = (text) => {
    const made = document.createElement("code");
    for (const word of text.split(" ")) made.append(Object.assign(document.createElement("span"), { textContent: word }), " ");
    return made;
  };
  const link = (text, href, name) => {
    const made = document.createElement("a");
    [made.textContent, made.href, made.className] = [text, href, name ?? ""];
    return made;
  };
  // Files need the token, so they are fetched and handed over.
  const download = (text, path, name) => {
    const made = document.createElement("button");
    [made.type, made.className, made.textContent] = ["button", "plain", text];
    made.addEventListener("click", () => save(path, name).catch(complain));
    return made;
  };
  const save = async (path, name) => {
    const headers = sessionStorage.token ? { Authorization: `Bearer ${sessionStorage.token}` } : {};
    const reply = await fetch(path, { headers });
    if (!reply.ok) throw new Refused(reply.status, (await reply.json().catch(() => ({}))).error);
    const anchor = link(name, URL.createObjectURL(await reply.blob()));
    anchor.download = name;
    anchor.click();
    URL.revokeObjectURL(anchor.href);
  };
  // A plan for another tool: chosen, made by a worker, handed over.
  const EXPORT = "Export as …";
  const exporter = (key, exports) => {
    const made = document.createElement("select");
    made.className = "plain";
    made.setAttribute("aria-label", "Export the plan");
    made.append(new Option(EXPORT, ""), ...exports.map((one) => new Option(one.name, one.name)));
    made.addEventListener("change", async () => {
      const to = made.value;
      if (!to) return;
      made.disabled = true;
      complain(null);
      try {
        const work = await ask(`/v1/ui/answers/${key}/exports`, { to });
        const found = await followed(work.id, ({ state, seconds }) => {
          made.options[0].textContent = state === "waiting" ? "waiting for a free worker …" : `writing ${to} … ${Math.round(seconds)} s`;
          made.selectedIndex = 0;
        });
        if (found.state !== "done") throw new Error(found.failure || `it was ${found.state}`);
        await save(`/v1/ui/answers/${found.id}/export`, `${to}.zip`);
      } catch (problem) {
        complain(problem);
      }
      made.options[0].textContent = EXPORT;
      made.value = "";
      made.disabled = false;
    });
    return made;
  };
  const copied = async (button, text) => {
    await navigator.clipboard.writeText(text).catch(() => window.prompt("Copy", text));
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = before), 1200);
  };
  const followed = async (id, tell, stop) => {
    let found = await ask(`/v1/ui/questions/${id}`);
    while (["waiting", "running"].includes(found.state) && !stop?.aborted) {
      tell(found);
      found = await ask(`/v1/ui/questions/${id}?wait=1`);
    }
    return found;
  };
  for (const one of document.querySelectorAll("header.bar nav a")) if (location.pathname.startsWith(one.pathname)) one.setAttribute("aria-current", "page");
  // Frames say how high they are.
  addEventListener("message", (event) => {
    const frame = at("page");
    if (!frame || event.source !== frame.contentWindow || typeof event.data?.height !== "number") return;
    frame.style.height = `${Math.min(Math.max(200, event.data.height), 20000)}px`;
  });
  const showProgress = (work) => {
    const box = at("progress");
    box.hidden = !work || work.state === "done";
    if (box.hidden) return;
    const { done, total, now } = work.progress ?? {};
    const bar = at("bar");
    if (total) Object.assign(bar, { max: total, value: done });
    else bar.removeAttribute("value");
    at("now").textContent = work.state === "waiting" ? "waiting for a free worker" : `${now ?? "starting"} · ${Math.round(work.seconds)} s`;
  };
  // Figures carry light colours; on a dark page each is replaced by its partner.
  const swap = JSON.parse(at("dark-of-light").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const tinted = (value) => {
    if (typeof value === "string") return dark.matches && Object.hasOwn(swap, value) ? swap[value] : value;
    if (Array.isArray(value)) return value.map(tinted);
    return value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, tinted(part)])) : value;
  };
  const FONT = { size: 12, color: "#5b626e" };
  const axis = (title, range, more = {}) => ({ title: { text: title, font: FONT }, tickfont: FONT, gridcolor: "#e2e5e9", range, nticks: 7, fixedrange: true, ...more });
  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  return { tinted, axis, escaped, at, ask, encoded, seconds, bytes, count, lasted, percent, signed, throughput, digits, headline, facts, row, complain, command, link, download, exporter, copied, followed, showProgress };
})();
