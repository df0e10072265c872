"""Asks producers how an open transaction ended.

Mirrors: TransactionalMessageServiceImpl.check, TransactionalMessageCheckService,
AbstractTransactionalMessageCheckListener; CHECK_TRANSACTION_STATE.

    every 30 s, from the offset of the group CID_RMQ_SYS_TRANS on the half topic:
    half message            an op message names it                   ─▶ next
                            checked 15 times, or older than 72 h     ─▶ copied to TRANS_CHECK_MAX_TIME_TOPIC, next
                            younger than 6 s                         ─▶ the round ends here
                            younger than its own immunity            ─▶ stored again, next
                            otherwise                                ─▶ stored again, a producer is asked, next

The offsets in both topics are kept as consumer offsets of that group. The op offset moves over used messages only as
far as there is no gap. RocketMQ wakes every 30 s; here a round is armed on that grid only while something is unchecked.

Left out: what an acting master does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.rocketmq.broker.putting import Putter
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.half_states import GIVE_UP, STORE_AGAIN
from mqlab.rocketmq.broker.transactions import HALF_QUEUE, REMOVE_TAG, SEPARATOR, immunity_ms
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.store import put_result
from mqlab.rocketmq.wire import names, record
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import request as make_request
from mqlab.rocketmq.wire.java_numbers import int_or, long_or, parse_int
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record

if TYPE_CHECKING:
    from mqlab.rocketmq.store.get_result import GetResult

OP_PULL_NUMS = 32
ROUND = "transaction.check"
ROUNDS = "transaction.rounds"  # the part that fails with a round, which goes on after the timer's action
WAIT_FOR_OP_MS = 1_000  # SLEEP_WHILE_NO_OP
LONGEST_ROUND_MS = 60_000  # MAX_PROCESS_TIME_LIMIT
NOTHING_NEW = ("NO_MESSAGE_IN_QUEUE", "OFFSET_OVERFLOW_ONE")
NO_NUMBER = -1  # what getInt and getLong make of any other text
HALF_MISSING_TRIES = 1  # MAX_RETRY_COUNT_WHEN_HALF_NULL


class DoneHalves:
    """The op messages of a round: which half offsets they name, and which of them are used up."""

    def __init__(self, first_half_offset: int) -> None:
        self._first = first_half_offset
        self._op_of: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self.used_up: list[int] = []

    def read(self, op: Record) -> None:
        """Take one op message. Mirrors fillOpRemoveMap."""
        half_offsets = []
        if op.property_map.get(p.TAGS) == REMOVE_TAG:
            numbers = str(op.body, "utf-8", "replace").split(SEPARATOR)
            half_offsets = [offset for number in numbers if (offset := long_or(number, NO_NUMBER)) != NO_NUMBER]
        waiting = [offset for offset in dict.fromkeys(half_offsets) if offset >= self._first]
        for offset in waiting:
            self._op_of[offset] = op.queue_offset
        if waiting:
            self._left[op.queue_offset] = len(waiting)
        else:
            self.used_up.append(op.queue_offset)

    def take(self, half_offset: int) -> bool:
        """True if an op message names the half message. An op message is used up with its last half message."""
        op_offset = self._op_of.pop(half_offset, None)
        if op_offset is None:
            return False
        self._left[op_offset] -= 1
        if self._left[op_offset] == 0:
            del self._left[op_offset]
            self.used_up.append(op_offset)
        return True

    def advanced(self, op_offset: int) -> int:
        """The op offset after the used-up messages that follow without a gap. Mirrors calculateOpOffset."""
        for used in sorted(self.used_up):
            if used == op_offset:
                op_offset += 1
        return op_offset


class TransactionCheck:
    """The check rounds of one broker."""

    def __init__(self, state: BrokerState, putter: Putter) -> None:
        self._state = state
        self._putter = putter
        self._started_ms: int | None = None
        self._deadline: Deadline | None = None
        self._running = False

    def start(self) -> None:
        """Begin: at most one round per transaction_check_interval, the first after one interval."""
        self._started_ms = self._state.now_ms()
        self.look()

    def stop(self) -> None:
        """Begin no more rounds."""
        self._started_ms = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def look(self) -> None:
        """Arm the next round if something is unchecked. Called when half or op messages arrive, and after a round."""
        if self._started_ms is None or self._deadline is not None or self._running or not self._something_unchecked():
            return
        period_ms = self._state.config.transaction_check_interval
        due_ms = next_on_grid(self._state.now_ms() + 1, period_ms, self._started_ms)
        self._deadline = self._state.ports.clock.call_at(due_ms, self._begin_dispatched, ROUND)

    def _begin_dispatched(self) -> None:
        """Begin; a ms later if an op message of this ms may not be in its queue yet.

        Op messages are written on the same grid. RocketMQ's two threads drift apart, so that it finds them.
        """
        if self._state.store.dispatch_behind_bytes:
            self._deadline = self._state.ports.clock.call_later(1, self._begin_round, ROUND)
        else:
            self._begin_round()

    def _something_unchecked(self) -> bool:
        store = self._state.store
        return any(
            store.max_offset(topic, HALF_QUEUE) > self._stored_offset(topic)
            for topic in (names.HALF_TOPIC, names.OP_HALF_TOPIC)
        )

    def _stored_offset(self, topic: str) -> int:
        stored = self._state.offset_table.query(names.TRANSACTION_GROUP, topic, HALF_QUEUE)
        return stored if stored >= 0 else self._state.store.min_offset(topic, HALF_QUEUE)

    def _begin_round(self) -> None:
        self._deadline = None
        self._running = True

        def ended(_: object) -> None:
            self._running = False
            self._state.store.failures.works(ROUNDS)
            self.look()

        self.round().then(ended, self._failed)

    def _failed(self, error: BaseException) -> None:
        self._running = False
        self._state.ports.note("transaction.check_failed", error=str(error))
        self._state.store.failures.failed(ROUNDS, error, self._begin_again, closes=False)

    def _begin_again(self) -> None:
        if not self._running and self._started_ms is not None:
            self._begin_round()

    @flow
    def round(self) -> Flow[None]:
        """Walk the half queue once. Mirrors check."""
        started_ms = self._state.now_ms()
        half_offset, op_offset = self._stored_offset(names.HALF_TOPIC), self._stored_offset(names.OP_HALF_TOPIC)
        done = DoneHalves(half_offset)
        ops, next_op_offset = self._read_ops(done, op_offset)
        queue_offset = new_offset = half_offset
        missing = 0
        while self._state.now_ms() - started_ms <= LONGEST_ROUND_MS and self._started_ms is not None:
            # 1. Ended and named by an op message: pass over it.
            if done.take(queue_offset):
                queue_offset = new_offset = queue_offset + 1
                continue
            # 2. Read it. At the end of the queue the round is over; a deleted part is skipped once.
            result = self._state.store.get(names.HALF_TOPIC, HALF_QUEUE, queue_offset, 1)
            if not result.units:
                missing += 1
                if missing > HALF_MISSING_TRIES or result.status in NOTHING_NEW:
                    break
                queue_offset = new_offset = result.next_begin_offset
                continue
            # 3. Give it up, store it again and ask for it, or leave it for a later round.
            self._count_get(names.HALF_TOPIC, result)
            half = record.decode(result.units[0])
            verdict = self._verdict(half, started_ms, ops, done)
            if verdict == "stop":
                break
            if verdict == "read more":
                ops, next_op_offset = self._read_ops(done, next_op_offset)
                if not ops:
                    yield self._pause()
                continue
            queue_offset = new_offset = queue_offset + 1
        # 4. The next round begins where this one has ended.
        self._keep(names.HALF_TOPIC, half_offset, new_offset)
        self._keep(names.OP_HALF_TOPIC, op_offset, done.advanced(op_offset))

    def _verdict(self, half: Record, started_ms: int, ops: list[Record], done: DoneHalves) -> str:
        """Decide on a half message that no op message names; returns "next", "stop" or "read more"."""
        # 1. Too many checks, or older than the log keeps its files.
        property_map = dict(half.property_map)
        checks = property_map.get(p.TRANSACTION_CHECK_TIMES)
        now_ms = self._state.now_ms()
        age_ms = now_ms - half.born_timestamp
        kept_ms = self._state.store.config.file_reserved_time * 3_600_000
        if (
            checks is not None and int_or(checks, NO_NUMBER) >= self._state.config.transaction_check_max
        ) or age_ms > kept_ms:
            self._give_up(half)
            return "next"
        property_map[p.TRANSACTION_CHECK_TIMES] = str(1 if checks is None else int_or(checks, NO_NUMBER) + 1)
        # 2. Stored during this round: the round has met its own copies.
        if half.store_timestamp >= started_ms:
            return "stop"
        # 3. Too young to ask for.
        immune_ms = immunity_ms(property_map, self._state.config.transaction_time_out)
        if p.CHECK_IMMUNITY_TIME_IN_SECONDS in property_map:
            if age_ms <= immune_ms and self._kept_immune(half, property_map, done):
                return "next"
        elif 0 <= age_ms <= immune_ms:
            return "stop"
        # 4. The op message that names it may only be unread: ask when the op messages reach past its time.
        last_op_ms = ops[-1].born_timestamp if ops else None
        timed_out = last_op_ms is not None and last_op_ms - started_ms > self._state.config.transaction_time_out
        if not ((last_op_ms is None and age_ms > immune_ms) or timed_out or age_ms <= -1):
            return "read more"
        return "next" if self._ask(half, property_map) else "stop"

    def _kept_immune(self, half: Record, property_map: dict[str, str], done: DoneHalves) -> bool:
        """Store a half message that has its own immunity again, or pass over it if its first copy has ended."""
        first_form = property_map.get(p.TRAN_PREPARED_QUEUE_OFFSET)
        if first_form is not None and done.take(long_or(first_form, NO_NUMBER)):
            return True
        property_map.setdefault(p.TRAN_PREPARED_QUEUE_OFFSET, str(half.queue_offset))
        return self._store_again(half, property_map) is not None

    def _ask(self, half: Record, property_map: dict[str, str]) -> bool:
        """Store the half message again and ask a producer of its group about the new copy; False if not stored.

        Mirrors putBackHalfMsgQueue and resolveHalfMsg.
        """
        fresh = self._store_again(half, property_map)
        if fresh is None:
            return False
        state = self._state
        state.stats.put(names.HALF_TOPIC, HALF_QUEUE, 1, fresh.total_size)
        # Any producer of the group may know the outcome; without one the message waits for the next round.
        group = property_map.get(p.PGROUP, "")
        channel = state.producers.available_channel(group)
        state.ports.note(
            "transaction.checked",
            topic=property_map.get(p.REAL_TOPIC),
            msg_id=property_map.get(p.UNIQ_KEY),
            half_offset=half.queue_offset,
            new_half_offset=fresh.queue_offset,
            times=parse_int(property_map[p.TRANSACTION_CHECK_TIMES]),
            asked=None if channel is None else channel.remote_address,
        )
        if channel is None:
            return True
        try:
            real_queue_id = parse_int(property_map.get(p.REAL_QID, ""))
        except ValueError:
            return True  # as in RocketMQ, where the call that would send the question dies of it
        question = fresh.changed(
            topic=property_map.get(p.REAL_TOPIC, ""),
            queue_id=real_queue_id,
            properties=encode_as_java({**property_map, p.WAIT: "false"}),
            magic=None,
        )
        channel.send_oneway(
            make_request(
                RequestCode.CHECK_TRANSACTION_STATE,
                record.encode(question),
                topic=names.HALF_TOPIC,
                tranStateTableOffset=fresh.queue_offset,
                commitLogOffset=fresh.physical_offset,
                msgId=property_map.get(p.UNIQ_KEY),
                transactionId=property_map.get(p.UNIQ_KEY),
                offsetMsgId=fresh.offset_msg_id,
                bname=self._state.config.broker_name,
            )
        )
        return True

    def _store_again(self, half: Record, property_map: dict[str, str]) -> Record | None:
        """Append the half message once more; returns the record as it is in the log now, None if it was refused."""
        again = half.changed(
            flag=0,
            reconsume_times=0,
            prepared_transaction_offset=0,
            properties=encode_as_java(property_map),
            magic=None,
        )
        result = self._putter.put(again)
        if result.status != put_result.PUT_OK:
            return None
        self._state.half_states.move(half.queue_offset, STORE_AGAIN)
        again.queue_offset, again.physical_offset = result.queue_offset, result.physical_offset
        again.store_timestamp, again.total_size = result.store_timestamp, result.size
        return again

    def _give_up(self, half: Record) -> None:
        """Copy a half message that has no end to the topic of given-up ones. Mirrors resolveDiscardMsg."""
        topic = self._state.topics.create_on_send_back(names.CHECK_MAX_TIME_TOPIC, 1)
        moved = half.changed(topic=topic.topic_name, queue_id=0, prepared_transaction_offset=0, magic=None)
        result = self._putter.put(moved)
        if result.status == put_result.PUT_OK:
            self._state.half_states.move(half.queue_offset, GIVE_UP)
            property_map = half.property_map
            self._state.transaction_metrics.add(property_map.get(p.REAL_TOPIC, ""), -1)
            self._state.ports.note(
                "transaction.given_up",
                topic=property_map.get(p.REAL_TOPIC),
                msg_id=property_map.get(p.UNIQ_KEY),
                half_offset=half.queue_offset,
            )

    def _read_ops(self, done: DoneHalves, op_offset: int) -> tuple[list[Record], int]:
        """Read the next op messages into ``done``; returns them and the offset after them."""
        result: GetResult = self._state.store.get(names.OP_HALF_TOPIC, HALF_QUEUE, op_offset, OP_PULL_NUMS)
        self._count_get(names.OP_HALF_TOPIC, result)
        ops = [record.decode(unit) for unit in result.units]
        for op in ops:
            done.read(op)
        if not ops and result.status not in NOTHING_NEW:
            self._keep(names.OP_HALF_TOPIC, op_offset, result.next_begin_offset)  # the part in between was deleted
        return ops, result.next_begin_offset

    def _count_get(self, topic: str, result: GetResult) -> None:
        if result.units:
            size = sum(len(unit) for unit in result.units)
            self._state.stats.got(names.TRANSACTION_GROUP, topic, len(result.units), size)

    def _keep(self, topic: str, before: int, now: int) -> None:
        if now != before:
            self._state.offset_table.commit(names.TRANSACTION_GROUP, topic, HALF_QUEUE, now)

    def _pause(self) -> Promise[None]:
        pause: Promise[None] = Promise()
        self._state.ports.clock.call_later(WAIT_FOR_OP_MS, lambda: pause.resolve(None), "transaction.wait_for_op")
        return pause

    def __repr__(self) -> str:
        return f"<TransactionCheck {'in a round' if self._running else 'armed' if self._deadline else 'idle'}>"
