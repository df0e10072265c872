// The percentile board: two samples whose sizes are moved, the percentile of both together, and the mean of the two.
import { alone, number, quantile, together } from "./samples.js";
import { choiceControl } from "../../frame/page/controls.js";
import { curves } from "./curves.js";
import { element } from "../../frame/page/element.js";
import { toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.pb-curves { width: 100%; display: block; }
.pb-curves text { font-size: 12px; fill: var(--mq-ink); }
.pb-curves .pb-small { fill: var(--mq-muted); font-size: 11px; }
.pb-curves .pb-halo { paint-order: stroke; stroke: var(--mq-paper); stroke-width: 3px; }
.pb-count { min-width: 3em; margin-left: auto; text-align: right; font-variant-numeric: tabular-nums; }
.pb-result { font-weight: 600; margin: 4px 0; }
`;
class Percentiles {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makePanels();
  }

  readData() {
    this.data = this.model.get("data");
    this.names = Object.keys(this.data.samples);
  }

  makePanels() {
    [this.controls, this.counts] = [{}, {}];
    for (const each of ["first", "second"]) {
      const words = each === "first" ? "First queue" : "Second queue";
      this.controls[each] = choiceControl({ label: words, value: this.model.get(each), choices: this.names,
        onValue: (name) => this.keep(each, name) });
      this.controls[`${each}_size`] = slider({ label: `Messages of the ${each}`, min: 0,
        max: this.data.sizes.length - 1,
        value: this.data.sizes.indexOf(this.model.get(`${each}_size`)), text: (at) => `${this.data.sizes[at]} messages`,
        onValue: (at) => this.keep(`${each}_size`, this.data.sizes[at]) });
      this.counts[each] = element("output", { class: "pb-count" });
      this.controls[`${each}_size`].el.append(this.counts[each]);
    }
    this.controls.percent = choiceControl({ label: "Percentile", value: this.model.get("percent"),
      choices: this.data.percents.map((percent) => [percent, `p${percent}`]),
      onValue: (percent) => this.keep("percent", percent) });
    this.result = element("p", { class: "pb-result", role: "status", "aria-live": "polite" });
    this.box = element("div");
    const row = (...parts) => element("div", { class: "mq-row" }, parts.map((part) => part.el));
    this.el.append(element("style", {}, STYLE),
      toTry("give the second queue more messages: the percentile of all moves, the mean of the two does not."),
      row(this.controls.first, this.controls.first_size),
      row(this.controls.second, this.controls.second_size),
      row(this.controls.percent), this.result, this.box, element("p", { class: "mq-note" },
        "A curve shows which share of the messages was done within that time. The percentile of all messages lies on the thick " +
        "curve; the mean of the two percentiles lies on none."));
  }

  begin() {
    for (const name of ["first", "second", "percent"]) {
      this.model.on(`change:${name}`, () => { this.controls[name].put(this.model.get(name)); this.draw(); });
    }
    for (const name of ["first_size", "second_size"]) {
      this.model.on(`change:${name}`, () => { this.controls[name].put(this.data.sizes.indexOf(this.model.get(name))); this.draw(); });
    }
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.box);
    this.draw();
    return () => sizes.disconnect();
  }

  keep(name, value) {
    this.model.set(name, value);
    this.model.save_changes();
  }

  draw() {
    const [first, second, percent] = [this.model.get("first"), this.model.get("second"), this.model.get("percent")];
    const [firstSize, secondSize] = [this.model.get("first_size"), this.model.get("second_size")];
    const [ones, others] = [this.data.samples[first], this.data.samples[second]];
    const share = percent / 100;
    const all = together([ones, firstSize], [others, secondSize]);
    const [ofFirst, ofSecond, ofAll] = [alone(ones), alone(others), all].map((parts) => quantile(parts, share));
    const mean = (ofFirst + ofSecond) / 2;
    const text = (value) => `${number(value)} ${this.data.unit}`;
    this.result.textContent = `p${percent} of ${first}: ${text(ofFirst)}; of ${second}: ${text(ofSecond)}. ` +
      `The mean of the two: ${text(mean)}. Of all ${(firstSize + secondSize).toLocaleString("en")} ` +
      `messages together: ${text(ofAll)}.`;
    for (const each of ["first", "second"]) this.counts[each].textContent = this.model.get(`${each}_size`).toLocaleString("en");
    this.box.replaceChildren(curves({ width: Math.max(300, this.box.clientWidth || 640), share, unit: this.data.unit,
      label: this.result.textContent, all, first: [first, alone(ones)], second: [second, alone(others)],
      marks: { mean: [mean, text(mean)], all: [ofAll, text(ofAll)] } }));
  }
}

function render(context) {
  return new Percentiles(context).begin();
}

export default { render };
