// The console: RocketMQ Dashboard's pages. Every table names the verb that gave it; a change is previewed, then confirmed.
import { buttonControl, choiceControl, textControl } from "../../frame/page/controls.js";
import { element, freshId } from "../../frame/page/element.js";

const STYLE = `
.mqlab-board button.cs-link { border: 0; background: none; padding: 0; min-height: 24px; color: var(--mq-1);
  text-decoration: underline; text-align: left; }
.mqlab-board nav button[aria-current="page"] { font-weight: 700; border-width: 2px; border-color: var(--mq-focus);
  text-decoration: underline; }
.cs-scroll { overflow-x: auto; max-height: 420px; overflow-y: auto; }
.cs-section { margin: 8px 0 12px; }
.mqlab-board .cs-section > h4, .mqlab-board .cs-change > h4 { margin: 0; font-size: 13px; }
.mqlab-board .cs-title { font-size: 15px; margin: 8px 0 2px; }
.cs-verb { color: var(--mq-muted); font: 11px ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.cs-scroll td { white-space: nowrap; max-width: 36em; overflow-wrap: anywhere; }
.cs-scroll td.cs-long { white-space: pre-wrap; min-width: 16em; }
.mqlab-board.mqlab-board td.cs-number { text-align: right; font-variant-numeric: tabular-nums; }
.cs-change { border: 2px solid var(--mq-focus); border-radius: 6px; padding: 6px 8px; margin: 8px 0; }
`;
const LISTS = [["cluster", "Cluster"], ["topics", "Topics"], ["groups", "Groups"], ["messages", "Messages"]];
const LIST_OF = { topic: "topics", group: "groups", message: "messages" };
const RESETS = [["first", "the first message"], ["end", "the end (skip all)"], ["now", "now"], ["time", "a time"]];
const LONG = 40;
const EVERY = "all";

export function pageOf(place) {
  return place.split(" ", 1)[0];
}

export function valuesOf(sections, column) {
  return [...new Set(sections.flatMap((section) => {
    const at = section.columns.indexOf(column);
    return at < 0 ? [] : section.rows.map((row) => row[at]);
  }))];
}

function pressesOnEnter(row, press) {
  row.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.tagName === "INPUT") press();
  });
}

class Console {
  constructor({ model, el }) {
    Object.assign(this, { model, el });
    this.readData();
    this.makePanels();
    this.begin();
  }

  readData() {
    this.data = this.model.get("data");
    this.kernel = this.model.get("kernel") !== false;
    this.chosen = new Map(); // the title of a section -> what its reader chose to see
    this.shown = null; // the place whose sections are drawn
    this.asking = 0;
  }

