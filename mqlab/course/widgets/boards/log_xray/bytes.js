// A message byte by byte: its unit in the log, its entries in queues and in the index.
import { element } from "../../frame/page/element.js";

// Which entries lead to a place: a redraw is needed only when they change.
export function placesOf(picture, place) {
  const queues = picture.queues.flatMap((queue) => queue.entries.filter((entry) => entry[1] === place));
  return [queues, picture.index.flatMap((file) => file.chains.flatMap((chain) =>
    chain.entries.filter((entry) => entry[2] === place)))];
}

// The parts of the panel for the unit at a place; key is its number in data.units.
export function bytesOf(picture, place, data, key) {
  const unit = data.units[key];
  const parts = [dump(`The unit at byte ${place}`, unit.hex, unit.fields.map(([name, , bytes]) => [name, bytes])),
    fieldTable(unit.fields)];
  for (const queue of picture.queues) {
    for (const [offset, at, , , hex] of queue.entries) {
      if (at === place) parts.push(dump(`Entry ${offset} of ${queue.topic} ${queue.queue_id}`, hex, data.queue_fields));
    }
  }
  for (const { slot, entries } of picture.index.flatMap((file) => file.chains)) {
    for (const [number, , at, , , hex] of entries) {
      if (at === place) parts.push(dump(`Index entry ${number}, in the chain of slot ${slot}`, hex, data.index_fields));
    }
  }
  return parts;
}

// Each field is a span of its own; the number next to it leads to the table.
function dump(title, hex, fields) {
  const line = element("div", { class: "lx-hex" });
  let at = 0;
  fields.forEach(([name, bytes]) => {
    const raw = hex.slice(2 * at, 2 * (at + bytes)).replace(/(..)(?=.)/g, "$1 ");
    if (bytes) line.append(element("span", { title: name }, raw), " ");
    at += bytes;
  });
  return element("div", {}, element("b", {}, title), line,
    fields.length < 6 ? element("div", { class: "mq-note" }, fields.map(([name]) => name).join(" · ")) : "");
}

function fieldTable(fields) {
  const rows = fields.map((field, number) => element("tr", {}, [number + 1, ...field.slice(0, 5)].map((cell) =>
    element("td", { style: "overflow-wrap:anywhere" }, String(cell)))));
  const head = ["#", "field", "offset", "size", "value", "meaning"];
  return element("details", {}, element("summary", {}, `${fields.length} fields with their values`), element("table",
    {},
    element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, rows)));
}
