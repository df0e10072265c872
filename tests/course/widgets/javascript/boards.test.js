// What boards say and decide without a page: each board's pure functions, a test for each.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { nextPoint, ringPoints } from "../../../../mqlab/course/widgets/boards/allocation/ring.js";
import * as backlog from "../../../../mqlab/course/widgets/boards/backlog/backlog.js";
import { between, short } from "../../../../mqlab/course/widgets/boards/biography/biography.js";
import { pageOf, valuesOf } from "../../../../mqlab/course/widgets/boards/console/console.js";
import { isGood } from "../../../../mqlab/course/widgets/boards/crash_matrix/crash_matrix.js";
import { unit } from "../../../../mqlab/course/widgets/boards/echoes/echoes.js";
import * as lanes from "../../../../mqlab/course/widgets/boards/lanes/lanes.js";
import * as longPoll from "../../../../mqlab/course/widgets/boards/long_poll/long_poll.js";
import { dueText } from "../../../../mqlab/course/widgets/boards/offset_strip/offset_strip.js";
import { alone, number, quantile, ticks, together } from "../../../../mqlab/course/widgets/boards/percentiles/samples.js";
import * as retries from "../../../../mqlab/course/widgets/boards/retry_clock/retry_clock.js";
import * as tags from "../../../../mqlab/course/widgets/boards/tag_trap/tag_trap.js";
import { clock } from "../../../../mqlab/course/widgets/boards/war_room/war_room.js";
import { isRecorded, keyOf } from "../../../../mqlab/course/widgets/frame/page/recorded.js";

const BOARDS = new URL("../../../../mqlab/course/widgets/boards/", import.meta.url);
const firstRun = (board) => JSON.parse(readFileSync(new URL(`${board}/${board}.json`, BOARDS), "utf8").split("\n")[0]);

test("ring: a queue belongs to the next point, and after the last one to the first", () => {
  const points = ringPoints([[10, 500, 7], [300, 20, 8], [1, 2, 3]], 0b011, 2);
  assert.deepEqual(points, [[10, 0], [20, 1], [300, 1], [500, 0]]);
  assert.deepEqual([5, 10, 21, 500, 501].map((hash) => nextPoint(points, hash)[0]), [10, 10, 300, 500, 10]);
});

test("backlog: a run's rows have names; a line begins at second 1", () => {
  const run = backlog.unfolded(firstRun("backlog"));
  assert.ok(run.seconds.every((each) => Object.keys(each).join() === "arrived,done,lag,committed"));
  assert.equal(backlog.line([3, 5], (second) => 10 * second, (value) => 100 - value), "M10.0 97.0L20.0 95.0");
  assert.deepEqual([0, 61, 600].map(backlog.clock), ["0:00", "1:01", "10:00"]);
});

test("biography: pauses in words, events in a word", () => {
  assert.deepEqual([999, 1500, 59_000, 90_000, 7_200_000].map(between), ["999 ms", "1.5 s", "59 s", "1.5 min", "2.0 h"]);
  const row = (what) => [0, what];
  assert.deepEqual([short(row("returned"), true), short(row("returned"), false), short(row("born"), true)],
    ["success", "failed", "born"]);
});

test("console: a place has its page first; values of a column come once", () => {
  assert.equal(pageOf("group billing now"), "group");
  const sections = [{ columns: ["topic"], rows: [["orders"], ["orders"], ["trace"]] }, { columns: ["at"], rows: [["0"]] }];
  assert.deepEqual(valuesOf(sections, "topic"), ["orders", "trace"]);
});

test("crash matrix: only what its variant wants is good", () => {
  assert.equal(isGood({ good: ["both", "neither"] }, "neither"), true);
  assert.equal(isGood({ good: ["both", "neither"] }, "twice"), false);
});

test("echoes: a stretch of time in its largest unit", () => {
  assert.deepEqual([10, 60, 7200].map(unit), ["10 s", "1 min", "2 h"]);
});

test("recorded settings: a run is found by the values of all settings, in their order", () => {
  const settings = { happens: "kill", name_servers: 2, poll_s: 30, failing: null };
  const key = keyOf(Object.keys(settings), settings);
  assert.equal(key, "kill|2|30|null");
  assert.deepEqual([isRecorded({ [key]: [] }, 1, 2), isRecorded({ [key]: [] }, 2, 2)], [true, false]);
});

test("lanes: calls have names", () => {
  const { calls } = lanes.unfolded({ offsets: [], calls: [[0, "order-1", "pay", 1, 5, 9, true, null]] });
  assert.equal(calls[0].order, "order-1");
  assert.equal(calls[0].ended, 9);
});

test("long poll: rows have names; the middle of an even count is between two", () => {
  const run = longPoll.unfolded(firstRun("long_poll"));
  assert.ok(run.held.length && run.held.every((each) => each.answered === null || each.answered >= each.asked));
  assert.deepEqual([longPoll.middle([5, 1, 9]), longPoll.middle([4, 1, 9, 2])], [5, 3]);
});

test("offset strip: when the next write is due", () => {
  assert.deepEqual([dueText(null), dueText(5000)], ["nothing to write", "in 5 s"]);
});

test("percentiles: of both samples together, not the mean of two", () => {
  const [quick, slow] = [[1, 2, 3, 4], [100, 200, 300, 400]];
  assert.equal(quantile(alone(quick), 0.5), 2);
  assert.equal(quantile(together([quick, 100], [slow, 100]), 0.5), 4);
  assert.equal(quantile(together([quick, 900], [slow, 100]), 0.95), 200);
  assert.deepEqual([0.1234, 12, 1234.5].map(number), ["0.123", "12", "1,235"]);
  assert.deepEqual([ticks(1, 60, false), ticks(1, 60, true)], [[2, 5, 10, 20, 50], [10]]);
});

test("retry clock: the axis leads there and back; times have no empty parts", () => {
  for (const ms of [0, 1000, 3_600_000]) assert.ok(Math.abs(retries.unscaled(retries.scaled(ms)) - ms) < 1e-3);
  assert.deepEqual([0, 10_500, 3_660_000].map(retries.timeText), ["0 ms", "10 s 500 ms", "1 h 1 min"]);
  assert.deepEqual([null, 0, 10_000, 7_200_000, 1500].map(retries.plainDuration), ["", "0s", "10s", "2h", "1500ms"]);
});

test("tag trap: lanes, members and heartbeats have names", () => {
  const run = tags.unfolded({ lag: 0, lanes: [["order-1", "pay"]], members: [["billing-1", "g", "pay"]],
    heartbeats: [[5, "billing-1"]] });
  assert.deepEqual([run.lanes[0].tag, run.members[0].expression, run.heartbeats[0].member], ["pay", "pay", "billing-1"]);
});

test("war room: minutes of a day as a clock", () => {
  assert.deepEqual([0, 75, 1439].map(clock), ["00:00", "01:15", "23:59"]);
});
