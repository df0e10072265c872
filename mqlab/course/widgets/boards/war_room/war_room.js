// The war room: one group's day in charts under one cursor, and findings noted at a moment.
import { buttonControl, choiceControl, textControl } from "../../frame/page/controls.js";
import { element, svgElement } from "../../frame/page/element.js";
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

function render({ model, el }) {
  const data = model.get("data");
  const lanes = Object.keys(data.words);
  const count = data.minutes / data.stretch;
  const clock = (minute) => `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
  const place = (minute) => Math.min(Math.max(Math.floor(minute / data.stretch) - 1, 0), count - 1);

  // 1. Which group, which moment.
  const group = choiceControl({ label: "Group", value: model.get("group"), choices: Object.keys(data.lanes),
    onValue: (value) => keep("group", value) });
  const moment = slider({ label: "Moment", min: data.stretch, max: data.minutes, step: data.stretch, value: model.get("minute"),
    text: (minute) => clock(minute), onValue: (minute) => keep("minute", minute) });
  const said = element("p", { role: "status", "aria-live": "polite" });
  const box = element("div", { class: "wr-charts" });

  // 2. Findings: what, when and whose.
  const words = textControl({ label: "Finding at the cursor", value: "" });
  const add = buttonControl("Note it", note);
  words.input.addEventListener("keydown", (event) => event.key === "Enter" && note());
  const list = element("ol", { "aria-label": "Findings" });
  const side = element("div", { class: "wr-notes" }, element("strong", {}, "Findings"), list,
    element("div", { class: "mq-row" }, words.el, add.el));
  el.append(element("style", {}, STYLE), element("div", { class: "mq-row" }, group.el, moment.el), said,
    element("div", { class: "wr-room" }, box, side));

  function keep(name, value) {
    model.set(name, value);
    model.save_changes();
  }

  function note() {
    const text = words.value().trim();
    if (!text) return;
    keep("notes", [...model.get("notes"), { minute: model.get("minute"), group: model.get("group"), words: text }]);
    words.put("");
  }

  function showNotes() {
    list.replaceChildren(...model.get("notes").map((one, at) => element("li", {},
      element("button", { type: "button", title: "Go there", onclick: () => { keep("group", one.group); keep("minute", one.minute); } },
        `${clock(one.minute)} ${one.group}`), ` ${one.words} `,
      element("button", { type: "button", "aria-label": `Remove finding ${at + 1}`,
        onclick: () => keep("notes", model.get("notes").filter((_, other) => other !== at)) }, "✕"))));
    if (!model.get("notes").length) list.replaceChildren(element("li", { class: "mq-note" }, "nothing noted yet"));
  }

  // 3. The charts, the cursor, and the values under it.
  function draw() {
    const width = Math.max(320, box.clientWidth || 640);
    const height = LANE * lanes.length + BOTTOM;
    const [now, minute] = [data.lanes[model.get("group")], model.get("minute")];
    const inner = width - LEFT - RIGHT;
    const x = (at) => LEFT + (inner * at) / data.minutes;
    said.textContent = `${model.get("group")} at ${clock(minute)} UTC. ` +
      lanes.map((lane) => `${data.words[lane]}: ${now[lane][place(minute)]}`).join("; ") + ".";
    const svg = svgElement("svg", { class: "wr-day", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": said.textContent });
    lanes.forEach((lane, row) => {
      const bottom = LANE * (row + 1);
      const most = Math.max(...now[lane], 1);
      const points = now[lane].map((value, at) =>
        `${x((at + 1) * data.stretch).toFixed(1)} ${(bottom - ((LANE - 8) * value) / most).toFixed(1)}`);
      svg.append(svgElement("text", { x: LEFT - 6, y: bottom - 8, "text-anchor": "end" }, data.words[lane]),
        svgElement("line", { x1: LEFT, x2: width - RIGHT, y1: bottom, y2: bottom, stroke: "var(--mq-rule)" }),
        svgElement("path", { d: `M${points.join("L")}`, fill: "none", stroke: "var(--mq-1)", "stroke-width": 1.5 }),
        svgElement("text", { x: width - RIGHT + 5, y: bottom - 8 }, String(now[lane][place(minute)])));
    });
    for (let hour = 0; hour <= 24; hour += width < 520 ? 8 : 4) {
      svg.append(svgElement("text", { x: x(hour * 60), y: height - 6, class: "wr-small", "text-anchor": "middle" }, clock(hour * 60)));
    }
    for (const one of model.get("notes").filter((each) => each.group === model.get("group"))) {
      svg.append(svgElement("text", { x: x(one.minute), y: 11, "text-anchor": "middle" }, "▼", svgElement("title", {}, one.words)));
    }
    svg.append(svgElement("line", { x1: x(minute), x2: x(minute), y1: 0, y2: LANE * lanes.length, stroke: "var(--mq-ink)",
      "stroke-dasharray": "4 3" }));
    svg.addEventListener("click", (event) => {
      const at = ((event.clientX - svg.getBoundingClientRect().left) * width) / svg.getBoundingClientRect().width;
      const there = Math.round(((at - LEFT) / inner) * count) * data.stretch;
      keep("minute", Math.min(Math.max(there, data.stretch), data.minutes));
    });
    box.replaceChildren(svg);
  }

  model.on("change:group", () => { group.put(model.get("group")); draw(); });
  model.on("change:minute", () => { moment.put(model.get("minute")); draw(); });
  model.on("change:notes", () => { showNotes(); draw(); });
  const sizes = new ResizeObserver(() => draw());
  sizes.observe(box);
  showNotes();
  draw();
  return () => sizes.disconnect();
}

export default { render };
