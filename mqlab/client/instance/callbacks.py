"""What a broker may ask of a client: rebalance now, check a transaction, reset, report, consume one message.

Mirrors: ClientRemotingProcessor. Labs 03 (40), 04 (220, 221), 08 (39) and 09 (307, 309) see them on the timeline.

    40  NOTIFY_CONSUMER_IDS_CHANGED       wake the rebalance; never answered
    39  CHECK_TRANSACTION_STATE           the producer group of property PGROUP; answered by a new 37
    220 RESET_CONSUMER_CLIENT_OFFSET      ten seconds; topics one after another
    221 GET_CONSUMER_STATUS_FROM_CLIENT   commit offsets in memory
    307 GET_CONSUMER_RUNNING_INFO         see running_info
    309 CONSUME_MESSAGE_DIRECTLY          the listener, with this one message, now

Left out: 326 (replies to a requester).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from mqlab.client import statuses
from mqlab.client.consuming.consume_service import DirectResult
from mqlab.client.consuming.offset_store import NOT_FOUND
from mqlab.client.consuming.reset import reset_offsets
from mqlab.client.instance.background import background
from mqlab.client.instance.running_info import queue_key, running_info
from mqlab.errors import MqlabError
from mqlab.promises import Flow, Promise, flow
from mqlab.remoting import Channel, Handler, Reply
from mqlab.remoting.requests import Refused, answering, text
from mqlab.wire import java_json, property_names, record
from mqlab.wire.codes import RequestCode, ResponseCode
from mqlab.wire.command import RemotingCommand
from mqlab.wire.message import MessageExt, MessageQueue

if TYPE_CHECKING:
    from mqlab.client.consuming.group_member import GroupMember
    from mqlab.client.instance.mq_client import MQClient
    from mqlab.client.push_consumer import PushConsumer

DIRECT_RESULTS = {
    statuses.CONSUME_SUCCESS: "CR_SUCCESS",
    statuses.SUCCESS: "CR_SUCCESS",
    statuses.RECONSUME_LATER: "CR_LATER",
    statuses.SUSPEND_CURRENT_QUEUE_A_MOMENT: "CR_LATER",
    statuses.COMMIT: "CR_COMMIT",
    statuses.ROLLBACK: "CR_ROLLBACK",
}


class BrokerCallbacks:
    """The handlers of one client instance."""

    def __init__(self, client: MQClient) -> None:
        self._client = client
        self._resets: Promise[Any] = Promise.of(None)  # one reset at a time, as under RocketMQ's lock

    def handlers(self) -> dict[int, Handler]:
        """A handler per request code."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._consumer_ids_changed,
            RequestCode.CHECK_TRANSACTION_STATE: answering(self._check_transaction),
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: answering(self._reset),
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: answering(self._offsets),
            RequestCode.GET_CONSUMER_RUNNING_INFO: answering(self._running_info),
            RequestCode.CONSUME_MESSAGE_DIRECTLY: answering(self._consume_directly),
        }

    def _consumer_ids_changed(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        self._client.rebalance_timer.wake()

    def _check_transaction(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        messages = record.decode_all(request.body or b"")
        if not messages:
            self._client.ports.note("transaction.check_failed", error="the request carries no message")
            return
        message = MessageExt.from_record(messages[0], request.ext_fields.get("bname", ""))
        group = message.properties.get(property_names.PGROUP, "")
        checker = getattr(self._client.producers.get(group), "check_transaction", None)
        if checker is None:
            self._client.ports.note(
                "transaction.check_failed", error=f"no transaction producer of group {group!r} here"
            )
            return
        background(
            self._client.ports, checker(channel.remote_address, message, request.ext_fields), "transaction check"
        )

    def _member(self, group: str) -> GroupMember[Any] | None:
        return cast("GroupMember[Any] | None", self._client.consumers.get(group))

    def _push_consumer(self, group: str) -> PushConsumer | None:
        member = self._member(group)
        return cast("PushConsumer", member) if member is not None and member.kind == "PushConsumer" else None

    def _reset(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        consumer = self._push_consumer(text(request, "group"))
        if consumer is None:
            return
        topic, offsets = text(request, "topic"), _offset_table(request.body or b"{}")
        before, done = self._resets, Promise[Any]()
        self._resets = done

        @flow
        def in_turn() -> Flow[None]:
            yield before
            try:
                yield reset_offsets(consumer, topic, offsets)
            except MqlabError as error:
                self._client.ports.note("consumer.reset_failed", group=consumer.group, error=error.text)
            done.resolve(None)

        background(self._client.ports, in_turn(), "offset reset")

    def _offsets(self, channel: Channel, request: RemotingCommand, reply: Reply) -> RemotingCommand:
        member = self._member(text(request, "group"))
        tells = member is not None and member.kind in ("PushConsumer", "PullConsumer")
        table = member.offset_store.clone_offset_table(text(request, "topic")) if member and tells else {}
        body = {"consumerTable": {}, "messageQueueTable": {queue_key(queue): offset for queue, offset in table.items()}}
        return request.reply(body=_json(body))

    def _running_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        group = text(request, "consumerGroup")
        member = self._member(group)
        if member is None:
            raise _not_here(group)
        background(self._client.ports, self._report(member, request, reply), "running info")

    @flow
    def _report(self, consumer: GroupMember[Any], request: RemotingCommand, reply: Reply) -> Flow[None]:
        commit_offsets: dict[MessageQueue, int] = {}
        for queue in list(consumer.reported_queues()):
            commit_offsets[queue] = consumer.offset_store.read_memory(queue)
            if commit_offsets[queue] == NOT_FOUND:
                commit_offsets[queue] = yield consumer.offset_store.read_store(queue)
        info = running_info(consumer, self._push_consumer(consumer.group), commit_offsets)
        reply(request.reply(body=_json(info)))

    def _known(self, group: str) -> PushConsumer:
        consumer = self._push_consumer(group)
        if consumer is None:
            raise _not_here(group)
        return consumer

    def _consume_directly(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        consumer = self._known(text(request, "consumerGroup"))
        messages = record.decode_all(request.body or b"")
        if not messages:
            raise Refused(ResponseCode.SYSTEM_ERROR, "the request carries no message")
        broker_name = request.ext_fields.get("brokerName") or request.ext_fields.get("bname", "")
        message = MessageExt.from_record(messages[0], broker_name)
        background(self._client.ports, self._answer_directly(consumer, message, request, reply), "consume directly")

    @flow
    def _answer_directly(
        self, consumer: PushConsumer, message: MessageExt, request: RemotingCommand, reply: Reply
    ) -> Flow[None]:
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        direct: DirectResult = yield consumer.consume_service.consume_directly(message, queue)
        if direct.error is not None:
            result = "CR_THROW_EXCEPTION"
        else:
            result = "CR_RETURN_NULL" if direct.answer is None else DIRECT_RESULTS.get(direct.answer, "CR_LATER")
        body = {"autoCommit": True, "consumeResult": result, "order": consumer.is_orderly, "remark": direct.error,
                "spentTimeMills": direct.took_ms}  # fmt: skip
        reply(request.reply(body=_json(body)))


def _not_here(group: str) -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, f"The Consumer Group <{group}> not exist in this consumer")


def _offset_table(body: bytes) -> dict[MessageQueue, int]:
    """The offsets of a reset request: an object with queues as keys, or the list form of C++ clients."""
    table = java_json.loads(body.decode("utf-8", "replace")).get("offsetTable") or {}
    if isinstance(table, list):
        return {MessageQueue(row["topic"], row["brokerName"], int(row["queueId"])): int(row["offset"]) for row in table}
    offsets = {}
    for key, offset in table.items():
        fields = java_json.loads(key) if isinstance(key, str) else dict(key)
        offsets[MessageQueue(fields["topic"], fields["brokerName"], int(fields["queueId"]))] = int(offset)
    return offsets


def _json(body: dict[str, Any]) -> bytes:
    kept = {name: value for name, value in body.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()
