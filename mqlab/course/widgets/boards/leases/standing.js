// How many orders of a run are handed out, on lease, done and coming back at a moment.
import { counted } from "../../frame/page/counted.js";
export function standing(run, ms) {
  const counts = { handed: 0, out: 0, done: 0, back: 0 };
  for (const order of run) {
    if (!order.spans.some(([from]) => from <= ms)) continue;
    counts.handed += 1;
    if (order.done !== null && order.done <= ms) counts.done += 1;
    else if (order.spans.some(([from, until]) => from <= ms && ms < until)) counts.out += 1;
    else counts.back += 1;
  }
  return counts;
}

export function standingText(run, ms) {
  const { handed, out, done, back } = standing(run, ms);
  const lag = run.length - handed;
  return `${handed} handed out, so the lag is ${lag}. On lease ${out}, done ${done}, coming back ${back}.`;
}

export function resultText(run) {
  const done = run.filter((order) => order.done !== null).length;
  const repeats = run.reduce((sum, order) => sum + Math.max(0, order.calls.length - 1), 0);
  return `${done} of ${run.length} orders done; ${counted(repeats, "call")} repeated.`;
}
