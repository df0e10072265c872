// The backlog tank: a curve of traffic to draw, the lag that it leaves behind, and the limit that binds.
import { buttonControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { counted } from "../../frame/page/counted.js";
import { durationText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";
import { inKnobWords, moreSettings, toTry } from "../../frame/page/settings.js";
import { named } from "../../frame/page/named.js";
import { goTo, slider } from "../../frame/page/slider.js";

const STYLE = `
.bt-curve { display: flex; align-items: flex-end; gap: 2px; margin: 4px 0; }
.bt-curve > span { flex: 1 1 0; min-width: 0; text-align: center; font-size: 11px; color: var(--mq-muted); }
.mqlab-board .bt-curve input[type="range"] { writing-mode: vertical-lr; direction: rtl; width: 100%; height: 92px; min-width: 0; margin: 0; }
.bt-time { width: 100%; display: block; touch-action: pan-y; cursor: pointer; }
.bt-time text { font-size: 12px; fill: var(--mq-ink); }
.bt-time .bt-small { fill: var(--mq-muted); font-size: 11px; }
@media (max-width: 560px) { .bt-curve > span:nth-child(even) > div:last-child { visibility: hidden; } }
.bt-result { font-weight: 600; margin: 4px 0; }
.bt-scroll { overflow-x: auto; }
.bt-binds td { background: var(--mq-light); font-weight: 600; }
`;
const SECOND = "arrived done lag committed".split(" ");
const LIMIT = "name capacity busy wait binds".split(" ");
const MEANING = {
  "database slots": "Every slot of the database is taken: more threads or instances would only wait for a slot as well.",
  cores: "The cores compute all the time: more threads would share them; more cores, or instances with cores of their own, help.",
  threads: "All threads are in a call, and most of that call is waiting: more threads or more instances help.",
  queues: "A queue has one reader: some instances have no queue or too few of them. More queues help, more instances do not.",
  nothing: "No message waits longer than a moment for its call.",
};
const MEAN_S = 5; // calls end in bursts: rates are means of this many seconds
const [TOP, RATES, GAP, LAGS, BOTTOM] = [18, 84, 26, 110, 22];
const HEIGHT = TOP + RATES + GAP + LAGS + BOTTOM;

export function unfolded(run) {
  return { ...run, seconds: run.seconds.map((each) => named(SECOND, each)),
    limits: run.limits.map((each) => named(LIMIT, each)) };
}

export function clock(second) {
  return `${Math.floor(second / 60)}:${String(second % 60).padStart(2, "0")}`;
}

export function line(values, x, y) {
  return values.map((value, at) => `${at ? "L" : "M"}${x(at + 1).toFixed(1)} ${y(value).toFixed(1)}`).join("");
}

class Backlog {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makeControls();
    this.makePanels();
  }

  readData() {
    this.kernel = this.model.get("kernel") !== false;
    this.run = unfolded(this.data().runs[0]);
    this.asking = 0;
  }

  makeControls() {
    this.recorded = choiceControl({ label: "Recorded run", value: 0,
      choices: this.data().runs.map((each, at) => [at, each.name]),
      onValue: (at) => { this.asking += 1; this.showRun(unfolded(this.data().runs[at])); } });
    this.settings = settingControls(this.run.settings.traffic.length, this.data(), (wish) => this.play(wish));
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  }

  makePanels() {
    this.result = element("p", { class: "bt-result", "aria-live": "polite" });
    this.set = element("p", { class: "mq-note" });
    this.box = element("div");
    this.moment = slider({ label: "Moment", min: 1, max: Math.max(1, this.run.seconds.length),
      value: this.model.get("second"),
      text: (second) => this.describe(second), onValue: (second) => this.go(second) });
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.listed = element("div", { class: "bt-scroll" });
    this.el.append(element("style", {}, STYLE));
    if (this.kernel) {
      this.el.append(toTry("add threads until no message waits; then let a call compute longer, under More settings."),
        this.settings.el);
    }
    this.el.append(element("div", { class: "mq-row" }, this.recorded.el), this.problem, this.set, this.result, this.box,
      element("div", { class: "mq-row" }, this.moment.el), this.status, this.listed);
  }

  begin() {
    this.model.on("change:second", () => this.follow());
    this.model.on("change:data", () => { this.recorded.put(0); this.showRun(unfolded(this.data().runs[0])); });
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.box);
    this.showRun(this.run);
    return () => sizes.disconnect();
  }

  data() {
    return this.model.get("data");
  }

  async play(wish) {
    this.asking += 1;
    const mine = this.asking;
    this.problem.hidden = true;
    this.settings.button.disabled = true;
    this.status.textContent = "Playing…";
    try {
      const next = await this.model.ask("play", wish);
      if (mine === this.asking) this.showRun(unfolded(next));
    } catch (error) {
      if (mine === this.asking) {
        this.problem.textContent = inKnobWords(error.message, this.settings.named);
        this.problem.hidden = false;
        this.status.textContent = this.describe(this.model.get("second"));
      }
    }
    this.settings.button.disabled = false;
  }

  showRun(next) {
    this.run = next;
    this.problem.hidden = true;
    this.settings.put(this.run.settings);
    this.moment.input.max = Math.max(1, this.run.seconds.length);
    const now = this.run.settings;
    const full = now.batch > 1 ? ` A call has up to ${counted(now.batch, "message")} (${this.run.per_call} on average).` : "";
    const pulled = now.pull_interval_ms ? ` A queue is pulled again ${durationText(now.pull_interval_ms)} after its last pull.` : "";
    this.set.textContent = `${counted(now.instances, "instance")} with ${counted(now.threads, "thread")} and ` +
      `${counted(now.cores, "core")} each; a call computes ${durationText(now.compute_ms)} and waits ` +
      `${durationText(now.wait_ms)}; ${counted(now.queues, "queue")}; ` + (now.slots ? `a database of ${counted(now.slots, "slot")}.` : "no limit at the database.") + full + pulled;
    const most = Math.max(0, ...this.run.seconds.map((each) => each.lag));
    const binds = this.run.limits.find((each) => each.binds)?.name ?? "nothing";
    const behind = this.run.behind ? `Messages wait from ${clock(this.run.behind[0])} to ${clock(this.run.behind[1])}. ` : "";
    this.result.textContent = `Largest lag: ${most}. ${behind}` + (this.run.left ? `${this.run.left} are not done at the end. ` : "") +
      `The limit that binds: ${binds}. ${MEANING[binds]}`;
    this.listLimits();
    this.go(Math.min(this.model.get("second"), this.run.seconds.length));
  }

  listLimits() {
    const percent = (busy) => (busy === null ? "–" : `${Math.round(busy * 100)} %`);
    const rows = this.run.limits.map((each) => element("tr", { class: each.binds ? "bt-binds" : null },
      [`${each.binds ? "▶ " : ""}${each.name}`, each.capacity, percent(each.busy),
        each.wait === null ? "–" : durationText(Math.round(each.wait))].map((cell) => element("td", {},
        String(cell)))));
    const head = ["limit", "capacity", "in use while messages waited", "a call waits for it (mean)"];
    this.listed.replaceChildren(element("table", { "aria-label": "Limits" },
      element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, rows)));
  }

  go(number) {
    goTo({ model: this.model, name: "second", number, last: this.run.seconds.length, follow: () => this.follow() });
  }

  follow() {
    const here = Math.min(this.model.get("second"), this.run.seconds.length);
    this.moment.put(here);
    this.status.textContent = this.describe(here);
    this.draw();
  }

  meanOf(name, second) {
    const part = this.run.seconds.slice(Math.max(0, second - MEAN_S), second);
    return part.reduce((sum, each) => sum + each[name], 0) / Math.max(1, part.length);
  }

  describe(second) {
    const there = Math.min(second, this.run.seconds.length);
    const now = this.run.seconds[there - 1];
    if (!now) return "Nothing was played.";
    const rate = this.meanOf("done", there);
    const drain = now.lag && rate ? ` If nothing more arrived, that would be the work of ${Math.round(now.lag / rate)} s.` : "";
    return `At ${clock(there)}: ${this.meanOf("arrived", there).toFixed(1)} arrive and ${rate.toFixed(1)} are done a second. ` +
      `Lag ${now.lag}; monitoring shows ${now.committed}.${drain}`;
  }

  draw() {
    const width = Math.max(280, this.box.clientWidth || 640);
    const count = Math.max(1, this.run.seconds.length);
    const left = 34;
    const x = (second) => left + (second / count) * (width - left - 6);
    const svg = svgElement("svg", { class: "bt-time", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img",
      "aria-label": `Rates and lag by the second. ${this.result.textContent}` });
    const here = Math.min(this.model.get("second"), count);
    const [upper, lower] = [TOP + RATES, TOP + RATES + GAP + LAGS];
    for (let second = 0; second <= count; second += width < 500 ? 60 : 30) {
      svg.append(svgElement("line", { x1: x(second), x2: x(second), y1: TOP, y2: lower, stroke: "var(--mq-rule)" }),
        svgElement("text", { x: x(second), y: HEIGHT - 6, class: "bt-small",
        "text-anchor": second ? "middle" : "start" }, clock(second)));
    }
    if (this.run.behind) {
      const [from, to] = this.run.behind.map(x);
      svg.append(svgElement("rect", { x: from, y: lower + 1, width: Math.max(2, to - from), height: 4,
        fill: "var(--mq-4)" }));
    }
    this.drawRates(svg, x, upper, width < 400);
    this.drawLags(svg, x, lower);
    svg.append(svgElement("line", { x1: x(here), x2: x(here), y1: TOP, y2: lower, stroke: "var(--mq-focus)",
      "stroke-width": 2 }));
    svg.addEventListener("pointerdown", (event) => {
      const place = svg.getBoundingClientRect();
      const at = ((event.clientX - place.left) / place.width) * width;
      this.go(Math.round(((at - left) / (width - left - 6)) * count));
    });
    this.box.replaceChildren(svg);
  }

  drawRates(svg, x, floor, narrow) {
    const arrived = this.run.seconds.map((_, at) => this.meanOf("arrived", at + 1));
    const done = this.run.seconds.map((_, at) => this.meanOf("done", at + 1));
    const most = Math.max(1, ...arrived, ...done);
    const y = (value) => floor - (value / most) * RATES;
    svg.append(svgElement("text", { x: 44, y: 12 }, `${narrow ? "" : "messages a second: "}arrive (solid), done (dashed)`),
      svgElement("text", { x: 30, y: TOP + 8, "text-anchor": "end", class: "bt-small" }, most.toFixed(0)),
      svgElement("text", { x: 30, y: floor, "text-anchor": "end", class: "bt-small" }, "0"),
      svgElement("path", { d: line(arrived, x, y), fill: "none", stroke: "var(--mq-4)", "stroke-width": 2 }),
      svgElement("path", { d: line(done, x, y), fill: "none", stroke: "var(--mq-2)", "stroke-width": 2.5,
      "stroke-dasharray": "6 3" }));
  }

  drawLags(svg, x, floor) {
    const most = Math.max(1, ...this.run.seconds.map((each) => Math.max(each.lag, each.committed)));
    const y = (value) => floor - (value / most) * LAGS;
    const lag = line(this.run.seconds.map((each) => each.lag), x, y);
    svg.append(svgElement("text", { x: 44, y: floor - LAGS - 6 }, "lag: not done (filled), in monitoring (line)"),
      svgElement("text", { x: 30, y: floor - LAGS + 8, "text-anchor": "end", class: "bt-small" }, String(most)),
      svgElement("text", { x: 30, y: floor, "text-anchor": "end", class: "bt-small" }, "0"));
    if (!this.run.seconds.length) return;
    svg.append(svgElement("path", { d: `${lag}L${x(this.run.seconds.length)} ${floor}L${x(1)} ${floor}Z`,
      fill: "var(--mq-1)", opacity: 0.35 }),
      svgElement("path", { d: lag, fill: "none", stroke: "var(--mq-1)", "stroke-width": 1.5 }),
      svgElement("path", { d: line(this.run.seconds.map((each) => each.committed), x, y), fill: "none",
      stroke: "var(--mq-3)", "stroke-width": 1.5 }));
  }
}

