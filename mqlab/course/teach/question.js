// A question with radio buttons (or a field for a number), as mqlab.course.teach.clicking shows it in a notebook.
// Names, arrow keys and focus are the browser's own: a fieldset with a legend, a label around each button.
import { leaveOnEscape } from "../widgets/frame/page/leaving.js";
import { boxesAt, offerMount } from "../widgets/frame/page/places.js";

const STYLE = `
.mqlab-question { border: 1px solid var(--jp-border-color1, #8a93a3); border-radius: 3px; padding: 4px 12px 8px; margin: 2px 0;
  color: var(--jp-ui-font-color1, CanvasText); font-family: var(--jp-ui-font-family, sans-serif); font-size: 14px; }
.mqlab-question legend { font-weight: 600; padding: 0 6px; }
.mqlab-question label { display: block; padding: 5px 0 5px 26px; text-indent: -26px; cursor: pointer; line-height: 1.35; }
.mqlab-question input[type=radio] { width: 16px; height: 16px; margin: 0 10px 0 0; vertical-align: -2px; }
.mqlab-question [role=alert] { border-left: 4px solid #b3401a; padding: 4px 12px; margin-top: 4px; }
.mqlab-question input:focus-visible { outline: 2px solid var(--jp-brand-color1, Highlight); outline-offset: 2px; }
`;

const KEPT_MS = 1000;
const NOT_KEPT =
  "This choice is not in the notebook yet: the notebook was closed or loaded again after this cell was run. Run the cell again.";
let made = 0;

function radio(model, name, key, text) {
  const label = document.createElement("label");
  const button = document.createElement("input");
  Object.assign(button, { type: "radio", name, value: key, checked: model.get("answer") === key });
  button.addEventListener("change", () => {
    model.set("answer", key);
    model.save_changes();
  });
  const bold = document.createElement("b");
  bold.textContent = key;
  label.append(button, bold, ": ", ...withMarks(text));
  return label;
}

// Words between backticks are code, *one star* and **two** as in the notebook's text; see mqlab/course/teach/said.py.
function withMarks(text) {
  const marked = /`([^`]+)`|(?<![\w*])(\*\*?)(?=[\w✕])([^*`]*\w)\2(?![\w*])/gu;
  const made = [];
  let end = 0;
  for (const found of text.matchAll(marked)) {
    const part = document.createElement(found[1] ? "code" : found[2] === "*" ? "em" : "strong");
    part.textContent = found[1] ?? found[3];
    made.push(text.slice(end, found.index), part);
    end = found.index + found[0].length;
  }
  return [...made, text.slice(end)];
}

function number(model) {
  const label = document.createElement("label");
  const field = document.createElement("input");
  Object.assign(field, { type: "number", step: 1, value: model.get("answer") });
  field.addEventListener("change", () => {
    model.set("answer", field.value);
    model.save_changes();
  });
  label.append("A whole number: ", field);
  return label;
}

function render({ model, el }) {
  const form = document.createElement("fieldset");
  form.className = "mqlab-question";
  // Arrow keys choose here; JupyterLab would move to another cell. Keys with Control or Shift stay its own.
  form.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) event.stopPropagation();
  });
  leaveOnEscape(form);
  const legend = document.createElement("legend");
  legend.append(...withMarks(model.get("legend")));
  const style = document.createElement("style");
  style.textContent = STYLE;
  form.append(style, legend);
  form.setAttribute("aria-label", [...new Set([model.get("legend"), model.get("question")])].join(": "));
  const name = `mqlab-question-${(made += 1)}-${Date.now()}`;
  const choices = model.get("choices");
  form.append(...(choices.length ? choices.map(([key, text]) => radio(model, name, key, text)) : [number(model)]));
  // A second view of the same question, or the Python form, may have changed the answer.
  model.on("change:answer", () => {
    for (const field of form.querySelectorAll("input")) {
      if (field.type === "radio") field.checked = field.value === model.get("answer");
      else field.value = model.get("answer");
    }
  });
  warnWhenNotKept(model, form);
  el.append(form);
}

// The kernel has changed the cell's other output, which is what will be saved. Is it to be seen in this page?
function warnWhenNotKept(model, form) {
  const warning = document.createElement("div");
  warning.setAttribute("role", "alert");
  warning.hidden = true;
  form.append(warning);
  let waiting;
  model.on("msg:custom", ({ kept }) => {
    clearTimeout(waiting); // of two quick choices the second is kept; to look for the first would be a false alarm
    waiting = setTimeout(() => {
      const there = [...document.querySelectorAll(`[data-mqlab-kept="${model.get("place")}"]`)];
      warning.hidden = there.some((output) => output.dataset.chosen === kept);
      warning.textContent = warning.hidden ? "" : NOT_KEPT;
    }, KEPT_MS);
  });
}

function initialize({ model }) {
  // A notebook that was closed and is opened again has the same box, and the buttons of before, whom nobody hears.
  for (const box of boxesAt(model.get("place"))) delete box.dataset.mounted;
  offerMount(model.get("place"), (box) => {
    box.replaceChildren();
    render({ model, el: box });
  });
}

export default { initialize, render };
