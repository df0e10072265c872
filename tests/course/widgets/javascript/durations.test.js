import assert from "node:assert/strict";
import { test } from "node:test";

import { afterText, durationText } from "../../../../mqlab/course/widgets/frame/page/durations.js";

test("a duration has no more digits than it needs", () => {
  const texts = [0, 999, 1000, 1250, 60_000, 61_005, 3_600_000, 17_140_000].map(durationText);
  assert.deepEqual(texts, ["0 ms", "999 ms", "1 s", "1.250 s", "1:00", "1:01.005", "1:00:00", "4:45:40"]);
});

test("a moment before the beginning has a minus", () => {
  assert.deepEqual([0, 1500, -250].map(afterText), ["+0 ms", "+1.500 s", "-250 ms"]);
});
