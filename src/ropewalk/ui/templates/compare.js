// Two answers beside each other: what was asked differently, and what it brought.
(() => {
  "use strict";
  const { at } = ui;
  const form = at("choose");
  const number = (value, name = "") => ({ className: "number", textContent: value === null ? "–" : written(name, value) });
  // A number of an answer has its unit in its name, or in that of the object that it is in.
  const written = (name, value) => {
    if (/(mfu|gap|share|fraction|utilisation)$/.test(name)) return ui.percent(value);
    if (/(?<!per)_s(\.|$)/.test(name) && value >= 0) return value ? ui.seconds(value) : "0 s";
    if (/_bytes(\.|$)/.test(name)) return ui.bytes(value);
    return Number.isInteger(value) || Math.abs(value) >= 1000 ? ui.count(value) : ui.digits(value);
  };
  const named = (name) => name.replace(/(?<!per)(_s|_bytes)(?=\.|$)/g, "").replace(/per_s$/, "per_second").replace(/^plain\./, "baseline.").replaceAll("_", " ").replaceAll(".", ": ").replace(/\bmfu\b/, "MFU");
  const said = (text) => ({ className: "wide", textContent: text });
  const gain = (value) => ({ className: "number", textContent: `${value.toFixed(2)}×` });
  // What is asked about, then what tells it from others: numbers by the names of their options, names by themselves.
  const short = ({ command, arguments: words }) => {
    const [about, options] = [[], []];
    for (let at = 0; at < words.length; at++) {
      const value = words[at + 1];
      if (!words[at].startsWith("--")) about.push(words[at]);
      else if (value === undefined || value.startsWith("--")) options.push(words[at].slice(2));
      else {
        options.push(/^[\d.]+$/.test(value) ? `${words[at].slice(2)} ${value}` : value);
        at += 1;
      }
    }
    return `${[...command, ...about].join(" ")}${options.length ? `: ${options.join(", ")}` : ""}`.slice(0, 160);
  };
  const noticed = (part) => part === null || Math.abs(part) >= 0.0005; // what is written with one decimal
  // What it brought: the step, where both answers have one, and what runs.
  const brought = ({ numbers, asked, first_said: before, second_said: after }) => {
    const step = numbers.find((one) => one.name === "step_time_s");
    const strategy = before && after ? (before === after ? ` Both run ${after}.` : ` The first runs ${before}; the second runs ${after}.`) : "";
    if (!step) return strategy.trim() || (asked.differs.length ? "" : "Both answer the same question.");
    const longer = !noticed(step.change) ? "as long as" : `${ui.percent(Math.abs(step.change))} ${step.change > 0 ? "longer than" : "shorter than"}`;
    return `A step of the second takes ${ui.seconds(step.second)}, ${longer} the ${ui.seconds(step.first)} of the first.${strategy}`;
  };
  const question = (name, key, line) => {
    const made = document.createElement("li");
    const anchor = ui.link("", `/ui/answers/${key}`);
    anchor.append(ui.command(line));
    made.append(`${name}: `, anchor);
    return made;
  };
  const change = (one) => ({
    className: `number ${one.better === null || !noticed(one.change) ? "" : one.better ? "good" : "bad"}`, textContent: one.change === null ? "–" : ui.signed(one.change),
  });
  const show = async () => {
    const { first, second } = Object.fromEntries(new FormData(form));
    history.replaceState(null, "", `?first=${first}&second=${second}`);
    at("compared").hidden = true;
    if (!first || !second) return;
    const found = await ui.ask(`/v1/ui/compare?first=${first}&second=${second}`);
    ui.complain(null);
    at("compared").hidden = false;
    at("brought").textContent = brought(found);
    at("questions").replaceChildren(question("First", first, found.asked.first), question("Second", second, found.asked.second));
    at("asked").replaceChildren(...found.asked.differs.map((one) => ui.row([one.option, one.first ?? "–", one.second ?? "–"])));
    if (!found.asked.differs.length) at("asked").append(ui.row([{ className: "nobody", textContent: "Both answer the same question.", colSpan: 3 }]));
    if (!found.numbers.length) at("numbers").replaceChildren(ui.row([{ className: "nobody", textContent: "These answers share no numbers, or all are equal.", colSpan: 4 }]));
    else at("numbers").replaceChildren(...found.numbers.slice(0, 60).map((one) => ui.row([said(named(one.name)), number(one.first, one.name), number(one.second, one.name), change(one)])));
    at("strands").hidden = !found.strands.length;
    at("strand-rows").replaceChildren(...found.strands.map((one) => ui.row([one.name, gain(one.first), gain(one.second), said(one.first_said ?? ""), said(one.second_said ?? "")])));
  };
  const begin = async () => {
    const { answers } = await ui.ask("/v1/ui/recent");
    const asked = new URLSearchParams(location.search);
    for (const name of ["first", "second"]) {
      form.elements[name].append(...answers.map((one) => new Option(short(one), one.id)));
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
