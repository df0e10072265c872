"""The connected clients, what each of them consumes, and how far each group is behind.

Mirrors: AdminBrokerProcessor.

    GET_CONSUME_STATS               per queue: brokerOffset (max), consumerOffset (0 if there is none), pullOffset,
                                    lastTimestamp; lag = brokerOffset - consumerOffset
    GET_CONSUMER_CONNECTION_LIST    CONSUMER_NOT_ONLINE without members
    GET_PRODUCER_CONNECTION_LIST    SYSTEM_ERROR for an unknown group
    GET_TOPIC_STATS_INFO, QUERY_CONSUME_TIME_SPAN     TOPIC_NOT_EXIST for an unknown topic

Left out: what only static topics have.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.consumer_filters import PullFilter
from mqlab.rocketmq.broker.tables.consumers import Member
from mqlab.rocketmq.broker.tables.stats import GROUP_GET_NUMS, TOPIC_PUT_NUMS
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, text, truth, whole_long_or, whole_or
from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.body import queue_key, queue_to_value
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET, RemotingCommand
from mqlab.rocketmq.wire.java_json import pretty, to_json
from mqlab.rocketmq.wire.message import MessageQueue


class GroupQueries:
    """Handlers of the requests about groups, queues and connections."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_topic_stats_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_TOPIC_STATS_INFO."""
        topic = self._topic(text(request, "topic"))
        store = self._state.store
        table = {}
        for queue in self._queues(topic, max(topic.read_queue_nums, topic.write_queue_nums)):
            name, queue_id = queue.topic, queue.queue_id
            end_offset = store.max_offset(name, queue_id)
            table[queue_key(queue)] = {
                "minOffset": store.min_offset(name, queue_id),
                "maxOffset": end_offset,
                "lastUpdateTimestamp": self._time(name, queue_id, end_offset - 1) if end_offset > 0 else 0,
            }
        tps = self._state.stats.minute_tps(TOPIC_PUT_NUMS, topic.topic_name)
        return request.reply(body=to_json({"offsetTable": table, "topicPutTps": tps}))

    def get_consume_stats(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_CONSUME_STATS."""
        group = text(request, "consumerGroup")
        listed = [name for name in (request.ext_fields.get("topicList") or "").split(";") if name]
        one_topic = request.ext_fields.get("topic")
        topics = [one_topic] if one_topic else self._state.offset_table.topics_of(group)
        stats: dict[str, Any] = {"consumeTps": 0.0, "offsetTable": {}}
        for name in listed or self._subscribed(group, topics):
            topic = self._state.topics.get(name)
            if topic is not None:
                stats["offsetTable"].update(self._progress(group, topic, topic.read_queue_nums))
                stats["consumeTps"] += self._state.stats.minute_tps(GROUP_GET_NUMS, f"{name}@{group}")
        return request.reply(body=to_json(stats))

    def get_broker_consume_stats(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_CONSUME_STATS: GET_CONSUME_STATS for every group of this broker."""
        # A group is measured on the topics that its members subscribe to now.
        only_ordered = truth(request, "isOrder")
        listed, total, inflight = [], 0, 0
        for group in self._state.groups:
            stats = []
            for name in self._subscribed(group, self._state.offset_table.topics_of(group)):
                topic = self._state.topics.get(name)
                if topic is None or (only_ordered and not topic.order):
                    continue
                table = self._progress(group, topic, topic.write_queue_nums)
                tps = self._state.stats.minute_tps(GROUP_GET_NUMS, f"{name}@{group}")
                stats.append({"consumeTps": tps, "offsetTable": table})
                # Lag counts what is not consumed, in flight what was pulled of it.
                total += sum(row["brokerOffset"] - row["consumerOffset"] for row in table.values())
                inflight += sum(max(row["pullOffset"] - row["consumerOffset"], 0) for row in table.values())
            listed.append({group: stats})
        return request.reply(
            body=to_json(
                {
                    "brokerAddr": self._state.identity.address,
                    "consumeStatsList": listed,
                    "totalDiff": total,
                    "totalInflightDiff": inflight,
                }
            )
        )

    def _subscribed(self, group: str, topics: Iterable[str]) -> list[str]:
        """Those of the topics that the members of the group subscribe to; all topics if no member is connected."""
        members = self._state.consumers.get(group)
        if members is None or not members.subscriptions:
            return list(topics)
        return [topic for topic in topics if topic in members.subscriptions]

    def _progress(self, group: str, topic: TopicConfig, queues: int) -> dict[str, dict[str, int]]:
        table = {}
        for queue in self._queues(topic, queues):
            name, queue_id = queue.topic, queue.queue_id
            consumed = max(self._state.offset_table.query(group, name, queue_id), 0)
            pulled = self._state.offset_table.query_pull(group, name, queue_id)
            table[queue_key(queue)] = {
                "brokerOffset": self._state.store.max_offset(name, queue_id),
                "consumerOffset": consumed,
                "lastTimestamp": max(self._time(name, queue_id, consumed - 1), 0) if consumed else 0,
                "pullOffset": max(consumed, pulled),
            }
        return table

    def query_consume_time_span(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_CONSUME_TIME_SPAN."""
        topic, group = self._topic(text(request, "topic")), text(request, "group")
        store, spans = self._state.store, []
        for queue in self._queues(topic, topic.write_queue_nums):
            name, queue_id = queue.topic, queue.queue_id
            first_offset, end_offset = store.min_offset(name, queue_id), store.max_offset(name, queue_id)
            consumed = self._state.offset_table.query(group, name, queue_id)
            earliest, latest = self._time(name, queue_id, first_offset), self._time(name, queue_id, end_offset - 1)
            consumed_ms = self._time(name, queue_id, consumed - 1) if consumed > 0 else earliest
            # The delay is the age of the first message that the group has not consumed.
            waiting_ms = self._time(name, queue_id, max(consumed, 0)) if consumed < end_offset else -1
            spans.append(
                {
                    "messageQueue": queue_to_value(queue),
                    "minTimeStamp": earliest,
                    "minTimeStampStr": _shown(earliest),
                    "maxTimeStamp": latest,
                    "maxTimeStampStr": _shown(latest),
                    "consumeTimeStamp": consumed_ms,
                    "consumeTimeStampStr": _shown(consumed_ms),
                    "delayTime": self._state.now_ms() - waiting_ms if waiting_ms >= 0 else 0,
                }
            )
        return request.reply(body=to_json({"consumeTimeSpanSet": spans}))

    def query_consume_queue(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_CONSUME_QUEUE: the index entries of a queue."""
        topic, queue_id = text(request, "topic"), whole_or(request, "queueId", 0)
        first, count = whole_long_or(request, "index", 0), whole_or(request, "count", 0)
        store = self._state.store
        if queue_id not in store.topics().get(topic, ()):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
        # 1. With a group, also its subscription and its SQL filter.
        group, passes = request.ext_fields.get("consumerGroup"), None
        more: dict[str, Any] = {}
        if group:
            members = self._state.consumers.get(group)
            subscription = members.subscriptions.get(topic) if members is not None else None
            if subscription is None:
                more["filterData"] = f"{group}@{topic} is not online!"
            else:
                sql = self._state.filters.get(topic, group)
                more["filterData"] = "null" if sql is None else pretty(sql.to_value())
                more["subscriptionData"] = subscription.to_value()
                passes = PullFilter(subscription, sql)
        # 2. The index entries in the range, as far as the queue has them; "eval": the group's filter lets it pass.
        if not store.min_offset(topic, queue_id) <= first < store.max_offset(topic, queue_id):
            return request.reply(ResponseCode.SUCCESS, f"Index {first} of {queue_id}@{topic} is not exist!")
        rows = []
        for queue_offset in range(first, min(first + count, store.max_offset(topic, queue_id))):
            unit = store.consume_queue_unit(topic, queue_id, queue_offset)
            if unit is not None:
                row = {"physicOffset": unit.physical_offset, "physicSize": unit.size, "tagsCode": unit.tags_code}
                rows.append({"eval": passes is not None and passes.matches_code(unit.tags_code), **row})
        answer: dict[str, Any] = {
            "maxQueueIndex": store.max_offset(topic, queue_id),
            "minQueueIndex": store.min_offset(topic, queue_id),
            "queueData": rows,
            **more,
        }
        return request.reply(ResponseCode.SUCCESS, NOT_SET, to_json(answer))

    def get_consumer_connection_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_CONSUMER_CONNECTION_LIST."""
        name = text(request, "consumerGroup")
        group = self._state.consumers.get(name)
        if group is None:
            raise Refused(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
        return request.reply(
            body=to_json(
                {
                    "connectionSet": _connections(group.members.values()),
                    "consumeFromWhere": group.consume_from_where,
                    "consumeType": group.consume_type,
                    "messageModel": group.message_model,
                    "subscriptionTable": {
                        topic: subscription.to_value() for topic, subscription in group.subscriptions.items()
                    },
                }
            )
        )

    def get_producer_connection_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_PRODUCER_CONNECTION_LIST."""
        name = text(request, "producerGroup")
        members = self._state.producers.get(name)
        if members is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
        return request.reply(body=to_json({"connectionSet": _connections(members.values())}))

    def get_all_producer_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_PRODUCER_INFO."""
        table = {
            group: [
                {
                    "clientId": member.client_id,
                    "language": member.language,
                    "lastUpdateTimestamp": member.last_update_ms,
                    "remoteIP": member.channel.remote_address,
                    "version": member.version,
                }
                for member in members.values()
            ]
            for group, members in self._state.producers.items()
        }
        return request.reply(body=to_json({"data": table}))

    def query_topic_consume_by_who(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_TOPIC_CONSUME_BY_WHO: the groups with members now, and those with offsets."""
        topic = text(request, "topic")
        groups = self._state.consumers.groups_subscribing(topic) + self._state.offset_table.groups_of(topic)
        return request.reply(body=to_json({"groupList": list(dict.fromkeys(groups))}))

    def query_topics_by_consumer(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_TOPICS_BY_CONSUMER."""
        topics = self._state.offset_table.topics_of(text(request, "group"))
        return request.reply(body=to_json({"brokerAddr": self._state.identity.address, "topicList": topics}))

    def query_subscription_by_consumer(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_SUBSCRIPTION_BY_CONSUMER."""
        group, topic = text(request, "group"), text(request, "topic")
        members = self._state.consumers.get(group)
        subscription = members.subscriptions.get(topic) if members is not None else None
        answer: dict[str, Any] = {"group": group, "topic": topic}
        if subscription is not None:
            answer["subscriptionData"] = subscription.to_value()
        return request.reply(body=to_json(answer))

    def _topic(self, name: str) -> TopicConfig:
        topic = self._state.topics.get(name)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        return topic

    def _queues(self, topic: TopicConfig, count: int) -> list[MessageQueue]:
        broker_name = self._state.config.broker_name
        return [MessageQueue(topic.topic_name, broker_name, queue_id) for queue_id in range(count)]

    def _time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """The time at which a message of a queue was stored, -1 if there is none."""
        stored_ms = self._state.store.store_time_at(topic, queue_id, queue_offset) if queue_offset >= 0 else None
        return -1 if stored_ms is None else stored_ms


def _connections(members: Iterable[Member]) -> list[dict[str, Any]]:
    return [
        {
            "clientAddr": member.channel.remote_address,
            "clientId": member.client_id,
            "language": member.language,
            "version": member.version,
        }
        for member in members
    ]


def _shown(timestamp_ms: int) -> str:
    """A time in UTC, as mqadmin writes and reads times."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
    return f"{moment:%Y-%m-%d#%H:%M:%S}:{timestamp_ms % 1000:03d}"
