// Native controls with labels. Each gives { el, input, value(), put(value) }; onValue gets the new value.
// A choice has refill(choices) as well.
import { element, freshId } from "./element.js";

export function buttonControl(label, onPress, title) {
  const isOff = () => button.getAttribute("aria-disabled") === "true";
  const button = element("button", { type: "button", title, onclick: (event) => isOff() || onPress(event) }, label);
  // Not "disabled": a disabled button loses the keyboard's focus, and who pressed it has to look for the place again.
  return { el: button, input: button, off: (value) => button.setAttribute("aria-disabled", value ? "true" : "false") };
}

export function numberControl({ label, value, min, max, step, onValue }) {
  const id = freshId();
  const input = element("input", { type: "number", id, min, max, step: step ?? "any", value });
  const read = () => (input.value === "" ? null : Number(input.value));
  input.addEventListener("change", () => input.reportValidity() && onValue && onValue(read()));
  return field(id, label, input, read, (next) => (input.value = next));
}

export function textControl({ label, value, onValue }) {
  const id = freshId();
  const input = element("input", { type: "text", id, value, size: 12 });
  input.addEventListener("change", () => onValue && onValue(input.value));
  return field(id, label, input, () => input.value, (next) => (input.value = next));
}

export function checkControl({ label, value, onValue }) {
  const id = freshId();
  const input = element("input", { type: "checkbox", id });
  input.checked = Boolean(value);
  input.addEventListener("change", () => onValue && onValue(input.checked));
  return field(id, label, input, () => input.checked, (next) => (input.checked = Boolean(next)));
}

// choices: texts, or [value, text] pairs.
export function choiceControl({ label, value, choices, onValue }) {
  const id = freshId();
  const input = element("select", { id });
  let pairs = [];
  const refill = (next) => {
    pairs = next.map((choice) => (Array.isArray(choice) ? choice : [choice, String(choice)]));
    input.replaceChildren(...pairs.map(([, text], at) => element("option", { value: at }, text)));
  };
  const read = () => pairs[input.selectedIndex]?.[0];
  const put = (next) => (input.selectedIndex = Math.max(0, pairs.findIndex(([each]) => each === next)));
  refill(choices);
  put(value);
  input.addEventListener("change", () => onValue && onValue(read()));
  return { ...field(id, label, input, read, put), refill };
}

function field(id, label, input, value, put) {
  const el = element("span", { class: "mq-field" }, element("label", { for: id }, label), input);
  return { el, input, label, value, put };
}
