// The beliefs of name servers, a shop and billing about two brokers, over time.
import { axisWords } from "../../frame/page/axis.js";
import { afterText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";
import { recordedSettings } from "../../frame/page/recorded.js";
import { toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.kn-time { width: 100%; display: block; touch-action: pan-y; cursor: pointer; }
.kn-time text { font-size: 12px; fill: var(--mq-ink); }
.kn-time .kn-small { fill: var(--mq-muted); font-size: 11px; }
.kn-time .kn-on { fill: var(--mq-paper); font-weight: 600; }
.kn-result { font-weight: 600; margin: 4px 0; }
.kn-scroll { overflow-x: auto; }
`;
const LABELS = { happens: "What happens to broker-b", name_servers: "Name servers", poll_s: "Clients poll every",
  register_s: "Brokers register every" };
const HAPPENS = {
  kill: "its process is killed",
  power_off: "its machine loses power",
  partition: "nameserver-1 no longer hears from it",
  wipe: "an operator takes its write permission",
  queues: "the topic gets 8 queues on it",
  joins: "it is new, and starts",
};
const ROW = 26;
const [LEFT, TOP, BOTTOM] = [92, 18, 24];

function choiceText(name, value) {
  return name === "happens" ? HAPPENS[value] : name.endsWith("_s") ? `${value} s` : value;
}

class Knows {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.settings = recordedSettings({ model, labels: LABELS, words: choiceText,
      show: (settings, next) => this.showRun(settings, next) });
    this.makePanels();
  }

  makePanels() {
    this.result = element("p", { class: "kn-result", "aria-live": "polite" });
    this.box = element("div");
    this.moment = slider({ label: "Moment", min: this.data().from_ms, max: this.data().until_ms, step: 500,
      value: this.model.get("moment_ms"),
      text: (ms) => afterText(ms), onValue: (ms) => this.go(ms) });
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.listed = element("div", { class: "kn-scroll" });
    this.el.append(element("style", {}, STYLE),
      toTry("move the moment: who still believes in broker-b? Then let clients poll more often."),
      this.settings.row, this.settings.problem, this.result, this.box,
      element("p", { class: "mq-note" }, "A bar: the queues of broker-b that each one knows; an empty one: none. Sends: " +
        "● stored where it was tried first, ▲ stored elsewhere after a failure, ✕ not stored."),
      element("div", { class: "mq-row" }, this.moment.el), this.status, this.listed);
    this.el.append(this.settings.rest());
  }

  begin() {
    return this.settings.begin({ box: this.box, follow: () => this.follow(), draw: () => this.draw() });
  }

  data() {
    return this.model.get("data");
  }

  observers() {
    return [...new Set(this.run.beliefs.map((belief) => belief[1]))];
  }

  believes(who, ms) {
    const mine = this.run.beliefs.filter((belief) => belief[1] === who);
    return mine.filter((belief) => belief[0] <= ms).at(-1) ?? mine[0];
  }

  showRun(settings, next) {
    [this.now, this.run] = [settings, next];
    this.settings.put(settings);
    const said = this.observers().map((who) => {
      const first = this.run.beliefs.find((belief) => belief[1] === who && belief[0] > 0);
      return `${who} ${first ? `after ${first[0] / 1000} s` : "never"}`;
    });
    const failed = this.run.sends.filter((send) => !send[2]).length;
    const after = this.run.sends.filter((send) => send[0] >= 0 && send[1] === this.data().brokers[1]);
    const vain = after.filter((send) => send[2] !== send[1]).length;
    this.result.textContent = `Changes its mind: ${said.join(", ")}. ${vain} of the shop's sends did not reach broker-b, ${failed} failed.`;
    this.go(this.model.get("moment_ms"));
  }

  go(ms) {
    const there = Math.min(Math.max(ms, this.data().from_ms), this.data().until_ms);
    if (there === this.model.get("moment_ms")) this.follow();
    this.model.set("moment_ms", there);
    this.model.save_changes();
  }

  follow() {
    const here = this.model.get("moment_ms");
    this.moment.put(here);
    this.status.textContent = `${here < 0 ? `${-here / 1000} s before it happens` : `${here / 1000} s after it happened`}: ` +
      `broker-b is ${this.truth(here)}.`;
    const head = ["who", ...this.data().brokers, "since"];
    const rows = this.observers().map((who) => {
      const belief = this.believes(who, here);
      const asks = this.run.asks[who] ? ` (asks ${this.run.asks[who]})` : "";
      const since = belief[0] > 0 ? `${belief[0] / 1000} s after it` : "before it happened";
      return element("tr", {}, element("th", { scope: "row" }, who + asks),
        [...belief[2], since].map((words) => element("td", {}, words)));
    });
    this.listed.replaceChildren(element("table", { "aria-label": "What each one believes" }, element("thead", {},
      element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))), element("tbody", {}, rows)));
    this.draw();
  }

  truth(ms) {
    if (ms < 0) return this.now.happens === "joins" ? "not there" : "running";
    return this.data().truth[this.now.happens];
  }

  draw() {
    const width = Math.max(280, this.box.clientWidth || 640);
    const rows = [this.data().brokers[1], ...this.observers()];
    const height = TOP + (rows.length + 1) * ROW + BOTTOM;
    const [first, last] = [this.data().from_ms, this.data().until_ms];
    const x = (ms) => LEFT + ((ms - first) / (last - first)) * (width - LEFT - 8);
    const svg = svgElement("svg", { class: "kn-time", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `Beliefs about broker-b over time. ${this.result.textContent}` });
    const every = width < 500 ? 60000 : 20000;
    const ticks = [];
    for (let ms = 0; ms <= last; ms += every) ticks.push([x(ms), `${ms / 1000} s`]);
    svg.append(...ticks.map(([at]) => svgElement("line", { x1: at, x2: at, y1: TOP, y2: height - BOTTOM,
      stroke: "var(--mq-rule)" })), ...axisWords(ticks, height - 8, width, { class: "kn-small" }));
    rows.forEach((who, row) => {
      const y = TOP + row * ROW + 4;
      svg.append(svgElement("text", { x: LEFT - 5, y: y + 14, class: "kn-small", "text-anchor": "end" }, who));
      for (const [from, to, words, full] of this.stretches(row ? who : "")) {
        const width_ = Math.max(2, x(to) - x(from) - 1);
        const ink = `var(--mq-${row ? 3 : 1})`;
        svg.append(svgElement("rect", { x: x(from), y, width: width_, height: ROW - 8, rx: 3, stroke: ink,
          "stroke-width": 1.5,
          fill: full ? ink : "none", "stroke-dasharray": full ? null : "4 3" },
        svgElement("title", {}, `${who}: ${words}, ${afterText(from)} to ${afterText(to)}`)));
        if (width_ > 7 * words.length + 4) {
          svg.append(svgElement("text", { x: x(from) + width_ / 2, y: y + 13, "text-anchor": "middle",
            class: full ? "kn-on" : null }, words));
        }
      }
    });
    const y = TOP + rows.length * ROW + 17;
    svg.append(svgElement("text", { x: LEFT - 8, y, class: "kn-small", "text-anchor": "end" }, "sends to it"));
    for (const [ms, tried, stored] of this.run.sends) {
      if (tried !== this.data().brokers[1] || ms < first) continue;
      svg.append(svgElement("text", { x: x(ms), y, "text-anchor": "middle", class: "kn-small" },
        !stored ? "✕" : stored === tried ? "●" : "▲"));
    }
    const here = x(this.model.get("moment_ms"));
    svg.append(svgElement("line", { x1: here, x2: here, y1: TOP - 4, y2: height - BOTTOM, stroke: "var(--mq-focus)",
      "stroke-width": 2 }));
    svg.addEventListener("pointerdown", (event) => {
      const place = svg.getBoundingClientRect();
      const at = ((event.clientX - place.left) / place.width) * width;
      this.go(Math.round((first + ((at - LEFT) / (width - LEFT - 8)) * (last - first)) / 500) * 500);
    });
    this.box.replaceChildren(svg);
  }

  // From, to, words, full: what somebody believes about broker-b; for "": what is true.
  stretches(who) {
    const [first, last] = [this.data().from_ms, this.data().until_ms];
    if (!who) {
      const there = this.now.happens !== "joins";
      const up = !["kill", "power_off"].includes(this.now.happens);
      return [[first, 0, there ? "" : "not there", there], [0, last, this.truth(0), up]];
    }
    const mine = this.run.beliefs.filter((belief) => belief[1] === who);
    return mine.map((belief, at) => [Math.max(first, belief[0]), mine[at + 1]?.[0] ?? last, belief[2][1],
      belief[3] > 0]);
  }
}

function render(context) {
  return new Knows(context).begin();
}

export default { render };
