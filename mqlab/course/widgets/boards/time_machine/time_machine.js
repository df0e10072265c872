// The time machine: a story's stops under a slider, with its space-time picture, queues, offsets and bytes linked.
import { buttonControl, checkControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { afterText } from "../../frame/page/durations.js";
import { element } from "../../frame/page/element.js";
import { linkBook } from "./links.js";
import { moreSettings, toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";
import { spaceTime } from "./space_time.js";
import { storePanels } from "./store_panels.js";

const PLAY_MS = 900;
const SAVE_MS = 150;
const FAULTS = [["kill", "kill"], ["power_off", "cut the power of"], ["slow", "slow the links of"],
  ["drop", "drop the frame"]];

// Nothing changes its height from stop to stop: the page below stays where it is, and is not laid out again.
const MACHINE_STYLE = `
.mqlab-board .mq-status { font-weight: bold; height: 4.5em; overflow-y: auto; margin: 4px 0; contain: strict; }
.mqlab-board .mq-way { height: 3em; overflow-y: auto; contain: strict; }
`;

export default {
  render({ model, el }) {
    const machine = { model, el, branches: {}, links: null, playing: null, at: null, saving: null };
    const parts = frameOfMachine(machine);
    machine.parts = parts;
    const begin = () => {
      const { story, fork } = model.get("data");
      machine.links = linkBook();
      machine.branches = { story: branch(machine, story, "The story", fork ? fork.first[0] : null) };
      if (fork) machine.branches.fork = branch(machine, fork.recording, `The fork: ${fork.words}`, fork.first[1]);
      parts.pictures.replaceChildren(...Object.values(machine.branches).map((each) => each.panel));
      parts.rebuild();
      go(machine, model.get("position"));
    };
    const moved = () => {
      if (model.get("position") === machine.at) return;
      // The kernel repeats what it was told before: the hand has moved on since, and that is not saved yet.
      if (machine.saving !== null) model.set("position", machine.at);
      else go(machine, model.get("position"));
    };
    const lit = () => light(machine);
    model.on("change:data", begin);
    model.on("change:position", moved);
    model.on("change:selection", lit);
    begin();
    return () => {
      clearInterval(machine.playing);
      clearTimeout(machine.saving);
      model.off("change:data", begin);
      model.off("change:position", moved);
      model.off("change:selection", lit);
    };
  },
};

const lastStop = (machine) => current(machine).data.steps.length;
const current = (machine) => machine.branches[machine.model.get("branch")] || machine.branches.story;

// The kernel learns where the hand came to rest, not every place that it passed.
function saveSoon(machine) {
  clearTimeout(machine.saving);
  machine.saving = setTimeout(() => save(machine), SAVE_MS);
}

function save(machine) {
  clearTimeout(machine.saving);
  machine.saving = null;
  machine.model.save_changes();
}

function keep(machine, values) {
  for (const [name, value] of Object.entries(values)) machine.model.set(name, value);
  save(machine);
}

// One played story: its data, its picture, and the panels that show what was in the store at a stop.
function branch(machine, data, title, marked) {
  const made = { data, title };
  made.picture = spaceTime({ happened: data.happened, name: title, links: machine.links, marked,
    onMoment: (index) => pick(machine, made, index) });
  made.store = storePanels({ data, links: machine.links, onSelect: (links) => select(machine, links) });
  const problem = data.error ? element("p", { class: "mq-error", role: "alert" },
    `The story ended: ${data.error}`) : null;
  made.panel = element("section", { class: "mq-panel", "aria-label": title, style: "flex-basis:480px" },
    element("h4", {}, title), problem, made.picture.el);
  return made;
}

function frameOfMachine(machine) {
  const parts = {};
  const move = (step) => () => go(machine, (machine.model.get("position") || 0) + step);
  parts.status = element("p", { role: "status", "aria-live": "polite", class: "mq-status" });
  parts.way = element("p", { class: "mq-note mq-way" });
  parts.pictures = element("div", { class: "mq-panels" });
  parts.store = element("div", { class: "mq-panels", style: "margin-top:8px" });
  parts.moves = element("div", { class: "mq-row" });
  parts.kernel = element("div", {});
  parts.problem = element("div", { role: "alert" });
  parts.play = buttonControl("Play", () => playOrPause(machine, parts));
  const buttons = [["Start", -Infinity], ["Back", -1], ["Step", 1], ["End", Infinity]]
    .map(([label, step]) => buttonControl(label, move(step)).el);
  parts.rebuild = () => {
    const text = (value) => label(machine, value);
    parts.slider = slider({ label: "Stop", max: lastStop(machine), value: machine.model.get("position"), text,
      onValue: (value) => go(machine, value) });
    const branches = Object.entries(machine.branches).map(([name, made]) => [name, made.title]);
    const choice = branches.length < 2 ? null : choiceControl({ label: "Look at", choices: branches,
      value: machine.model.get("branch"), onValue: (name) => lookAt(machine, name) });
    parts.moves.replaceChildren(...buttons, parts.play.el, parts.slider.el, ...(choice ? [choice.el] : []));
    parts.targets = null;
    parts.kernel.replaceChildren(...kernelRows(machine, parts)); // what holds it stays as it was, open or closed
  };
  machine.el.append(element("style", {}, MACHINE_STYLE),
    toTry("press Step, or click a moment: what belongs to it lights up. Under More settings you can make a fault here."),
    parts.moves, moreSettings(parts.kernel), parts.problem, parts.status,
    parts.pictures, parts.way, parts.store);
  return parts;
}

function label(machine, position) {
  const { data, picture } = current(machine);
  const place = `stop ${position} of ${data.steps.length}`;
  const step = data.steps[position - 1];
  const shown = data.happened.moments.filter((moment) => moment[0] === step);
  if (!shown.length) return `${place}: nothing has happened yet`;
  const texts = shown.map((moment) => picture.words(moment).split(", ").slice(1).join(", "));
  return `${place}, ${afterText(shown[0][1])}, step ${step}: ${texts.join("; ")}`;
}

// Everything follows the position: both pictures, the panels of the branch that is looked at, slider and status.
function go(machine, wanted) {
  const { parts } = machine;
  const position = Math.max(0, Math.min(wanted, lastStop(machine)));
  const made = current(machine);
  const step = made.data.steps[position - 1] ?? -1;
  machine.at = position;
  if (machine.model.get("position") !== position) {
    machine.model.set("position", position);
    saveSoon(machine);
  }
  parts.slider.put(position);
  parts.status.textContent = label(machine, position);
  const ms = step < 0 ? -1 : made.data.happened.moments[made.picture.upTo(step) - 1][1];
  for (const other of Object.values(machine.branches)) {
    other.picture.show(other === made ? step : stepAt(other.data, ms));
  }
  const way = made.picture.underWay(step);
  parts.way.textContent = way.length ? `Under way: ${way.join("; ")}` : "";
  if (parts.store.firstChild !== made.store.el) parts.store.replaceChildren(made.store.el);
  made.store.show(position);
  if (position && made.data.exact[position - 1] === 0 && machine.model.get("kernel")) askForViews(machine, made,
    position);
  light(machine);
  if (parts.targets) parts.targets();
}

// The last step of a branch at a time: the other branch has other steps.
function stepAt(data, ms) {
  const past = data.happened.moments.filter((moment) => moment[1] <= ms);
  return past.length ? past.at(-1)[0] : -1;
}

let viewsWaiting = null;
// A stop without views of its own shows the stop before it at once; the kernel is asked when the hand rests.
function askForViews(machine, made, position) {
  clearTimeout(viewsWaiting);
  viewsWaiting = setTimeout(async () => {
    if (made !== machine.branches.story) return;
    const found = await machine.model.ask("views", { position });
    made.store.keep(position, found);
    if (machine.model.get("position") === position) made.store.show(position);
  }, 400);
}

function pick(machine, made, index) {
  const name = Object.keys(machine.branches).find((each) => machine.branches[each] === made);
  const moment = made.data.happened.moments[index];
  const position = made.data.steps.indexOf(moment[0]) + 1;
  const links = moment[7].map((number) => made.data.happened.texts[number]);
  if (machine.branches[name] !== current(machine)) lookAt(machine, name);
  keep(machine, { selection: links });
  go(machine, position);
}

function select(machine, links) {
  const same = JSON.stringify(machine.model.get("selection")) === JSON.stringify(links);
  keep(machine, { selection: same ? [] : links });
}

function light(machine) {
  const selection = machine.model.get("selection") || [];
  machine.links.light(selection);
  current(machine).store.select(selection);
}

// The other branch at the same time.
function lookAt(machine, name) {
  const before = current(machine);
  const step = before.data.steps[machine.at - 1] ?? -1;
  const ms = step < 0 ? -1 : before.data.happened.moments[before.picture.upTo(step) - 1][1];
  machine.at = machine.branches[name].data.steps.indexOf(stepAt(machine.branches[name].data, ms)) + 1;
  keep(machine, { branch: name, position: machine.at });
  machine.parts.rebuild();
  go(machine, machine.at);
}

function playOrPause(machine, parts) {
  const on = machine.playing === null;
  parts.play.el.textContent = on ? "Pause" : "Play";
  if (!on) {
    clearInterval(machine.playing);
    machine.playing = null;
    return;
  }
  machine.playing = setInterval(() => {
    if (machine.model.get("position") >= lastStop(machine)) playOrPause(machine, parts);
    else go(machine, machine.model.get("position") + 1);
  }, PLAY_MS);
}

// What needs the kernel: other parameters, faults, and the Lab itself at this stop.
function kernelRows(machine, parts) {
  if (machine.model.get("kernel") === false) {
    return [element("p", { class: "mq-note" }, "Faults and other settings need a kernel: open the notebook and run the cell.")];
  }
  const ask = async (name, args) => {
    // A place that is still to be saved must not reach the kernel after its answer has set another.
    save(machine);
    parts.problem.replaceChildren();
    try {
      return await machine.model.ask(name, args);
    } catch (problem) {
      parts.problem.replaceChildren(element("p", { class: "mq-error" }, problem.message));
      return null;
    }
  };
  const lab = buttonControl("Bring the Lab here", async () => {
    const answer = await ask("lab", { position: machine.model.get("position"), branch: machine.model.get("branch") });
    if (answer) parts.problem.replaceChildren(element("p", { class: "mq-note", role: "status" }, answer.words));
  }, "explorer.lab is then the world at this stop");
  return [parameterRow(machine, parts, ask), faultRow(machine, parts, ask), element("div", { class: "mq-row" }, lab.el)];
}

function parameterRow(machine, parts, ask) {
  const knobs = machine.model.get("data").knobs;
  const controls = knobs.map((knob) => [knob.name, { number: numberControl, text: textControl, check: checkControl,
    choice: choiceControl }[knob.kind](knob)]);
  const again = buttonControl("Play again", async () => {
    const parameters = Object.fromEntries(controls.map(([name, control]) => [name, control.value()]));
    await ask("play", { seed: parameters[""] ?? 0, parameters: Object.fromEntries(
      Object.entries(parameters).filter(([name]) => name !== "")) });
  });
  return element("div", { class: "mq-row", role: "group", "aria-label": "Settings of the story" },
    controls.map(([, control]) => control.el), again.el);
}

function faultRow(machine, parts, ask) {
  const what = choiceControl({ label: "From this stop on:", choices: FAULTS, value: "kill", onValue: () => refill() });
  const holder = element("span", { class: "mq-field" });
  const delay = textControl({ label: "by", value: "200ms" });
  const back = textControl({ label: "and start it again after", value: "" });
  back.input.placeholder = "never";
  let [target, shown] = [null, ""];
  // The targets follow the fault and, for frames, the position.
  const refill = () => {
    const kind = what.value();
    const { data } = current(machine);
    const choices = kind === "drop" ? nearFrames(machine) : data.nodes.map(([name]) => name);
    const key = JSON.stringify([kind, choices]);
    if (key !== shown) {
      target = choiceControl({ label: kind === "drop" ? "frame" : "node", choices,
        value: kind === "drop" ? choices[0]?.[0] : (data.nodes.find(([,
        role]) => role === "broker") || data.nodes[0])[0] });
      holder.replaceChildren(target.el);
      shown = key;
    }
    delay.el.style.display = kind === "slow" ? "" : "none";
    back.el.style.display = kind === "kill" || kind === "power_off" ? "" : "none";
    make.el.disabled = !choices.length;
    make.el.textContent = current(machine) === machine.branches.story ? "Make this fault" : "Make this fault in the fork";
  };
  // The kernel's answer to both is new data with the fork or without it.
  const make = buttonControl("Make this fault", () => ask("fork", { kind: what.value(),
    position: machine.model.get("position"), target: target.value(), delay: delay.value(), back: back.value() }));
  const forget = buttonControl("Forget the fork", () => ask("forget", {}));
  parts.targets = refill;
  return element("div", { class: "mq-row", role: "group", "aria-label": "Faults" }, what.el, holder, delay.el, back.el,
    make.el,
    machine.branches.fork ? forget.el : null);
}

// The frames of this stop and the next few, each with the number of its moment.
function nearFrames(machine) {
  const { data, picture } = current(machine);
  const step = data.steps[machine.model.get("position") - 1] ?? -1;
  const { moments, lanes, texts } = data.happened;
  return moments.map((moment, index) => [moment, index])
    .slice(Math.max(0, picture.upTo(step - 1)))
    .filter(([moment]) => moment[3] >= 0 && moment[8].length && moment[0] >= step).slice(0, 8)
    .map(([moment, index]) => [index, `${texts[moment[5]]}, ${lanes[moment[2]]} to ${lanes[moment[3]]}`]);
}
