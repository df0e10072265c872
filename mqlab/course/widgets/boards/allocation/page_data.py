"""The divisions that the board's page holds: owners of every queue for every set of members that it may be asked for.

    sets      every set of up to six known names, as bits; with more names those of the history and one change away
    owners    strategy ─▶ per set, per queue: its owners as bits; None where a learner's strategy fails
    ring      the hashes of the members' points and of the queues

So that a page without a kernel can let its members join and leave in any order, and one with a kernel need not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mqlab.course.widgets.boards.allocation.division import Dividing, hashed
from mqlab.errors import UsageError

VIRTUAL_NODES = (1, 2, 3, 5, 10, 20, 50, 100)
EVERY_SET_OF = 6  # names: 64 sets


def division_data(
    dividing: Dividing, known: Sequence[str], moments: Sequence[Sequence[str]], virtual_nodes: int
) -> dict[str, Any]:
    """JSON: queues, names, sets, owners and ring. ``moments`` are the members at each moment of the history."""
    bits = {name: 1 << index for index, name in enumerate(known)}
    sets = _sets(bits, moments)
    choices = sorted({*VIRTUAL_NODES, virtual_nodes})
    variants = [(name, name, 1) for name in dividing.names if name != "CONSISTENT_HASH"]
    variants += [(f"CONSISTENT_HASH {count}", "CONSISTENT_HASH", count) for count in choices]
    queues = dividing.queues.all()
    return {
        "queues": [[queue.topic, queue.broker_name, queue.queue_id] for queue in queues],
        "topics": dividing.queues.topics,
        "per_broker": dividing.queues.queues,
        "brokers": list(dividing.queues.brokers),
        "known": list(known),
        "rooms": [dividing.rooms.of_member[name] for name in known],
        "strategies": dividing.names,
        "virtual_nodes": choices,
        "sets": sets,
        "every_set": len(sets) == 1 << len(known),
        "owners": {key: _masks(dividing, name, nodes, sets, bits) for key, name, nodes in variants},
        "ring": {
            "members": [[hashed(f"{name}-{n}") for n in range(choices[-1])] for name in known],
            "queues": [hashed(str(queue)) for queue in queues],
        },
    }


def _sets(bits: dict[str, int], moments: Sequence[Sequence[str]]) -> list[int]:
    if len(bits) <= EVERY_SET_OF:
        return list(range(1 << len(bits)))
    of_moments = [sum(bits[name] for name in members) for members in moments]
    return sorted({*of_moments, *(moment ^ bit for moment in of_moments for bit in bits.values())})


def _masks(
    dividing: Dividing, name: str, nodes: int, sets: Sequence[int], bits: dict[str, int]
) -> list[list[int] | None]:
    masks: list[list[int] | None] = []
    for chosen in sets:
        members = [member for member, bit in bits.items() if chosen & bit]
        try:
            owners = dividing.owners(name, nodes, members)
        except UsageError:
            masks.append(None)
        else:
            masks.append([sum(bits[owner] for owner in names) for names in owners])
    return masks
