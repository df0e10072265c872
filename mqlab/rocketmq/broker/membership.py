"""Clients come and go: heartbeats, leaving, closed channels, the members of a group, and locks of queues.

Mirrors: ClientManageProcessor, ConsumerManageProcessor, DefaultConsumerIdsChangeListener, ClientHousekeepingService and
the queue locks of AdminBrokerProcessor.

    heartbeat of consumer group g    ─▶ g is created if it is new ─▶ %RETRY%g is created ─▶ member and topics registered
        a new member or topic        ─▶ NOTIFY_CONSUMER_IDS_CHANGED to all members (not if broadcasting)
        a changed expression         ─▶ no notice
    no heartbeat for over 120 s      ─▶ removed at the next 10 s tick, channel closed, no notice

    heartbeat without subscriptions (V2)   ─▶ those of the group stay; the answer asks for all of them next time

Left out: the offer of heartbeats without subscriptions (V2); clients then always send complete ones.
"""

from __future__ import annotations

from mqlab.errors import FilterError
from mqlab.rocketmq.broker.long_polling import HeldPulls
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables import topics
from mqlab.rocketmq.broker.tables.consumer_filters import TAG_TYPES
from mqlab.rocketmq.broker.tables.consumers import CONSUME_ACTIVELY, ConsumerGroup, Member
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, body, text
from mqlab.rocketmq.wire import bodies, names
from mqlab.rocketmq.wire.bodies import CheckClientRequestBody, ConsumerData, HeartbeatData, LockBatchRequestBody
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request

SCAN_PERIOD_MS = 10_000
BATCHED_NOTICE_FIRST_MS = 30_000
BATCHED_NOTICE_PERIOD_MS = 15_000


