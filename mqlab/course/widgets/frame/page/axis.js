// Words under an axis of a drawing: they stay inside it, and none lies on another.
import { svgElement } from "./element.js";

const CHARACTER = 6.5; // pixels of an average character of 11 px text, a little generous

// The words of places from left to right, as [x, words]: at their middles, or moved as far as the drawing has room.
export function axisWords(places, y, width, attributes = {}) {
  const drawn = [];
  let end = -Infinity;
  for (const [x, words] of places) {
    const half = (words.length * CHARACTER) / 2;
    const middle = Math.max(half, Math.min(x, width - half));
    if (middle - half < end) continue;
    end = middle + half + CHARACTER / 2;
    drawn.push(svgElement("text", { x: middle, y, "text-anchor": "middle", ...attributes }, words));
  }
  return drawn;
}
