// Who knows what: the beliefs of name servers, a shop and billing about two brokers, over time.
import { chosenRun } from "../../frame/page/chosen_run.js";
import { choiceControl } from "../../frame/page/controls.js";
import { afterText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.kn-time { width: 100%; display: block; touch-action: pan-y; cursor: pointer; }
.kn-time text { font-size: 12px; fill: var(--mq-ink); }
.kn-time .kn-small { fill: var(--mq-muted); font-size: 11px; }
.kn-time .kn-on { fill: var(--mq-paper); font-weight: 600; }
.kn-result { font-weight: 600; margin: 4px 0; }
.kn-scroll { overflow-x: auto; }
.kn-scroll th { white-space: nowrap; }
`;
const NAMES = ["happens", "name_servers", "poll_s", "register_s"];
const LABELS = { happens: "What happens to broker-b", name_servers: "Name servers", poll_s: "Clients poll every",
  register_s: "Brokers register every" };
const HAPPENS = {
  kill: "its process is killed",
  power_off: "its machine loses power",
  partition: "nameserver-1 does not hear it any more",
  wipe: "an operator takes its write permission",
  queues: "the topic gets 8 queues on it",
  joins: "it is new, and starts",
};
const ROW = 26;
const [LEFT, TOP, BOTTOM] = [92, 18, 24];

function render({ model, el }) {
  const kernel = model.get("kernel") !== false;
  const data = () => model.get("data");
  let now = { ...data().now };
  let run = data().runs[keyOf(now)];

  // 1. Controls: without a kernel only what was recorded can be chosen.
  const has = (name, value) => kernel || Object.keys(data().runs).some((key) => key.split("|")[NAMES.indexOf(name)] === String(value));
  const controls = {};
  for (const name of NAMES) {
    const choices = [...new Set([...data().choices[name].filter((value) => has(name, value)), now[name]])];
    if (name !== "happens") choices.sort((one, other) => one - other);
    controls[name] = choiceControl({ label: LABELS[name], value: now[name],
      choices: choices.map((value) => [value, name === "happens" ? HAPPENS[value] : name.endsWith("_s") ? `${value} s` : value]),
      onValue: wish });
  }
  const runs = chosenRun({ model, kernel, recorded: (settings) => data().runs[keyOf(settings)], show: showRun });

  // 2. The result, the picture, the moment, the table.
  const result = element("p", { class: "kn-result", "aria-live": "polite" });
  const box = element("div");
  const moment = slider({ label: "Moment", min: data().from_ms, max: data().until_ms, step: 500, value: model.get("moment_ms"),
    text: (ms) => afterText(ms), onValue: go });
  const status = element("div", { role: "status", "aria-live": "polite" });
  const listed = element("div", { class: "kn-scroll" });
  el.append(element("style", {}, STYLE),
    element("div", { class: "mq-row", role: "group", "aria-label": "Settings" }, Object.values(controls).map((each) => each.el)),
    runs.problem, result, box,
    element("p", { class: "mq-note" }, "A bar: queues of broker-b that somebody believes in; an empty one: none. Sends: " +
      "● stored where it was tried first, ▲ stored elsewhere after a failure, ✕ not stored."),
    element("div", { class: "mq-row" }, moment.el), status, listed);
  el.append(runs.rest(Object.keys(data().runs).length));

  function keyOf(settings) {
    return NAMES.map((name) => String(settings[name])).join("|");
  }

  // 3. Another run: recorded, or asked of the kernel.
  function wish() {
    return runs.choose(Object.fromEntries(Object.entries(controls).map(([name, each]) => [name, each.value()])));
  }

  function observers() {
    return [...new Set(run.beliefs.map((belief) => belief[1]))];
  }

  function believes(who, ms) {
    const mine = run.beliefs.filter((belief) => belief[1] === who);
    return mine.filter((belief) => belief[0] <= ms).at(-1) ?? mine[0];
  }

  function showRun(settings, next) {
    [now, run] = [settings, next];
    for (const [name, each] of Object.entries(controls)) each.put(now[name]);
    const said = observers().map((who) => {
      const first = run.beliefs.find((belief) => belief[1] === who && belief[0] > 0);
      return `${who} ${first ? `after ${first[0] / 1000} s` : "never"}`;
    });
    const failed = run.sends.filter((send) => !send[2]).length;
    const after = run.sends.filter((send) => send[0] >= 0 && send[1] === data().brokers[1]);
    const vain = after.filter((send) => send[2] !== send[1]).length;
    result.textContent = `Changes its mind: ${said.join(", ")}. ${vain} of the shop's sends tried broker-b in vain, ${failed} failed.`;
    go(model.get("moment_ms"));
  }

  function go(ms) {
    const there = Math.min(Math.max(ms, data().from_ms), data().until_ms);
    if (there === model.get("moment_ms")) follow();
    model.set("moment_ms", there);
    model.save_changes();
  }

  function follow() {
    const here = model.get("moment_ms");
    moment.put(here);
    status.textContent = `${here < 0 ? `${-here / 1000} s before it happens` : `${here / 1000} s after it happened`}: ` +
      `broker-b is ${truth(here)}.`;
    const head = ["who", ...data().brokers, "since"];
    const rows = observers().map((who) => {
      const belief = believes(who, here);
      const asks = run.asks[who] ? ` (asks ${run.asks[who]})` : "";
      const since = belief[0] > 0 ? `${belief[0] / 1000} s after it` : "before it happened";
      return element("tr", {}, element("th", { scope: "row" }, who + asks),
        [...belief[2], since].map((words) => element("td", {}, words)));
    });
    listed.replaceChildren(element("table", { "aria-label": "What everybody believes" }, element("thead", {},
      element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))), element("tbody", {}, rows)));
    draw();
  }

  function truth(ms) {
    if (ms < 0) return now.happens === "joins" ? "not there" : "running";
    return data().truth[now.happens];
  }

  // 4. The picture: broker-b, then everybody's belief about it, then the sends.
  function draw() {
    const width = Math.max(280, box.clientWidth || 640);
    const rows = [data().brokers[1], ...observers()];
    const height = TOP + (rows.length + 1) * ROW + BOTTOM;
    const [first, last] = [data().from_ms, data().until_ms];
    const x = (ms) => LEFT + ((ms - first) / (last - first)) * (width - LEFT - 8);
    const svg = svgElement("svg", { class: "kn-time", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `Beliefs about broker-b over time. ${result.textContent}` });
    const every = width < 500 ? 60000 : 20000;
    for (let ms = 0; ms <= last; ms += every) {
      svg.append(svgElement("line", { x1: x(ms), x2: x(ms), y1: TOP, y2: height - BOTTOM, stroke: "var(--mq-rule)" }),
        svgElement("text", { x: x(ms), y: height - 8, class: "kn-small", "text-anchor": "middle" }, `${ms / 1000} s`));
    }
    rows.forEach((who, row) => {
      const y = TOP + row * ROW + 4;
      svg.append(svgElement("text", { x: LEFT - 5, y: y + 14, class: "kn-small", "text-anchor": "end" }, who));
      for (const [from, to, words, full] of stretches(row ? who : "")) {
        const width_ = Math.max(2, x(to) - x(from) - 1);
        const ink = `var(--mq-${row ? 3 : 1})`;
        svg.append(svgElement("rect", { x: x(from), y, width: width_, height: ROW - 8, rx: 3, stroke: ink, "stroke-width": 1.5,
          fill: full ? ink : "none", "stroke-dasharray": full ? null : "4 3" },
        svgElement("title", {}, `${who}: ${words}, ${afterText(from)} to ${afterText(to)}`)));
        if (width_ > 7 * words.length + 4) {
          svg.append(svgElement("text", { x: x(from) + width_ / 2, y: y + 13, "text-anchor": "middle", class: full ? "kn-on" : null }, words));
        }
      }
    });
    const y = TOP + rows.length * ROW + 17;
    svg.append(svgElement("text", { x: LEFT - 5, y, class: "kn-small", "text-anchor": "end" }, "sends to b"));
    for (const [ms, tried, stored] of run.sends) {
      if (tried !== data().brokers[1] || ms < first) continue;
      svg.append(svgElement("text", { x: x(ms), y, "text-anchor": "middle", class: "kn-small" },
        !stored ? "✕" : stored === tried ? "●" : "▲"));
    }
    const here = x(model.get("moment_ms"));
    svg.append(svgElement("line", { x1: here, x2: here, y1: TOP - 4, y2: height - BOTTOM, stroke: "var(--mq-focus)", "stroke-width": 2 }));
    svg.addEventListener("pointerdown", (event) => {
      const place = svg.getBoundingClientRect();
      const at = ((event.clientX - place.left) / place.width) * width;
      go(Math.round((first + ((at - LEFT) / (width - LEFT - 8)) * (last - first)) / 500) * 500);
    });
    box.replaceChildren(svg);
  }

  // From, to, words, full: what somebody believes about broker-b; for "": what is true.
  function stretches(who) {
    const [first, last] = [data().from_ms, data().until_ms];
    if (!who) {
      const there = now.happens !== "joins";
      const up = !["kill", "power_off"].includes(now.happens);
      return [[first, 0, there ? "" : "not there", there], [0, last, truth(0), up]];
    }
    const mine = run.beliefs.filter((belief) => belief[1] === who);
    return mine.map((belief, at) => [Math.max(first, belief[0]), mine[at + 1]?.[0] ?? last, belief[2][1], belief[3] > 0]);
  }

  model.on("change:moment_ms", follow);
  model.on("change:data", () => showRun({ ...data().now }, data().runs[keyOf(data().now)]));
  const sizes = new ResizeObserver(() => draw());
  sizes.observe(box);
  showRun(now, run);
  return () => sizes.disconnect();
}

export default { render };
