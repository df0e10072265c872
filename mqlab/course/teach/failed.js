// The buttons under a check, as mqlab.course.teach.first_look shows them in a notebook.
import { leaveOnEscape } from "../widgets/frame/page/leaving.js";
import { boxesAt, offerMount } from "../widgets/frame/page/places.js";

function button(model, pane, [ask, text]) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.className = "jp-mod-styled jp-mod-minimal";
  Object.assign(made.style, { minHeight: "28px", margin: "0 8px 4px 0", padding: "2px 12px", cursor: "pointer" });
  made.style.border = "1px solid var(--jp-border-color1, currentColor)";
  made.style.background = "var(--jp-layout-color2, Canvas)";
  made.style.color = "var(--jp-ui-font-color1, CanvasText)";
  made.addEventListener("click", () => {
    pane.textContent = "…";
    model.send({ ask });
  });
  return made;
}

function mountButtons(model, box) {
  const pane = document.createElement("div");
  pane.setAttribute("aria-live", "polite");
  model.on("msg:custom", ({ html }) => {
    pane.innerHTML = html; // a view of mqlab, escaped where it was made
  });
  leaveOnEscape(box);
  box.replaceChildren(...model.get("asks").map((one) => button(model, pane, one)), pane);
}

function initialize({ model }) {
  for (const box of boxesAt(model.get("place"))) delete box.dataset.mounted;
  offerMount(model.get("place"), (box) => mountButtons(model, box));
}

function render({ model, el }) {
  mountButtons(model, el);
}

export default { initialize, render };
