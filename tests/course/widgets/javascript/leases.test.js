// What the lease board says of a moment.
import assert from "node:assert/strict";
import { test } from "node:test";

import { resultText, standing, standingText } from "../../../../mqlab/course/widgets/boards/leases/standing.js";

const RUN = [
  { spans: [[0, 2000, "acknowledged"]], calls: [["billing-1", 0, 2000, "CONSUME_SUCCESS"]], done: 2000 },
  { spans: [[0, 10000, "ended"], [14000, 16000, "acknowledged"]], calls: [["billing-1", 2000, 15000, ""],
    ["billing-2", 14000, 16000, ""]], done: 16000 },
  { spans: [[5000, 15000, "ended"]], calls: [], done: null },
];

test("leases: an order is handed out, then on lease, done, or coming back", () => {
  assert.deepEqual(standing(RUN, 1000), { handed: 2, out: 2, done: 0, back: 0 });
  assert.deepEqual(standing(RUN, 12000), { handed: 3, out: 1, done: 1, back: 1 });
  assert.deepEqual(standing(RUN, 20000), { handed: 3, out: 0, done: 2, back: 1 });
  assert.equal(standingText(RUN, 1000), "2 handed out, so the lag is 1. On lease 2, done 0, coming back 0.");
});

test("leases: a run counts what was done and what was called again", () => {
  assert.equal(resultText(RUN), "2 of 3 orders done; 1 call repeated.");
});
