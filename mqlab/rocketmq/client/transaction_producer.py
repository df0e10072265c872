"""A producer whose messages wait, half sent, until its own transaction is decided.

Mirrors: TransactionMQProducer, DefaultMQProducerImpl.sendMessageInTransaction and checkTransactionState.

    send half (310, TRAN_MSG, PGROUP) ─▶ SEND_OK ─▶ listener.execute_local_transaction(message, arg)
                                      ─▶ stored otherwise ─▶ rolled back, not executed
    ─▶ END_TRANSACTION (37, one-way)     COMMIT_MESSAGE 8, ROLLBACK_MESSAGE 12, UNKNOW 0
    later, if the broker heard nothing:  CHECK_TRANSACTION_STATE (39) ─▶ listener.check_local_transaction(message) ─▶ 37

None and exceptions count as UNKNOW. Both listener methods run on the node like any listener: a kill ends them.
Left out: transaction executors of 4.x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mqlab.errors import ClientError, MqlabError, UsageError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.consuming.learners_traceback import learners_traceback
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.instance.pending import Pending, begin
from mqlab.rocketmq.client.producer import Producer
from mqlab.rocketmq.client.sending.sender import Sender
from mqlab.rocketmq.client.sending.trace import ProducerTraceHook
from mqlab.rocketmq.client.settings import ProducerConfig
from mqlab.rocketmq.ports import Pool, Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire import property_names, sys_flag
from mqlab.rocketmq.wire.ids import parse_offset_msg_id
from mqlab.rocketmq.wire.message import Message, MessageExt, SendResult

CHECK_THREADS = 1
EXECUTE_THREADS = 64  # RocketMQ uses the callers' own threads
DECISIONS = {
    statuses.COMMIT_MESSAGE: sys_flag.TRANSACTION_COMMIT,
    statuses.ROLLBACK_MESSAGE: sys_flag.TRANSACTION_ROLLBACK,
    statuses.UNKNOW: sys_flag.TRANSACTION_NOT_TYPE,
}


class TransactionListener(Protocol):
    """The learner's half. Both return COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW. Mirrors TransactionListener."""

    def execute_local_transaction(self, message: Message, arg: Any) -> str | None: ...

    def check_local_transaction(self, message: MessageExt) -> str | None: ...


@dataclass(frozen=True, slots=True)
class TransactionSendResult(SendResult):
    """A SendResult of the half message, with the state of the local transaction. Mirrors TransactionSendResult."""

    local_transaction_state: str = statuses.UNKNOW


class TransactionSender(Sender):
    """The sender of a transaction producer: the client instance finds it by group when a broker asks back."""

    def __init__(
        self,
        cluster: ClusterAccess,
        group: str,
        config: ProducerConfig,
        check: Callable[[str, MessageExt, Mapping[str, str]], Promise[None]],
    ) -> None:
        super().__init__(cluster, group, config)
        self._check = check

    def check_transaction(self, address: str, message: MessageExt, fields: Mapping[str, str]) -> Promise[None]:
        """Handle a broker's question about the state of a half message."""
        return self._check(address, message, fields)


