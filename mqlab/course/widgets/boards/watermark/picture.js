// The rows in state after each batch; below them the groups of one batch, each by the time of its window.
import { svgElement } from "../../frame/page/element.js";

const [LEFT, BAR, LANE] = [76, 24, 34];

export function batchesPicture({ width, batches, chosen, brokers, windowMs, clock, waterText, label, onBatch }) {
  const lanesTop = BAR * batches.length + 30;
  const height = lanesTop + LANE * brokers.length + 30;
  const svg = svgElement("svg", { class: "wm-picture", viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": label });
  svg.append(...bars(width, batches, chosen, clock, onBatch),
    svgElement("line", { x1: 0, x2: width, y1: lanesTop - 26, y2: lanesTop - 26, stroke: "var(--mq-rule)" }));
  const starts = [...batches.at(-1).ever.keys(), ...batches.flatMap((one) => [...one.late.keys()])]
    .map((key) => Number(key.split(" ")[0]));
  const [from, to] = [Math.min(...starts), Math.max(...starts) + windowMs];
  const x = (ms) => LEFT + ((ms - from) / (to - from)) * (width - LEFT - 10);
  brokers.forEach((name, lane) => svg.append(svgElement("text",
    { x: LEFT - 6, y: lanesTop + LANE * lane + 19, class: "wm-small", "text-anchor": "end" }, name)));
  svg.append(...groups(batches, chosen, brokers, clock, (start, broker) => ({
    x: x(start) + 1, y: lanesTop + LANE * broker, width: Math.max(x(start + windowMs) - x(start) - 2, 1) })));
  const bottom = lanesTop + LANE * brokers.length;
  const mark = (ms, words, ink, at, dashes) => ms !== null && svg.append(...line(x(ms), width, [lanesTop - 6, bottom],
    words, ink, at, dashes));
  mark(chosen.watermark, waterText, "var(--mq-3)", lanesTop - 12, null);
  mark(chosen.newest, `newest ${clock(chosen.newest)}`, "var(--mq-ink)", bottom + 16, "3 4");
  return svg;
}

function bars(width, batches, chosen, clock, onBatch) {
  const most = Math.max(1, ...batches.map((one) => one.kept.size));
  const long = Math.max(60, width - LEFT - 330);
  return batches.map((one) => {
    const y = BAR * one.number;
    const bar = (long * one.kept.size) / most;
    return svgElement("g", { class: "wm-batch", onclick: () => onBatch(one.number) },
      one === chosen ? svgElement("rect", { x: 0, y: y + 1, width, height: BAR - 2, fill: "var(--mq-light)" }) : null,
      svgElement("rect", { x: 0, y, width, height: BAR, fill: "transparent" }),
      svgElement("text", { x: 6, y: y + 16 }, `batch ${one.number}`),
      svgElement("rect", { x: LEFT, y: y + 5, width: Math.max(bar, 1), height: BAR - 10, fill: "var(--mq-1)" }),
      svgElement("text", { x: LEFT + bar + 6, y: y + 16 }, `${one.kept.size} kept`),
      svgElement("text", { x: LEFT + long + 80, y: y + 16, class: "wm-small" }, clock(one.watermark)),
      one.dropped ? svgElement("text", { x: width - 6, y: y + 16, "text-anchor": "end", style: "fill:var(--mq-4)" },
      `✕ ${one.dropped} dropped`) : null);
  });
}

function groups(batches, chosen, brokers, clock, placeOf) {
  const counted = [...chosen.ever].flatMap(([key, count]) => {
    const [start, broker] = key.split(" ").map(Number);
    const isKept = chosen.kept.has(key);
    const words = `${clock(start)}, ${brokers[broker]}: ${count} counted, ${isKept ? "kept" : "finished and forgotten"}`;
    return cell(placeOf(start, broker), isKept ? "var(--mq-2)" : "none", isKept ? "var(--mq-2)" : "var(--mq-muted)",
      count,
      isKept ? "wm-on" : "wm-small", words);
  });
  const dropped = batches.slice(0, chosen.number + 1).flatMap((one) => [...one.late].flatMap(([key, count]) => {
    const [start, broker] = key.split(" ").map(Number);
    return cell(placeOf(start, broker), "none", "var(--mq-4)", `✕ ${count}`, null,
      `${clock(start)}, ${brokers[broker]}: ${count} dropped in batch ${one.number}`);
  }));
  return [...counted, ...dropped];
}

function cell(place, fill, stroke, words, kind, title) {
  const box = svgElement("rect", { ...place, height: LANE - 8, fill, stroke, rx: 2 }, svgElement("title", {}, title));
  // In a narrow page the sign of what was dropped stands alone.
  const shown = [String(words), String(words).split(" ")[0]].find((each) => place.width > 7 * each.length + 2);
  if (!shown) return [box];
  return [box, svgElement("text", { x: place.x + place.width / 2, y: place.y + 17, "text-anchor": "middle", class: kind,
    style: kind ? null : "fill:var(--mq-4)" }, shown)];
}

function line(at, width, [top, bottom], words, ink, height, dashes) {
  const x = Math.min(Math.max(at, LEFT), width - 10);
  const anchor = x > width - 130 ? "end" : x < LEFT + 130 ? "start" : "middle";
  return [
    svgElement("line", { x1: x, x2: x, y1: top, y2: bottom, stroke: ink, "stroke-width": 2,
    "stroke-dasharray": dashes }),
    svgElement("text", { x, y: height, "text-anchor": anchor, style: `fill:${ink}` }, words),
  ];
}
