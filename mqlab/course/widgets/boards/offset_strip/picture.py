"""The queue of the offset strip at one moment, as JSON for its page and rows for its tables.

    stage      "stored" (in the log, not pulled)   "cached" (in the ProcessQueue, no thread yet)   "running" (in a call)
               "finished" (in this life)           "earlier" (in an earlier life, not read again)  "sent back"
    again      finished in an earlier life, and this life reads it again

All offsets are those of the next message to read, as RocketMQ keeps them.
"""

from __future__ import annotations

from typing import Any

from mqlab.course.widgets.boards.offset_strip.actions import BROKER_PERSIST, CLIENT_PERSIST, QUEUE, OffsetLab

LIMITS = ("count", "size", "span")


def picture(world: OffsetLab) -> dict[str, Any]:
    """Everything the page shows of this moment."""
    queue, finished, first_read = world.process_queue, world.finished(), world.lives[-1]
    messages = range(world.settings.messages)
    again = [
        offset
        for offset in messages
        if offset >= first_read and any(end < world.began_ms for end in finished.get(offset, ()))
    ]
    memory, table, saved = world.offsets()
    parked = world.consumer.node.pull_loop.parked.get(QUEUE)
    return {
        "now_ms": world.lab.now_ms,
        "stages": _stages(world, finished),
        "again": again,
        "batches": sorted({world.batches[offset] for offset in world.waiting}),
        "life": len(world.lives),
        "first_read": first_read,
        "pulled": world.pulled,
        "memory": memory,
        "broker": table,
        "file": saved,
        "first_cached": None if queue is None else queue.msg_tree_map.first_offset(),
        "last_cached": None if queue is None else queue.msg_tree_map.last_offset(),
        "count": 0 if queue is None else queue.msg_count,
        "bytes": 0 if queue is None else queue.msg_size,
        "size": 0 if queue is None else queue.msg_size_mib,
        "span": 0 if queue is None else queue.max_span(),
        "held_by": parked.reason if parked is not None and parked.reason in LIMITS else "",
        "persist_in_ms": world.due_ms(CLIENT_PERSIST),
        "save_in_ms": world.due_ms(BROKER_PERSIST),
    }


def _stages(world: OffsetLab, finished: dict[int, list[int]]) -> list[str]:
    queue = world.process_queue
    stages = []
    for offset in range(world.settings.messages):
        if offset in world.expired:
            stage = "sent back"
        elif offset in world.waiting:
            stage = "running"
        elif queue is not None and offset in queue.msg_tree_map:
            stage = "cached"
        elif any(end >= world.began_ms for end in finished.get(offset, ())):
            stage = "finished"
        else:
            stage = "earlier" if offset < world.lives[-1] else "stored"
        stages.append(stage)
    return stages
