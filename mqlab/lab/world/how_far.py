"""How far a group has read each queue of a topic: what is finished, and the three places that remember an offset.

Mirrors: nothing that RocketMQ shows at one place. The member's memory is RemoteBrokerOffsetStore's table, the broker's
is ConsumerOffsetManager's, the file is consumerOffset.json.

    finished 0..4, 6   in a listener 5   pulled 7..9   not pulled 10..14
    memory 5           broker 5          file 0

Left out: broadcasting, whose members remember alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mqlab.lab.views.how_far import QueueStanding
from mqlab.lab.world.progress import QueueOffsets, progress_rows
from mqlab.lab.world.state import LabState
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.message import MessageQueue

FINISHED = ("CONSUME_SUCCESS", "RECONSUME_LATER", "SUCCESS", "COMMIT")


def standings(state: LabState, group: str, topic: str) -> list[QueueStanding]:
    """One standing per queue of the topic, of brokers that are up; empty when the group does not read the topic."""
    rows = [row for row in progress_rows(state, group) if row.topic == topic]
    return [_standing(state, group, row) for row in rows]


def _standing(state: LabState, group: str, row: QueueOffsets) -> QueueStanding:
    queue = MessageQueue(row.topic, row.broker, row.queue_id)
    finished, running = _worked_on(state, group, queue)
    broker = state.handles[row.broker]
    return QueueStanding(
        queue=queue,
        min_offset=broker.node.store.min_offset(row.topic, row.queue_id),
        max_offset=row.broker_offset,
        pulled=max(row.pull_offset, max((*finished, *running), default=-1) + 1),
        finished=frozenset(finished),
        running=frozenset(running - finished),
        in_memory=_in_memory(state, group, queue),
        at_broker=row.consumer_offset if row.consumer_offset >= 0 else None,
        in_file=_in_file(broker.node.store.directory, f"{row.topic}@{group}", row.queue_id),
    )


def _worked_on(state: LabState, group: str, queue: MessageQueue) -> tuple[set[int], set[int]]:
    """Offsets that a listener has finished in some life, and those that are in a listener now."""
    died_ms = _deaths(state)
    finished: set[int] = set()
    running: set[int] = set()
    for row in state.delivery_book.of(group):
        if row.message_queue != queue:
            continue
        if row.ended_ms is not None:
            running.discard(row.queue_offset)
            # A popped message is through with its queue when it is acknowledged, or stored again in its retry topic.
            done = row.status in FINISHED or row.acked_ms or row.revived_ms
            finished |= {row.queue_offset} if done else set()
        elif (row.started_ms or 0) >= died_ms.get(row.client, 0):
            running.add(row.queue_offset)
            # What is given again is not finished again yet.
            finished.discard(row.queue_offset)
    return finished, running


def _deaths(state: LabState) -> dict[str, int]:
    """When each node died last."""
    ends: Iterable[Any] = state.world.journal.of("fault")
    return {
        record.node: record.now_ms for record in ends if record.of("fault.killed") or record.of("fault.powered_off")
    }


def _in_memory(state: LabState, group: str, queue: MessageQueue) -> int | None:
    """The offset in the memory of the member that owns the queue; None without an owner, or when it has none yet."""
    members: Sequence[Any] = [handle for handle in state.handles.values() if handle.role == "consumer" and handle.is_up]
    for handle in members:
        if handle.node.group == group and queue in handle.node.process_queues:
            offset = int(handle.node.offset_store.read_memory(queue))
            return offset if offset >= 0 else None
    return None


def _in_file(directory: str, key: str, queue_id: int) -> int | None:
    """The offset in the broker's file; None when it is not there."""
    path = Path(directory) / "config" / "consumerOffset.json"
    if not path.exists():
        return None
    queues = java_json.table(java_json.loads(path.read_text("utf-8")), "offsetTable").get(key, {})
    return next(
        (java_json.to_long(offset) for name, offset in queues.items() if java_json.to_int(name) == queue_id), None
    )
