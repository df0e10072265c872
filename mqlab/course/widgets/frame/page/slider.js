// A slider that moves with the pointer and the arrow keys. text(value) is what a screen reader says.
// At most one onValue a frame: a fast drag gives many more events than the screen has frames.
import { element, freshId } from "./element.js";

export function slider({ label, min = 0, max, step = 1, value = 0, text, onValue }) {
  const id = freshId();
  const input = element("input", { type: "range", id, min, max, step, style: "flex:1 1 160px;min-width:120px" });
  input.value = value;
  let waiting = false;
  const say = () => text && input.setAttribute("aria-valuetext", text(Number(input.value)));
  const show = () => {
    waiting = false;
    say();
    onValue(Number(input.value));
  };
  input.addEventListener("input", () => {
    if (!waiting) requestAnimationFrame(show);
    waiting = true;
  });
  say();
  const el = element("span", { class: "mq-field", style: "flex:1 1 240px" },
    element("label", { for: id }, label), input);
  const put = (next) => {
    if (Number(input.value) !== next) input.value = next;
    say();
  };
  return { el, input, value: () => Number(input.value), put };
}

// Keeps the chosen one of `last`, counted from 1, in the model. A change of the model calls follow, an equal value does not.
export function goTo({ model, name, number, last, follow }) {
  const there = Math.min(Math.max(number, 1), last);
  if (there === model.get(name)) follow();
  model.set(name, there);
  model.save_changes();
}
