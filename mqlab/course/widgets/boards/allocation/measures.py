"""Numbers of a division: how fair it is, and how much a change of members moved compared with what it had to move.

    owners before   a a a b b b        c joins, AVG      a a b b c c      moved 3, fewest moves 2
    counts          a 3, b 3           difference 0      a 2, b 2, c 2    difference 0

Owners are one tuple of names per queue: empty when no member reads the queue, several when several members do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Owners = Sequence[tuple[str, ...]]


def counts_of(owners: Owners, members: Iterable[str]) -> dict[str, int]:
    """How many queues each member has; a member without queues counts with 0."""
    counts = dict.fromkeys(members, 0)
    for names in owners:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return counts


def difference(owners: Owners, members: Iterable[str]) -> int:
    """The largest count minus the smallest; 0 without members."""
    counts = counts_of(owners, members).values()
    return max(counts) - min(counts) if counts else 0


def moved(before: Owners, after: Owners) -> int:
    """How many queues have other owners than before."""
    return sum(old != new for old, new in zip(before, after, strict=True))


def fewest_moves(before: Owners, members: Sequence[str]) -> int:
    """The fewest queues that must change owner so that the members' counts differ by at most one.

    Only who owned the queues before counts: queues of members who left must move, and a member who joined needs its
    share. A strategy that moves fewer leaves an unfair division.

    >>> fewest_moves([("a",), ("a",), ("a",), ("b",), ("b",), ("b",)], ["a", "b", "c"])
    2
    """
    if not members:
        return sum(bool(names) for names in before)
    counts = dict.fromkeys(members, 0)
    for names in before:
        if len(names) == 1 and names[0] in counts:
            counts[names[0]] += 1
    # The members with the most queues keep the larger shares, so the most queues stay where they are.
    share, extra = divmod(len(before), len(members))
    largest_first = sorted(counts.values(), reverse=True)
    kept = sum(min(count, share + (rank < extra)) for rank, count in enumerate(largest_first))
    return len(before) - kept
