"""Revival: what was not acknowledged when its lease ended goes to the group's retry topic.

Mirrors: PopReviveService, one of them per revive queue.

    revive queue    ck 5 ─ ck 6 ─ ack 5 ─ ck 7 ─ ack 7 …          each comes about when its lease ends
    a check point   is settled when messages of 2 s later have been read, or when 3 s have passed since the last one
                    whatever of it has no ack is put to the retry topic, reconsumeTimes + 1
    committed       the place of the last settled check point (not the next one)

So a message comes back 2 to 5 s after its lease. RocketMQ reads its queue every second, and every 100 ms while
something waits; here the next moment at which a check point is settled is one deadline.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.pop.revive_log import ReviveLog
from mqlab.rocketmq.broker.putting import STORED_CODES, Putter
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.java_hash import hash_map_order
from mqlab.rocketmq.wire.java_numbers import long_or, parse_int
from mqlab.rocketmq.wire.names import RETRY_PREFIX
from mqlab.rocketmq.wire.pop import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CK_TAG,
    RETRY_V2,
    REVIVE_GROUP,
    Ack,
    CheckPoint,
    kind_of_topic,
    normal_topic,
    pop_retry_topic,
)
from mqlab.rocketmq.wire.properties import PARSED_MAP_CAPACITY, encode
from mqlab.rocketmq.wire.record import Record

LOOK_MS = 100
SETTLED_AFTER_MS = 2_000
QUIET_AFTER_MS = 3_000
BEHIND_MS = 1_000
PUT_AGAIN_S = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)


Written = TypeVar("Written", CheckPoint, Ack)


@dataclass(slots=True)
class ReviveQueue:
    """What of one revive queue was read and is not settled. ``end_ms``: the latest delivery time read, 0 for none."""

    queue_id: int
    next_offset: int = -1
    points: dict[str, CheckPoint] = field(default_factory=dict)
    acked: dict[str, int] = field(default_factory=dict)
    end_ms: int = 0
    deadline: Deadline | None = None


class Reviving:
    """Reads the revive topic of one broker. A slave does not revive."""

    def __init__(self, state: BrokerState, putter: Putter, revive_log: ReviveLog) -> None:
        self._state = state
        self._putter = putter
        self._revive_log = revive_log
        self._origin_ms = 0
        self._queues = [ReviveQueue(queue_id) for queue_id in range(state.config.revive_queue_num)]

    def start(self) -> None:
        """Begin after the last settled check point."""
        self._origin_ms = self._state.now_ms()
        for queue in self._queues:
            if self._end_of(queue) > 0:
                self._arm(queue, self._origin_ms + self._state.config.revive_interval)

    def stop(self) -> None:
        """Revive nothing more."""
        for queue in self._queues:
            if queue.deadline is not None:
                queue.deadline.cancel()
                queue.deadline = None

    def arrived(self, queue_id: int) -> None:
        """A check point or an ack came to the revive topic."""
        if self._origin_ms and queue_id < len(self._queues):
            queue = self._queues[queue_id]
            if queue.deadline is None:
                self._arm(queue, self._state.now_ms())
            elif queue.points:
                self._arm(queue, min(queue.deadline.due_ms, self._first_settled_ms(queue)))

    def waiting(self) -> list[tuple[CheckPoint, int]]:
        """Check points that are not settled, with the bits of their acks so far."""
        return [(point, queue.acked.get(key, 0)) for queue in self._queues for key, point in queue.points.items()]

    def _end_of(self, queue: ReviveQueue) -> int:
        return self._state.store.max_offset(self._revive_log.topic, queue.queue_id)

    def _arm(self, queue: ReviveQueue, earliest_ms: int) -> None:
        due_ms = next_on_grid(max(earliest_ms, self._state.now_ms() + 1), LOOK_MS, self._origin_ms)
        if queue.deadline is not None:
            if queue.deadline.due_ms == due_ms:
                return
            queue.deadline.cancel()
        queue.deadline = self._state.ports.clock.call_at(due_ms, lambda: self._look(queue), "pop.revive")

    def _look(self, queue: ReviveQueue) -> None:
        queue.deadline = None
        self._read(queue)
        end_ms, now_ms = queue.end_ms, self._state.now_ms()
        if end_ms and now_ms - end_ms > QUIET_AFTER_MS and self._timer_keeps_up():
            end_ms = now_ms
        settled = None
        for key, point in sorted(queue.points.items(), key=lambda item: item[1].revive_offset):
            if end_ms - point.revive_time <= SETTLED_AFTER_MS:
                break
            self._settle(point, queue.acked.pop(key, 0))
            del queue.points[key]
            settled = point.revive_offset
        if settled is not None:
            self._state.offset_table.commit(REVIVE_GROUP, self._revive_log.topic, queue.queue_id, settled)
        if queue.points:
            self._arm(queue, self._first_settled_ms(queue))
        elif settled is not None:
            queue.end_ms = 0

    def _timer_keeps_up(self) -> bool:
        """Whether acks that are due have come; while the timer is behind, nothing may be called missing."""
        timer = self._state.timer
        return timer is not None and timer.behind_ms() < BEHIND_MS and timer.state.enqueue_behind() == 0

    def _first_settled_ms(self, queue: ReviveQueue) -> int:
        """The first moment at which the oldest check point can be settled."""
        oldest = min(queue.points.values(), key=lambda point: point.revive_offset)
        after_ms = oldest.revive_time + SETTLED_AFTER_MS + 1
        if queue.end_ms >= after_ms or self._latest_delivery(queue) >= after_ms:
            return after_ms
        return max(after_ms, queue.end_ms + QUIET_AFTER_MS + 1)

    def _latest_delivery(self, queue: ReviveQueue) -> int:
        """The delivery time of the newest message of the queue, which may not be read yet."""
        record = self._message(queue.queue_id, self._end_of(queue) - 1)
        return _deliver_ms(record) if record is not None else 0

    def _read(self, queue: ReviveQueue) -> None:
        """Read what came since the last look."""
        table, store = self._state.offset_table, self._state.store
        if queue.next_offset < 0:
            queue.next_offset = table.query(REVIVE_GROUP, self._revive_log.topic, queue.queue_id) + 1
        queue.next_offset = max(queue.next_offset, store.min_offset(self._revive_log.topic, queue.queue_id))
        for offset in range(queue.next_offset, self._end_of(queue)):
            queue.next_offset = offset + 1
            record = self._message(queue.queue_id, offset)
            if record is not None:
                self._take(queue, record, offset)

    def _message(self, queue_id: int, offset: int) -> Record | None:
        unit = self._state.store.consume_queue_unit(self._revive_log.topic, queue_id, offset) if offset >= 0 else None
        return self._state.store.message_at(unit.physical_offset) if unit is not None else None

    def _take(self, queue: ReviveQueue, record: Record, offset: int) -> None:
        tag = record.property_map.get(p.TAGS)
        try:
            if tag == CK_TAG:
                point = self._named(CheckPoint.decode(record.body)).at(offset)
                queue.points[point.merge_key] = point
            elif tag in (ACK_TAG, BATCH_ACK_TAG):
                ack = self._named(Ack.decode(record.body))
                known = queue.points.get(ack.merge_key)
                for acknowledged in ack.acknowledged if known is not None else ():
                    index = known.index_of(acknowledged) if known is not None else -1
                    if index >= 0:
                        queue.acked[ack.merge_key] = queue.acked.get(ack.merge_key, 0) | 1 << index
        except CorruptionError as error:
            self._state.ports.note("pop.problem", queue_id=queue.queue_id, queue_offset=offset, reason=error.text)
        queue.end_ms = max(queue.end_ms, _deliver_ms(record))

    def _named(self, written: Written) -> Written:
        """A check point or an ack without a broker's name is this broker's."""
        return written if written.broker_name else replace(written, broker_name=self._state.config.broker_name)

    def _settle(self, point: CheckPoint, acked: int) -> None:
        """Put every message without an ack to the retry topic. Mirrors reviveMsgFromCk."""
        state = self._state
        if state.topics.get(normal_topic(point.topic, point.group)) is None or state.groups.get(point.group) is None:
            return
        for index in range(point.count):
            if acked >> index & 1:
                continue
            offset = point.offset_of(index)
            unit = state.store.consume_queue_unit(point.topic, point.queue_id, offset)
            record = state.store.message_at(unit.physical_offset) if unit is not None else None
            if record is None:
                continue
            if not self._revive(point, record):
                self._put_again(point, offset)

    def _revive(self, point: CheckPoint, record: Record) -> bool:
        state, group = self._state, point.group
        retry = point.topic
        if not retry.startswith(RETRY_PREFIX):
            retry = pop_retry_topic(retry, group, v2=state.config.enable_retry_topic_v2)
        if state.topics.get(retry) is None:
            state.topics.create_on_send_back(retry, 1)
            if state.offset_table.query(group, retry, 0) < 0:
                state.offset_table.commit(group, retry, 0, 0)
        host = state.identity.store_host
        properties, capacity = _revived_properties(record, point.pop_time)
        result = self._putter.put_again(
            record.changed(
                topic=retry,
                queue_id=0,
                born_host=host,
                store_host=host,
                reconsume_times=record.reconsume_times + 1,
                properties=properties,
                prepared_transaction_offset=0,
                magic=None,
            ),
            capacity,
        )
        if result.status not in STORED_CODES:
            return False
        state.ports.note(
            "message.revived",
            group=group,
            topic=retry,
            queue_id=0,
            queue_offset=result.queue_offset,
            msg_id=record.property_map.get(p.UNIQ_KEY),
            reconsume_times=record.reconsume_times + 1,
            popped_from=point.topic,
            popped_queue=point.queue_id,
            popped_offset=record.queue_offset,
            pop_time=point.pop_time,
            is_v2=kind_of_topic(retry) == RETRY_V2,
        )
        return True

    def _put_again(self, point: CheckPoint, offset: int) -> None:
        """A message could not be put: a check point of its own comes again later. Mirrors rePutCK."""
        times = parse_int(point.put_again or "0")
        wait_s = PUT_AGAIN_S[min(times, len(PUT_AGAIN_S) - 1)]
        left = replace(
            point,
            start_offset=offset,
            count=1,
            distances=(0,),
            pop_time=self._state.now_ms(),
            invisible_time=wait_s * 1000,
            put_again=str(times + 1),
            revive_offset=0,
        )
        self._revive_log.put_check_point(left, point.revive_offset % self._state.config.revive_queue_num)


def _deliver_ms(record: Record) -> int:
    return long_or(record.property_map.get(p.TIMER_DELIVER_MS), 0)


def _revived_properties(record: Record, pop_time: int) -> tuple[bytes, int]:
    """The properties of a revived message in the order of the small Java map they are copied into, and its capacity."""
    before = dict(record.property_map)
    names = hash_map_order(before, PARSED_MAP_CAPACITY)
    capacity = 1
    if p.TAGS in before:
        names.remove(p.TAGS)
        names.insert(0, p.TAGS)
        capacity = 16
    while capacity < len(names) * 4 // 3 + 1:
        capacity *= 2
    if record.reconsume_times == 0 or p.FIRST_POP_TIME not in before:
        before[p.FIRST_POP_TIME] = str(pop_time)
        names = [*(name for name in names if name != p.FIRST_POP_TIME), p.FIRST_POP_TIME]
    return encode({name: before[name] for name in hash_map_order(names, capacity)}), capacity
