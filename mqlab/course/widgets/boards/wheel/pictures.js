// The three pictures of the wheel board: the ring of slots, the timer log, and the reminders over time.
import { counted } from "../../frame/page/counted.js";
import { afterText } from "../../frame/page/durations.js";
import { svgElement } from "../../frame/page/element.js";
import { SHOWN_SLOTS, listOf } from "./reading.js";

const [RING, MIDDLE, INNER, OUTER] = [260, 130, 84, 104];
const LETTERS = { waits: "w", "is stored again on its way": "s", "recalls another message": "r", "was delivered": "d" };
const FILLS = { w: "var(--mq-1)", s: "var(--mq-2)", r: "var(--mq-3)", d: "var(--mq-rule)" };
const [LEFT, ROW, TOP, BOTTOM] = [74, 24, 8, 22];

function spot(slot, radius) {
  const angle = ((slot - SHOWN_SLOTS / 4) / SHOWN_SLOTS) * 2 * Math.PI;
  return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)];
}

function sector(slot) {
  const corners = [[slot - 0.45, INNER], [slot - 0.45, OUTER], [slot + 0.45, OUTER], [slot + 0.45, INNER]];
  return corners.map(([at, radius]) => spot(at, radius).map((number) => number.toFixed(1)).join(",")).join(" ");
}

export function ringPicture(wheel, lit, choose) {
  const svg = svgElement("svg", { viewBox: `0 0 ${RING} ${RING}`, width: RING, height: RING, role: "img",
    "aria-label": `The wheel: ${wheel.slots.size} slots were used, the slot of second ${wheel.read} is read next` });
  for (let number = 0; number < SHOWN_SLOTS; number += 1) {
    const slot = wheel.slots.get(number);
    const isOver = slot && slot.second < wheel.read;
    svg.append(svgElement("polygon", { points: sector(number), class: slot ? "wh-slot" : null,
      fill: !slot ? "transparent" : isOver ? "var(--mq-rule)" : "var(--mq-1)",
      stroke: number === lit ? "var(--mq-ink)" : "var(--mq-rule)", "stroke-width": number === lit ? 3 : 1,
      onclick: slot ? () => choose(number) : undefined },
    svgElement("title", {}, slot ? `slot ${number}: last ${slot.last}, num ${slot.num}` : `slot ${number}: never used`)));
    const [x, y] = spot(number, OUTER + 13);
    if (number % 4 === 0 || slot) {
      svg.append(svgElement("text", { x, y: y + 4, class: "wh-small", "text-anchor": "middle" }, number));
    }
  }
  const [x, y] = spot(wheel.read % SHOWN_SLOTS, INNER - 4);
  svg.append(svgElement("line", { x1: MIDDLE, y1: MIDDLE, x2: x, y2: y, stroke: "var(--mq-ink)", "stroke-width": 2 }),
    svgElement("circle", { cx: MIDDLE, cy: MIDDLE, r: 4, fill: "var(--mq-ink)" }),
    svgElement("text", { x: MIDDLE, y: MIDDLE + 34, "text-anchor": "middle" },
      wheel.up ? `reads ${wheel.read} next` : "the broker is down"));
  return svg;
}

