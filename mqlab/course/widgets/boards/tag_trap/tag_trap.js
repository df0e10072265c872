// The tag-trap board: a lane for each order through the broker's filter and the client's, and the popular picture of it.
import { checkControl, choiceControl, textControl } from "../../frame/page/controls.js";
import { counted } from "../../frame/page/counted.js";
import { afterText, durationText } from "../../frame/page/durations.js";
import { element, svgElement } from "../../frame/page/element.js";
import { moreSettings, onceChanged, toTry } from "../../frame/page/settings.js";
import { named } from "../../frame/page/named.js";
import { goTo, slider } from "../../frame/page/slider.js";

const STYLE = `
.tt-block { margin: 6px 0 2px; }
.tt-lanes { width: 100%; display: block; }
.tt-lanes text { font-size: 12px; fill: var(--mq-ink); paint-order: stroke; stroke: var(--mq-paper); stroke-width: 3px; }
.tt-lanes .tt-head { font-size: 11px; fill: var(--mq-muted); }
.tt-lanes .tt-gate { stroke: var(--mq-5); stroke-width: 5; opacity: 0.45; }
.tt-lanes .tt-way { stroke: var(--mq-1); stroke-width: 2; fill: none; }
.tt-lanes .tt-claim { stroke: var(--mq-3); stroke-width: 2; fill: none; stroke-dasharray: 4 3; }
.tt-lanes .tt-row { cursor: pointer; fill: transparent; }
.tt-lanes .tt-row.here { fill: var(--mq-light); stroke: var(--mq-focus); stroke-width: 2; }
.tt-scroll { overflow-x: auto; }
.tt-result { font-weight: 600; margin: 4px 0; }
`;
const NOBODY = "nobody";
const DELIVERED = "delivered";
const CUT_BY_BROKER = "dropped by the broker";
const CUT_BY_CLIENT = "dropped by the client";
const [HEAD, LANE] = [34, 24];
const NARROW_TAG = 9;

const ORDER = "message tag code queue offset group owner filter whose outcome moved claim".split(" ");
const MEMBER = "name group expression version queues received".split(" ");
const BEAT = "at member group version kept".split(" ");

export function unfolded(run) {
  return { ...run, lanes: run.lanes.map((each) => named(ORDER, each)),
    members: run.members.map((each) => named(MEMBER, each)),
    heartbeats: run.heartbeats.map((each) => named(BEAT, each)) };
}

function tableOf(caption, head, rows) {
  return element("div", {}, element("div", { class: "mq-note" }, caption), element("div", { class: "tt-scroll" },
    element("table", { "aria-label": caption },
    element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell) => element("td", {}, String(cell)))))))));
}

function drawClaim(svg, lane, y, gates, left) {
  const end = lane.claim ? gates.listener : gates.broker;
  svg.append(svgElement("path", { class: "tt-claim", d: `M${left - 6} ${y + 7} H${end}` }),
    svgElement("circle", { cx: end, cy: y + 7, r: 3, fill: lane.claim ? "var(--mq-3)" : "var(--mq-paper)",
      stroke: "var(--mq-3)" }));
  if (lane.claim !== (lane.outcome === DELIVERED)) {
    svg.append(svgElement("text", { x: gates.offset - 22, y: y + 5, style: "font-weight:700;font-size:15px" }, "≠"));
  }
}

