// The crash matrix: one button for each run, its sign is how the run ended; a chosen run opens in the time machine.
import { buttonControl, choiceControl } from "../../frame/page/controls.js";
import { element } from "../../frame/page/element.js";

const STYLE = `
.cm-row { display: flex; flex-wrap: wrap; gap: 3px; margin: 2px 0 8px; }
.mqlab-board button.cm-cell { width: 28px; min-height: 28px; padding: 0; text-align: center; font-weight: 600; }
.mqlab-board button.cm-cell[aria-pressed="true"] { outline: 3px solid var(--mq-focus); background: var(--mq-light); }
.mqlab-board button.cm-line { border-style: dashed; }
.mqlab-board button.cm-good { color: var(--mq-2); } .mqlab-board button.cm-bad { color: var(--mq-4); }
.mqlab-board button.cm-wait { color: var(--mq-muted); }
.cm-text { margin: 4px 0; padding-left: 0; list-style: none; font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
.cm-crash { font-weight: 700; border-left: 4px solid var(--mq-4); padding-left: 4px; }
.cm-opened { border-top: 1px solid var(--mq-rule); margin-top: 6px; }
`;
const CRASHED = /: (killed|powered off|disk lost)/;
const FILTERS = [["all", "all points"], ["step", "before steps"], ["line", "before lines"], ["bad", "not as it should"]];

