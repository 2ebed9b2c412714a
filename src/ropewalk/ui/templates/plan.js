// The planner: every change asks for an estimate, the button for the search; the address of the page is the question.
(() => {
  "use strict";
  const { at } = ui;
  const form = at("planner");
  const field = (name) => form.elements[name];
  const state = { choices: null, files: {}, latest: 0, timing: [], answered: false };
  const DEFAULTS = { model: "llama3-70b", device: "h100", dtype: "bf16", servers: 64, gpus_per_server: 8, speed: 400, fabric: "rails", oversubscription: 1, ports: 4, batch: 1024, seq: 8192 };
  const WIRE = "wire";
  const THINNED = ["rails", "leaf-spine", "fat-tree"];
  // Sliders have no place for every number that an address may have.
  const nearest = (values, wanted) => values.reduce((best, value, place) => (Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? place : best), 0);
  const power = { of: (place) => 2 ** place, at: (value) => Math.round(Math.log2(value)) };
  const listed = (key) => ({ of: (place) => state.choices[key][place], at: (value) => nearest(state.choices[key], value) });
  // What the place of a slider stands for, and back.
  const SLIDERS = {
    servers: listed("servers"), speed: listed("nic_gbps"), batch: power, seq: power, oversubscription: power,
    ports: { of: (place) => place, at: (value) => value },
  };
  const valueOf = (name) => SLIDERS[name].of(Number(field(name).value));
  const fileOf = (kind) => Object.keys(state.files).find((name) => state.files[name].kind === kind);
  const network = () => field("fabric").value.trim();
  const wired = () => !fileOf("cluster") && !field("preset").value && network() === WIRE;
  const thinned = () => THINNED.includes(network());
  const listedModel = () => (fileOf("model") ? undefined : state.choices.models.find((one) => one.name === field("model").value.trim()));
  // Images and tables are no sequences, and a file has the length that it was written for.
  const hasSequence = () => !fileOf("model") && (listedModel()?.sequences ?? true);

  const shown = () => {
    const [preset, cluster] = [field("preset").value, fileOf("cluster")];
    const { about, gpus } = state.choices.presets.find((one) => one.name === preset) ?? { gpus: Number(field("gpus_per_server").value) };
    at("servers-shown").textContent = `${valueOf("servers")} (${ui.count(valueOf("servers") * gpus)} GPUs)`;
    at("speed-shown").textContent = `${valueOf("speed")} Gbps`;
    at("oversubscription-shown").textContent = valueOf("oversubscription") === 1 ? "none" : `${valueOf("oversubscription")} to 1`;
    at("ports-shown").textContent = String(valueOf("ports"));
    at("batch-shown").textContent = ui.count(valueOf("batch"));
    at("seq-shown").textContent = ui.count(valueOf("seq"));
    at("about-model").textContent = listedModel()?.about ?? "";
    field("seq").closest("label").hidden = !hasSequence();
    at("about-preset").textContent = about ? `A server: ${about}` : "";
    at("built").hidden = Boolean(preset || cluster);
    at("over").hidden = !thinned();
    at("wire").hidden = !wired();
    for (const name of ["stack", "power", "network", "nics"]) field(name).closest("label").hidden = wired(); // a wiring takes none of these
    for (const name of ["preset", "servers"]) field(name).disabled = Boolean(cluster);
    field("model").disabled = Boolean(fileOf("model"));
  };

  // The form as options of `ropewalk plan`.
  const values = () => {
    const [cluster, preset, servers] = [fileOf("cluster"), field("preset").value, valueOf("servers")];
    const found = { model: fileOf("model") ?? field("model").value.trim(), batch: valueOf("batch"), seq: hasSequence() ? valueOf("seq") : "", dtype: field("dtype").value };
    const more = { stack: field("stack").value, power: field("power").value.trim() };
    if (cluster) return { ...found, ...more, cluster };
    if (preset) return { ...found, ...more, cluster: `${preset}:${servers}` };
    const each = { device: field("device").value, nics: field("nics").value, bandwidth: `${valueOf("speed")}Gbps` };
    if (wired()) return { ...found, ...each, nics: "", servers, gpus_per_server: field("gpus_per_server").value, degree: valueOf("ports") };
    const ratio = thinned() && valueOf("oversubscription") > 1 ? `:${valueOf("oversubscription")}to1` : "";
    return { ...found, ...more, ...each, cluster: `${servers}x${field("gpus_per_server").value}`, fabric: network() + ratio };
  };
  const question = (all) => ({
    command: "plan",
    values: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== "" && value !== undefined)),
    files: Object.fromEntries(Object.entries(state.files).map(([name, file]) => [name, file.content])),
  });

  const showEstimate = (found) => {
    const { estimate } = found;
    state.answered = true;
    at("state").textContent = "Estimate: the best of a few usual strategies, simulated";
    ui.headline(`${ui.seconds(estimate.step_time_s)} per step`, ui.seconds(estimate.step_time_s));
    at("strategy").textContent = estimate.best.said;
    at("printed").replaceChildren(...ui.command(found.command_line).childNodes);
    ui.facts(at("numbers"), [
      ui.throughput(estimate), ["MFU", estimate.mfu === null ? "–" : ui.percent(estimate.mfu)],
      [`Peak memory, of ${ui.bytes(estimate.memory_capacity_bytes)}`, ui.bytes(estimate.best.memory_bytes)],
      ["Strategies that fit", `${ui.count(estimate.counts.fit)} of ${ui.count(estimate.counts.possible)}`],
    ]);
    candidates.show(found, () => question(values()));
    document.title = `${ui.seconds(estimate.step_time_s)} · ${estimate.model} · ropewalk`;
  };
  // Ports are wired for the model by the search: there is nothing to estimate before.
  const showPorts = () => {
    const { servers, degree } = values();
    state.latest += 1;
    state.answered = false;
    document.title = "Ports to wire · ropewalk";
    at("answer").removeAttribute("aria-busy");
    at("state").textContent = "Ports to wire";
    ui.headline(`${ui.count(servers)} servers with ${degree} ports each`, "");
    at("printed").textContent = "";
    at("strategy").textContent = "Which cables to lay depends on the model: Search and simulate finds the wiring and the strategy together.";
    at("numbers").replaceChildren();
    ui.complain(null);
  };
  const estimate = async () => {
    at("estimated").hidden = at("copy").hidden = wired();
    if (wired()) return showPorts();
    const turn = ++state.latest;
    const began = performance.now();
    at("answer").setAttribute("aria-busy", "true");
    try {
      const found = await ui.ask("/v1/ui/estimates", question(values()));
      if (turn !== state.latest) return undefined;
      ui.complain(null);
      showEstimate(found);
      state.timing.push(performance.now() - began);
      document.body.dataset.estimates = JSON.stringify(state.timing.map(Math.round));
      search.later(searched, state.choices.exports);
    } catch (problem) {
      if (turn !== state.latest || problem.code === "conflict") return undefined;
      // The worker goes on: asking again waits for the same estimate.
      if (problem.code === "too-slow") {
        at("state").textContent = "Still estimating: the first question about a model takes longest";
        return estimate();
      }
      ui.complain(problem);
      at("state").textContent = state.answered ? "The last answer, not for what is chosen now" : "";
      at("short").textContent = "no estimate";
      if (!state.answered) ui.headline("No estimate", "");
      at("estimated").hidden ||= !state.answered;
      if (problem.status === 429) setTimeout(() => turn === state.latest && estimate(), 1000 * Math.max(1, problem.retry));
    }
    at("answer").removeAttribute("aria-busy");
    return undefined;
  };
  let waiting = 0;
  // A model that was just chosen cannot take more tokens than it has positions.
  const shorten = () => {
    const longest = listedModel()?.longest;
    if (longest && valueOf("seq") > longest) field("seq").value = Math.floor(Math.log2(longest));
  };
  const changed = (one) => {
    if (one?.name === "model") shorten();
    shown();
    remember();
    at("proved").hidden = true;
    search.cancel();
    clearTimeout(waiting);
    waiting = setTimeout(estimate, 120);
  };

  // The address has all inputs, so that a link gives the same answer again.
  const remember = () => {
    const inputs = Object.fromEntries(new FormData(form));
    for (const name of Object.keys(SLIDERS)) inputs[name] = valueOf(name);
    delete inputs.file;
    history.replaceState(null, "", `?${new URLSearchParams(Object.entries(inputs).filter(([, value]) => value !== ""))}`);
  };
  const recall = () => {
    const asked = { ...DEFAULTS, ...Object.fromEntries(new URLSearchParams(location.search)) };
    for (const [name, value] of Object.entries(asked)) {
      if (name in SLIDERS) field(name).value = SLIDERS[name].at(Number(value));
      else if (field(name) && field(name).type !== "file") field(name).value = value;
    }
    if (!new URLSearchParams(location.search).has("seq")) shorten();
  };

  // Other networks are compared with the one that the form describes, which the command calls own.
  const compared = () => {
    const others = field("network").value.split(",").map((name) => name.trim()).filter((name) => name && name !== "own" && name !== network());
    return wired() || !others.length ? "" : ["own", ...others].join(",");
  };
  const searched = () => question({ ...values(), network: compared() });
  // A file is a model where it lists layers, or is a profile; otherwise a cluster.
  const take = async (file) => {
    const kind = /\.txt$/i.test(file.name) || /^\s*"?layers"?\s*:/m.test(await file.slice(0, 1e6).text()) ? "model" : "cluster";
    state.files = { [file.name]: { kind, content: await ui.encoded(file) } };
    at("file-note").firstElementChild.textContent = `${file.name} is the ${kind}. A link to this page does not carry it; that of an answer does.`;
    at("file-note").hidden = false;
    changed();
  };
  const leaveOut = () => {
    state.files = {};
    at("file").value = "";
    at("file-note").hidden = true;
    changed();
  };

  const begin = async () => {
    state.choices = await ui.ask("/v1/ui/choices");
    const fill = (list, entries, label) => list.append(...entries.map((one) => new Option(label ? `${one.name}` : one, one.name ?? one)));
    at("models").append(...state.choices.models.map((one) => new Option(one.about, one.name)));
    at("networks").append(...state.choices.networks.map((one) => new Option(one, one)));
    fill(field("device"), state.choices.devices, true);
    fill(field("dtype"), state.choices.precisions);
    fill(field("stack"), state.choices.stacks, true);
    fill(field("preset"), state.choices.presets, true);
    field("servers").max = state.choices.servers.length - 1;
    field("speed").max = state.choices.nic_gbps.length - 1;
    recall();
    form.addEventListener("input", (event) => event.target.type !== "file" && changed(event.target));
    form.addEventListener("submit", (event) => event.preventDefault());
    at("file").addEventListener("change", (event) => event.target.files[0] && take(event.target.files[0]));
    at("file-drop").addEventListener("click", leaveOut);
    at("drop").addEventListener("dragover", (event) => event.preventDefault());
    at("drop").addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
    });
    at("prove").addEventListener("click", () => search.begin(searched(), state.choices.exports, false));
    at("copy").addEventListener("click", (event) => ui.copied(event.target, at("printed").textContent.trim())); // what gives the answer that is shown
    at("link").addEventListener("click", (event) => ui.copied(event.target, location.href));
    shown();
    await estimate();
  };
  begin().catch(ui.complain);
})();
