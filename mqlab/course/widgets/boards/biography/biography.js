// The biography board: a message's events in their order, a line for the log and one for each group, and the event looked at.
import { textControl } from "../../frame/page/controls.js";
import { counted } from "../../frame/page/counted.js";
import { element, freshId, svgElement } from "../../frame/page/element.js";
import { toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.bi-scroll { display: flex; overflow-x: auto; }
.bi-scroll svg { flex: none; max-width: none; }
.bi-scroll .bi-names { position: sticky; left: 0; background: var(--mq-paper); }
.bi-scroll text { font-size: 12px; fill: var(--mq-ink); }
.bi-life .bi-small { fill: var(--mq-muted); font-size: 11px; }
.bi-life .bi-event { cursor: pointer; }
.bi-said { font-weight: 600; margin: 4px 0; }
.bi-became { margin: 4px 0; padding-left: 20px; }
`;
const [LEFT, STEP, LANE, TOP] = [96, 62, 40, 30];
const [TIME, WHAT, GROUP, TOPIC, BROKER, QUEUE, OFFSET, TOLD] = [0, 1, 2, 3, 4, 5, 6, 7];
const IN_LOG = ["born", "stored", "stored for a retry", "dead letter", "half message stored", "parked"];
const INKS = { stored: "--mq-1", "stored for a retry": "--mq-1", parked: "--mq-6", "dead letter": "--mq-4",
  called: "--mq-3",
  "half message stored": "--mq-6", "no result": "--mq-4", born: "--mq-5" };
const MARKS = { born: "○", stored: "●", "stored for a retry": "●", parked: "▭", "dead letter": "■",
  "half message stored": "◐",
  called: "▲", "no result": "?" };

function clock(ms) {
  return new Date(ms).toISOString().slice(11, 23);
}

export function between(ms) {
  if (ms < 1000) return `${ms} ms`;
  const s = ms / 1000;
  return s < 60 ? `${s.toFixed(s < 10 ? 1 : 0)} s` : s < 3600 ? `${(s / 60).toFixed(s < 600 ? 1 : 0)} min` : `${(s / 3600).toFixed(1)} h`;
}

export function short(row, good) {
  return { "stored for a retry": "for retry", "dead letter": "dead", "half message stored": "half",
    "no result": "no result",
    returned: good ? "success" : "failed" }[row[WHAT]] ?? row[WHAT];
}

class Biography {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makePanels();
  }

  readData() {
    this.data = this.model.get("data");
  }

  makePanels() {
    this.key = textControl({ label: "Key", value: this.model.get("key"), onValue: (text) => this.find(text) });
    const known = element("datalist", { id: freshId() },
      Object.keys(this.data.messages).map((each) => element("option", { value: each })));
    this.key.input.setAttribute("list", known.id);
    this.key.input.addEventListener("keydown", (event) => event.key === "Enter" && this.find(this.key.value()));
    this.problem = element("p", { class: "mq-error", role: "alert", hidden: true });
    this.event = slider({ label: "Event", min: 0, max: 1, value: this.model.get("event"), text: (at) => this.words(at),
      onValue: (at) => this.keep({ event: at }) });
    this.said = element("p", { class: "bi-said", role: "status", "aria-live": "polite" });
    this.box = element("div", { class: "bi-scroll" });
    this.became = element("ul", { class: "bi-became", "aria-label": "What became of it" });
    this.el.append(element("style", {}, STYLE),
      toTry("type a message's key, then move through its events."),
      known, element("div", { class: "mq-row" }, this.key.el, this.event.el),
      this.problem, this.said, this.box, this.became,
      element("p", { class: "mq-note" }, "● stored, ▭ parked until its time, ■ dead letter, ▲ called, ✓ succeeded, ✕ failed, ? no result. " +
        "Events are in their order; the time between two of them is written above."));
  }

  begin() {
    this.model.on("change:key", () => { this.key.put(this.model.get("key")); this.problem.hidden = true; this.draw(); });
    this.model.on("change:event", () => this.draw());
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.box);
    this.draw();
    return () => sizes.disconnect();
  }

  name(number) {
    return number === null ? null : this.data.names[number];
  }

  events() {
    return this.data.messages[this.model.get("key")].filter((row) => row[WHAT] !== "became");
  }

  keep(changes) {
    for (const [each, value] of Object.entries(changes)) this.model.set(each, value);
    this.model.save_changes();
  }

  find(text) {
    const wanted = text.trim();
    this.problem.hidden = wanted in this.data.messages;
    this.problem.textContent = this.problem.hidden ? "" : `No message has the key ${wanted}. A key is compared whole, with upper and lower case.`;
    if (this.problem.hidden && wanted !== this.model.get("key")) this.keep({ key: wanted, event: 0 });
  }

  words(at) {
    const row = this.events()[at];
    const place = row[TOPIC] === null ? "" : row[QUEUE] === null ? `, ${this.name(row[TOPIC])}`
      : `, ${this.name(row[TOPIC])} of ${this.name(row[BROKER])}, queue ${row[QUEUE]}, offset ${row[OFFSET]}`;
    return `${clock(row[TIME])} ${row[WHAT]}${row[GROUP] === null || IN_LOG.includes(row[WHAT]) ? "" : ` by ${this.name(row[GROUP])}`}: ` +
      `${row[TOLD]}${place}`;
  }

  draw() {
    const rows = this.events();
    this.event.input.max = rows.length - 1;
    const here = Math.min(this.model.get("event"), rows.length - 1);
    this.event.put(here);
    this.said.textContent = `Event ${here + 1} of ${rows.length}: ${this.words(here)}`;
    const groups = [...new Set(rows.filter((row) => !IN_LOG.includes(row[WHAT])).map((row) => row[GROUP]))].sort((one,
      other) => one - other);
    const lane = (row) => (IN_LOG.includes(row[WHAT]) ? 0 : 1 + groups.indexOf(row[GROUP]));
    const step = Math.max(STEP, ((this.box.clientWidth || 640) - LEFT - 20) / Math.max(rows.length, 8));
    const [wide, high] = [step * rows.length + 10, TOP + LANE * (groups.length + 1) + 10];
    const x = (at) => step * (at + 0.5);
    const y = (row) => TOP + LANE * (lane(row) + 0.5);
    const svg = svgElement("svg", { class: "bi-life", width: wide, height: high, viewBox: `0 0 ${wide} ${high}`,
      role: "img",
      "aria-label": `${counted(rows.length, "event")} of ${this.model.get("key")}` });
    const names = svgElement("svg", { class: "bi-names", "aria-hidden": "true", width: LEFT, height: high, viewBox: `0 0 ${LEFT} ${high}` });
    ["log", ...groups.map((group) => this.name(group) ?? "no group")].forEach((title, at) => {
      names.append(svgElement("text", { x: 6, y: TOP + LANE * (at + 0.5) + 4 }, title));
      svg.append(svgElement("line", { x1: 0, x2: wide - 6, y1: TOP + LANE * (at + 0.5), y2: TOP + LANE * (at + 0.5),
        stroke: "var(--mq-rule)" }));
    });
    rows.forEach((row, at) => {
      if (at && row[TIME] > rows[at - 1][TIME]) {
        svg.append(svgElement("text", { x: x(at - 0.5), y: 14, class: "bi-small", "text-anchor": "middle" },
          `+${between(row[TIME] - rows[at - 1][TIME])}`),
          svgElement("line", { x1: x(at - 0.5), x2: x(at - 0.5), y1: 18, y2: high - 8, stroke: "var(--mq-rule)",
          "stroke-dasharray": "2 4" }));
      }
      const good = row[TOLD].startsWith("SUCCESS");
      const mark = row[WHAT] === "returned" ? (good ? "✓" : "✕") : MARKS[row[WHAT]] ?? "●";
      const ink = row[WHAT] === "returned" ? (good ? "--mq-2" : "--mq-4") : INKS[row[WHAT]] ?? "--mq-1";
      const spot = svgElement("g", { class: "bi-event", onclick: () => this.keep({ event: at }) },
        svgElement("title", {}, this.words(at)),
        svgElement("rect", { x: x(at) - step / 2 + 2, y: y(row) - 17, width: step - 4, height: 34, rx: 4,
          fill: at === here ? "var(--mq-light)" : "transparent", stroke: at === here ? "var(--mq-focus)" : "none",
          "stroke-width": 2 }),
        svgElement("text", { x: x(at), y: y(row) - 1, "text-anchor": "middle",
        style: `fill:var(${ink});font-size:15px` }, mark),
        svgElement("text", { x: x(at), y: y(row) + 13, "text-anchor": "middle", class: "bi-small" }, short(row, good)));
      svg.append(spot);
    });
    this.box.replaceChildren(names, svg);
    this.bringIntoView(x(here), step);
    const ends = this.data.messages[this.model.get("key")].filter((row) => row[WHAT] === "became");
    this.became.replaceChildren(...ends.map((row) => element("li", {},
      `${this.name(row[GROUP]) ?? "no group"}: ${row[TOLD]}`)));
  }

  // The event looked at, with the names of the lanes left of it, wherever it is in a long life.
  bringIntoView(middle, step) {
    const seen = this.box.clientWidth - LEFT;
    const [left, right] = [this.box.scrollLeft, this.box.scrollLeft + seen];
    if (middle - step / 2 < left || middle + step / 2 > right) this.box.scrollLeft = middle - seen / 2;
  }
}

function render(context) {
  return new Biography(context).begin();
}

export default { render };