export function logPicture(wheel, lit, width) {
  const units = [...wheel.units.values()];
  const chain = listOf(wheel, lit);
  const step = Math.min(34, Math.max(24, (width - 8) / Math.max(1, units.length)));
  const perRow = Math.max(1, Math.floor((width - 8) / step));
  const height = Math.max(1, Math.ceil(units.length / perRow)) * 74 + 8;
  const place = new Map(units.map((unit, at) => [unit.position, [4 + (at % perRow) * step, 40 + Math.floor(at / perRow) * 74]]));
  const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `The timer log: ${counted(units.length, "unit")}, ${chain.length} of them in the list of slot ${lit}` });
  for (const unit of units) {
    const [x, y] = place.get(unit.position);
    const letter = LETTERS[unit.kind];
    const isLit = chain.includes(unit);
    svg.append(svgElement("rect", { x, y, width: step - 4, height: 18, rx: 2, fill: FILLS[letter],
      stroke: isLit ? "var(--mq-ink)" : "none", "stroke-width": 2 },
    svgElement("title", {}, `${unit.position}: ${unit.name}, slot ${unit.second}, previous ${unit.previous}, ${unit.kind}`)),
    svgElement("text", { x: x + (step - 4) / 2, y: y + 30, "text-anchor": "middle", class: "wh-small" }, letter + unit.name.slice(-1)),
    svgElement("text", { x: x + (step - 4) / 2, y: y - 3, "text-anchor": "middle", class: "wh-small" }, unit.position));
  }
  chain.slice(0, -1).forEach((unit, at) => svg.append(...arrow(place.get(unit.position), place.get(chain[at + 1].position), step)));
  if (!units.length) svg.append(svgElement("text", { x: 4, y: 40 }, "The timer log has no units."));
  return svg;
}

// From a unit to its previous one, above the boxes.
function arrow([x1, y1], [x2, y2], step) {
  const half = (step - 4) / 2;
  const [from, to] = [x1 + half, x2 + half];
  const path = `M ${from} ${y1 - 14} Q ${(from + to) / 2} ${Math.min(y1, y2) - 40} ${to} ${y2 - 14}`;
  return [svgElement("path", { d: path, fill: "none", stroke: "var(--mq-focus)", "stroke-width": 1.5 }),
    svgElement("path", { d: `M ${to - 4} ${y2 - 19} L ${to} ${y2 - 13} L ${to + 4} ${y2 - 19}`, fill: "none",
      stroke: "var(--mq-focus)", "stroke-width": 1.5 })];
}

export function reminderPicture({ run, due, width, here, endMs, go }) {
  const names = Object.keys(due);
  const height = TOP + names.length * ROW + BOTTOM;
  const x = (ms) => LEFT + (Math.min(ms, endMs) / endMs) * (width - LEFT - 18);
  const svg = svgElement("svg", { class: "wh-time", viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": "When each reminder was stored and delivered" });
  for (let ms = 0; ms <= endMs; ms += 10000) {
    svg.append(svgElement("line", { x1: x(ms), x2: x(ms), y1: TOP, y2: height - BOTTOM, stroke: "var(--mq-rule)" }),
      svgElement("text", { x: x(ms), y: height - 6, class: "wh-small", "text-anchor": "middle" }, `${ms / 1000} s`));
  }
  names.forEach((name, row) => svg.append(...reminderMarks(name, run, due[name], TOP + row * ROW, x, endMs)));
  svg.append(svgElement("line", { x1: x(here), x2: x(here), y1: TOP - 4, y2: height - BOTTOM, stroke: "var(--mq-focus)",
    "stroke-width": 2 }));
  svg.addEventListener("pointerdown", (event) => {
    const frame = svg.getBoundingClientRect();
    const at = ((event.clientX - frame.left) / frame.width) * width;
    go(((at - LEFT) / (width - LEFT - 18)) * endMs);
  });
  return svg;
}

function reminderMarks(name, run, dueMs, y, x, endMs) {
  const [waits, came] = [run.waits[name], run.came[name]];
  const until = came.length ? came[0] : endMs;
  const sign = (text, ms, down = 16) => svgElement("text", { x: x(ms), y: y + down, "text-anchor": "middle" }, text,
    svgElement("title", {}, `${name} ${afterText(ms)}`));
  return [svgElement("text", { x: LEFT - 8, y: y + 16, class: "wh-small", "text-anchor": "end" }, name),
    svgElement("rect", { x: x(waits[0]), y: y + 8, width: Math.max(2, x(until) - x(waits[0])), height: 7,
      fill: came.length ? "var(--mq-1)" : "none", stroke: "var(--mq-1)" }),
    svgElement("line", { x1: x(dueMs), x2: x(dueMs), y1: y + 2, y2: y + 21, stroke: "var(--mq-ink)" }),
    ...waits.slice(1).map((ms) => sign("↻", ms, 7)), ...came.map((ms) => sign("●", ms))];
}
