// Two answers beside each other: what was asked differently, and what it brought.
(() => {
  "use strict";
  const { at } = ui;
  const form = at("choose");
  const number = (value) => ({ className: "number", textContent: value === null ? "–" : ui.digits(value) });
  const change = (one) => ({
    className: `number ${one.better === null ? "" : one.better ? "good" : "bad"}`, textContent: one.change === null ? "–" : ui.signed(one.change),
  });
  const show = async () => {
    const { first, second } = Object.fromEntries(new FormData(form));
    history.replaceState(null, "", `?first=${first}&second=${second}`);
    if (!first || !second) return;
    const found = await ui.ask(`/v1/ui/compare?first=${first}&second=${second}`);
    at("asked").replaceChildren(...found.asked.differs.map((one) => ui.row([one.option, one.first ?? "–", one.second ?? "–"])));
    if (!found.asked.differs.length) at("asked").append(ui.row([{ className: "nobody", textContent: "Both were asked alike.", colSpan: 3 }]));
    if (!found.numbers.length) at("numbers").replaceChildren(ui.row([{ className: "nobody", textContent: "These answers share no numbers, or all are equal.", colSpan: 4 }]));
    else at("numbers").replaceChildren(...found.numbers.slice(0, 60).map((one) => ui.row([one.name.replaceAll("_", " "), number(one.first), number(one.second), change(one)])));
    at("strands").hidden = !found.strands.length;
    at("strand-rows").replaceChildren(...found.strands.map((one) => ui.row([one.name, number(one.first), number(one.second), one.second_said ?? ""])));
  };
  const begin = async () => {
    const { answers } = await ui.ask("/v1/ui/recent");
    const asked = new URLSearchParams(location.search);
    for (const name of ["first", "second"]) {
      form.elements[name].append(...answers.map((one) => new Option(one.command_line.slice(9, 120), one.id)));
      // The newest answer is put beside the one that was asked for, or beside the one before it.
      const [newest, before] = answers.filter((one) => one.id !== asked.get("first"));
      const wanted = asked.get(name) ?? (name === "first" ? before : newest)?.id;
      if (wanted && !answers.some((one) => one.id === wanted)) form.elements[name].append(new Option(wanted, wanted));
      form.elements[name].value = wanted ?? "";
    }
    form.addEventListener("change", () => show().catch(ui.complain));
    await show();
  };
  begin().catch(ui.complain);
})();
