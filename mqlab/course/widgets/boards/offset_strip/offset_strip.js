// The offset strip: every message of one queue, the ProcessQueue over it, and the offset in memory, at the broker and in
// the file, after each action; a click ends the call of a message.
import { buttonControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { durationText } from "../../frame/page/durations.js";
import { element } from "../../frame/page/element.js";
import { inTurn } from "../../frame/page/in_turn.js";
import { roving } from "../../frame/page/roving.js";
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

function render({ model, el }) {
  const kernel = model.get("kernel") !== false;
  const data = () => model.get("data");
  const at = () => Math.min(Math.max(model.get("position"), 0), data().steps.length - 1);
  const picture = () => data().steps[at()].picture;
  let focusWanted = null; // the message whose button, or the next one's, gets the focus back after a redraw
  let asking = null; // while the kernel is asked: what is called when new data are here

  // 1. Controls.
  const act = (verb, args) => ask("do", () => ({ verb, arguments: args ? args() : {} }));
  const waiting = choiceControl({ label: "Let pass", value: "5s", choices: WAITS });
  const persist = buttonControl("To the client's next persist", () => act("persist"));
  const save = buttonControl("To the broker's next file", () => act("save"));
  const finishBut = buttonControl("Finish all but the first", () => act("finish_all", () => {
    const first = picture().first_cached;
    return { but: first === null ? [] : [first] };
  }), "All calls end, and those that come in their place; only the call of the smallest cached message goes on");
  const finishAll = buttonControl("Finish all", () => act("finish_all"));
  const crashes = [["client", "Crash the client"], ["broker", "Crash the broker"], ["both", "Crash both"]].map(([who, label]) =>
    buttonControl(label, () => act("crash", () => ({ who })), "kill -9, and a new process at once"));
  const undo = buttonControl("Undo", () => ask("undo"));
  const actions = [finishBut, finishAll, waiting, buttonControl("Wait", () => act("wait", () => ({ duration: waiting.value() }))),
    persist, save, ...crashes, undo];
  const limits = data().limits;
  const number = (label, name) => numberControl({ label, min: limits[name][0], max: limits[name][1], step: 1 });
  const set = { threads: number("Threads", "threads"), batch: number("Batch", "batch"), messages: number("Messages", "messages"),
    span: number("Span limit", "span"), count: number("Count limit", "count"),
    persist: textControl({ label: "Client persists every" }), broker_persist: textControl({ label: "Broker writes every" }) };
  [set.persist, set.broker_persist].forEach((each) => (each.input.size = 4));
  const anew = buttonControl("Begin anew", () => {
    const wanted = Object.fromEntries(Object.entries(set).map(([name, control]) => [name, control.value()]));
    ask("change", () => wanted);
  });
  const controls = element("div", {},
    element("fieldset", {}, element("legend", {}, "Settings"),
      element("div", { class: "mq-row" }, [...Object.values(set), anew].map((each) => each.el))),
    element("div", { class: "mq-row", role: "group", "aria-label": "Actions" }, actions.map((each) => each.el)));
  controls.querySelector("fieldset").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.tagName === "INPUT") anew.input.click();
  });
  const problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  const position = slider({ label: "Step", max: data().steps.length - 1, value: at(), text: sentence, onValue: goTo });
  const status = element("div", { role: "status", "aria-live": "polite" });

  // 2. Panels.
  const panel = (title, wide, ...inside) => element("section", { class: "mq-panel", "aria-label": title,
    style: wide ? "flex-basis:100%" : null }, element("h4", {}, title), inside);
  const strip = element("div", { class: "os-strip" });
  const settle = roving(strip);
  const known = element("div");
  const flow = element("div");
  const again = element("div");
  const steps = element("div", { class: "os-steps" });
  const code = element("pre", { class: "os-code", tabindex: 0, "aria-label": "The steps as Python" });
  el.append(element("style", {}, STYLE));
  if (kernel) el.append(controls);
  el.append(element("div", { class: "mq-row" }, position.el), problem, status,
    element("div", { class: "mq-panels" },
      panel("One queue, message by message", true, strip,
        element("p", { class: "mq-note" }, "▶ in a call of the listener (click: it ends)  ▭ cached, waits for a thread  " +
          "· stored, not pulled  ✓ finished  ↷ sent back  ↻ finished, and read again.  Underlined: from the first to the " +
          "last message still cached, which is what the span measures.")),
      panel("Where the next offset is known", false, known), panel("Flow control", false, flow),
      panel("What comes again", false, again), panel("Steps", false, steps)),
    element("details", {}, element("summary", {}, "The steps as Python, to paste into a cell"), code),
    kernel ? "" : element("p", { class: "mq-note" }, "Without a kernel this page has the steps that were done when its " +
      "cell ran; run the cell to finish messages and to crash."));

  // 3. Asking the kernel.
  const ask = inTurn(async (name, args) => {
    problem.hidden = true;
    // Position, data and answer arrive in any order. Old data at a new position would show another step.
    const renewed = new Promise((done) => (asking = done));
    try {
      await model.ask(name, args ? args() : {}); // read when it is asked, not when the button was pressed
      await Promise.race([renewed, new Promise((done) => setTimeout(done, LONGEST_UNPACKING))]);
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
    asking = null;
    draw();
  });

  function goTo(step) {
    model.set("position", step);
    model.save_changes();
    draw();
  }

  // 4. Drawing, all of it from one step.
  function sentence(step) {
    return `step ${step} of ${data().steps.length - 1}: ${data().steps[Math.min(step, data().steps.length - 1)].words}`;
  }

  function draw() {
    if (asking) return;
    const now = picture();
    const last = at() === data().steps.length - 1;
    position.input.max = data().steps.length - 1;
    position.input.disabled = data().steps.length === 1;
    position.put(at());
    status.replaceChildren(element("b", {}, `Step ${sentence(at()).slice(5)}.`), last || !kernel ? "" : " An action here drops the later steps.");
    fillSettings();
    persist.input.textContent = `To the client's next persist (${dueText(now.persist_in_ms)})`;
    save.input.textContent = `To the broker's next file (${dueText(now.save_in_ms)})`;
    save.off(now.save_in_ms === null);
    persist.off(now.persist_in_ms === null);
    finishAll.off(now.batches.length === 0);
    finishBut.off(!now.batches.some((batch) => !batch.includes(now.first_cached)));
    undo.off(at() === 0);
    drawStrip(now);
    drawKnown(now);
    drawFlow(now);
    drawAgain(now);
    drawSteps();
    code.textContent = data().code[at()];
  }

  const dueText = (ms) => (ms === null ? "nothing to write" : `in ${durationText(ms)}`);

  function fillSettings() {
    for (const [name, control] of Object.entries(set)) {
      const value = data().settings[name] ?? `${data().settings[`${name}_ms`]}ms`;
      control.put(typeof value === "string" ? value.replace(/000ms$/, "s") : value);
    }
  }

  function drawStrip(now) {
    const nodes = [];
    const batchOf = new Map(now.batches.flatMap((batch) => batch.map((offset) => [offset, batch])));
    now.stages.forEach((stage, offset) => {
      nodes.push(...marks(now, offset), cell(now, stage, offset, batchOf.get(offset)));
    });
    nodes.push(...marks(now, now.stages.length));
    // One action draws several times: its steps and its position come one after the other.
    if (strip.contains(document.activeElement)) focusWanted ??= Number(document.activeElement.dataset.offset);
    strip.replaceChildren(...nodes);
    settle();
    if (focusWanted === null) return;
    const buttons = [...strip.querySelectorAll("button")];
    const next = buttons.find((button) => Number(button.dataset.offset) >= focusWanted) ?? buttons.at(-1);
    focusWanted = null;
    if (!next) return;
    buttons.forEach((button) => (button.tabIndex = button === next ? 0 : -1));
    next.focus();
  }

  function marks(now, offset) {
    return PLACES.filter(([place]) => now[place] === offset).map(([place, short]) =>
      element("span", { class: `os-mark os-${place}` }, `▸ ${short}`, element("br"), String(offset)));
  }

  function cell(now, stage, offset, batch) {
    const [symbol, meaning] = STAGES[stage];
    const comes = now.again.includes(offset);
    const inSpan = now.first_cached !== null && offset >= now.first_cached && offset <= now.last_cached;
    const words = `message ${offset}: ${meaning}${comes ? ", finished before the crash: comes again" : ""}`;
    const classes = `os-cell os-${stage.replace(" ", "-")}${inSpan ? " os-span" : ""}${comes ? " os-again" : ""}`;
    const inside = [element("b", { "aria-hidden": "true" }, comes ? `${symbol}↻` : symbol), String(offset)];
    if (stage !== "running" || !kernel) {
      return element("span", { class: classes, role: "img", "aria-label": words, title: words }, inside);
    }
    const others = batch.length > 1 ? ` (the call has ${batch[0]} to ${batch.at(-1)})` : "";
    return element("button", { type: "button", class: classes, "data-offset": offset, title: `Finish ${words}${others}`,
      "aria-label": `Finish ${words}${others}`, onclick: () => {
        if (asking) return; // a second press before the answer would finish the message twice
        focusWanted = offset;
        act("finish", () => ({ messages: [offset] }));
      } }, inside);
  }

  function drawKnown(now) {
    const rows = PLACES.map(([place, , name]) => element("tr", {}, element("th", { scope: "row" }, name),
      element("td", {}, now[place] === null ? "nothing" : String(now[place]))));
    known.replaceChildren(element("table", {}, element("tbody", {}, rows)),
      element("p", { class: "mq-note" }, `The next message to read. The client sends it ${dueText(now.persist_in_ms)}; ` +
        `the broker's file: ${dueText(now.save_in_ms)}.`));
  }

  function drawFlow(now) {
    const set = data().settings;
    const rows = [["messages cached", now.count, set.count, "count"], ["MiB cached", now.size, set.size, "size"],
      ["span: last − first cached", now.span, set.span, "span"]].map(([name, value, limit, reason]) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, String(value)), element("td", {}, `limit ${limit}`),
        element("td", {}, now.held_by === reason ? "■ over it" : "● within")));
    const first = now.first_cached === null ? "Nothing is cached." : `Cached: ${now.first_cached} to ${now.last_cached}, ${now.bytes} bytes.`;
    flow.replaceChildren(element("p", { class: "os-light" }, now.held_by ? `■ Pulling waits: ${now.held_by} over its limit; asked again every 50 ms`
      : "● Pulling"), element("table", {}, element("tbody", {}, rows)),
      element("p", { class: "mq-note" }, `${first} Pulled up to ${now.pulled} of ${now.stages.length}.`));
  }

  function drawAgain(now) {
    const count = now.again.length;
    again.replaceChildren(element("p", {}, now.life === 1 ? "The client has not crashed yet."
      : `The client's life ${now.life} reads from ${now.first_read} on: ${count} message${count === 1 ? "" : "s"} that ` +
        `${count === 1 ? "was" : "were"} finished ${count === 1 ? "comes" : "come"} again${count ? `: ${now.again.join(", ")}` : ""}.`));
  }

  function drawSteps() {
    const rows = data().steps.map((step, number) => element("tr", { "aria-selected": number === at() ? "true" : "false",
      onclick: () => goTo(number) }, [number, step.words].map((text) => element("td", {}, String(text)))));
    steps.replaceChildren(element("table", {}, element("thead", {}, element("tr", {},
      ["step", "what happened"].map((name) => element("th", { scope: "col" }, name)))), element("tbody", {}, rows)));
  }

  model.on("change:data", () => {
    if (asking) asking();
    draw();
  });
  model.on("change:position", draw);
  draw();
}

export default { render };
