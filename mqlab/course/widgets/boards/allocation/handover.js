// A running group while a member comes or goes: owners and calls of each queue over time, overlaps marked.
import { buttonControl, checkControl, choiceControl } from "../../frame/page/controls.js";
import { afterText, durationText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";

const HANDOVER_STYLE = `
.ho-picture { width: 100%; display: block; }
.mqlab-board svg.ho-picture text { font-size: 12px; fill: var(--mq-ink); }
.mqlab-board svg.ho-picture text.ho-quiet { fill: var(--mq-muted); }
`;
const CALLS = ["100ms", "500ms", "1s", "3s", "8s"];
const SPANS_OF_TIME = [[[-1000, 5000], "1 s before to 5 s after"], [[-4000, 26000], "4 s before to 26 s after"]];
const CHANGES_IN_WORDS = { join: "billing-3 joins", leave: "billing-2 leaves", kill: "billing-2 is killed" };
const LANE_HEIGHT = 17;
const OVERLAP_LOOKS = { "two owners": ["var(--mq-4)", "▩"], "two at work": ["var(--mq-3)", "▨"],
  "no owner": ["var(--mq-muted)", "□"] };

function timeText(ms) {
  return ms === null ? "the end" : afterText(ms);
}

function drawOverlaps(svg, run, queue, x, y, high) {
  for (const [where, , from, to, what] of run.overlaps) {
    if (where !== queue || x(to) - x(from) < 1) continue;
    const [colour, symbol] = OVERLAP_LOOKS[what];
    svg.append(svgElement("rect", { x: x(from), y: y - 1, width: x(to) - x(from), height: high, fill: "var(--mq-light)",
      stroke: colour, "stroke-width": 1.5, "stroke-dasharray": what === "two owners" ? null : "4 2" }));
    if (x(to) - x(from) > 14) svg.append(svgElement("text", { x: x(to) - 12,
      y: y + (what === "two at work" ? high - 5 : 9) }, symbol));
  }
}

class Handover {
  constructor({ ask, kernel, ink, runs, changes }) {
    Object.assign(this, { runs, changes, ask, kernel, ink });
    this.makePanels();
  }

  makePanels() {
    this.shown = 0;
    this.strategyNow = "";
    this.recorded = choiceControl({ label: "Run", value: 0, choices: this.runs().map((run, at) => [at, run.name]),
      onValue: (at) => { this.shown = at; this.drawRun(); } });
    this.span = choiceControl({ label: "Time shown", value: SPANS_OF_TIME[1][0], choices: SPANS_OF_TIME,
      onValue: () => this.drawRun() });
    const change = choiceControl({ label: "What happens", value: "join",
      choices: this.changes.map((each) => [each, CHANGES_IN_WORDS[each]]) });
    const call = choiceControl({ label: "A call takes", value: "3s", choices: CALLS });
    const told = checkControl({ label: "Members are notified", value: true });
    const orderly = checkControl({ label: "In order", value: false });
    this.playing = buttonControl("Play the group", async () => {
      this.shown = 0;
      this.playing.off(true);
      await this.ask("play", { change: change.value(), call: call.value(), told: told.value(),
        orderly: orderly.value() });
      this.playing.off(false);
    });
    this.all = checkControl({ label: "All queues", value: false, onValue: () => this.drawRun() });
    this.words = element("p", { "aria-live": "polite" });
    this.box = element("div");
    this.listed = element("div", { style: "overflow-x:auto" });
    const settings = element("div", { class: "mq-row", role: "group", "aria-label": "Running group" },
      [change, call, told, orderly, this.playing].map((each) => each.el));
    this.el = element("div", {}, element("style", {}, HANDOVER_STYLE), this.kernel ? settings : null,
      element("div", { class: "mq-row" }, this.recorded.el, this.span.el, this.all.el), this.words, this.box,
      element("p", { class: "mq-note" }, "Thick: the queue is in the member's table. Thin: a call of its listener. " +
        "▩ two owners  ▨ two at work on one queue  □ no owner"),
      element("details", {}, element("summary", {}, "Overlaps as a table"), this.listed));
  }

  drawRun() {
    const run = this.runs()[this.shown];
    if (!run) return this.box.replaceChildren("nothing played");
    const set = run.settings;
    this.words.textContent = `${set.strategy}, ${CHANGES_IN_WORDS[set.change]} at 0, a call takes ${durationText(set.call_ms)}, ` +
      `${set.told ? "the members are notified" : "no member is notified"}${set.orderly ? ", in order" : ""}: ${run.words}.`;
    const names = [...new Set(run.spans.map(([, member]) => member))].sort();
    const touched = [...new Set(run.spans.map(([queue]) => queue))].sort((one, other) => one - other).filter((queue) =>
      this.all.value() || new Set(run.spans.filter((each) => each[0] === queue).map((each) => each[1])).size > 1);
    const [from, to] = this.span.value();
    const width = Math.max(280, this.box.clientWidth || 700);
    const left = 122;
    const x = (ms) => left + ((Math.min(Math.max(ms ?? to, from), to) - from) / (to - from)) * (width - left - 8);
    const lanes = touched.flatMap((queue) => names.filter((name) => run.spans.some((each) => each[0] === queue && each[1] === name))
      .map((name) => [queue, name]));
    const height = 22 + lanes.length * LANE_HEIGHT + touched.length * 6;
    const svg = svgElement("svg", { class: "ho-picture", viewBox: `0 0 ${width} ${height + 18}`, height: height + 18,
      role: "img",
      "aria-label": `Owners over time. ${this.words.textContent}` });
    const step = (to - from) / (width < 500 ? 3 : 6);
    for (let ms = Math.ceil(from / step) * step; ms <= to; ms += step) {
      svg.append(svgElement("line", { x1: x(ms), x2: x(ms), y1: 12, y2: height, stroke: "var(--mq-rule)",
        "stroke-width": ms === 0 ? 3 : 1 }),
      svgElement("text", { x: x(ms), y: height + 13, "text-anchor": "middle", class: "ho-quiet" }, afterText(ms)));
    }
    let y = 16;
    lanes.forEach(([queue, name], number) => {
      if (!number || lanes[number - 1][0] !== queue) {
        y += 6;
        drawOverlaps(svg, run, queue, x, y, lanes.filter((lane) => lane[0] === queue).length * LANE_HEIGHT);
        svg.append(svgElement("text", { x: 2, y: y + 11 }, `queue ${queue}`));
      }
      this.drawLane(svg, run, queue, name, names, x, y);
      y += LANE_HEIGHT;
    });
    this.box.replaceChildren(svg);
    this.list(run);
  }

  drawLane(svg, run, queue, name, names, x, y) {
    const colour = this.ink(names.indexOf(name));
    svg.append(svgElement("text", { x: 60, y: y + 11, style: `fill:${colour}` }, name));
    for (const [where, member, from, to] of run.spans) {
      if (where === queue && member === name && x(to) > x(from)) {
        svg.append(svgElement("rect", { x: x(from), y: y + 1, width: x(to) - x(from), height: 7, fill: colour }));
      }
    }
    for (const [where, member, from, to] of run.calls) {
      if (where === queue && member === name && x(to) > x(from)) {
        svg.append(svgElement("rect", { x: x(from), y: y + 10, width: Math.max(1, x(to) - x(from) - 1), height: 4,
          fill: colour,
          opacity: 0.75 }));
      }
    }
  }

  list(run) {
    const rows = run.overlaps.map(([queue, members, from, to, what]) => element("tr", {},
      [`queue ${queue}`, what, members.join(", "), timeText(from), timeText(to)].map((cell) => element("td", {},
      cell))));
    this.listed.replaceChildren(element("table", {}, element("thead", {}, element("tr", {},
      ["queue", "what", "members", "from", "to"].map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, rows)));
  }

  renew() {
    this.recorded.refill(this.runs().map((run, at) => [at, run.name]));
    this.shown = Math.min(this.shown, this.runs().length - 1);
    this.recorded.put(Math.max(this.shown, 0));
    this.drawRun();
  }

  // The picture follows the strategy only when the group is played again; a strategy that cannot be played says so.
  draw(strategy, playable) {
    this.playing.off(!playable);
    if (this.strategyNow === "") this.drawRun();
    this.strategyNow = strategy;
  }
}

export function handover(options) {
  return new Handover(options);
}
