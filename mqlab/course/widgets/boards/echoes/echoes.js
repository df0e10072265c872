// The echo chart: calls by when their message was stored and when they came; the calls of a cell are listed beside it.
import { choiceControl } from "../../frame/page/controls.js";
import { element, svgElement } from "../../frame/page/element.js";

const STYLE = `
.ec-room { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
.ec-chart { flex: 3 1 320px; min-width: 0; }
.ec-side { flex: 1 1 220px; min-width: 0; }
.ec-side ol { margin: 4px 0; padding-left: 22px; max-height: 260px; overflow: auto; }
.ec-cells { width: 100%; display: block; cursor: pointer; }
.ec-cells text { font-size: 11px; fill: var(--mq-ink); pointer-events: none; }
.ec-cells .ec-small { fill: var(--mq-muted); }
.ec-cells .ec-on { fill: var(--mq-paper); font-weight: 600; }
.ec-said { font-weight: 600; margin: 4px 0; }
`;
const [LEFT, TOP, RIGHT, BOTTOM] = [74, 22, 6, 6];
const LISTED = 60;

function render({ model, el }) {
  const data = model.get("data");
  const unit = (seconds) => (seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`);
  const keep = (changes) => {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  };

  // 1. Whose calls, of which cause, in which stretches.
  const group = choiceControl({ label: "Group", value: model.get("group"), choices: Object.keys(data.groups),
    onValue: (value) => keep({ group: value }) });
  const cause = choiceControl({ label: "Calls", value: model.get("cause"), choices: [data.every, ...data.causes],
    onValue: (value) => keep({ cause: value }) });
  const stretch = choiceControl({ label: "Stretch", value: model.get("stretch_s"),
    choices: data.stretches.map((seconds) => [seconds, unit(seconds)]),
    onValue: (value) => keep({ stretch_s: value, row: 0, column: 0 }) });
  const said = element("p", { class: "ec-said", role: "status", "aria-live": "polite" });
  const box = element("div", { class: "ec-chart" });
  const side = element("div", { class: "ec-side" });
  el.append(element("style", {}, STYLE), element("div", { class: "mq-row" }, group.el, cause.el, stretch.el), said,
    element("div", { class: "ec-room" }, box, side),
    element("p", { class: "mq-note" }, "On the outlined diagonal a call came in the stretch in which its message was stored. " +
      "To the right of it stands what came late, or again."));

  // 2. Calls of the chosen cause, and their cells.
  function place(ms) {
    const long = model.get("stretch_s") * 1000;
    const from = Math.floor(data.start_ms / long) * long - data.start_ms;
    return Math.max(0, Math.floor((ms - from) / long));
  }

  function chosen() {
    const wanted = data.causes.indexOf(model.get("cause"));
    return data.groups[model.get("group")].filter((call) => wanted < 0 || call[2] === wanted);
  }

  function cellsOf(calls) {
    const cells = new Map();
    for (const call of calls) {
      const key = `${place(call[0])} ${place(call[1])}`;
      cells.set(key, [...(cells.get(key) || []), call]);
    }
    return cells;
  }

  // 3. The chart, and the calls of the chosen cell.
  function draw() {
    const cells = cellsOf(chosen());
    const count = place(data.last_ms - data.start_ms) + 1;
    const width = Math.max(280, box.clientWidth || 480);
    const size = Math.min(30, (width - LEFT - RIGHT) / count);
    const [wide, high] = [LEFT + size * count + RIGHT, TOP + size * count + BOTTOM];
    const most = Math.max(1, ...[...cells.values()].map((calls) => calls.length));
    const off = [...cells].filter(([key]) => key.split(" ")[0] !== key.split(" ")[1]);
    const later = off.reduce((sum, [, calls]) => sum + calls.length, 0);
    const all = [...cells.values()].reduce((sum, calls) => sum + calls.length, 0);
    const { group: name, cause: why, stretch_s: long } = { group: model.get("group"), cause: model.get("cause"), stretch_s: model.get("stretch_s") };
    said.textContent = `${all} calls of ${name}${why === data.every ? "" : `, ${why}`}: ${all - later} within the ${unit(long)} in which ` +
      `their message was stored, ${later} later.`;
    const svg = svgElement("svg", { class: "ec-cells", viewBox: `0 0 ${wide} ${high}`, style: `max-width:${wide}px`, role: "img",
      "aria-label": said.textContent });
    const every = Math.max(1, Math.ceil(28 / size));
    for (let at = 0; at < count; at += 1) {
      if (at % every === 0) {
        svg.append(svgElement("text", { x: LEFT + (at + 0.5) * size, y: TOP - 6, class: "ec-small", "text-anchor": "middle" }, at),
          svgElement("text", { x: LEFT - 6, y: TOP + (at + 0.5) * size + 4, class: "ec-small", "text-anchor": "end" }, at === 0 ? "stored in 0" : at));
      }
      svg.append(svgElement("rect", { x: LEFT + at * size, y: TOP + at * size, width: size, height: size, fill: "none", stroke: "var(--mq-rule)" }));
    }
    svg.append(svgElement("text", { x: LEFT - 6, y: TOP - 6, class: "ec-small", "text-anchor": "end" }, "called in"));
    for (const [key, calls] of cells) {
      const [row, column] = key.split(" ").map(Number);
      const strength = 0.25 + 0.75 * (Math.log1p(calls.length) / Math.log1p(most));
      svg.append(svgElement("rect", { x: LEFT + column * size + 0.5, y: TOP + row * size + 0.5, width: size - 1, height: size - 1,
        fill: row === column ? "var(--mq-1)" : "var(--mq-4)", opacity: strength },
      svgElement("title", {}, `stored in ${row}, called in ${column}: ${calls.length} calls`)));
      if (size >= 18) {
        svg.append(svgElement("text", { x: LEFT + (column + 0.5) * size, y: TOP + (row + 0.5) * size + 4, "text-anchor": "middle",
          class: strength > 0.6 ? "ec-on" : null }, calls.length));
      }
    }
    const [row, column] = [model.get("row"), model.get("column")];
    svg.append(svgElement("rect", { x: LEFT + column * size, y: TOP + row * size, width: size, height: size, fill: "none",
      stroke: "var(--mq-focus)", "stroke-width": 3 }));
    svg.addEventListener("click", (event) => {
      const around = svg.getBoundingClientRect();
      const part = wide / around.width;
      const at = (value) => Math.min(count - 1, Math.max(0, Math.floor(value / size)));
      keep({ row: at((event.clientY - around.top) * part - TOP), column: at((event.clientX - around.left) * part - LEFT) });
    });
    box.replaceChildren(svg);
    list(cells.get(`${row} ${column}`) || [], off);
  }

  function clock(ms) {
    return new Date(data.start_ms + ms).toISOString().slice(11, 19);
  }

  function list(calls, off) {
    const [row, column] = [model.get("row"), model.get("column")];
    const words = `Stored in ${row}, called in ${column}: ${calls.length} call${calls.length === 1 ? "" : "s"}`;
    off.sort((one, other) => other[1].length - one[1].length);
    const largest = off.slice(0, 5).map(([key, each]) => {
      const [stored, called] = key.split(" ").map(Number);
      return element("button", { type: "button", onclick: () => keep({ row: stored, column: called }),
        "aria-label": `Show what was stored in ${stored} and called in ${called}: ${each.length}` }, `${stored} → ${called}: ${each.length}`);
    });
    const because = (why) => (data.causes[why] === data.unknown ? "" : `, ${data.causes[why]}`);
    const items = calls.slice(0, LISTED).map(([stored, called, why, keys]) =>
      element("li", {}, `${keys || "no key"}, stored ${clock(stored)}, called ${clock(called)}${because(why)}`));
    if (calls.length > LISTED) items.push(element("li", {}, `and ${calls.length - LISTED} more`));
    side.replaceChildren(
      element("div", { class: "mq-row", role: "group", "aria-label": "Largest echoes" },
        largest.length ? ["Largest echoes: ", largest] : "No echo: every call came at once."),
      element("strong", {}, words), element("ol", { "aria-label": "Calls of the cell" }, items));
  }

  for (const [name, control] of Object.entries({ group, cause, stretch_s: stretch })) {
    model.on(`change:${name}`, () => { control.put(model.get(name)); draw(); });
  }
  model.on("change:row", () => draw());
  model.on("change:column", () => draw());
  const sizes = new ResizeObserver(() => draw());
  sizes.observe(box);
  draw();
  return () => sizes.disconnect();
}

export default { render };
