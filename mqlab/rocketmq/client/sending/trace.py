"""Message trace: each send and each delivery is recorded in a message of its own, in RocketMQ's text format.

Mirrors: AsyncTraceDispatcher, TraceDataEncoder, the trace hooks.

    Pub        type time region group topic msgId tags keys storeHost bodyLength costTime msgType offsetMsgId success
    SubBefore  type time region group requestId msgId retryTimes keys
    SubAfter   type requestId msgId costTime success keys contextCode time group
    EndTransaction   type time region group topic msgId tags keys storeHost msgType transactionId state fromCheck

    fields end with 0x01, entries with 0x02; ten entries, or what came within half a second, make one message;
    its keys are the message ids and keys in it

Left out: a client instance of its own (RocketMQ opens a second connection for it), and the cloud channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqlab.errors import MqlabError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.consuming import consume_hooks
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.instance.membership import ClientMembership
from mqlab.rocketmq.client.sending.send_options import SendHookContext
from mqlab.rocketmq.client.sending.sender import Sender
from mqlab.rocketmq.client.settings import ProducerConfig
from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.java_hash import hash_map_order
from mqlab.rocketmq.wire.message import Message, MessageExt

CONTENT_SPLITTER = "\x01"
FIELD_SPLITTER = "\x02"
BATCH_NUM = 10
WAIT_MS = 500
MAX_MESSAGE_SIZE = 128_000
HEADROOM = 10_000
SEND_TIMEOUT_MS = 5_000

NORMAL_MSG, TRANS_MSG_HALF, TRANS_MSG_COMMIT, DELAY_MSG = range(4)  # MessageType's ordinals
CONTEXT_CODES = {
    consume_hooks.RETURN_SUCCESS: 0,
    consume_hooks.TIME_OUT: 1,
    consume_hooks.EXCEPTION: 2,
    consume_hooks.RETURNNULL: 3,
    consume_hooks.FAILED: 4,
}


@dataclass(frozen=True, slots=True)
class TraceTransferBean:
    """One encoded entry and the keys under which it can be found."""

    text: str
    keys: tuple[str, ...]


def _entry(fields: Sequence[object]) -> str:
    return CONTENT_SPLITTER.join(_java_text(value) for value in fields) + FIELD_SPLITTER


def _java_text(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


class TraceDispatcher:
    """Collects entries of one client and sends them. Starts sending only after ``start``."""

    def __init__(self, cluster: ClusterAccess, membership: ClientMembership, name: str, topic: str) -> None:
        config = ProducerConfig(send_msg_timeout=SEND_TIMEOUT_MS, max_message_size=MAX_MESSAGE_SIZE)
        self._cluster = cluster
        self._membership = membership
        self._sender = Sender(cluster, f"_INNER_TRACE_PRODUCER-{name}-1", config)
        self.ports = cluster.ports
        self.unique_ids = cluster.unique_ids
        self.topic = topic
        self._entries: list[TraceTransferBean] = []
        self._size = 0
        self._deadline: Deadline | None = None

    def start(self) -> None:
        """Let its producer live in the client."""
        self._membership.register_producer(self._sender)

    @flow
    def shutdown(self) -> Flow[None]:
        """Send what is left, then leave the client."""
        yield self.flush()
        yield self._membership.unregister_producer(self._sender.group)

    def append(self, text: str, messages: Sequence[tuple[str, str | None]]) -> None:
        """Add an entry; ``messages``: msg_id and keys of each message in it."""
        keys: list[str] = []
        for msg_id, message_keys in messages:
            keys.append(msg_id)
            keys += (message_keys or "").split(property_names.KEY_SEPARATOR) if message_keys else []
        self._entries.append(TraceTransferBean(text, tuple(keys)))
        self._size += len(text)
        if len(self._entries) >= BATCH_NUM or self._size >= MAX_MESSAGE_SIZE - HEADROOM:
            background(self._cluster.ports, self.flush(), "trace")
        elif self._deadline is None:
            self._deadline = self._cluster.ports.clock.call_later(WAIT_MS, self._flush_now, "trace.flush")

    @flow
    def flush(self) -> Flow[None]:
        """Send what was collected; a trace that cannot be sent is lost."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        entries, self._entries, self._size = self._entries, [], 0
        if not entries:
            return
        message = Message(self.topic, "".join(entry.text for entry in entries).encode())
        keys = hash_map_order(dict.fromkeys(key for entry in entries for key in entry.keys))
        message.properties[property_names.KEYS] = property_names.KEY_SEPARATOR.join(keys)
        try:
            yield self._sender.send_async(self._sender.outgoing(message), SEND_TIMEOUT_MS)
        except MqlabError as error:
            self._cluster.ports.note("trace.lost", entries=len(entries), error=error.text)

    def _flush_now(self) -> None:
        background(self._cluster.ports, self.flush(), "trace")

    def __repr__(self) -> str:
        return f"<TraceDispatcher to {self.topic}: {len(self._entries)} waiting>"