class TagTrap {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makeControls();
    this.makePanels();
  }

  readData() {
    this.kernel = this.model.get("kernel") !== false;
    this.run = unfolded(this.model.get("data").now);
    this.rows = [];
    this.asking = 0;
  }

  makeControls() {
    this.settings = settingControls(this.kernel, this.recorded(), this.run.settings, (wish) => this.play(wish));
    this.compare = checkControl({ label: "Show what the popular picture says", value: this.model.get("compare"),
      onValue: (on) => { this.model.set("compare", on); this.model.save_changes(); } });
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  }

  makePanels() {
    this.result = element("p", { class: "tt-result", "aria-live": "polite" });
    this.claimed = element("p", { class: "mq-note", "aria-live": "polite" });
    this.members = element("div");
    this.blocks = element("div");
    this.order = slider({ label: "Order", min: 1, max: Math.max(1, this.run.lanes.length),
      value: this.model.get("lane"),
      text: (number) => this.describe(number), onValue: (number) => this.go(number) });
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.beats = element("div");
    this.el.append(element("style", {}, STYLE),
      toTry("look at the orders that nobody received; then choose a group for each: who receives them now?"), this.settings.el,
      element("div", { class: "mq-row" }, this.compare.el), this.problem, this.result,
      this.claimed, this.members, this.blocks, element("div", { class: "mq-row" }, this.order.el), this.status,
      element("details", {}, element("summary", {}, "Heartbeats before the orders"), this.beats));
  }

  begin() {
    this.model.on("change:lane", () => this.follow());
    this.model.on("change:compare", () => this.drawAll());
    this.model.on("change:data", () => this.showRun(unfolded(this.model.get("data").now)));
    const sizes = new ResizeObserver(() => this.draw(this.model.get("compare")));
    sizes.observe(this.blocks);
    this.showRun(this.run);
    return () => sizes.disconnect();
  }

  recorded() {
    return this.model.get("data").recorded;
  }

  async play(wish) {
    this.asking += 1;
    const mine = this.asking;
    const known = [this.model.get("data").now, ...this.recorded()].find((each) => JSON.stringify(each.settings) === JSON.stringify(wish));
    this.problem.hidden = true;
    try {
      if (!this.kernel && !known) throw new Error("This page has no run with these settings: run the cell to play it.");
      if (this.kernel) this.status.textContent = "Playing…";
      const next = this.kernel ? await this.model.ask("play", wish) : known;
      if (mine === this.asking) this.showRun(unfolded(next));
    } catch (error) {
      if (mine !== this.asking) return;
      this.problem.textContent = error.message;
      this.problem.hidden = false;
      this.status.textContent = this.describe(this.model.get("lane"));
    }
  }

  showRun(next) {
    this.run = next;
    this.settings.put(this.run.settings);
    this.order.input.max = Math.max(1, this.run.lanes.length);
    const messages = [...new Set(this.run.lanes.map((lane) => lane.message))];
    this.result.textContent = `${counted(messages.length, "order")}. ` +
      this.run.members.map((each) => `${each.name} received ${each.received}`).join(", ") +
      `. Nobody received ${this.without(messages, (lane) => lane.outcome === DELIVERED)}. Lag in monitoring: ${this.run.lag}.`;
    this.listBeats();
    this.drawAll();
    this.go(Math.min(this.model.get("lane"), this.run.lanes.length));
  }

  without(messages, gets) {
    const got = new Set(this.run.lanes.filter(gets).map((lane) => lane.message));
    return messages.filter((message) => !got.has(message)).length;
  }

  drawAll() {
    const on = this.model.get("compare");
    this.compare.put(on);
    const messages = [...new Set(this.run.lanes.map((lane) => lane.message))];
    const wrong = this.run.lanes.filter((lane) => lane.claim !== (lane.outcome === DELIVERED)).length;
    this.claimed.textContent = on ? `The popular picture: whoever owns a queue gets what its own tags name, so nobody ` +
      `receives ${this.without(messages, (lane) => lane.claim)}. Dashed lines show it; it differs (≠) on ` +
      `${wrong} of ${this.run.lanes.length} lanes.` : "";
    this.claimed.hidden = !on;
    this.listMembers(on);
    this.draw(on);
  }

  listMembers(on) {
    const head = ["member", "group", "tags", "version", "the broker keeps", "queues", "received",
      ...(on ? ["the picture says"] : [])];
    const caption = "Members. A version is the member's clock when it last subscribed or rebalanced. After a join " +
      "either member's can be the higher.";
    this.members.replaceChildren(tableOf(caption,
      head, this.run.members.map((each) => [each.name, each.group, each.expression, afterText(each.version),
        this.run.kept[each.group].whose === each.name ? "✓ this one" : "–", each.queues.join(", "), each.received,
        ...(on ? [this.run.lanes.filter((lane) => lane.owner === each.name && lane.claim).length] : [])])));
  }

  listBeats() {
    const rowsOf = this.run.heartbeats.map((beat) => [afterText(beat.at), beat.member, beat.group,
      afterText(beat.version),
      beat.kept === beat.member ? `${beat.kept}'s` : `${beat.kept}'s: its version is higher`]);
    this.beats.replaceChildren(tableOf("A heartbeat with a lower or equal version changes nothing",
      ["arrived", "from", "group", "version in it", "the broker keeps"], rowsOf));
  }

  go(number) {
    goTo({ model: this.model, name: "lane", number, last: this.run.lanes.length, follow: () => this.follow() });
  }

  follow() {
    const here = Math.min(this.model.get("lane"), this.run.lanes.length);
    this.order.put(here);
    this.status.textContent = this.describe(here);
    this.rows.forEach((row, at) => row.classList.toggle("here", at === here - 1));
  }

  codesOf(filter) {
    return (this.run.codes[filter] || []).join(", ") || (filter === "*" ? "all" : "none");
  }

  describe(number) {
    const lane = this.run.lanes[Math.min(number, this.run.lanes.length) - 1];
    if (!lane) return "No order was stored.";
    const own = this.run.members.find((each) => each.name === lane.owner)?.expression;
    const words = [`Order ${number} of ${this.run.lanes.length}, ${lane.message} in group ${lane.group}: stored in queue ` +
      `${lane.queue} at offset ${lane.offset}, with the hash code of ${lane.tag}, ${lane.code}. ${lane.owner} owns the queue.`];
    if (lane.filter === null) words.push("No pull has passed it.");
    else {
      const whose = this.run.settings.post_subscription_when_pull ? `the text that ${lane.owner} sent with its pull`
        : `the subscription of ${lane.whose}`;
      words.push(`The broker filters by ${lane.filter} (codes ${this.codesOf(lane.filter)}), ${whose}: ` +
        (lane.outcome === CUT_BY_BROKER ? "it drops the order." : "the order passes."));
      if (lane.outcome !== CUT_BY_BROKER) {
        words.push(`${lane.owner} compares the text with its own tags (${own}): ` +
          (lane.outcome === CUT_BY_CLIENT ? "the client drops it." : "delivered."));
      }
    }
    words.push(lane.moved === null ? "The group's offset is not past it."
      : `The group's offset moved past it ${durationText(lane.moved)} after it was stored.`);
    if (this.model.get("compare")) {
      words.push(`The popular picture says ${lane.claim ? "delivered" : "dropped"}` +
        (lane.claim === (lane.outcome === DELIVERED) ? ", as it happened." : ": that is not what happened."));
    }
    return words.join(" ");
  }

  draw(on) {
    this.rows = [];
    const width = Math.max(280, this.blocks.clientWidth || 640);
    const groups = [];
    this.run.lanes.forEach((lane, at) => {
      const last = groups.at(-1);
      if (last && last.owner === lane.owner && last.group === lane.group) last.lanes.push([lane, at]);
      else groups.push({ owner: lane.owner, group: lane.group, lanes: [[lane, at]] });
    });
    this.blocks.replaceChildren(...groups.map((block) => this.drawBlock(block, width, on)));
    this.follow();
  }

  drawBlock({ owner, group, lanes }, width, on) {
    const queues = [...new Set(lanes.map(([lane]) => lane.queue))].join(", ");
    const { filter, whose } = lanes[0][0];
    const by = this.run.settings.post_subscription_when_pull ? "the text in its pull" : `the subscription of ${whose}`;
    const words = `${owner} (group ${group}) owns queues ${queues}. The broker filters its pulls by ${filter}: ${by}.`;
    const [left, right] = [width < 500 ? 96 : 150, width - 18];
    const part = (share) => left + share * (right - left);
    const gates = { broker: part(0.16), client: part(0.42), listener: part(0.66), offset: right };
    const height = HEAD + lanes.length * LANE + 4;
    const svg = svgElement("svg", { class: "tt-lanes", viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `${words} ${lanes.map(([lane]) => `${lane.message}: ${lane.outcome}`).join("; ")}` });
    const heads = [["queue, tag", "", 4, "start"], ["broker:", "hash code", gates.broker, "middle"],
      ["client:", "text", gates.client, "middle"], ["listener", "", gates.listener, "middle"],
      ["offset", "moved", right + 14, "end"]];
    for (const [first, second, x, anchor] of heads) {
      svg.append(svgElement("text", { x, y: 12, class: "tt-head", "text-anchor": anchor }, first),
        svgElement("text", { x, y: 25, class: "tt-head", "text-anchor": anchor }, second));
    }
    for (const gate of [gates.broker, gates.client]) {
      svg.append(svgElement("line", { class: "tt-gate", x1: gate, x2: gate, y1: HEAD - 4, y2: height - 2 }));
    }
    lanes.forEach(([lane, at], number) => this.drawLane(svg, lane, at, HEAD + number * LANE + LANE / 2, gates, left,
      width, on));
    return element("div", { class: "tt-block" }, element("div", {}, words), svg);
  }

  drawLane(svg, lane, at, y, gates, left, width, on) {
    const row = svgElement("rect", { class: "tt-row", x: 1, y: y - LANE / 2 + 1, width: width - 2, height: LANE - 2,
      rx: 3 });
    this.rows[at] = row;
    const ends = { [CUT_BY_BROKER]: gates.broker, [CUT_BY_CLIENT]: gates.client, [DELIVERED]: gates.listener };
    const end = ends[lane.outcome] ?? left;
    const limit = width < 500 ? NARROW_TAG : 18;
    const tag = lane.tag.length > limit ? `${lane.tag.slice(0, limit - 1)}…` : lane.tag;
    svg.append(row, svgElement("text", { x: 4, y: y + 4 }, `${lane.queue}  ${tag}`));
    svg.append(svgElement("path", { class: "tt-way", d: `M${left - 6} ${y} H${end}` }));
    for (const gate of [gates.broker, gates.client]) {
      if (gate < end) svg.append(svgElement("circle", { cx: gate, cy: y, r: 4, fill: "var(--mq-1)" }));
    }
    if (lane.outcome === DELIVERED) {
      svg.append(svgElement("path", { d: `M${end - 4} ${y} l4 5 l7 -11`, fill: "none", stroke: "var(--mq-2)",
        "stroke-width": 3 }));
    } else {
      svg.append(svgElement("path", { d: `M${end - 5} ${y - 5} l10 10 m0 -10 l-10 10`, stroke: "var(--mq-4)",
        "stroke-width": 3 }));
    }
    if (on) drawClaim(svg, lane, y, gates, left);
    // Where it is narrow, the gate over the cross says who dropped it.
    svg.append(svgElement("text", { x: end + 13, y: y + 4 }, width < 500 ? lane.outcome.split(" ")[0] : lane.outcome));
    const place = gates.offset;
    svg.append(lane.moved === null ? svgElement("circle", { cx: place, cy: y, r: 5, fill: "none",
      stroke: "var(--mq-5)" })
      : svgElement("path", { d: `M${place - 5} ${y - 6} l10 6 l-10 6 z`, fill: "var(--mq-6)" }));
    const area = svgElement("rect", { x: 0, y: y - LANE / 2, width, height: LANE, fill: "transparent",
      style: "cursor:pointer" });
    area.addEventListener("click", () => this.go(at + 1));
    svg.append(area);
  }
}

