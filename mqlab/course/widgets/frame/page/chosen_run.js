// Shows the run that a board's controls name: the recorded one at once, else the kernel's answer. What cannot be shown
// is said in `problem`; an answer that comes after a newer choice is dropped.
import { element } from "./element.js";

export function chosenRun({ model, kernel, recorded, show }) {
  const problem = element("div", { class: "mq-error", role: "alert", hidden: true });
  let asking = 0;

  function tell(words) {
    problem.textContent = words;
    problem.hidden = false;
  }

  async function choose(settings) {
    asking += 1;
    const mine = asking;
    problem.hidden = true;
    const known = recorded(settings);
    if (known) show(settings, known);
    if (!kernel) {
      if (!known) tell("This run was not recorded: choose other settings, or run the cell.");
      return;
    }
    try {
      // The kernel is asked in any case, so that a cell reads the run that the page shows.
      const answer = await model.ask("play", settings);
      if (mine === asking && !known) show(settings, answer);
    } catch (error) {
      if (mine === asking) tell(error.message);
    }
  }

  // What a page without a kernel can still show.
  const rest = (count) => (kernel ? "" : element("p", { class: "mq-note" }, count > 1
    ? "Without a kernel this page has the runs that can be chosen above."
    : "This page has one run: run the cell to play others."));

  return { problem, choose, rest };
}
