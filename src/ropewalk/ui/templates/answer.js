// One answer by itself, and the list of the latest ones.
(() => {
  "use strict";
  const { at } = ui;
  const listed = async () => {
    const { answers } = await ui.ask("/v1/ui/recent");
    at("nothing").hidden = answers.length > 0;
    at("answered").hidden = !answers.length;
    at("recent").replaceChildren(...answers.map((one) => {
      const anchor = ui.link("", `/ui/answers/${one.id}`);
      anchor.append(ui.command(one.command_line));
      return ui.row([anchor, { className: "number", textContent: ui.seconds(one.seconds) }, ui.link("compare", `/ui/compare?first=${one.id}`)]);
    }));
  };
  const one = async (key) => {
    const found = await ui.ask(`/v1/ui/answers/${key}`);
    at("asked").replaceChildren(ui.command(found.command_line));
    at("when").textContent = `Asked ${new Date(found.asked_at * 1000).toLocaleString([], { hour12: false })}, answered in ${ui.seconds(found.seconds)} by ropewalk ${found.version}`;
    const copy = document.createElement("button");
    Object.assign(copy, { type: "button", className: "plain", textContent: "Copy the command" });
    copy.addEventListener("click", () => ui.copied(copy, found.command_line));
    at("links").replaceChildren(copy, ui.link("Compare it", `/ui/compare?first=${key}`, "plain"));
    if (found.page) at("links").append(ui.download("Page as a file", `/v1/ui/answers/${key}/page`, "answer.html"), ui.link("Read-only link", found.page, "plain"));
    if (found.plan) {
      const { exports } = await ui.ask("/v1/ui/choices");
      at("links").append(ui.download("Plan file", `/v1/ui/answers/${key}/plan`, "plan.json"), ui.exporter(key, exports));
    }
    const whole = found.answer ?? {};
    const picked = whole.networks?.find((one) => one.network === whole.pick); // several networks: the one to take
    const told = picked ?? whole;
    ui.facts(at("numbers"), [
      ["Network", picked && whole.pick], ["Step", told.step_time_s && ui.seconds(told.step_time_s)], told.samples_per_s || told.tokens_per_s ? ui.throughput(told) : [],
      ["MFU", told.mfu && ui.percent(told.mfu)],
      ["Above the bound", told.bound ? ui.percent(told.bound.gap) : told.bound_s && ui.percent(told.step_time_s / told.bound_s - 1)],
    ].filter(([, value]) => value));
    at("page").hidden = !found.page;
    if (found.page) at("page").src = found.page;
    at("page-link").textContent = found.page ? new URL(found.page, location.href).href : "–";
    at("raw").hidden = false;
    at("raw").open = !found.page; // all that there is to see
    at("json").textContent = whole.text ?? JSON.stringify(whole, null, 1).slice(0, 200000);
  };
  const key = at("answer")?.dataset.key;
  const failed = (problem) => {
    if (!at("problem")) return console.warn(problem.message);
    if (problem.status === 404) at("asked").textContent = "There is no such answer";
    return ui.complain(problem);
  };
  (key ? one(key) : listed()).catch(failed);
})();
