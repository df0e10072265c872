// The lease board: eight orders, their leases as bars over time, calls, acks, copies.
import { axisWords } from "../../frame/page/axis.js";
import { afterText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";
import { recordedSettings } from "../../frame/page/recorded.js";
import { toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";
import { resultText, standingText } from "./standing.js";

const STYLE = `
.ls-time { width: 100%; display: block; touch-action: pan-y; cursor: pointer; }
.ls-time text { font-size: 12px; fill: var(--mq-ink); }
.ls-time .ls-small { fill: var(--mq-muted); font-size: 11px; }
.ls-result { font-weight: 600; margin: 4px 0; }
`;
const LABELS = { happens: "billing-1", members: "Members", lease_s: "A lease lasts", work_s: "A call takes" };
const HAPPENS = { works: "works", hangs: "hangs in its first call", dies: "is killed after 2.5 s" };
const ROW = 32;
const [LEFT, TOP, BOTTOM] = [64, 18, 24];

function choiceText(name, value) {
  return name === "happens" ? HAPPENS[value] : name.endsWith("_s") ? `${value} s` : value;
}

class Leases {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.settings = recordedSettings({ model, labels: LABELS, words: choiceText,
      show: (settings, next) => this.showRun(settings, next) });
    this.makePanels();
  }

  data() {
    return this.model.get("data");
  }

  makePanels() {
    this.result = element("p", { class: "ls-result", "aria-live": "polite" });
    this.box = element("div");
    this.moment = slider({ label: "Moment", min: 0, max: this.data().until_ms, step: 500,
      value: this.model.get("moment_ms"), text: (ms) => afterText(ms), onValue: (ms) => this.go(ms) });
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.el.append(element("style", {}, STYLE),
      toTry("let billing-1 hang, then let it be killed: when are its orders handed out again?"),
      this.settings.row, this.settings.problem, this.result, this.box,
      element("p", { class: "mq-note" }, "A thick bar: an order on lease; ┃ the lease ends. A thin bar: a call of a " +
        "listener (1 or 2: whose). ● acknowledged, ▲ stored again for the group, ✕ an ack without effect."),
      element("div", { class: "mq-row" }, this.moment.el), this.status,
      this.settings.rest());
  }

  begin() {
    return this.settings.begin({ box: this.box, follow: () => this.follow(), draw: () => this.draw() });
  }

  showRun(settings, next) {
    this.run = next;
    this.settings.put(settings);
    this.result.textContent = resultText(this.run);
    this.follow();
  }

  go(ms) {
    const there = Math.min(Math.max(ms, 0), this.data().until_ms);
    if (there === this.model.get("moment_ms")) return;
    this.model.set("moment_ms", there);
    this.model.save_changes();
  }

  follow() {
    const here = this.model.get("moment_ms");
    this.moment.put(here);
    this.status.textContent = `${afterText(here)}: ${standingText(this.run, here)}`;
    this.draw();
  }

  draw() {
    const width = Math.max(280, this.box.clientWidth || 640);
    const height = TOP + this.run.length * ROW + BOTTOM;
    const x = (ms) => LEFT + (Math.min(ms, this.data().until_ms) / this.data().until_ms) * (width - LEFT - 8);
    const svg = svgElement("svg", { class: "ls-time", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `Leases over time. ${this.result.textContent}` });
    const ticks = [];
    for (let ms = 0; ms <= this.data().until_ms; ms += width < 500 ? 30000 : 10000) ticks.push([x(ms), `${ms / 1000} s`]);
    svg.append(...ticks.map(([at]) => svgElement("line", { x1: at, x2: at, y1: TOP, y2: height - BOTTOM,
      stroke: "var(--mq-rule)" })), ...axisWords(ticks, height - 8, width, { class: "ls-small" }));
    this.run.forEach((order, row) => svg.append(...orderMarks(order, TOP + row * ROW, x, this.data().until_ms)));
    const here = x(this.model.get("moment_ms"));
    svg.append(svgElement("line", { x1: here, x2: here, y1: TOP - 4, y2: height - BOTTOM, stroke: "var(--mq-focus)",
      "stroke-width": 2 }));
    svg.addEventListener("pointerdown", (event) => {
      const frame = svg.getBoundingClientRect();
      const at = ((event.clientX - frame.left) / frame.width) * width;
      this.go(Math.round(((at - LEFT) / (width - LEFT - 8)) * this.data().until_ms / 500) * 500);
    });
    this.box.replaceChildren(svg);
  }
}

// What is drawn of one order, in a row from y on; x gives the place of a moment.
function orderMarks(order, y, x, endMs) {
  const marks = [svgElement("text", { x: LEFT - 6, y: y + 16, class: "ls-small", "text-anchor": "end" }, order.name)];
  for (const [from, until, end] of order.spans) {
    marks.push(svgElement("rect", { x: x(from), y: y + 4, width: Math.max(2, x(until) - x(from)), height: 9, rx: 2,
      fill: "var(--mq-1)" },
    svgElement("title", {}, `${order.name}: on lease ${afterText(from)} to ${afterText(until)}, ${end}`)));
    if (end === "ended") marks.push(sign("┃", x(until), y + 14));
    if (end === "acknowledged") marks.push(sign("●", x(until), y + 14));
  }
  for (const [member, from, until, status] of order.calls) {
    const to = until === null ? endMs : until;
    marks.push(svgElement("rect", { x: x(from), y: y + 15, width: Math.max(2, x(to) - x(from)), height: 4,
      fill: member.endsWith("1") ? "var(--mq-2)" : "var(--mq-3)" },
    svgElement("title", {}, `${member}: ${afterText(from)} to ${until === null ? "?" : afterText(until)}, ${status}`)),
    svgElement("text", { x: x(from), y: y + 29, class: "ls-small" }, member.slice(-1)));
  }
  return [...marks, ...order.back.map((ms) => sign("▲", x(ms), y + 14)), ...order.late.map((ms) => sign("✕", x(ms), y + 14))];
}

function sign(text, x, y) {
  return svgElement("text", { x, y, class: "ls-small", "text-anchor": "middle" }, text);
}

function render(context) {
  return new Leases(context).begin();
}

export default { render };