class TransactionProducer(Producer):
    """A producer with a transaction listener; settings as for Producer."""

    def __init__(
        self,
        ports: Ports,
        group: str,
        name_servers: Sequence[str],
        listener: TransactionListener | type,
        **settings: Any,
    ) -> None:
        super().__init__(ports, group, name_servers, **settings)
        self._listener: Any = listener
        self._executing: Pool | None = None
        self._checking: Pool | None = None

    def make_sender(self) -> Sender:
        """A sender that can be asked back."""
        return TransactionSender(self.client.cluster, self.group, self.config, self._check)

    def start_now(self) -> None:
        """Start; a class given as listener is instantiated now. UsageError without both methods."""
        if isinstance(self._listener, type):
            self._listener = self._listener()
        for method in ("execute_local_transaction", "check_local_transaction"):
            if not callable(getattr(self._listener, method, None)):
                raise UsageError(
                    f"{self._listener!r} is not a transaction listener", hint=f"it needs a method {method}"
                )
        super().start_now()
        self._executing = self.ports.workers.pool(f"LocalTransaction_{self.group}", EXECUTE_THREADS)
        self._checking = self.ports.workers.pool(f"CheckTransaction_{self.group}", CHECK_THREADS)

    def send_message_in_transaction(self, message: Message, arg: Any = None) -> TransactionSendResult:
        """Send a half message, run the local transaction, send its result. Errors as for send."""
        return self.client.call(lambda: self._send_in_transaction(message, arg))

    def send_message_in_transaction_async(self, message: Message, arg: Any = None) -> Pending[TransactionSendResult]:
        """The same without waiting."""
        return begin(self.ports.workers, lambda: self._send_in_transaction(message, arg))

    @flow
    def _send_in_transaction(self, message: Message, arg: Any) -> Flow[TransactionSendResult]:
        self.must_run()
        if not isinstance(message, Message):
            raise ClientError(f"a transaction sends one Message, not {message!r}")
        # 1. The half message: invisible to consumers until it is committed. It cannot be delayed as well.
        message.properties.pop(property_names.DELAY, None)
        message.properties[property_names.TRAN_MSG] = "true"
        message.properties[property_names.PGROUP] = self.group
        try:
            result: SendResult = yield self.sender.send_sync(
                self.sender.outgoing(message), self.config.send_msg_timeout
            )
        except MqlabError as error:
            raise ClientError(f"send message Exception: {error.text}", hint=error.hint) from error
        # 2. The local transaction runs only if the half message is stored safely; otherwise it is rolled back.
        state, remark = statuses.ROLLBACK_MESSAGE, None
        if result.send_status == statuses.SEND_OK:
            if result.transaction_id is not None:
                message.properties[property_names.TRANSACTION_ID] = result.transaction_id
            state, remark = yield self._execute(message, arg)
        # 3. One way: if this is lost, the broker asks (see _check).
        self._end(message, result, state, remark)
        return TransactionSendResult(
            send_status=result.send_status,
            msg_id=result.msg_id,
            offset_msg_id=result.offset_msg_id,
            message_queue=result.message_queue,
            queue_offset=result.queue_offset,
            transaction_id=result.transaction_id,
            region_id=result.region_id,
            trace_on=result.trace_on,
            local_transaction_state=state,
        )

    @flow
    def _execute(self, message: Message, arg: Any) -> Flow[tuple[str, str | None]]:
        assert self._executing is not None
        msg_id = message.properties[property_names.UNIQ_KEY]
        self._note("transaction.started", msg_id=msg_id, topic=message.topic)
        outcome = yield self._run(self._executing, lambda: self._listener.execute_local_transaction(message, arg))
        state, error = _decision(*outcome)
        self._note("transaction.executed", msg_id=msg_id, topic=message.topic, state=state, error=error)
        return state, None if error is None else f"executeLocalTransactionBranch exception: {error}"

    def _end(self, message: Message, result: SendResult, state: str, remark: str | None) -> None:
        """Send the decision to the broker, which finds the half message by both of its offsets."""
        address = self.client.cluster.routes.master_address(result.message_queue.broker_name)
        if address is None:
            self._note("transaction.not_told", msg_id=result.msg_id, state=state)
            return
        _, physical_offset = parse_offset_msg_id(result.offset_msg_id)
        self.client.cluster.calls.end_transaction(
            address,
            producerGroup=self.group,
            tranStateTableOffset=result.queue_offset,
            commitLogOffset=physical_offset,
            commitOrRollback=DECISIONS[state],
            fromTransactionCheck=False,
            msgId=result.msg_id,
            transactionId=result.transaction_id,
            topic=message.topic,
            bname=result.message_queue.broker_name,
            remark=remark,
        )
        self._trace_end(message, result.msg_id, address, state, from_check=False)

    @flow
    def _check(self, address: str, message: MessageExt, fields: Mapping[str, str]) -> Flow[None]:
        """Ask the listener again and send its answer to the broker that asked."""
        assert self._checking is not None
        outcome = yield self._run(self._checking, lambda: self._listener.check_local_transaction(message))
        state, error = _decision(*outcome)
        unique_key = message.properties.get(property_names.UNIQ_KEY) or message.msg_id
        self._note("transaction.checked", msg_id=unique_key, topic=message.topic, state=state, error=error)
        self.client.cluster.calls.end_transaction(
            address,
            producerGroup=self.group,
            tranStateTableOffset=fields.get("tranStateTableOffset"),
            commitLogOffset=fields.get("commitLogOffset"),
            commitOrRollback=DECISIONS[state],
            fromTransactionCheck=True,
            msgId=unique_key,
            transactionId=fields.get("transactionId"),
            topic=fields.get("topic"),
            bname=fields.get("bname"),
            remark=None if error is None else f"checkLocalTransactionState Exception: {error}",
        )
        self._trace_end(message, unique_key, address, state, from_check=True)

    def _run(self, pool: Pool, call: Callable[[], Any]) -> Promise[tuple[Any, str | None]]:
        """The learner's answer, or the traceback of what it raised, from a thread of the pool."""
        answered: Promise[tuple[Any, str | None]] = Promise()

        def guarded() -> tuple[Any, str | None]:
            try:
                return call(), None
            except Exception as error:
                # The state is UNKNOW then: the broker asks again.
                return None, learners_traceback(error)

        def done(value: tuple[Any, str | None] | None, error: BaseException | None) -> None:
            answered.resolve((None, repr(error)) if value is None else value)

        pool.submit(guarded, done)
        return answered

    def _trace_end(self, message: Message, msg_id: str, address: str, state: str, *, from_check: bool) -> None:
        for hook in self.sender.hooks:
            if isinstance(hook, ProducerTraceHook):
                hook.end_transaction(
                    message, group=self.group, msg_id=msg_id, broker_address=address, state=state, from_check=from_check
                )

    def _note(self, kind: str, **values: Any) -> None:
        self.ports.note(kind, client=self.ports.node, group=self.group, **values)


def _decision(answer: Any, error: str | None) -> tuple[str, str | None]:
    """The state that counts and the error to report: None and anything unknown are UNKNOW."""
    if error is None and answer is not None and answer not in DECISIONS:
        return statuses.UNKNOW, f"the listener returned {answer!r}, which is none of {', '.join(DECISIONS)}"
    return (answer if answer in DECISIONS else statuses.UNKNOW), error
