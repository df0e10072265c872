// The settings of a board over recorded runs: one control each, and the run that they name together. Without a kernel
// only those values can be chosen that a recorded run has.
import { chosenRun } from "./chosen_run.js";
import { choiceControl } from "./controls.js";
import { element } from "./element.js";

export function keyOf(names, settings) {
  return names.map((name) => String(settings[name])).join("|");
}

export function isRecorded(runs, at, value) {
  return Object.keys(runs).some((key) => key.split("|")[at] === String(value));
}

// labels: setting -> the label of its choice. more: setting -> (value, onValue) => a control of another kind; these
// come last in the names of runs. words(name, value): the text of a choice.
export function recordedSettings({ model, labels, words = (name, value) => value, more = {}, show }) {
  const kernel = model.get("kernel") !== false;
  const { now, choices, runs } = model.get("data");
  const names = [...Object.keys(labels), ...Object.keys(more)];
  const runOf = (settings) => model.get("data").runs[keyOf(names, settings)];
  const chosen = chosenRun({ model, kernel, recorded: runOf, show });
  const controls = {};
  const wish = () => chosen.choose(Object.fromEntries(names.map((name) => [name, controls[name].value()])));
  for (const [at, name] of Object.keys(labels).entries()) {
    const known = choices[name].filter((value) => kernel || isRecorded(runs, at, value));
    const values = [...new Set([...known, now[name]])];
    if (values.every((value) => typeof value === "number")) values.sort((one, other) => one - other);
    controls[name] = choiceControl({ label: labels[name], value: now[name],
      choices: values.map((value) => [value, words(name, value)]), onValue: wish });
  }
  for (const [name, control] of Object.entries(more)) controls[name] = control(now[name], wish);
  const showNow = () => show(model.get("data").now, runOf(model.get("data").now));
  return {
    runOf,
    put: (settings) => names.forEach((name) => controls[name].put(settings[name])),
    row: element("div", { class: "mq-row", role: "group", "aria-label": "Settings" },
      names.map((name) => controls[name].el)),
    problem: chosen.problem,
    rest: () => chosen.rest(Object.keys(runs).length),
    // Shows the run of now, and follows the model and the width of a box. Returns what ends that.
    begin({ box, follow, draw, follows = ["moment_ms"] }) {
      for (const name of follows) model.on(`change:${name}`, follow);
      model.on("change:data", showNow);
      const sizes = new ResizeObserver(draw);
      sizes.observe(box);
      showNow();
      return () => sizes.disconnect();
    },
  };
}
