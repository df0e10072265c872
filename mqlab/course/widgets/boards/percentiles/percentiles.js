// The percentile board: two samples whose sizes are moved, the percentile of both together, and the mean of the two.
import { choiceControl } from "../../frame/page/controls.js";
import { element, svgElement } from "../../frame/page/element.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.pb-curves { width: 100%; display: block; }
.pb-curves text { font-size: 12px; fill: var(--mq-ink); }
.pb-curves .pb-small { fill: var(--mq-muted); font-size: 11px; }
.pb-curves .pb-halo { paint-order: stroke; stroke: var(--mq-paper); stroke-width: 3px; }
.pb-count { min-width: 4em; text-align: right; font-variant-numeric: tabular-nums; }
.pb-result { font-weight: 600; margin: 4px 0; }
`;
const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [40, 14, 34, 40, 300];
const SAME_SHARE = 1e-12;

function render({ model, el }) {
  const data = model.get("data");
  const names = Object.keys(data.samples);
  const number = (value) => (value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en")
    : value.toPrecision(3));
  const percentText = (percent) => `p${percent}`;

  // 1. Which two samples, how many messages of each, which percentile.
  const keep = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const [controls, counts] = [{}, {}];
  for (const each of ["first", "second"]) {
    const words = each === "first" ? "First queue" : "Second queue";
    controls[each] = choiceControl({ label: words, value: model.get(each), choices: names, onValue: (name) => keep(each, name) });
    controls[`${each}_size`] = slider({ label: `Messages of the ${each}`, min: 0, max: data.sizes.length - 1,
      value: data.sizes.indexOf(model.get(`${each}_size`)), text: (at) => `${data.sizes[at]} messages`,
      onValue: (at) => keep(`${each}_size`, data.sizes[at]) });
    counts[each] = element("output", { class: "pb-count" });
    controls[`${each}_size`].el.append(counts[each]);
  }
  controls.percent = choiceControl({ label: "Percentile", value: model.get("percent"),
    choices: data.percents.map((percent) => [percent, percentText(percent)]), onValue: (percent) => keep("percent", percent) });
  const result = element("p", { class: "pb-result", role: "status", "aria-live": "polite" });
  const box = element("div");
  const row = (...parts) => element("div", { class: "mq-row" }, parts.map((part) => part.el));
  el.append(element("style", {}, STYLE), row(controls.first, controls.first_size), row(controls.second, controls.second_size),
    row(controls.percent), result, box, element("p", { class: "mq-note" },
      "A curve says which share of the messages was done within so long. The percentile of all messages lies on the thick " +
      "curve; the mean of the two percentiles lies on none."));

  // 2. What is reckoned: the smallest value that a share of the messages does not exceed.
  function weighted() {
    const sizes = { first: model.get("first_size"), second: model.get("second_size") };
    const total = sizes.first + sizes.second;
    return ["first", "second"].flatMap((each) => {
      const values = data.samples[model.get(each)];
      return values.map((value) => [value, sizes[each] / total / values.length]);
    }).sort((one, other) => one[0] - other[0]);
  }

  const alone = (name) => data.samples[name].map((value) => [value, 1 / data.samples[name].length]);

  function quantile(values, share) {
    let reached = 0;
    for (const [value, part] of values) {
      reached += part;
      if (reached >= share - SAME_SHARE) return value;
    }
    return values[values.length - 1][0];
  }

  // 3. The picture: three curves, and three marks at the height of the percentile.
  function draw() {
    const [first, second, percent] = [model.get("first"), model.get("second"), model.get("percent")];
    const share = percent / 100;
    const [ofFirst, ofSecond] = [quantile(alone(first), share), quantile(alone(second), share)];
    const all = weighted();
    const [mean, together] = [(ofFirst + ofSecond) / 2, quantile(all, share)];
    const { unit } = data;
    result.textContent = `${percentText(percent)} of ${first}: ${number(ofFirst)} ${unit}; of ${second}: ${number(ofSecond)} ${unit}. ` +
      `The mean of the two: ${number(mean)} ${unit}. Of all ${(model.get("first_size") + model.get("second_size")).toLocaleString("en")} ` +
      `messages together: ${number(together)} ${unit}.`;

    for (const each of ["first", "second"]) counts[each].textContent = model.get(`${each}_size`).toLocaleString("en");

    const width = Math.max(300, box.clientWidth || 640);
    const values = all.map(([value]) => Math.max(value, 0.5));
    const [least, most] = [Math.log(values[0] / 1.2), Math.log(values[values.length - 1] * 1.3)];
    const x = (value) => LEFT + ((Math.log(Math.max(value, 0.5)) - least) / (most - least)) * (width - LEFT - RIGHT);
    const y = (part) => TOP + (1 - part) * (HEIGHT - TOP - BOTTOM);
    const svg = svgElement("svg", { class: "pb-curves", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img",
      "aria-label": result.textContent });
    for (const part of [0, 0.5, 1]) {
      svg.append(svgElement("line", { x1: LEFT, x2: width - RIGHT, y1: y(part), y2: y(part), stroke: "var(--mq-rule)" }),
        svgElement("text", { x: LEFT - 5, y: y(part) + 4, class: "pb-small", "text-anchor": "end" }, `${part * 100}%`));
    }
    for (let power = -1; power < 8; power += 1) {
      for (const step of width < 520 ? [1] : [1, 2, 5]) {
        const value = step * 10 ** power;
        if (Math.log(value) <= least || Math.log(value) >= most) continue;
        svg.append(svgElement("line", { x1: x(value), x2: x(value), y1: TOP, y2: HEIGHT - BOTTOM, stroke: "var(--mq-rule)" }),
          svgElement("text", { x: x(value), y: HEIGHT - BOTTOM + 16, class: "pb-small", "text-anchor": "middle" }, `${value.toLocaleString("en")} ${unit}`));
      }
    }
    svg.append(svgElement("line", { x1: LEFT, x2: width - RIGHT, y1: y(share), y2: y(share), stroke: "var(--mq-muted)", "stroke-dasharray": "2 3" }));
    const curve = (parts, attributes) => {
      let reached = 0;
      const points = [`${LEFT} ${y(0)}`];
      for (const [value, part] of parts) {
        points.push(`${x(value).toFixed(1)} ${y(reached).toFixed(1)}`);
        reached += part;
        points.push(`${x(value).toFixed(1)} ${y(Math.min(reached, 1)).toFixed(1)}`);
      }
      points.push(`${width - RIGHT} ${y(1)}`);
      svg.append(svgElement("path", { d: `M${points.join("L")}`, fill: "none", ...attributes }));
    };
    curve(all, { stroke: "var(--mq-ink)", "stroke-width": 4, opacity: 0.55 });
    curve(alone(first), { stroke: "var(--mq-1)", "stroke-width": 1.8 });
    curve(alone(second), { stroke: "var(--mq-4)", "stroke-width": 1.8, "stroke-dasharray": "6 3" });

    // The marks hang from the height of the percentile down to the axis, their names under it.
    const mark = (value, words, ink, at, dashes) => {
      const place = x(value);
      const anchor = place > width - 110 ? "end" : place < LEFT + 70 ? "start" : "middle";
      svg.append(svgElement("line", { x1: place, x2: place, y1: y(share), y2: HEIGHT - BOTTOM, stroke: ink, "stroke-width": 2, "stroke-dasharray": dashes }),
        svgElement("circle", { cx: place, cy: y(share), r: 4, fill: ink }),
        svgElement("text", { x: place, y: at, "text-anchor": anchor, class: "pb-halo", style: `fill:${ink}` }, words));
    };
    mark(mean, `✕ mean ${number(mean)} ${unit}`, "var(--mq-3)", TOP - 20, "3 4");
    mark(together, `● all ${number(together)} ${unit}`, "var(--mq-ink)", TOP - 6, null);
    svg.append(svgElement("text", { x: width - RIGHT, y: HEIGHT - 6, "text-anchor": "end", style: "fill:var(--mq-1)" }, `— ${first}`));
    svg.append(svgElement("text", { x: LEFT, y: HEIGHT - 6, style: "fill:var(--mq-4)" }, `- - ${second}`));
    box.replaceChildren(svg);
  }

  for (const name of ["first", "second", "percent"]) {
    model.on(`change:${name}`, () => { controls[name].put(model.get(name)); draw(); });
  }
  for (const name of ["first_size", "second_size"]) {
    model.on(`change:${name}`, () => { controls[name].put(data.sizes.indexOf(model.get(name))); draw(); });
  }
  const sizes = new ResizeObserver(() => draw());
  sizes.observe(box);
  draw();
  return () => sizes.disconnect();
}

export default { render };
