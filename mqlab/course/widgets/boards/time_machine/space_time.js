// The space-time picture: a lane for each node, time downwards, a slanted arrow for each frame, bars for what waits.
//
//   time      shop-1         broker-a        billing-1
//   +0 ms       ╲ SEND_MESSAGE_V2
//                ╲────────────▶ ■ stored
//   +1.5 s                    ┃ held pull
//
// happened: mqlab/course/widgets/happened.py. Rows are in the order of steps, not to scale; a long pause has its own line.
import { afterText, durationText } from "../../frame/page/durations.js";
import { element, freshId, svgElement } from "../../frame/page/element.js";

const SPACE_TIME_STYLE = `
.mq-space { overflow: auto; height: 440px; position: relative; contain: content; }
.mq-space svg { display: block; }
.mq-space.short { height: auto; }
.mq-space text { fill: var(--mq-ink); font-size: 11px; }
.mq-space .quiet { fill: var(--mq-muted); }
.mq-space .paper { fill: var(--mq-paper); }
.mq-space .lane { stroke: var(--mq-rule); stroke-width: 1.5; }
.mq-space .stored { --look: var(--mq-1); } .mq-space .read { --look: var(--mq-2); }
.mq-space .progress { --look: var(--mq-3); } .mq-space .trouble { --look: var(--mq-4); }
.mq-space .held { --look: var(--mq-6); }
.mq-space .other, .mq-space .frame, .mq-space .held { --look: var(--mq-5); }
.mq-space .sign { fill: var(--look); stroke: var(--look); stroke-width: 1.5; }
.mq-space .moment { cursor: pointer; }
.mq-space .moment .back { fill: transparent; stroke: none; }
.mq-space .moment:hover .back { fill: var(--mq-card); }
.mq-space .moment.mq-lit { outline: none; background: none; }
.mq-space .moment.mq-lit .back { fill: var(--mq-light); stroke: var(--mq-focus); }
.mq-space .moment.future .sign { fill: var(--mq-rule); stroke: var(--mq-rule); }
.mq-space .moment.future text { fill: var(--mq-muted); }
.mq-space svg:focus:not(:focus-visible) { outline: none; }
.mq-space .lanes { position: sticky; top: 0; background: var(--mq-paper); border-bottom: 1px solid var(--mq-rule);
  z-index: 1; }
.mq-space .bar { fill: var(--mq-card); stroke: var(--mq-5); }
.mq-space .bar.held { stroke-dasharray: 3 2; stroke: var(--mq-6); }
.mq-space .here { stroke: var(--mq-focus); stroke-width: 2; }
.mq-space .marked { stroke: var(--mq-4); stroke-width: 2; stroke-dasharray: 6 3; }
`;
const SIGNS = {
  stored: (x, y) => ({ d: `M${x - 5} ${y - 5}h10v10h-10z` }),
  read: (x, y) => ({ d: `M${x - 5} ${y - 5}l11 5l-11 5z` }),
  progress: (x, y) => ({ d: `M${x} ${y - 6}l6 6l-6 6l-6 -6z` }),
  held: (x, y) => ({ d: `M${x - 4} ${y - 6}h3v12h-3zM${x + 1} ${y - 6}h3v12h-3z` }),
  trouble: (x, y) => ({ d: `M${x - 5} ${y - 5}l10 10M${x + 5} ${y - 5}l-10 10`, style: "fill:none;stroke-width:3" }),
  other: (x, y) => ({ d: `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z` }),
};
const [LANE, LEFT, TOP, ROW, LETTER, MARGIN, LONG_PAUSE] = [216, 104, 12, 24, 6, 240, 1000];
const LOOK_WORDS = { stored: "■ written", read: "▶ read or handled", progress: "◆ progress", trouble: "✕ trouble",
  held: "‖ begins to wait", other: "● other" };