function render(context) {
  return new TagTrap(context).begin();
}

// The settings in the order of Python's, so that a recorded run is found by its text.
function settingControls(kernel, recorded, begin, onWish) {
  const values = (name) => [...new Set([begin, ...recorded.map((each) => each.settings)].map((each) => each[name]))];
  const pairs = [...new Set([begin, ...recorded.map((each) => each.settings)]
    .map((each) => JSON.stringify([each.billing, each.shipping, each.sent])))];
  const pairText = ([billing, shipping]) => `billing ${billing}, shipping ${shipping}`;
  const pair = choiceControl({ label: "Subscribed", choices: pairs.map((each) => [each, pairText(JSON.parse(each))]),
    value: pairs[0] });
  const billing = textControl({ label: "billing subscribes to" });
  const shipping = textControl({ label: "shipping subscribes to" });
  const sent = textControl({ label: "Tags of the orders (empty: those subscribed)" });
  const lastWords = { [NOBODY]: "nothing more", billing: "billing subscribes again",
    shipping: "shipping subscribes again" };
  const last = choiceControl({ label: "After both have joined",
    choices: Object.entries(lastWords).filter(([name]) => kernel || values("last").includes(name)) });
  const ahead = choiceControl({ label: "Clock a minute ahead",
    choices: [NOBODY, "billing", "shipping"].filter((name) => kernel || values("ahead").includes(name)) });
  const groups = choiceControl({ label: "Groups",
    choices: [[1, "one for both"], [2, "one for each"]].filter(([count]) => kernel || values("groups").includes(count)) });
  const post = checkControl({ label: "post_subscription_when_pull" });
  const row = (controls) => element("div", { class: "mq-row" }, controls.map((each) => each.el));
  const folded = [...(kernel ? [sent] : []), last, post, ...(kernel || values("ahead").length > 1 ? [ahead] : [])];
  const el = element("div", { role: "group", "aria-label": "Settings" },
    row([...(kernel ? [billing, shipping] : [pair]), groups]), moreSettings(row(folded)));
  if (!kernel) {
    el.append(element("span", { class: "mq-note" }, recorded.length
      ? `Recorded in this page: ${recorded.length} runs. Other tags, and a clock that is ahead, need the kernel.`
      : "This page has one run: run the cell to play others."));
  }

  function wish() {
    const [chosenBilling, chosenShipping, chosenSent] = kernel
      ? [billing.value(), shipping.value(), sent.value().split(",").map((tag) => tag.trim()).filter(Boolean)]
      : JSON.parse(pair.value());
    return { billing: chosenBilling, shipping: chosenShipping, sent: chosenSent, last: last.value(),
      ahead: ahead.value(),
      post_subscription_when_pull: post.value(), groups: groups.value() };
  }
  const changed = onceChanged(el, wish, onWish);

  function put(set) {
    pair.put(JSON.stringify([set.billing, set.shipping, set.sent]));
    billing.put(set.billing);
    shipping.put(set.shipping);
    sent.put(set.sent.join(", "));
    last.put(set.last);
    ahead.put(set.ahead);
    groups.put(set.groups);
    post.put(set.post_subscription_when_pull);
    changed.known();
  }
  return { el, put };
}

export default { render };
