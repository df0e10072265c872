"""POP_MESSAGE: up to 32 messages of a topic's queues, leased for a while.

Mirrors: PopMessageProcessor.

    one random number r   the first queue read, and whether the retry topic is read first (1 in 5) or last
    each queue            offset: where the last pop ended, else what is committed, else by initMode
                          read as a pull would ─▶ check point into the buffer ─▶ start and offsets into the answer
    nothing found         held until a message arrives or pollTime is over

A v1 retry message keeps its queue and offset but gets the topic that was asked for, and POP_CK says where it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mqlab.rocketmq.broker.pop.buffer import PopBuffer, queue_key
from mqlab.rocketmq.broker.pop.checks import LATE_MS, PopHeader, check_popping, filter_of
from mqlab.rocketmq.broker.pop.held_pops import FULL, HELD, HeldPops, HeldRequest
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.consumer_filters import PullFilter
from mqlab.rocketmq.broker.tables.order_infos import OrderInfos
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused
from mqlab.rocketmq.store.get_result import GetResult
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.names import RETRY_PREFIX
from mqlab.rocketmq.wire.pop import NORMAL, ORDERLY_REVIVE_QUEUE, CheckPoint, Handle, kind_of_topic, pop_retry_topic
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import decode, encode

FROM_MIN = 0
NOTHING = {"popTime": 0, "invisibleTime": 0, "reviveQid": 0, "restNum": 0}
_OUTSIDE = ("OFFSET_TOO_SMALL", "OFFSET_OVERFLOW_BADLY", "OFFSET_FOUND_NULL")
_MOVES_ON = ("NO_MATCHED_MESSAGE", "OFFSET_FOUND_NULL", "MESSAGE_WAS_REMOVING", "NO_MATCHED_LOGIC_QUEUE")
NEGATIVE_CAPACITY = (
    "java.lang.IllegalArgumentException: Illegal Capacity: {}, java.base/java.util.ArrayList.<init>(ArrayList.java:160)"
)


@dataclass(slots=True)
class PopWork:
    """One pop while its queues are read."""

    header: PopHeader
    message_filter: PullFilter
    pop_time: int
    revive_queue: int
    units: list[bytes] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    offsets: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    rest: int = 0
    read_on: bool = False  # it moved past messages that no member of the group gets

    @property
    def missing(self) -> int:
        """How many messages it may still take."""
        return self.header.max_nums - len(self.units)


class Popping:
    """Handler of the request. Mirrors PopMessageProcessor."""

    def __init__(self, state: BrokerState, buffer: PopBuffer, orders: OrderInfos, held: HeldPops) -> None:
        self._state = state
        self._buffer = buffer
        self._orders = orders
        self._held = held
        self._requests = 0

    def pop_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """POP_MESSAGE."""
        header = PopHeader.of(request, self._state.now_ms())
        try:
            return self._pop(header, channel, request, reply)
        except Refused as refusal:
            if not (refusal.remark or "").startswith("java."):
                refusal.fields = {**NOTHING, **refusal.fields}
            raise

    def _pop(self, header: PopHeader, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        state = self._state
        # 1. May the group read here, now, and with which filter?
        if state.now_ms() - header.born_time - header.poll_time > LATE_MS:
            reason = f"the broker[{state.identity.ip}] pop message is timeout too much"
            raise Refused(ResponseCode.POLLING_TIMEOUT, reason)
        topic = check_popping(state, header, channel)
        message_filter = filter_of(state, header)
        if header.max_nums < 0:
            raise Refused(ResponseCode.SYSTEM_ERROR, NEGATIVE_CAPACITY.format(header.max_nums))
        # 2. Read.
        work = PopWork(header, message_filter, state.now_ms(), self._next_revive_queue(header.is_orderly))
        self._read_all(work, topic)
        # 3. Nothing: hold the request. What is left wakes another one.
        code, status = ResponseCode.SUCCESS, "FOUND"
        if not work.units:
            held = HeldRequest.of(header, channel, request, reply, self.pop_message, message_filter)
            outcome = self._held.hold(held, header.poll_time)
            if outcome == HELD:
                self._wake_for_the_rest(work)
                return None
            status = "NO_MESSAGE_IN_QUEUE"
            code = ResponseCode.POLLING_FULL if outcome == FULL else ResponseCode.POLLING_TIMEOUT
        elif work.rest > 0:
            self._held.wake(header.topic, header.group, header.queue_id)
        return self._answer(work, request, code, status)

    def _wake_for_the_rest(self, work: PopWork) -> None:
        """A pop that found nothing and left something: it read on, or its check point clashed. RocketMQ spins."""
        header = work.header
        if work.rest <= 0 or header.max_nums == 0:
            return
        wake = self._held.wake if work.read_on else self._held.wake_soon
        wake(header.topic, header.group, header.queue_id)

    def _next_revive_queue(self, is_orderly: bool) -> int:
        if is_orderly:
            return ORDERLY_REVIVE_QUEUE
        queue = self._requests % self._state.config.revive_queue_num
        self._requests += 1
        return queue

    def _answer(self, work: PopWork, request: RemotingCommand, code: int, status: str) -> RemotingCommand:
        header, body = work.header, b"".join(work.units)
        if work.units:
            self._state.stats.got(header.group, header.topic, len(work.units), len(body))
            self._state.ports.note(
                "message.popped",
                group=header.group,
                topic=header.topic,
                starts=";".join(work.starts),
                offsets=";".join(work.offsets),
                revive_queue=work.revive_queue,
                pop_time=work.pop_time,
                invisible_time=header.invisible_time,
            )
        return request.reply(
            code,
            status,
            body or None,
            popTime=work.pop_time,
            invisibleTime=header.invisible_time,
            reviveQid=work.revive_queue,
            restNum=work.rest,
            startOffsetInfo=";".join(work.starts),
            msgOffsetInfo=";".join(work.offsets),
            orderCountInfo=";".join(work.counts) if header.is_orderly else None,
        )

    def _read_all(self, work: PopWork, topic: TopicConfig) -> None:
        header, config = work.header, self._state.config
        chance = self._state.ports.rng.randrange(100)
        retry_first = not header.is_orderly and chance < config.pop_from_retry_probability
        if retry_first:
            self._read_retry_topic(work, chance)
        queues = [header.queue_id] if header.queue_id >= 0 else _from(chance, topic.read_queue_nums)
        for queue_id in queues:
            self._read_queue(work, header.topic, queue_id)
        if not retry_first and not header.is_orderly and work.missing > 0:
            self._read_retry_topic(work, chance)

    def _read_retry_topic(self, work: PopWork, chance: int) -> None:
        header, config = work.header, self._state.config
        v1_instead = config.retrieve_message_from_pop_retry_topic_v1 and chance % 2 == 0
        name = pop_retry_topic(header.topic, header.group, v2=config.enable_retry_topic_v2 and not v1_instead)
        topic = self._state.topics.get(name)
        if topic is not None:
            for queue_id in _from(chance, topic.read_queue_nums):
                self._read_queue(work, name, queue_id)

    def _read_queue(self, work: PopWork, topic: str, queue_id: int) -> None:
        """Take messages of one queue. Mirrors popMsgFromQueue."""
        header, store = work.header, self._state.store
        offset = self._offset(header, topic, queue_id)
        if header.is_orderly and self._orders.is_blocked(
            header.attempt_id, topic, header.group, queue_id, header.invisible_time
        ):
            return
        if work.missing <= 0:
            work.rest += store.max_offset(topic, queue_id) - offset
            return
        result = self._get(work, topic, queue_id, offset)
        if result.status in _OUTSIDE:
            offset = result.next_begin_offset
            self._state.offset_table.commit(header.group, topic, queue_id, offset)
            result = self._get(work, topic, queue_id, offset)
        if result.units and not self._give_out(work, topic, queue_id, offset, result):
            work.rest += len(result.units)
            return
        if not result.units and result.status in _MOVES_ON and result.next_begin_offset > -1:
            self._pass_over(work, topic, queue_id, offset, result.next_begin_offset)
        work.rest += result.max_offset - result.next_begin_offset

    def _get(self, work: PopWork, topic: str, queue_id: int, offset: int) -> GetResult:
        only = None if work.message_filter.passes_all else work.message_filter
        result = self._state.store.get(topic, queue_id, offset, work.missing, message_filter=only)
        self._state.store_stats.got(len(result.units))
        return result

    def _offset(self, header: PopHeader, topic: str, queue_id: int) -> int:
        """Where a pop of the queue begins. Mirrors getPopOffset and getInitPopOffset."""
        table, group = self._state.offset_table, header.group
        key = queue_key(topic, group, queue_id)
        reset = table.take_reset(group, topic, queue_id)
        if reset is not None:
            self._orders.clear(topic, group, queue_id)
            self._buffer.clear(key)
            table.commit(group, topic, queue_id, reset)
            return reset
        offset = table.query(group, topic, queue_id)
        if offset < 0:
            offset = self._first_offset(header, topic, queue_id)
        return max(offset, self._buffer.latest_offset(key))

    def _first_offset(self, header: PopHeader, topic: str, queue_id: int) -> int:
        store = self._state.store
        first, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        if header.init_mode == FROM_MIN or topic.startswith(RETRY_PREFIX):
            offset = first
        else:
            # A group that begins at the end still gets a young topic's first messages, else the last message.
            unit = store.consume_queue_unit(topic, queue_id, 0) if first <= 0 else None
            is_young = self._state.config.init_pop_offset_by_check_msg_in_mem and unit is not None
            offset = 0 if is_young and unit is not None and store.is_resident(unit.physical_offset) else max(end - 1, 0)
        self._state.offset_table.commit(header.group, topic, queue_id, offset)
        return offset

    def _give_out(self, work: PopWork, topic: str, queue_id: int, offset: int, result: GetResult) -> bool:
        """Note what is leased; False when the messages must not be given out."""
        header, group = work.header, work.header.group
        if header.is_orderly:
            work.counts.append(
                self._orders.popped(
                    header.attempt_id,
                    topic,
                    group,
                    queue_id,
                    work.pop_time,
                    header.invisible_time,
                    result.queue_offsets,
                )
            )
            self._state.offset_table.commit(group, topic, queue_id, offset)
        else:
            check_point = CheckPoint(
                topic,
                group,
                queue_id,
                offset,
                work.pop_time,
                header.invisible_time,
                len(result.units),
                tuple(queue_offset - offset for queue_offset in result.queue_offsets),
                self._state.config.broker_name,
            )
            if not self._buffer.add(check_point, work.revive_queue, result.next_begin_offset):
                return False
        kind = kind_of_topic(topic)
        work.starts.append(f"{kind} {queue_id} {offset}")
        work.offsets.append(f"{kind} {queue_id} {','.join(map(str, result.queue_offsets))}")
        if kind == NORMAL or self._state.config.pop_response_return_actual_retry_topic:
            work.units += result.units
        else:
            work.units += [self._as_asked(work, unit, kind, offset) for unit in result.units]
        return True

    def _pass_over(self, work: PopWork, topic: str, queue_id: int, offset: int, next_begin_offset: int) -> None:
        """Move past messages that no member of the group gets."""
        header = work.header
        work.read_on = True
        if header.is_orderly:
            self._state.offset_table.commit(header.group, topic, queue_id, next_begin_offset)
            return
        nothing = CheckPoint(
            topic,
            header.group,
            queue_id,
            offset,
            work.pop_time,
            header.invisible_time,
            0,
            (),
            self._state.config.broker_name,
        )
        self._buffer.add_offset(nothing, work.revive_queue, next_begin_offset)

    def _as_asked(self, work: PopWork, unit: bytes, kind: str, start_offset: int) -> bytes:
        """A retry message under the topic that was asked for, with the handle that says where it is."""
        record, header = decode(unit), work.header
        handle = Handle(
            start_offset,
            work.pop_time,
            header.invisible_time,
            work.revive_queue,
            kind,
            self._state.config.broker_name,
            record.queue_id,
            record.queue_offset,
        )
        property_map = dict(record.property_map)
        property_map.setdefault(p.POP_CK, handle.text)
        return encode(record.changed(topic=header.topic, properties=encode_as_java(property_map), magic=None))


def _from(chance: int, count: int) -> Iterator[int]:
    """The queues of a topic, from one that the random number picks."""
    return ((chance + step) % count for step in range(count))
