// The ring of consistent hashing: points of members inside, queues outside, the way of the chosen queue to its owner.
import { svgElement } from "../../frame/page/element.js";

export const RING_POINTS_NAMED = 60;
const LETTERS = "ABCDEFGHIJKL";
const [SIZE, MIDDLE, RADIUS] = [520, 260, 198];
const ROUND = 2 ** 32;

export function letter(place) {
  return LETTERS[place];
}

export function ink(place) {
  return `var(--mq-${1 + (place % 6)})`;
}

// The points of the members in a set, [hash, member], clockwise; each member has so many virtual nodes.
export function ringPoints(members, set, nodes) {
  return members.flatMap((hashes, place) => (set & (1 << place) ? hashes.slice(0, nodes).map((hash) => [hash, place]) : []))
    .sort((one, other) => one[0] - other[0]);
}

// The owner's point: the first one at a hash or after it, round the ring.
export function nextPoint(points, hash) {
  return points.find(([each]) => each >= hash) ?? points[0];
}

export function ringPicture({ points, hashes, chosen, names, label, onChoose }) {
  const svg = svgElement("svg", { class: "ab-picture", viewBox: `0 0 ${SIZE} ${SIZE}`, style: "max-width:520px;margin:auto",
    role: "img", "aria-label": label });
  svg.append(svgElement("circle", { cx: MIDDLE, cy: MIDDLE, r: RADIUS, fill: "none", stroke: "var(--mq-rule)" }));
  points.forEach(([hash, place], at) => {
    const [x, y] = spot(hash, RADIUS);
    const [ox, oy] = spot(hash, RADIUS - 9);
    svg.append(svgElement("line", { x1: ox, y1: oy, x2: x, y2: y, stroke: ink(place), "stroke-width": 3 }));
    if (points.length > RING_POINTS_NAMED) return;
    const [tx, ty] = spot(hash, RADIUS - 18 - (at % 3) * 13);
    svg.append(svgElement("text", { x: tx, y: Number(ty) + 4, "text-anchor": "middle", style: `fill:${ink(place)}` },
      letter(place)));
  });
  const inOrder = hashes.map((hash, number) => [hash, number]).sort((one, other) => one[0] - other[0]);
  inOrder.forEach(([hash, number], turn) => {
    const here = number === chosen;
    const [x, y] = spot(hash, RADIUS + 8);
    const [tx, ty] = spot(hash, RADIUS + 22 + (turn % 3) * 14);
    svg.append(svgElement("circle", { cx: x, cy: y, r: here ? 6 : 3.5, fill: here ? "var(--mq-focus)" : "var(--mq-ink)",
      style: "cursor:pointer", onclick: () => onChoose(number) }));
    if (hashes.length > 32 && !here) return;
    svg.append(svgElement("text", { x: tx, y: Number(ty) + 4, "text-anchor": "middle" }, names[number]));
  });
  if (chosen >= 0 && points.length) svg.append(wayToOwner(hashes[chosen], nextPoint(points, hashes[chosen])[0]));
  return svg;
}

function spot(hash, away) {
  const angle = (hash / ROUND) * 2 * Math.PI - Math.PI / 2;
  return [MIDDLE + away * Math.cos(angle), MIDDLE + away * Math.sin(angle)].map((value) => value.toFixed(1));
}

function wayToOwner(from, to) {
  const radius = RADIUS + 8;
  const [[x1, y1], [x2, y2]] = [spot(from, radius), spot(to, radius)];
  const isLong = to - from + (to < from ? ROUND : 0) > ROUND / 2;
  return svgElement("path", { d: `M${x1} ${y1} A${radius} ${radius} 0 ${isLong ? 1 : 0} 1 ${x2} ${y2}`, fill: "none",
    stroke: "var(--mq-focus)", "stroke-width": 3 });
}