class Membership:
    """Handlers of what clients report about themselves, and the scan for silent clients."""

    def __init__(self, state: BrokerState, held_pulls: HeldPulls) -> None:
        self._state = state
        self._held_pulls = held_pulls
        state.consumers.members_changed.subscribe(self.members_changed)
        self._started_ms = state.now_ms()
        self._scan: Deadline | None = None
        self._batched: dict[str, ConsumerGroup] = {}
        self._batch: Deadline | None = None

    def heart_beat(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """HEART_BEAT."""
        heartbeat = HeartbeatData.from_json(body(request))
        for consumer in heartbeat.consumer_data_set:
            # A broker may refuse consumers that pull by themselves.
            active = consumer.consume_type == CONSUME_ACTIVELY
            if not (active and self._state.config.reject_pull_consumer_enable):
                member = self._member(heartbeat, channel, request)
                self._register_consumer(consumer, member, without_sub=heartbeat.without_sub)
        for producer in heartbeat.producer_data_set:
            self._state.producers.register(producer.group_name, self._member(heartbeat, channel, request))
        self._arm_scan()
        if heartbeat.without_sub:  # from a client to which another broker, at the same address, has offered V2
            return request.reply(IS_SUB_CHANGE=True)
        return request.reply()

    def _member(self, heartbeat: HeartbeatData, channel: Channel, request: RemotingCommand) -> Member:
        return Member(channel, heartbeat.client_id, request.language, request.version, self._state.now_ms())

    def _register_consumer(self, consumer: ConsumerData, member: Member, *, without_sub: bool) -> None:
        state = self._state
        group = state.groups.find(consumer.group_name)
        if group is None:
            # Not created automatically, or not to be called so: the entry is skipped without an error.
            state.ports.note(
                "consumer.refused",
                group=consumer.group_name,
                client=member.client_id,
                reason=names.group_problem(consumer.group_name) or "there is no such group",
            )
            return
        # The retry topic of a group that consumes an ordered topic is ordered, too.
        ordered = any(
            subscribed.topic in state.topics and state.topics[subscribed.topic].order
            for subscribed in consumer.subscription_data_set
        )
        state.topics.create_on_send_back(
            names.retry_topic(consumer.group_name),
            group.retry_queue_nums,
            order=ordered,
            topic_sys_flag=topics.UNIT_SUB_FLAG if consumer.unit_mode else 0,
        )
        state.consumers.register(
            consumer.group_name,
            member,
            consume_type=consumer.consume_type,
            message_model=consumer.message_model,
            consume_from_where=consumer.consume_from_where,
            subscriptions=None if without_sub else list(consumer.subscription_data_set),
            notify=group.notify_consumer_ids_changed_enable,
        )

    def unregister_client(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UNREGISTER_CLIENT."""
        text(request, "clientID")
        producer_group = request.ext_fields.get("producerGroup")
        if producer_group:
            self._state.producers.unregister(producer_group, channel)
        consumer_group = request.ext_fields.get("consumerGroup")
        if consumer_group:
            group = self._state.groups.find(consumer_group)
            notify = group is None or group.notify_consumer_ids_changed_enable
            self._state.consumers.unregister(consumer_group, channel, notify=notify)
        return request.reply()

    def channel_closed(self, channel: Channel) -> None:
        """A connection is gone: its clients leave their groups. No member is notified while the broker stops."""
        if not self._state.is_running:
            return
        self._held_pulls.drop(channel)
        self._state.consumers.channel_closed(channel)
        self._state.producers.channel_closed(channel)

    def get_consumer_list_by_group(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_CONSUMER_LIST_BY_GROUP."""
        group = text(request, "consumerGroup")
        members = self._state.consumers.get(group)
        if members is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
        return request.reply(body=bodies.consumer_ids_to_json(members.client_ids))

    def check_client_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """CHECK_CLIENT_CONFIG: may this client filter by its SQL expression?"""
        subscription = CheckClientRequestBody.from_json(body(request)).subscription_data
        if subscription is None or subscription.expression_type in TAG_TYPES:
            return request.reply()
        if not self._state.config.enable_property_filter:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"The broker does not support consumer to filter message by {subscription.expression_type}",
            )
        expression, kind = subscription.sub_string, subscription.expression_type or ""
        try:
            self._state.filters.build(subscription.topic, "", expression, kind, self._state.now_ms())
        except FilterError as error:
            raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from error
        return request.reply()

    def members_changed(self, group: ConsumerGroup) -> None:
        """Send every member a notice to rebalance: now, or together with the other changes of 15 s."""
        config = self._state.config
        if not config.notify_consumer_ids_changed_enable:
            return
        if config.real_time_notify_consumer_change:
            self._notify(group)
            return
        # One notice per group, however often it changed.
        self._batched[group.name] = group
        if self._batch is None:
            origin_ms = self._started_ms + BATCHED_NOTICE_FIRST_MS
            due_ms = next_on_grid(max(self._state.now_ms(), origin_ms), BATCHED_NOTICE_PERIOD_MS, origin_ms)
            self._batch = self._state.ports.clock.call_at(due_ms, self._notify_batched, "broker.notify_members")

    def _notify_batched(self) -> None:
        self._batch = None
        changed, self._batched = self._batched, {}
        for group in changed.values():
            self._notify(group)

    def _notify(self, group: ConsumerGroup) -> None:
        for channel in list(group.members):
            channel.send_oneway(make_request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, consumerGroup=group.name))

    def _arm_scan(self) -> None:
        if self._scan is not None:
            return
        state = self._state
        # The scan is due when the client that has been silent longest would be one ms over its time.
        last_heard_ms = [state.consumers.oldest_update_ms(), state.producers.oldest_update_ms()]
        oldest_ms = min((heard_ms for heard_ms in last_heard_ms if heard_ms is not None), default=None)
        if oldest_ms is not None:
            first_silent_ms = oldest_ms + state.config.channel_expired_timeout + 1
            due_ms = next_on_grid(first_silent_ms, SCAN_PERIOD_MS, self._started_ms)
            self._scan = state.ports.clock.call_at(due_ms, self._expire, "broker.scan_channels")

    def _expire(self) -> None:
        self._scan = None
        timeout_ms = self._state.config.channel_expired_timeout
        silent = self._state.consumers.expire(timeout_ms) + self._state.producers.expire(timeout_ms)
        # A client may be in several groups; its channel is closed once.
        for channel in dict.fromkeys(silent):
            channel.close()
        self._arm_scan()

    def stop(self) -> None:
        """Scan no more and send no more notices."""
        for deadline in (self._scan, self._batch):
            if deadline is not None:
                deadline.cancel()
        self._scan = self._batch = None

    def lock_batch_mq(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """LOCK_BATCH_MQ: the answer holds the queues that the client has locked now."""
        lock_request = LockBatchRequestBody.from_json(body(request))
        held = self._state.queue_locks.try_lock(
            lock_request.consumer_group, lock_request.mq_set, lock_request.client_id
        )
        return request.reply(body=bodies.LockBatchResponseBody(lock_ok_mq_set=held).to_json())

    def unlock_batch_mq(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UNLOCK_BATCH_MQ."""
        lock_request = LockBatchRequestBody.from_json(body(request))
        self._state.queue_locks.unlock(lock_request.consumer_group, lock_request.mq_set, lock_request.client_id)
        return request.reply()
