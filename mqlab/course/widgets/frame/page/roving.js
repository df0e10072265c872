// Buttons of a panel are one stop of the Tab key; the arrow keys go from button to button.
export function roving(container) {
  const buttons = () => [...container.querySelectorAll("button")];
  container.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || event.target.tagName !== "BUTTON") return;
    event.preventDefault();
    const all = buttons();
    const next = all[Math.min(Math.max(all.indexOf(event.target) + step, 0), all.length - 1)];
    all.forEach((button) => (button.tabIndex = button === next ? 0 : -1));
    next.focus();
  });
  return () => {
    const all = buttons();
    const lit = all.findIndex((button) => button.getAttribute("aria-pressed") === "true");
    all.forEach((button, at) => (button.tabIndex = at === Math.max(lit, 0) ? 0 : -1));
  };
}
