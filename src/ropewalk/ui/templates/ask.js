// A form of a command: fill in, ask, and go to the answer.
(() => {
  "use strict";
  const { at } = ui;
  const form = at("ask");
  let work = null;
  const filled = async () => {
    const values = {};
    const files = {};
    for (const one of form.elements) {
      if (!one.name) continue;
      if (one.dataset.kind === "file") {
        if (!one.files[0]) continue;
        files[one.files[0].name] = await ui.encoded(one.files[0]);
        values[one.name] = one.files[0].name;
      } else if (one.value !== "") {
        if (one.dataset.kind === "switch") values[one.name] = one.value === "true";
        else values[one.name] = "several" in one.dataset ? one.value.split(/\s+/) : one.value;
      }
    }
    for (const file of at("files").files) files[file.name] = await ui.encoded(file);
    return { command: form.dataset.command, values, files };
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    ui.complain(null);
    try {
      work = await ui.ask("/v1/ui/questions", await filled());
      at("stop").hidden = false;
      const found = await ui.followed(work.id, ui.showProgress);
      if (found.state !== "done") throw new Error(found.failure || `it was ${found.state}`);
      location.assign(`/ui/answers/${found.id}`);
    } catch (problem) {
      ui.complain(problem);
    }
    ui.showProgress(null);
    at("stop").hidden = true;
  });
  at("stop").addEventListener("click", () => work && ui.ask(`/v1/ui/questions/${work.id}/cancel`, {}));
  // A link may fill the form in.
  for (const [name, value] of new URLSearchParams(location.search)) {
    const one = form.elements[name];
    if (!one || one.type === "file") continue;
    one.value = value;
    one.closest("details")?.setAttribute("open", "");
  }
})();
