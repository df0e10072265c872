// The log X-ray: log, queues, index, pages and bytes of a real store after each action; one message lit up everywhere.
import { buttonControl, choiceControl, numberControl, textControl } from "../../frame/page/controls.js";
import { bytesOf, placesOf } from "./bytes.js";
import { counted } from "../../frame/page/counted.js";
import { element } from "../../frame/page/element.js";
import { inTurn } from "../../frame/page/in_turn.js";
import { roving } from "../../frame/page/roving.js";
import { moreSettings, toTry } from "../../frame/page/settings.js";
import { slider } from "../../frame/page/slider.js";

const STYLE = `
.lx-strip { display: flex; flex-wrap: wrap; gap: 3px; align-items: stretch; margin: 2px 0 6px; }
.mqlab-board button.lx-unit { padding: 1px 4px; border-radius: 3px; border: 1px solid var(--mq-muted); text-align: left;
  border-left-width: 6px; font-size: 11px; line-height: 1.25; min-width: 66px; overflow: hidden; }
.mqlab-board button.lx-unit.mq-lit, .mqlab-board button.lx-entry.mq-lit { font-weight: 700; background: var(--mq-light); }
.lx-blank, .lx-gap, .lx-free { font-size: 11px; line-height: 1.25; padding: 2px 5px; border: 1px dashed var(--mq-rule); }
.lx-gap { border: 2px solid var(--mq-4); }
.mqlab-board button.lx-entry { padding: 0 5px; font-size: 11px; min-height: 24px; }
.lx-chain { display: flex; flex-wrap: wrap; gap: 3px; align-items: center; margin: 2px 0; font-size: 12px; }
.mqlab-board button.lx-page { width: 28px; min-height: 28px; padding: 0; }
.lx-mark { align-self: center; font-size: 11px; border-left: 3px solid var(--mq-ink); padding-left: 3px; }
.lx-hex { font: 11px/1.6 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; margin: 2px 0; }
.lx-hex span:nth-child(odd) { background: var(--mq-card); outline: 1px solid var(--mq-rule); }
.lx-scroll { max-height: 300px; overflow: auto; }
.lx-steps tr[aria-selected="true"] td { background: var(--mq-light); font-weight: 600; }
.lx-steps tr { cursor: pointer; }
.mqlab-board .lx-steps { width: 100%; table-layout: fixed; overflow-wrap: anywhere; }
.lx-steps th:first-child { width: 4em; }
.lx-steps code { white-space: pre-wrap; padding: 0; }
.mqlab-board fieldset { border: 1px solid var(--mq-rule); border-radius: 6px; margin: 4px 0; padding: 2px 8px; min-width: 0; }
.lx-code { white-space: pre; overflow-x: auto; }
`;
const WAITS = ["1ms", "100ms", "500ms", "1s", "10s", "1m"];
const PAGE_BYTES = 4096;
const TO_TRY = "Next stores a message, then writes its queue entry; then a power cut, under More settings.";

// What usually comes next: a message's entry in its queue, if it has none yet, else one message more.
export function nextAction({ message, units }, last) {
  if (last.picture.broker !== "running") return { verb: "recover", arguments: {} };
  const waiting = last.picture.log.some((file) => file.pieces.some(([kind, , , ,
    inQueue]) => kind === "UNIT" && !inQueue));
  if (waiting && last.words.startsWith("nothing dispatched")) return { verb: "wait", arguments: { duration: "1s" } };
  if (waiting) return { verb: "dispatch", arguments: { units: 1 } };
  const { topic, tags, size } = message;
  const keys = `${message.keys}${message.keys.endsWith("-") ? Object.keys(units).length : ""}`;
  return { verb: "append", arguments: { topic, tags, keys, size, count: 1 } };
}

function panel(title, name) {
  const inside = element("div", { class: "lx-scroll" });
  const box = element("section", { class: "mq-panel", "aria-label": name ?? title }, element("h4", {}, title), inside);
  return { box, inside, settle: roving(inside) };
}

function flushMark() {
  return element("span", { class: "lx-mark" }, "◀ flushed up to here");
}

