"""Transactions of gRPC producers: what is open, how it ends, and the question of the broker about an old one.

Mirrors: TransactionService, TransactionDataManager, EndTransactionActivity.

    half message sent   ──▶ (transaction id) broker, half offset, log offset: kept for 30 s, at most 15 an id
    EndTransaction      ──▶ looked up and removed ──▶ END_TRANSACTION
    the broker asks     ──▶ kept again, and recover_orphaned_transaction_command to a producer of the topic
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mqlab.cluster.grpc import conversion
from mqlab.cluster.grpc.clients import Caller, GrpcClient
from mqlab.cluster.grpc.codes import COMMIT, ROLLBACK, SERVER_CHECK, Code, ProxyRefusal, StatusError, ok
from mqlab.cluster.grpc.messages import make
from mqlab.cluster.grpc.state import FrontState, checked_topic
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire import record, sys_flag
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.ids import parse_offset_msg_id
from mqlab.rocketmq.wire.java_numbers import parse_long

KEPT_MS = 30_000
MOST_OF_ONE_ID = 15
_RESOLUTIONS = {COMMIT: sys_flag.TRANSACTION_COMMIT, ROLLBACK: sys_flag.TRANSACTION_ROLLBACK}


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """Where a half message is. Offsets: ``half`` counts in the half topic's queue, ``physical`` in the log."""

    broker_name: str
    topic: str
    half_offset: int
    physical_offset: int
    until_ms: int


class OpenTransactions:
    """The transactions that the front knows of, and their RPC."""

    def __init__(self, state: FrontState) -> None:
        self._state = state
        self._by_id: dict[str, deque[OpenTransaction]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def opened(self, broker: Broker, topic: str, transaction_id: str, fields: Mapping[str, str]) -> None:
        """A half message was stored; ``fields`` are those of the broker's answer."""
        _, physical_offset = parse_offset_msg_id(fields["msgId"])
        self._keep(broker, topic, transaction_id, parse_long(fields["queueOffset"]), physical_offset)

    def _keep(self, broker: Broker, topic: str, transaction_id: str, half_offset: int, physical_offset: int) -> None:
        now_ms = self._state.now_ms()
        self._drop_old(now_ms)
        kept = self._by_id.setdefault(transaction_id, deque(maxlen=MOST_OF_ONE_ID))
        name = broker.config.broker_name
        kept.append(OpenTransaction(name, topic, half_offset, physical_offset, now_ms + KEPT_MS))

    def _drop_old(self, now_ms: int) -> None:
        """Ids are in the order in which they came, but for those that were asked for again."""
        for transaction_id, kept in list(self._by_id.items()):
            if kept[-1].until_ms > now_ms:
                break
            del self._by_id[transaction_id]

    @flow
    def end_transaction(self, request: Any, caller: Caller) -> Flow[Any]:
        """EndTransaction. What the broker makes of it is not waited for, as in RocketMQ."""
        client = self._state.clients.of(caller)
        topic = checked_topic(request.topic.name)
        if not request.transaction_id.strip():
            raise StatusError(Code.INVALID_TRANSACTION_ID, "transaction id cannot be empty")
        kept = self._by_id.pop(request.transaction_id, None)
        if kept is None or kept[-1].until_ms <= self._state.now_ms():
            raise ProxyRefusal("cannot found transaction data")
        open_one = kept[-1]
        yield self._state.clients.ask(
            client,
            self._state.brokers.named(open_one.broker_name),
            RequestCode.END_TRANSACTION,
            topic=topic,
            producerGroup=open_one.topic,
            tranStateTableOffset=open_one.half_offset,
            commitLogOffset=open_one.physical_offset,
            commitOrRollback=_RESOLUTIONS.get(request.resolution, sys_flag.TRANSACTION_NOT_TYPE),
            fromTransactionCheck=request.source == SERVER_CHECK,
            msgId=request.message_id,
            transactionId=request.transaction_id,
        )
        return make("EndTransactionResponse", status=ok())

    def ask_producer(self, client: GrpcClient, broker: Broker, question: RemotingCommand) -> None:
        """The broker asks a producer how a transaction ended."""
        if client.send is None:
            return  # without a stream no client hears it; the broker asks again
        half, fields = record.decode(question.body or b""), question.ext_fields
        transaction_id = fields["transactionId"]
        half_offset, log_offset = parse_long(fields["tranStateTableOffset"]), parse_long(fields["commitLogOffset"])
        self._keep(broker, half.topic, transaction_id, half_offset, log_offset)
        message = conversion.message_of(half, self._state.now_ms())
        command = make("RecoverOrphanedTransactionCommand", message=message, transaction_id=transaction_id)
        client.send(make("TelemetryCommand", recover_orphaned_transaction_command=command))
