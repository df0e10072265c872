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
const [LEFT, TOP, ROW, LETTER, MARGIN, LONG_PAUSE] = [104, 12, 24, 6, 240, 1000];
const [NARROWEST, WIDEST, UNKNOWN] = [112, 300, 216]; // pixels of a lane; UNKNOWN: before it is in the page
const LOOK_WORDS = { stored: "■ written", read: "▶ read or handled", progress: "◆ progress", trouble: "✕ trouble",
  held: "‖ begins to wait", other: "● other" };

// All lanes are seen at once where the page has room; labels are cut before a lane is.
export function laneWidth(available, lanes) {
  return Math.max(NARROWEST, Math.min(WIDEST, Math.floor((available - LEFT - 24) / lanes)));
}

class SpaceTime {
  constructor({ happened, name, links, onMoment, marked = null }) {
    Object.assign(this, { happened, name, marked, onMoment, links, lane: UNKNOWN, step: null });
    this.layOut();
    this.makeLanes();
    this.begin();
  }

  x(lane) {
    return LEFT + 24 + lane * this.lane;
  }

  layOut() {
    [this.lanes, this.texts, this.moments, this.bars] = [this.happened.lanes, this.happened.texts,
      this.happened.moments, this.happened.bars];
    this.prefix = freshId();
    this.width = this.x(this.lanes.length);
    this.hidden = { "aria-hidden": "true" };
    const rows = laidOut(this.moments, this.width);
    [this.places, this.side, this.times, this.bottom] = [rows.places, rows.side, rows.times, rows.bottom];
    this.groups = new Array(this.moments.length);
    this.drawnBars = this.bars.map(() => null);
    this.shown = -1;
    this.attached = "";
    this.spans = this.bars.map(([, , begin, , end]) => {
      const top = this.height(begin);
      return [top, end < 0 ? this.bottom - 8 : Math.max(this.height(end), top + 6)];
    });
  }

  makeLanes() {
    const heads = svgElement("svg", { width: this.width, height: 22, style: this.sized(22), ...this.hidden },
      this.lanes.map((lane, at) =>
      svgElement("text", { x: this.x(at), y: 15, "text-anchor": at ? "middle" : "start", "font-weight": "bold" }, lane)));
    const rules = this.lanes.map((lane, at) =>
      svgElement("line", { x1: this.x(at), y1: 0, x2: this.x(at), y2: this.bottom, class: "lane" }));
    this.behind = svgElement("g", this.hidden);
    this.front = svgElement("g", { role: "none" });
    this.column = timeColumn(this.times, this.bottom);
    this.here = svgElement("line", { x1: 0, x2: this.width, y1: 0, y2: 0, class: "here", ...this.hidden });
    this.svg = svgElement("svg", { width: this.width, height: this.bottom, style: this.sized(this.bottom),
      role: "listbox", tabindex: 0, "aria-label": `${this.name}: moments`,
      onkeydown: (event) => this.onKey(event) }, svgElement("g", this.hidden, rules), this.behind, this.front,
      this.here, this.differenceMark(), this.column.el);
    this.scroller = element("div", { class: this.bottom < 400 ? "mq-space short" : "mq-space", tabindex: -1 },
      element("div", { class: "lanes", style: `width:${this.width}px` }, heads), this.svg);
    this.scroller.addEventListener("scroll", () => {
      this.column.follow(this.scroller.scrollLeft);
      requestAnimationFrame(() => this.attach());
    });
  }

  begin() {
    const legend = element("p", { class: "mq-note" },
      `${Object.values(LOOK_WORDS).join("  ")}  ╲▶ a frame, sent and arriving  ▯ a request under way  ┆ a held pull`);
    this.el = element("div", {}, element("style", {}, SPACE_TIME_STYLE), this.scroller, legend);
    new ResizeObserver(() => this.fit()).observe(this.el);
  }

