"""Resets of a group's offsets, with a dry run: what would be read again, what would be skipped, and warnings.

Mirrors: mqadmin resetOffsetByTime, skipAccumulatedMessage; request 222. RocketMQ has no dry run.

    queue  consumer_offset  target_offset   again (target < consumer)   skipped (target > consumer)   is_cold
    warnings: members are online · messages come from disk, 8 per pull · the whole log would be read again

Left out: the older reset by the members (useServerSideResetOffset=false); the broker's setting selects it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqlab.errors import BrokerError, UsageError
from mqlab.rocketmq.admin.brokers import get_broker_config
from mqlab.rocketmq.admin.connections import online_members
from mqlab.rocketmq.admin.groups import groups_at, stats_of_group
from mqlab.rocketmq.admin.messages import PULL_NUMS, pull_messages
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.admin.steps import at_each
from mqlab.rocketmq.admin.topics import examine_topic_stats
from mqlab.rocketmq.answers import Shown
from mqlab.rocketmq.wire.body import queue_from_key
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.java_json import to_long
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.record import decode_all

LATEST = -1
TO_THE_END = "end"


@dataclass(frozen=True, slots=True)
class QueueReset:
    """One queue of a plan. Offsets are next-to-read; ``is_cold``: reading begins on disk (None: nothing to read)."""

    message_queue: MessageQueue
    min_offset: int
    max_offset: int
    consumer_offset: int
    target_offset: int
    again: int
    skipped: int
    is_cold: bool | None


@dataclass(frozen=True, slots=True)
class ResetPlan(Shown):
    """The effect of a reset of a group on a topic, and whether it was applied."""

    group: str
    topic: str
    queues: tuple[QueueReset, ...]
    warnings: tuple[str, ...]
    applied: bool

    @property
    def again(self) -> int:
        """How many messages are read again."""
        return sum(queue.again for queue in self.queues)

    @property
    def skipped(self) -> int:
        """How many messages are never read."""
        return sum(queue.skipped for queue in self.queues)

    def shown_rows(self) -> Sequence[QueueReset]:
        return self.queues

    def shown_title(self) -> str:
        return f"{'reset' if self.applied else 'dry run: reset'} of {self.group} on {self.topic}"

    def shown_notes(self) -> Sequence[str]:
        counted = f"read again: {self.again}  skipped: {self.skipped}"
        return [counted, *(f"beware: {warning}" for warning in self.warnings)]


def reset_offset_by_timestamp(
    admin: AdminNode, topic: str, group: str, timestamp_ms: int | str, *, dry_run: bool = False, force: bool = True
) -> ResetPlan:
    """Set a group on every queue to the first message stored at or after a time (ms; "now"; below 0: the end).

    ``dry_run`` changes nothing. BrokerError with code 26 for a group that no broker has, 17 for an unknown topic.
    """
    at_ms = _moment(admin, timestamp_ms)
    plan = _plan(admin, topic, group, at_ms)
    if dry_run:
        return plan
    # Each broker resets its own queues and answers with the offsets that it has set.
    applied: dict[MessageQueue, int] = {}

    def change(address: str) -> None:
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        answer = admin.ask_value(address, code, topic=topic, group=group, timestamp=at_ms, isForce=force)
        applied.update({queue_from_key(key): to_long(to) for key, to in (answer.get("offsetTable") or {}).items()})

    at_each("reset_offset_by_timestamp", admin.brokers_of(topic), change)
    rows = [_moved(row, applied[row.message_queue]) for row in plan.queues if row.message_queue in applied]
    return ResetPlan(group, topic, tuple(rows), plan.warnings, applied=True)


def skip_accumulated_message(admin: AdminNode, topic: str, group: str, *, dry_run: bool = False) -> ResetPlan:
    """Set a group to the end of every queue, so that it skips everything it has not read yet."""
    return reset_offset_by_timestamp(admin, topic, group, LATEST, dry_run=dry_run)


def reset_offset_of_queue(
    admin: AdminNode, topic: str, group: str, broker: str, queue_id: int, queue_offset: int
) -> int:
    """Set a group on one queue to an offset within its range (also to 0, which mqadmin silently ignores)."""
    _, address = admin.brokers(broker)[0]
    answer = admin.ask_value(
        address,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        topic=topic,
        group=group,
        timestamp=LATEST,
        isForce=True,
        queueId=queue_id,
        offset=queue_offset,
    )
    return next(to_long(offset) for offset in answer["offsetTable"].values())


def _moment(admin: AdminNode, timestamp_ms: int | str) -> int:
    if timestamp_ms == "now":
        return admin.ports.clock.now_ms()
    if not isinstance(timestamp_ms, int):
        raise UsageError(f"{timestamp_ms!r} is not a time", hint='ms since the epoch, "now", or -1 for the end')
    return timestamp_ms


def _plan(admin: AdminNode, topic: str, group: str, at_ms: int) -> ResetPlan:
    # 1. Every broker of the topic must have the group, as for the reset itself.
    for _, address in admin.brokers_of(topic):
        if group not in groups_at(admin, address):
            no_such = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            raise BrokerError(no_such, f"Group {group} does not exist", address=address)
    # 2. The present offset and the target of every queue; the effect follows from the two.
    address_of = dict(admin.brokers_of(topic))
    confirmed = {row.message_queue: row.consumer_offset for row in stats_of_group(admin, group, topic).queues}
    rows = []
    for stats in examine_topic_stats(admin, topic):
        queue, address = stats.message_queue, address_of[stats.message_queue.broker_name]
        target = stats.max_offset
        if at_ms >= 0:
            target = _search(admin, address, queue, at_ms)
        row = QueueReset(queue, stats.min_offset, stats.max_offset, confirmed.get(queue, 0), 0, 0, 0, None)
        moved = _moved(row, target)
        is_cold = _is_cold(admin, moved, address) if target < stats.max_offset else None
        rows.append(_moved(row, target, is_cold))
    return ResetPlan(group, topic, tuple(rows), tuple(_warnings(admin, group, rows)), applied=False)


def _search(admin: AdminNode, address: str, queue: MessageQueue, at_ms: int) -> int:
    return admin.wait(lambda: admin.calls.search_offset(address, queue, at_ms, admin.timeout_ms))


def _is_cold(admin: AdminNode, row: QueueReset, address: str) -> bool:
    """Whether reading begins on disk: a broker does not report it, but answers such a pull with fewer messages."""
    first = max(row.target_offset, row.min_offset)
    answer = pull_messages(admin, row.message_queue, address, first, PULL_NUMS)
    got = decode_all(answer.body)
    wanted = min(PULL_NUMS, row.max_offset - first)
    limits = get_broker_config(admin, row.message_queue.broker_name)
    in_memory_bytes = to_long(limits["maxTransferBytesOnMessageInMemory"])
    # A pull may also be short because its bytes reached the limit: this says nothing about the disk.
    fits = bool(got) and len(answer.body) + max(record.total_size for record in got) <= in_memory_bytes
    return len(got) < min(wanted, to_long(limits["maxTransferCountOnMessageInMemory"])) and fits


def _warnings(admin: AdminNode, group: str, rows: Sequence[QueueReset]) -> list[str]:
    warnings = []
    members = online_members(admin, group)
    if members:
        listed = ", ".join(member.client_id for member in members)
        warnings.append(
            f"the group is live ({listed}): cached messages are dropped, it takes up to 20 s to reset every queue, "
            "and results of running listeners are discarded"
        )
    cold = [row.message_queue for row in rows if row.is_cold]
    if cold:
        warnings.append(f"cold reads: {len(cold)} of {len(rows)} queues begin on disk, with fewer messages per pull")
    stored = sum(row.max_offset - row.min_offset for row in rows)
    # Easily done by mistake: a time before the oldest message of every queue.
    if stored and all(row.target_offset <= row.min_offset for row in rows):
        warnings.append(f"the whole log of the topic would be read: {stored} messages")
    return warnings


def _moved(row: QueueReset, target: int, is_cold: bool | None = None) -> QueueReset:
    """The row with a target; deleted messages and future ones are neither read again nor skipped."""
    reached, goal = (min(max(offset, row.min_offset), row.max_offset) for offset in (row.consumer_offset, target))
    again, skipped = max(reached - goal, 0), max(goal - reached, 0)
    places = row.message_queue, row.min_offset, row.max_offset, row.consumer_offset
    return QueueReset(*places, target, again, skipped, row.is_cold if is_cold is None else is_cold)
