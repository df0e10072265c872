// The allocation board: who reads which queue over a history of members, the hash ring, and a running group.
// All owners come from the data, which mqlab.rocketmq.client.allocate has made; only what is counted of them is counted here.
import { buttonControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { count, divisions } from "./divisions.js";
import { counted } from "../../frame/page/counted.js";
import { element, svgElement } from "../../frame/page/element.js";
import { handover } from "./handover.js";
import { inKnobWords, moreSettings, onceChanged, toTry } from "../../frame/page/settings.js";
import { RING_POINTS_NAMED, ink, letter, nextPoint, ringPicture, ringPoints } from "./ring.js";
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
.mqlab-board .mq-panel:has(> .ab-rows) { flex-basis: 400px; }
.ab-rows tr[aria-selected="true"] > * { background: var(--mq-light); font-weight: 600; }
.ab-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.mqlab-board svg.ab-picture { width: 100%; display: block; }
.mqlab-board svg.ab-picture text { font-size: 12px; fill: var(--mq-ink); }
.mqlab-board svg.ab-picture text.ab-quiet { fill: var(--mq-muted); }
.mqlab-board fieldset { border: 1px solid var(--mq-rule); border-radius: 6px; margin: 4px 0; padding: 2px 8px; min-width: 0; }
`;
const CHANGE_WORDS = { join: (name) => `${name} joins`, leave: (name) => `${name} leaves`,
  rename: (name, other) => `${name} comes back as ${other}` };
function panel(title, wide, ...inside) {
  return element("section", { class: "mq-panel", "aria-label": title,
  style: wide ? "flex-basis:100%" : null }, element("h4", {}, title), inside);
}

function gridCell(has, had, compares, place) {
  const [symbol, words] = has ? (compares && !had ? ["◆", "got it just now"] : ["●", "has it"])
    : had ? ["○", "had it before"] : ["", "no"];
  return element("td", { style: symbol ? `color:${ink(place)}` : null },
    element("span", { "aria-hidden": "true" }, symbol), element("span", { class: "ab-hidden" }, words));
}

function refill(control, pairs) {
  const before = control.value();
  const texts = pairs.map(([, text]) => text).join("\n");
  if (control.texts === texts) return;
  control.texts = texts;
  control.refill(pairs);
  control.put(before);
}

class Allocation {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makeControls();
    this.makePanels();
  }

  readData() {
    this.kernel = this.model.get("kernel") !== false;
    this.data = this.model.get("data");
    this.divided = divisions(this.data);
    this.answering = false;
  }

  makeControls() {
    this.strategy = choiceControl({ label: "Strategy", value: this.model.get("strategy"), choices: this.data.strategies,
      onValue: (value) => this.put({ strategy: value }) });
    this.nodes = slider({ label: "Virtual nodes", max: this.data.virtual_nodes.length - 1, value: 0,
      text: (at) => `${this.data.virtual_nodes[at]} per member`,
      onValue: (at) => this.put({ virtual_nodes: this.data.virtual_nodes[at] }) });
    this.nodesShown = element("span", { "aria-hidden": "true" });
    const number = (label, value, name) => numberControl({ label, value, min: 1, max: this.data.highest[name],
      step: 1 });
    this.queues = number("Queues on each broker", this.data.per_broker, "queues");
    this.brokers = number("Brokers", this.data.brokers.length, "brokers");
    this.topics = number("Topics", this.data.topics, "topics");
    this.sizes = element("div", { class: "mq-row", role: "group", "aria-label": "Settings" },
      [this.queues, this.brokers, this.topics].map((each) => each.el));
    const sizesNow = () => ({ queues: this.queues.value(), brokers: this.brokers.value(),
      topics: this.topics.value() });
    this.sizesChanged = onceChanged(this.sizes, sizesNow, (wish) => {
      if (![this.queues, this.brokers, this.topics].every((each) => each.input.reportValidity())) return;
      // Only what differs: brokers that were given by name would lose their names.
      const before = { queues: this.data.per_broker, brokers: this.data.brokers.length, topics: this.data.topics };
      const different = Object.entries(wish).filter(([name, value]) => value !== null && value !== before[name]);
      if (different.length) this.ask("change", Object.fromEntries(different));
    });
    this.sizesChanged.known();
    this.member = choiceControl({ label: "Member", value: null, choices: [""] });
    this.name = textControl({ label: "Name", value: "" });
    this.name.input.size = 9;
    const act = (make) => () => this.apply([...this.history().slice(0, this.position()), make()]);
    this.buttons = [
      buttonControl("Leave", act(() => ["leave", this.member.value()])),
      buttonControl("Restart under the name", act(() => ["rename", this.member.value(), this.name.value()]),
        "The process is restarted and has another client id"),
      buttonControl("Join under the name", act(() => ["join", this.name.value()])),
      buttonControl("Undo", () => this.position() && this.apply(this.history().slice(0, this.position() - 1))),
    ];
    this.name.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.buttons[2].input.click();
    });
    this.moment = slider({ label: "Moment", max: 1, value: 0, text: (at) => this.momentWords(at),
      onValue: (at) => this.put({ position: at }) });
    this.chosen = choiceControl({ label: "Queue", value: -1, choices: [[-1, "none"]],
      onValue: (at) => this.put({ queue: at }) });
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
    this.status = element("div", { role: "status", "aria-live": "polite" });
  }

  makePanels() {
    this.grid = element("div", { class: "ab-grid", tabindex: 0, role: "region", "aria-label": "Queues and members" });
    this.chart = element("div");
    this.compared = element("div", { class: "ab-rows", style: "overflow-x:auto" });
    this.ring = element("div");
    this.ringWords = element("p", { class: "mq-note" });
    this.group = handover({ model: this.model, ask: (what, args) => this.ask(what, args), kernel: this.kernel, ink,
      runs: () => this.data.runs, changes: this.data.changes });
    this.knows = element("p", { class: "mq-note" });
    const nodes = element("div", { class: "mq-row" }, this.nodes.el, this.nodesShown);
    this.el.append(element("style", {}, STYLE),
      toTry("let a member leave, then choose other strategies: which one moves the fewest queues?"),
      element("div", { class: "mq-row" }, this.strategy.el),
      moreSettings(nodes, this.kernel ? this.sizes : null),
      element("fieldset", {}, element("legend", {}, "Members come and go"),
        element("div", { class: "mq-row" }, this.member.el, this.buttons[0].el, this.name.el,
        this.buttons.slice(1).map((each) => each.el))),
      element("div", { class: "mq-row" }, this.moment.el, this.chosen.el), this.problem, this.status,
      element("div", { class: "mq-panels" },
        panel("Who reads which queue", false,
          element("p", { class: "mq-note" }, "● has it  ◆ got it just now  ○ had it before"), this.grid),
        panel("The hash ring", true, this.ring, this.ringWords),
        panel("Fairness and moves, moment by moment", false,
          element("p", { class: "mq-note" }, "█ moved  ▯ fewest for a fair division  ◇ difference"), this.chart),
        panel("All strategies over this history", false, this.compared,
          element("p", { class: "mq-note" }, "Difference: the largest of all moments. Ratio: queues moved, divided by the " +
            "fewest that a fair division needs; below 1, the divisions stayed unfair.")),
        // A page that can play none and has none recorded has nothing to show here.
        this.kernel || this.data.runs.length ? panel("While a queue changes hands, in a running group", true,
          this.group.el) : ""), this.knows);
  }

  begin() {
    this.model.on("change:data", () => {
      this.data = this.model.get("data");
      this.divided = divisions(this.data);
      this.knows.textContent = this.knowledge();
      this.nodes.input.max = this.data.virtual_nodes.length - 1;
      this.queues.put(this.data.per_broker);
      this.brokers.put(this.data.brokers.length);
      this.topics.put(this.data.topics);
      this.sizesChanged.known();
      refill(this.strategy, this.data.strategies.map((each) => [each, each]));
      this.group.renew();
      this.draw();
    });
    ["strategy", "virtual_nodes", "position", "history", "queue"].forEach((each) => this.model.on(`change:${each}`,
      () => this.draw()));
    const widths = new ResizeObserver(() => { this.draw(); this.group.drawRun(); });
    [this.chart, this.group.box].forEach((each) => widths.observe(each));
    this.knows.textContent = this.knowledge();
    this.draw();
    return () => widths.disconnect();
  }

  history() {
    return this.model.get("history");
  }

  position() {
    return Math.min(Math.max(this.model.get("position"), 0), this.history().length);
  }

  keyOf(strategy) {
    return strategy === "CONSISTENT_HASH" ? `${strategy} ${this.model.get("virtual_nodes")}` : strategy;
  }

  put(values) {
    for (const [each, value] of Object.entries(values)) this.model.set(each, value);
    this.model.save_changes();
    this.draw();
  }

  async ask(what, args) {
    if (this.answering) return;
    this.answering = true;
    this.problem.hidden = true;
    try {
      await this.model.ask(what, args);
    } catch (error) {
      this.tell(inKnobWords(error.message, { queues: this.queues, brokers: this.brokers, topics: this.topics }));
    }
    this.answering = false;
    this.draw();
  }

  tell(words) {
    this.problem.textContent = words;
    this.problem.hidden = false;
  }

  apply(changes) {
    this.problem.hidden = true;
    const wrong = this.divided.impossible(changes);
    if (wrong) return this.tell(wrong);
    if (this.divided.knows(changes)) return this.put({ history: changes, position: changes.length });
    if (this.kernel) return this.ask("history", { changes });
    return this.tell(`Without a kernel this page has these names: ${this.data.known.join(", ")}.`);
  }

  momentWords(at) {
    if (at === 0 || !this.history()[at - 1]) return "moment 0: at the beginning";
    const [kind, ...who] = this.history()[at - 1];
    return `moment ${at}: ${CHANGE_WORDS[kind](...who)}`;
  }

  queueName([topic, broker, id]) {
    return [this.data.topics > 1 ? topic : "queue", this.data.brokers.length > 1 ? broker : "",
      id].filter((part) => part !== "").join(" ");
  }

  draw() {
    // Traits and data of one change come one after the other: a name may be here before its queues.
    if (!this.divided.knows(this.history())) return;
    const at = this.position();
    const moments = this.divided.moments(this.history());
    const steps = this.divided.measured(this.keyOf(this.model.get("strategy")), moments);
    this.strategy.put(this.model.get("strategy"));
    this.nodes.put(this.data.virtual_nodes.indexOf(this.model.get("virtual_nodes")));
    this.nodesShown.textContent = this.model.get("virtual_nodes");
    this.nodes.input.disabled = this.model.get("strategy") !== "CONSISTENT_HASH";
    this.moment.input.max = this.history().length;
    this.moment.input.disabled = this.history().length === 0;
    this.moment.put(at);
    this.fillNames(moments[at]);
    this.status.textContent = this.sentence(at, moments, steps);
    this.drawGrid(moments, steps, at);
    this.drawChart(steps, at);
    this.drawCompared(moments);
    this.drawRing(moments[at], steps[at].owners);
    this.group.draw(this.model.get("strategy"), this.data.in_a_group.includes(this.model.get("strategy")));
  }

  fillNames(now) {
    refill(this.member, this.divided.members(now).map((place) => [this.data.known[place],
      `${letter(place)} ${this.data.known[place]}`]));
    refill(this.chosen, [[-1, "none"], ...this.data.queues.map((queue, at) => [at, this.queueName(queue)])]);
    this.chosen.put(this.model.get("queue"));
    if (!this.name.value() || this.divided.members(now).some((place) => this.data.known[place] === this.name.value())) {
      this.name.put(this.data.known.find((each, place) => !(now & (1 << place))) ?? "");
    }
    this.buttons[3].off(this.position() === 0);
    this.buttons[0].off(now === 0);
    this.buttons[1].off(now === 0);
  }

  sentence(at, moments, steps) {
    const step = steps[at];
    if (!step.owners) return `${this.momentWords(at)}. ${this.model.get("strategy")} fails for these members.`;
    const lonely = step.owners.filter((mask) => mask === 0).length;
    const several = step.owners.filter((mask) => mask & (mask - 1)).length;
    return `${this.momentWords(at)}. ${counted(this.divided.members(moments[at]).length, "member")}, difference ${step.difference}` +
      (at ? `, ${step.moved} of ${this.data.queues.length} queues moved, ${step.fewest} would do for a fair division` : "") +
      (lonely ? `, ${counted(lonely, "queue")} without a reader` : "") + (several ? `, ${counted(several, "queue")} with several readers` : "") + ".";
  }

  drawGrid(moments, steps, at) {
    const owners = steps[at].owners;
    if (!owners) return this.grid.replaceChildren("no division");
    const before = at ? steps[at - 1].owners : null;
    const shown = this.data.known.map((_, place) => place).filter((place) =>
      (moments[at] | (at ? moments[at - 1] : 0)) & (1 << place));
    const present = (place) => Boolean(moments[at] & (1 << place));
    const head = shown.map((place) => element("th", { scope: "col", style: `border-bottom:3px solid ${ink(place)}` },
      element("div", {}, letter(place)), `${this.data.known[place]}${present(place) ? "" : " (gone)"}`,
      this.model.get("strategy").startsWith("MACHINE_ROOM_NEARBY") ? element("div", { class: "mq-note" },
      this.data.rooms[place]) : ""));
    const rows = this.data.queues.map((queue, number) => {
      const moved = before && before[number] !== owners[number];
      const cells = shown.map((place) => gridCell(owners[number] & (1 << place),
        before && before[number] & (1 << place),
        Boolean(before), place));
      return element("tr", { class: `${moved ? "ab-moved" : ""}${number === this.model.get("queue") ? " ab-here" : ""}`,
        onclick: () => this.put({ queue: number === this.model.get("queue") ? -1 : number }) },
      element("th", { scope: "row" }, this.queueName(queue)), cells);
    });
    const counts = shown.map((place) => element("td", {}, present(place) ? String(count(owners, place)) : "–"));
    this.grid.replaceChildren(element("table", {}, element("thead", {}, element("tr", {},
      element("th", { scope: "col" }, ""), head)),
      element("tbody", {}, rows), element("tfoot", {}, element("tr", {}, element("th", { scope: "row" }, "queues"),
      counts))));
  }

  drawChart(steps, at) {
    const width = Math.max(260, this.chart.clientWidth || 380);
    const wide = Math.min(90, (width - 40) / steps.length);
    const highest = Math.max(1, ...steps.map((step) => Math.max(step.moved, step.fewest, step.difference)));
    const y = (value) => 120 - (value / highest) * 92;
    const svg = svgElement("svg", { class: "ab-picture", viewBox: `0 0 ${width} 164`, height: 164, role: "img",
      "aria-label": `Moves and differences: ${steps.map((step, n) => `moment ${n}: moved ${step.moved}, fewest ${step.fewest}, difference ${step.difference}`).join("; ")}` });
    steps.forEach((step, number) => {
      const x = 20 + number * wide;
      const bar = Math.max(4, wide * 0.28);
      if (number === at) svg.append(svgElement("rect", { x: x - 2, y: 20, width: wide - 2, height: 142,
        fill: "var(--mq-light)", rx: 4 }));
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
          onclick: () => this.put({ position: number }) }));
    });
    svg.append(svgElement("line", { x1: 14, x2: width - 6, y1: 120, y2: 120, stroke: "var(--mq-rule)" }));
    this.chart.replaceChildren(svg);
  }

  drawCompared(moments) {
    const head = ["strategy", "difference", "moved", "fewest", "ratio"];
    const rows = this.data.strategies.map((each) => {
      const steps = this.divided.measured(this.keyOf(each), moments);
      const failed = steps.some((step) => !step.owners);
      const [moved, fewest] = ["moved", "fewest"].map((what) => steps.reduce((sum, step) => sum + step[what], 0));
      const cells = failed ? ["fails", "", "", ""] : [Math.max(...steps.map((step) => step.difference)), moved, fewest,
        fewest ? (moved / fewest).toFixed(2) : "–"];
      return element("tr", { "aria-selected": each === this.model.get("strategy") ? "true" : "false",
        onclick: () => this.put({ strategy: each }) }, element("th", { scope: "row" }, each),
      cells.map((cell) => element("td", {}, String(cell))));
    });
    this.compared.replaceChildren(element("table", {}, element("thead", {}, element("tr", {},
      head.map((each) => element("th", { scope: "col" }, each)))), element("tbody", {}, rows)));
  }

  drawRing(now) {
    const points = ringPoints(this.data.ring.members, now, this.model.get("virtual_nodes"));
    const queue = this.model.get("queue");
    const unused = this.model.get("strategy") === "CONSISTENT_HASH" ? "" : " Only CONSISTENT_HASH uses the ring.";
    if (queue >= 0 && points.length) {
      const hash = this.data.ring.queues[queue];
      const [next, place] = nextPoint(points, hash);
      this.ringWords.textContent = `${this.queueName(this.data.queues[queue])} has hash ${hash}; the next point, clockwise, ` +
        `is ${next}, of ${letter(place)} ${this.data.known[place]}.${unused}`;
    } else {
      this.ringWords.textContent = points.length > RING_POINTS_NAMED ? "Too many points for letters; colours as in the grid."
        : `Letters are the members' points, numbers the queues. Choose a queue to see its way to its owner.${unused}`;
    }
    this.ring.replaceChildren(ringPicture({ points, hashes: this.data.ring.queues, chosen: queue,
      names: this.data.queues.map(([, , id]) => id), onChoose: (number) => this.put({ queue: number }),
      label: `Ring with ${counted(points.length, "point")} of ${counted(this.divided.members(now).length, "member")} and ` +
        `${counted(this.data.queues.length, "queue")}` }));
  }

  knowledge() {
    if (this.kernel) return "";
    const names = this.data.every_set ? `${this.data.known.join(", ")} may join, leave and be renamed in any order`
      : "the moments of this history and one change after each";
    return `Without a kernel this page has, computed beforehand: all strategies, ${this.data.virtual_nodes.join(", ")} virtual ` +
      `nodes, ${counted(this.data.queues.length, "queue")}; ${names}; ${counted(this.data.runs.length, "running group")}. Run the cell for other numbers, names and times.`;
  }
}

function render(context) {
  return new Allocation(context).begin();
}

export default { render };
