// The war room: one group's day in charts under one cursor, and findings noted at a moment.
import { buttonControl, choiceControl, textControl } from "../../frame/page/controls.js";
import { element, svgElement } from "../../frame/page/element.js";
import { toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.wr-room { display: flex; flex-wrap: wrap; gap: 16px; }
.wr-charts { flex: 3 1 420px; min-width: 0; }
.wr-notes { flex: 1 1 200px; }
.wr-notes ol { padding-left: 20px; margin: 6px 0; }
.wr-notes li { margin: 3px 0; overflow-wrap: anywhere; }
.wr-day { width: 100%; display: block; cursor: crosshair; touch-action: pan-y; }
.wr-day text { font-size: 12px; fill: var(--mq-ink); }
.wr-day .wr-small { fill: var(--mq-muted); font-size: 11px; }
`;
const [LANE, LEFT, RIGHT, BOTTOM] = [40, 150, 52, 22];

export function clock(minute) {
  return `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
}

class WarRoom {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makeControls();
    this.makePanels();
  }

  readData() {
    this.data = this.model.get("data");
    this.lanes = Object.keys(this.data.words);
    this.count = this.data.minutes / this.data.stretch;
  }

  makeControls() {
    this.group = choiceControl({ label: "Group", value: this.model.get("group"), choices: Object.keys(this.data.lanes),
      onValue: (value) => this.keep("group", value) });
    this.moment = slider({ label: "Moment", min: this.data.stretch, max: this.data.minutes, step: this.data.stretch,
      value: this.model.get("minute"),
      text: (minute) => clock(minute), onValue: (minute) => this.keep("minute", minute) });
    this.said = element("p", { role: "status", "aria-live": "polite" });
    this.box = element("div", { class: "wr-charts" });
  }

  makePanels() {
    this.words = textControl({ label: "Finding at the cursor", value: "" });
    const add = buttonControl("Note it", () => this.note());
    this.words.input.addEventListener("keydown", (event) => event.key === "Enter" && this.note());
    this.list = element("ol", { "aria-label": "Findings" });
    const side = element("div", { class: "wr-notes" }, element("strong", {}, "Findings"), this.list,
      element("div", { class: "mq-row" }, this.words.el, add.el));
    this.el.append(element("style", {}, STYLE),
      toTry("move the moment to where a lane begins to differ, and note what you see there."),
      element("div", { class: "mq-row" }, this.group.el, this.moment.el),
      this.said,
      element("div", { class: "wr-room" }, this.box, side));
  }

  begin() {
    this.model.on("change:group", () => { this.group.put(this.model.get("group")); this.draw(); });
    this.model.on("change:minute", () => { this.moment.put(this.model.get("minute")); this.draw(); });
    this.model.on("change:notes", () => { this.showNotes(); this.draw(); });
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.box);
    this.showNotes();
    this.draw();
    return () => sizes.disconnect();
  }

  place(minute) {
    return Math.min(Math.max(Math.floor(minute / this.data.stretch) - 1, 0), this.count - 1);
  }

  keep(name, value) {
    this.model.set(name, value);
    this.model.save_changes();
  }

  note() {
    const text = this.words.value().trim();
    if (!text) return;
    this.keep("notes", [...this.model.get("notes"), { minute: this.model.get("minute"), group: this.model.get("group"),
      words: text }]);
    this.words.put("");
  }

  showNotes() {
    this.list.replaceChildren(...this.model.get("notes").map((one, at) => element("li", {},
      element("button", { type: "button", title: "Go there",
      onclick: () => { this.keep("group", one.group); this.keep("minute", one.minute); } },
        `${clock(one.minute)} ${one.group}`), ` ${one.words} `,
      element("button", { type: "button", "aria-label": `Remove finding ${at + 1}`,
        onclick: () => this.keep("notes", this.model.get("notes").filter((_, other) => other !== at)) }, "✕"))));
    if (!this.model.get("notes").length) this.list.replaceChildren(element("li",
      { class: "mq-note", style: "list-style:none" }, "nothing noted yet"));
  }

  draw() {
    const width = Math.max(320, this.box.clientWidth || 640);
    const height = LANE * this.lanes.length + BOTTOM;
    const [now, minute] = [this.data.lanes[this.model.get("group")], this.model.get("minute")];
    const inner = width - LEFT - RIGHT;
    const x = (at) => LEFT + (inner * at) / this.data.minutes;
    this.said.textContent = `${this.model.get("group")} at ${clock(minute)} UTC. ` +
      this.lanes.map((lane) => `${this.data.words[lane]}: ${now[lane][this.place(minute)]}`).join("; ") + ".";
    const svg = svgElement("svg", { class: "wr-day", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": this.said.textContent });
    this.lanes.forEach((lane, row) => {
      const bottom = LANE * (row + 1);
      const most = Math.max(...now[lane], 1);
      const points = now[lane].map((value, at) =>
        `${x((at + 1) * this.data.stretch).toFixed(1)} ${(bottom - ((LANE - 8) * value) / most).toFixed(1)}`);
      svg.append(svgElement("text", { x: LEFT - 6, y: bottom - 8, "text-anchor": "end" }, this.data.words[lane]),
        svgElement("line", { x1: LEFT, x2: width - RIGHT, y1: bottom, y2: bottom, stroke: "var(--mq-rule)" }),
        svgElement("path", { d: `M${points.join("L")}`, fill: "none", stroke: "var(--mq-1)", "stroke-width": 1.5 }),
        svgElement("text", { x: width - RIGHT + 5, y: bottom - 8 }, String(now[lane][this.place(minute)])));
    });
    for (let hour = 0; hour <= 24; hour += width < 520 ? 8 : 4) {
      svg.append(svgElement("text", { x: x(hour * 60), y: height - 6, class: "wr-small", "text-anchor": "middle" },
        clock(hour * 60)));
    }
    for (const one of this.model.get("notes").filter((each) => each.group === this.model.get("group"))) {
      svg.append(svgElement("text", { x: x(one.minute), y: 11, "text-anchor": "middle" }, "▼", svgElement("title", {},
        one.words)));
    }
    svg.append(svgElement("line", { x1: x(minute), x2: x(minute), y1: 0, y2: LANE * this.lanes.length,
      stroke: "var(--mq-ink)",
      "stroke-dasharray": "4 3" }));
    svg.addEventListener("click", (event) => {
      const at = ((event.clientX - svg.getBoundingClientRect().left) * width) / svg.getBoundingClientRect().width;
      const there = Math.round(((at - LEFT) / inner) * this.count) * this.data.stretch;
      this.keep("minute", Math.min(Math.max(there, this.data.stretch), this.data.minutes));
    });
    this.box.replaceChildren(svg);
  }
}

function render(context) {
  return new WarRoom(context).begin();
}

export default { render };
