// The crash matrix: one button for each run, its sign is how the run ended; a chosen run opens in the time machine.
import { buttonControl, choiceControl } from "../../frame/page/controls.js";
import { element } from "../../frame/page/element.js";
import { toTry } from "../../frame/page/settings.js";

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
.cm-opened:not(:empty) { border-top: 1px solid var(--mq-rule); margin-top: 6px; }
`;
const CRASHED = /: (killed|powered off|disk lost)/;
const FILTERS = [["all", "all points"], ["step", "before steps"], ["line", "before lines"], ["bad",
  "not as it should"]];

export function isGood(row, outcome) {
  return row.good.includes(outcome);
}

class CrashMatrix {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.makePanels();
    this.listenToKeys();
    this.begin();
  }

  makePanels() {
    this.kernel = this.model.get("kernel") !== false;
    this.shown = "all";
    this.running = false;
    const filter = choiceControl({ label: "Show", value: this.shown, choices: FILTERS, onValue: (value) => {
      this.shown = value;
      this.draw();
    } });
    this.go = buttonControl("Run the rest", () => this.run());
    this.stop = buttonControl("Stop", () => { this.running = false; });
    this.bar = element("progress", { max: 1, value: 0, "aria-label": "Runs done" });
    this.legend = element("div", { class: "mq-note" });
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
    this.grid = element("div", { role: "group", "aria-label": "Crash points" });
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.lines = element("ol", { class: "cm-text", "aria-label": "What happened around the crash" });
    this.opening = buttonControl("Open in the time machine", () => this.open());
    this.opened = element("div", { class: "cm-opened" });
    this.el.append(element("style", {}, STYLE),
      toTry("choose a cell: the lines under it say what happened around that crash."), element("div", { class: "mq-row" }, filter.el,
      ...(this.kernel ? [this.go.el, this.stop.el, this.bar] : [])), this.legend, this.problem, this.grid, this.status,
      this.lines,
    element("div", { class: "mq-row" }, this.opening.el), this.opened);
  }

  listenToKeys() {
    // Left and right go from run to run, up and down from variant to variant.
    this.grid.addEventListener("keydown", (event) => {
      if (event.target.tagName !== "BUTTON") return;
      const groups = [...this.grid.querySelectorAll(".cm-row")].map((row) => [...row.querySelectorAll("button")]);
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
  }

  begin() {
    ["change:data", "change:variant", "change:number"].forEach((event) => this.model.on(event, () => this.draw()));
    this.draw();
  }

  data() {
    return this.model.get("data");
  }

  isShown(row, [, kind, outcome]) {
    return this.shown === "all" || this.shown === kind ||
      (this.shown === "bad" && outcome !== null && !isGood(row, outcome));
  }

  draw() {
    const had = document.activeElement?.dataset?.cell;
    const cells = this.data().rows.flatMap((row) => row.cells);
    const done = cells.filter(([, , outcome]) => outcome !== null).length;
    this.bar.value = cells.length ? done / cells.length : 1;
    this.go.off(this.running || done === cells.length);
    this.stop.input.disabled = !this.running;
    this.legend.textContent = Object.entries(this.data().signs).map(([outcome,
      sign]) => `${sign} ${outcome}`).concat("· not run",
      `solid border: before a step of ${this.data().node}`, "dashed: before a line of its listener").join("; ");
    this.grid.replaceChildren(...this.data().rows.flatMap((row, variant) => this.rowOf(row, variant)));
    const all = [...this.grid.querySelectorAll("button")];
    const at = all.findIndex((button) => button.getAttribute("aria-pressed") === "true");
    all.forEach((button, number) => (button.tabIndex = number === Math.max(at, 0) ? 0 : -1));
    if (had) this.grid.querySelector(`[data-cell="${had}"]`)?.focus();
    this.describe(done, cells.length);
  }

  rowOf(row, variant) {
    const counts = new Map();
    row.cells.forEach(([, , outcome]) => counts.set(outcome, (counts.get(outcome) ?? 0) + 1));
    const words = [...counts].map(([outcome, count]) => `${this.signOf(outcome)} ${outcome ?? "not run"}: ${count}`);
    const buttons = row.cells.map((cell, number) => (this.isShown(row, cell) ? this.cellOf(row, variant, cell,
      number) : null));
    return [element("h4", { style: "margin:4px 0 0" }, row.name),
      element("div", { class: "mq-note" }, words.join(" · ") || "no crash point"),
      element("div", { class: "cm-row", role: "group", "aria-label": row.name }, buttons)];
  }

  signOf(outcome) {
    return outcome === null ? "·" : this.data().signs[outcome];
  }

  cellOf(row, variant, [point, kind, outcome], number) {
    const here = this.model.get("variant") === row.name && this.model.get("number") === number;
    const look = outcome === null ? "cm-wait" : isGood(row, outcome) ? "cm-good" : "cm-bad";
    const words = `${row.name}, ${point}: ${outcome ?? "not run"}`;
    return element("button", { type: "button", class: `cm-cell ${look}${kind === "line" ? " cm-line" : ""}`,
      "data-cell": `${variant}-${number}`, "aria-label": words, title: words, "aria-pressed": here ? "true" : "false",
      onclick: () => this.choose(row.name, number) }, this.signOf(outcome));
  }

  choose(variant, number) {
    this.model.set("variant", variant);
    this.model.set("number", number);
    this.model.save_changes();
    this.opened.replaceChildren();
    this.problem.hidden = true;
    this.draw();
  }

  chosen() {
    const row = this.data().rows.find((each) => each.name === this.model.get("variant"));
    return row?.cells[this.model.get("number")] ?? null;
  }

  pageName() {
    return `${this.model.get("variant")} ${this.model.get("number")}`;
  }

  describe(done, total) {
    const cell = this.chosen();
    this.opening.input.disabled = !cell || (!this.kernel && !this.data().pages[this.pageName()]);
    if (!cell) {
      this.status.textContent = `${done} of ${total} runs done. Choose one.`;
      this.lines.replaceChildren();
      return;
    }
    const [point, , outcome, story] = cell;
    this.status.textContent = `${this.model.get("variant")}: ${this.data().node} ended ${point}. ${outcome ?? "Not run yet"}.` +
      (this.kernel || this.data().pages[this.pageName()] ? "" : " Its time machine needs a kernel.");
    this.lines.replaceChildren(...story.map((number) => this.data().texts[number]).map((line) =>
      element("li", { class: CRASHED.test(line) ? "cm-crash" : null }, line)));
  }

  // A kernel answers one question at a time, so it runs for half a second and is asked again, until Stop is pressed.
  async run() {
    this.running = true;
    this.draw();
    try {
      let left = 1;
      while (this.running && left > 0) left = (await this.model.ask("run")).left;
    } catch (error) {
      this.tell(error);
    }
    this.running = false;
    this.draw();
  }

  async open() {
    const name = this.pageName();
    this.opening.input.disabled = true;
    this.problem.hidden = true;
    try {
      const html = this.data().pages[name] ??
        (await this.model.ask("open", { variant: this.model.get("variant"), number: this.model.get("number") })).html;
      this.opened.innerHTML = html;
      if (this.kernel) {
        this.opened.append(element("p", { class: "mq-note" },
          "For faults and forks in this run, call open() of this matrix in a cell."));
      }
      // Scripts that come with innerHTML do not run; new ones do.
      for (const script of this.opened.querySelectorAll('script[type="module"]')) {
        script.replaceWith(element("script", { type: "module" }, script.textContent));
      }
    } catch (error) {
      this.tell(error);
    }
    this.draw();
    this.opening.input.focus();
  }

  tell(error) {
    this.problem.textContent = error.message;
    this.problem.hidden = false;
  }
}

function render(context) {
  new CrashMatrix(context);
}

export default { render };
