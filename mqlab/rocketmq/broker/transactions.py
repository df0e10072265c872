"""Transactional messages: half messages are stored apart, become real by a commit, and are ignored after a rollback.

Mirrors: TransactionalMessageBridge, EndTransactionProcessor, TransactionalOpBatchService; END_TRANSACTION.

    state of a half message      what is in the log (tables/half_states has the transitions)
    prepared                     entry n of the half topic
    committed                    also the real message (preparedTransactionOffset: where the half message is)
    rolled back                  nothing more
    named                        also an op message that contains n
    given up after 15 checks     its copies in the half topic, and one in TRANS_CHECK_MAX_TIME_TOPIC

    op topic    one message names many half messages: "12,13,", tag d
                written at once above 4096 bytes, otherwise by a service that wakes every 3 s and writes when 3 s have
                passed since the last op message (for the first one: since the first end)

Left out: escaping to another broker (acting master).
"""

from __future__ import annotations

from mqlab.errors import MqlabError, UsageError
from mqlab.rocketmq.broker.putting import STORED_CODES, Putter, refusal
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.half_states import COMMIT, COMMITTED, NAME, ROLL_BACK
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, text, truth, whole, whole_long
from mqlab.rocketmq.store import put_result
from mqlab.rocketmq.store.put_result import PutResult
from mqlab.rocketmq.wire import names, properties, sys_flag
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET as NO_REMARK
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.ids import parse_offset_msg_id
from mqlab.rocketmq.wire.java_numbers import long_or, parse_int
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record

HALF_QUEUE = 0
REMOVE_TAG = "d"
SEPARATOR = ","
NOT_SET = -1
OUTCOMES = (sys_flag.TRANSACTION_NOT_TYPE, sys_flag.TRANSACTION_COMMIT, sys_flag.TRANSACTION_ROLLBACK)


