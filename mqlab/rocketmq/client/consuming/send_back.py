"""Two ways out for a failed message: the broker stores it again by its position, or it is sent as a new message.

Mirrors: DefaultMQPushConsumerImpl.sendMessageBack and sendMessageBackAsNormalMessage. Lab 07 follows one to the end.

    1  CONSUMER_SEND_MSG_BACK (36)   physical offset, group, delay level, the client's own max_reconsume_times
    2  send to %RETRY%group          same body and properties, RECONSUME_TIME + 1, delay level 3 + reconsume_times
    both failed                      the caller consumes the message again itself, 5 s later
"""

from __future__ import annotations

from mqlab.errors import ClientError, MqlabError
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.sending.sender import Sender
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.host import address_text
from mqlab.rocketmq.wire.message import Message, MessageExt, MessageQueue
from mqlab.rocketmq.wire.names import retry_topic

SEND_BACK_TIMEOUT_MS = 5_000
FIRST_RETRY_LEVEL = 3


class SendBack:
    """Both ways, for one consumer group. ``sender``: the client instance's own, for the second way."""

    def __init__(self, cluster: ClusterAccess, sender: Sender, group: str) -> None:
        self._cluster = cluster
        self._sender = sender
        self.group = group

    @flow
    def send(
        self, message: MessageExt, delay_level: int, queue: MessageQueue, *, max_reconsume_times: int
    ) -> Flow[bool]:
        """Send back; if that fails, send as a new message. True when one of them worked."""
        host, port = message.store_host
        address = (
            self._cluster.routes.master_address(message.broker_name)
            if message.broker_name
            else address_text(host, port)
        )
        try:
            if address is None:
                raise ClientError(f"The broker[{message.broker_name}] master node does not exist")
            yield self._cluster.calls.send_message_back(
                address,
                self.group,
                message.broker_name,
                physical_offset=message.physical_offset,
                delay_level=delay_level,
                origin_msg_id=message.msg_id,
                origin_topic=message.topic,
                max_reconsume_times=max_reconsume_times,
                timeout_ms=SEND_BACK_TIMEOUT_MS,
            )
        except MqlabError as error:
            self._note(message, queue, delay_level, "send_back", error.text)
            sent: bool = yield self.send_as_new_message(message, queue, max_reconsume_times=max_reconsume_times)
            return sent
        self._note(message, queue, delay_level, "send_back", None)
        return True

    @flow
    def send_as_new_message(self, message: MessageExt, queue: MessageQueue, *, max_reconsume_times: int) -> Flow[bool]:
        """Send a copy to %RETRY%group with the client's inner producer. True when it is stored."""
        # The broker counts from these properties, as if it had stored the retry itself.
        level = FIRST_RETRY_LEVEL + message.reconsume_times
        copy = Message(retry_topic(self.group), message.body, flag=message.flag)
        copy.properties.update(message.properties)
        copy.properties[property_names.RETRY_TOPIC] = message.topic
        copy.properties[property_names.RECONSUME_TIME] = str(message.reconsume_times + 1)
        copy.properties[property_names.MAX_RECONSUME_TIMES] = str(max_reconsume_times)
        copy.properties[property_names.DELAY] = str(level)
        copy.properties.pop(property_names.TRAN_MSG, None)
        try:
            yield self._sender.send_sync(self._sender.outgoing(copy), self._sender.config.send_msg_timeout)
        except MqlabError as error:
            self._note(message, queue, level, "new_message", error.text)
            return False
        self._note(message, queue, level, "new_message", None)
        return True

    def _note(self, message: MessageExt, queue: MessageQueue, level: int, way: str, error: str | None) -> None:
        self._cluster.ports.note(
            "message.sent_back",
            client=self._cluster.ports.node,
            group=self.group,
            msg_id=message.msg_id,
            message_queue=queue,
            queue_offset=message.queue_offset,
            physical_offset=message.physical_offset,
            reconsume_times=message.reconsume_times,
            delay_level=level,
            way=way,
            error=error,
        )
