// The biography board: a message's events in their order, a line for the log and one for each group, and the event looked at.
import { textControl } from "../../frame/page/controls.js";
import { element, freshId, svgElement } from "../../frame/page/element.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.bi-scroll { overflow-x: auto; }
.bi-scroll .bi-life { display: block; max-width: none; }
.bi-life text { font-size: 12px; fill: var(--mq-ink); }
.bi-life .bi-small { fill: var(--mq-muted); font-size: 11px; }
.bi-life .bi-event { cursor: pointer; }
.bi-said { font-weight: 600; margin: 4px 0; }
.bi-became { margin: 4px 0; padding-left: 20px; }
`;
const [LEFT, STEP, LANE, TOP] = [96, 62, 40, 30];
const [TIME, WHAT, GROUP, TOPIC, BROKER, QUEUE, OFFSET, TOLD] = [0, 1, 2, 3, 4, 5, 6, 7];
const IN_LOG = ["born", "stored", "stored for a retry", "dead letter", "half message stored", "parked"];
const INKS = { stored: "--mq-1", "stored for a retry": "--mq-1", parked: "--mq-6", "dead letter": "--mq-4", called: "--mq-3",
  "half message stored": "--mq-6", "no result": "--mq-4", born: "--mq-5" };
const MARKS = { born: "○", stored: "●", "stored for a retry": "●", parked: "▭", "dead letter": "■", "half message stored": "◐",
  called: "▲", "no result": "?" };

function render({ model, el }) {
  const data = model.get("data");
  const name = (number) => (number === null ? null : data.names[number]);
  const events = () => data.messages[model.get("key")].filter((row) => row[WHAT] !== "became");
  const clock = (ms) => new Date(ms).toISOString().slice(11, 23);
  const keep = (changes) => {
    for (const [each, value] of Object.entries(changes)) model.set(each, value);
    model.save_changes();
  };

  // 1. Which message, which event.
  const key = textControl({ label: "Key", value: model.get("key"), onValue: find });
  const known = element("datalist", { id: freshId() }, Object.keys(data.messages).map((each) => element("option", { value: each })));
  key.input.setAttribute("list", known.id);
  key.input.addEventListener("keydown", (event) => event.key === "Enter" && find(key.value()));
  const problem = element("p", { class: "mq-error", role: "alert", hidden: true });
  const event = slider({ label: "Event", min: 0, max: 1, value: model.get("event"), text: (at) => words(at),
    onValue: (at) => keep({ event: at }) });
  const said = element("p", { class: "bi-said", role: "status", "aria-live": "polite" });
  const box = element("div", { class: "bi-scroll" });
  const became = element("ul", { class: "bi-became", "aria-label": "What became of it" });
  el.append(element("style", {}, STYLE), known, element("div", { class: "mq-row" }, key.el, event.el), problem, said, box, became,
    element("p", { class: "mq-note" }, "● stored, ▭ parked until its time, ■ dead letter, ▲ called, ✓ succeeded, ✕ failed, ? no result. " +
      "Events stand in their order; the time between two of them is written above."));

  function find(text) {
    const wanted = text.trim();
    problem.hidden = wanted in data.messages;
    problem.textContent = problem.hidden ? "" : `No message has the key ${wanted}. A key is compared whole, with upper and lower case.`;
    if (problem.hidden && wanted !== model.get("key")) keep({ key: wanted, event: 0 });
  }

  function words(at) {
    const row = events()[at];
    const place = row[TOPIC] === null ? "" : row[QUEUE] === null ? `, ${name(row[TOPIC])}`
      : `, ${name(row[TOPIC])} of ${name(row[BROKER])}, queue ${row[QUEUE]}, offset ${row[OFFSET]}`;
    return `${clock(row[TIME])} ${row[WHAT]}${row[GROUP] === null || IN_LOG.includes(row[WHAT]) ? "" : ` by ${name(row[GROUP])}`}: ` +
      `${row[TOLD]}${place}`;
  }

  function between(ms) {
    if (ms < 1000) return `${ms} ms`;
    const s = ms / 1000;
    return s < 60 ? `${s.toFixed(s < 10 ? 1 : 0)} s` : s < 3600 ? `${(s / 60).toFixed(s < 600 ? 1 : 0)} min` : `${(s / 3600).toFixed(1)} h`;
  }

  // 2. The picture: one column per event.
  function draw() {
    const rows = events();
    event.input.max = rows.length - 1;
    const here = Math.min(model.get("event"), rows.length - 1);
    event.put(here);
    said.textContent = `Event ${here + 1} of ${rows.length}: ${words(here)}`;
    const groups = [...new Set(rows.filter((row) => !IN_LOG.includes(row[WHAT])).map((row) => row[GROUP]))].sort((one, other) => one - other);
    const lane = (row) => (IN_LOG.includes(row[WHAT]) ? 0 : 1 + groups.indexOf(row[GROUP]));
    const step = Math.max(STEP, ((box.clientWidth || 640) - LEFT - 20) / Math.max(rows.length, 8));
    const [wide, high] = [LEFT + step * rows.length + 10, TOP + LANE * (groups.length + 1) + 10];
    const x = (at) => LEFT + step * (at + 0.5);
    const y = (row) => TOP + LANE * (lane(row) + 0.5);
    const svg = svgElement("svg", { class: "bi-life", width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img",
      "aria-label": `${rows.length} events of ${model.get("key")}` });
    ["log", ...groups.map((group) => name(group) ?? "no group")].forEach((title, at) => {
      svg.append(svgElement("text", { x: 6, y: TOP + LANE * (at + 0.5) + 4 }, title),
        svgElement("line", { x1: LEFT, x2: wide - 6, y1: TOP + LANE * (at + 0.5), y2: TOP + LANE * (at + 0.5), stroke: "var(--mq-rule)" }));
    });
    rows.forEach((row, at) => {
      if (at && row[TIME] > rows[at - 1][TIME]) {
        svg.append(svgElement("text", { x: x(at - 0.5), y: 14, class: "bi-small", "text-anchor": "middle" }, `+${between(row[TIME] - rows[at - 1][TIME])}`),
          svgElement("line", { x1: x(at - 0.5), x2: x(at - 0.5), y1: 18, y2: high - 8, stroke: "var(--mq-rule)", "stroke-dasharray": "2 4" }));
      }
      const good = row[TOLD].startsWith("SUCCESS");
      const mark = row[WHAT] === "returned" ? (good ? "✓" : "✕") : MARKS[row[WHAT]] ?? "●";
      const ink = row[WHAT] === "returned" ? (good ? "--mq-2" : "--mq-4") : INKS[row[WHAT]] ?? "--mq-1";
      const spot = svgElement("g", { class: "bi-event", onclick: () => keep({ event: at }) },
        svgElement("title", {}, words(at)),
        svgElement("rect", { x: x(at) - step / 2 + 2, y: y(row) - 17, width: step - 4, height: 34, rx: 4,
          fill: at === here ? "var(--mq-light)" : "transparent", stroke: at === here ? "var(--mq-focus)" : "none", "stroke-width": 2 }),
        svgElement("text", { x: x(at), y: y(row) - 1, "text-anchor": "middle", style: `fill:var(${ink});font-size:15px` }, mark),
        svgElement("text", { x: x(at), y: y(row) + 13, "text-anchor": "middle", class: "bi-small" }, short(row, good)));
      svg.append(spot);
    });
    box.replaceChildren(svg);
    const ends = data.messages[model.get("key")].filter((row) => row[WHAT] === "became");
    became.replaceChildren(...ends.map((row) => element("li", {}, `${name(row[GROUP]) ?? "no group"}: ${row[TOLD]}`)));
  }

  function short(row, good) {
    return { "stored for a retry": "for retry", "dead letter": "dead", "half message stored": "half", "no result": "no result",
      returned: good ? "success" : "failed" }[row[WHAT]] ?? row[WHAT];
  }

  model.on("change:key", () => { key.put(model.get("key")); problem.hidden = true; draw(); });
  model.on("change:event", () => draw());
  const sizes = new ResizeObserver(() => draw());
  sizes.observe(box);
  draw();
  return () => sizes.disconnect();
}

export default { render };
