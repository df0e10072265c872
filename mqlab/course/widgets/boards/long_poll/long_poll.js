// The long-poll scope: arrivals, pulls that are held until they are woken, and a reader that asks every n ms, over time.
import { choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { afterText, durationText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";
import { onceChanged } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.lp-time, .lp-counts { width: 100%; display: block; }
.lp-time text, .lp-counts text { font-size: 12px; fill: var(--mq-ink); }
.lp-time .lp-small { fill: var(--mq-muted); font-size: 11px; }
.lp-time .lp-travel { fill: var(--mq-1); }
.lp-time .lp-held { fill: var(--mq-card); stroke: var(--mq-6); stroke-dasharray: 3 2; }
.lp-time .lp-here { fill: var(--mq-light); stroke: var(--mq-focus); stroke-width: 2; }
.lp-counts .lp-held-bar { fill: var(--mq-1); }
.lp-counts .lp-naive-bar { fill: var(--mq-paper); stroke: var(--mq-4); stroke-width: 2; }
.lp-result { font-weight: 600; margin: 4px 0; }
.lp-scroll { overflow-x: auto; }
`;
const ARRIVAL = "offset tag wanted stored held naive".split(" ");
const PULL = "asked arrived left answered from next status woken messages".split(" ");
const named = (names, values) => Object.fromEntries(names.map((name, at) => [name, values[at]]));
const WOKEN = {
  arrived: "until a message came that its filter lets through",
  check: "until the check every 5 s found newer messages and ran it again",
  timeout: "until a check every 5 s found that its time was over",
};
// Upper ends in ms; the last bin has none.
const BINS = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, Infinity];
const HEIGHT = 196;

function unfolded(run) {
  return { ...run, arrivals: run.arrivals.map((each) => named(ARRIVAL, each)), held: run.held.map((each) => named(PULL, each)),
    naive: run.naive.map(([asked, answered, messages]) => ({ asked, answered, messages })) };
}

function middle(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function render({ model, el }) {
  const kernel = model.get("kernel") !== false;
  const span = model.get("data").span_ms;
  let run = unfolded(model.get("data").runs[0]);
  let asking = 0;

  // 1. Controls: every setting with a kernel, the recorded runs always.
  const recorded = choiceControl({ label: "Recorded run", value: 0,
    choices: model.get("data").runs.map((each, at) => [at, each.name]),
    onValue: (at) => { asking += 1; showRun(unfolded(model.get("data").runs[at])); } });
  const settings = settingControls(play);
  const problem = element("div", { class: "mq-error", role: "alert", hidden: true });

  // 2. What it cost, the picture, the pull looked at, the latencies.
  const result = element("p", { class: "lp-result", "aria-live": "polite" });
  const set = element("p", { class: "mq-note" });
  const costs = element("div", { class: "lp-scroll" });
  const box = element("div");
  const pull = slider({ label: "Pull", min: 1, max: Math.max(1, run.held.length), value: model.get("pull"),
    text: (number) => describe(number), onValue: go });
  const window = choiceControl({ label: "Shown", value: model.get("window_ms"),
    choices: [[span, `all ${durationText(span)}`], [5000, "5 s around the pull"], [1000, "1 s around it"], [100, "100 ms around it"]],
    onValue: (ms) => { model.set("window_ms", ms); model.save_changes(); } });
  const status = element("div", { role: "status", "aria-live": "polite" });
  const counts = element("div");
  el.append(element("style", {}, STYLE));
  if (kernel) el.append(settings.el);
  el.append(element("div", { class: "mq-row" }, recorded.el), problem, set, result, costs, box,
    element("div", { class: "mq-row" }, pull.el, window.el), status, counts);

  // 3. What is shown follows the run and the state.
  async function play(wish) {
    asking += 1;
    const mine = asking;
    problem.hidden = true;
    status.textContent = "Playing…";
    try {
      const next = await model.ask("play", wish);
      if (mine === asking) showRun(unfolded(next));
    } catch (error) {
      if (mine !== asking) return;
      problem.textContent = error.message;
      problem.hidden = false;
      status.textContent = describe(model.get("pull"));
    }
  }

  function showRun(next) {
    run = next;
    problem.hidden = true;
    const now = run.settings;
    settings.put(now);
    set.textContent = `${now.rate} message${now.rate === 1 ? "" : "s"} a second on average; held for ${durationText(now.suspend_ms)} at most; up to ` +
      `${now.batch} message${now.batch === 1 ? "" : "s"} an answer; ${durationText(now.latency_ms)} each way; the other asks every ` +
      `${durationText(now.interval_ms)}; ` + (now.rare ? `only one message of ${now.rare} is wanted.` : "all are wanted.");
    pull.input.max = Math.max(1, run.held.length);
    listCosts();
    drawCounts();
    go(Math.min(model.get("pull"), run.held.length));
  }

  function costOf(name, reader, column) {
    const began = reader.filter((each) => each.asked >= 0 && each.asked < span);
    const wanted = run.arrivals.filter((each) => each.wanted);
    const came = wanted.map((each) => each[column]).filter((ms) => ms !== null);
    return { name, requests: began.length, perSecond: (began.length * 1000) / span,
      empty: began.filter((each) => each.answered !== null && !each.messages).length,
      middle: came.length ? middle(came) : null, longest: came.length ? Math.max(...came) : null,
      missing: wanted.length - came.length };
  }

  function listCosts() {
    const [held, naive] = [costOf("held pulls", run.held, "held"),
      costOf(`asks every ${durationText(run.settings.interval_ms)}`, run.naive, "naive")];
    const time = (ms) => (ms === null ? "–" : durationText(Math.round(ms)));
    result.textContent = `Requests a second: ${held.perSecond.toFixed(2)} held, ${naive.perSecond.toFixed(2)} asking. ` +
      `A message waits ${time(held.middle)} and ${time(naive.middle)} (median).`;
    const head = ["reader", "requests", "a second", "without a message", "median wait", "longest wait", "not yet there"];
    costs.replaceChildren(element("table", { "aria-label": "Both readers" },
      element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, [held, naive].map((each) => element("tr", {},
        [each.name, each.requests, each.perSecond.toFixed(2), each.empty, time(each.middle), time(each.longest),
          each.missing].map((cell) => element("td", {}, String(cell))))))));
  }

  function go(number) {
    const there = Math.min(Math.max(number, 1), run.held.length);
    if (there === model.get("pull")) follow(); // a change would call it
    model.set("pull", there);
    model.save_changes();
  }

  function follow() {
    const here = Math.min(model.get("pull"), run.held.length);
    pull.put(here);
    status.textContent = describe(here);
    draw();
  }

  function describe(number) {
    const here = run.held[Math.min(number, run.held.length) - 1];
    if (!here) return "No pull was made.";
    const words = `Pull ${number} of ${run.held.length}: asked at ${afterText(here.asked)} for offset ${here.from} and later. `;
    if (here.answered === null) return `${words}It is still under way.`;
    const held = here.woken ? `The broker held it for ${durationText(here.left - here.arrived)}, ${WOKEN[here.woken]}. `
      : "The broker answered at once. ";
    return `${words}${held}Answer at ${afterText(here.answered)}: ${here.status}, ` +
      `${here.messages} message${here.messages === 1 ? "" : "s"}, go on at ${here.next}.`;
  }

  // 4. The picture over time.
  function draw() {
    const width = Math.max(280, box.clientWidth || 640);
    const here = run.held[Math.min(model.get("pull"), run.held.length) - 1];
    const size = model.get("window_ms");
    window.put(size);
    const centre = here ? ((here.asked + (here.answered ?? here.asked)) / 2) : 0;
    // A pull that is longer than the window is shown at its end: there it is woken.
    const around = here && here.answered !== null && here.answered - here.asked > size ? here.answered - size * 0.7 : centre - size / 2;
    const whole = here && here.asked >= span ? span : 0; // what is still asked for after the traffic
    const from = size >= span ? whole : Math.max(around, -size / 2);
    const x = (ms) => 6 + ((ms - from) / size) * (width - 12);
    const svg = svgElement("svg", { class: "lp-time", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img",
      "aria-label": `From ${afterText(Math.round(from))}, ${durationText(size)}: ${result.textContent}` });
    drawScale(svg, x, from, size, width);
    drawArrivals(svg, x, from, size);
    drawHeld(svg, x, from, size, here);
    drawNaive(svg, x, from, size);
    box.replaceChildren(svg);
  }

  function drawScale(svg, x, from, size, width) {
    const count = width < 500 ? 4 : 6;
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000].find((ms) => size / ms <= count);
    for (let ms = Math.ceil(from / step) * step; ms <= from + size; ms += step) {
      svg.append(svgElement("line", { x1: x(ms), x2: x(ms), y1: 16, y2: HEIGHT - 20, stroke: "var(--mq-rule)" }));
      const anchor = x(ms) > width - 30 ? "end" : x(ms) < 30 ? "start" : "middle";
      svg.append(svgElement("text", { x: x(ms), y: HEIGHT - 6, "text-anchor": anchor, class: "lp-small" }, afterText(ms)));
    }
  }

  function drawArrivals(svg, x, from, size) {
    svg.append(svgElement("text", { x: 4, y: 12 }, run.settings.rare ? "messages arrive: ▮ wanted, short: another tag"
      : "messages arrive"));
    let [wanted, others] = ["", ""];
    for (const each of run.arrivals) {
      if (each.stored < from || each.stored > from + size) continue;
      if (each.wanted) wanted += `M${x(each.stored)} 20 v18`;
      else others += `M${x(each.stored)} 31 v7`;
    }
    svg.append(svgElement("path", { d: others, stroke: "var(--mq-5)", "stroke-width": 1.5 }),
      svgElement("path", { d: wanted, stroke: "var(--mq-2)", "stroke-width": 2.5 }));
  }

  function drawHeld(svg, x, from, size, here) {
    svg.append(svgElement("text", { x: 4, y: 58 }, "pulls, held (dashed): ▼ message, ◆ check, ○ time over"));
    run.held.forEach((each, number) => {
      const end = each.answered ?? from + size;
      if (end < from || each.asked > from + size) return;
      const y = 66 + (number % 2) * 22;
      const [start, stop] = [Math.max(x(each.asked), 0), Math.min(x(end), x(from + size))];
      const group = svgElement("g", { style: "cursor:pointer" });
      group.addEventListener("click", () => go(number + 1));
      if (each === here) {
        group.append(svgElement("rect", { class: "lp-here", x: start - 3, y: y - 2, width: Math.max(6, stop - start + 6), height: 19, rx: 3 }));
      }
      group.append(svgElement("rect", { class: "lp-travel", x: start, y: y + 5, width: Math.max(1, stop - start), height: 5 }));
      if (each.woken || each.answered === null) {
        const [left, right] = [Math.max(x(each.arrived), 0), Math.min(x(each.left ?? from + size), x(from + size))];
        group.append(svgElement("rect", { class: "lp-held", x: left, y, width: Math.max(1, right - left), height: 15 }));
      }
      if (each.answered !== null && each.answered <= from + size) group.append(endMark(each, x(each.answered), y + 7));
      svg.append(group);
    });
  }

  function endMark(each, place, y) {
    if (each.messages) return svgElement("path", { d: `M${place - 5} ${y - 4} h10 l-5 9 z`, fill: "var(--mq-2)" });
    if (each.woken === "check") return svgElement("path", { d: `M${place} ${y - 6} l5 6 l-5 6 l-5 -6 z`, fill: "var(--mq-4)" });
    return svgElement("circle", { cx: place, cy: y, r: 4.5, fill: "var(--mq-paper)", stroke: "var(--mq-5)", "stroke-width": 2 });
  }

  function drawNaive(svg, x, from, size) {
    svg.append(svgElement("text", { x: 4, y: 128 }, `asks every ${durationText(run.settings.interval_ms)}: ▮ message, short: nothing`));
    let [found, empty, ways] = ["", "", ""];
    for (const each of run.naive) {
      const end = each.answered ?? from + size;
      if (end < from || each.asked > from + size) continue;
      ways += `M${x(each.asked)} 164 H${x(end)}`;
      if (each.messages) found += `M${x(end)} 136 v28`;
      else if (each.answered !== null) empty += `M${x(end)} 156 v8`;
    }
    svg.append(svgElement("path", { d: ways, stroke: "var(--mq-1)", "stroke-width": 3 }),
      svgElement("path", { d: empty, stroke: "var(--mq-5)", "stroke-width": 1.5 }),
      svgElement("path", { d: found, stroke: "var(--mq-4)", "stroke-width": 2.5 }));
  }

  // 5. How long messages waited: both readers on the same bins.
  function drawCounts() {
    const binned = ["held", "naive"].map((column) => {
      const numbers = BINS.map(() => 0);
      for (const each of run.arrivals) {
        if (each.wanted && each[column] !== null) numbers[BINS.findIndex((end) => each[column] <= end)] += 1;
      }
      return numbers;
    });
    const used = BINS.map((_, at) => at).filter((at) => binned.some((numbers) => numbers[at]));
    const shown = BINS.map((_, at) => at).filter((at) => used.length && at >= used[0] && at <= used.at(-1));
    const most = Math.max(1, ...binned.flat());
    const width = Math.max(280, counts.clientWidth || 640);
    const [middleX, half] = [width / 2, width / 2 - 46];
    const height = 24 + shown.length * 20;
    const label = (at) => (BINS[at] === Infinity ? "longer" : `≤ ${durationText(BINS[at])}`);
    const words = shown.map((at) => `${label(at)}: ${binned[0][at]} and ${binned[1][at]}`).join("; ");
    const svg = svgElement("svg", { class: "lp-counts", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `Messages by the time they waited, held pulls and asking: ${words}` },
    svgElement("text", { x: middleX - 46, y: 14, "text-anchor": "end" }, "held pulls"),
    svgElement("text", { x: middleX, y: 14, "text-anchor": "middle" }, "waited"),
    svgElement("text", { x: middleX + 46, y: 14 }, "asking"));
    shown.forEach((at, row) => {
      const y = 22 + row * 20;
      svg.append(svgElement("text", { x: middleX, y: y + 13, "text-anchor": "middle" }, label(at)));
      const long = binned.map((numbers) => (numbers[at] / most) * (half - 40));
      svg.append(svgElement("rect", { class: "lp-held-bar", x: middleX - 46 - long[0], y, width: long[0], height: 16 }),
        svgElement("rect", { class: "lp-naive-bar", x: middleX + 46, y: y + 1, width: long[1], height: 14 }));
      if (binned[0][at]) svg.append(svgElement("text", { x: middleX - 50 - long[0], y: y + 13, "text-anchor": "end" }, String(binned[0][at])));
      if (binned[1][at]) svg.append(svgElement("text", { x: middleX + 52 + long[1], y: y + 13 }, String(binned[1][at])));
    });
    counts.replaceChildren(svg);
  }

  model.on("change:pull", follow);
  model.on("change:window_ms", draw);
  model.on("change:data", () => { recorded.put(0); showRun(unfolded(model.get("data").runs[0])); });
  const sizes = new ResizeObserver(() => { draw(); drawCounts(); });
  sizes.observe(box);
  showRun(run);
  return () => sizes.disconnect();
}

function settingControls(onWish) {
  const rate = numberControl({ label: "Messages a second", min: 0.1, max: 20, step: "any" });
  const suspend = textControl({ label: "Held at most" });
  const batch = numberControl({ label: "Messages an answer", min: 1, max: 32, step: 1 });
  const latency = textControl({ label: "Network, one way" });
  const interval = textControl({ label: "The other asks every" });
  const rare = numberControl({ label: "Rare tag: every nth message (0: all wanted)", min: 0, max: 100, step: 1 });
  [suspend, latency, interval].forEach((each) => (each.input.size = 6));
  const el = element("div", { class: "mq-row", role: "group", "aria-label": "Settings" },
    [rate, suspend, batch, latency, interval, rare].map((each) => each.el));
  const plain = (ms) => (ms && ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`);
  const wish = () => ({ rate: rate.value(), suspend: suspend.value(), batch: batch.value(), latency: latency.value(),
    interval: interval.value(), rare: rare.value() });
  const changed = onceChanged(el, wish, onWish);

  function put(set) {
    rate.put(set.rate);
    suspend.put(plain(set.suspend_ms));
    batch.put(set.batch);
    latency.put(plain(set.latency_ms));
    interval.put(plain(set.interval_ms));
    rare.put(set.rare);
    changed.known();
  }
  return { el, put };
}

export default { render };
