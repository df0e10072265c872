// The retry clock: deliveries, waits and units of one order on an axis of log time, and the learner's pin.
import { buttonControl, checkControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { counted } from "../../frame/page/counted.js";
import { element, svgElement } from "../../frame/page/element.js";
import { inKnobWords, moreSettings, toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.rc-axis { width: 100%; display: block; touch-action: none; }
.rc-axis text { font-size: 12px; fill: var(--mq-ink); }
.rc-axis .rc-small { fill: var(--mq-muted); font-size: 11px; }
.rc-axis .rc-mark { cursor: pointer; }
.rc-axis .rc-here { stroke: var(--mq-focus); stroke-width: 2; fill: var(--mq-light); }
.rc-table { max-height: 260px; overflow: auto; }
.rc-table tr[aria-selected="true"] td { background: var(--mq-light); font-weight: 600; }
.rc-table tr { cursor: pointer; }
@media (min-width: 481px) { .rc-table td { white-space: nowrap; } }
`;
const TICKS = [[1000, "1 s"], [10000, "10 s"], [60000, "1 min"], [600000, "10 min"], [3600000, "1 h"],
  [18000000, "5 h"], [86400000, "1 d"]];
const SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX";
const SHOWN_ROWS = 200;
const PIN_STEPS = 1000;

// ms -> "1 h 2 min 3 s"; parts that are zero are left out.
export function timeText(ms) {
  if (ms < 0) return `${ms} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  const parts = [[Math.floor(seconds / 3600), "h"], [Math.floor(seconds / 60) % 60, "min"], [seconds % 60, "s"]];
  const rest = Math.round(ms % 1000);
  const text = parts.filter(([count]) => count).map(([count, unit]) => `${count} ${unit}`).join(" ");
  return rest && ms < 600000 ? `${text} ${rest} ms` : text;
}

export function plainDuration(ms) {
  if (ms === null) return "";
  for (const [size, unit] of [[3600000, "h"], [60000, "m"], [1000, "s"]]) {
    if (ms && ms % size === 0) return `${ms / size}${unit}`;
  }
  return ms ? `${ms}ms` : "0s";
}

// The second is the unit of the axis: its first part is linear enough to hold 0.
export const scaled = (ms) => Math.log10(1 + Math.max(ms, 0) / 1000);
export const unscaled = (value) => 1000 * (10 ** value - 1);
const isPaid = (status) => status === "CONSUME_SUCCESS" || status === "SUCCESS";

function drawTicks(svg, x, width) {
  let free = 40;
  svg.append(svgElement("text", { x: 4, y: 172, class: "rc-small" }, "first"));
  for (const [ms, name] of TICKS) {
    if (x(ms) > width - 8) break;
    svg.append(svgElement("line", { x1: x(ms), x2: x(ms), y1: 18, y2: 158, stroke: "var(--mq-rule)" }));
    if (x(ms) - 18 < free) continue;
    svg.append(svgElement("text", { x: x(ms), y: 172, "text-anchor": "middle", class: "rc-small" }, name));
    free = x(ms) + 30;
  }
}

class RetryClock {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makeControls();
    this.makePanels();
  }

  readData() {
    this.run = this.data().runs[0];
    this.markedRow = null;
    this.scrolling = 0;
    this.drawn = null; // what of the picture moves with the position: { x, mark, waits }
    this.pinSpan = 1; // the axis when the pin was placed: it must not stretch while the pin moves
    this.kernel = this.model.get("kernel") !== false;
  }

  makeControls() {
    this.recorded = choiceControl({
      label: "Recorded run", value: 0, choices: this.data().runs.map((each, at) => [at, each.name]),
      onValue: (at) => this.showRun(this.data().runs[at]),
    });
    this.levels = textControl({ label: "Level table", value: this.run.settings.levels });
    this.levels.input.size = 30;
    this.retries = numberControl({ label: "Max retries (-1: default)", min: -1, max: this.data().max_retries,
      step: 1 });
    this.asked = numberControl({ label: "Level asked (0: the broker decides)", min: -1, max: this.data().max_level,
      step: 1 });
    this.from = textControl({ label: "Bank down from" });
    this.to = textControl({ label: "to (empty: for ever)" });
    this.orderly = checkControl({ label: "In order" });
    [this.from, this.to].forEach((each) => (each.input.size = 5));
    this.playing = buttonControl("Play", () => this.play());
    const row = (...controls) => element("div", { class: "mq-row" }, controls.map((each) => each.el));
    this.settings = element("div", { role: "group", "aria-label": "Settings" }, row(this.retries, this.playing),
      moreSettings(row(this.levels, this.asked, this.from, this.to, this.orderly)));
    this.settings.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.tagName === "INPUT") this.play();
    });
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  }

  makePanels() {
    this.box = element("div");
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.delivery = slider({
      label: "Delivery", min: 1, max: Math.max(1, this.run.deliveries.length), value: 1,
      text: (number) => this.describe(number), onValue: (number) => this.go(number),
    });
    this.pin = slider({
      label: "Your prediction (pin)", min: 0, max: PIN_STEPS, value: 0,
      text: (step) => timeText(this.pinTime(step)), onValue: (step) => this.movePin(this.pinTime(step)),
    });
    this.pinWords = element("div", { class: "mq-note", role: "status" });
    this.unpin = buttonControl("Remove pin", () => this.movePin(null));
    this.listed = element("div", { class: "rc-table" });
    this.end = element("div", { "aria-live": "polite" });
    this.el.append(element("style", {}, STYLE));
    if (this.kernel) {
      this.el.append(toTry("move the pin to where you expect the end, then change the retries and press Play."),
        this.settings);
    }
    this.el.append(element("div", { class: "mq-row" }, this.recorded.el), this.problem, this.end, this.box,
      element("div", { class: "mq-row" }, this.delivery.el), this.status,
      element("div", { class: "mq-row" }, this.pin.el, this.unpin.el), this.pinWords, this.listed);
  }

  begin() {
    this.model.on("change:delivery", () => this.follow());
    this.model.on("change:pin_ms", () => this.placePin());
    this.model.on("change:data", () => this.showRun(this.data().runs[0]));
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.box);
    this.showRun(this.run);
    return () => sizes.disconnect();
  }

  data() {
    return this.model.get("data");
  }

  fillSettings() {
    const set = this.run.settings;
    this.levels.put(set.levels);
    this.retries.put(set.max_retries);
    this.asked.put(set.asked);
    this.from.put(plainDuration(set.down_from_ms));
    this.to.put(plainDuration(set.down_to_ms));
    this.orderly.put(set.orderly);
  }

  span() {
    return scaled(Math.max(this.run.end_ms, this.run.deliveries.at(-1)[0], this.model.get("pin_ms") ?? 0,
      20000)) * 1.04;
  }

  // A pin lies on a whole second, so that it can be set exactly with the arrow keys.
  pinTime(step) {
    return Math.round(unscaled((step / PIN_STEPS) * this.pinSpan) / 1000) * 1000;
  }

  showRun(next) {
    this.run = next;
    this.problem.hidden = true;
    this.fillSettings();
    this.delivery.input.max = this.run.deliveries.length;
    const bytes = this.run.units.reduce((sum, unit) => sum + unit[3], 0);
    this.end.textContent = `${counted(this.run.deliveries.length, "delivery", "deliveries")}; ${this.run.end} after ${timeText(this.run.end_ms)}; ` +
      `${counted(this.run.units.length, "unit")} written (${bytes} bytes).` +
      (this.run.end === "still failing" ? " The clock stops here." : "");
    this.list();
    this.placePin();
    this.go(1);
  }

  async play() {
    const wish = {
      levels: this.levels.value(), max_retries: this.retries.value(), asked: this.asked.value(),
        orderly: this.orderly.value(),
      bank_down: [this.from.value() || "0s", this.to.value() || null],
    };
    this.playing.off(true);
    this.status.textContent = "Playing…";
    try {
      this.showRun(await this.model.ask("play", wish));
    } catch (error) {
      this.problem.textContent = inKnobWords(error.message, { levels: this.levels, max_retries: this.retries,
        asked: this.asked, from: this.from, to: this.to });
      this.problem.hidden = false;
      this.status.textContent = this.describe(this.model.get("delivery"));
    }
    this.playing.off(false);
  }

  go(number) {
    const there = Math.min(Math.max(number, 1), this.run.deliveries.length);
    this.model.set("delivery", there);
    this.model.save_changes();
    this.follow();
  }

  follow() {
    const number = Math.min(this.model.get("delivery"), this.run.deliveries.length);
    this.delivery.put(number);
    this.status.textContent = this.describe(number);
    if (this.markedRow) this.markedRow.setAttribute("aria-selected", "false");
    this.markedRow = this.listed.querySelector(`tr[data-number="${number}"]`);
    if (this.markedRow) this.markedRow.setAttribute("aria-selected", "true");
    // Measuring a row costs time, so the table follows when the slider rests.
    clearTimeout(this.scrolling);
    this.scrolling = setTimeout(() => { if (this.markedRow) this.listed.scrollTop = Math.max(0,
      this.markedRow.offsetTop - 100); }, 150);
    this.highlight(number - 1);
  }

  movePin(ms) {
    this.model.set("pin_ms", ms);
    this.model.save_changes();
    this.wordPin();
    this.draw();
  }

  placePin() {
    this.pinSpan = this.span();
    const ms = this.model.get("pin_ms");
    this.pin.put(ms === null ? 0 : Math.round((scaled(ms) / this.pinSpan) * PIN_STEPS));
    this.wordPin();
    this.draw();
  }

  wordPin() {
    const ms = this.model.get("pin_ms");
    this.unpin.off(ms === null);
    if (ms === null) {
      this.pinWords.textContent = "Move the pin to where you expect an event, before you play.";
      return;
    }
    const events = this.run.deliveries.map((each, at) => [each[0], `delivery ${at + 1}`]);
    if (this.run.end === "dead") events.push([this.run.end_ms, "the dead letter"]);
    const [at, name] = events.reduce((best, each) => (Math.abs(each[0] - ms) < Math.abs(best[0] - ms) ? each : best));
    const off = at - ms;
    this.pinWords.textContent = `Your pin: ${timeText(ms)}. Nearest event: ${name} at ${timeText(at)}, ` +
      (Math.abs(off) < 200 ? "at the pin." : `${timeText(Math.abs(off))} ${off < 0 ? "before" : "after"} the pin.`);
  }

  /** Whether copies wait in RocketMQ's topic; a learner's own retries may keep them anywhere. */
  waitsInSchedule() {
    return this.run.units.some(([, topic]) => topic === SCHEDULE_TOPIC);
  }

  describe(number) {
    const [at, readFrom, times, result] = this.run.deliveries[Math.min(number, this.run.deliveries.length) - 1];
    const words = `Delivery ${number} of ${this.run.deliveries.length}, after ${timeText(at)}: read from ${readFrom}, ` +
      `reconsume_times ${times}, ${result}.`;
    if (isPaid(result)) return `${words} The order is paid.`;
    const next = this.run.deliveries[number];
    const wait = this.run.waits.find(([begin]) => begin >= at && (!next || begin <= next[0]));
    if (wait) {
      const [begin, stop, level] = wait;
      const where = this.waitsInSchedule() ? `SCHEDULE_TOPIC_XXXX, queue ${level - 1}` : "your retries";
      return `${words} Then it waits in ${where} (level ${level}), ` +
        (stop === null ? "and is still there." : `for ${timeText(stop - begin)}.`);
    }
    if (next) return `${words} Then it waits in the consumer's memory for ${timeText(next[0] - at)}; nothing is written.`;
    return this.run.end === "dead" ? `${words} Then it is a dead letter in %DLQ%billing.` : words;
  }

  list() {
    const head = ["delivery", "after", "read from", "count", "status"];
    const rows = this.run.deliveries.slice(0, SHOWN_ROWS).map(([at, readFrom, times, result], index) =>
      element("tr", { "data-number": index + 1, onclick: () => this.go(index + 1) },
        [`${isPaid(result) ? "✓" : "✕"} ${index + 1}`, timeText(at), readFrom, times, result].map((cell) =>
          element("td", {}, String(cell)))));
    const more = this.run.deliveries.length - rows.length;
    this.listed.replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, rows)),
    more > 0 ? element("p", { class: "mq-note" }, `… and ${more} more, one a second`) : "");
  }

  draw() {
    const width = Math.max(280, this.box.clientWidth || 640);
    const left = 8;
    const whole = this.span();
    const x = (ms) => left + (scaled(ms) / whole) * (width - 2 * left);
    const svg = svgElement("svg", { class: "rc-axis", viewBox: `0 0 ${width} 178`, height: 178, role: "img",
      "aria-label": `Log-time axis: ${this.end.textContent}` });
    drawTicks(svg, x, width);
    this.drawn = { x, mark: this.drawDeliveries(svg, x), waits: this.drawWaits(svg, x, width) };
    this.drawUnits(svg, x, width);
    this.drawPin(svg, x);
    this.highlight(Math.min(this.model.get("delivery"), this.run.deliveries.length) - 1);
    this.box.replaceChildren(svg);
  }

  // The delivery at the position, and the wait that follows it.
  highlight(here) {
    if (!this.drawn) return;
    const now = this.run.deliveries[here][0];
    const next = this.run.deliveries[here + 1]?.[0] ?? Infinity;
    this.drawn.mark.setAttribute("x", this.drawn.x(now) - 7);
    this.drawn.waits.forEach((rect, number) => {
      const lit = this.run.waits[number][0] >= now && this.run.waits[number][0] <= next;
      rect.setAttribute("fill", lit ? "var(--mq-light)" : "none");
      rect.setAttribute("stroke", lit ? "var(--mq-focus)" : "var(--mq-1)");
      rect.setAttribute("stroke-width", lit ? 2 : 1);
    });
  }

  drawDeliveries(svg, x) {
    svg.append(svgElement("text", { x: 4, y: 14 }, "deliveries  ✕ failed  ✓ paid  ■ dead"));
    // One path for all marks: a run in order has hundreds of them.
    const marks = [];
    const begin = Math.max(0, this.run.deliveries.length - 2000);
    this.run.deliveries.forEach(([at, , , result], number) => {
      const place = x(at);
      if (isPaid(result)) {
        svg.append(svgElement("path", { d: `M${place - 5} 33 l4 5 l7 -11`, fill: "none", stroke: "var(--mq-2)",
          "stroke-width": 2.5 }));
      } else if (number >= begin) marks.push(`M${place - 4} 28 l8 8 m0 -8 l-8 8`);
    });
    const mark = svgElement("rect", { class: "rc-here", y: 22, width: 14, height: 20, rx: 3 });
    svg.append(mark);
    svg.append(svgElement("path", { d: marks.join(""), stroke: "var(--mq-4)", "stroke-width": 2, fill: "none" }));
    if (this.run.end === "dead") {
      svg.append(svgElement("rect", { x: x(this.run.end_ms) - 5, y: 46, width: 10, height: 10,
        fill: "var(--mq-ink)" }));
    }
    const area = svgElement("rect", { class: "rc-mark", x: 0, y: 18, width: "100%", height: 40, fill: "transparent" });
    area.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      let nearest = 0;
      this.run.deliveries.forEach((each, number) => {
        if (Math.abs(x(each[0]) - at) < Math.abs(x(this.run.deliveries[nearest][0]) - at)) nearest = number;
      });
      this.go(nearest + 1);
    });
    svg.append(area);
    return mark;
  }

  drawWaits(svg, x, width) {
    const where = this.waitsInSchedule() ? SCHEDULE_TOPIC : "your retries";
    const words = this.run.waits.length ? `waits in ${where}, with its level` : "no wait at the broker";
    svg.append(svgElement("text", { x: 4, y: 74 }, words));
    return this.run.waits.map(([from, to, level], number) => {
      const start = x(from);
      const stop = to === null ? width - 8 : x(to);
      const rect = svgElement("rect", { x: start, y: 80 + (number % 2) * 16, width: Math.max(2, stop - start),
        height: 14 });
      svg.append(rect);
      if (stop - start > 16) {
        svg.append(svgElement("text", { x: (start + stop) / 2, y: 91 + (number % 2) * 16, "text-anchor": "middle",
          class: "rc-small" }, String(level)));
      }
      return rect;
    });
  }

  drawUnits(svg, x, width) {
    svg.append(svgElement("text", { x: 4, y: 128 }, `units written: ${this.run.units.length}`));
    const paths = new Map();
    for (const [at, topic] of this.run.units) {
      const row = topic === SCHEDULE_TOPIC ? 1 : topic.startsWith("%DLQ%") ? 2 : 0;
      paths.set(row, `${paths.get(row) ?? ""}M${x(at)} ${134 + 8 * row} v7`);
    }
    const inks = ["var(--mq-2)", "var(--mq-1)", "var(--mq-ink)"];
    for (const [row, d] of paths) svg.append(svgElement("path", { d, stroke: inks[row], "stroke-width": 3 }));
    const legend = "rows: to read, waiting, dead";
    svg.append(svgElement("text", { x: width - 4, y: 128, "text-anchor": "end", class: "rc-small" }, legend));
  }

  drawPin(svg, x) {
    const ms = this.model.get("pin_ms");
    if (ms === null) return;
    const at = x(ms);
    svg.append(svgElement("path", { d: `M${at} 158 V20`, stroke: "var(--mq-3)", "stroke-width": 2,
      "stroke-dasharray": "5 3" }));
    svg.append(svgElement("path", { d: `M${at} 26 l-6 -10 h12 z`, fill: "var(--mq-3)" }));
  }
}

function render(context) {
  return new RetryClock(context).begin();
}

export default { render };
