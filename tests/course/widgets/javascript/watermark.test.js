import assert from "node:assert/strict";
import { test } from "node:test";

import { ledgerOf, reckoned } from "../../../../mqlab/course/widgets/boards/watermark/batches.js";

const MINUTE = 60_000;
// One broker; the second batch brings a message of minute 0 after one of minute 3.
const DATA = { first_ms: 0, looks: [[[1_000, 0], [200_000, 0]], [[210_000, 0]], [[2_000, 0], [211_000, 0]]] };

test("a message is dropped when its window ended before the watermark of the batch before", () => {
  const batches = reckoned(DATA, MINUTE, 0, "update");
  assert.deepEqual(batches.map((one) => one.dropped), [0, 0, 1, 0]);
  assert.deepEqual(batches.map((one) => one.watermark), [null, 200_000, 210_000, 211_000]);
  assert.deepEqual([...batches[2].late], [["0 0", 1]]);
  assert.equal(ledgerOf(batches.at(-1)), "In the log 5 messages, counted 4: ✗ 1 is in no count.");
});

test("a longer delay keeps the window, complete mode keeps all", () => {
  assert.equal(reckoned(DATA, MINUTE, 5 * MINUTE, "update").at(-1).counted, 5);
  const complete = reckoned(DATA, MINUTE, 0, "complete");
  assert.deepEqual([complete.at(-1).counted, complete.at(-1).kept.size], [5, 2]);
  assert.equal(ledgerOf(complete.at(-1)), "In the log 5 messages, counted 5: ✓ each is counted.");
});

test("append gives a window once, when it is over", () => {
  assert.deepEqual(reckoned(DATA, MINUTE, 0, "append").map((one) => one.given), [0, 1, 0, 0]);
});
