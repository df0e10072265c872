// A board alone in its page has its state and its settings in the address:
// …/retry-clock.html#recorded-run=in+order&delivery=2. Elsewhere nothing is read or written.

const CONTROLS = "select, input:not([type='range'])"; // what a slider shows is state

const isAlone = () => document.documentElement.hasAttribute("data-mqlab-alone");

// The address of a board that begins with this state: what it says, and how it follows.
export function addressOf(state) {
  const asked = isAlone() ? [...new URLSearchParams(location.hash.slice(1))] : [];
  let settings = () => new Map();
  let before = new Map();

  // A name that the board does not have, or a value of another kind, is left out.
  function askedState() {
    const values = {};
    for (const [name, text] of asked) {
      const value = typeof state[name] === "string" ? text : jsonOrText(text);
      if (name in state && (typeof value === typeof state[name] || state[name] === null)) values[name] = value;
    }
    return values;
  }

  // What differs from the beginning, so that a link says one thing.
  function keep(values) {
    if (!isAlone()) return;
    const named = new URLSearchParams();
    for (const [name, text] of settings()) if (text !== before.get(name)) named.set(name, text);
    for (const name of Object.keys(state)) {
      const text = JSON.stringify(values[name]);
      if (text !== JSON.stringify(state[name])) named.set(name, typeof values[name] === "string" ? values[name] : text);
    }
    history.replaceState(null, "", `#${named}`);
  }

  // The controls of a board that was drawn take the settings first: with other settings the state begins again.
  function settle(el, model, values) {
    if (!isAlone()) return;
    const controls = () => [...el.querySelectorAll(CONTROLS)].map((control) => [nameOf(control), control])
      .filter(([name]) => name && !(name in state));
    before = new Map(controls().map(([name, control]) => [name, textOf(control)]));
    for (const [name, text] of asked) controls().filter(([own]) => own === name).forEach(([, each]) => put(each, text));
    for (const [name, value] of Object.entries(askedState())) model.set(name, value);
    settings = () => new Map(controls().map(([name, control]) => [name, textOf(control)]));
    model.save_changes();
    el.addEventListener("change", () => keep(values));
  }

  return { askedState, keep, settle };
}

const nameOf = (control) => (control.labels?.[0]?.textContent ?? "").toLowerCase().replace(/[^a-z0-9]+/g, "-")
  .replace(/^-|-$/g, "");

function textOf(control) {
  if (control.type === "checkbox") return String(control.checked);
  return control.tagName === "SELECT" ? control.selectedOptions[0]?.textContent ?? "" : control.value;
}

function put(control, text) {
  if (textOf(control) === text) return;
  if (control.type === "checkbox") control.checked = text === "true";
  else if (control.tagName !== "SELECT") control.value = text;
  else control.selectedIndex = [...control.options].findIndex((option) => option.textContent === text);
  if (textOf(control) === text) control.dispatchEvent(new Event("change", { bubbles: true }));
  else control.selectedIndex = 0; // this board has no such choice
}

function jsonOrText(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
