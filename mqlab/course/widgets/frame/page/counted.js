// A number and what it counts: "1 message", "2 messages", "1 copy", "2,000 copies".
export function counted(count, thing, things = `${thing}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? thing : things}`;
}
