// The search behind an estimate: asked for by the button, or in the background once the sliders rest.
const search = (() => {
  "use strict";
  const { at } = ui;
  const REST_MS = 1500;
  const state = { work: null, timer: 0, turn: 0 };
  const wanted = () => at("background").checked;

  const cancel = (options) => {
    clearTimeout(state.timer);
    state.turn += 1;
    const { work } = state;
    state.work = null;
    at("stop").hidden = true;
    at("prove").disabled = false;
    ui.showProgress(null);
    return work && ui.ask(`/v1/ui/questions/${work.id}/cancel`, {}, options).catch(() => {});
  };
  // Asks, follows and shows; whoever did not ask for it is not told that it was refused, and not moved to the answer.
  const begin = async (question, exports, quiet) => {
    const ending = cancel();
    const turn = state.turn;
    if (!quiet) ui.complain(null);
    at("prove").disabled = !quiet;
    try {
      await ending; // the same question, asked while the search before it still runs, would end with it
      if (turn !== state.turn) return;
      const asked = await ui.ask("/v1/ui/questions", question);
      if (turn !== state.turn) return;
      if (asked.state !== "done") state.work = asked;
      at("stop").hidden = asked.state === "done";
      const found = await ui.followed(asked.id, (work) => turn === state.turn && ui.showProgress(work));
      if (turn !== state.turn) return;
      state.work = null;
      if (found.state !== "done") throw new Error(found.failure || `it was ${found.state}`);
      await show(found, exports);
      if (!quiet) at("proved").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    } catch (problem) {
      if (turn !== state.turn) return;
      state.work = null;
      if (!quiet || problem.status !== 429) ui.complain(problem);
    }
    cancel();
  };
  const show = async (found, exports) => {
    const { answer } = await ui.ask(`/v1/ui/answers/${found.id}`);
    at("proved").hidden = false;
    at("links").replaceChildren(ui.link("This answer by itself", `/ui/answers/${found.id}`, "plain"), ui.link("Compare it", `/ui/compare?first=${found.id}`, "plain"));
    if (found.plan) at("links").append(ui.download("Plan file", `/v1/ui/answers/${found.id}/plan`, "plan.json"), ui.exporter(found.id, exports));
    at("page").src = found.page;
    at("page-link").textContent = new URL(found.page, location.href).href;
    at("printed").replaceChildren(...ui.command(found.command_line).childNodes);
    if (answer.networks) showNetworks(answer);
    if (!answer.step_time_s) return;
    ui.headline(`${ui.seconds(answer.step_time_s)} per step`, ui.seconds(answer.step_time_s));
    at("copy").hidden = false;
    if (!answer.bound) {
      at("state").textContent = "Searched and simulated: the wiring and the strategy together";
      return;
    }
    at("state").textContent = `Searched and simulated: the best of ${ui.count(answer.counts.fit)} strategies that fit, ${ui.percent(answer.bound.gap)} above what any could reach`;
    at("strategy").textContent = answer.best.said;
    ui.facts(at("numbers"), [
      ui.throughput(answer), ["MFU", answer.mfu === null ? "–" : ui.percent(answer.mfu)],
      [`Peak memory, of ${ui.bytes(answer.memory_capacity_bytes)}`, ui.bytes(answer.best.memory_bytes)],
      ["Gain over the baseline", `${(answer.plain.step_time_s / answer.step_time_s).toFixed(2)}×`],
    ]);
  };
  // Several networks: the one to take, and why.
  const showNetworks = ({ networks, pick, verdict }) => {
    const best = networks.find((one) => one.network === pick);
    ui.headline(`${ui.seconds(best.step_time_s)} per step on ${pick}`, ui.seconds(best.step_time_s));
    at("state").textContent = `Searched and simulated on ${ui.count(networks.length)} networks`;
    at("strategy").textContent = `${verdict} There: ${best.strategy}.`;
    ui.facts(at("numbers"), [
      ui.throughput(best), ["MFU", best.mfu === null ? "–" : ui.percent(best.mfu)],
      ["Above the bound", ui.percent(best.step_time_s / best.bound_s - 1)],
    ]);
  };
  // Once nothing has changed for a while.
  const later = (question, exports) => {
    clearTimeout(state.timer);
    if (wanted()) state.timer = setTimeout(() => begin(question(), exports, true), REST_MS);
  };
  at("background").checked = localStorage.background !== "off";
  at("background").addEventListener("change", () => {
    localStorage.background = wanted() ? "on" : "off";
    if (!wanted()) cancel();
  });
  at("stop").addEventListener("click", () => cancel());
  addEventListener("pagehide", () => cancel({ keepalive: true }));
  return { begin, cancel, later };
})();
