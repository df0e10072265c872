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

function render({ model, el }) {
  const data = model.get("data");
  const kernel = model.get("kernel") !== false;
  const chosen = new Map(); // the title of a section -> what its reader chose to see
  let shown = null; // the place whose sections are drawn
  let asking = 0;

  // 1. What is always there: navigation, the Lab's time, what went wrong, the change that waits, the page.
  const tabs = LISTS.map(([page, label]) => {
    const { input } = buttonControl(label, () => go(page));
    input.dataset.page = page;
    return input;
  });
  const status = element("div", { role: "status", "aria-live": "polite" });
  const problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  const change = element("div", { class: "cs-change", role: "group", "aria-label": "Change", tabindex: -1, hidden: true });
  const title = element("h3", { class: "cs-title", tabindex: -1 });
  const form = element("div");
  const page = element("div");
  const duration = textControl({ label: "Let the Lab run for", value: "10s" });
  duration.input.size = 5;
  const time = [buttonControl("Ask again", () => ask(shown)).el];
  if (data.can_wait) time.push(duration.el, buttonControl("Run", wait).el);
  const about = [data.where, ...(kernel ? [data.what_changes] : []), ...data.notes].join(" ");
  el.append(element("style", {}, STYLE), element("div", { class: "mq-note" }, about),
    element("nav", { class: "mq-row", "aria-label": "Pages" }, tabs),
    ...(kernel ? [element("div", { class: "mq-row" }, time)] : []), status, problem, change, title, form, page);
  change.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // the next Escape leads out of the console
    closeChange();
  });

  // 2. Going somewhere: the kernel is asked anew each time; without one there are the recorded pages.
  const has = (place) => kernel || data.pages[place] !== undefined;
  const pageOf = (place) => place.split(" ", 1)[0];

  function go(place) {
    model.set("place", place);
    model.save_changes();
    if (shown !== place) follow();
  }

  async function follow() {
    const place = model.get("place");
    if (place === shown) return;
    if (kernel) await ask(place);
    else if (data.pages[place]) draw(place, data.pages[place], data.now);
    if (shown === place) title.focus();
  }

  // The answer, or null with the error shown. An answer that was overtaken by a later question is not drawn.
  async function question(name, wish) {
    asking += 1;
    const number = asking;
    problem.hidden = true;
    status.textContent = "Asking…";
    el.setAttribute("aria-busy", "true");
    try {
      const answer = await model.ask(name, wish);
      if (number !== asking) return null;
      status.textContent = `Lab time ${answer.now}.`;
      return answer;
    } catch (error) {
      if (number === asking) {
        problem.textContent = error.message;
        problem.hidden = false;
        status.textContent = "The answer is an error.";
      }
      return null;
    } finally {
      if (number === asking) el.removeAttribute("aria-busy");
    }
  }

  async function ask(place) {
    const answer = await question("page", { place });
    if (answer) draw(place, answer.sections, answer.now);
  }

  async function wait() {
    if (await question("wait", { duration: duration.value() })) await ask(shown);
  }

  // 3. A page is its sections, with a form above where there is something to do.
  function draw(place, sections, now) {
    const focused = document.activeElement && page.contains(document.activeElement);
    const isNew = place !== shown;
    shown = place;
    const kind = pageOf(place);
    for (const tab of tabs) {
      if (tab.dataset.page === (LIST_OF[kind] ?? kind)) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    title.textContent = LIST_OF[kind] ? `${kind[0].toUpperCase()}${kind.slice(1)} ${place.slice(kind.length + 1)}`
      : LISTS.find(([each]) => each === kind)[1];
    status.textContent = kernel ? `Lab time ${now}.` : `Recorded at Lab time ${now}. Other pages need a kernel.`;
    if (isNew) form.replaceChildren(...(kernel ? formOf(kind, place.slice(kind.length + 1), sections) : []));
    page.replaceChildren(...sections.map(sectionOf));
    if (focused) title.focus();
  }

  function sectionOf(section) {
    const box = element("div", { class: "cs-section", role: "group", "aria-label": section.title },
      element("h4", {}, section.title));
    if (section.verb) box.append(element("div", { class: "cs-verb" }, `lab.admin.${section.verb}`));
    if (section.error) {
      box.append(element("div", { class: "mq-error" }, section.error));
      return box;
    }
    const at = section.columns.indexOf(section.choose);
    const table = element("div", { class: "cs-scroll", role: "region", tabindex: 0, "aria-label": `Table: ${section.title}` });
    if (at >= 0 && section.rows.length) {
      const wish = chosen.get(section.title) ?? section.first;
      const values = [EVERY, ...new Set([section.first, ...section.rows.map((row) => row[at])])];
      const filter = choiceControl({ label: `Show ${section.choose}`, value: wish, choices: values, onValue: (value) => {
        chosen.set(section.title, value);
        fill(value);
      } });
      box.append(element("div", { class: "mq-row" }, filter.el));
      fill(wish);
    } else fill(EVERY);
    function fill(value) {
      table.replaceChildren(tableOf(section, section.rows.filter((row) => value === EVERY || row[at] === value)));
    }
    if (kernel && section.resend && section.rows.length) {
      box.append(element("div", { class: "mq-row" }, buttonControl("Preview resending all", () =>
        preview({ group: section.resend, letters: null })).el));
    }
    box.append(...section.notes.map((note) => element("div", { class: "mq-note" }, note)), table);
    return box;
  }

  function tableOf(section, rows) {
    if (!rows.length) return element("p", { class: "mq-note" }, section.empty);
    const acts = kernel && section.resend;
    const heads = section.columns.map((name) => element("th", { scope: "col" }, name));
    if (acts) heads.push(element("th", { scope: "col" }, "resend"));
    const id = section.columns.indexOf("offset_msg_id");
    return element("table", {}, element("thead", {}, element("tr", {}, heads)), element("tbody", {}, rows.map((row) =>
      element("tr", {}, row.map((text, at) => cellOf(section, text, at)), acts ? element("td", {},
        element("button", { type: "button", "aria-label": `Preview resending of ${row[id]}`,
          onclick: () => preview({ group: section.resend, letters: [row[id]] }) }, "Preview")) : null))));
  }

  function cellOf(section, text, at) {
    const place = `${section.opens[at]} ${text}`;
    const look = section.numbers[at] ? "cs-number" : text.length > LONG ? "cs-long" : null;
    const opens = section.opens[at] && text !== "-" && place !== shown && has(place);
    return element("td", { class: look }, opens
      ? element("button", { type: "button", class: "cs-link", onclick: () => go(place) }, text) : text);
  }

  // 4. The forms: search among the messages, reset of a group.
  function formOf(kind, name, sections) {
    if (kind === "messages") return [searchForm()];
    if (kind === "group") return [resetForm(name, valuesOf(sections.slice(0, 1), "topic"))];
    return [];
  }

  const valuesOf = (sections, column) => [...new Set(sections.flatMap((section) => {
    const at = section.columns.indexOf(column);
    return at < 0 ? [] : section.rows.map((row) => row[at]);
  }))];

  function searchForm() {
    const topics = valuesOf(data.pages.topics, "topic");
    const normal = valuesOf(data.pages.messages, "topic")[0];
    const topic = textControl({ label: "Topic", value: normal ?? topics[0] ?? "" });
    const list = element("datalist", { id: freshId() }, topics.map((each) => element("option", { value: each })));
    topic.input.setAttribute("list", list.id);
    const by = choiceControl({ label: "by", value: "key", choices: data.ways, onValue: follows });
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
    async function search() {
      const answer = await question("find", { text: text.value(), by: by.value(), topic: topic.value(),
        begin: begin.value(), end: end.value() });
      found.replaceChildren(...(answer ? answer.sections.map(sectionOf) : []));
    }
    follows();
    const row = element("div", { class: "mq-row", role: "search", "aria-label": "Find messages" },
      [topic, by, text, begin, end].map((each) => each.el), list, buttonControl("Find", search).el);
    pressesOnEnter(row, search);
    return element("div", {}, row, found);
  }

  function resetForm(group, topics) {
    const usual = topics.find((each) => !each.startsWith("%")) ?? topics[0]; // not its retries
    const topic = topics.length ? choiceControl({ label: "Topic", value: usual, choices: topics })
      : textControl({ label: "Topic" });
    const to = choiceControl({ label: "to", value: "first", choices: RESETS, onValue: follows });
    const at = textControl({ label: "Time (ms or UTC)" });
    at.input.size = 22;
    function follows() {
      at.el.style.display = to.value() === "time" ? "" : "none";
    }
    const start = () => preview({ group, topic: topic.value(), to: to.value() === "time" ? at.value() : to.value() });
    follows();
    const row = element("div", { class: "mq-row", role: "group", "aria-label": "Reset offsets" },
      [topic, to, at].map((each) => each.el), buttonControl("Preview reset", start).el);
    pressesOnEnter(row, start);
    return row;
  }

  function pressesOnEnter(row, press) {
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.tagName === "INPUT") press();
    });
  }

  // 5. A change: its preview, the question, and after "Do it" what was done.
  async function preview(wish) {
    const answer = await question("preview", wish);
    if (!answer) return;
    showChange(answer.question, answer.sections, [
      buttonControl("Do it", () => confirm(answer.change)).el, buttonControl("Cancel", closeChange).el]);
  }

  async function confirm(number) {
    const answer = await question("confirm", { change: number });
    if (!answer) {
      change.hidden = true;
      return;
    }
    showChange("Done.", answer.sections, [buttonControl("Close", closeChange).el]);
    await ask(shown);
    change.focus();
  }

  function showChange(words, sections, buttons) {
    change.replaceChildren(element("h4", {}, words), element("div", { class: "mq-row" }, buttons),
      ...sections.map(sectionOf));
    change.hidden = false;
    change.focus();
  }

  function closeChange() {
    change.hidden = true;
    if (kernel) model.ask("cancel").catch(() => {});
    title.focus();
  }

  model.on("change:place", follow);
  // A place that was chosen after the pages were recorded is asked for.
  const first = data.pages[model.get("place")] ? model.get("place") : "cluster";
  draw(first, data.pages[first], data.now);
  if (kernel && first !== model.get("place")) follow();
}

export default { render };
