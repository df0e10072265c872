// What is counted of the divisions in an allocation board's data; mqlab/course/widgets/boards/allocation/measures.py counts the same.
// A set of members is a number: bit n is known[n]. The owners of a queue are such a set, too.
export function divisions(data) {
  const places = new Map(data.known.map((name, place) => [name, 1 << place]));
  const at = new Map(data.sets.map((set, number) => [set, number]));
  const members = (set) => data.known.map((_, place) => place).filter((place) => set & (1 << place));
  const start = data.first.reduce((set, name) => set | places.get(name), 0);

  // The set of members at each moment; null for a change that cannot happen or a name that is not known.
  function moments(changes) {
    const sets = [start];
    for (const [kind, name, other] of changes) {
      let now = sets.at(-1);
      if (kind !== "join") now = now & places.get(name) ? now & ~places.get(name) : null;
      if (kind !== "leave" && now !== null) {
        const bit = places.get(kind === "join" ? name : other);
        now = bit && !(now & bit) ? now | bit : null;
      }
      if (now === null) return null;
      sets.push(now);
    }
    return sets;
  }

  function knows(changes) {
    const sets = moments(changes);
    return Boolean(sets) && sets.every((set) => at.has(set));
  }

  // What a learner is told about a last change that cannot happen; null when it can.
  function impossible(changes) {
    const before = moments(changes.slice(0, -1));
    if (!changes.length || !before) return null;
    const [kind, ...who] = changes.at(-1);
    const name = who.at(-1);
    if (kind === "leave") return null;
    if (!name) return "A member needs a name.";
    return before.at(-1) & places.get(name) ? `${name} is a member already.` : null;
  }

  const count = (owners, place) => owners.filter((mask) => mask & (1 << place)).length;

  function difference(owners, set) {
    const counts = members(set).map((place) => count(owners, place));
    return counts.length ? Math.max(...counts) - Math.min(...counts) : 0;
  }

  // The fewest queues that must change owner for counts that differ by at most one.
  function fewestMoves(before, set) {
    if (!set) return before.filter((mask) => mask).length;
    const counts = members(set).map((place) => before.filter((mask) => mask === 1 << place).length);
    const [each, extra] = [Math.floor(before.length / counts.length), before.length % counts.length];
    counts.sort((one, other) => other - one);
    return before.length - counts.reduce((kept, own, place) => kept + Math.min(own, each + (place < extra ? 1 : 0)), 0);
  }

  // Per moment: owners, difference, moved and fewest; owners is null where a learner's own strategy fails.
  function measured(key, sets) {
    const perTopic = data.queues.length / data.topics;
    let before = null;
    return sets.map((set, number) => {
      const owners = data.owners[key]?.[at.get(set)] ?? null;
      const step = { owners, difference: owners ? difference(owners, set) : 0, moved: 0, fewest: 0 };
      if (number && owners && before) {
        step.moved = owners.filter((mask, queue) => mask !== before[queue]).length;
        for (let first = 0; first < owners.length; first += perTopic) {
          step.fewest += fewestMoves(before.slice(first, first + perTopic), set);
        }
      }
      before = owners;
      return step;
    });
  }

  return { members, moments, knows, impossible, count, measured };
}
