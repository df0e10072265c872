// The offset strip: every message of one queue, the ProcessQueue over it, and the offset in memory, at the broker and in
// the file, after each action; a click ends the call of a message.
import { buttonControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { counted } from "../../frame/page/counted.js";
import { durationText } from "../../frame/page/durations.js";
import { element } from "../../frame/page/element.js";
import { inTurn } from "../../frame/page/in_turn.js";
import { roving } from "../../frame/page/roving.js";
import { inKnobWords, moreSettings, toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.os-strip { display: flex; flex-wrap: wrap; gap: 3px; align-items: stretch; margin: 4px 0; }
.mqlab-board .os-cell { min-width: 40px; min-height: 40px; padding: 1px 3px; border-radius: 4px; font-size: 11px;
  line-height: 1.25; text-align: center; border: 1px solid var(--mq-rule); background: var(--mq-paper); }
.mqlab-board button.os-cell { border: 2px solid var(--mq-focus); background: var(--mq-card); cursor: pointer; }
.mqlab-board .os-cached { border: 2px dashed var(--mq-muted); }
.mqlab-board .os-stored { color: var(--mq-muted); }
.mqlab-board .os-span { box-shadow: 0 4px 0 -1px var(--mq-3); }
.mqlab-board .os-cell.os-again, .mqlab-board button.os-cell.os-again { background: var(--mq-light); }
.os-cell b { display: block; font-size: 14px; line-height: 1.1; }
.os-mark { align-self: stretch; font-size: 11px; line-height: 1.25; border-left: 4px solid var(--mq-ink); padding: 1px 4px;
  background: var(--mq-card); }
.os-mark.os-broker { border-left-style: double; } .os-mark.os-file { border-left-style: dotted; }
.os-light { font-weight: 600; }
.os-steps { max-height: 240px; overflow: auto; }
.os-steps tr[aria-selected="true"] td { background: var(--mq-light); font-weight: 600; }
.os-steps tr { cursor: pointer; }
.os-code { white-space: pre; overflow-x: auto; }
.mqlab-board fieldset { border: 1px solid var(--mq-rule); border-radius: 6px; margin: 4px 0; padding: 2px 8px; min-width: 0; }
`;
const LONGEST_UNPACKING = 500; // ms; an action that changes nothing gives no new data
const WAITS = ["100ms", "1s", "5s", "30s", "5m", "20m"];
const STAGES = { stored: ["·", "stored, not pulled"], cached: ["▭", "cached, waits for a thread"],
  running: ["▶", "in a call"], finished: ["✓", "finished"], earlier: ["✓", "finished before the crash, not read again"],
  "sent back": ["↷", "sent back to the retry topic after the consume timeout"] };
const PLACES = [["memory", "in memory", "The client's memory"], ["broker", "broker", "The broker's table"],
  ["file", "file", "consumerOffset.json"]];

function panel(title, wide, ...inside) {
  return element("section", { class: "mq-panel", "aria-label": title,
  style: wide ? "flex-basis:100%" : null }, element("h4", {}, title), inside);
}

export function dueText(ms) {
  return ms === null ? "nothing to write" : `in ${durationText(ms)}`;
}

function marks(now, offset) {
  return PLACES.filter(([place]) => now[place] === offset).map(([place, short]) =>
    element("span", { class: `os-mark os-${place}` }, `▸ ${short}`, element("br"), String(offset)));
}

class OffsetStrip {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makeControls();
    this.makePanels();
    this.takeTurns();
    this.begin();
  }

  readData() {
    this.kernel = this.model.get("kernel") !== false;
    this.focusWanted = null; // the message whose button, or the next one's, gets the focus back after a redraw
    this.asking = null;
  }

  makeControls() {
    const waiting = choiceControl({ label: "Time", value: "5s", choices: WAITS });
    this.persist = buttonControl("To the client's next persist", () => this.act("persist"));
    this.save = buttonControl("To the broker's next file", () => this.act("save"));
    this.finishBut = buttonControl("Finish all but the first", () => this.act("finish_all", () => {
      const first = this.picture().first_cached;
      return { but: first === null ? [] : [first] };
    }), "All calls end, and those that come in their place; only the call of the smallest cached message continues");
    this.finishAll = buttonControl("Finish all", () => this.act("finish_all"));
    const crashes = [["client", "Crash the client"], ["broker", "Crash the broker"], ["both",
      "Crash both"]].map(([who, label]) =>
      buttonControl(label, () => this.act("crash", () => ({ who })), "kill -9, and a new process at once"));
    this.undo = buttonControl("Undo", () => this.ask("undo"));
    const actions = [this.finishBut, this.finishAll, waiting, buttonControl("Wait",
      () => this.act("wait", () => ({ duration: waiting.value() }))),
      this.persist, this.save, ...crashes, this.undo];
    const limits = this.data().limits;
    const number = (label, name) => numberControl({ label, min: limits[name][0], max: limits[name][1], step: 1 });
    this.set = { threads: number("Threads", "threads"), batch: number("Batch", "batch"), messages: number("Messages",
      "messages"),
      span: number("Span limit", "span"), count: number("Count limit", "count"),
      persist: textControl({ label: "Client persists every" }),
      broker_persist: textControl({ label: "Broker writes every" }) };
    [this.set.persist, this.set.broker_persist].forEach((each) => (each.input.size = 4));
    const anew = buttonControl("Start over", () => {
      const wanted = Object.fromEntries(Object.entries(this.set).map(([name, control]) => [name, control.value()]));
      this.ask("change", () => wanted);
    });
    const settings = element("div", { class: "mq-row", role: "group", "aria-label": "Settings" },
      [...Object.values(this.set), anew].map((each) => each.el));
    this.controls = element("div", {},
      toTry("finish all but the first, go to the client's next persist, then crash the client: which messages come again?"),
      element("div", { class: "mq-row", role: "group", "aria-label": "Actions" }, actions.map((each) => each.el)),
      moreSettings(settings));
    settings.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.tagName === "INPUT") anew.input.click();
    });
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
    this.position = slider({ label: "Step", max: this.data().steps.length - 1, value: this.at(),
      text: (step) => this.sentence(step), onValue: (step) => this.goTo(step) });
    this.status = element("div", { role: "status", "aria-live": "polite" });
  }

  makePanels() {
    this.strip = element("div", { class: "os-strip" });
    this.settle = roving(this.strip);
    this.known = element("div");
    this.flow = element("div");
    this.again = element("div");
    this.steps = element("div", { class: "os-steps" });
    this.code = element("pre", { class: "os-code", tabindex: 0, "aria-label": "The steps as Python" });
    this.el.append(element("style", {}, STYLE));
    if (this.kernel) this.el.append(this.controls);
    this.el.append(element("div", { class: "mq-row" }, this.position.el), this.problem, this.status,
      element("div", { class: "mq-panels" },
        panel("One queue, message by message", true, this.strip,
          element("p", { class: "mq-note" }, "▶ in a call of the listener (click: it ends)  ▭ cached, waits for a thread  " +
            "· stored, not pulled  ✓ finished  ↷ sent back  ↻ finished, and read again.  Underlined: from the first to the " +
            "last message still cached, which is what the span measures.")),
        panel("Where the next offset is known", false, this.known), panel("Flow control", false, this.flow),
        panel("What comes again", false, this.again), panel("Steps", false, this.steps)),
      element("details", {}, element("summary", {}, "The steps as Python, to paste into a cell"), this.code),
      this.kernel ? "" : element("p", { class: "mq-note" },
      "Without a kernel this page has the steps that were done when its " +
        "cell ran; run the cell to finish messages and to crash."));
  }

  takeTurns() {
    this.ask = inTurn(async (name, args) => {
      this.problem.hidden = true;
      // Position, data and answer arrive in any order. Old data at a new position would show another step.
      const renewed = new Promise((done) => (this.asking = done));
      try {
        await this.model.ask(name, args ? args() : {}); // read when it is asked, not when the button was pressed
        await Promise.race([renewed, new Promise((done) => setTimeout(done, LONGEST_UNPACKING))]);
      } catch (error) {
        this.problem.textContent = inKnobWords(error.message, this.set);
        this.problem.hidden = false;
      }
      this.asking = null;
      this.draw();
    });
  }

  begin() {
    this.model.on("change:data", () => {
      if (this.asking) this.asking();
      this.draw();
    });
    this.model.on("change:position", () => this.draw());
    this.draw();
  }

  data() {
    return this.model.get("data");
  }

  at() {
    return Math.min(Math.max(this.model.get("position"), 0), this.data().steps.length - 1);
  }

  picture() {
    return this.data().steps[this.at()].picture;
  }

 // while the kernel is asked: what is called when new data are here
  act(verb, args) {
    return this.ask("do", () => ({ verb, arguments: args ? args() : {} }));
  }

  goTo(step) {
    this.model.set("position", step);
    this.model.save_changes();
    this.draw();
  }

  sentence(step) {
    return `step ${step} of ${this.data().steps.length - 1}: ${this.data().steps[Math.min(step, this.data().steps.length - 1)].words}`;
  }

  draw() {
    if (this.asking) return;
    const now = this.picture();
    const last = this.at() === this.data().steps.length - 1;
    this.position.input.max = this.data().steps.length - 1;
    this.position.input.disabled = this.data().steps.length === 1;
    this.position.put(this.at());
    this.status.replaceChildren(element("b", {}, `Step ${this.sentence(this.at()).slice(5)}.`),
      last || !this.kernel ? "" : " An action here drops the later steps.");
    this.fillSettings();
    this.persist.input.textContent = `To the client's next persist (${dueText(now.persist_in_ms)})`;
    this.save.input.textContent = `To the broker's next file (${dueText(now.save_in_ms)})`;
    this.save.off(now.save_in_ms === null);
    this.persist.off(now.persist_in_ms === null);
    this.finishAll.off(now.batches.length === 0);
    this.finishBut.off(!now.batches.some((batch) => !batch.includes(now.first_cached)));
    this.undo.off(this.at() === 0);
    this.drawStrip(now);
    this.drawKnown(now);
    this.drawFlow(now);
    this.drawAgain(now);
    this.drawSteps();
    this.code.textContent = this.data().code[this.at()];
  }

  fillSettings() {
    for (const [name, control] of Object.entries(this.set)) {
      const value = this.data().settings[name] ?? `${this.data().settings[`${name}_ms`]}ms`;
      control.put(typeof value === "string" ? value.replace(/000ms$/, "s") : value);
    }
  }

  drawStrip(now) {
    const nodes = [];
    const batchOf = new Map(now.batches.flatMap((batch) => batch.map((offset) => [offset, batch])));
    now.stages.forEach((stage, offset) => {
      nodes.push(...marks(now, offset), this.cell(now, stage, offset, batchOf.get(offset)));
    });
    nodes.push(...marks(now, now.stages.length));
    // One action draws several times: its steps and its position come one after the other.
    if (this.strip.contains(document.activeElement)) this.focusWanted ??= Number(document.activeElement.dataset.offset);
    this.strip.replaceChildren(...nodes);
    this.settle();
    if (this.focusWanted === null) return;
    const buttons = [...this.strip.querySelectorAll("button")];
    const next = buttons.find((button) => Number(button.dataset.offset) >= this.focusWanted) ?? buttons.at(-1);
    this.focusWanted = null;
    if (!next) return;
    buttons.forEach((button) => (button.tabIndex = button === next ? 0 : -1));
    next.focus();
  }

  cell(now, stage, offset, batch) {
    const [symbol, meaning] = STAGES[stage];
    const comes = now.again.includes(offset);
    const inSpan = now.first_cached !== null && offset >= now.first_cached && offset <= now.last_cached;
    const words = `message ${offset}: ${meaning}${comes ? ", finished before the crash: comes again" : ""}`;
    const classes = `os-cell os-${stage.replace(" ", "-")}${inSpan ? " os-span" : ""}${comes ? " os-again" : ""}`;
    const inside = [element("b", { "aria-hidden": "true" }, comes ? `${symbol}↻` : symbol), String(offset)];
    if (stage !== "running" || !this.kernel) {
      return element("span", { class: classes, role: "img", "aria-label": words, title: words }, inside);
    }
    const others = batch.length > 1 ? ` (the call has ${batch[0]} to ${batch.at(-1)})` : "";
    return element("button", { type: "button", class: classes, "data-offset": offset, title: `Finish ${words}${others}`,
      "aria-label": `Finish ${words}${others}`, onclick: () => {
        if (this.asking) return; // a second press before the answer would finish the message twice
        this.focusWanted = offset;
        this.act("finish", () => ({ messages: [offset] }));
      } }, inside);
  }

  drawKnown(now) {
    const rows = PLACES.map(([place, , name]) => element("tr", {}, element("th", { scope: "row" }, name),
      element("td", {}, now[place] === null ? "nothing" : String(now[place]))));
    this.known.replaceChildren(element("table", {}, element("tbody", {}, rows)),
      element("p", { class: "mq-note" }, `The next message to read. The client sends it ${dueText(now.persist_in_ms)}; ` +
        `the broker's file: ${dueText(now.save_in_ms)}.`));
  }

  drawFlow(now) {
    const set = this.data().settings;
    const rows = [["messages cached", now.count, set.count, "count"], ["MiB cached", now.size, set.size, "size"],
      ["span: last − first cached", now.span, set.span, "span"]].map(([name, value, limit, reason]) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, String(value)), element("td", {},
      `limit ${limit}`),
        element("td", {}, now.held_by === reason ? "■ over it" : "● within")));
    const first = now.first_cached === null ? "Nothing is cached." : `Cached: ${now.first_cached} to ${now.last_cached}, ${now.bytes} bytes.`;
    this.flow.replaceChildren(element("p", { class: "os-light" },
      now.held_by ? `■ Pulling waits: ${now.held_by} over its limit; asked again every 50 ms`
      : "● Pulling"), element("table", {}, element("tbody", {}, rows)),
      element("p", { class: "mq-note" }, `${first} Pulled up to ${now.pulled} of ${now.stages.length}.`));
  }

  drawAgain(now) {
    const count = now.again.length;
    this.again.replaceChildren(element("p", {}, now.life === 1 ? "The client has not crashed yet."
      : `The restarted client reads from ${now.first_read} on: ${counted(count, "message")} that ` +
        `${count === 1 ? "was" : "were"} finished ${count === 1 ? "comes" : "come"} again${count ? `: ${now.again.join(", ")}` : ""}.`));
  }

  drawSteps() {
    const rows = this.data().steps.map((step, number) => element("tr",
      { "aria-selected": number === this.at() ? "true" : "false",
      onclick: () => this.goTo(number) }, [number, step.words].map((text) => element("td", {}, String(text)))));
    this.steps.replaceChildren(element("table", {}, element("thead", {}, element("tr", {},
      ["step", "what happened"].map((name) => element("th", { scope: "col" }, name)))), element("tbody", {}, rows)));
  }
}

function render(context) {
  new OffsetStrip(context);
}

export default { render };
