// Lanes: the events of six orders over time, in threads, in order, or in lanes of one order each.
import { axisWords } from "../../frame/page/axis.js";
import { checkControl } from "../../frame/page/controls.js";
import { afterText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";
import { named } from "../../frame/page/named.js";
import { recordedSettings } from "../../frame/page/recorded.js";
import { toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.ln-time { width: 100%; display: block; touch-action: pan-y; cursor: pointer; }
.ln-time text { font-size: 12px; fill: var(--mq-ink); }
.ln-time .ln-small { fill: var(--mq-muted); font-size: 11px; }
.ln-time .ln-on { fill: var(--mq-paper); font-weight: 600; }
.ln-result { font-weight: 600; margin: 4px 0; }
.ln-scroll { overflow-x: auto; }
.ln-scroll tbody th { white-space: nowrap; }
`;
const CALL = "row order step queue began ended ok over".split(" ");
const MODE_WORDS = {
  concurrent: "concurrent: any thread, any order",
  orderly: "orderly: one thread per queue at a time",
  lanes: "lanes: orderly, a lane per order within a batch",
};
const LABELS = { mode: "Listener", queues: "Queues", threads: "Threads", batch: "Batch" };
const ROW = 22;
const [LEFT, TOP, BOTTOM] = [58, 20, 24];

export function unfolded(each) {
  return { offsets: each.offsets, calls: each.calls.map((call) => named(CALL, call)) };
}

class Lanes {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.settings = recordedSettings({ model, labels: LABELS,
      words: (name, value) => (name === "mode" ? MODE_WORDS[value] : value),
      more: { failing: (value, onValue) => checkControl({ label: "order-1 can never be created", value, onValue }) },
      show: (settings, next) => this.showRun(settings, unfolded(next)) });
    this.run = unfolded(this.settings.runOf(this.data().now)); // the slider's text is about it
    this.makePanels();
  }

  makePanels() {
    this.result = element("p", { class: "ln-result", "aria-live": "polite" });
    this.box = element("div");
    this.moment = slider({ label: "Moment", min: 0, max: 1000, step: 10, value: this.model.get("moment_ms"),
      text: (ms) => this.describe(ms), onValue: (ms) => this.go(ms) });
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.listed = element("div", { class: "ln-scroll" });
    this.el.append(element("style", {}, STYLE),
      toTry("choose orderly, then lanes: which events still overtake, and when is all done?"),
      this.settings.row, this.settings.problem, this.result, this.box,
      element("p", { class: "mq-note" }, "A number is an order; c created, p paid, s shipped. ✕ failed, ▲ overtook the event " +
        "of its order before it."),
      element("div", { class: "mq-row" }, this.moment.el), this.status, this.listed);
    this.el.append(this.settings.rest());
  }

  begin() {
    return this.settings.begin({ box: this.box, follow: () => this.follow(), draw: () => this.draw() });
  }

  data() {
    return this.model.get("data");
  }

  showRun(settings, next) {
    [this.now, this.run] = [settings, next];
    this.settings.put(settings);
    this.moment.input.max = this.lastMs();
    const steps = this.data().steps.length * this.data().orders;
    const done = new Set(this.run.calls.filter((call) => call.ok).map((call) => `${call.order} ${call.step}`));
    const over = new Set(this.run.calls.filter((call) => call.over).map((call) => `${call.order} ${call.step}`));
    const ends = Math.max(0, ...this.run.calls.filter((call) => call.ok).map((call) => call.ended));
    this.result.textContent = (done.size === steps ? `All ${steps} events are done after ${(ends / 1000).toFixed(1)} s. `
      : `${steps - done.size} of ${steps} events are not done after ${this.data().played_ms / 1000} s. `) +
      (over.size ? `${over.size} overtook the one before them.` : "Nothing overtook.");
    this.listOrders(over);
    this.go(Math.min(this.model.get("moment_ms"), this.lastMs()));
  }

  lastMs() {
    const last = Math.max(600, ...this.run.calls.map((call) => call.ended));
    return Math.min(this.data().played_ms, Math.ceil(last / 100) * 100);
  }

  listOrders(over) {
    const rows = Array.from({ length: this.data().orders }, (_, at) => at + 1).map((order) => element("tr", {},
      element("th", { scope: "row" }, `order-${order}`), this.data().steps.map((name, step) => {
        const done = this.run.calls.find((call) => call.order === order && call.step === step && call.ok);
        const words = done ? `${(done.ended / 1000).toFixed(2)} s` : "not done";
        return element("td", {}, words + (over.has(`${order} ${step}`) ? " ▲" : ""));
      })));
    const head = ["", ...this.data().steps.map((name) => `${name}: done after`)];
    this.listed.replaceChildren(element("table", { "aria-label": "Orders" }, element("thead", {},
      element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))), element("tbody", {}, rows)));
  }

  go(ms) {
    const there = Math.min(Math.max(ms, 0), this.lastMs());
    if (there === this.model.get("moment_ms")) this.follow();
    this.model.set("moment_ms", there);
    this.model.save_changes();
  }

  follow() {
    const here = Math.min(this.model.get("moment_ms"), this.lastMs());
    this.moment.put(here);
    this.status.textContent = this.describe(here);
    this.draw();
  }

  describe(ms) {
    const at = this.run.calls.filter((call) => call.began <= ms && ms < call.ended);
    const done = this.run.calls.filter((call) => call.ok && call.ended <= ms).length;
    const held = {};
    for (const [moved, queue, offset] of this.run.offsets) if (moved <= ms) held[queue] = offset;
    const passed = Object.values(held).reduce((sum, each) => sum + each, 0);
    const hand = at.length ? `in hand ${at.map((call) => this.name(call)).join(", ")}` : "nothing in hand";
    const again = Math.max(0, done - passed);
    return `After ${(ms / 1000).toFixed(2)} s: ${hand}; ${done} done, the offset has passed ${passed}` +
      (again ? `: after a crash, done events that come again: ${again} or more.` : ".");
  }

  name(call) {
    return `order-${call.order} ${this.data().steps[call.step]}`;
  }

  draw() {
    const width = Math.max(280, this.box.clientWidth || 640);
    const rows = Math.max(1, ...this.run.calls.map((call) => call.row + 1));
    const height = TOP + rows * ROW + BOTTOM;
    const last = this.lastMs();
    const x = (ms) => LEFT + (ms / last) * (width - LEFT - 8);
    const svg = svgElement("svg", { class: "ln-time", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `Calls over time. ${this.result.textContent}` });
    const every = [100, 200, 500, 1000, 2000, 4000].find((step) => last / step <= (width < 500 ? 5 : 10)) ?? 5000;
    const ticks = [];
    for (let ms = 0; ms <= last; ms += every) ticks.push([x(ms), `${ms / 1000} s`]);
    svg.append(...ticks.map(([at]) => svgElement("line", { x1: at, x2: at, y1: TOP, y2: height - BOTTOM,
      stroke: "var(--mq-rule)" })), ...axisWords(ticks, height - 8, width, { class: "ln-small" }));
    for (let row = 0; row < rows; row += 1) {
      const words = { lanes: `order-${row + 1}`, orderly: `queue ${row}` }[this.now.mode] ?? `thread ${row + 1}`;
      svg.append(svgElement("text", { x: LEFT - 5, y: TOP + row * ROW + 15, class: "ln-small", "text-anchor": "end" },
        words));
    }
    for (const call of this.run.calls) {
      const [from, to] = [x(call.began), Math.max(x(call.began) + 2, x(Math.min(call.ended, last)))];
      const y = TOP + call.row * ROW + 3;
      const ink = `var(--mq-${call.order})`;
      svg.append(svgElement("rect", { x: from, y, width: to - from - 1, height: ROW - 6, rx: 3, stroke: ink,
        "stroke-width": 1.5, fill: call.ok ? ink : "none", "stroke-dasharray": call.ok ? null : "4 3" },
      svgElement("title", {}, `${this.name(call)}, ${afterText(call.began)} to ${afterText(call.ended)}` +
        `${call.ok ? "" : ", failed"}${call.over ? ", overtook" : ""}`)));
      const words = `${call.over ? "▲" : ""}${call.order}${this.data().steps[call.step][0]}${call.ok ? "" : " ✕"}`;
      if (to - from > 7 * words.length + 2) {
        svg.append(svgElement("text", { x: (from + to) / 2, y: y + 12, "text-anchor": "middle",
          class: call.ok ? "ln-on" : null }, words));
      }
    }
    const here = x(Math.min(this.model.get("moment_ms"), last));
    svg.append(svgElement("line", { x1: here, x2: here, y1: TOP - 4, y2: height - BOTTOM, stroke: "var(--mq-focus)",
      "stroke-width": 2 }));
    svg.addEventListener("pointerdown", (event) => {
      const place = svg.getBoundingClientRect();
      const at = ((event.clientX - place.left) / place.width) * width;
      this.go(Math.round((((at - LEFT) / (width - LEFT - 8)) * last) / 10) * 10);
    });
    this.box.replaceChildren(svg);
  }
}

function render(context) {
  return new Lanes(context).begin();
}

export default { render };
