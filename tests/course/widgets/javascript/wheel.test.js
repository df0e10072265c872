// What the wheel board says of a moment.
import assert from "node:assert/strict";
import { test } from "node:test";

import { listOf, litSlot, resultText, slotText, usedSlots, wheelAt, wheelText } from "../../../../mqlab/course/widgets/boards/wheel/reading.js";

const RUN = {
  moments: [
    [0, 0, true, [[3, 3, 0, 0, 1], [9, 9, 52, 104, 2]],
      [[0, -1, 3, "waits", "a-0"], [52, -1, 9, "waits", "a-1"], [104, 52, 9, "waits", "a-2"]]],
    [4000, 4, false, [[9, 9, 52, 104, 2]], []],
  ],
  waits: { "a-0": [3], "a-1": [5], "a-2": [7] },
  came: { "a-0": [3900, 6000], "a-1": [], "a-2": [10000] },
  recalled: "yes",
};

test("wheel: a slot's list is walked from its last unit along previous", () => {
  const wheel = wheelAt(RUN, 1000);
  assert.deepEqual(listOf(wheel, 9).map((unit) => unit.position), [104, 52]);
  assert.deepEqual(listOf(wheel, 5), []);
  assert.deepEqual(usedSlots(wheel), [3, 9]);
  assert.equal(slotText(wheel, 9), "Slot 9: first 52, last 104, num 2. From the last: 104 a-2 (waits), then 52 a-1 (waits).");
  assert.equal(slotText(wheel, 5), "Slot 5 is empty.");
});

test("wheel: the next slot that has a list is lit up, unless one was chosen", () => {
  assert.equal(litSlot(wheelAt(RUN, 0), -1), 3);
  assert.equal(litSlot(wheelAt(RUN, 5000), -1), 9);
  assert.equal(litSlot(wheelAt(RUN, 0), 9), 9);
});

test("wheel: a slot without its units says so, and so does a broker that is down", () => {
  const wheel = wheelAt(RUN, 5000);
  assert.match(slotText(wheel, 9), /nothing: the timer log has no such unit/);
  assert.equal(wheelText(RUN, wheel, 5000), "1 of 3 reminders delivered. The broker is down.");
});

test("wheel: a run counts what was lost and what came again", () => {
  assert.equal(resultText(RUN), "2 of 3 reminders delivered, 1 of them again. The recall was answered yes.");
});
