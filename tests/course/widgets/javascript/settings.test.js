import assert from "node:assert/strict";
import { test } from "node:test";

import { inKnobWords } from "../../../../mqlab/course/widgets/frame/page/settings.js";

const KNOBS = {
  rate: { label: "Messages a second", value: () => 0 },
  interval: { label: "The other asks every", value: () => "0s" },
  suspend: { label: "Held at most", value: () => " abc " },
};

test("an error names the knob, not the setting", () => {
  assert.equal(inKnobWords("rate must be between 0.1 and 20, got 0", KNOBS),
    '"Messages a second" must be between 0.1 and 20, got 0');
  assert.equal(inKnobWords("interval_ms must be between 20 and 30000, got 0", KNOBS),
    '"The other asks every" must be between 20 and 30000 ms, got 0');
  assert.equal(inKnobWords("rate must be a number, got 'x'", KNOBS), "\"Messages a second\" must be a number, got 'x'");
});

test("a duration that is none is found by what stands in the knob", () => {
  assert.equal(inKnobWords("'abc' is not a duration\n  hint: write \"200ms\"", KNOBS),
    "\"Held at most\": 'abc' is not a duration\n  hint: write \"200ms\"");
});

test("other words stay as they are", () => {
  for (const words of ["the broker is down", "threads must be between 1 and 9, got 0", "'x' is not a duration"]) {
    assert.equal(inKnobWords(words, KNOBS), words);
  }
});
