// Settings that play at once: a change of any control inside el, or Enter in one of its fields, asks for wish(), but only
// if it differs from the last one. JupyterLab keeps the change event of Enter away from fields, so Enter is heard here.
import { element } from "./element.js";

export function onceChanged(el, wish, onWish) {
  let last = null;
  const look = () => {
    const now = JSON.stringify(wish());
    if (now === last) return;
    last = now;
    onWish(wish());
  };
  el.addEventListener("change", look);
  el.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.tagName === "INPUT") look();
  });
  // What the controls were just set to needs no playing.
  return { known: () => (last = JSON.stringify(wish())) };
}

// What a beginner need not see, folded.
export function moreSettings(...parts) {
  return element("details", { class: "mq-more" }, element("summary", {}, "More settings"), parts);
}

// One line of what to try first.
export function toTry(words) {
  return element("p", { class: "mq-note" }, `Try: ${words}`);
}

// What Python says of a setting, in the words of its control: "rate must be …" becomes "Messages a second" must be ….
// controls: name of the setting -> control. Other words stay as they are.
export function inKnobWords(message, controls) {
  const named = /^(\w+?)(_ms)? must be (.* and [\d.]+)?(.*)$/s.exec(message);
  if (named && controls[named[1]]) {
    const [, name, ms, range, rest] = named;
    return `"${controls[name].label}" must be ${range ?? ""}${ms && range ? " ms" : ""}${rest}`;
  }
  const wrong = /^'([^']*)' is not a duration/.exec(message);
  const control = wrong && Object.values(controls).find((each) => String(each.value()).trim() === wrong[1]);
  return control ? `"${control.label}": ${message}` : message;
}
