// A board alone in a page that `mqlab console` serves: its questions go to the process that serves it.
import { element } from "./element.js";
import { unpacked } from "./frame.js";
import { addTheme } from "./theme.js";

export async function served(board, label) {
  const box = element("main", { class: "mqlab-board", "aria-label": label });
  document.body.append(box);
  addTheme(box);
  const inside = element("div");
  box.append(inside);
  const { packed, state } = await posted({});
  const model = servedModel(await unpacked(packed), state);
  await board.render({ model, el: inside });
}

// What the process answers to { ask, arguments, changed }; the token of the address goes with each question.
async function posted(content) {
  const token = new URLSearchParams(location.search).get("token");
  let answer;
  try {
    const headers = { "Content-Type": "application/json", Authorization: `token ${token}` };
    answer = await fetch("/ask", { method: "POST", headers, body: JSON.stringify(content) });
  } catch {
    throw new Error("The console does not answer: mqlab console has ended.");
  }
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

function servedModel(data, state) {
  const callbacks = new Map();
  const values = { ...state, data, kernel: true };
  let changed = {};
  const fire = (name) => (callbacks.get(`change:${name}`) || []).forEach((callback) => callback());
  return {
    get: (name) => values[name],
    set(name, value) {
      if (values[name] === value) return;
      values[name] = value;
      changed[name] = value;
    },
    save_changes() {
      const now = changed;
      changed = {};
      posted({ changed: now }).catch(() => {}); // the next question says that nobody answers
      Object.keys(now).forEach(fire);
    },
    on: (event, callback) => callbacks.set(event, [...(callbacks.get(event) || []), callback]),
    off: (event, callback) =>
      callbacks.set(event, (callbacks.get(event) || []).filter((each) => each !== callback)),
    send() {},
    async ask(name, args = {}) {
      const answer = await posted({ ask: name, arguments: args });
      if (answer.error !== undefined) throw new Error(answer.error);
      return unpacked(answer.packed);
    },
    close() {},
  };
}
