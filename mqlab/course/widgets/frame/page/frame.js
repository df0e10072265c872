// Makes a board alive: live() in a notebook through anywidget, still() in a page without a kernel. A notebook has the
// box of still() in its output; a widget of a running kernel takes the box over.
import { addressOf } from "./address.js";
import { element } from "./element.js";
import { leaveOnEscape } from "./leaving.js";
import { mounts, offerMount } from "./places.js";
import { addTheme } from "./theme.js";
import { waitingLine } from "./waiting.js";

const WIDGET_MS = 1000; // so long a box waits for its widget before it shows what needs no kernel

// base64 of a zlib stream -> the JSON in it.
export async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// In a view of the widget's own: for notebooks whose pages do not share a window with their widgets.
export async function live(board, { model, el }, label) {
  const box = element("div", { class: "mqlab-board", role: "group", "aria-label": label });
  el.append(box);
  return liveIn(board, model, box);
}

// In the box that the cell's output has as HTML.
export function offerBoard(board, model) {
  offerMount(model.get("mount_name"), async (box) => {
    await box.waking;
    const giveBack = focusIn(box);
    box.replaceChildren();
    await liveIn(board, model, box);
    giveBack();
  });
}

// What had the keyboard's focus is replaced when a board wakes; whoever was there finds the board's first control.
function focusIn(box) {
  const had = box.contains(document.activeElement);
  return () => {
    if (had && document.activeElement === document.body) {
      box.querySelector("button, input, select, [tabindex='0']")?.focus();
    }
  };
}

async function liveIn(board, model, box) {
  keepKeys(box);
  const line = waitingLine();
  const shared = liveModel(model, await unpacked(model.get("packed")), line);
  addTheme(box);
  const inside = element("div");
  box.append(line.el, inside);
  const end = await board.render({ model: shared, el: inside });
  return () => {
    shared.close();
    if (typeof end === "function") end();
  };
}

// JupyterLab would take arrow keys for its own commands, also from a slider; it leaves a marked element alone.
// It would leave Escape alone as well, so that leads out of here.
function keepKeys(box) {
  leaveOnEscape(box);
  box.addEventListener("focusin", (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true"));
}

// anywidget's model with the data unpacked, and questions to the kernel as promises.
function liveModel(model, data, line) {
  const waiting = new Map();
  const own = new Map([["change:data", new Set()]]);
  let lastQuestion = 0;
  const answered = async (message) => {
    const question = waiting.get(message.answer);
    if (!question) return;
    if (message.share !== undefined) {
      line.tell(message.share);
      return;
    }
    waiting.delete(message.answer);
    if (message.error !== undefined) question.fail(new Error(message.error));
    else question.done(await unpacked(message.packed));
  };
  const renewed = async () => {
    data = await unpacked(model.get("packed"));
    own.get("change:data").forEach((callback) => callback());
  };
  model.on("msg:custom", answered);
  model.on("change:packed", renewed);
  return {
    get: (name) => (name === "data" ? data : model.get(name)),
    set: (name, value) => model.set(name, value),
    save_changes: () => model.save_changes(),
    on: (event, callback) => (own.has(event) ? own.get(event).add(callback) : model.on(event, callback)),
    off: (event, callback) => (own.has(event) ? own.get(event).delete(callback) : model.off(event, callback)),
    send: (content) => model.send(content),
    ask(name, args = {}) {
      // Two views of one widget hear all answers, so a question's number must be their own.
      lastQuestion += 1;
      const number = `${lastQuestion}-${Math.random()}`;
      const answer = new Promise((done, fail) => {
        waiting.set(number, { done, fail });
        model.send({ ask: number, name, arguments: args });
      });
      return answer.finally(line.begin());
    },
    close() {
      model.off("msg:custom", answered);
      model.off("change:packed", renewed);
    },
  };
}

// All boxes of the page with this name become alive; what stood in them is kept, folded, as their text.
export function still(board, name, label) {
  for (const box of document.querySelectorAll(`[data-mqlab="${name}"]:not([data-alive])`)) {
    box.setAttribute("data-alive", "");
    wakeAlone(board, box).catch((problem) => {
      box.append(element("p", { class: "mq-error", role: "alert" }, `${label} cannot be shown here: ${problem}`));
    });
  }
}

async function wakeAlone(board, box) {
  const place = box.dataset.mqlabPlace;
  if (box.dataset.mounted) return; // the widget was faster than this script
  if (place) {
    const readable = box.querySelector(".mqlab-readable");
    readable.hidden = true;
    mounts().get(place)?.(box);
    if (box.dataset.mounted) return;
    await new Promise((done) => setTimeout(done, WIDGET_MS));
    if (box.dataset.mounted) return;
    readable.hidden = false;
  }
  box.waking = wake(board, box);
  await box.waking;
}

async function wake(board, box) {
  const { packed, state } = JSON.parse(box.querySelector(".mqlab-data").textContent);
  const model = stillModel(await unpacked(packed), state);
  const inside = element("div");
  const giveBack = focusIn(box);
  keepKeys(box);
  addTheme(box);
  const readable = box.querySelector(".mqlab-readable");
  box.insertBefore(inside, readable);
  await board.render({ model, el: inside });
  model.settle(inside);
  readable.querySelector("p").remove();
  const folded = element("details", {}, element("summary", {}, "The same as a picture and a table"));
  readable.replaceWith(folded);
  folded.append(readable);
  giveBack();
}

function stillModel(data, state) {
  const callbacks = new Map();
  const address = addressOf(state);
  const values = { ...state, ...address.askedState(), data, kernel: false };
  let changed = new Set();
  const model = {
    get: (name) => values[name],
    set(name, value) {
      if (values[name] === value) return;
      values[name] = value;
      changed.add(name);
    },
    save_changes() {
      const names = changed;
      changed = new Set();
      address.keep(values);
      names.forEach((name) => (callbacks.get(`change:${name}`) || []).forEach((callback) => callback()));
    },
    on: (event, callback) => callbacks.set(event, [...(callbacks.get(event) || []), callback]),
    off: (event, callback) =>
      callbacks.set(event, (callbacks.get(event) || []).filter((each) => each !== callback)),
    send() {},
    ask: () => Promise.reject(new Error("This page has no kernel: open the notebook and run the cell.")),
    settle: (el) => address.settle(el, model, values),
    close() {},
  };
  return model;
}