class Transactions:
    """Stores half messages, ends them, and writes op messages that name the ended ones."""

    def __init__(self, state: BrokerState, putter: Putter) -> None:
        self._state = state
        self._putter = putter
        self._ended: list[int] = []  # half offsets of ended messages that no op message names yet
        self._last_write_ms: int | None = None
        self._woke_ms: int | None = None  # when the service last woke early; its 3 s grid starts there
        self._flush: Deadline | None = None

    def prepare(self, record: Record, *, delay_level: int | None = None) -> PutResult:
        """Store a message as a half message.

        Mirrors parseHalfMessageInner.
        """
        # 1. The half message remembers its real topic and queue; consumers do not subscribe to the half topic.
        property_map = dict(record.property_map)
        if property_map.get(p.UNIQ_KEY):
            property_map[p.TRANSACTION_ID] = property_map[p.UNIQ_KEY]
        property_map[p.REAL_TOPIC] = record.topic
        property_map[p.REAL_QID] = str(record.queue_id)
        half = record.changed(
            topic=names.HALF_TOPIC,
            queue_id=HALF_QUEUE,
            sys_flag=sys_flag.with_transaction_type(record.sys_flag, sys_flag.TRANSACTION_NOT_TYPE),
            properties=encode_as_java(property_map),
            magic=None,
        )
        # 2. Store it, and count it as open until it ends.
        result = self._putter.put(half, delay_level=delay_level)
        if result.status in STORED_CODES:
            self._state.transaction_metrics.add(record.topic, 1)
            self._state.ports.note(
                "transaction.prepared",
                topic=record.topic,
                msg_id=property_map.get(p.UNIQ_KEY),
                half_offset=result.queue_offset,
                physical_offset=result.physical_offset,
            )
        result.waits_as = result.waits_as or half
        return result

    def resume_check_half_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """RESUME_CHECK_HALF_MESSAGE: a half message that was given up is stored as a new one, to be checked again."""
        try:
            message = self._state.store.message_at(parse_offset_msg_id(request.ext_fields.get("msgId", ""))[1])
            if message is None:
                raise UsageError("there is no message at this place")
        except MqlabError as error:
            remark = f"Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC. {error}"
            raise Refused(ResponseCode.SYSTEM_ERROR, remark) from error
        again = message.changed(
            topic=names.HALF_TOPIC,
            queue_id=HALF_QUEUE,
            properties=encode_as_java({**message.property_map, p.TRANSACTION_CHECK_TIMES: "0"}),
            magic=None,
        )
        if self._putter.put(again).status != put_result.PUT_OK:
            raise Refused(ResponseCode.SYSTEM_ERROR, "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.")
        return request.reply()

    def end_transaction(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """END_TRANSACTION: commit, roll back, or do nothing if the producer does not know the outcome."""
        outcome = whole(request, "commitOrRollback")
        if outcome not in OUTCOMES:  # EndTransactionRequestHeader.checkFields
            raise Refused(ResponseCode.SYSTEM_ERROR, "commitOrRollback field wrong")
        if outcome == sys_flag.TRANSACTION_NOT_TYPE:
            self._state.ports.note("transaction.pending", msg_id=request.ext_fields.get("msgId"))
            return None
        # 1. A rollback only has to be remembered.
        half = self._checked_half(request)
        if outcome == sys_flag.TRANSACTION_ROLLBACK:
            self._end(half, ROLL_BACK)
            return request.reply(remark=NO_REMARK)
        # 2. A commit stores the real message; it counts as ended when that message is safe.
        result = self._commit(half)
        if result.status not in STORED_CODES:
            raise Refused(*refusal(result))

        def durable(status: str) -> None:
            if status in STORED_CODES:
                self._end(half, COMMIT)
                reply(request.reply())
            else:
                reply(request.reply(ResponseCode.SYSTEM_ERROR, status))

        self._putter.when_safe(result).then(durable)
        return None

    def _checked_half(self, request: RemotingCommand) -> Record:
        # The producer names the half message by its place; all of what it sends must fit to what is stored there.
        physical_offset = whole_long(request, "commitLogOffset")
        half = self._state.store.message_at(physical_offset)
        if half is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
        property_map = half.property_map
        # A producer that is late answers a check instead, because the broker asks for the outcome now.
        if not truth(request, "fromTransactionCheck") and property_map.get(p.CHECK_IMMUNITY_TIME_IN_SECONDS):
            age_ms = self._state.now_ms() - half.born_timestamp
            if age_ms > latest_end_ms(property_map, self._state.config.transaction_time_out):
                raise Refused(ResponseCode.ILLEGAL_OPERATION, "too late: the broker asks for the state now")
        if property_map.get(p.PGROUP) != text(request, "producerGroup"):
            raise Refused(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
        if half.queue_offset != whole_long(request, "tranStateTableOffset"):
            raise Refused(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
        if half.physical_offset != physical_offset or half.topic not in (names.HALF_TOPIC, names.TIMER_TOPIC):
            raise Refused(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")
        return half

    def _commit(self, half: Record) -> PutResult:
        """Store the real message. It keeps TRAN_MSG, REAL_TOPIC and REAL_QID. Mirrors sendFinalMessage."""
        property_map = half.property_map
        try:
            queue_id = parse_int(property_map.get(p.REAL_QID, ""))
        except ValueError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"the property {p.REAL_QID} is not a queue id: {error}") from error
        record = half.changed(
            topic=property_map.get(p.REAL_TOPIC, ""),
            queue_id=queue_id,
            sys_flag=sys_flag.with_transaction_type(half.sys_flag, sys_flag.TRANSACTION_COMMIT),
            prepared_transaction_offset=half.physical_offset,
            magic=None,
        )
        result = self._putter.put(record)
        if result.status in STORED_CODES:
            self._state.stats.put(record.topic, record.queue_id, 1, result.size)
        return result

    def _end(self, half: Record, event: str) -> None:
        """Remember that a half message has ended; an op message will name it soon. Mirrors deletePrepareMessage."""
        property_map = half.property_map
        topic = property_map.get(p.REAL_TOPIC, "")
        state = self._state.half_states.move(half.queue_offset, event)
        self._state.transaction_metrics.add(topic, -1)
        kind = "transaction.committed" if state == COMMITTED else "transaction.rolled_back"
        self._state.ports.note(kind, topic=topic, msg_id=property_map.get(p.UNIQ_KEY), half_offset=half.queue_offset)
        self._ended.append(half.queue_offset)
        self._arm_flush()

    def _waiting_bytes(self) -> int:
        return sum(len(str(offset)) + 1 for offset in self._ended)

    def _arm_flush(self) -> None:
        """Arm the next op message: at the first wake 3 s after the last one, or now if many offsets wait.

        For the first op message the 3 s count from the first end. Mirrors TransactionalOpBatchService.
        """
        now_ms = self._state.now_ms()
        interval_ms = self._state.config.transaction_op_batch_interval
        if self._last_write_ms is None:
            self._last_write_ms = now_ms
        if self._waiting_bytes() > self._state.config.transaction_op_msg_max_size:
            due_ms = self._woke_ms = now_ms
        else:
            origin_ms = self._state.started_ms if self._woke_ms is None else self._woke_ms
            due_ms = next_on_grid(max(now_ms, self._last_write_ms + interval_ms), interval_ms, origin_ms)
        if self._flush is not None:
            if self._flush.due_ms <= due_ms:
                return
            self._flush.cancel()
        self._flush = self._state.ports.clock.call_at(due_ms, self._write_due, "transaction.op_write")

    def _write_due(self) -> None:
        self._flush = None
        if self._write_op_message():
            while self._waiting_bytes() >= self._state.config.transaction_op_msg_max_size and self._write_op_message():
                pass
        if self._ended:
            self._arm_flush()

    def _write_op_message(self) -> bool:
        """Write one op message that names as many ended half messages as it can hold; False if it was refused.

        Mirrors getOpMessage and writeOp.
        """
        content = ""
        count = 0
        while count < len(self._ended) and len(content) < self._state.config.transaction_op_msg_max_size:
            content += f"{self._ended[count]}{SEPARATOR}"
            count += 1
        # The time counts although the put may be refused: the service tries again at its next wake.
        now_ms = self._last_write_ms = self._state.now_ms()
        result = self._putter.put(self._op_record(content, now_ms))
        if result.status != put_result.PUT_OK:
            return False
        self._state.stats.put(names.OP_HALF_TOPIC, HALF_QUEUE, 1, result.size)
        self._state.ports.note("transaction.op_written", half_offsets=content, queue_offset=result.queue_offset)
        half_offsets = self._ended[:count]
        del self._ended[:count]
        for half_offset in dict.fromkeys(half_offsets):
            if half_offset not in self._ended:  # ended twice: a later op message names it again
                self._state.half_states.move(half_offset, NAME)
        return True

    def _op_record(self, content: str, now_ms: int) -> Record:
        return Record(
            names.OP_HALF_TOPIC,
            content.encode("utf-8"),
            HALF_QUEUE,
            born_timestamp=now_ms,
            born_host=self._state.identity.store_host,
            store_host=self._state.identity.store_host,
            properties=properties.encode({p.WAIT: "true", p.TAGS: REMOVE_TAG}),
        )

    def stop(self) -> None:
        """The broker stops cleanly: write what is still only in memory."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        while self._ended and self._write_op_message():
            pass

    def __repr__(self) -> str:
        return (
            f"<Transactions: {self._state.transaction_metrics.total} open, {len(self._ended)} ended and not named yet>"
        )


def immunity_ms(property_map: dict[str, str], default_ms: int) -> int:
    """How long after its birth a half message is not checked: its own setting, or else the time-out.

    Mirrors TransactionalMessageServiceImpl.getImmunityTime.

    >>> immunity_ms({"CHECK_IMMUNITY_TIME_IN_SECONDS": "10"}, 6000), immunity_ms({}, 6000)
    (10000, 6000)
    """
    seconds = long_or(property_map.get(p.CHECK_IMMUNITY_TIME_IN_SECONDS), NOT_SET)
    return default_ms if seconds == NOT_SET else seconds * 1000


def latest_end_ms(property_map: dict[str, str], timeout_ms: int) -> int:
    """The age up to which a producer may end a half message with its own immunity; at least the time-out.

    Mirrors TransactionalMessageUtil.getImmunityTime (the check counts by another one, ``immunity_ms``).

    >>> latest_end_ms({"CHECK_IMMUNITY_TIME_IN_SECONDS": "10"}, 6000)
    10000
    >>> latest_end_ms({"CHECK_IMMUNITY_TIME_IN_SECONDS": "1"}, 6000)
    6000
    """
    return max(immunity_ms(property_map, timeout_ms), timeout_ms)
