// A board alone in its page has its state in the address: …/retry-clock.html#message=%22order-2%22&position=4

const isAlone = () => document.documentElement.hasAttribute("data-mqlab-alone");

// The state with what the address says; a name that the board does not have, or a value of another kind, is left out.
export function stateOfAddress(state) {
  const found = { ...state };
  if (!isAlone()) return found;
  for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
    const value = typeof state[name] === "string" ? text : jsonOrText(text);
    if (name in state && (typeof value === typeof state[name] || state[name] === null)) found[name] = value;
  }
  return found;
}

function jsonOrText(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// What differs from the state that the board begins with, so that a link says one thing.
export function keepInAddress(values, state) {
  if (!isAlone()) return;
  const named = new URLSearchParams();
  for (const name of Object.keys(state)) {
    const text = JSON.stringify(values[name]);
    if (text !== JSON.stringify(state[name])) named.set(name, typeof values[name] === "string" ? values[name] : text);
  }
  history.replaceState(null, "", `#${named}`);
}