  makePanels() {
    this.tabs = LISTS.map(([page, label]) => {
      const { input } = buttonControl(label, () => this.go(page));
      input.dataset.page = page;
      return input;
    });
    this.status = element("div", { role: "status", "aria-live": "polite" });
    this.problem = element("div", { class: "mq-error", role: "alert", hidden: true });
    this.change = element("div", { class: "cs-change", role: "group", "aria-label": "Change", tabindex: -1,
      hidden: true });
    this.title = element("h3", { class: "cs-title", tabindex: -1 });
    this.form = element("div");
    this.page = element("div");
    this.duration = textControl({ label: "Let the Lab run for", value: "10s" });
    this.duration.input.size = 5;
    const time = [buttonControl("Ask again", () => this.ask(this.shown)).el];
    if (this.data.can_wait) time.push(this.duration.el, buttonControl("Run", () => this.wait()).el);
    const about = [this.data.where, ...(this.kernel ? [this.data.what_changes] : []), ...this.data.notes].join(" ");
    this.el.append(element("style", {}, STYLE), element("div", { class: "mq-note" }, about),
      element("nav", { class: "mq-row", "aria-label": "Pages" }, this.tabs),
      ...(this.kernel ? [element("div", { class: "mq-row" }, time)] : []), this.status, this.problem, this.change,
      this.title, this.form, this.page);
    this.change.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault(); // the next Escape leads out of the console
      this.closeChange();
    });
  }

  begin() {
    this.model.on("change:place", () => this.follow());
    // A place that was chosen after the pages were recorded is asked for.
    const first = this.data.pages[this.model.get("place")] ? this.model.get("place") : "cluster";
    this.draw(first, this.data.pages[first], this.data.now);
    if (this.kernel && first !== this.model.get("place")) this.follow();
  }

  has(place) {
    return this.kernel || this.data.pages[place] !== undefined;
  }

  go(place) {
    this.model.set("place", place);
    this.model.save_changes();
    if (this.shown !== place) this.follow();
  }

  async follow() {
    const place = this.model.get("place");
    if (place === this.shown) return;
    if (this.kernel) await this.ask(place);
    else if (this.data.pages[place]) this.draw(place, this.data.pages[place], this.data.now);
    if (this.shown === place) this.title.focus();
  }

  // The answer, or null with the error shown. An answer that was overtaken by a later question is not drawn.
  async question(name, wish) {
    this.asking += 1;
    const number = this.asking;
    this.problem.hidden = true;
    this.status.textContent = "Asking…";
    this.el.setAttribute("aria-busy", "true");
    try {
      const answer = await this.model.ask(name, wish);
      if (number !== this.asking) return null;
      this.status.textContent = `Lab time ${answer.now}.`;
      return answer;
    } catch (error) {
      if (number === this.asking) {
        this.problem.textContent = error.message;
        this.problem.hidden = false;
        this.status.textContent = "The answer is an error.";
      }
      return null;
    } finally {
      if (number === this.asking) this.el.removeAttribute("aria-busy");
    }
  }

  async ask(place) {
    const answer = await this.question("page", { place });
    if (answer) this.draw(place, answer.sections, answer.now);
  }

  async wait() {
    if (await this.question("wait", { duration: this.duration.value() })) await this.ask(this.shown);
  }

  draw(place, sections, now) {
    const focused = document.activeElement && this.page.contains(document.activeElement);
    const isNew = place !== this.shown;
    this.shown = place;
    const kind = pageOf(place);
    for (const tab of this.tabs) {
      if (tab.dataset.page === (LIST_OF[kind] ?? kind)) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    this.title.textContent = LIST_OF[kind] ? `${kind[0].toUpperCase()}${kind.slice(1)} ${place.slice(kind.length + 1)}`
      : LISTS.find(([each]) => each === kind)[1];
    this.status.textContent = this.kernel ? `Lab time ${now}.` : `Recorded at Lab time ${now}. Other pages need a kernel.`;
    const form = isNew && this.kernel ? this.formOf(kind, place.slice(kind.length + 1), sections) : [];
    if (isNew) this.form.replaceChildren(...form);
    this.page.replaceChildren(...sections.map((section) => this.sectionOf(section)));
    if (focused) this.title.focus();
  }

  sectionOf(section) {
    const box = element("div", { class: "cs-section", role: "group", "aria-label": section.title },
      element("h4", {}, section.title));
    if (section.verb) box.append(element("div", { class: "cs-verb" }, `lab.admin.${section.verb}`));
    if (section.error) {
      box.append(element("div", { class: "mq-error" }, section.error));
      return box;
    }
    const at = section.columns.indexOf(section.choose);
    const table = element("div", { class: "cs-scroll", role: "region", tabindex: 0,
      "aria-label": `Table: ${section.title}` });
    const fill = (value) => table.replaceChildren(
      this.tableOf(section, section.rows.filter((row) => value === EVERY || row[at] === value)));
    if (at >= 0 && section.rows.length) {
      const wish = this.chosen.get(section.title) ?? section.first;
      const values = [EVERY, ...new Set([section.first, ...section.rows.map((row) => row[at])])];
      const filter = choiceControl({ label: `Show ${section.choose}`, value: wish, choices: values,
        onValue: (value) => {
          this.chosen.set(section.title, value);
          fill(value);
        } });
      box.append(element("div", { class: "mq-row" }, filter.el));
      fill(wish);
    } else fill(EVERY);
    if (this.kernel && section.resend && section.rows.length) {
      box.append(element("div", { class: "mq-row" }, buttonControl("Preview resending all", () =>
        this.preview({ group: section.resend, letters: null })).el));
    }
    box.append(...section.notes.map((note) => element("div", { class: "mq-note" }, note)), table);
    return box;
  }

  tableOf(section, rows) {
    if (!rows.length) return element("p", { class: "mq-note" }, section.empty);
    const acts = this.kernel && section.resend;
    const heads = section.columns.map((name) => element("th", { scope: "col" }, name));
    if (acts) heads.push(element("th", { scope: "col" }, "resend"));
    const id = section.columns.indexOf("offset_msg_id");
    return element("table", {}, element("thead", {}, element("tr", {}, heads)), element("tbody", {}, rows.map((row) =>
      element("tr", {}, row.map((text, at) => this.cellOf(section, text, at)), acts ? element("td", {},
        element("button", { type: "button", "aria-label": `Preview resending of ${row[id]}`,
          onclick: () => this.preview({ group: section.resend, letters: [row[id]] }) }, "Preview")) : null))));
  }

  cellOf(section, text, at) {
    const place = `${section.opens[at]} ${text}`;
    const look = section.numbers[at] ? "cs-number" : text.length > LONG ? "cs-long" : null;
    const opens = section.opens[at] && text !== "-" && place !== this.shown && this.has(place);
    return element("td", { class: look }, opens
      ? element("button", { type: "button", class: "cs-link", onclick: () => this.go(place) }, text) : text);
  }

  formOf(kind, name, sections) {
    if (kind === "messages") return [this.searchForm()];
    if (kind === "group") return [this.resetForm(name, valuesOf(sections.slice(0, 1), "topic"))];
    return [];
  }

  searchForm() {
    const topics = valuesOf(this.data.pages.topics, "topic");
    const normal = valuesOf(this.data.pages.messages, "topic")[0];
    const topic = textControl({ label: "Topic", value: normal ?? topics[0] ?? "" });
    const list = element("datalist", { id: freshId() }, topics.map((each) => element("option", { value: each })));
    topic.input.setAttribute("list", list.id);
    const by = choiceControl({ label: "by", value: "key", choices: this.data.ways, onValue: follows });
    const text = textControl({ label: "Key", value: "" });
    const begin = textControl({ label: "from (ms or UTC)" });
    const end = textControl({ label: "to" });
    const found = element("div");
    function follows() {
      const isTime = by.value() === "time";
      text.el.style.display = isTime ? "none" : "";
      [begin, end].forEach((each) => (each.el.style.display = isTime ? "" : "none"));
      topic.el.style.display = by.value() === "offset id" ? "none" : "";
      text.el.querySelector("label").textContent = by.value()[0].toUpperCase() + by.value().slice(1);
    }
    const search = async () => {
      const answer = await this.question("find", { text: text.value(), by: by.value(), topic: topic.value(),
        begin: begin.value(), end: end.value() });
      found.replaceChildren(...(answer ? answer.sections.map((section) => this.sectionOf(section)) : []));
    };
    follows();
    const row = element("div", { class: "mq-row", role: "search", "aria-label": "Find messages" },
      [topic, by, text, begin, end].map((each) => each.el), list, buttonControl("Find", search).el);
    pressesOnEnter(row, search);
    return element("div", {}, row, found);
  }

  resetForm(group, topics) {
    const usual = topics.find((each) => !each.startsWith("%")) ?? topics[0]; // not its retries
    const topic = topics.length ? choiceControl({ label: "Topic", value: usual, choices: topics })
      : textControl({ label: "Topic" });
    const to = choiceControl({ label: "to", value: "first", choices: RESETS, onValue: follows });
    const at = textControl({ label: "Time (ms or UTC)" });
    at.input.size = 22;
    function follows() {
      at.el.style.display = to.value() === "time" ? "" : "none";
    }
    const start = () => this.preview({ group, topic: topic.value(),
      to: to.value() === "time" ? at.value() : to.value() });
    follows();
    const row = element("div", { class: "mq-row", role: "group", "aria-label": "Reset offsets" },
      [topic, to, at].map((each) => each.el), buttonControl("Preview reset", start).el);
    pressesOnEnter(row, start);
    return row;
  }

  async preview(wish) {
    const answer = await this.question("preview", wish);
    if (!answer) return;
    this.showChange(answer.question, answer.sections, [
      buttonControl("Do it", () => this.confirm(answer.change)).el, buttonControl("Cancel",
      () => this.closeChange()).el]);
  }

  async confirm(number) {
    const answer = await this.question("confirm", { change: number });
    if (!answer) {
      this.change.hidden = true;
      return;
    }
    this.showChange("Done.", answer.sections, [buttonControl("Close", () => this.closeChange()).el]);
    await this.ask(this.shown);
    this.change.focus();
  }

  showChange(words, sections, buttons) {
    this.change.replaceChildren(element("h4", {}, words), element("div", { class: "mq-row" }, buttons),
      ...sections.map((section) => this.sectionOf(section)));
    this.change.hidden = false;
    this.change.focus();
  }

  closeChange() {
    this.change.hidden = true;
    if (this.kernel) this.model.ask("cancel").catch(() => {});
    this.title.focus();
  }
}

function render(context) {
  new Console(context);
}

export default { render };
