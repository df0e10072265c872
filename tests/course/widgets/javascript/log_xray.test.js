import assert from "node:assert/strict";
import { test } from "node:test";

import { placesOf } from "../../../../mqlab/course/widgets/boards/log_xray/bytes.js";
import { nextAction } from "../../../../mqlab/course/widgets/boards/log_xray/log_xray.js";

const DATA = { message: { topic: "orders", tags: "paid", keys: "order-", size: 100 }, units: { 0: {}, 1: {} } };
const unit = (inQueue) => ["UNIT", 0, 100, "0", inQueue];
const step = (broker, words, ...pieces) => ({ words, picture: { broker, log: [{ pieces }] } });

test("next: a broker that is down is started, a unit is dispatched, else a message is appended", () => {
  assert.equal(nextAction(DATA, step("down", "killed", unit(false))).verb, "recover");
  assert.deepEqual(nextAction(DATA, step("running", "appended", unit(true), unit(false))),
    { verb: "dispatch", arguments: { units: 1 } });
  assert.equal(nextAction(DATA, step("running", "nothing dispatched: not flushed", unit(false))).verb, "wait");
  const { verb, arguments: message } = nextAction(DATA, step("running", "dispatched", unit(true)));
  assert.deepEqual([verb, message.keys, message.count], ["append", "order-2", 1]);
});

test("a message is drawn again only when other entries lead to it", () => {
  const picture = { queues: [{ entries: [[0, 0, 100], [1, 100, 100]] }],
    index: [{ chains: [{ entries: [[1, 7, 100]] }] }] };
  assert.deepEqual(placesOf(picture, 100), [[[1, 100, 100]], [[1, 7, 100]]]);
  assert.deepEqual(placesOf(picture, 300), [[], []]);
});
