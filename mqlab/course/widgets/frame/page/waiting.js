// The line that moves while the kernel works on an answer: how far it is where the kernel tells, else to and fro.
import { element } from "./element.js";

const QUICK_MS = 500; // what takes no longer needs no line
const WORDS = "The kernel is working; Kernel > Interrupt Kernel ends it.";

export function waitingLine() {
  const el = element("progress", { class: "mq-waiting", hidden: true, max: 1, "aria-label": WORDS, title: WORDS });
  let questions = 0;
  return {
    el,
    tell: (share) => (el.value = share),
    // Called with each question; what it gives back is called with its end.
    begin() {
      questions += 1;
      const showing = setTimeout(() => (el.hidden = false), QUICK_MS);
      return () => {
        questions -= 1;
        clearTimeout(showing);
        if (questions) return;
        el.hidden = true;
        el.removeAttribute("value");
      };
    },
  };
}
