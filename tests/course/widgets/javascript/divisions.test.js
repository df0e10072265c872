import assert from "node:assert/strict";
import { test } from "node:test";

import { divisions } from "../../../../mqlab/course/widgets/boards/allocation/divisions.js";

// Two members of four queues, and a third that may join: sets of members are numbers with a bit each.
const DATA = {
  known: ["a", "b", "c"],
  first: ["a", "b"],
  sets: [0b011, 0b111, 0b001],
  queues: ["0", "1", "2", "3"],
  topics: 1,
  owners: { AVG: [[1, 1, 2, 2], [1, 1, 2, 4], [1, 1, 1, 1]], FAILS: [[1, 1, 2, 2], null, null] },
};

test("moments follow joins, leaves and renamings", () => {
  const divided = divisions(DATA);
  assert.deepEqual(divided.moments([]), [0b011]);
  assert.deepEqual(divided.moments([["join", "c"], ["leave", "a"]]), [0b011, 0b111, 0b110]);
  assert.deepEqual(divided.moments([["rename", "a", "c"]]), [0b011, 0b110]);
});

test("a change that cannot happen has no moments, and words", () => {
  const divided = divisions(DATA);
  assert.equal(divided.moments([["join", "a"]]), null);
  assert.equal(divided.impossible([["join", "a"]]), "a is a member already.");
  assert.equal(divided.impossible([["join", ""]]), "A member needs a name.");
  assert.equal(divided.impossible([["join", "c"]]), null);
  assert.equal(divided.knows([["join", "c"]]), true);
  assert.equal(divided.knows([["leave", "a"]]), false); // the set {b} was not recorded
});

test("what moved is counted against the fewest moves that level the counts", () => {
  const [before, joined] = divisions(DATA).measured("AVG", [0b011, 0b111]);
  assert.deepEqual([before.difference, before.moved, before.fewest], [0, 0, 0]);
  assert.deepEqual([joined.difference, joined.moved, joined.fewest], [1, 1, 1]);
});

test("a strategy that fails owns nothing and moves nothing", () => {
  const [, failed] = divisions(DATA).measured("FAILS", [0b011, 0b111]);
  assert.deepEqual(failed, { owners: null, difference: 0, moved: 0, fewest: 0 });
});
