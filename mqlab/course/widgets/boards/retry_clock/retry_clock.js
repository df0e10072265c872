// The retry clock: deliveries, waits and units of one order on an axis of log time, and the learner's pin.
import { buttonControl, checkControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { element, svgElement } from "../../frame/page/element.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.rc-axis { width: 100%; display: block; touch-action: none; }
.rc-axis text { font-size: 12px; fill: var(--mq-ink); }
.rc-axis .rc-small { fill: var(--mq-muted); font-size: 11px; }
.rc-axis .rc-mark { cursor: pointer; }
.rc-axis .rc-here { stroke: var(--mq-focus); stroke-width: 2; fill: var(--mq-light); }
.rc-table { max-height: 260px; overflow: auto; }
.rc-table tr[aria-selected="true"] td { background: var(--mq-light); font-weight: 600; }
.rc-table tr { cursor: pointer; }
.rc-table td { white-space: nowrap; }
`;
const TICKS = [[1000, "1 s"], [10000, "10 s"], [60000, "1 min"], [600000, "10 min"], [3600000, "1 h"], [18000000, "5 h"],
  [86400000, "1 d"]];
const SHOWN_ROWS = 200;
const PIN_STEPS = 1000;

// ms -> "1 h 2 min 3 s"; parts that are zero are left out.
function timeText(ms) {
  if (ms < 0) return `${ms} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  const parts = [[Math.floor(seconds / 3600), "h"], [Math.floor(seconds / 60) % 60, "min"], [seconds % 60, "s"]];
  const rest = Math.round(ms % 1000);
  const text = parts.filter(([count]) => count).map(([count, unit]) => `${count} ${unit}`).join(" ");
  return rest && ms < 600000 ? `${text} ${rest} ms` : text;
}

function plainDuration(ms) {
  if (ms === null) return "";
  for (const [size, unit] of [[3600000, "h"], [60000, "m"], [1000, "s"]]) {
    if (ms && ms % size === 0) return `${ms / size}${unit}`;
  }
  return ms ? `${ms}ms` : "0s";
}

// The second is the unit of the axis: its first part is linear enough to hold 0.
const scaled = (ms) => Math.log10(1 + Math.max(ms, 0) / 1000);
const unscaled = (value) => 1000 * (10 ** value - 1);
const isPaid = (status) => status === "CONSUME_SUCCESS" || status === "SUCCESS";

