"""Which pops of a queue are not settled yet, in their order: they decide the committed offset, and may wait in memory.

Mirrors: PopBufferMergeService.

    merge off (default)   a check point is stored before the answer, and the offset moves on within 5 ms
    merge on              it stays in memory; all acknowledged: it is dropped, and nothing was ever stored
                          10 s after the pop, or less than 3 s before its time: it is stored, with its acks so far

    topic@group@queue     FIFO of pops; the head leaves when it is stored or all acknowledged, and its end is committed

RocketMQ scans every 5 ms; here the next moment at which a scan would find something is one deadline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from mqlab.rocketmq.broker.pop.revive_log import ReviveLog
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.wire.pop import Ack, CheckPoint

SCAN_MS = 5
RETRY_SCAN_MS = 100  # how soon a check point that the store refused is put again
SPARE_MS = 1_500


@dataclass(slots=True, eq=False)
class BufferedPop:
    """One pop of one queue. ``acked`` and ``stored_acks`` are bits by the index of its messages."""

    check_point: CheckPoint
    revive_queue: int
    next_begin_offset: int
    only_offset: bool  # its check point is stored with the pop, acks do not come here
    is_stored: bool = False
    acked: int = 0
    stored_acks: int = 0

    @property
    def lock_key(self) -> str:
        """The queue it belongs to."""
        return queue_key(self.check_point.topic, self.check_point.group, self.check_point.queue_id)

    @property
    def all_acked(self) -> bool:
        """Whether nothing of it is left to do. Mirrors isCkDone."""
        return self.acked.bit_count() == self.check_point.count

    @property
    def is_settled(self) -> bool:
        """Whether its end may be committed."""
        return self.all_acked or (self.is_stored and (self.only_offset or self.acked == self.stored_acks))


@dataclass(slots=True)
class PopBuffer:
    """The unsettled pops of one broker."""

    state: BrokerState
    revive_log: ReviveLog
    _by_key: dict[str, BufferedPop] = field(default_factory=dict)
    _queues: dict[str, deque[BufferedPop]] = field(default_factory=dict)
    _deadline: Deadline | None = None
    _origin_ms: int = 0

    def add(self, check_point: CheckPoint, revive_queue: int, next_begin_offset: int) -> bool:
        """Remember a pop; False when its messages must not be given out. Mirrors addCk and addCkJustOffset."""
        if self._full(check_point):
            return False
        pop = BufferedPop(check_point, revive_queue, next_begin_offset, only_offset=not self._may_wait(check_point))
        if pop.only_offset:
            if check_point.merge_key in self._by_key:
                return False
            pop.is_stored = self.revive_log.put_check_point(check_point, revive_queue)
        if self.state.identity.is_slave:
            return True  # a slave stores nothing, and gives the same messages again
        self._by_key[check_point.merge_key] = pop
        self._append(pop)
        return True

    def add_offset(self, check_point: CheckPoint, revive_queue: int, next_begin_offset: int) -> None:
        """Remember that nothing of a stretch was given out; its check point has no messages. Mirrors addCkMock."""
        if not self.state.identity.is_slave:
            self._append(BufferedPop(check_point, revive_queue, next_begin_offset, only_offset=True, is_stored=True))

    def acknowledge(self, ack: Ack) -> bool:
        """Note an ack in memory; False when it must be stored. Mirrors addAk."""
        config, pop = self.state.config, self._by_key.get(ack.merge_key)
        if not config.enable_pop_buffer_merge or pop is None or pop.only_offset:
            return False
        now_ms, check_point = self.state.now_ms(), pop.check_point
        if check_point.revive_time - now_ms < config.pop_ck_stay_buffer_time_out + SPARE_MS:
            return False
        if now_ms - check_point.pop_time > config.pop_ck_stay_buffer_time - SPARE_MS:
            return False
        for queue_offset in ack.acknowledged:
            index = check_point.index_of(queue_offset)
            if index >= 0:
                pop.acked |= 1 << index
        self._arm()
        return True

    def latest_offset(self, key: str) -> int:
        """Where the next pop of a queue begins, by the last one; -1 when all are settled."""
        queue = self._queues.get(key)
        return queue[-1].next_begin_offset if queue else -1

    def clear(self, key: str) -> None:
        """An operator has moved the group: what was given out before does not count. Mirrors clearOffsetQueue."""
        self._queues.pop(key, None)

    def pops(self) -> Iterator[BufferedPop]:
        """Those that are not settled."""
        for queue in self._queues.values():
            yield from queue

    def start(self) -> None:
        """The scans count from here."""
        self._origin_ms = self.state.now_ms()

    def stop(self) -> None:
        """The broker stops: everything in memory is stored."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        for pop in list(self.pops()):
            self._store(pop)
        self._commit()

    def _full(self, check_point: CheckPoint) -> bool:
        queue = self._queues.get(queue_key(check_point.topic, check_point.group, check_point.queue_id), ())
        return len(queue) >= self.state.config.pop_ck_offset_max_queue_size

    def _may_wait(self, check_point: CheckPoint) -> bool:
        config = self.state.config
        left_ms = check_point.revive_time - self.state.now_ms()
        return (
            config.enable_pop_buffer_merge
            and not self.state.identity.is_slave
            and left_ms >= config.pop_ck_stay_buffer_time_out + SPARE_MS
            and len(self._by_key) <= config.pop_ck_max_buffer_size
        )

    def _append(self, pop: BufferedPop) -> None:
        self._queues.setdefault(pop.lock_key, deque()).append(pop)
        self._arm()

    def _leaves_memory_ms(self, pop: BufferedPop) -> int:
        """The first moment at which a check point in memory is stored."""
        config, check_point = self.state.config, pop.check_point
        too_long = check_point.pop_time + config.pop_ck_stay_buffer_time + 1
        return min(too_long, check_point.revive_time - config.pop_ck_stay_buffer_time_out + 1)

    def _arm(self) -> None:
        """Arm the next scan that would find something."""
        now_ms = self.state.now_ms()
        due: list[int] = []
        for queue in self._queues.values():
            if queue[0].is_settled:
                due.append(now_ms + 1)
        for pop in self._by_key.values():
            if pop.only_offset and not pop.is_stored:
                due.append(now_ms + RETRY_SCAN_MS)
            elif not pop.only_offset and not pop.all_acked and not (pop.is_stored and pop.acked == pop.stored_acks):
                due.append(max(now_ms + 1, self._leaves_memory_ms(pop)))
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if due and self.state.is_running:
            due_ms = next_on_grid(min(due), SCAN_MS, self._origin_ms)
            self._deadline = self.state.ports.clock.call_at(due_ms, self._scan, "pop.scan")

    def _scan(self) -> None:
        self._deadline = None
        now_ms = self.state.now_ms()
        for key, pop in list(self._by_key.items()):
            if not pop.all_acked and (pop.only_offset or now_ms >= self._leaves_memory_ms(pop)):
                self._store(pop)
            if pop.is_settled:
                del self._by_key[key]
        self._commit()
        self._arm()

    def _store(self, pop: BufferedPop) -> None:
        """Store a check point that is not stored yet, and the acks that came to it."""
        if pop.all_acked:
            return
        if not pop.is_stored:
            pop.is_stored = self.revive_log.put_check_point(pop.check_point, pop.revive_queue)
        if not pop.is_stored or pop.only_offset:
            return
        fresh = [index for index in range(pop.check_point.count) if (pop.acked & ~pop.stored_acks) >> index & 1]
        if self.state.config.enable_pop_batch_ack:
            if fresh and self._put_ack(pop, fresh, is_batch=True):
                pop.stored_acks |= sum(1 << index for index in fresh)
            return
        for index in fresh:
            if self._put_ack(pop, [index], is_batch=False):
                pop.stored_acks |= 1 << index

    def _put_ack(self, pop: BufferedPop, indexes: list[int], *, is_batch: bool) -> bool:
        point = pop.check_point
        offsets = tuple(point.offset_of(index) for index in indexes)
        ack = Ack(
            point.topic,
            point.group,
            point.queue_id,
            point.start_offset,
            point.pop_time,
            None if is_batch else point.broker_name,
            0 if is_batch else offsets[0],
            offsets if is_batch else None,
        )
        return self.revive_log.put_ack(ack, pop.revive_queue, point.revive_time, from_buffer=True)

    def _commit(self) -> None:
        """Commit the end of each queue's settled pops, from the oldest on. Mirrors scanCommitOffset."""
        for key, queue in list(self._queues.items()):
            while queue and queue[0].is_settled:
                pop = queue.popleft()
                point, end = pop.check_point, pop.next_begin_offset
                self._by_key.pop(point.merge_key, None)
                table = self.state.offset_table
                if end >= 0 and end > table.query(point.group, point.topic, point.queue_id):
                    table.commit(point.group, point.topic, point.queue_id, end)
            if not queue:
                del self._queues[key]


def queue_key(topic: str, group: str, queue_id: int) -> str:
    """How RocketMQ names a queue of a group."""
    return f"{topic}@{group}@{queue_id}"