function render(context) {
  return new Backlog(context).begin();
}

// The curve is a row of upright sliders, one for each step: drawn with the pointer or with the arrow keys.
function settingControls(steps, { step_s: stepS, most_per_second: most }, onWish) {
  const rates = Array.from({ length: steps }, (_, at) => {
    const value = element("div");
    const input = element("input", { type: "range", min: 0, max: most, step: 1,
      "aria-label": `Messages a second from ${clock(at * stepS)} to ${clock((at + 1) * stepS)}` });
    input.addEventListener("input", () => (value.textContent = input.value));
    return { input, value, el: element("span", {}, value, input, element("div", {}, clock(at * stepS))) };
  });
  const instances = numberControl({ label: "Instances", min: 1, max: 16, step: 1 });
  const threads = numberControl({ label: "Threads each", min: 1, max: 200, step: 1 });
  const cores = numberControl({ label: "Cores each", min: 1, max: 16, step: 1 });
  const compute = textControl({ label: "T1, computing" });
  const wait = textControl({ label: "T2, waiting" });
  const queues = numberControl({ label: "Queues", min: 1, max: 32, step: 1 });
  const slots = numberControl({ label: "Database slots (0: no limit)", min: 0, max: 500, step: 1 });
  const batch = numberControl({ label: "Messages a call, at most", min: 1, max: 32, step: 1 });
  const interval = textControl({ label: "Pull interval" });
  [compute, wait, interval].forEach((each) => (each.input.size = 6));
  const button = buttonControl("Play", send);
  const curve = element("div", { class: "bt-curve", role: "group", "aria-label": "Traffic" },
    rates.map((each) => each.el));
  const row = (...controls) => element("div", { class: "mq-row" }, controls.map((each) => each.el));
  const el = element("div", { role: "group", "aria-label": "Settings" },
    element("div", { class: "mq-note" }, `Traffic in messages a second, for each ${stepS} s: drag, then press Play`),
    curve, row(instances, threads, queues, button), moreSettings(row(cores, compute, wait, slots, batch, interval)));
  el.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.tagName === "INPUT") send();
  });
  const plain = (ms) => (ms && ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`);

  function send() {
    onWish({ traffic: rates.map((each) => Number(each.input.value)), instances: instances.value(),
      threads: threads.value(),
      cores: cores.value(), compute: compute.value(), wait: wait.value(), queues: queues.value(), slots: slots.value(),
      batch: batch.value(), pull_interval: interval.value() });
  }

  function put(set) {
    set.traffic.forEach((rate, at) => {
      rates[at].input.value = rate;
      rates[at].value.textContent = String(rate);
    });
    instances.put(set.instances);
    threads.put(set.threads);
    cores.put(set.cores);
    compute.put(plain(set.compute_ms));
    wait.put(plain(set.wait_ms));
    queues.put(set.queues);
    slots.put(set.slots);
    batch.put(set.batch);
    interval.put(plain(set.pull_interval_ms));
  }
  return { el, put, button: button.input,
    named: { instances, threads, cores, queues, slots, batch, compute, wait, pull_interval: interval } };
}

export default { render };
