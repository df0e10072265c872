"""Cleans the store of a broker on request.

Mirrors: AdminBrokerProcessor; mqadmin cleanExpiredCQ, cleanUnusedTopic.

    CLEAN_EXPIRED_CONSUMEQUEUE    removes queues whose messages are all gone from the log
    CLEAN_UNUSED_TOPIC            removes queues of topics that the broker no longer has
    DELETE_EXPIRED_COMMITLOG      removes log files older than fileReservedTime, in the next 20 rounds, at any hour
"""

from __future__ import annotations

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer
from mqlab.rocketmq.wire.command import RemotingCommand


class StoreAdmin:
    """Handlers of the requests that clean up."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def clean_expired_consumequeue(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """CLEAN_EXPIRED_CONSUMEQUEUE."""
        self._state.store.retention.clean_expired_queues()
        return request.reply()

    def clean_unused_topic(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """CLEAN_UNUSED_TOPIC."""
        topics = self._state.topics
        for topic in list(self._state.store.topics()):
            if topic not in topics and not topics.is_system(topic):
                self._state.store.delete_topic(topic)
                self._state.ports.note("topic.queues_deleted", topic=topic)
        return request.reply()

    def delete_expired_commitlog(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """DELETE_EXPIRED_COMMITLOG."""
        self._state.store.retention.delete_manually()
        return request.reply()
