// The watermark board: what a count by time keeps, gives and drops, batch by batch, for the delay, window and mode chosen.
import { choiceControl } from "../../frame/page/controls.js";
import { element, svgElement } from "../../frame/page/element.js";
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
const [LEFT, BAR, LANE] = [76, 24, 34];

function render({ model, el }) {
  const data = model.get("data");
  const clock = (ms) => (ms === null ? "no watermark" : new Date(data.first_ms + ms).toISOString().slice(11, 19));
  const waterText = (one) => (one.watermark === null ? clock(null) : `watermark ${clock(one.watermark)}`);
  const countOf = (count, thing) => `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
  const keep = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };

  // 1. Delay, window, mode, and which batch is looked at.
  const minutes = (values) => values.map((value) => [value, `${value} min`]);
  const controls = {
    delay_min: choiceControl({ label: "Delay", value: model.get("delay_min"), choices: minutes(data.delays),
      onValue: (value) => keep("delay_min", value) }),
    window_min: choiceControl({ label: "Window", value: model.get("window_min"), choices: minutes(data.windows),
      onValue: (value) => keep("window_min", value) }),
    mode: choiceControl({ label: "Mode", value: model.get("mode"), choices: data.modes, onValue: (value) => keep("mode", value) }),
    batch: slider({ label: "Batch", min: 0, max: data.looks.length, value: model.get("batch"), text: (at) => `batch ${at}`,
      onValue: (value) => keep("batch", value) }),
  };
  const ledger = element("p", { class: "wm-ledger", "aria-live": "polite" });
  const said = element("p", { role: "status", "aria-live": "polite" });
  const box = element("div");
  el.append(element("style", {}, STYLE),
    element("div", { class: "mq-row" }, controls.delay_min.el, controls.window_min.el, controls.mode.el),
    element("div", { class: "mq-row" }, controls.batch.el), ledger, said, box, element("p", { class: "mq-note" },
      "Above, rows in state after each batch. Below, the groups of the batch looked at, each by the time of its window: filled, it " +
      "is kept; with a border alone, it is finished and forgotten; ✕, what came to it was dropped."));

  // 2. The stream, reckoned: as mqlab.course.widgets.boards.watermark.board.reckoned does it.
  function reckon() {
    const window = model.get("window_min") * MINUTE;
    const [delay, mode] = [model.get("delay_min") * MINUTE, model.get("mode")];
    const shift = ((data.first_ms % window) + window) % window; // windows begin at whole minutes of the clock
    const groups = new Map();
    const batches = [];
    const ever = new Map();
    let [before, newest, counted, inLog] = [null, null, 0, 0];
    [...data.looks, []].forEach((look, number) => {
      const watermark = newest === null ? null : newest - delay;
      const [late, touched] = [new Map(), new Set()];
      for (const [at, broker] of look) {
        const start = Math.floor((at + shift) / window) * window - shift;
        const key = `${start} ${broker}`;
        if (mode !== "complete" && before !== null && start + window <= before) late.set(key, (late.get(key) || 0) + 1);
        else {
          groups.set(key, (groups.get(key) || 0) + 1);
          ever.set(key, (ever.get(key) || 0) + 1);
          touched.add(key);
        }
        newest = newest === null ? at : Math.max(newest, at);
      }
      const over = [...groups.keys()].filter((key) => mode !== "complete" && watermark !== null &&
        Number(key.split(" ")[0]) + window <= watermark);
      const given = { update: touched.size, append: over.length, complete: groups.size }[mode];
      over.forEach((key) => groups.delete(key));
      const dropped = [...late.values()].reduce((sum, each) => sum + each, 0);
      counted += look.length - dropped;
      inLog += look.length;
      batches.push({ number, watermark, newest, dropped, late, kept: new Set(groups.keys()), given, counted, inLog,
        fresh: look.length, ever: new Map(ever) });
      before = watermark;
    });
    return batches;
  }

  // 3. The result in words, and the picture.
  function draw() {
    const batches = reckon();
    const last = batches[batches.length - 1];
    const chosen = batches[Math.min(model.get("batch"), batches.length - 1)];
    const missing = last.inLog - last.counted;
    ledger.textContent = `In the log ${last.inLog.toLocaleString("en")} messages, counted ${last.counted.toLocaleString("en")}: ` +
      (missing === 0 ? "✓ each is counted." : missing === 1 ? "✗ 1 is in no count." :
        `✗ ${missing.toLocaleString("en")} are in no count.`);
    said.textContent = `Batch ${chosen.number}: ${countOf(chosen.fresh, "new message")}, ${waterText(chosen)}, ` +
      `${countOf(chosen.kept.size, "row")} kept, ${chosen.given} given to the sink` +
      (chosen.dropped ? `, ${countOf(chosen.dropped, "message")} of ${countOf(chosen.late.size, "group")} dropped: ` +
      `${chosen.late.size === 1 ? "its window" : "their windows"} ended before the ` +
      `watermark of the batch before, ${clock(batches[chosen.number - 1].watermark)}.` : ".");
    const width = Math.max(320, box.clientWidth || 640);
    const [barsHigh, lanesTop] = [BAR * batches.length, BAR * batches.length + 30];
    const height = lanesTop + LANE * data.brokers.length + 30;
    const svg = svgElement("svg", { class: "wm-picture", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `${ledger.textContent} ${said.textContent}` });
    const most = Math.max(1, ...batches.map((one) => one.kept.size));
    const long = Math.max(60, width - LEFT - 330);
    for (const one of batches) {
      const y = BAR * one.number;
      const line = svgElement("g", { class: "wm-batch", onclick: () => keep("batch", one.number) });
      if (one === chosen) {
        line.append(svgElement("rect", { x: 0, y: y + 1, width, height: BAR - 2, fill: "var(--mq-light)" }));
      }
      const bar = (long * one.kept.size) / most;
      line.append(svgElement("rect", { x: 0, y, width, height: BAR, fill: "transparent" }),
        svgElement("text", { x: 6, y: y + 16 }, `batch ${one.number}`),
        svgElement("rect", { x: LEFT, y: y + 5, width: Math.max(bar, 1), height: BAR - 10, fill: "var(--mq-1)" }),
        svgElement("text", { x: LEFT + bar + 6, y: y + 16 }, `${one.kept.size} kept`),
        svgElement("text", { x: LEFT + long + 80, y: y + 16, class: "wm-small" }, clock(one.watermark)));
      if (one.dropped) {
        line.append(svgElement("text", { x: LEFT + long + 150, y: y + 16, style: "fill:var(--mq-4)" }, `✕ ${one.dropped} dropped`));
      }
      svg.append(line);
    }

    // 4. The groups by the time of their windows.
    const window = model.get("window_min") * MINUTE;
    const starts = [...last.ever.keys(), ...batches.flatMap((one) => [...one.late.keys()])].map((key) => Number(key.split(" ")[0]));
    const [from, to] = [Math.min(...starts), Math.max(...starts) + window];
    const x = (ms) => LEFT + ((ms - from) / (to - from)) * (width - LEFT - 10);
    data.brokers.forEach((name, lane) => {
      svg.append(svgElement("text", { x: LEFT - 6, y: lanesTop + LANE * lane + 19, class: "wm-small", "text-anchor": "end" }, name));
    });
    for (const [key, count] of chosen.ever) {
      const [start, broker] = key.split(" ").map(Number);
      const isKept = chosen.kept.has(key);
      cell(start, broker, isKept ? "var(--mq-2)" : "none", isKept ? "var(--mq-2)" : "var(--mq-muted)", count, isKept ? "wm-on" : "wm-small",
        `${clock(start)}, ${data.brokers[broker]}: ${count} counted, ${isKept ? "kept" : "finished and forgotten"}`);
    }
    for (const one of batches.slice(0, chosen.number + 1)) {
      for (const [key, count] of one.late) {
        const [start, broker] = key.split(" ").map(Number);
        cell(start, broker, "none", "var(--mq-4)", `✕ ${count}`, null, `${clock(start)}, ${data.brokers[broker]}: ${count} dropped in batch ${one.number}`);
      }
    }
    function cell(start, broker, fill, stroke, words, kind, title) {
      const wide = x(start + window) - x(start) - 2;
      const y = lanesTop + LANE * broker;
      svg.append(svgElement("rect", { x: x(start) + 1, y, width: Math.max(wide, 1), height: LANE - 8, fill, stroke, rx: 2 },
        svgElement("title", {}, title)));
      if (wide > 7 * String(words).length + 2) {
        svg.append(svgElement("text", { x: x(start) + 1 + wide / 2, y: y + 17, "text-anchor": "middle", class: kind,
          style: kind ? null : "fill:var(--mq-4)" }, words));
      }
    }
    const bottom = lanesTop + LANE * data.brokers.length;
    const mark = (ms, words, ink, dashes) => {
      if (ms === null) return;
      const place = Math.min(Math.max(x(ms), LEFT), width - 10);
      const anchor = place > width - 130 ? "end" : place < LEFT + 130 ? "start" : "middle";
      svg.append(svgElement("line", { x1: place, x2: place, y1: lanesTop - 6, y2: bottom, stroke: ink, "stroke-width": 2, "stroke-dasharray": dashes }));
      return [place, anchor, words, ink];
    };
    const water = mark(chosen.watermark, waterText(chosen), "var(--mq-3)", null);
    const newest = mark(chosen.newest, `newest ${clock(chosen.newest)}`, "var(--mq-ink)", "3 4");
    for (const [at, one] of [[lanesTop - 12, water], [bottom + 16, newest]]) {
      if (one) svg.append(svgElement("text", { x: one[0], y: at, "text-anchor": one[1], style: `fill:${one[3]}` }, one[2]));
    }
    svg.append(svgElement("line", { x1: 0, x2: width, y1: barsHigh + 4, y2: barsHigh + 4, stroke: "var(--mq-rule)" }));
    box.replaceChildren(svg);
  }

  for (const [name, control] of Object.entries(controls)) {
    model.on(`change:${name}`, () => { control.put(model.get(name)); draw(); });
  }
  const sizes = new ResizeObserver(() => draw());
  sizes.observe(box);
  draw();
  return () => sizes.disconnect();
}

export default { render };
