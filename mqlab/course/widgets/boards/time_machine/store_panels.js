// What was in the files and tables at a stop: queues as cells, offsets as a table, one unit as bytes with its fields.
// data: rows, units and places of mqlab/course/widgets/recording.py. A row's element is made once and shown again.
import { element } from "../../frame/page/element.js";

const STORE_STYLE = `
.mq-cells { display: flex; flex-wrap: wrap; gap: 3px; margin: 2px 0 6px; }
.mqlab-board .mq-cells button { padding: 1px 6px; min-height: 36px; text-align: left; line-height: 1.2; font-size: 11px; }
.mqlab-board .mq-cells .next { border: 1px dashed var(--mq-muted); border-radius: 4px; padding: 3px 6px; font-size: 11px; }
.mqlab-board .mq-hex { font: 12px/1.6 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; margin: 4px 0; }
.mqlab-board .mq-hex span { border-bottom: 2px solid var(--mq-5); margin-right: 3px; }
.mqlab-board .mq-hex span:nth-child(3n+1) { border-bottom-color: var(--mq-1); }
.mqlab-board .mq-hex span:nth-child(3n+2) { border-bottom: 2px dashed var(--mq-4); }
.mqlab-board .mq-store .mq-panel { height: 300px; resize: vertical; contain: strict; flex-basis: 320px; }
.mqlab-board .mq-store .mq-panel:has(> div:empty, tbody:empty) { height: auto; contain: content; }
.mqlab-board .mq-store .mq-panel:has(tbody:empty) table { display: none; }
.mqlab-board .mq-store .mq-panel > div:empty::after { content: "Nothing yet."; color: var(--mq-muted); }
.mqlab-board .mq-store .mq-panel:has(tbody:empty)::after { content: "Nothing yet."; color: var(--mq-muted); }
`;

function messageId(unit) {
  const properties = unit[5].find(([name]) => name === "properties");
  return /UNIQ_KEY=([0-9A-F]{32})/.exec(properties ? properties[3] : "")?.[1];
}

function unitLinks(unit) {
  const id = messageId(unit);
  return [`unit ${unit[0]} ${unit[1]}`, ...(id ? [`message ${id}`] : [])];
}

function once(known, key, make) {
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
}

class StorePanels {
  constructor({ data, links, onSelect }) {
    Object.assign(this, { data, onSelect, links });
    this.makePanels();
  }

