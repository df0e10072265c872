"""What one broker is and remembers: its ports, its settings, its identity, its store and its tables.

Mirrors: the fields of BrokerController. The parts of a broker (sending, pulling, …) are handed this state and the
services that they name; no part knows the broker or another part that was made after it.

    BrokerState ─┬─ ports, config, identity, unique_ids
                 ├─ store, timer                                      the messages, and those that wait
                 ├─ topics, groups, offset_table, delay_offset_table,
                 │  filters, transaction_metrics, request_modes,
                 │  order_infos, users                                             tables with a file, see table_files
                 └─ consumers, producers, queue_locks,
                    half_states, stats, store_stats                   tables in memory only
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.broker.tables.consumer_filters import ConsumerFilterTable
from mqlab.rocketmq.broker.tables.consumers import ConsumerTable
from mqlab.rocketmq.broker.tables.delay_offsets import DelayOffsetTable
from mqlab.rocketmq.broker.tables.groups import GroupTable
from mqlab.rocketmq.broker.tables.half_states import HalfStates
from mqlab.rocketmq.broker.tables.offsets import ConsumerOffsetTable
from mqlab.rocketmq.broker.tables.order_infos import OrderInfos
from mqlab.rocketmq.broker.tables.producers import ProducerTable
from mqlab.rocketmq.broker.tables.queue_locks import QueueLocks
from mqlab.rocketmq.broker.tables.request_modes import RequestModes
from mqlab.rocketmq.broker.tables.stats import BrokerStats
from mqlab.rocketmq.broker.tables.store_stats import StoreStats
from mqlab.rocketmq.broker.tables.topics import TopicTable
from mqlab.rocketmq.broker.tables.transaction_metrics import TransactionMetrics
from mqlab.rocketmq.broker.tables.users import UserTable
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.store.timer import TimerMessageStore
from mqlab.rocketmq.wire.host import address_text
from mqlab.rocketmq.wire.ids import UniqueIdMaker

if TYPE_CHECKING:
    from mqlab.rocketmq.broker.plug_in import PlugIn


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a broker is and which role it has; fixed for the life of its process."""

    ip: str
    address: str  # "ip:port" where clients ask
    ha_address: str  # "ip:port" where slaves connect
    store_host: tuple[str, int]  # the address as it is written into every stored message
    is_slave: bool


@dataclass(slots=True, eq=False)
class BrokerState:
    """One broker's state. ``started_ms`` and ``is_running`` change when the broker starts and stops."""

    ports: Ports
    config: BrokerConfig
    identity: Identity
    unique_ids: UniqueIdMaker
    store: MessageStore
    topics: TopicTable
    groups: GroupTable
    consumers: ConsumerTable
    producers: ProducerTable
    offset_table: ConsumerOffsetTable
    delay_offset_table: DelayOffsetTable
    filters: ConsumerFilterTable
    transaction_metrics: TransactionMetrics
    request_modes: RequestModes
    half_states: HalfStates
    queue_locks: QueueLocks
    stats: BrokerStats
    store_stats: StoreStats
    order_infos: OrderInfos
    timer: TimerMessageStore | None  # None: timer_wheel_enable is off
    now_ms: Callable[[], int]
    started_ms: int
    told_name_servers: Sequence[str] = ()  # in GET_BROKER_CONFIG; a slave that knows only its master needs them
    users: UserTable | None = None  # None: every client is answered
    is_running: bool = False
    permission_changed: Signal[[]] = field(default_factory=Signal)

    def change_config(self, config: BrokerConfig) -> None:
        """Use other settings while the broker runs; ``permission_changed`` follows when the broker's own ones differ.

        Intervals and limits that a table or timer was made with count from the next start on.
        """
        before, self.config = self.config, config
        self.topics.config = config
        self.groups.auto_create = config.auto_create_subscription_group
        if before.broker_permission != config.broker_permission:
            self.topics.touch()
            self.permission_changed()

    def change_store_config(self, **settings: Any) -> None:
        """Change settings that the store asks for at every get or put, while the broker runs."""
        store = self.store
        store.config = replace(store.config, **settings)


def _filter_table(config: BrokerConfig, now_ms: Callable[[], int]) -> ConsumerFilterTable:
    return ConsumerFilterTable(
        now_ms,
        expect_groups=config.expect_consumer_num_use_filter,
        error_rate=config.max_error_rate_of_bloom_filter,
        clean_after_ms=config.filter_data_clean_time_span,
    )


def open_state(
    ports: Ports,
    config: BrokerConfig,
    store_config: StoreConfig,
    plug_in: PlugIn,
    store_directory: str,
    memory_bytes: int | None,
    users: UserTable | None = None,
) -> BrokerState:
    """The state of a broker that has not loaded its files yet. Nothing in it knows the parts that will use it."""
    now_ms, note, has_timer = ports.clock.now_ms, ports.note, store_config.timer_wheel_enable
    # 1. The broker's names.
    ip, port = ports.ip, config.listen_port
    ha_address = address_text(ip, store_config.ha_listen_port or port + 1)
    identity = Identity(ip, address_text(ip, port), ha_address, (ip, port), store_config.is_slave)
    unique_ids = UniqueIdMaker(ports.ip, ports.rng.randrange(1 << 16), ports.rng.randrange(1 << 31))
    # 2. The store. It reads no file before load().
    store = _new_store(plug_in.store_kind, ports, store_config, store_directory, identity, memory_bytes)
    timer = TimerMessageStore(store, ports.files, ports.clock, note=note) if has_timer else None
    # 3. The tables. SQL filters follow the heartbeats of consumers.
    topics = TopicTable(config, now_ms, has_timer=has_timer, note=note)
    filters = _filter_table(config, now_ms)
    consumers = ConsumerTable(now_ms, note=note)
    consumers.registered.subscribe(filters.register)
    consumers.removed.subscribe(filters.unregister)
    return BrokerState(
        replace(ports, clock=store.failures.clock_of_broker),
        config,
        identity,
        unique_ids,
        store,
        topics,
        GroupTable(now_ms, auto_create=config.auto_create_subscription_group, note=note),
        consumers,
        ProducerTable(now_ms, note=note),
        ConsumerOffsetTable(
            now_ms,
            version_step=config.consumer_offset_update_version_step,
            use_server_side_reset=config.use_server_side_reset_offset,
            note=note,
        ),
        DelayOffsetTable(now_ms, version_step=config.delay_offset_update_version_step),
        filters,
        TransactionMetrics(now_ms),
        RequestModes(),
        HalfStates(),
        QueueLocks(now_ms, max_live_ms=config.lock_max_live_time, note=note),
        BrokerStats(now_ms, config.broker_cluster_name, is_system=topics.is_system, detail=config.enable_detail_stat),
        StoreStats(now_ms),
        OrderInfos(now_ms, is_known=_knows(topics)),
        timer,
        now_ms=now_ms,
        started_ms=now_ms(),
        users=users,
    )


def _new_store(
    kind: type[MessageStore],
    ports: Ports,
    config: StoreConfig,
    directory: str,
    identity: Identity,
    memory_bytes: int | None,
) -> MessageStore:
    return kind(
        directory,
        files=ports.files,
        clock=ports.clock,
        config=config,
        store_host=identity.store_host,
        note=ports.note,
        note_messages=ports.keeps_journal,
        memory_bytes=memory_bytes,
    )


def _knows(topics: TopicTable) -> Callable[[str, int], bool]:
    """Whether a topic has a queue to read."""
    return lambda topic, queue_id: topic in topics and queue_id < topics[topic].read_queue_nums