@dataclass(frozen=True, slots=True)
class _PubBean:
    """What a Pub entry holds of a message, as it was when it was sent. Mirrors TraceBean."""

    topic: str
    tags: str | None
    keys: str | None
    body_length: int
    message_type: int


class ProducerTraceHook:
    """Mirrors SendMessageTraceHookImpl and EndTransactionTraceHookImpl."""

    def __init__(self, dispatcher: TraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def send_message_before(self, context: SendHookContext) -> None:
        """Keep what the entry will hold of the message; its body has the length with which it travels."""
        message = context.message
        if not message.topic.startswith(self._dispatcher.topic):
            context.props["trace"] = _PubBean(
                message.topic, message.tags, message.keys, len(message.body), _message_type(message)
            )

    def send_message_after(self, context: SendHookContext) -> None:
        """One Pub entry per stored message; none for a failed or one-way send, or if the broker has trace off."""
        result = context.send_result
        bean: _PubBean | None = context.props.get("trace")
        if result is None or bean is None or not result.trace_on:
            return
        cost_ms = self._dispatcher.ports.clock.now_ms() - context.started_ms
        fields = (
            "Pub",
            context.started_ms,
            result.region_id,
            context.producer_group,
            bean.topic,
            result.msg_id,
            bean.tags,
            bean.keys,
            context.broker_address,
            bean.body_length,
            cost_ms,
            bean.message_type,
            result.offset_msg_id,
            result.send_status == statuses.SEND_OK,
        )
        self._dispatcher.append(_entry(fields), [(result.msg_id, bean.keys)])

    def end_transaction(
        self, message: Message, *, group: str, msg_id: str, broker_address: str, state: str, from_check: bool
    ) -> None:
        """One EndTransaction entry."""
        now_ms = self._dispatcher.ports.clock.now_ms()
        region = message.properties.get(property_names.MSG_REGION, "DefaultRegion")
        fields = (
            "EndTransaction",
            now_ms,
            region,
            group,
            message.topic,
            msg_id,
            message.tags,
            message.keys,
            broker_address,
            TRANS_MSG_COMMIT,
            message.properties.get(property_names.UNIQ_KEY),
            state,
            from_check,
        )
        self._dispatcher.append(_entry(fields), [(msg_id, message.keys)])


def _message_type(message: Message) -> int:
    if message.properties.get(property_names.TRAN_MSG, "").lower() == "true":
        return TRANS_MSG_HALF
    return DELAY_MSG if property_names.DELAY in message.properties else NORMAL_MSG


class ConsumerTraceHook:
    """Mirrors ConsumeMessageTraceHookImpl: SubBefore when a listener is called, SubAfter when it is back."""

    def __init__(self, dispatcher: TraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def consume_message_before(self, context: consume_hooks.ConsumeHookContext) -> None:
        """Entries of all messages of the batch whose broker has trace switched on."""
        traced = [message for message in context.messages if message.properties.get(property_names.TRACE_ON) != "false"]
        if not traced:
            return
        request_id = self._dispatcher.unique_ids.next(context.started_ms)
        context.props["trace"] = (request_id, traced)
        region = traced[0].properties.get(property_names.MSG_REGION)
        entries = [
            (
                "SubBefore",
                context.started_ms,
                region,
                context.consumer_group,
                request_id,
                message.msg_id,
                message.reconsume_times,
                message.keys or "",
            )
            for message in traced
        ]
        self._append(entries, traced)

    def consume_message_after(self, context: consume_hooks.ConsumeHookContext) -> None:
        """The same messages, with time and outcome."""
        if "trace" not in context.props:
            return
        request_id, traced = context.props["trace"]
        now_ms = self._dispatcher.ports.clock.now_ms()
        cost_ms = (now_ms - context.started_ms) // len(traced)
        code = CONTEXT_CODES[context.return_type]
        entries = [
            (
                "SubAfter",
                request_id,
                message.msg_id,
                cost_ms,
                context.success,
                message.keys or "",
                code,
                now_ms,
                context.consumer_group,
            )
            for message in traced
        ]
        self._append(entries, traced)

    def _append(self, entries: Sequence[Sequence[object]], traced: Sequence[MessageExt]) -> None:
        text = "".join(_entry(fields) for fields in entries)
        self._dispatcher.append(text, [(message.msg_id, message.keys) for message in traced])
