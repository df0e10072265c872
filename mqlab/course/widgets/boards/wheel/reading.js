// What a run of the wheel board says of a moment: the wheel then, a slot's list, and words.
export const SHOWN_SLOTS = 48;

// { from, read, up, slots: Map(number -> {...}), units: Map(position -> {...}) } at a moment.
export function wheelAt(run, ms) {
  const [from, read, up, slots, units] = run.moments.filter(([begins]) => begins <= ms).at(-1);
  return {
    from, read, up,
    slots: new Map(slots.map(([number, second, first, last, num]) => [number, { number, second, first, last, num }])),
    units: new Map(units.map(([position, previous, second, kind, name]) => [position,
      { position, previous, second, kind, name }])),
  };
}

// The units of a slot, newest first, as the broker walks them from `last`.
export function listOf(wheel, number) {
  const units = [];
  let position = wheel.slots.get(number)?.last ?? -1;
  while (wheel.units.has(position) && !units.includes(wheel.units.get(position))) {
    units.push(wheel.units.get(position));
    position = units.at(-1).previous;
  }
  return units;
}

// The slot whose list is lit up: the chosen one, else the next one that has a list, else the read one.
export function litSlot(wheel, chosen) {
  if (chosen >= 0) return chosen;
  const ahead = [...wheel.slots.keys()].filter((number) => number >= wheel.read).sort((one, other) => one - other);
  return ahead[0] ?? wheel.read;
}

// The slots that can be chosen, in order.
export function usedSlots(wheel) {
  return [...wheel.slots.keys()].sort((one, other) => one - other);
}

export function wheelText(run, wheel, ms) {
  const came = Object.values(run.came).filter((times) => times.some((at) => at <= ms)).length;
  const clock = wheel.up ? `The slot of second ${wheel.read} is read next.` : "The broker is down.";
  return `${came} of ${Object.keys(run.came).length} reminders delivered. ${clock}`;
}

export function slotText(wheel, number) {
  const slot = wheel.slots.get(number);
  if (!slot) return `Slot ${number} is empty.`;
  const units = listOf(wheel, number);
  const chain = units.map((unit) => `${unit.position} ${unit.name} (${unit.kind})`).join(", then ");
  const lost = units.length ? chain : "nothing: the timer log has no such unit";
  return `Slot ${number}: first ${slot.first}, last ${slot.last}, num ${slot.num}. From the last: ${lost}.`;
}

export function resultText(run) {
  const times = Object.values(run.came);
  const lost = times.filter((each) => !each.length).length;
  const again = times.reduce((sum, each) => sum + Math.max(0, each.length - 1), 0);
  const recalled = run.recalled ? ` The recall was answered ${run.recalled}.` : "";
  return `${times.length - lost} of ${times.length} reminders delivered, ${again} of them again.${recalled}`;
}
