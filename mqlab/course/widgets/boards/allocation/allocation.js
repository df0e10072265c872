// The allocation board: who reads which queue over a history of members, the hash ring, and a running group.
// All owners come from the data, which mqlab.rocketmq.client.allocate has made; only what is counted of them is counted here.
import { buttonControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { divisions } from "./divisions.js";
import { element, svgElement } from "../../frame/page/element.js";
import { handover } from "./handover.js";
import { onceChanged } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.ab-grid { max-height: 340px; overflow: auto; }
.mqlab-board .ab-grid th { position: sticky; top: 0; z-index: 1; font-size: 11px; padding: 1px 4px; }
.mqlab-board .ab-grid tbody th { white-space: nowrap; }
.mqlab-board .ab-grid tbody th { position: static; font-weight: 400; }
.mqlab-board .ab-grid td { text-align: center; min-width: 30px; font-size: 14px; }
.mqlab-board .ab-grid tfoot td { font-size: 12px; font-weight: 600; }
.mqlab-board .ab-moved td, .mqlab-board .ab-moved th { background: var(--mq-card); }
.mqlab-board tr.ab-here > * { background: var(--mq-light); }
.ab-grid tbody tr, .ab-rows tbody tr { cursor: pointer; }
.mqlab-board .ab-rows :is(th, td) { font-size: 11px; padding: 1px 4px; }
.ab-rows tr[aria-selected="true"] > * { background: var(--mq-light); font-weight: 600; }
.ab-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.mqlab-board svg.ab-picture { width: 100%; display: block; }
.mqlab-board svg.ab-picture text { font-size: 12px; fill: var(--mq-ink); }
.mqlab-board svg.ab-picture text.ab-quiet { fill: var(--mq-muted); }
.mqlab-board fieldset { border: 1px solid var(--mq-rule); border-radius: 6px; margin: 4px 0; padding: 2px 8px; min-width: 0; }
`;
const CHANGE_WORDS = { join: (name) => `${name} joins`, leave: (name) => `${name} leaves`,
  rename: (name, other) => `${name} comes back as ${other}` };
const LETTERS = "ABCDEFGHIJKL";
const RING_POINTS_NAMED = 60;

function render({ model, el }) {
  const kernel = model.get("kernel") !== false;
  let data = model.get("data");
  let divided = divisions(data);
  let answering = false;
  const history = () => model.get("history");
  const position = () => Math.min(Math.max(model.get("position"), 0), history().length);
  const keyOf = (strategy) => (strategy === "CONSISTENT_HASH" ? `${strategy} ${model.get("virtual_nodes")}` : strategy);
  const letter = (at) => LETTERS[at];
  const ink = (at) => `var(--mq-${1 + (at % 6)})`;

  // 1. Controls.
  const strategy = choiceControl({ label: "Strategy", value: model.get("strategy"), choices: data.strategies,
    onValue: (value) => put({ strategy: value }) });
  const nodes = slider({ label: "Virtual nodes", max: data.virtual_nodes.length - 1, value: 0,
    text: (at) => `${data.virtual_nodes[at]} per member`, onValue: (at) => put({ virtual_nodes: data.virtual_nodes[at] }) });
  const nodesShown = element("span", { "aria-hidden": "true" });
  const number = (label, value, name) => numberControl({ label, value, min: 1, max: data.highest[name], step: 1 });
  const queues = number("Queues on each broker", data.per_broker, "queues");
  const brokers = number("Brokers", data.brokers.length, "brokers");
  const topics = number("Topics", data.topics, "topics");
  const sizes = element("div", { class: "mq-row", role: "group", "aria-label": "Settings" },
    [queues, brokers, topics].map((each) => each.el));
  const sizesNow = () => ({ queues: queues.value(), brokers: brokers.value(), topics: topics.value() });
  const sizesChanged = onceChanged(sizes, sizesNow, (wish) => {
    if (![queues, brokers, topics].every((each) => each.input.reportValidity())) return;
    // Only what differs: brokers that were given by name would lose their names.
    const before = { queues: data.per_broker, brokers: data.brokers.length, topics: data.topics };
    const different = Object.entries(wish).filter(([name, value]) => value !== null && value !== before[name]);
    if (different.length) ask("change", Object.fromEntries(different));
  });
  sizesChanged.known();
  const member = choiceControl({ label: "Member", value: null, choices: [""] });
  const name = textControl({ label: "Name", value: "" });
  name.input.size = 9;
  const act = (make) => () => apply([...history().slice(0, position()), make()]);
  const buttons = [
    buttonControl("Leave", act(() => ["leave", member.value()])),
    buttonControl("Restart under the name", act(() => ["rename", member.value(), name.value()]),
      "The process is restarted and has another client id"),
    buttonControl("Join under the name", act(() => ["join", name.value()])),
    buttonControl("Undo", () => position() && apply(history().slice(0, position() - 1))),
  ];
  name.input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") buttons[2].input.click();
  });
  const moment = slider({ label: "Moment", max: 1, value: 0, text: (at) => momentWords(at),
    onValue: (at) => put({ position: at }) });
  const chosen = choiceControl({ label: "Queue", value: -1, choices: [[-1, "none"]],
    onValue: (at) => put({ queue: at }) });
  const problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  const status = element("div", { role: "status", "aria-live": "polite" });

  // 2. Panels.
  const panel = (title, wide, ...inside) => element("section", { class: "mq-panel", "aria-label": title,
    style: wide ? "flex-basis:100%" : null }, element("h4", {}, title), inside);
  const grid = element("div", { class: "ab-grid", tabindex: 0, role: "region", "aria-label": "Queues and members" });
  const chart = element("div");
  const compared = element("div", { class: "ab-rows", style: "overflow-x:auto" });
  const ring = element("div");
  const ringWords = element("p", { class: "mq-note" });
  const group = handover({ model, ask, kernel, ink, runs: () => data.runs, changes: data.changes });
  const knows = element("p", { class: "mq-note" });
  el.append(element("style", {}, STYLE),
    element("div", { class: "mq-row" }, strategy.el, nodes.el, nodesShown));
  if (kernel) el.append(sizes);
  el.append(
    element("fieldset", {}, element("legend", {}, "Members come and go"),
      element("div", { class: "mq-row" }, member.el, buttons[0].el, name.el, buttons.slice(1).map((each) => each.el))),
    element("div", { class: "mq-row" }, moment.el, chosen.el), problem, status,
    element("div", { class: "mq-panels" },
      panel("Who reads which queue", false,
        element("p", { class: "mq-note" }, "● has it  ◆ got it just now  ○ had it before"), grid),
      panel("The hash ring", true, ring, ringWords),
      panel("Fairness and moves, moment by moment", false,
        element("p", { class: "mq-note" }, "█ moved  ▯ fewest for a fair division  ◇ difference"), chart),
      panel("All strategies over this history", false, compared,
        element("p", { class: "mq-note" }, "Difference: the largest of all moments. Ratio: queues moved, divided by the " +
          "fewest that a fair division needs; below 1, the divisions stayed unfair.")),
      // A page that can play none and has none recorded has nothing to show here.
      kernel || data.runs.length ? panel("While a queue changes hands, in a running group", true, group.el) : ""), knows);

  // 3. Changes: of the state here, of anything else by the kernel.
  function put(values) {
    for (const [each, value] of Object.entries(values)) model.set(each, value);
    model.save_changes();
    draw();
  }

  async function ask(what, args) {
    if (answering) return;
    answering = true;
    problem.hidden = true;
    try {
      await model.ask(what, args);
    } catch (error) {
      tell(error.message);
    }
    answering = false;
    draw();
  }

  function tell(words) {
    problem.textContent = words;
    problem.hidden = false;
  }

  function apply(changes) {
    problem.hidden = true;
    const wrong = divided.impossible(changes);
    if (wrong) return tell(wrong);
    if (divided.knows(changes)) return put({ history: changes, position: changes.length });
    if (kernel) return ask("history", { changes });
    return tell(`Without a kernel this page has these names: ${data.known.join(", ")}.`);
  }

  // 4. Drawing.
  function momentWords(at) {
    if (at === 0 || !history()[at - 1]) return "moment 0: at the beginning";
    const [kind, ...who] = history()[at - 1];
    return `moment ${at}: ${CHANGE_WORDS[kind](...who)}`;
  }

  const queueName = ([topic, broker, id]) =>
    [data.topics > 1 ? topic : "queue", data.brokers.length > 1 ? broker : "", id].filter((part) => part !== "").join(" ");

  function draw() {
    // Traits and data of one change come one after the other: a name may be here before its queues.
    if (!divided.knows(history())) return;
    const at = position();
    const moments = divided.moments(history());
    const steps = divided.measured(keyOf(model.get("strategy")), moments);
    strategy.put(model.get("strategy"));
    nodes.put(data.virtual_nodes.indexOf(model.get("virtual_nodes")));
    nodesShown.textContent = model.get("virtual_nodes");
    nodes.input.disabled = model.get("strategy") !== "CONSISTENT_HASH";
    moment.input.max = history().length;
    moment.input.disabled = history().length === 0;
    moment.put(at);
    fillNames(moments[at]);
    status.textContent = sentence(at, moments, steps);
    drawGrid(moments, steps, at);
    drawChart(steps, at);
    drawCompared(moments);
    drawRing(moments[at], steps[at].owners);
    group.draw(model.get("strategy"), data.in_a_group.includes(model.get("strategy")));
  }

  function fillNames(now) {
    refill(member, divided.members(now).map((place) => [data.known[place], `${letter(place)} ${data.known[place]}`]));
    refill(chosen, [[-1, "none"], ...data.queues.map((queue, at) => [at, queueName(queue)])]);
    chosen.put(model.get("queue"));
    if (!name.value() || divided.members(now).some((place) => data.known[place] === name.value())) {
      name.put(data.known.find((each, place) => !(now & (1 << place))) ?? "");
    }
    buttons[3].off(position() === 0);
    buttons[0].off(now === 0);
    buttons[1].off(now === 0);
  }

  function sentence(at, moments, steps) {
    const step = steps[at];
    if (!step.owners) return `${momentWords(at)}. ${model.get("strategy")} fails for these members.`;
    const lonely = step.owners.filter((mask) => mask === 0).length;
    const several = step.owners.filter((mask) => mask & (mask - 1)).length;
    return `${momentWords(at)}. ${divided.members(moments[at]).length} members, difference ${step.difference}` +
      (at ? `, ${step.moved} of ${data.queues.length} queues moved, ${step.fewest} would do for a fair division` : "") +
      (lonely ? `, ${lonely} queues without a reader` : "") + (several ? `, ${several} queues with several readers` : "") + ".";
  }

  function drawGrid(moments, steps, at) {
    const owners = steps[at].owners;
    if (!owners) return grid.replaceChildren("no division");
    const before = at ? steps[at - 1].owners : null;
    const shown = data.known.map((_, place) => place).filter((place) =>
      (moments[at] | (at ? moments[at - 1] : 0)) & (1 << place));
    const present = (place) => Boolean(moments[at] & (1 << place));
    const head = shown.map((place) => element("th", { scope: "col", style: `border-bottom:3px solid ${ink(place)}` },
      element("div", {}, letter(place)), `${data.known[place]}${present(place) ? "" : " (gone)"}`,
      model.get("strategy").startsWith("MACHINE_ROOM_NEARBY") ? element("div", { class: "mq-note" }, data.rooms[place]) : ""));
    const rows = data.queues.map((queue, number) => {
      const moved = before && before[number] !== owners[number];
      const cells = shown.map((place) => gridCell(owners[number] & (1 << place), before && before[number] & (1 << place),
        Boolean(before), place));
      return element("tr", { class: `${moved ? "ab-moved" : ""}${number === model.get("queue") ? " ab-here" : ""}`,
        onclick: () => put({ queue: number === model.get("queue") ? -1 : number }) },
      element("th", { scope: "row" }, queueName(queue)), cells);
    });
    const counts = shown.map((place) => element("td", {}, present(place) ? String(divided.count(owners, place)) : "–"));
    grid.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, ""), head)),
      element("tbody", {}, rows), element("tfoot", {}, element("tr", {}, element("th", { scope: "row" }, "queues"), counts))));
  }

  function gridCell(has, had, compares, place) {
    const [symbol, words] = has ? (compares && !had ? ["◆", "got it just now"] : ["●", "has it"])
      : had ? ["○", "had it before"] : ["", "no"];
    return element("td", { style: symbol ? `color:${ink(place)}` : null },
      element("span", { "aria-hidden": "true" }, symbol), element("span", { class: "ab-hidden" }, words));
  }

  function drawChart(steps, at) {
    const width = Math.max(260, chart.clientWidth || 380);
    const wide = Math.min(90, (width - 40) / steps.length);
    const highest = Math.max(1, ...steps.map((step) => Math.max(step.moved, step.fewest, step.difference)));
    const y = (value) => 120 - (value / highest) * 92;
    const svg = svgElement("svg", { class: "ab-picture", viewBox: `0 0 ${width} 164`, height: 164, role: "img",
      "aria-label": `Moves and differences: ${steps.map((step, n) => `moment ${n}: moved ${step.moved}, fewest ${step.fewest}, difference ${step.difference}`).join("; ")}` });
    steps.forEach((step, number) => {
      const x = 20 + number * wide;
      const bar = Math.max(4, wide * 0.28);
      if (number === at) svg.append(svgElement("rect", { x: x - 2, y: 20, width: wide - 2, height: 142, fill: "var(--mq-light)", rx: 4 }));
      svg.append(
        svgElement("rect", { x, y: y(step.moved), width: bar, height: 120 - y(step.moved), fill: "var(--mq-1)" }),
        svgElement("rect", { x: x + bar + 2, y: y(step.fewest), width: bar, height: 120 - y(step.fewest), fill: "none",
          stroke: "var(--mq-ink)" }),
        svgElement("path", { d: `M${x + 2.6 * bar} ${y(step.difference) - 5} l5 5 l-5 5 l-5 -5 z`, fill: "none",
          stroke: "var(--mq-4)", "stroke-width": 2 }),
        svgElement("text", { x, y: 136 }, `${step.moved}/${step.fewest}`),
        svgElement("text", { x, y: 150, class: "ab-quiet" }, `◇${step.difference}`),
        svgElement("text", { x, y: 162, class: "ab-quiet" }, String(number)),
        svgElement("rect", { x, y: 18, width: wide, height: 146, fill: "transparent", style: "cursor:pointer",
          onclick: () => put({ position: number }) }));
    });
    svg.append(svgElement("line", { x1: 14, x2: width - 6, y1: 120, y2: 120, stroke: "var(--mq-rule)" }));
    chart.replaceChildren(svg);
  }

  function drawCompared(moments) {
    const head = ["strategy", "difference", "moved", "fewest", "ratio"];
    const rows = data.strategies.map((each) => {
      const steps = divided.measured(keyOf(each), moments);
      const failed = steps.some((step) => !step.owners);
      const [moved, fewest] = ["moved", "fewest"].map((what) => steps.reduce((sum, step) => sum + step[what], 0));
      const cells = failed ? ["fails", "", "", ""] : [Math.max(...steps.map((step) => step.difference)), moved, fewest,
        fewest ? (moved / fewest).toFixed(2) : "–"];
      return element("tr", { "aria-selected": each === model.get("strategy") ? "true" : "false",
        onclick: () => put({ strategy: each }) }, element("th", { scope: "row" }, each),
      cells.map((cell) => element("td", {}, String(cell))));
    });
    compared.replaceChildren(element("table", {}, element("thead", {}, element("tr", {},
      head.map((each) => element("th", { scope: "col" }, each)))), element("tbody", {}, rows)));
  }

  function drawRing(now) {
    const nodesNow = model.get("virtual_nodes");
    const points = data.ring.members.flatMap((hashes, place) => (now & (1 << place)
      ? hashes.slice(0, nodesNow).map((hash) => [hash, place]) : [])).sort((one, other) => one[0] - other[0]);
    const used = model.get("strategy") === "CONSISTENT_HASH";
    const [size, middle, radius] = [520, 260, 198];
    const spot = (hash, away) => {
      const angle = (hash / 2 ** 32) * 2 * Math.PI - Math.PI / 2;
      return [middle + away * Math.cos(angle), middle + away * Math.sin(angle)].map((value) => value.toFixed(1));
    };
    const svg = svgElement("svg", { class: "ab-picture", viewBox: `0 0 ${size} ${size}`, style: "max-width:520px;margin:auto",
      role: "img", "aria-label": `Ring with ${points.length} points of ${divided.members(now).length} members and ${data.queues.length} queues` });
    svg.append(svgElement("circle", { cx: middle, cy: middle, r: radius, fill: "none", stroke: "var(--mq-rule)" }));
    for (const [at, [hash, place]] of points.entries()) {
      const [x, y] = spot(hash, radius);
      const [ox, oy] = spot(hash, radius - 9);
      svg.append(svgElement("line", { x1: ox, y1: oy, x2: x, y2: y, stroke: ink(place), "stroke-width": 3 }));
      if (points.length <= RING_POINTS_NAMED) {
        const [tx, ty] = spot(hash, radius - 18 - (at % 3) * 13);
        svg.append(svgElement("text", { x: tx, y: Number(ty) + 4, "text-anchor": "middle", style: `fill:${ink(place)}` }, letter(place)));
      }
    }
    const inOrder = data.ring.queues.map((hash, number) => [hash, number]).sort((one, other) => one[0] - other[0]);
    inOrder.forEach(([hash, number], turn) => {
      const here = number === model.get("queue");
      const [x, y] = spot(hash, radius + 8);
      const [tx, ty] = spot(hash, radius + 22 + (turn % 3) * 14);
      svg.append(svgElement("circle", { cx: x, cy: y, r: here ? 6 : 3.5, fill: here ? "var(--mq-focus)" : "var(--mq-ink)",
        style: "cursor:pointer", onclick: () => put({ queue: number }) }));
      if (data.queues.length <= 32 || here) svg.append(svgElement("text", { x: tx, y: Number(ty) + 4, "text-anchor": "middle" }, data.queues[number][2]));
    });
    const queue = model.get("queue");
    if (queue >= 0 && points.length) {
      const next = points.find(([hash]) => hash >= data.ring.queues[queue]) ?? points[0];
      const [x1, y1] = spot(data.ring.queues[queue], radius + 8);
      const [x2, y2] = spot(next[0], radius + 8);
      const turn = next[0] - data.ring.queues[queue] + (next[0] < data.ring.queues[queue] ? 2 ** 32 : 0);
      svg.append(svgElement("path", { d: `M${x1} ${y1} A${radius + 8} ${radius + 8} 0 ${turn > 2 ** 31 ? 1 : 0} 1 ${x2} ${y2}`,
        fill: "none", stroke: "var(--mq-focus)", "stroke-width": 3 }));
      ringWords.textContent = `${queueName(data.queues[queue])} has hash ${data.ring.queues[queue]}; the next point, clockwise, is ` +
        `${next[0]}, of ${letter(next[1])} ${data.known[next[1]]}.` + (used ? "" : " (Only CONSISTENT_HASH uses the ring.)");
    } else {
      ringWords.textContent = points.length > RING_POINTS_NAMED ? "Too many points for letters; colours as in the grid."
        : "Letters are the members' points, numbers the queues. Choose a queue to see its way to its owner." +
          (used ? "" : " Only CONSISTENT_HASH uses the ring.");
    }
    ring.replaceChildren(svg);
  }

  function knowledge() {
    if (kernel) return "";
    const names = data.every_set ? `${data.known.join(", ")} may join, leave and be renamed in any order`
      : "the moments of this history and one change after each";
    return `Without a kernel this page has, computed beforehand: all strategies, ${data.virtual_nodes.join(", ")} virtual ` +
      `nodes, ${data.queues.length} queues; ${names}; ${data.runs.length} running groups. Run the cell for other numbers, names and times.`;
  }

  function refill(control, pairs) {
    const before = control.value();
    const texts = pairs.map(([, text]) => text).join("\n");
    if (control.texts === texts) return;
    control.texts = texts;
    control.refill(pairs);
    control.put(before);
  }

  model.on("change:data", () => {
    data = model.get("data");
    divided = divisions(data);
    knows.textContent = knowledge();
    nodes.input.max = data.virtual_nodes.length - 1;
    queues.put(data.per_broker);
    brokers.put(data.brokers.length);
    topics.put(data.topics);
    sizesChanged.known();
    refill(strategy, data.strategies.map((each) => [each, each]));
    group.renew();
    draw();
  });
  ["strategy", "virtual_nodes", "position", "history", "queue"].forEach((each) => model.on(`change:${each}`, draw));
  const widths = new ResizeObserver(() => { draw(); group.drawRun(); });
  [chart, group.box].forEach((each) => widths.observe(each));
  knows.textContent = knowledge();
  draw();
  return () => widths.disconnect();
}

export default { render };