  // Drawn again with lanes of another width, at the same step and with the same focus.
  fit() {
    const room = this.scroller.clientWidth; // without its scroll bar
    const lane = laneWidth(room, this.lanes.length);
    if (!room || lane === this.lane) return;
    const [before, hadFocus] = [this.scroller, document.activeElement === this.svg];
    const roof = before.scrollTop;
    this.lane = lane;
    this.layOut();
    this.makeLanes();
    before.replaceWith(this.scroller);
    this.scroller.scrollTop = roof;
    if (this.step !== null) this.show(this.step);
    if (hadFocus) this.svg.focus();
  }

  words(moment) {
    const [, ms, lane, target, , text] = moment;
    return `${afterText(ms)}, ${this.lanes[lane]}${target < 0 ? "" : ` to ${this.lanes[target]}`}: ${this.texts[text]}`;
  }

  // The number of moments up to a step.
  upTo(step) {
    let [low, high] = [0, this.moments.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.moments[middle][0] <= step) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The height of a step: its own row, or a little after the row before it.
  height(step) {
    const index = this.upTo(step) - 1;
    if (index < 0) return TOP + 4;
    return this.moments[index][0] === step ? this.places[index] : this.places[index] + ROW * 0.4;
  }

  drawBar(index) {
    const [lane, kind, , , , , text] = this.bars[index];
    const [top, end] = this.spans[index];
    const side = kind === "held" ? 3 : -8;
    return svgElement("rect", { x: this.x(lane) + side, y: top, width: 5, height: end - top, class: `bar ${kind}` },
      svgElement("title", {}, this.texts[text]));
  }

  // Notebooks shrink every drawing to the page; this one scrolls.
  sized(tall) {
    return `max-width:none;width:${this.width}px;height:${tall}px`;
  }

  differenceMark() {
    if (this.marked === null) return null;
    const y = this.places[this.marked] - 12;
    return svgElement("g", this.hidden, svgElement("line", { x1: 0, x2: this.width, y1: y, y2: y, class: "marked" }),
      svgElement("text", { x: this.width - 4, y: y - 3, "text-anchor": "end", "font-weight": "bold", style: HALO },
        "≠ first difference"));
  }

  // Only what can be seen is in the page, however long the story is.
  attach() {
    const [roof, floor] = [this.scroller.scrollTop - MARGIN,
      this.scroller.scrollTop + (this.scroller.clientHeight || 440) + MARGIN];
    const [first, end] = [firstAbove(this.places, roof), firstAbove(this.places, floor)];
    const key = `${first} ${end}`;
    if (key === this.attached) return;
    this.attached = key;
    const visible = [];
    for (let index = first; index < end; index += 1) {
      this.groups[index] ||= this.drawMoment(this.moments[index], index, this.places[index]);
      this.groups[index].classList.toggle("future", index >= this.shown);
      visible.push(this.groups[index]);
    }
    this.front.replaceChildren(...visible);
    this.column.draw(roof, floor);
    const nearBars = this.bars.map((_, index) => index).filter((index) => this.spans[index][1] > roof && this.spans[index][0] < floor);
    this.behind.replaceChildren(...this.side.filter(([y]) => y > roof && y < floor).map(([, nodes]) => nodes()).flat(),
      ...nearBars.map((index) => (this.drawnBars[index] ||= this.drawBar(index))));
  }

  drawMoment(moment, index, y) {
    const [, , lane, target, , textNumber, lookNumber, momentLinks, sent] = moment;
    const isFrame = target >= 0 && target !== lane;
    const [look, text] = [isFrame ? "frame" : this.texts[lookNumber], this.texts[textNumber]];
    const parts = [];
    // A row has one moment, so its words may cross the lines of other lanes.
    let [left, right] = [this.x(lane) - 8, this.x(lane) + this.lane - 10];
    if (isFrame) {
      // A frame leaves before it arrives: at the row of the step that sent it, at least a little above.
      const top = Math.max(0, Math.min(sent.length ? this.height(sent[0]) : y - 10, y - 10), y - 3 * ROW);
      const [x1, x2] = [this.x(lane), this.x(target)];
      const back = x2 > x1 ? -8 : 8;
      [left, right] = [Math.min(x1, x2) + 3, Math.max(x1, x2) - 3];
      parts.push(svgElement("line", { x1, y1: top, x2, y2: y, class: "sign" }),
        svgElement("path", { d: `M${x2} ${y}l${back} -5v8z`, class: "sign" }),
        frameWords(text, left, right, y + 2, this.width));
    } else {
      parts.push(svgElement("path", { ...(SIGNS[look] || SIGNS.other)(this.x(lane), y), class: "sign" }),
        svgElement("text", { x: this.x(lane) + 12, y: y + 4, style: HALO }, shortened(text, this.width - this.x(lane) - 16)));
    }
    const group = svgElement("g", { class: `moment ${look}`, role: "option", id: `${this.prefix}-${index}`,
      "aria-label": this.words(moment), "aria-posinset": index + 1, "aria-setsize": this.moments.length,
      onclick: () => this.onMoment(index) },
      svgElement("title", {}, this.words(moment)),
      svgElement("rect", { x: left, y: y - 11, width: right - left, height: ROW - 2, rx: 3, class: "back" }), parts);
    this.links.add(group, momentLinks.map((number) => this.texts[number]));
    return group;
  }

  onKey(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || !this.moments.length) return;
    event.preventDefault();
    this.onMoment(Math.max(0, Math.min(this.moments.length - 1, this.shown - 1 + steps[event.key])));
  }

