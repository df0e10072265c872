import assert from "node:assert/strict";
import { test } from "node:test";

import { inTurn } from "../../../../mqlab/course/widgets/frame/page/in_turn.js";

test("one question after the other, also after one that failed", async () => {
  const begun = [];
  const ends = {};
  const ask = inTurn((name) => {
    begun.push(name);
    return new Promise((done, fail) => (ends[name] = { done, fail }));
  });
  const [first, second] = [ask("first"), ask("second")];
  await new Promise(setImmediate);
  assert.deepEqual(begun, ["first"]);
  ends.first.fail(new Error("no"));
  await assert.rejects(first, /no/);
  await new Promise(setImmediate);
  assert.deepEqual(begun, ["first", "second"]);
  ends.second.done(2);
  assert.equal(await second, 2);
});