  makePanels() {
    this.queues = element("div", {});
    this.offsets = element("tbody", {});
    this.bytes = element("div", {});
    this.views = element("div", {});
    const own = this.data.views.length > 0;
    const panel = (title, ...inside) => element("section", { class: "mq-panel", "aria-label": title },
      element("h4", {}, title), inside);
    const head = ["group", "queue", "in memory", "at the broker", "in its file"];
    const table = element("table", {}, element("caption", { class: "mq-note", style: "text-align:left" },
      "The next entry that each group reads"),
      element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))), this.offsets);
    this.el = element("div", { class: "mq-panels mq-store", style: "flex:1 1 100%;min-width:0;max-width:100%" },
      element("style", {}, STORE_STYLE), own ? panel("What this lab shows", this.views) : null, panel("Log and queues",
      this.queues),
      panel("Offsets", table), panel("Bytes", this.bytes));
    this.rowElements = new Map();
    this.viewElements = new Map();
    this.unitElements = new Map();
    this.unitByLink = new Map();
    this.extra = new Map();
    this.data.units.forEach((unit, number) => {
      this.unitByLink.set(`unit ${unit[0]} ${unit[1]}`, number);
    });
    [this.shownPlace, this.shownUnit, this.selected, this.newest] = [null, null, [], null];
  }

  cell(number, place, text) {
    const unit = this.data.units[number];
    const itsLinks = [...(place ? [`entry ${place}`] : []), ...(unit ? unitLinks(unit) : [])];
    const node = element("button", { type: "button", onclick: () => this.onSelect(itsLinks),
      "aria-label": `${text}${unit && unit[3] ? `, ${unit[3]}` : ""}${unit ? `, at byte ${unit[1]}` : ""}` },
      element("b", {}, text), element("br"), unit ? unit[3] || `byte ${unit[1]}` : "…");
    this.links.add(node, itsLinks);
    return node;
  }

  rowElement(row) {
    if (row[0] === "log") {
      const [, broker, up, first, end, waiting] = row;
      return element("div", {}, element("b", {}, `${broker}${up ? "" : " (down)"}: log from byte ${first} to ${end}`),
        waiting.length ? element("div", { class: "mq-note" }, "stored, and in no queue yet:") : null,
        waiting.length ? element("div", { class: "mq-cells" },
        waiting.map((unit) => this.cell(unit, null, "unit"))) : null);
    }
    if (row[0] === "queue") {
      const [, broker, topic, queue, first, units, next] = row;
      const place = `${broker} ${topic} ${queue}`;
      const end = element("span", { class: "next" }, `${next} next`);
      this.links.add(end, [`entry ${place} ${next}`]);
      return element("div", {}, `${topic}, queue ${queue} of ${broker}`,
        first > 0 && units.length ? element("span", { class: "mq-note" }, ` (from entry ${first} on)`) : null,
        element("div", { class: "mq-cells" }, units.map((unit, at) => this.cell(unit, `${place} ${first + at}`,
        `${first + at}`)), end));
    }
    const [, group, broker, topic, queue, committed, saved, memory] = row;
    const place = `${broker} ${topic} ${queue}`;
    const itsLinks = [`group ${group} ${place}`];
    const known = memory.map(([client, offset]) => `${offset} (${client})`).join(", ");
    const node = element("tr", {}, element("td", {},
      element("button", { type: "button", onclick: () => this.onSelect(itsLinks) }, group)),
      [`${topic} ${queue}`, known || "–", committed ?? "–", saved ?? "–"].map((text) => element("td", {},
      String(text))));
    this.links.add(node, itsLinks);
    return node;
  }

  unitElement(number) {
    const [broker, offset, size, text, hex, fields] = this.data.units[number];
    const rows = fields.map(([name, at, length, value, meaning], index) => element("tr", { title: meaning },
      [`${index + 1}`, `${at}`, `${length}`, name, value].map((each) => element("td", {}, each))));
    const dump = fields.map(([name, at, length]) => element("span", { title: name },
      hex.slice(at * 2, (at + length) * 2).match(/../g)?.join(" ") || "·"));
    return element("div", {}, element("div", {}, `${text || "a unit"}: ${size} bytes at byte ${offset} of ${broker}`),
      element("div", { class: "mq-hex" }, dump),
      element("table", {}, element("thead", {}, element("tr", {},
        ["#", "offset", "size", "field", "value"].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, rows)));
  }

  showUnit() {
    const direct = this.selected.map((link) => this.unitByLink.get(link)).find((number) => number !== undefined);
    const byId = this.selected.filter((link) => link.startsWith("message "));
    const other = byId.length ? this.data.units.findIndex((unit) => unitLinks(unit).some((link) => byId.includes(link))) : -1;
    const number = direct ?? (other >= 0 ? other : this.newest);
    if (number === this.shownUnit) return;
    this.shownUnit = number;
    this.bytes.replaceChildren(number === null || number < 0 ? "no message yet"
      : once(this.unitElements, number, () => this.unitElement(number)));
  }

  show(position) {
    const place = this.data.place_of[position];
    const key = this.extra.has(position) ? `stop ${position}` : place;
    if (key === this.shownPlace) return;
    this.shownPlace = key;
    const [rowNumbers, viewNumbers] = place < 0 ? [[], []] : this.data.places[place];
    const rows = rowNumbers.map((number) => [this.data.rows[number], once(this.rowElements, number,
      () => this.rowElement(this.data.rows[number]))]);
    this.queues.replaceChildren(...rows.filter(([row]) => row[0] !== "group").map(([, node]) => node));
    this.offsets.replaceChildren(...rows.filter(([row]) => row[0] === "group").map(([, node]) => node));
    const seen = rows.flatMap(([row]) => (row[0] === "group" ? [] : row[5]));
    this.newest = seen.length ? Math.max(...seen) : null;
    const texts = this.extra.get(position) || viewNumbers.map((number) => this.data.views[number]);
    this.views.replaceChildren(...texts.map((text) => once(this.viewElements, text, () => {
      const box = element("div", { style: "margin-bottom:6px;overflow-x:auto" });
      box.innerHTML = text;
      return box;
    })));
    this.showUnit();
  }

  select(next) {
    this.selected = next;
    this.showUnit();
  }

  // Views that the kernel made for one stop.
  keep(position, texts) {
    this.extra.set(position, texts);
    this.shownPlace = null;
  }
}

export function storePanels(options) {
  return new StorePanels(options);
}