  // Everything up to a step has happened; the picture scrolls there.
  show(step) {
    this.step = step;
    const count = this.upTo(step);
    const before = this.shown;
    this.shown = count;
    const y = count ? this.places[count - 1] + 13 : TOP;
    this.here.setAttribute("transform", `translate(0 ${y})`);
    // 1. Scroll first, so that what is attached is what will be seen.
    const [visible, roof] = [this.scroller.clientHeight || 440, this.scroller.scrollTop];
    if (y < roof + 40 || y > roof + visible - 60) this.scroller.scrollTop = y - visible * 0.6;
    if (count) {
      const [left, right] = [this.x(this.moments[count - 1][2]) - 20, this.x(this.moments[count - 1][2]) + this.lane];
      if (left < this.scroller.scrollLeft) this.scroller.scrollLeft = left - 20;
      else if (right > this.scroller.scrollLeft + this.scroller.clientWidth) this.scroller.scrollLeft = right - this.scroller.clientWidth;
    }
    this.attach();
    // 2. What lies between the old place and the new one has happened now, or not yet.
    for (let index = Math.min(before, count); index < Math.max(before, count); index += 1) {
      if (this.groups[index]) this.groups[index].classList.toggle("future", index >= count);
    }
    if (this.groups[before - 1]) this.groups[before - 1].removeAttribute("aria-selected");
    if (this.groups[count - 1]) {
      this.groups[count - 1].setAttribute("aria-selected", "true");
      this.svg.setAttribute("aria-activedescendant", `${this.prefix}-${count - 1}`);
    }
  }

  // What has begun and not ended at a step, as texts.
  underWay(step) {
    return this.bars.filter(([, , begin, , end]) => begin <= step && (end < 0 || end > step)).map((bar) => this.texts[bar[6]]);
  }
}

export function spaceTime(options) {
  return new SpaceTime(options);
}

// In the middle of its arrow; from the arrow's left end on, across other lanes, where it is longer.
function frameWords(text, left, right, y, width) {
  const fits = text.length * LETTER <= right - left - 20;
  const place = fits ? { x: (left + right) / 2, "text-anchor": "middle" } : { x: left + 12 };
  return svgElement("text", { ...place, y, style: HALO }, shortened(text, width - left - 16));
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

// The row of each moment; the lines of long pauses: [height, () => elements]; the words next to both: [height, text].
export function laidOut(moments, width) {
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
export function firstAbove(places, limit) {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

const HALO = "paint-order:stroke;stroke:var(--mq-paper);stroke-width:3px";

export function shortened(text, pixels) {
  const letters = Math.max(4, Math.floor(pixels / LETTER));
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}
