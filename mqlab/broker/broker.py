"""One broker: its tables, its store, its timers, and which handler answers which request.

Mirrors: BrokerController; every lab runs at least one.

    frame ─▶ Remoting ─▶ handlers[code] ─▶ a handler object (sending, pulling, …) ─▶ tables and store ─▶ reply
                                           store.dispatch ─▶ _arrived ─▶ held pulls, schedule, transaction check

    start      tables from their files · store recovered · listen · first registration · timers armed
    shutdown   goodbye to the name servers · timers off · tables to their files · store closed · channels closed

Left out: POP, the second ("VIP") port, thread pools per kind of request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mqlab.broker.broadcast_offsets import BroadcastOffsets
from mqlab.broker.config import BrokerConfig
from mqlab.broker.long_polling import CHECK_PERIOD_MS, HeldPulls
from mqlab.broker.membership import Membership
from mqlab.broker.pulling import Pulling
from mqlab.broker.putting import Putter
from mqlab.broker.registration import Registration
from mqlab.broker.replication.replication import Replication
from mqlab.broker.replication.roles import handlers_of_role, settings_of_role
from mqlab.broker.schedule import DelayOffsetTable, Schedule
from mqlab.broker.send_back import SendBack
from mqlab.broker.sending import Sending
from mqlab.broker.tables.config_saver import ConfigSaver
from mqlab.broker.tables.consumer_filters import ConsumerFilterTable
from mqlab.broker.tables.consumers import ConsumerTable
from mqlab.broker.tables.groups import GroupTable
from mqlab.broker.tables.offsets import ConsumerOffsetTable
from mqlab.broker.tables.producers import ProducerTable
from mqlab.broker.tables.queue_locks import QueueLocks
from mqlab.broker.tables.stats import BrokerStats
from mqlab.broker.tables.store_stats import StoreStats
from mqlab.broker.tables.topics import TopicTable
from mqlab.broker.tables.transaction_metrics import TransactionMetrics
from mqlab.broker.tools.group_queries import GroupQueries
from mqlab.broker.tools.member_calls import MemberCalls
from mqlab.broker.tools.message_lookup import MessageLookup
from mqlab.broker.tools.offset_queries import OffsetQueries
from mqlab.broker.tools.offset_resets import OffsetResets
from mqlab.broker.tools.runtime_info import RuntimeInfo
from mqlab.broker.tools.store_admin import StoreAdmin
from mqlab.broker.tools.topic_admin import TopicAdmin
from mqlab.broker.transaction_check import TransactionCheck
from mqlab.broker.transactions import Transactions
from mqlab.errors import UsageError
from mqlab.ports import Ports
from mqlab.remoting.endpoint import Handler, Remoting
from mqlab.remoting.requests import Answering, answering
from mqlab.store.config import StoreConfig, parse_delay_levels
from mqlab.store.config_files import ConfigFile
from mqlab.store.message_store import MessageStore
from mqlab.wire import names
from mqlab.wire.bodies import TopicConfig
from mqlab.wire.codes import RequestCode
from mqlab.wire.ids import UniqueIdMaker

FIRST_PERSIST_MS = 10_000
FILTER_PERSIST_MS = 10_000


class Broker:
    """A broker node. ``store_directory`` is where its store and configuration files are. Mirrors BrokerController."""

    def __init__(
        self,
        ports: Ports,
        config: BrokerConfig,
        *,
        store_directory: str,
        store_config: StoreConfig | None = None,
        name_servers: Iterable[str] = (),
        memory_bytes: int | None = None,
    ) -> None:
        config, store_config = settings_of_role(config, store_config or StoreConfig())
        self.ports = ports
        self.config = config
        self.is_slave = store_config.is_slave
        self.ip = ports.ip
        self.address = f"{ports.ip}:{config.listen_port}"
        self.ha_address = f"{ports.ip}:{store_config.ha_listen_port or config.listen_port + 1}"
        self.store_host = (ports.ip, config.listen_port)
        self.started_ms = self.now_ms()
        self.is_running = False
        self.unique_ids = UniqueIdMaker(ports.ip, ports.rng.randrange(1 << 16), ports.rng.randrange(1 << 31))
        self.store = MessageStore(
            store_directory,
            files=ports.files,
            clock=ports.clock,
            config=store_config,
            store_host=self.store_host,
            note=ports.note,
            memory_bytes=memory_bytes,
        )
        self._make_tables()
        self._make_savers(store_directory)
        self._make_services()
        self.remoting = Remoting(ports, self._handlers(), on_channel_closed=self.membership.channel_closed)
        self.replication = Replication(self)
        self.registration = Registration(self, name_servers)

    # -- parts

    def _make_tables(self) -> None:
        config, note = self.config, self.ports.note
        self.topics = TopicTable(config, self.now_ms, on_changed=self._topics_changed, note=note)
        self.groups = GroupTable(
            self.now_ms,
            auto_create=config.auto_create_subscription_group,
            on_changed=lambda: self._group_saver.changed(),
            note=note,
        )
        self.offset_table = ConsumerOffsetTable(
            self.now_ms,
            version_step=config.consumer_offset_update_version_step,
            use_server_side_reset=config.use_server_side_reset_offset,
            on_changed=lambda: self._offset_saver.changed(),
            note=note,
        )
        self.delay_offset_table = DelayOffsetTable(
            self.now_ms,
            version_step=config.delay_offset_update_version_step,
            on_changed=lambda: self._delay_saver.changed(),
        )
        self.filters = ConsumerFilterTable(
            self.now_ms,
            expect_groups=config.expect_consumer_num_use_filter,
            error_rate=config.max_error_rate_of_bloom_filter,
            clean_after_ms=config.filter_data_clean_time_span,
            on_changed=lambda: self._filter_saver.changed(),
        )
        self.transaction_metrics = TransactionMetrics(self.now_ms, on_changed=lambda: self._metrics_saver.changed())
        self.queue_locks = QueueLocks(self.now_ms, max_live_ms=config.lock_max_live_time, note=note)
        self.stats = BrokerStats(
            self.now_ms,
            config.broker_cluster_name,
            is_system=self.topics.is_system,
            detail=config.enable_detail_stat,
        )

    def _make_savers(self, store_directory: str) -> None:
        files, clock, note = self.ports.files, self.ports.clock, self.ports.note

        def saver(name: str, table: object, period_ms: int | None, kind: str = "broker.persist") -> ConfigSaver:
            saved_kind = "offset.persisted" if kind == "offset.persist" else "config.persisted"
            points_into_log = table is self.offset_table or table is self.delay_offset_table
            return ConfigSaver(
                clock,
                ConfigFile(files, f"{store_directory}/config/{name}"),
                table.encode,  # type: ignore[attr-defined]
                table.decode,  # type: ignore[attr-defined]
                first_ms=FIRST_PERSIST_MS,
                period_ms=period_ms,
                kind=kind,
                saved_kind=saved_kind,
                ready=self._log_is_safe if points_into_log else lambda: True,
                note=note,
            )

        config = self.config
        self._topic_saver = saver("topics.json", self.topics, None)
        self._group_saver = saver("subscriptionGroup.json", self.groups, None)
        self._offset_saver = saver(
            "consumerOffset.json", self.offset_table, config.flush_consumer_offset_interval, "offset.persist"
        )
        self._delay_saver = saver("delayOffset.json", self.delay_offset_table, config.flush_delay_offset_interval)
        self._filter_saver = saver("consumerFilter.json", self.filters, FILTER_PERSIST_MS)
        self._metrics_saver = saver(
            "transactionMetrics", self.transaction_metrics, config.transaction_metric_flush_interval
        )
        self._savers = (
            self._topic_saver,
            self._group_saver,
            self._offset_saver,
            self._delay_saver,
            self._filter_saver,
            self._metrics_saver,
        )

    def _make_services(self) -> None:
        clock, note = self.ports.clock, self.ports.note
        delays_ms = parse_delay_levels(self.store.config.message_delay_level)
        self.store_stats = StoreStats(clock.now_ms)
        self.putter = Putter(self.store, len(delays_ms), self.store_stats)
        self.schedule = Schedule(self.store, self.putter, clock, delays_ms, self.delay_offset_table, self.stats, note)
        self.transactions = Transactions(self, self.transaction_metrics)
        self.transaction_check = TransactionCheck(self)
        self.broadcast_offsets = BroadcastOffsets(self)
        self.membership = Membership(self)
        self.pulling = Pulling(self)
        self.consumers = ConsumerTable(
            self.now_ms,
            on_members_changed=self.membership.members_changed,
            on_registered=self.filters.register,
            on_removed=self.filters.unregister,
            note=note,
        )
        self.producers = ProducerTable(self.now_ms, note=note)
        config = self.config
        self.held_pulls = HeldPulls(
            clock,
            self.pulling.run_again,
            self.store.max_offset,
            check_period_ms=CHECK_PERIOD_MS if config.long_polling_enable else config.short_polling_time_mills,
            note=note,
        )

    def _handlers(self) -> Mapping[int, Handler]:
        """Request code -> handler. Mirrors BrokerController.registerProcessor."""
        handlers = handlers_of_role(self, {**self._of_clients(), **self._of_tools()})
        return {int(code): answering(handle) for code, handle in handlers.items()}

    def _of_clients(self) -> Mapping[RequestCode, Answering]:
        """What producers and consumers ask."""
        sending, pulling, membership = Sending(self), self.pulling, self.membership
        offsets, lookup = OffsetQueries(self), MessageLookup(self)
        code = RequestCode
        return {
            code.SEND_MESSAGE: sending.send_message,
            code.SEND_MESSAGE_V2: sending.send_message,
            code.SEND_BATCH_MESSAGE: sending.send_message,
            code.CONSUMER_SEND_MSG_BACK: SendBack(self).consumer_send_msg_back,
            code.END_TRANSACTION: self.transactions.end_transaction,
            code.PULL_MESSAGE: pulling.pull_message,
            code.LITE_PULL_MESSAGE: pulling.pull_message,
            code.QUERY_MESSAGE: lookup.query_message,
            code.VIEW_MESSAGE_BY_ID: lookup.view_message_by_id,
            code.HEART_BEAT: membership.heart_beat,
            code.UNREGISTER_CLIENT: membership.unregister_client,
            code.GET_CONSUMER_LIST_BY_GROUP: membership.get_consumer_list_by_group,
            code.CHECK_CLIENT_CONFIG: membership.check_client_config,
            code.LOCK_BATCH_MQ: membership.lock_batch_mq,
            code.UNLOCK_BATCH_MQ: membership.unlock_batch_mq,
            code.QUERY_CONSUMER_OFFSET: offsets.query_consumer_offset,
            code.UPDATE_CONSUMER_OFFSET: offsets.update_consumer_offset,
            code.GET_MAX_OFFSET: offsets.get_max_offset,
            code.GET_MIN_OFFSET: offsets.get_min_offset,
            code.SEARCH_OFFSET_BY_TIMESTAMP: offsets.search_offset_by_timestamp,
            code.GET_EARLIEST_MSG_STORETIME: offsets.get_earliest_msg_storetime,
            code.GET_ALL_CONSUMER_OFFSET: offsets.get_all_consumer_offset,
            code.GET_ALL_DELAY_OFFSET: offsets.get_all_delay_offset,
        }

    def _of_tools(self) -> Mapping[RequestCode, Answering]:
        """What mqadmin and dashboards ask."""
        resets, calls, topics = OffsetResets(self), MemberCalls(self), TopicAdmin(self)
        groups, info, store = GroupQueries(self), RuntimeInfo(self), StoreAdmin(self)
        code = RequestCode
        return {
            code.INVOKE_BROKER_TO_RESET_OFFSET: resets.invoke_broker_to_reset_offset,
            code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: resets.invoke_broker_to_get_consumer_status,
            code.QUERY_CORRECTION_OFFSET: OffsetQueries(self).query_correction_offset,
            code.CLONE_GROUP_OFFSET: resets.clone_group_offset,
            code.UPDATE_AND_CREATE_TOPIC: topics.update_and_create_topic,
            code.UPDATE_AND_CREATE_TOPIC_LIST: topics.update_and_create_topic_list,
            code.DELETE_TOPIC_IN_BROKER: topics.delete_topic_in_broker,
            code.GET_ALL_TOPIC_CONFIG: topics.get_all_topic_config,
            code.GET_TOPIC_CONFIG: topics.get_topic_config,
            code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: topics.get_system_topic_list_from_broker,
            code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: topics.update_and_create_subscriptiongroup,
            code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: topics.update_and_create_subscriptiongroup_list,
            code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: topics.get_all_subscriptiongroup_config,
            code.GET_SUBSCRIPTIONGROUP_CONFIG: topics.get_subscriptiongroup_config,
            code.DELETE_SUBSCRIPTIONGROUP: topics.delete_subscriptiongroup,
            code.GET_TOPIC_STATS_INFO: groups.get_topic_stats_info,
            code.GET_CONSUME_STATS: groups.get_consume_stats,
            code.GET_BROKER_CONSUME_STATS: groups.get_broker_consume_stats,
            code.QUERY_CONSUME_TIME_SPAN: groups.query_consume_time_span,
            code.QUERY_CONSUME_QUEUE: groups.query_consume_queue,
            code.GET_CONSUMER_CONNECTION_LIST: groups.get_consumer_connection_list,
            code.GET_PRODUCER_CONNECTION_LIST: groups.get_producer_connection_list,
            code.GET_ALL_PRODUCER_INFO: groups.get_all_producer_info,
            code.QUERY_TOPIC_CONSUME_BY_WHO: groups.query_topic_consume_by_who,
            code.QUERY_TOPICS_BY_CONSUMER: groups.query_topics_by_consumer,
            code.QUERY_SUBSCRIPTION_BY_CONSUMER: groups.query_subscription_by_consumer,
            code.GET_BROKER_RUNTIME_INFO: info.get_broker_runtime_info,
            code.GET_BROKER_HA_STATUS: lambda *asked: self.replication.get_broker_ha_status(*asked),
            code.VIEW_BROKER_STATS_DATA: info.view_broker_stats_data,
            code.GET_BROKER_CONFIG: info.get_broker_config,
            code.UPDATE_BROKER_CONFIG: info.update_broker_config,
            code.CLEAN_EXPIRED_CONSUMEQUEUE: store.clean_expired_consumequeue,
            code.CLEAN_UNUSED_TOPIC: store.clean_unused_topic,
            code.DELETE_EXPIRED_COMMITLOG: store.delete_expired_commitlog,
            code.GET_CONSUMER_RUNNING_INFO: calls.get_consumer_running_info,
            code.CONSUME_MESSAGE_DIRECTLY: calls.consume_message_directly,
        }

    # -- life

    def now_ms(self) -> int:
        """This node's time."""
        return self.ports.clock.now_ms()

    def start(self) -> None:
        """Load tables, recover the store, listen, register. Raises StoreError or CorruptionError for damaged files."""
        self.started_ms = self.now_ms()
        for saver in self._savers:
            saver.load()
        self.store.load()
        self.schedule.correct_offsets()
        self.store.on_arrival = self._arrived
        self.store.start()
        self.is_running = True
        self.remoting.listen(self.address)
        for saver in self._savers:
            saver.start()
        self.replication.start()
        if not self.is_slave:
            self.schedule.start()
            self.transaction_check.start()
        self.registration.start()

    def shutdown(self) -> None:
        """Stop cleanly: nothing that was acknowledged or committed is lost."""
        if not self.is_running:
            return
        self.registration.stop()
        self.is_running = False
        self.replication.stop()
        self.held_pulls.clear()
        self.membership.stop()
        self.broadcast_offsets.stop()
        self.transaction_check.stop()
        self.transactions.stop()
        self.schedule.stop()
        for saver in self._savers:
            saver.stop()
        self.store.shutdown()
        self.remoting.close()

    def create_topic(self, config: TopicConfig) -> None:
        """Make or change a topic, as UPDATE_AND_CREATE_TOPIC does. UsageError for one that may not be."""
        problem = self.topics.problem_of(config)
        if problem is not None:
            raise UsageError(problem)
        self.topics.update(config)

    def update_config(self, config: BrokerConfig) -> None:
        """Change settings while the broker runs; changed permissions are registered at once.

        Intervals and limits that a table or timer was made with count from the next start on.
        """
        before, self.config = self.config, config
        self.topics.config = config
        self.groups.auto_create = config.auto_create_subscription_group
        if before.broker_permission != config.broker_permission:
            self.topics.touch()
            self.registration.register_all()

    def update_store_config(self, **settings: Any) -> None:
        """Change settings that the store asks for at every get or put (READ_LIVE) while the broker runs."""
        store = self.store
        store.config = store.reader.config = store.replica_waits.config = replace(store.config, **settings)

    # -- what happens inside

    def _log_is_safe(self) -> bool:
        """Under SYNC_FLUSH a file of offsets is written only after the log: what they passed over must have its copies.

        A retry copy, a delivered delayed message and a half message stored again are acknowledged without a flush.
        """
        return not self.store.config.is_sync_flush or self.store.flusher.sync_log()

    def _topics_changed(self, topics: list[TopicConfig]) -> None:
        self._topic_saver.changed()
        if topics and self.is_running:
            self.registration.register_changed(topics)

    def _arrived(
        self,
        topic: str,
        queue_id: int,
        next_queue_offset: int,
        tags_code: int,
        store_timestamp: int,
        properties: Mapping[str, str],
    ) -> None:
        """A message became readable. Mirrors NotifyMessageArrivingListener."""
        if self.is_slave:
            self.replication.messages_dispatched += 1
        elif topic == names.SCHEDULE_TOPIC:
            self.schedule.arrived(queue_id, tags_code)
        elif topic == names.HALF_TOPIC or topic == names.OP_HALF_TOPIC:
            self.transaction_check.look()
        self.held_pulls.arrived(topic, queue_id, next_queue_offset, tags_code, properties)

    def __repr__(self) -> str:
        state = "running" if self.is_running else "stopped"
        name = f"{self.config.broker_name}{f' slave {self.config.broker_id}' if self.is_slave else ''}"
        return f"<Broker {name} {self.address} {state}: {len(self.topics)} topics, {self.store!r}>"
