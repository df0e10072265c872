"""What must hold of the parts of a broker that no answer needs: dispatch, flushes, the files of its tables.

BLIND      a message was taken while messages that were stored long before stayed out of their queues
FAILED     a part has failed, or a broker takes no messages, long after every fault has ended
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqlab.lab.simulation.scene import ORDERS, STEPS
from mqlab.lab.world.lab import Lab

UNREADABLE_FOR_MS, READABLE_WITHIN_MS = 2_000, 1_500
ENDS = ("fault.killed", "fault.powered_off", "fault.start", "fault.slow_disk")
"""Steps after which a broker need not dispatch what it had stored: under SYNC_FLUSH it waits for a disk that hangs."""


def failed_parts(lab: Lab) -> Iterator[tuple[str, str]]:
    """What is wrong with the parts of the masters."""
    masters = [handle for handle in lab.handles.values() if handle.role == "broker"]
    for handle in masters:
        yield from _blind(lab, handle.name)
    for handle in masters if all(handle.is_up for handle in masters) else ():
        store = handle.node.store
        if store.failures:
            yield "FAILED", f"{handle.name}: {store.failures}"
        elif not store.admission.is_open:
            yield "FAILED", f"{handle.name} takes no messages: {store.admission!r}"


def _blind(lab: Lab, broker: str) -> Iterator[tuple[str, str]]:
    """Messages that a broker took although it had not dispatched for a while, and did not soon after."""
    stored: dict[tuple[str, int, int], int] = {}  # place of a message that is in no queue yet: when it was stored
    suspect: dict[tuple[str, int, int], int] = {}  # the same, once a later one was taken: when that was
    hangs_until_ms = 0
    for record in lab.journal:
        if record.node != broker:
            continue
        for spot in [spot for spot, at_ms in suspect.items() if record.now_ms - at_ms > READABLE_WITHIN_MS]:
            what = f"{broker} took a message at {suspect.pop(spot)} ms"
            yield "BLIND", f"{what}, and {spot} of {stored.pop(spot)} ms was in no queue long after"
        for change in record.changes:
            if change.kind in ENDS:
                stored, suspect = {}, {}
                hangs_until_ms = max(hangs_until_ms, record.now_ms + change.values.get("duration_ms", 0))
            elif change.kind == "message.dispatched":
                spot = _place(change.values)
                stored.pop(spot, None)
                suspect.pop(spot, None)
            elif change.kind == "message.stored" and change.values["topic"] in (ORDERS, STEPS):
                if record.now_ms <= hangs_until_ms:
                    continue
                for earlier, at_ms in stored.items():
                    if record.now_ms - at_ms > UNREADABLE_FOR_MS:
                        suspect.setdefault(earlier, record.now_ms)
                stored[_place(change.values)] = record.now_ms


def _place(values: dict[str, Any]) -> tuple[str, int, int]:
    return values["topic"], values["queue_id"], values["queue_offset"]