function render({ model, el }) {
  const data = () => model.get("data");
  const kernel = model.get("kernel") !== false;
  let shown = "all";
  let running = false;

  const filter = choiceControl({ label: "Show", value: shown, choices: FILTERS, onValue: (value) => {
    shown = value;
    draw();
  } });
  const go = buttonControl("Run the rest", run);
  const stop = buttonControl("Stop", () => { running = false; });
  const bar = element("progress", { max: 1, value: 0, "aria-label": "Runs done" });
  const legend = element("div", { class: "mq-note" });
  const problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  const grid = element("div", { role: "group", "aria-label": "Crash points" });
  const status = element("div", { role: "status", "aria-live": "polite" });
  const lines = element("ol", { class: "cm-text", "aria-label": "What happened around the crash" });
  const opening = buttonControl("Open in the time machine", open);
  const opened = element("div", { class: "cm-opened" });
  el.append(element("style", {}, STYLE), element("div", { class: "mq-row" }, filter.el,
    ...(kernel ? [go.el, stop.el, bar] : [])), legend, problem, grid, status, lines,
  element("div", { class: "mq-row" }, opening.el), opened);

  const isGood = (row, outcome) => row.good.includes(outcome);
  const isShown = (row, [, kind, outcome]) => shown === "all" || shown === kind ||
    (shown === "bad" && outcome !== null && !isGood(row, outcome));

  function draw() {
    const had = document.activeElement?.dataset?.cell;
    const cells = data().rows.flatMap((row) => row.cells);
    const done = cells.filter(([, , outcome]) => outcome !== null).length;
    bar.value = cells.length ? done / cells.length : 1;
    go.off(running || done === cells.length);
    stop.input.disabled = !running;
    legend.textContent = Object.entries(data().signs).map(([outcome, sign]) => `${sign} ${outcome}`).concat("· not run",
      `solid border: before a step of ${data().node}`, "dashed: before a line of its listener").join("; ");
    grid.replaceChildren(...data().rows.flatMap(rowOf));
    const all = [...grid.querySelectorAll("button")];
    const at = all.findIndex((button) => button.getAttribute("aria-pressed") === "true");
    all.forEach((button, number) => (button.tabIndex = number === Math.max(at, 0) ? 0 : -1));
    if (had) grid.querySelector(`[data-cell="${had}"]`)?.focus();
    describe(done, cells.length);
  }

  function rowOf(row, variant) {
    const counts = new Map();
    row.cells.forEach(([, , outcome]) => counts.set(outcome, (counts.get(outcome) ?? 0) + 1));
    const words = [...counts].map(([outcome, count]) => `${signOf(outcome)} ${outcome ?? "not run"}: ${count}`);
    const buttons = row.cells.map((cell, number) => (isShown(row, cell) ? cellOf(row, variant, cell, number) : null));
    return [element("h4", { style: "margin:4px 0 0" }, row.name),
      element("div", { class: "mq-note" }, words.join(" · ") || "no crash point"),
      element("div", { class: "cm-row", role: "group", "aria-label": row.name }, buttons)];
  }

  const signOf = (outcome) => (outcome === null ? "·" : data().signs[outcome]);

  function cellOf(row, variant, [point, kind, outcome], number) {
    const here = model.get("variant") === row.name && model.get("number") === number;
    const look = outcome === null ? "cm-wait" : isGood(row, outcome) ? "cm-good" : "cm-bad";
    const words = `${row.name}, ${point}: ${outcome ?? "not run"}`;
    return element("button", { type: "button", class: `cm-cell ${look}${kind === "line" ? " cm-line" : ""}`,
      "data-cell": `${variant}-${number}`, "aria-label": words, title: words, "aria-pressed": here ? "true" : "false",
      onclick: () => choose(row.name, number) }, signOf(outcome));
  }

  // Left and right go from run to run, up and down from variant to variant.
  grid.addEventListener("keydown", (event) => {
    if (event.target.tagName !== "BUTTON") return;
    const groups = [...grid.querySelectorAll(".cm-row")].map((row) => [...row.querySelectorAll("button")]);
    const all = groups.flat();
    const at = groups.findIndex((group) => group.includes(event.target));
    const column = groups[at].indexOf(event.target);
    const aside = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const across = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!aside && !across) return;
    event.preventDefault();
    const group = groups[at + (across ?? 0)];
    const next = aside ? all[all.indexOf(event.target) + aside] : group?.[Math.min(column, group.length - 1)];
    if (!next) return;
    all.forEach((button) => (button.tabIndex = button === next ? 0 : -1));
    next.focus();
  });

  function choose(variant, number) {
    model.set("variant", variant);
    model.set("number", number);
    model.save_changes();
    opened.replaceChildren();
    problem.hidden = true;
    draw();
  }

  function chosen() {
    const row = data().rows.find((each) => each.name === model.get("variant"));
    return row?.cells[model.get("number")] ?? null;
  }

  const pageName = () => `${model.get("variant")} ${model.get("number")}`;

  function describe(done, total) {
    const cell = chosen();
    opening.input.disabled = !cell || (!kernel && !data().pages[pageName()]);
    if (!cell) {
      status.textContent = `${done} of ${total} runs done. Choose one.`;
      lines.replaceChildren();
      return;
    }
    const [point, , outcome, story] = cell;
    status.textContent = `${model.get("variant")}: ${data().node} ended ${point}. ${outcome ?? "Not run yet"}.` +
      (kernel || data().pages[pageName()] ? "" : " Its time machine needs a kernel.");
    lines.replaceChildren(...story.map((number) => data().texts[number]).map((line) =>
      element("li", { class: CRASHED.test(line) ? "cm-crash" : null }, line)));
  }

  // A kernel answers one question at a time, so it runs for half a second and is asked again, until Stop is pressed.
  async function run() {
    running = true;
    draw();
    try {
      let left = 1;
      while (running && left > 0) left = (await model.ask("run")).left;
    } catch (error) {
      tell(error);
    }
    running = false;
    draw();
  }

  async function open() {
    const name = pageName();
    opening.input.disabled = true;
    problem.hidden = true;
    try {
      const html = data().pages[name] ??
        (await model.ask("open", { variant: model.get("variant"), number: model.get("number") })).html;
      opened.innerHTML = html;
      if (kernel) {
        opened.append(element("p", { class: "mq-note" },
          "For faults and forks in this run, call open() of this matrix in a cell."));
      }
      // Scripts that come with innerHTML do not run; new ones do.
      for (const script of opened.querySelectorAll('script[type="module"]')) {
        script.replaceWith(element("script", { type: "module" }, script.textContent));
      }
    } catch (error) {
      tell(error);
    }
    draw();
    opening.input.focus();
  }

  function tell(error) {
    problem.textContent = error.message;
    problem.hidden = false;
  }

  ["change:data", "change:variant", "change:number"].forEach((event) => model.on(event, draw));
  draw();
}

export default { render };