function render({ model, el }) {
  const data = () => model.get("data");
  let run = data().runs[0];
  let markedRow = null;
  let scrolling = 0;
  let drawn = null; // what of the picture moves with the position: { x, mark, waits }
  let pinSpan = 1; // the axis when the pin was placed: it must not stretch while the pin moves
  const kernel = model.get("kernel") !== false;

  // 1. Controls: everything that can be changed with a kernel, the recorded runs always.
  const recorded = choiceControl({
    label: "Recorded run", value: 0, choices: data().runs.map((each, at) => [at, each.name]),
    onValue: (at) => showRun(data().runs[at]),
  });
  const levels = textControl({ label: "Level table", value: run.settings.levels });
  levels.input.size = 30;
  const retries = numberControl({ label: "Max retries (-1: default)", min: -1, max: data().max_retries, step: 1 });
  const asked = numberControl({ label: "Level asked (0: the broker decides)", min: -1, max: data().max_level, step: 1 });
  const from = textControl({ label: "Bank down from" });
  const to = textControl({ label: "to (empty: for ever)" });
  const orderly = checkControl({ label: "In order" });
  [from, to].forEach((each) => (each.input.size = 5));
  const playing = buttonControl("Play", play);
  const settings = element("div", { class: "mq-row", role: "group", "aria-label": "Settings" },
    [levels, retries, asked, from, to, orderly, playing].map((each) => each.el));
  settings.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.tagName === "INPUT") play();
  });
  const problem = element("div", { class: "mq-error", role: "alert", hidden: true });

  // 2. The picture, the position and the pin.
  const box = element("div");
  const status = element("div", { role: "status", "aria-live": "polite" });
  const delivery = slider({
    label: "Delivery", min: 1, max: Math.max(1, run.deliveries.length), value: 1,
    text: (number) => describe(number), onValue: go,
  });
  const pin = slider({
    label: "Your prediction (pin)", min: 0, max: PIN_STEPS, value: 0,
    text: (step) => timeText(pinTime(step)), onValue: (step) => movePin(pinTime(step)),
  });
  const pinWords = element("div", { class: "mq-note", role: "status" });
  const unpin = buttonControl("Remove pin", () => movePin(null));
  const listed = element("div", { class: "rc-table" });
  const end = element("div", { "aria-live": "polite" });
  el.append(element("style", {}, STYLE));
  if (kernel) el.append(settings);
  el.append(element("div", { class: "mq-row" }, recorded.el), problem, end, box,
    element("div", { class: "mq-row" }, delivery.el), status,
    element("div", { class: "mq-row" }, pin.el, unpin.el), pinWords, listed);

  // 3. What is shown follows the run and the state.
  function fillSettings() {
    const set = run.settings;
    levels.put(set.levels);
    retries.put(set.max_retries);
    asked.put(set.asked);
    from.put(plainDuration(set.down_from_ms));
    to.put(plainDuration(set.down_to_ms));
    orderly.put(set.orderly);
  }

  function span() {
    return scaled(Math.max(run.end_ms, run.deliveries.at(-1)[0], model.get("pin_ms") ?? 0, 20000)) * 1.04;
  }

  // A pin lies on a whole second, so that it can be set exactly with the arrow keys.
  function pinTime(step) {
    return Math.round(unscaled((step / PIN_STEPS) * pinSpan) / 1000) * 1000;
  }

  function showRun(next) {
    run = next;
    problem.hidden = true;
    fillSettings();
    delivery.input.max = run.deliveries.length;
    const bytes = run.units.reduce((sum, unit) => sum + unit[3], 0);
    end.textContent = `${run.deliveries.length} deliveries; ${run.end} after ${timeText(run.end_ms)}; ` +
      `${run.units.length} units written (${bytes} bytes).` +
      (run.end === "still failing" ? " The clock stops here." : "");
    list();
    placePin();
    go(1);
  }

  async function play() {
    const wish = {
      levels: levels.value(), max_retries: retries.value(), asked: asked.value(), orderly: orderly.value(),
      bank_down: [from.value() || "0s", to.value() || null],
    };
    playing.off(true);
    status.textContent = "Playing…";
    try {
      showRun(await model.ask("play", wish));
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      status.textContent = describe(model.get("delivery"));
    }
    playing.off(false);
  }

  function go(number) {
    const there = Math.min(Math.max(number, 1), run.deliveries.length);
    model.set("delivery", there);
    model.save_changes();
    follow();
  }

  function follow() {
    const number = Math.min(model.get("delivery"), run.deliveries.length);
    delivery.put(number);
    status.textContent = describe(number);
    if (markedRow) markedRow.setAttribute("aria-selected", "false");
    markedRow = listed.querySelector(`tr[data-number="${number}"]`);
    if (markedRow) markedRow.setAttribute("aria-selected", "true");
    // Measuring a row costs time, so the table follows when the slider rests.
    clearTimeout(scrolling);
    scrolling = setTimeout(() => { if (markedRow) listed.scrollTop = Math.max(0, markedRow.offsetTop - 100); }, 150);
    highlight(number - 1);
  }

  function movePin(ms) {
    model.set("pin_ms", ms);
    model.save_changes();
    wordPin();
    draw();
  }

  function placePin() {
    pinSpan = span();
    const ms = model.get("pin_ms");
    pin.put(ms === null ? 0 : Math.round((scaled(ms) / pinSpan) * PIN_STEPS));
    wordPin();
    draw();
  }

  function wordPin() {
    const ms = model.get("pin_ms");
    unpin.off(ms === null);
    if (ms === null) {
      pinWords.textContent = "Move the pin to where you expect an event, before you play.";
      return;
    }
    const events = run.deliveries.map((each, at) => [each[0], `delivery ${at + 1}`]);
    if (run.end === "dead") events.push([run.end_ms, "the dead letter"]);
    const [at, name] = events.reduce((best, each) => (Math.abs(each[0] - ms) < Math.abs(best[0] - ms) ? each : best));
    const off = at - ms;
    pinWords.textContent = `Your pin: ${timeText(ms)}. Nearest event: ${name} at ${timeText(at)}, ` +
      (Math.abs(off) < 200 ? "at the pin." : `${timeText(Math.abs(off))} ${off < 0 ? "before" : "after"} the pin.`);
  }

  function describe(number) {
    const [at, readFrom, times, result] = run.deliveries[Math.min(number, run.deliveries.length) - 1];
    const words = `Delivery ${number} of ${run.deliveries.length}, after ${timeText(at)}: read from ${readFrom}, ` +
      `reconsume_times ${times}, ${result}.`;
    if (isPaid(result)) return `${words} The order is paid.`;
    const next = run.deliveries[number];
    const wait = run.waits.find(([begin]) => begin >= at && (!next || begin <= next[0]));
    if (wait) {
      const [begin, stop, level] = wait;
      return `${words} Then it waits in SCHEDULE_TOPIC_XXXX, queue ${level - 1} (level ${level}), ` +
        (stop === null ? "and is still there." : `for ${timeText(stop - begin)}.`);
    }
    if (next) return `${words} Then it waits in the consumer's memory for ${timeText(next[0] - at)}; nothing is written.`;
    return run.end === "dead" ? `${words} Then it is a dead letter in %DLQ%billing.` : words;
  }

  function list() {
    const head = ["delivery", "after", "read from", "count", "status"];
    const rows = run.deliveries.slice(0, SHOWN_ROWS).map(([at, readFrom, times, result], index) =>
      element("tr", { "data-number": index + 1, onclick: () => go(index + 1) },
        [`${isPaid(result) ? "✓" : "✕"} ${index + 1}`, timeText(at), readFrom, times, result].map((cell) =>
          element("td", {}, String(cell)))));
    const more = run.deliveries.length - rows.length;
    listed.replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, rows)),
    more > 0 ? element("p", { class: "mq-note" }, `… and ${more} more, one a second`) : "");
  }

  function draw() {
    const width = Math.max(280, box.clientWidth || 640);
    const left = 8;
    const whole = span();
    const x = (ms) => left + (scaled(ms) / whole) * (width - 2 * left);
    const svg = svgElement("svg", { class: "rc-axis", viewBox: `0 0 ${width} 178`, height: 178, role: "img",
      "aria-label": `Log-time axis: ${end.textContent}` });
    drawTicks(svg, x, width);
    drawn = { x, mark: drawDeliveries(svg, x), waits: drawWaits(svg, x, width) };
    drawUnits(svg, x, width);
    drawPin(svg, x);
    highlight(Math.min(model.get("delivery"), run.deliveries.length) - 1);
    box.replaceChildren(svg);
  }

  // The delivery at the position, and the wait that follows it.
  function highlight(here) {
    if (!drawn) return;
    const now = run.deliveries[here][0];
    const next = run.deliveries[here + 1]?.[0] ?? Infinity;
    drawn.mark.setAttribute("x", drawn.x(now) - 7);
    drawn.waits.forEach((rect, number) => {
      const lit = run.waits[number][0] >= now && run.waits[number][0] <= next;
      rect.setAttribute("fill", lit ? "var(--mq-light)" : "none");
      rect.setAttribute("stroke", lit ? "var(--mq-focus)" : "var(--mq-1)");
      rect.setAttribute("stroke-width", lit ? 2 : 1);
    });
  }

  function drawTicks(svg, x, width) {
    let free = 40;
    svg.append(svgElement("text", { x: 4, y: 172, class: "rc-small" }, "first"));
    for (const [ms, name] of TICKS) {
      if (x(ms) > width - 8) break;
      svg.append(svgElement("line", { x1: x(ms), x2: x(ms), y1: 18, y2: 158, stroke: "var(--mq-rule)" }));
      if (x(ms) - 18 < free) continue;
      svg.append(svgElement("text", { x: x(ms), y: 172, "text-anchor": "middle", class: "rc-small" }, name));
      free = x(ms) + 30;
    }
  }

  function drawDeliveries(svg, x) {
    svg.append(svgElement("text", { x: 4, y: 14 }, "deliveries  ✕ failed  ✓ paid  ■ dead"));
    // One path for all marks: a run in order has hundreds of them.
    const marks = [];
    const begin = Math.max(0, run.deliveries.length - 2000);
    run.deliveries.forEach(([at, , , result], number) => {
      const place = x(at);
      if (isPaid(result)) {
        svg.append(svgElement("path", { d: `M${place - 5} 33 l4 5 l7 -11`, fill: "none", stroke: "var(--mq-2)",
          "stroke-width": 2.5 }));
      } else if (number >= begin) marks.push(`M${place - 4} 28 l8 8 m0 -8 l-8 8`);
    });
    const mark = svgElement("rect", { class: "rc-here", y: 22, width: 14, height: 20, rx: 3 });
    svg.append(mark);
    svg.append(svgElement("path", { d: marks.join(""), stroke: "var(--mq-4)", "stroke-width": 2, fill: "none" }));
    if (run.end === "dead") {
      svg.append(svgElement("rect", { x: x(run.end_ms) - 5, y: 46, width: 10, height: 10, fill: "var(--mq-ink)" }));
    }
    const area = svgElement("rect", { class: "rc-mark", x: 0, y: 18, width: "100%", height: 40, fill: "transparent" });
    area.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      let nearest = 0;
      run.deliveries.forEach((each, number) => {
        if (Math.abs(x(each[0]) - at) < Math.abs(x(run.deliveries[nearest][0]) - at)) nearest = number;
      });
      go(nearest + 1);
    });
    svg.append(area);
    return mark;
  }

  function drawWaits(svg, x, width) {
    const words = run.waits.length ? "waits in SCHEDULE_TOPIC_XXXX, with its level" : "no wait at the broker";
    svg.append(svgElement("text", { x: 4, y: 74 }, words));
    return run.waits.map(([from, to, level], number) => {
      const start = x(from);
      const stop = to === null ? width - 8 : x(to);
      const rect = svgElement("rect", { x: start, y: 80 + (number % 2) * 16, width: Math.max(2, stop - start),
        height: 14 });
      svg.append(rect);
      if (stop - start > 16) {
        svg.append(svgElement("text", { x: (start + stop) / 2, y: 91 + (number % 2) * 16, "text-anchor": "middle",
          class: "rc-small" }, String(level)));
      }
      return rect;
    });
  }

  function drawUnits(svg, x, width) {
    svg.append(svgElement("text", { x: 4, y: 128 }, `units written: ${run.units.length}`));
    const paths = new Map();
    for (const [at, topic] of run.units) {
      const row = topic === "SCHEDULE_TOPIC_XXXX" ? 1 : topic.startsWith("%DLQ%") ? 2 : 0;
      paths.set(row, `${paths.get(row) ?? ""}M${x(at)} ${134 + 8 * row} v7`);
    }
    const inks = ["var(--mq-2)", "var(--mq-1)", "var(--mq-ink)"];
    for (const [row, d] of paths) svg.append(svgElement("path", { d, stroke: inks[row], "stroke-width": 3 }));
    const legend = "rows: to read, waiting, dead";
    svg.append(svgElement("text", { x: width - 4, y: 128, "text-anchor": "end", class: "rc-small" }, legend));
  }

  function drawPin(svg, x) {
    const ms = model.get("pin_ms");
    if (ms === null) return;
    const at = x(ms);
    svg.append(svgElement("path", { d: `M${at} 158 V20`, stroke: "var(--mq-3)", "stroke-width": 2,
      "stroke-dasharray": "5 3" }));
    svg.append(svgElement("path", { d: `M${at} 26 l-6 -10 h12 z`, fill: "var(--mq-3)" }));
  }

  model.on("change:delivery", follow);
  model.on("change:pin_ms", placePin);
  model.on("change:data", () => showRun(data().runs[0]));
  const sizes = new ResizeObserver(() => draw());
  sizes.observe(box);
  showRun(run);
  return () => sizes.disconnect();
}

export default { render };