export function spaceTime({ happened, name, links, onMoment, marked = null }) {
  const { lanes, texts, moments, bars } = happened;
  const prefix = freshId();
  const x = (lane) => LEFT + 24 + lane * LANE;
  const width = x(lanes.length - 1) + LANE;
  const hidden = { "aria-hidden": "true" };
  const { places, side, times, bottom } = laidOut(moments, width);
  const groups = new Array(moments.length);
  const drawnBars = bars.map(() => null);
  let shown = -1;

  const words = (moment) => {
    const [, ms, lane, target, , text] = moment;
    return `${afterText(ms)}, ${lanes[lane]}${target < 0 ? "" : ` to ${lanes[target]}`}: ${texts[text]}`;
  };
  // The number of moments up to a step.
  const upTo = (step) => {
    let [low, high] = [0, moments.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (moments[middle][0] <= step) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  // The height of a step: its own row, or a little after the row before it.
  const height = (step) => {
    const index = upTo(step) - 1;
    if (index < 0) return TOP + 4;
    return moments[index][0] === step ? places[index] : places[index] + ROW * 0.4;
  };

  const spans = bars.map(([, , begin, , end]) => {
    const top = height(begin);
    return [top, end < 0 ? bottom - 8 : Math.max(height(end), top + 6)];
  });
  function drawBar(index) {
    const [lane, kind, , , , , text] = bars[index];
    const [top, end] = spans[index];
    const side = kind === "held" ? 3 : -8;
    return svgElement("rect", { x: x(lane) + side, y: top, width: 5, height: end - top, class: `bar ${kind}` },
      svgElement("title", {}, texts[text]));
  }

  // Notebooks shrink every drawing to the page; this one scrolls.
  const sized = (tall) => `max-width:none;width:${width}px;height:${tall}px`;
  const heads = svgElement("svg", { width, height: 22, style: sized(22), ...hidden }, lanes.map((lane, at) =>
    svgElement("text", { x: x(at), y: 15, "text-anchor": at ? "middle" : "start", "font-weight": "bold" }, lane)));
  const rules = lanes.map((lane, at) =>
    svgElement("line", { x1: x(at), y1: 0, x2: x(at), y2: bottom, class: "lane" }));
  const behind = svgElement("g", hidden);
  const front = svgElement("g", { role: "none" });
  const column = timeColumn(times, bottom);
  const here = svgElement("line", { x1: 0, x2: width, y1: 0, y2: 0, class: "here", ...hidden });
  const svg = svgElement("svg", { width, height: bottom, style: sized(bottom), role: "listbox", tabindex: 0, "aria-label": `${name}: moments`,
    onkeydown: onKey }, svgElement("g", hidden, rules), behind, front, here, differenceMark(), column.el);
  const scroller = element("div", { class: bottom < 400 ? "mq-space short" : "mq-space", tabindex: -1 },
    element("div", { class: "lanes", style: `width:${width}px` }, heads), svg);
  scroller.addEventListener("scroll", () => {
    column.follow(scroller.scrollLeft);
    requestAnimationFrame(attach);
  });

  function differenceMark() {
    if (marked === null) return null;
    const y = places[marked] - 12;
    return svgElement("g", hidden, svgElement("line", { x1: 0, x2: width, y1: y, y2: y, class: "marked" }),
      svgElement("text", { x: width - 4, y: y - 3, "text-anchor": "end", "font-weight": "bold", style: HALO },
        "≠ first difference"));
  }

  // Only what can be seen is in the page, however long the story is.
  let attached = "";
  function attach() {
    const [roof, floor] = [scroller.scrollTop - MARGIN, scroller.scrollTop + (scroller.clientHeight || 440) + MARGIN];
    const [first, end] = [firstAbove(places, roof), firstAbove(places, floor)];
    const key = `${first} ${end}`;
    if (key === attached) return;
    attached = key;
    const visible = [];
    for (let index = first; index < end; index += 1) {
      groups[index] ||= drawMoment(moments[index], index, places[index]);
      groups[index].classList.toggle("future", index >= shown);
      visible.push(groups[index]);
    }
    front.replaceChildren(...visible);
    column.draw(roof, floor);
    const nearBars = bars.map((_, index) => index).filter((index) => spans[index][1] > roof && spans[index][0] < floor);
    behind.replaceChildren(...side.filter(([y]) => y > roof && y < floor).map(([, nodes]) => nodes()).flat(),
      ...nearBars.map((index) => (drawnBars[index] ||= drawBar(index))));
  }

  function drawMoment(moment, index, y) {
    const [, , lane, target, , textNumber, lookNumber, momentLinks, sent] = moment;
    const isFrame = target >= 0 && target !== lane;
    const [look, text] = [isFrame ? "frame" : texts[lookNumber], texts[textNumber]];
    const parts = [];
    let [left, right] = [x(lane) - 8, x(lane) + LANE - 10];
    if (isFrame) {
      // A frame leaves before it arrives: at the row of the step that sent it, at least a little above.
      const top = Math.max(0, Math.min(sent.length ? height(sent[0]) : y - 10, y - 10), y - 3 * ROW);
      const [x1, x2] = [x(lane), x(target)];
      const back = x2 > x1 ? -8 : 8;
      [left, right] = [Math.min(x1, x2) + 3, Math.max(x1, x2) - 3];
      parts.push(svgElement("line", { x1, y1: top, x2, y2: y, class: "sign" }),
        svgElement("path", { d: `M${x2} ${y}l${back} -5v8z`, class: "sign" }),
        svgElement("text", { x: (left + right) / 2, y: y + 2, "text-anchor": "middle", style: HALO },
          shortened(text, right - left - 30)));
    } else {
      parts.push(svgElement("path", { ...(SIGNS[look] || SIGNS.other)(x(lane), y), class: "sign" }),
        svgElement("text", { x: x(lane) + 12, y: y + 4, style: HALO }, shortened(text, LANE - 24)));
    }
    const group = svgElement("g", { class: `moment ${look}`, role: "option", id: `${prefix}-${index}`,
      "aria-label": words(moment), "aria-posinset": index + 1, "aria-setsize": moments.length, onclick: () => onMoment(index) },
      svgElement("title", {}, words(moment)),
      svgElement("rect", { x: left, y: y - 11, width: right - left, height: ROW - 2, rx: 3, class: "back" }), parts);
    links.add(group, momentLinks.map((number) => texts[number]));
    return group;
  }

  function onKey(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || !moments.length) return;
    event.preventDefault();
    onMoment(Math.max(0, Math.min(moments.length - 1, shown - 1 + steps[event.key])));
  }

  // Everything up to a step has happened; the picture scrolls there.
  function show(step) {
    const count = upTo(step);
    const before = shown;
    shown = count;
    const y = count ? places[count - 1] + 13 : TOP;
    here.setAttribute("transform", `translate(0 ${y})`);
    // 1. Scroll first, so that what is attached is what will be seen.
    const [visible, roof] = [scroller.clientHeight || 440, scroller.scrollTop];
    if (y < roof + 40 || y > roof + visible - 60) scroller.scrollTop = y - visible * 0.6;
    if (count) {
      const [left, right] = [x(moments[count - 1][2]) - 20, x(moments[count - 1][2]) + LANE];
      if (left < scroller.scrollLeft) scroller.scrollLeft = left - 20;
      else if (right > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = right - scroller.clientWidth;
    }
    attach();
    // 2. What lies between the old place and the new one has happened now, or not yet.
    for (let index = Math.min(before, count); index < Math.max(before, count); index += 1) {
      if (groups[index]) groups[index].classList.toggle("future", index >= count);
    }
    if (groups[before - 1]) groups[before - 1].removeAttribute("aria-selected");
    if (groups[count - 1]) {
      groups[count - 1].setAttribute("aria-selected", "true");
      svg.setAttribute("aria-activedescendant", `${prefix}-${count - 1}`);
    }
  }

  // What has begun and not ended at a step, as texts.
  const underWay = (step) =>
    bars.filter(([, , begin, , end]) => begin <= step && (end < 0 || end > step)).map((bar) => texts[bar[6]]);

  const legend = element("p", { class: "mq-note" },
    `${Object.values(LOOK_WORDS).join("  ")}  ╲▶ a frame, sent and arriving  ▯ a request under way  ┆ a held pull`);
  const el = element("div", {}, element("style", {}, SPACE_TIME_STYLE), scroller, legend);
  return { el, show, words, upTo, underWay };
}

// The times and long pauses, at the left edge however far the picture is scrolled to the right.
function timeColumn(times, bottom) {
  const words = svgElement("g", {});
  const el = svgElement("g", { "aria-hidden": "true" },
    svgElement("rect", { x: 0, y: 0, width: LEFT - 4, height: bottom, class: "paper" }), words);
  const draw = (roof, floor) => words.replaceChildren(...times.filter(([y]) => y > roof && y < floor)
    .map(([y, text]) => svgElement("text", { x: 4, y: y + 4, class: "quiet" }, text)));
  return { el, draw, follow: (left) => el.setAttribute("transform", `translate(${left} 0)`) };
}

// The row of each moment; the lines of long pauses: [height, () => elements]; the words beside both: [height, text].
function laidOut(moments, width) {
  const [places, side, times] = [[], [], []];
  let [y, before] = [TOP, null];
  for (const [, ms] of moments) {
    if (before !== null && ms - before >= LONG_PAUSE) {
      const top = y + 16;
      times.push([top, `${durationText(ms - before)} later`]);
      side.push([top, () => [
        svgElement("line", { x1: LEFT, y1: top, x2: width, y2: top, class: "lane", "stroke-dasharray": "2 5" })]]);
      y += ROW;
    }
    y += ROW;
    if (ms !== before) times.push([y, afterText(ms)]);
    before = ms;
    places.push(y);
  }
  return { places, side, times, bottom: y + 30 };
}

// The number of heights up to a limit.
function firstAbove(places, limit) {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

const HALO = "paint-order:stroke;stroke:var(--mq-paper);stroke-width:3px";

function shortened(text, pixels) {
  const letters = Math.max(4, Math.floor(pixels / LETTER));
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}
