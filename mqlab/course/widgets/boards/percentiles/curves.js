// Cumulative curves over an axis of powers of ten; marks hang from the height of the percentile, their names above.
import { axisWords } from "../../frame/page/axis.js";
import { svgElement } from "../../frame/page/element.js";
import { ticks } from "./samples.js";

const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [40, 14, 34, 40, 300];
const LEAST = 0.5;

export function curves({ width, share, unit, label, all, first, second, marks }) {
  const svg = svgElement("svg", { class: "pb-curves", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img",
    "aria-label": label });
  const [least, most] = [Math.max(all[0][0], LEAST) / 1.2, Math.max(all.at(-1)[0], LEAST) * 1.3];
  const span = Math.log(most / least);
  const x = (value) => LEFT + (Math.log(Math.max(value, LEAST) / least) / span) * (width - LEFT - RIGHT);
  const y = (part) => TOP + (1 - part) * (HEIGHT - TOP - BOTTOM);
  for (const part of [0, 0.5, 1]) {
    svg.append(svgElement("line", { x1: LEFT, x2: width - RIGHT, y1: y(part), y2: y(part), stroke: "var(--mq-rule)" }),
      svgElement("text", { x: LEFT - 5, y: y(part) + 4, class: "pb-small", "text-anchor": "end" }, `${part * 100}%`));
  }
  const marked = ticks(least, most, width < 520).map((value) => [x(value), `${value.toLocaleString("en")} ${unit}`]);
  svg.append(...marked.map(([at]) => svgElement("line", { x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM,
    stroke: "var(--mq-rule)" })), ...axisWords(marked, HEIGHT - BOTTOM + 16, width, { class: "pb-small" }));
  svg.append(svgElement("line", { x1: LEFT, x2: width - RIGHT, y1: y(share), y2: y(share), stroke: "var(--mq-muted)",
    "stroke-dasharray": "2 3" }));
  svg.append(curve(all, x, y, width, { stroke: "var(--mq-ink)", "stroke-width": 4, opacity: 0.55 }),
    curve(first[1], x, y, width, { stroke: "var(--mq-1)", "stroke-width": 1.8 }),
    curve(second[1], x, y, width, { stroke: "var(--mq-4)", "stroke-width": 1.8, "stroke-dasharray": "6 3" }));
  const [mean, ofAll] = [marks.mean, marks.all];
  svg.append(...mark(x(mean[0]), y(share), width, `✕ mean ${mean[1]}`, "var(--mq-3)", TOP - 20, "3 4"),
    ...mark(x(ofAll[0]), y(share), width, `● all ${ofAll[1]}`, "var(--mq-ink)", TOP - 6, null),
    svgElement("text", { x: width - RIGHT, y: HEIGHT - 6, "text-anchor": "end", style: "fill:var(--mq-1)" },
    `— ${first[0]}`),
    svgElement("text", { x: LEFT, y: HEIGHT - 6, style: "fill:var(--mq-4)" }, `- - ${second[0]}`));
  return svg;
}

function curve(parts, x, y, width, attributes) {
  let reached = 0;
  const points = [`${LEFT} ${y(0)}`];
  for (const [value, part] of parts) {
    points.push(`${x(value).toFixed(1)} ${y(reached).toFixed(1)}`);
    reached += part;
    points.push(`${x(value).toFixed(1)} ${y(Math.min(reached, 1)).toFixed(1)}`);
  }
  points.push(`${width - RIGHT} ${y(1)}`);
  return svgElement("path", { d: `M${points.join("L")}`, fill: "none", ...attributes });
}

function mark(place, top, width, words, ink, at, dashes) {
  const anchor = place > width - 110 ? "end" : place < LEFT + 70 ? "start" : "middle";
  return [
    svgElement("line", { x1: place, x2: place, y1: top, y2: HEIGHT - BOTTOM, stroke: ink, "stroke-width": 2,
      "stroke-dasharray": dashes }),
    svgElement("circle", { cx: place, cy: top, r: 4, fill: ink }),
    svgElement("text", { x: place, y: at, "text-anchor": anchor, class: "pb-halo", style: `fill:${ink}` }, words),
  ];
}
