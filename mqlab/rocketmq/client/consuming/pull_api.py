"""One pull, as every kind of consumer does it: which address, which flags, and what to make of the answer.

Mirrors: PullAPIWrapper, PullResult.

    ask        the address of the broker id last suggested for this queue (0, the master, at first)
    answer     remember the suggested id; FOUND: units -> messages -> keep those with a subscribed tag
               each message gets MIN_OFFSET and MAX_OFFSET, the broker's name, the queue

The broker filters by the hash of a tag; hash collisions are removed only here.

Left out: class filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.instance.broker_calls import PullAnswer, PullCall, pull_answer_of
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow
from mqlab.rocketmq.wire import property_names, sys_flag
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue, decode_messages
from mqlab.rocketmq.wire.names import MASTER_ID
from mqlab.rocketmq.wire.pop import Handle, real_topic


@dataclass(frozen=True, slots=True)
class PullResult:
    """The result of a pull. Offsets are queue offsets; ``filtered_count``: how many the client itself dropped."""

    pull_status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    msg_found_list: list[MessageExt] = field(default_factory=list)
    filtered_count: int = 0
    remark: str | None = None

    def __repr__(self) -> str:
        return (
            f"<PullResult {self.pull_status} {len(self.msg_found_list)} messages, next {self.next_begin_offset}, "
            f"queue {self.min_offset}..{self.max_offset}>"
        )


class PullApi:
    """Pulls for one consumer group. ``pull_from_which_node``: the broker id suggested last, per queue.

    With ``connect_broker_by_user`` all pulls go to ``default_broker_id``, whatever is suggested.
    """

    def __init__(self, cluster: ClusterAccess, group: str) -> None:
        self._cluster = cluster
        self.group = group
        self.pull_from_which_node: dict[MessageQueue, int] = {}
        self.connect_broker_by_user = False
        self.default_broker_id = MASTER_ID

    def pull(self, call: PullCall, timeout_ms: int) -> Flow[PullAnswer]:
        """Ask, within a flow: ``yield from pull_api.pull(...)``. The commit offset is never sent to a slave."""
        queue, routes = call.queue, self._cluster.routes
        broker_id = self._node_of(queue)
        address = routes.broker_address_in_subscribe(queue.broker_name, broker_id)
        if address is None:
            address = yield self._cluster.find_any_broker(queue, broker_id)
        if call.sys_flag & sys_flag.PULL_COMMIT_OFFSET and routes.master_address(queue.broker_name) != address:
            call = replace(call, sys_flag=call.sys_flag & ~sys_flag.PULL_COMMIT_OFFSET)
        response: RemotingCommand = yield self._cluster.calls.pull(address, call, timeout_ms)
        answer = pull_answer_of(response, address)
        self.pull_from_which_node[queue] = answer.suggest_which_broker_id
        return answer

    def _node_of(self, queue: MessageQueue) -> int:
        """The broker id to ask. Mirrors recalculatePullFromWhichNode."""
        if self.connect_broker_by_user:
            return self.default_broker_id
        return self.pull_from_which_node.get(queue, MASTER_ID)

    def result(self, answer: PullAnswer, queue: MessageQueue, subscription: SubscriptionData | None) -> PullResult:
        """Decode an answer and drop what the subscription's tags do not name."""
        messages: list[MessageExt] = []
        dropped: list[MessageExt] = []
        if answer.pull_status == statuses.FOUND:
            tags = subscription.tags_set if subscription and not subscription.class_filter_mode else ()
            # The broker compares hashes of tags; a message whose tag only has the same hash is dropped here.
            for message in decode_messages(answer.body, queue.broker_name):
                if tags and message.tags not in tags:
                    dropped.append(message)
                    continue
                message.properties[property_names.MIN_OFFSET] = str(answer.min_offset)
                message.properties[property_names.MAX_OFFSET] = str(answer.max_offset)
                message.queue_id = queue.queue_id
                messages.append(message)
        if dropped:
            self._cluster.ports.note(
                "message.filtered",
                group=self.group,
                client=self._cluster.ports.node,
                queue=queue,
                messages=[message_note(message, queue, self.group) for message in dropped],
            )
        return PullResult(
            answer.pull_status,
            answer.next_begin_offset,
            answer.min_offset,
            answer.max_offset,
            messages,
            len(dropped),
            answer.remark,
        )


def note_pulled(ports: Ports, group: str, queue: MessageQueue, from_offset: int, result: PullResult) -> None:
    """Record which entries of a queue a pull went over, and which of them came."""
    messages = result.msg_found_list
    ports.note(
        "message.pulled",
        client=ports.node,
        group=group,
        queue=queue,
        from_offset=from_offset,
        next_offset=result.next_begin_offset,
        messages=len(messages),
        queue_offsets=[message.queue_offset for message in messages],
    )


def note_polled(ports: Ports, group: str, queue: MessageQueue, messages: Sequence[MessageExt]) -> None:
    """Record the messages that a consumer's program took; when it has finished them cannot be known."""
    ports.note(
        "message.polled",
        client=ports.node,
        group=group,
        queue=queue,
        messages=[message_note(message, queue, group) for message in messages],
    )


def place_of(message: MessageExt, queue: MessageQueue, group: str) -> MessageQueue:
    """The queue in which a popped message is; ``queue`` for one whose handle is the invention of its producer."""
    try:
        handle = Handle.parse(message.properties[property_names.POP_CK])
        return MessageQueue(real_topic(queue.topic, group, handle.kind), handle.broker_name, handle.queue_id)
    except ValueError:
        return queue


def message_note(message: MessageExt, queue: MessageQueue, group: str) -> dict[str, object]:
    """What the journal records of a message in a consumer's hands; of a retry also the original's offset id.

    ``queue`` was asked; a popped message says in its handle in which queue it is.
    """
    if property_names.POP_CK in message.properties:
        queue = place_of(message, queue, group)
    origin = message.properties.get(property_names.ORIGIN_MESSAGE_ID)
    noted: dict[str, object] = {
        "msg_id": message.msg_id,
        "offset_msg_id": message.offset_msg_id,
        "topic": message.topic,
        "real_topic": queue.topic,
        "message_queue": queue,
        "queue_offset": message.queue_offset,
        "physical_offset": message.physical_offset,
        "reconsume_times": message.reconsume_times,
    }
    return noted if origin is None else {**noted, "origin_msg_id": origin}
