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
const OVERLAP_LOOKS = { "two owners": ["var(--mq-4)", "▩"], "two at work": ["var(--mq-3)", "▨"], "no owner": ["var(--mq-muted)", "□"] };

export function handover({ ask, kernel, ink, runs, changes }) {
  let shown = 0;
  let strategyNow = "";
  const recorded = choiceControl({ label: "Run", value: 0, choices: runs().map((run, at) => [at, run.name]),
    onValue: (at) => { shown = at; drawRun(); } });
  const span = choiceControl({ label: "Time shown", value: SPANS_OF_TIME[1][0], choices: SPANS_OF_TIME, onValue: drawRun });
  const change = choiceControl({ label: "What happens", value: "join", choices: changes.map((each) => [each, CHANGES_IN_WORDS[each]]) });
  const call = choiceControl({ label: "A call takes", value: "3s", choices: CALLS });
  const told = checkControl({ label: "Members are told", value: true });
  const orderly = checkControl({ label: "In order", value: false });
  const playing = buttonControl("Play the group", async () => {
    shown = 0;
    playing.off(true);
    await ask("play", { change: change.value(), call: call.value(), told: told.value(), orderly: orderly.value() });
    playing.off(false);
  });
  const all = checkControl({ label: "All queues", value: false, onValue: drawRun });
  const words = element("p", { "aria-live": "polite" });
  const box = element("div");
  const listed = element("div", { style: "overflow-x:auto" });
  const settings = element("div", { class: "mq-row", role: "group", "aria-label": "Running group" },
    [change, call, told, orderly, playing].map((each) => each.el));
  const el = element("div", {}, element("style", {}, HANDOVER_STYLE), kernel ? settings : null,
    element("div", { class: "mq-row" }, recorded.el, span.el, all.el), words, box,
    element("p", { class: "mq-note" }, "Thick: the queue is in the member's table. Thin: a call of its listener. " +
      "▩ two owners  ▨ two at work on one queue  □ no owner"),
    element("details", {}, element("summary", {}, "Overlaps as a table"), listed));

  const timeText = (ms) => (ms === null ? "the end" : afterText(ms));

  function drawRun() {
    const run = runs()[shown];
    if (!run) return box.replaceChildren("nothing played");
    const set = run.settings;
    words.textContent = `${set.strategy}, ${CHANGES_IN_WORDS[set.change]} at 0, a call takes ${durationText(set.call_ms)}, ` +
      `${set.told ? "the members are told" : "nobody is told"}${set.orderly ? ", in order" : ""}: ${run.words}.`;
    const names = [...new Set(run.spans.map(([, member]) => member))].sort();
    const touched = [...new Set(run.spans.map(([queue]) => queue))].sort((one, other) => one - other).filter((queue) =>
      all.value() || new Set(run.spans.filter((each) => each[0] === queue).map((each) => each[1])).size > 1);
    const [from, to] = span.value();
    const width = Math.max(280, box.clientWidth || 700);
    const left = 122;
    const x = (ms) => left + ((Math.min(Math.max(ms ?? to, from), to) - from) / (to - from)) * (width - left - 8);
    const lanes = touched.flatMap((queue) => names.filter((name) => run.spans.some((each) => each[0] === queue && each[1] === name))
      .map((name) => [queue, name]));
    const height = 22 + lanes.length * LANE_HEIGHT + touched.length * 6;
    const svg = svgElement("svg", { class: "ho-picture", viewBox: `0 0 ${width} ${height + 18}`, height: height + 18, role: "img",
      "aria-label": `Owners over time. ${words.textContent}` });
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
      drawLane(svg, run, queue, name, names, x, y);
      y += LANE_HEIGHT;
    });
    box.replaceChildren(svg);
    list(run);
  }

  function drawOverlaps(svg, run, queue, x, y, high) {
    for (const [where, , from, to, what] of run.overlaps) {
      if (where !== queue || x(to) - x(from) < 1) continue;
      const [colour, symbol] = OVERLAP_LOOKS[what];
      svg.append(svgElement("rect", { x: x(from), y: y - 1, width: x(to) - x(from), height: high, fill: "var(--mq-light)",
        stroke: colour, "stroke-width": 1.5, "stroke-dasharray": what === "two owners" ? null : "4 2" }));
      if (x(to) - x(from) > 14) svg.append(svgElement("text", { x: x(to) - 12, y: y + (what === "two at work" ? high - 5 : 9) }, symbol));
    }
  }

  function drawLane(svg, run, queue, name, names, x, y) {
    const colour = ink(names.indexOf(name));
    svg.append(svgElement("text", { x: 60, y: y + 11, style: `fill:${colour}` }, name));
    for (const [where, member, from, to] of run.spans) {
      if (where === queue && member === name && x(to) > x(from)) {
        svg.append(svgElement("rect", { x: x(from), y: y + 1, width: x(to) - x(from), height: 7, fill: colour }));
      }
    }
    for (const [where, member, from, to] of run.calls) {
      if (where === queue && member === name && x(to) > x(from)) {
        svg.append(svgElement("rect", { x: x(from), y: y + 10, width: Math.max(1, x(to) - x(from) - 1), height: 4, fill: colour,
          opacity: 0.75 }));
      }
    }
  }

  function list(run) {
    const rows = run.overlaps.map(([queue, members, from, to, what]) => element("tr", {},
      [`queue ${queue}`, what, members.join(", "), timeText(from), timeText(to)].map((cell) => element("td", {}, cell))));
    listed.replaceChildren(element("table", {}, element("thead", {}, element("tr", {},
      ["queue", "what", "members", "from", "to"].map((head) => element("th", { scope: "col" }, head)))), element("tbody", {}, rows)));
  }

  function renew() {
    recorded.refill(runs().map((run, at) => [at, run.name]));
    shown = Math.min(shown, runs().length - 1);
    recorded.put(Math.max(shown, 0));
    drawRun();
  }

  // The picture follows the strategy only when the group is played again; a strategy that cannot be played says so.
  function draw(strategy, playable) {
    playing.off(!playable);
    if (strategyNow === "") drawRun();
    strategyNow = strategy;
  }

  // The picture is as wide as its box, so that its labels are as large as the text around it.
  return { el, box, draw, drawRun, renew };
}
