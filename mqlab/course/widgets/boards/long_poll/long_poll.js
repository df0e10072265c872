// The long-poll scope: arrivals, pulls that are held until they are woken, and a reader that asks every n ms, over time.
import { choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { counted } from "../../frame/page/counted.js";
import { afterText, durationText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";
import { inKnobWords, moreSettings, onceChanged, toTry } from "../../frame/page/settings.js";
import { named } from "../../frame/page/named.js";
import { goTo, slider } from "../../frame/page/slider.js";

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
const WOKEN = {
  arrived: "until a message came that its filter lets through",
  check: "until the check every 5 s found newer messages and ran it again",
  timeout: "until a check every 5 s found that its time was over",
};
// Upper ends in ms; the last bin has none.
const BINS = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, Infinity];
const HEIGHT = 196;

export function unfolded(run) {
  return { ...run, arrivals: run.arrivals.map((each) => named(ARRIVAL, each)),
    held: run.held.map((each) => named(PULL, each)),
    naive: run.naive.map(([asked, answered, messages]) => ({ asked, answered, messages })) };
}

export function middle(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function drawScale(svg, x, from, size, width) {
  const count = width < 500 ? 4 : 6;
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000].find((ms) => size / ms <= count);
  for (let ms = Math.ceil(from / step) * step; ms <= from + size; ms += step) {
    svg.append(svgElement("line", { x1: x(ms), x2: x(ms), y1: 16, y2: HEIGHT - 20, stroke: "var(--mq-rule)" }));
    const anchor = x(ms) > width - 30 ? "end" : x(ms) < 30 ? "start" : "middle";
    svg.append(svgElement("text", { x: x(ms), y: HEIGHT - 6, "text-anchor": anchor, class: "lp-small" },
      afterText(ms)));
  }
}

function endMark(each, place, y) {
  if (each.messages) return svgElement("path", { d: `M${place - 5} ${y - 4} h10 l-5 9 z`, fill: "var(--mq-2)" });
  if (each.woken === "check") return svgElement("path", { d: `M${place} ${y - 6} l5 6 l-5 6 l-5 -6 z`,
    fill: "var(--mq-4)" });
  return svgElement("circle", { cx: place, cy: y, r: 4.5, fill: "var(--mq-paper)", stroke: "var(--mq-5)",
    "stroke-width": 2 });
}

class LongPoll {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makeControls();
    this.makePanels();
  }

  readData() {
    this.kernel = this.model.get("kernel") !== false;
    this.span = this.model.get("data").span_ms;
    this.run = unfolded(this.model.get("data").runs[0]);
    this.asking = 0;
  }

  makeControls() {
    this.recorded = choiceControl({ label: "Recorded run", value: 0,
      choices: this.model.get("data").runs.map((each, at) => [at, each.name]),
      onValue: (at) => { this.asking += 1; this.showRun(unfolded(this.model.get("data").runs[at])); } });
    this.settings = settingControls((wish) => this.play(wish));
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  }

  makePanels() {
    this.result = element("p", { class: "lp-result", "aria-live": "polite" });
    this.set = element("p", { class: "mq-note" });
    this.costs = element("div", { class: "lp-scroll" });
    this.box = element("div");
    this.pull = slider({ label: "Pull", min: 1, max: Math.max(1, this.run.held.length), value: this.model.get("pull"),
      text: (number) => this.describe(number), onValue: (number) => this.go(number) });
    this.window = choiceControl({ label: "Shown", value: this.model.get("window_ms"),
      choices: [[this.span, `all ${durationText(this.span)}`], [5000, "5 s around the pull"], [1000, "1 s around it"],
      [100, "100 ms around it"]],
      onValue: (ms) => { this.model.set("window_ms", ms); this.model.save_changes(); } });
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.counts = element("div");
    this.el.append(element("style", {}, STYLE));
    if (this.kernel) {
      this.el.append(toTry("let a message come every 10 s (0.1 a second): whose requests bring nothing? Then let 5 a second come."),
        this.settings.el);
    }
    this.el.append(element("div", { class: "mq-row" }, this.recorded.el), this.problem, this.set, this.result,
      this.costs, this.box,
      element("div", { class: "mq-row" }, this.pull.el, this.window.el), this.status, this.counts);
  }

  begin() {
    this.model.on("change:pull", () => this.follow());
    this.model.on("change:window_ms", () => this.draw());
    this.model.on("change:data", () => { this.recorded.put(0); this.showRun(unfolded(this.model.get("data").runs[0])); });
    const sizes = new ResizeObserver(() => { this.draw(); this.drawCounts(); });
    sizes.observe(this.box);
    this.showRun(this.run);
    return () => sizes.disconnect();
  }

  async play(wish) {
    this.asking += 1;
    const mine = this.asking;
    this.problem.hidden = true;
    this.status.textContent = "Playing…";
    try {
      const next = await this.model.ask("play", wish);
      if (mine === this.asking) this.showRun(unfolded(next));
    } catch (error) {
      if (mine !== this.asking) return;
      this.problem.textContent = inKnobWords(error.message, this.settings.named);
      this.problem.hidden = false;
      this.status.textContent = this.describe(this.model.get("pull"));
    }
  }

  showRun(next) {
    this.run = next;
    this.problem.hidden = true;
    const now = this.run.settings;
    this.settings.put(now);
    this.set.textContent = `${counted(now.rate, "message")} per second on average; held for ${durationText(now.suspend_ms)} at most; up to ` +
      `${counted(now.batch, "message")} per answer; ${durationText(now.latency_ms)} each way; the other asks every ` +
      `${durationText(now.interval_ms)}; ` + (now.rare ? `only one message of ${now.rare} is wanted.` : "all are wanted.");
    this.pull.input.max = Math.max(1, this.run.held.length);
    this.listCosts();
    this.drawCounts();
    this.go(Math.min(this.model.get("pull"), this.run.held.length));
  }

  costOf(name, reader, column) {
    const began = reader.filter((each) => each.asked >= 0 && each.asked < this.span);
    const wanted = this.run.arrivals.filter((each) => each.wanted);
    const came = wanted.map((each) => each[column]).filter((ms) => ms !== null);
    return { name, requests: began.length, perSecond: (began.length * 1000) / this.span,
      empty: began.filter((each) => each.answered !== null && !each.messages).length,
      middle: came.length ? middle(came) : null, longest: came.length ? Math.max(...came) : null,
      missing: wanted.length - came.length };
  }

  listCosts() {
    const [held, naive] = [this.costOf("held pulls", this.run.held, "held"),
      this.costOf(`asks every ${durationText(this.run.settings.interval_ms)}`, this.run.naive, "naive")];
    const time = (ms) => (ms === null ? "–" : durationText(Math.round(ms)));
    this.result.textContent = `Requests a second: ${held.perSecond.toFixed(2)} held, ${naive.perSecond.toFixed(2)} asking. ` +
      `A message waits ${time(held.middle)} and ${time(naive.middle)} (median).`;
    const head = ["reader", "requests", "per second", "without a message", "median wait", "longest wait",
      "not yet there"];
    this.costs.replaceChildren(element("table", { "aria-label": "Both readers" },
      element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, [held, naive].map((each) => element("tr", {},
        [each.name, each.requests, each.perSecond.toFixed(2), each.empty, time(each.middle), time(each.longest),
          each.missing].map((cell) => element("td", {}, String(cell))))))));
  }

  go(number) {
    goTo({ model: this.model, name: "pull", number, last: this.run.held.length, follow: () => this.follow() });
  }

  follow() {
    const here = Math.min(this.model.get("pull"), this.run.held.length);
    this.pull.put(here);
    this.status.textContent = this.describe(here);
    this.draw();
  }

  describe(number) {
    const here = this.run.held[Math.min(number, this.run.held.length) - 1];
    if (!here) return "No pull was made.";
    const words = `Pull ${number} of ${this.run.held.length}: asked at ${afterText(here.asked)} for offset ${here.from} and later. `;
    if (here.answered === null) return `${words}It is still under way.`;
    const held = here.woken ? `The broker held it for ${durationText(here.left - here.arrived)}, ${WOKEN[here.woken]}. `
      : "The broker answered at once. ";
    return `${words}${held}Answer at ${afterText(here.answered)}: ${here.status}, ` +
      `${counted(here.messages, "message")}, continue at ${here.next}.`;
  }

  draw() {
    const width = Math.max(280, this.box.clientWidth || 640);
    const here = this.run.held[Math.min(this.model.get("pull"), this.run.held.length) - 1];
    const size = this.model.get("window_ms");
    this.window.put(size);
    const centre = here ? ((here.asked + (here.answered ?? here.asked)) / 2) : 0;
    // A pull that is longer than the window is shown at its end: there it is woken.
    const around = here && here.answered !== null && here.answered - here.asked > size ? here.answered - size * 0.7 : centre - size / 2;
    const whole = here && here.asked >= this.span ? this.span : 0; // what is still asked for after the traffic
    const from = size >= this.span ? whole : Math.max(around, -size / 2);
    const x = (ms) => 6 + ((ms - from) / size) * (width - 12);
    const svg = svgElement("svg", { class: "lp-time", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img",
      "aria-label": `From ${afterText(Math.round(from))}, ${durationText(size)}: ${this.result.textContent}` });
    drawScale(svg, x, from, size, width);
    this.drawArrivals(svg, x, from, size);
    this.drawHeld(svg, x, from, size, here, width < 400);
    this.drawNaive(svg, x, from, size);
    this.box.replaceChildren(svg);
  }

  drawArrivals(svg, x, from, size) {
    svg.append(svgElement("text", { x: 4, y: 12 }, this.run.settings.rare ? "messages arrive: ▮ wanted, short: another tag"
      : "messages arrive"));
    let [wanted, others] = ["", ""];
    for (const each of this.run.arrivals) {
      if (each.stored < from || each.stored > from + size) continue;
      if (each.wanted) wanted += `M${x(each.stored)} 20 v18`;
      else others += `M${x(each.stored)} 31 v7`;
    }
    svg.append(svgElement("path", { d: others, stroke: "var(--mq-5)", "stroke-width": 1.5 }),
      svgElement("path", { d: wanted, stroke: "var(--mq-2)", "stroke-width": 2.5 }));
  }

  drawHeld(svg, x, from, size, here, narrow) {
    svg.append(svgElement("text", { x: 4, y: 58 }, `${narrow ? "" : "pulls, "}held (dashed): ▼ message, ◆ check, ○ ${narrow ? "" : "time "}over`));
    this.run.held.forEach((each, number) => {
      const end = each.answered ?? from + size;
      if (end < from || each.asked > from + size) return;
      const y = 66 + (number % 2) * 22;
      const [start, stop] = [Math.max(x(each.asked), 0), Math.min(x(end), x(from + size))];
      const group = svgElement("g", { style: "cursor:pointer" });
      group.addEventListener("click", () => this.go(number + 1));
      if (each === here) {
        group.append(svgElement("rect", { class: "lp-here", x: start - 3, y: y - 2, width: Math.max(6,
          stop - start + 6), height: 19, rx: 3 }));
      }
      group.append(svgElement("rect", { class: "lp-travel", x: start, y: y + 5, width: Math.max(1, stop - start),
        height: 5 }));
      if (each.woken || each.answered === null) {
        const [left, right] = [Math.max(x(each.arrived), 0), Math.min(x(each.left ?? from + size), x(from + size))];
        group.append(svgElement("rect", { class: "lp-held", x: left, y, width: Math.max(1, right - left),
          height: 15 }));
      }
      if (each.answered !== null && each.answered <= from + size) group.append(endMark(each, x(each.answered), y + 7));
      svg.append(group);
    });
  }

  drawNaive(svg, x, from, size) {
    svg.append(svgElement("text", { x: 4, y: 128 }, `asks every ${durationText(this.run.settings.interval_ms)}: ▮ message, short: nothing`));
    let [found, empty, ways] = ["", "", ""];
    for (const each of this.run.naive) {
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

  drawCounts() {
    const binned = ["held", "naive"].map((column) => {
      const numbers = BINS.map(() => 0);
      for (const each of this.run.arrivals) {
        if (each.wanted && each[column] !== null) numbers[BINS.findIndex((end) => each[column] <= end)] += 1;
      }
      return numbers;
    });
    const used = BINS.map((_, at) => at).filter((at) => binned.some((numbers) => numbers[at]));
    const shown = BINS.map((_, at) => at).filter((at) => used.length && at >= used[0] && at <= used.at(-1));
    const most = Math.max(1, ...binned.flat());
    const width = Math.max(280, this.counts.clientWidth || 640);
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
      if (binned[0][at]) svg.append(svgElement("text", { x: middleX - 50 - long[0], y: y + 13, "text-anchor": "end" },
        String(binned[0][at])));
      if (binned[1][at]) svg.append(svgElement("text", { x: middleX + 52 + long[1], y: y + 13 },
        String(binned[1][at])));
    });
    this.counts.replaceChildren(svg);
  }
}

function render(context) {
  return new LongPoll(context).begin();
}

function settingControls(onWish) {
  const rate = numberControl({ label: "Messages a second", min: 0.1, max: 20, step: "any" });
  const suspend = textControl({ label: "Held at most" });
  const batch = numberControl({ label: "Messages an answer", min: 1, max: 32, step: 1 });
  const latency = textControl({ label: "Network, one way" });
  const interval = textControl({ label: "The other asks every" });
  const rare = numberControl({ label: "Rare tag: every nth message (0: all wanted)", min: 0, max: 100, step: 1 });
  [suspend, latency, interval].forEach((each) => (each.input.size = 6));
  const row = (...controls) => element("div", { class: "mq-row" }, controls.map((each) => each.el));
  const el = element("div", { role: "group", "aria-label": "Settings" }, row(rate, suspend, interval),
    moreSettings(row(batch, latency, rare)));
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
  return { el, put, named: { rate, suspend, batch, latency, interval, rare } };
}

export default { render };
