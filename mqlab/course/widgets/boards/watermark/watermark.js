// The watermark board: what a count by time keeps, gives and drops, batch by batch, for the delay, window and mode chosen.
import { batchesPicture } from "./picture.js";
import { ledgerOf, reckoned } from "./batches.js";
import { choiceControl } from "../../frame/page/controls.js";
import { counted } from "../../frame/page/counted.js";
import { element } from "../../frame/page/element.js";
import { toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.wm-picture { width: 100%; display: block; }
.wm-picture text { font-size: 12px; fill: var(--mq-ink); }
.wm-picture .wm-small { fill: var(--mq-muted); font-size: 11px; }
.wm-picture .wm-on { fill: var(--mq-paper); font-weight: 600; font-size: 11px; }
.wm-ledger { font-weight: 600; margin: 4px 0; }
.wm-batch { cursor: pointer; }
`;
const MINUTE = 60000;

function minutes(values) {
  return values.map((value) => [value, `${value} min`]);
}

class Watermark {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makePanels();
  }

  readData() {
    this.data = this.model.get("data");
  }

  makePanels() {
    this.controls = {
      delay_min: choiceControl({ label: "Delay", value: this.model.get("delay_min"), choices: minutes(this.data.delays),
        onValue: (value) => this.keep("delay_min", value) }),
      window_min: choiceControl({ label: "Window", value: this.model.get("window_min"),
      choices: minutes(this.data.windows),
        onValue: (value) => this.keep("window_min", value) }),
      mode: choiceControl({ label: "Mode", value: this.model.get("mode"), choices: this.data.modes,
      onValue: (value) => this.keep("mode", value) }),
      batch: slider({ label: "Batch", min: 0, max: this.data.looks.length, value: this.model.get("batch"),
      text: (at) => `batch ${at}`,
        onValue: (value) => this.keep("batch", value) }),
    };
    this.ledger = element("p", { class: "wm-ledger", "aria-live": "polite" });
    this.said = element("p", { role: "status", "aria-live": "polite" });
    this.box = element("div");
    this.el.append(element("style", {}, STYLE),
      toTry("make the delay longer: fewer messages are dropped, and more rows are kept."),
      element("div", { class: "mq-row" }, this.controls.delay_min.el, this.controls.window_min.el,
      this.controls.mode.el),
      element("div", { class: "mq-row" }, this.controls.batch.el), this.ledger, this.said, this.box, element("p",
      { class: "mq-note" },
        "Above, rows in state after each batch. Below, the groups of the chosen batch, each by the time of its window: filled, it " +
        "is kept; with a border alone, it is finished and forgotten; ✕, what came to it was dropped."));
  }

  begin() {
    for (const [name, control] of Object.entries(this.controls)) {
      this.model.on(`change:${name}`, () => { control.put(this.model.get(name)); this.draw(); });
    }
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.box);
    this.draw();
    return () => sizes.disconnect();
  }

  clock(ms) {
    return ms === null ? "no watermark" : new Date(this.data.first_ms + ms).toISOString().slice(11, 19);
  }

  waterText(one) {
    return one.watermark === null ? this.clock(null) : `watermark ${this.clock(one.watermark)}`;
  }

  keep(name, value) {
    this.model.set(name, value);
    this.model.save_changes();
  }

  draw() {
    const [windowMs, delay] = [this.model.get("window_min") * MINUTE, this.model.get("delay_min") * MINUTE];
    const batches = reckoned(this.data, windowMs, delay, this.model.get("mode"));
    const chosen = batches[Math.min(this.model.get("batch"), batches.length - 1)];
    this.ledger.textContent = ledgerOf(batches.at(-1));
    this.said.textContent = this.sentence(chosen, batches);
    this.box.replaceChildren(batchesPicture({ width: Math.max(320, this.box.clientWidth || 640), batches, chosen,
      brokers: this.data.brokers, windowMs, clock: (ms) => this.clock(ms), waterText: this.waterText(chosen),
      label: `${this.ledger.textContent} ${this.said.textContent}`, onBatch: (at) => this.keep("batch", at) }));
  }

  sentence(chosen, batches) {
    const lost = chosen.dropped ? `, ${counted(chosen.dropped, "message")} of ${counted(chosen.late.size, "group")} dropped: ` +
      `${chosen.late.size === 1 ? "its window" : "their windows"} ended before the ` +
      `watermark of the batch before, ${this.clock(batches[chosen.number - 1].watermark)}` : "";
    return `Batch ${chosen.number}: ${counted(chosen.fresh, "new message")}, ${this.waterText(chosen)}, ` +
      `${counted(chosen.kept.size, "row")} kept, ${chosen.given} given to the sink${lost}.`;
  }
}

function render(context) {
  return new Watermark(context).begin();
}

export default { render };