function shortPath(path) {
  return path.replace(/0{6,}(?=\d)/g, "…");
}

class LogXray {
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
    this.drawnMessage = "";
    this.listedData = null;
    this.marked = new Set();
    this.scrolling = 0;
    this.litWanted = null; // what has the focus back after a redraw
  }

  makeControls() {
    const start = this.data().message;
    const topic = textControl({ label: "Topic", value: start.topic });
    const tags = textControl({ label: "Tags", value: start.tags });
    const keys = textControl({ label: "Key", value: start.keys });
    const size = numberControl({ label: "Body bytes", value: start.size, min: 1, max: 4000, step: 1 });
    const count = numberControl({ label: "How many", value: 1, min: 1, max: 20, step: 1 });
    [topic, tags, keys].forEach((each) => (each.input.size = 7));
    const act = (verb, args) => this.ask("do", () => ({ verb, arguments: args ? args() : {} }));
    const append = buttonControl("Append", () => act("append", () => {
      // A key that ends with "-" gets a number, so that one press after the other gives different keys.
      const number = keys.value().endsWith("-") && count.value() === 1 ? Object.keys(this.data().units).length : "";
      return { topic: topic.value(), tags: tags.value(), keys: `${keys.value()}${number}`, size: size.value(),
        count: count.value() };
    }));
    const duration = choiceControl({ label: "Time", value: "500ms", choices: WAITS });
    const buttons = [
      buttonControl("Dispatch one", () => act("dispatch", () => ({ units: 1 }))),
      buttonControl("Dispatch all", () => act("dispatch", () => ({ units: null }))),
      duration, buttonControl("Wait", () => act("wait", () => ({ duration: duration.value() }))),
      buttonControl("Kill", () => act("kill"), "End the process: kill -9"),
      buttonControl("Power cut", () => act("power_cut"), "Everything that is not on the disk is lost"),
      buttonControl("Power cut, lose marked pages only", () => act("power_cut", () => ({ lose: this.markedPages() }))),
      buttonControl("Recover", () => act("recover"), "Start the broker again"),
    ];
    const undo = buttonControl("Undo", () => this.ask("undo"));
    const next = buttonControl("Next", () => this.ask("do", () => nextAction(this.data(), this.data().steps.at(-1))));
    this.policy = choiceControl({ label: "Flush policy", value: this.data().settings.flush,
      choices: this.data().choices.flush,
      onValue: (flush) => this.ask("change", () => ({ flush })) });
    this.fileSize = choiceControl({ label: "Log file size", value: this.data().settings.file_size,
      choices: this.data().choices.file_size, onValue: (value) => this.ask("change", () => ({ file_size: value })) });
    const more = moreSettings(
      element("fieldset", {}, element("legend", {}, "Append"),
        element("div", { class: "mq-row" }, [topic, tags, keys, size, count, append].map((each) => each.el))),
      element("div", { class: "mq-row", role: "group", "aria-label": "Actions" }, buttons.map((each) => each.el)),
      element("div", { class: "mq-row", role: "group", "aria-label": "Settings: all steps are done again" },
        this.policy.el, this.fileSize.el));
    this.controls = element("div", {}, element("div", { class: "mq-row" }, next.el, undo.el,
      toTry(TO_TRY)), more);
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
    this.position = slider({ label: "Step", max: this.data().steps.length - 1, value: this.model.get("position"),
      text: (at) => this.sentence(at), onValue: (at) => this.goTo(at) });
    this.status = element("div", { role: "status", "aria-live": "polite" });
  }

  makePanels() {
    this.panels = {
      log: panel("Commit log"), queues: panel("Consume queues"), index: panel("Index: slots and chains"),
      disk: panel("Pages and checkpoint"), message: panel("The message, byte by byte"), steps: panel("Steps"),
    };
    this.panels.log.box.style.flexBasis = "100%";
    this.panels.message.box.style.flexBasis = "100%";
    this.code = element("pre", { class: "lx-code", tabindex: 0, "aria-label": "The steps as Python" });
    this.el.append(element("style", {}, STYLE));
    if (this.kernel) this.el.append(this.controls);
    this.el.append(this.problem, element("div", { class: "mq-row" }, this.position.el), this.status,
      element("div", { class: "mq-panels" }, Object.values(this.panels).map((each) => each.box)),
      element("details", {}, element("summary", {}, "The steps as Python, to paste into a cell"), this.code));
  }

  takeTurns() {
    this.ask = inTurn(async (name, args) => {
      this.problem.hidden = true;
      try {
        await this.model.ask(name, args ? args() : {}); // read when it is asked, not when the button was pressed
        this.marked.clear();
      } catch (error) {
        this.problem.textContent = error.message;
        this.problem.hidden = false;
      }
      this.draw();
    });
  }

  begin() {
    ["change:position", "change:selected", "change:data"].forEach((event) => this.model.on(event, () => this.draw()));
    this.draw();
  }

  data() {
    return this.model.get("data");
  }

  step() {
    return this.data().steps[Math.min(Math.max(this.model.get("position"), 0), this.data().steps.length - 1)];
  }

  ink(topic) {
    const topics = [...new Set(Object.values(this.data().units).map((unit) => unit.topic))];
    return `var(--mq-${1 + (topics.indexOf(topic) % 6)})`;
  }

  goTo(at) {
    this.model.set("position", at);
    this.model.save_changes();
    this.draw();
  }

  select(place) {
    this.litWanted = document.activeElement?.dataset?.spot ?? null;
    this.model.set("selected", this.model.get("selected") === place ? -1 : place);
    this.model.save_changes();
    this.draw();
  }

  markedPages() {
    return [...this.marked].map((name) => [name.slice(0, name.lastIndexOf(" ")),
      Number(name.slice(name.lastIndexOf(" ")))]);
  }

  sentence(at) {
    const shown = this.data().steps[Math.min(at, this.data().steps.length - 1)];
    return `step ${at} of ${this.data().steps.length - 1}: ${shown.words}`;
  }

  draw() {
    const now = this.step();
    const at = this.data().steps.indexOf(now);
    this.position.input.max = this.data().steps.length - 1;
    this.position.put(at);
    this.policy.put(this.data().settings.flush);
    this.fileSize.put(this.data().settings.file_size);
    const last = at === this.data().steps.length - 1;
    this.status.replaceChildren(
      element("b", {}, `Step ${at} of ${this.data().steps.length - 1}: ${now.words}. `),
      `The broker is ${now.picture.broker}, ${this.data().settings.flush}, ${now.picture.now_ms} ms after the start.` +
      (last || !this.kernel ? "" : " An action here drops the later steps."));
    this.drawLog(now.picture);
    this.drawQueues(now.picture);
    this.drawIndex(now.picture);
    this.drawDisk(now.picture);
    this.drawMessage(now.picture);
    this.drawSteps(at);
    this.code.textContent = this.data().code[at];
    Object.values(this.panels).forEach((each) => each.settle());
    if (this.litWanted) this.el.querySelector(`[data-spot="${this.litWanted}"]`)?.focus();
    this.litWanted = null;
    clearTimeout(this.scrolling);
    this.scrolling = setTimeout(() => this.showStepRow(), 150);
  }

  isLit(place) {
    return place === this.model.get("selected");
  }

  spot(name, place, label, title, extra = {}) {
    return element("button", {
      type: "button", class: `${extra.class ?? "lx-entry"}${this.isLit(place) ? " mq-lit" : ""}`, "data-spot": name,
      "aria-pressed": this.isLit(place) ? "true" : "false", "aria-label": title, title, style: extra.style,
      onclick: () => this.select(place),
    }, this.isLit(place) ? "◉ " : "", label);
  }

  drawLog(picture) {
    const rows = [element("p", { class: "mq-note" },
      "● in its queue  ○ not yet   # in the index   ■ on the disk  □ in memory only")];
    for (const file of picture.log) {
      if (file.used === file.start && file !== picture.log[0]) continue;
      const strip = element("div", { class: "lx-strip" });
      for (const piece of file.pieces) {
        if (picture.flushed !== null && piece[1] === picture.flushed && piece[1] > 0) strip.append(flushMark());
        strip.append(this.pieceOf(piece));
      }
      if (picture.flushed !== null && file.used === picture.flushed && picture.flushed > 0) strip.append(flushMark());
      const free = file.start + file.size - file.used;
      if (free > 0) strip.append(element("span", { class: "lx-free" }, `${free} bytes free (zeros)`));
      rows.push(element("div", { class: "mq-note" }, `${file.path}: ${file.size} bytes`), strip);
    }
    rows.push(element("div", { class: "mq-note" },
      picture.log.length ? `The log ends at ${picture.log_end}.` : "No file yet."));
    picture.problems.forEach((text) => rows.push(element("div", { class: "mq-error" }, `Problem: ${text}`)));
    this.panels.log.inside.replaceChildren(...rows);
  }

  pieceOf([kind, place, size, key, inQueue, inIndex, onDisk]) {
    if (kind === "BLANK") return element("span", { class: "lx-blank" }, `BLANK at ${place}, ${size} bytes`);
    if (kind !== "UNIT") return element("span", { class: "lx-gap" }, `✕ ${kind} at ${place}, ${size} bytes`);
    const unit = this.data().units[key];
    const marks = `${inQueue ? "●" : "○"}${inIndex ? "#" : ""} ${onDisk ? "■" : "□"}`;
    const title = `byte ${place}, ${size} bytes: ${unit.topic} ${unit.queue_id}, queue offset ${unit.queue_offset}, ` +
      `keys ${unit.keys || "none"}, tags ${unit.tags || "none"}, ${inQueue ? "in its queue" : "not dispatched"}, ` +
      `${onDisk ? "on the disk" : "in memory only"}`;
    return this.spot(`log-${place}`, place, [`${unit.topic} ${unit.queue_offset} ${marks}`, element("br"),
      `${place} · ${unit.keys || "no key"}`], title,
    { class: "lx-unit", style: `border-left-color:${this.ink(unit.topic)};width:${Math.min(200, 40 + size / 4)}px` });
  }

  drawQueues(picture) {
    const rows = picture.queues.map((queue) => element("div", { class: "lx-chain" },
      element("b", { style: `color:${this.ink(queue.topic)}` }, `${queue.topic} ${queue.queue_id}: `),
      queue.entries.map(([offset, place, size, tagsCode]) => this.spot(`queue-${queue.topic}-${offset}`, place,
        `${offset} → ${place}`,
        `${queue.topic} ${queue.queue_id}, entry ${offset}: unit at byte ${place}, ${size} bytes, tags code ${tagsCode}`))));
    this.panels.queues.inside.replaceChildren(...(rows.length ? rows
      : [element("p", { class: "mq-note" }, "No queue has a file: nothing was dispatched yet.")]));
  }

  drawIndex(picture) {
    const rows = [];
    for (const file of picture.index) {
      rows.push(element("p", { class: "mq-note" }, `${file.name}: ${counted(file.slots, "slot")}, ${counted(file.entries, "entry", "entries")}`));
      for (const { slot, head, entries } of file.chains) {
        rows.push(element("div", { class: "lx-chain" }, element("b", {}, `slot ${slot} [${head}]`),
          entries.flatMap(([number, hash, place, seconds, previous]) => ["→", this.spot(`index-${file.name}-${number}`,
          place,
            `#${number} ${place}`, `slot ${slot}, entry ${number}: hash ${hash}, unit at byte ${place}, ` +
            `${seconds} s, previous entry ${previous}`)]), entries.length ? "→ 0" : " empty"));
      }
    }
    this.panels.index.inside.replaceChildren(...(rows.length ? rows
      : [element("p", { class: "mq-note" }, "No index file yet.")]));
  }

  drawDisk(picture) {
    const selected = this.chosen(picture);
    const rows = [element("p", { class: "mq-note" }, "■ page on the disk  □ dirty: written, not synced" +
      (this.kernel ? "  ✕ marked: a power cut may lose it" : ""))];
    for (const file of picture.pages) {
      const used = picture.log.find((each) => each.path === file.path);
      const shownPages = used ? Math.max(1, Math.ceil((used.used - used.start) / PAGE_BYTES)) : file.pages;
      const line = element("div", { class: "lx-chain" }, element("span", {}, shortPath(file.path)));
      for (let page = 0; page < Math.min(shownPages, file.pages); page += 1) line.append(this.pageOf(file, page, used,
        selected));
      if (shownPages < file.pages) line.append(element("span", { class: "mq-note" },
        `+ ${file.pages - shownPages} unused`));
      rows.push(line);
    }
    if (!picture.pages.length) rows.push(element("p", { class: "mq-note" }, "No file yet."));
    if (picture.unsynced_names) {
      rows.push(element("p", { class: "mq-note" },
        `${picture.unsynced_names} new names or small files are not on the disk either.`));
    }
    const numbers = Object.entries(picture.checkpoint ?? {}).map(([name, value]) =>
      element("tr", {}, element("td", {}, name), element("td", {}, String(value))));
    rows.push(element("b", {}, "checkpoint"), numbers.length
      ? element("table", {}, element("tbody", {}, numbers)) : element("p", { class: "mq-note" }, "no file"));
    this.panels.disk.inside.replaceChildren(...rows);
  }

  pageOf(file, page, used, selected) {
    const name = `${file.path} ${page}`;
    const dirty = file.dirty.includes(page);
    const symbol = this.marked.has(name) ? "✕" : dirty ? "□" : "■";
    const words = `${file.path}, page ${page}: ${dirty ? "dirty" : "on the disk"}${this.marked.has(name) ? ", marked" : ""}`;
    const holds = used && selected && selected[1] < used.start + (page + 1) * PAGE_BYTES &&
      selected[1] + selected[2] > used.start + page * PAGE_BYTES;
    return element("button", { type: "button", class: `lx-page${holds ? " mq-lit" : ""}`, "data-spot": `page-${name}`,
      "aria-label": words + (holds ? ", holds the message" : ""), title: words,
      "aria-pressed": this.marked.has(name) ? "true" : "false", disabled: !this.kernel || !dirty,
      onclick: () => {
        this.litWanted = `page-${name}`;
        if (!this.marked.delete(name)) this.marked.add(name);
        this.draw();
      } }, symbol);
  }

  chosen(picture) {
    for (const file of picture.log) {
      const piece = file.pieces.find((each) => each[0] === "UNIT" && this.isLit(each[1]));
      if (piece) return piece;
    }
    return null;
  }

  drawMessage(picture) {
    const piece = this.chosen(picture);
    const place = this.model.get("selected");
    const same = `${place} ${piece} ${JSON.stringify(placesOf(picture, place))}`;
    if (same === this.drawnMessage) return;
    this.drawnMessage = same;
    const words = place < 0 ? "Choose a message in the log, in a queue or in the index."
      : `There is no unit at byte ${place} in this step.`;
    this.panels.message.inside.replaceChildren(...(piece ? bytesOf(picture, place, this.data(), piece[3])
      : [element("p", { class: "mq-note" }, words)]));
  }

  // The table of steps changes with the data only; a step further, another row is marked.
  drawSteps(at) {
    if (this.listedData !== this.data()) {
      this.listedData = this.data();
      const rows = this.data().steps.map((each, number) => element("tr", { onclick: () => this.goTo(number) },
        element("td", {}, String(number)),
        element("td", {}, each.code.length ? element("code", {}, each.code.join("\n")) : "—"),
        element("td", {}, each.words)));
      this.panels.steps.inside.replaceChildren(element("table", { class: "lx-steps" },
        element("thead", {}, element("tr", {}, ["step", "code", "what happened"].map((name) =>
          element("th", { scope: "col" }, name)))), element("tbody", {}, rows)));
    }
    [...this.panels.steps.inside.querySelectorAll("tbody tr")].forEach((row, number) =>
      row.setAttribute("aria-selected", number === at));
  }

  // Only when the step was chosen with the slider or by an action, and once the picture is there: measuring costs time.
  showStepRow() {
    const here = this.panels.steps.inside.querySelector('[aria-selected="true"]');
    if (here) this.panels.steps.inside.scrollTop = Math.max(0, here.offsetTop - 120);
  }
}

function render(context) {
  new LogXray(context);
}

export default { render };
