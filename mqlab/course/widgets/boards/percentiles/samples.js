// Samples as pairs of a value and its part of all, by value; the parts of one list are 1 together.
const SAME_SHARE = 1e-12;

export function alone(sample) {
  return sample.map((value) => [value, 1 / sample.length]);
}

// Two samples as one: each stands for as many messages as its count says.
export function together(...samples) {
  const total = samples.reduce((sum, [, size]) => sum + size, 0);
  return samples.flatMap(([sample, size]) => sample.map((value) => [value, size / total / sample.length]))
    .sort((one, other) => one[0] - other[0]);
}

// The least value that a share of all does not exceed.
export function quantile(parts, share) {
  let reached = 0;
  for (const [value, part] of parts) {
    reached += part;
    if (reached >= share - SAME_SHARE) return value;
  }
  return parts.at(-1)[0];
}

// Three digits, or the whole part of a large value.
export function number(value) {
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}

// Values of 1, 2 and 5 times a power of ten (only of 1 where it is narrow), between two values.
export function ticks(least, most, narrow) {
  const steps = narrow ? [1] : [1, 2, 5];
  const powers = Array.from({ length: 9 }, (_, at) => 10 ** (at - 1));
  return powers.flatMap((power) => steps.map((step) => step * power)).filter((value) => value > least && value < most);
}
