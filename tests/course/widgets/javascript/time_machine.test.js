import assert from "node:assert/strict";
import { test } from "node:test";

import { linkBook } from "../../../../mqlab/course/widgets/boards/time_machine/links.js";
import { firstAbove, laidOut, laneWidth, shortened } from "../../../../mqlab/course/widgets/boards/time_machine/space_time.js";

test("moments go down row by row; one time is written once, a long pause has its own line", () => {
  const { places, times, side, bottom } = laidOut([[0, 0], [1, 0], [2, 5], [3, 9_000]], 600);
  assert.ok(places.every((y, at) => !at || y - places[at - 1] === (at === 3 ? 48 : 24)));
  assert.deepEqual(times.map(([, text]) => text), ["+0 ms", "+5 ms", "8.995 s later", "+9 s"]);
  assert.equal(side.length, 1);
  assert.ok(bottom > places.at(-1));
});

test("lanes share the room that there is, within limits", () => {
  assert.deepEqual([300, 530, 900, 2000].map((room) => laneWidth(room, 3)), [112, 134, 257, 300]);
});

test("the moments above a height are found by halving", () => {
  assert.deepEqual([0, 10, 15, 30, 99].map((limit) => firstAbove([10, 20, 30], limit)), [0, 1, 1, 3, 3]);
});

test("a text is cut to the pixels that it has", () => {
  assert.equal(shortened("SEND_MESSAGE_V2", 600), "SEND_MESSAGE_V2");
  assert.equal(shortened("SEND_MESSAGE_V2", 48), "SEND_ME…");
});

test("what belongs together lights up together, and goes out again", () => {
  const lights = (name) => ({ name, on: false, classList: { toggle: (_, on) => (node[name].on = on) },
    setAttribute() {}, removeAttribute() {} });
  const node = { a: lights("a"), b: lights("b"), c: lights("c") };
  const book = linkBook();
  book.add(node.a, ["unit 0"]);
  book.add(node.b, ["unit 0", "message 7"]);
  book.add(node.c, ["message 7"]);
  const lit = () => Object.values(node).filter((each) => each.on).map((each) => each.name).join("");
  book.light(["unit 0"]);
  assert.equal(lit(), "ab");
  book.light(["message 7"]);
  assert.equal(lit(), "bc");
  book.light([]);
  assert.equal(lit(), "");
});
