// What is counted of the divisions in an allocation board's data; mqlab/course/widgets/boards/allocation/measures.py counts the same.
// A set of members is a number: bit n is known[n]. The owners of a queue are such a set, too.
export function count(owners, place) {
  return owners.filter((mask) => mask & (1 << place)).length;
}

class Divisions {
  constructor(data) {
    Object.assign(this, { data });
    this.readData();
  }

  readData() {
    this.places = new Map(this.data.known.map((name, place) => [name, 1 << place]));
    this.at = new Map(this.data.sets.map((set, number) => [set, number]));
    this.start = this.data.first.reduce((set, name) => set | this.places.get(name), 0);
  }

  members(set) {
    return this.data.known.map((_, place) => place).filter((place) => set & (1 << place));
  }

  // The set of members at each moment; null for a change that cannot happen or a name that is not known.
  moments(changes) {
    const sets = [this.start];
    for (const [kind, name, other] of changes) {
      let now = sets.at(-1);
      if (kind !== "join") now = now & this.places.get(name) ? now & ~this.places.get(name) : null;
      if (kind !== "leave" && now !== null) {
        const bit = this.places.get(kind === "join" ? name : other);
        now = bit && !(now & bit) ? now | bit : null;
      }
      if (now === null) return null;
      sets.push(now);
    }
    return sets;
  }

  knows(changes) {
    const sets = this.moments(changes);
    return Boolean(sets) && sets.every((set) => this.at.has(set));
  }

  // What a learner is told about a last change that cannot happen; null when it can.
  impossible(changes) {
    const before = this.moments(changes.slice(0, -1));
    if (!changes.length || !before) return null;
    const [kind, ...who] = changes.at(-1);
    const name = who.at(-1);
    if (kind === "leave") return null;
    if (!name) return "A member needs a name.";
    return before.at(-1) & this.places.get(name) ? `${name} is a member already.` : null;
  }

  difference(owners, set) {
    const counts = this.members(set).map((place) => count(owners, place));
    return counts.length ? Math.max(...counts) - Math.min(...counts) : 0;
  }

  // The fewest queues that must change owner for counts that differ by at most one.
  fewestMoves(before, set) {
    if (!set) return before.filter((mask) => mask).length;
    const counts = this.members(set).map((place) => before.filter((mask) => mask === 1 << place).length);
    const [each, extra] = [Math.floor(before.length / counts.length), before.length % counts.length];
    counts.sort((one, other) => other - one);
    return before.length - counts.reduce((kept, own, place) => kept + Math.min(own, each + (place < extra ? 1 : 0)), 0);
  }

  // Per moment: owners, difference, moved and fewest; owners is null where a learner's own strategy fails.
  measured(key, sets) {
    const perTopic = this.data.queues.length / this.data.topics;
    let before = null;
    return sets.map((set, number) => {
      const owners = this.data.owners[key]?.[this.at.get(set)] ?? null;
      const step = { owners, difference: owners ? this.difference(owners, set) : 0, moved: 0, fewest: 0 };
      if (number && owners && before) {
        step.moved = owners.filter((mask, queue) => mask !== before[queue]).length;
        for (let first = 0; first < owners.length; first += perTopic) {
          step.fewest += this.fewestMoves(before.slice(first, first + perTopic), set);
        }
      }
      before = owners;
      return step;
    });
  }
}

export function divisions(options) {
  return new Divisions(options);
}
