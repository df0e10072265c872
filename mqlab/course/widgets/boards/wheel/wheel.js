// The wheel board: a timer wheel that turns, its lists in the timer log, and when each reminder is stored.
import { buttonControl } from "../../frame/page/controls.js";
import { afterText } from "../../frame/page/durations.js";
import { element } from "../../frame/page/element.js";
import { recordedSettings } from "../../frame/page/recorded.js";
import { toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";
import { logPicture, reminderPicture, ringPicture } from "./pictures.js";
import { litSlot, resultText, slotText, usedSlots, wheelAt, wheelText } from "./reading.js";

const STYLE = `
.wh-parts { display: flex; flex-wrap: wrap; gap: 12px; align-items: center; }
.wh-ring { flex: 0 0 260px; width: 260px; }
.wh-log { flex: 1 1 300px; min-width: 260px; }
.wh-time { width: 100%; display: block; touch-action: pan-y; cursor: pointer; }
.wh-board text { font-size: 12px; fill: var(--mq-ink); }
.wh-board .wh-small { fill: var(--mq-muted); font-size: 11px; }
.wh-slot { cursor: pointer; }
.wh-result { font-weight: 600; margin: 4px 0; }
`;
const LABELS = { window_s: "Roll window", recall: "auction-3 is recalled", lost: "Lost in a crash at 6 s" };

function choiceText(name, value) {
  return name === "window_s" ? (value >= 86400 ? `${value / 86400} days` : `${value} s`) : value;
}

class Wheel {
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
    this.result = element("p", { class: "wh-result", "aria-live": "polite" });
    this.ring = element("div", { class: "wh-ring" });
    this.log = element("div", { class: "wh-log" });
    this.times = element("div");
    this.moment = slider({ label: "Moment", min: 0, max: this.data().until_ms, step: 500,
      value: this.model.get("moment_ms"), text: (ms) => afterText(ms), onValue: (ms) => this.go(ms) });
    this.before = buttonControl("◀ slot", () => this.step(-1), "the used slot before");
    this.after = buttonControl("slot ▶", () => this.step(1), "the next used slot");
    this.next = buttonControl("read next", () => this.choose(-1), "follow the slot that is read next");
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.el.append(element("style", {}, STYLE),
      toTry("lose the timer log: which reminders never come? Then recall auction-3 too late."),
      this.settings.row, this.settings.problem, this.result,
      element("div", { class: "mq-row" }, this.moment.el, this.before.el, this.after.el, this.next.el), this.status,
      element("div", { class: "wh-board" }, element("div", { class: "wh-parts" }, this.ring, this.log), this.times),
      element("p", { class: "mq-note" }, "The ring: slots 0 to 47 of 1,209,600, one per second. The log: units of 52 " +
        "bytes; w waits, s is stored again on its way, r recalls, d was delivered. Below, a bar: a reminder in the timer " +
        "topic; ↻ stored there again, ● delivered, | its time."),
      this.settings.rest());
  }

  begin() {
    return this.settings.begin({ box: this.times, follow: () => this.follow(), draw: () => this.draw(),
      follows: ["moment_ms", "slot"] });
  }

  showRun(settings, next) {
    this.run = next;
    this.settings.put(settings);
    this.result.textContent = resultText(this.run);
    this.follow();
  }

  go(ms) {
    this.keep("moment_ms", Math.min(Math.max(ms, 0), this.data().until_ms));
  }

  choose(number) {
    this.keep("slot", number);
  }

  keep(name, value) {
    if (value === this.model.get(name)) return;
    this.model.set(name, value);
    this.model.save_changes();
  }

  // To the used slot before or after the one that is lit up.
  step(by) {
    const used = usedSlots(this.wheel);
    const there = by > 0 ? used.find((number) => number > this.lit) : used.findLast((number) => number < this.lit);
    if (there !== undefined) this.choose(there);
  }

  follow() {
    const here = this.model.get("moment_ms");
    this.moment.put(here);
    this.wheel = wheelAt(this.run, here);
    this.lit = litSlot(this.wheel, this.model.get("slot"));
    this.status.textContent = `${afterText(here)}: ${wheelText(this.run, this.wheel, here)} ${slotText(this.wheel, this.lit)}`;
    this.draw();
  }

  draw() {
    this.ring.replaceChildren(ringPicture(this.wheel, this.lit, (number) => this.choose(number)));
    this.log.replaceChildren(logPicture(this.wheel, this.lit, Math.max(260, this.log.clientWidth || 360)));
    const width = Math.max(280, this.times.clientWidth || 640);
    this.times.replaceChildren(reminderPicture({ run: this.run, due: this.data().due, width,
      here: this.model.get("moment_ms"), endMs: this.data().until_ms, go: (ms) => this.go(Math.round(ms / 500) * 500) }));
  }
}

function render(context) {
  return new Wheel(context).begin();
}

export default { render };
