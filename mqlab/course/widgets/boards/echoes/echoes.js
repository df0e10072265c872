// The echo chart: calls by when their message was stored and when they came; the calls of a cell are listed next to it.
import { choiceControl } from "../../frame/page/controls.js";
import { counted } from "../../frame/page/counted.js";
import { element, svgElement } from "../../frame/page/element.js";
import { toTry } from "../../frame/page/settings.js";

const STYLE = `
.ec-room { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
.ec-chart { flex: 3 1 320px; min-width: 0; }
.ec-side { flex: 1 1 220px; min-width: 0; }
.ec-side ol { margin: 4px 0; padding-left: 32px; max-height: 260px; overflow: auto; }
.ec-cells { width: 100%; display: block; cursor: pointer; }
.ec-cells text { font-size: 11px; fill: var(--mq-ink); pointer-events: none; }
.ec-cells .ec-small { fill: var(--mq-muted); }
.ec-cells .ec-on { fill: var(--mq-paper); font-weight: 600; }
.ec-said { font-weight: 600; margin: 4px 0; }
`;
const [LEFT, TOP, RIGHT, BOTTOM] = [74, 22, 6, 6];
const LISTED = 60;

export function unit(seconds) {
  return seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`;
}

class Echoes {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makePanels();
  }

  readData() {
    this.data = this.model.get("data");
  }

  makePanels() {
    this.group = choiceControl({ label: "Group", value: this.model.get("group"), choices: Object.keys(this.data.groups),
      onValue: (value) => this.keep({ group: value }) });
    this.cause = choiceControl({ label: "Calls", value: this.model.get("cause"), choices: [this.data.every,
      ...this.data.causes],
      onValue: (value) => this.keep({ cause: value }) });
    this.stretch = choiceControl({ label: "Stretch", value: this.model.get("stretch_s"),
      choices: this.data.stretches.map((seconds) => [seconds, unit(seconds)]),
      onValue: (value) => this.keep({ stretch_s: value, row: 0, column: 0 }) });
    this.said = element("p", { class: "ec-said", role: "status", "aria-live": "polite" });
    this.box = element("div", { class: "ec-chart" });
    this.side = element("div", { class: "ec-side" });
    this.el.append(element("style", {}, STYLE),
      toTry("choose a row away from the diagonal: those calls came long after their messages were stored."),
      element("div", { class: "mq-row" }, this.group.el, this.cause.el,
      this.stretch.el), this.said,
      element("div", { class: "ec-room" }, this.box, this.side),
      element("p", { class: "mq-note" }, "On the outlined diagonal a call came in the stretch in which its message was stored. " +
        "To the right of it are calls that came late, or again."));
  }

  begin() {
    for (const [name, control] of Object.entries({ group: this.group, cause: this.cause, stretch_s: this.stretch })) {
      this.model.on(`change:${name}`, () => { control.put(this.model.get(name)); this.draw(); });
    }
    this.model.on("change:row", () => this.draw());
    this.model.on("change:column", () => this.draw());
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.box);
    this.draw();
    return () => sizes.disconnect();
  }

  keep(changes) {
    for (const [name, value] of Object.entries(changes)) this.model.set(name, value);
    this.model.save_changes();
  }

  place(ms) {
    const long = this.model.get("stretch_s") * 1000;
    const from = Math.floor(this.data.start_ms / long) * long - this.data.start_ms;
    return Math.max(0, Math.floor((ms - from) / long));
  }

  chosen() {
    const wanted = this.data.causes.indexOf(this.model.get("cause"));
    return this.data.groups[this.model.get("group")].filter((call) => wanted < 0 || call[2] === wanted);
  }

  cellsOf(calls) {
    const cells = new Map();
    for (const call of calls) {
      const key = `${this.place(call[0])} ${this.place(call[1])}`;
      cells.set(key, [...(cells.get(key) || []), call]);
    }
    return cells;
  }

  draw() {
    const cells = this.cellsOf(this.chosen());
    const count = this.place(this.data.last_ms - this.data.start_ms) + 1;
    const width = Math.max(280, this.box.clientWidth || 480);
    const size = Math.min(30, (width - LEFT - RIGHT) / count);
    const [wide, high] = [LEFT + size * count + RIGHT, TOP + size * count + BOTTOM];
    const most = Math.max(1, ...[...cells.values()].map((calls) => calls.length));
    const off = [...cells].filter(([key]) => key.split(" ")[0] !== key.split(" ")[1]);
    const later = off.reduce((sum, [, calls]) => sum + calls.length, 0);
    const all = [...cells.values()].reduce((sum, calls) => sum + calls.length, 0);
    const { group: name, cause: why, stretch_s: long } = { group: this.model.get("group"),
      cause: this.model.get("cause"), stretch_s: this.model.get("stretch_s") };
    this.said.textContent = `${counted(all, "call")} of ${name}${why === this.data.every ? "" : `, ${why}`}: ${all - later} within the ${unit(long)} in which ` +
      `their message was stored, ${later} later.`;
    const svg = svgElement("svg", { class: "ec-cells", viewBox: `0 0 ${wide} ${high}`, style: `max-width:${wide}px`,
      role: "img",
      "aria-label": this.said.textContent });
    const every = Math.max(1, Math.ceil(28 / size));
    for (let at = 0; at < count; at += 1) {
      if (at % every === 0) {
        svg.append(svgElement("text", { x: LEFT + (at + 0.5) * size, y: TOP - 6, class: "ec-small",
          "text-anchor": "middle" }, at),
          svgElement("text", { x: LEFT - 6, y: TOP + (at + 0.5) * size + 4, class: "ec-small", "text-anchor": "end" },
          at === 0 ? "stored in 0" : at));
      }
      svg.append(svgElement("rect", { x: LEFT + at * size, y: TOP + at * size, width: size, height: size, fill: "none",
        stroke: "var(--mq-rule)" }));
    }
    svg.append(svgElement("text", { x: LEFT - 6, y: TOP - 6, class: "ec-small", "text-anchor": "end" }, "called in"));
    for (const [key, calls] of cells) {
      const [row, column] = key.split(" ").map(Number);
      const strength = 0.25 + 0.75 * (Math.log1p(calls.length) / Math.log1p(most));
      svg.append(svgElement("rect", { x: LEFT + column * size + 0.5, y: TOP + row * size + 0.5, width: size - 1,
        height: size - 1,
        fill: row === column ? "var(--mq-1)" : "var(--mq-4)", opacity: strength },
      svgElement("title", {}, `stored in ${row}, called in ${column}: ${counted(calls.length, "call")}`)));
      if (size >= 18) {
        svg.append(svgElement("text", { x: LEFT + (column + 0.5) * size, y: TOP + (row + 0.5) * size + 4,
          "text-anchor": "middle",
          class: strength > 0.6 ? "ec-on" : null }, calls.length));
      }
    }
    const [row, column] = [this.model.get("row"), this.model.get("column")];
    svg.append(svgElement("rect", { x: LEFT + column * size, y: TOP + row * size, width: size, height: size,
      fill: "none",
      stroke: "var(--mq-focus)", "stroke-width": 3 }));
    svg.addEventListener("click", (event) => {
      const around = svg.getBoundingClientRect();
      const part = wide / around.width;
      const at = (value) => Math.min(count - 1, Math.max(0, Math.floor(value / size)));
      this.keep({ row: at((event.clientY - around.top) * part - TOP),
        column: at((event.clientX - around.left) * part - LEFT) });
    });
    this.box.replaceChildren(svg);
    this.list(cells.get(`${row} ${column}`) || [], off);
  }

  clock(ms) {
    return new Date(this.data.start_ms + ms).toISOString().slice(11, 19);
  }

  list(calls, off) {
    const [row, column] = [this.model.get("row"), this.model.get("column")];
    const words = `Stored in ${row}, called in ${column}: ${counted(calls.length, "call")}`;
    off.sort((one, other) => other[1].length - one[1].length);
    const largest = off.slice(0, 5).map(([key, each]) => {
      const [stored, called] = key.split(" ").map(Number);
      return element("button", { type: "button", onclick: () => this.keep({ row: stored, column: called }),
        "aria-label": `Show what was stored in ${stored} and called in ${called}: ${each.length}` },
        `${stored} → ${called}: ${each.length}`);
    });
    const because = (why) => (this.data.causes[why] === this.data.unknown ? "" : `, ${this.data.causes[why]}`);
    const items = calls.slice(0, LISTED).map(([stored, called, why, keys]) =>
      element("li", {}, `${keys || "no key"}, stored ${this.clock(stored)}, called ${this.clock(called)}${because(why)}`));
    if (calls.length > LISTED) items.push(element("li", {}, `and ${calls.length - LISTED} more`));
    this.side.replaceChildren(
      element("div", { class: "mq-row", role: "group", "aria-label": "Largest echoes" },
        largest.length ? ["Largest echoes: ", largest] : "No echo: every call came at once."),
      element("strong", {}, words), element("ol", { "aria-label": "Calls of the cell" }, items));
  }
}

function render(context) {
  return new Echoes(context).begin();
}

export default { render };
