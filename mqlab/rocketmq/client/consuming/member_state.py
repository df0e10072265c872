"""What a consumer knows: its group and settings, what it subscribes to, which queues it owns, and how far it is.

Mirrors: the fields that DefaultMQPushConsumerImpl, DefaultMQPullConsumerImpl and DefaultLitePullConsumerImpl share.
The parts of a consumer (rebalance, pull loop, consume service …) are handed this state and the functions that they
call; none of them holds the consumer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mqlab.rocketmq.client.consuming.consume_hooks import ConsumeHook
from mqlab.rocketmq.client.consuming.first_offset import DEFAULT_TIMESTAMP_AGO_MS, first_offset, timestamp_ms
from mqlab.rocketmq.client.consuming.local_offset_store import LocalOffsetStore
from mqlab.rocketmq.client.consuming.offset_store import OffsetStore, RemoteOffsetStore
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue, new_process_queue
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.instance.service_state import ServiceState
from mqlab.rocketmq.client.instance.statistics import ConsumerStatistics
from mqlab.rocketmq.client.settings import BROADCASTING, ConsumerConfig, PushConsumerConfig
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.message import MessageQueue

NO_LIMIT = 2**31 - 1
DEFAULT_MAX_RECONSUME_TIMES = 16

Config = TypeVar("Config", bound=ConsumerConfig)


@dataclass(slots=True, eq=False)
class MemberState(Generic[Config]):
    """The state of one consumer. ``subscriptions``: by topic; ``process_queues``: the queues it owns now.

    ``topic_subscribe_info``: the readable queues of its topics; ``consume_timestamp_ms``: where CONSUME_FROM_TIMESTAMP
    begins. UsageError for a setting ``process_queue`` that cannot be one, and for a timestamp that cannot be read.
    """

    cluster: ClusterAccess
    statistics: ConsumerStatistics
    group: str
    config: Config
    service: ServiceState
    ports: Ports = field(init=False)
    offset_store: OffsetStore = field(init=False)
    consume_timestamp_ms: int = field(init=False)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    topic_subscribe_info: dict[str, list[MessageQueue]] = field(default_factory=dict)
    process_queues: dict[MessageQueue, ProcessQueue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ports = self.cluster.ports
        if self.is_broadcasting:
            directory = self.config.local_offset_store_dir
            self.offset_store = LocalOffsetStore(self.cluster, self.group, directory)
        else:
            self.offset_store = RemoteOffsetStore(self.cluster, self.group)
        new_process_queue(self.config.process_queue, 0)  # a class that cannot be one is refused here, not in a round
        text = self.config.consume_timestamp
        default_ms = self.ports.clock.now_ms() - DEFAULT_TIMESTAMP_AGO_MS
        self.consume_timestamp_ms = default_ms if text is None else timestamp_ms(text)

    @property
    def is_broadcasting(self) -> bool:
        return self.config.message_model == BROADCASTING

    @flow
    def first_offset_of(self, queue: MessageQueue) -> Flow[int]:
        """Where to begin to pull a queue. ClientError when the stored offset could not be read."""
        stored = yield self.offset_store.read_store(queue)
        where = self.config.consume_from_where
        offset: int = yield first_offset(self.cluster, queue, stored, where, self.consume_timestamp_ms)
        return offset


@dataclass(slots=True, eq=False)
class PushState(MemberState[PushConsumerConfig]):
    """The state of a push consumer. The two limits are those in force: the limits per topic rewrite them."""

    is_suspended: bool = False
    is_orderly: bool = False
    consume_hooks: list[ConsumeHook] = field(default_factory=list)
    pull_threshold_for_queue: int = field(init=False)
    pull_threshold_size_for_queue: int = field(init=False)

    def __post_init__(self) -> None:
        MemberState.__post_init__(self)
        self.pull_threshold_for_queue = self.config.pull_threshold_for_queue
        self.pull_threshold_size_for_queue = self.config.pull_threshold_size_for_queue

    @property
    def max_reconsume_times(self) -> int:
        """After how many retries a message goes to the dead letters; the setting -1 means RocketMQ's 16."""
        configured = self.config.max_reconsume_times
        return DEFAULT_MAX_RECONSUME_TIMES if configured == -1 else configured

    @property
    def max_reconsume_times_in_order(self) -> int:
        """The same for orderly consumption, where -1 means "without end"."""
        configured = self.config.max_reconsume_times
        return NO_LIMIT if configured == -1 else configured

    def over_limit(self, process_queue: ProcessQueue) -> str:
        """Which limit the cache of a queue is over, "" when none. All comparisons are strict."""
        if process_queue.msg_count > self.pull_threshold_for_queue:
            return "count"
        if process_queue.msg_size_mib > self.pull_threshold_size_for_queue:
            return "size"
        if not self.is_orderly and process_queue.max_span() > self.config.consume_concurrently_max_span:
            return "span"
        return ""

    def rescale_limits(self) -> None:
        """Divide the limits per topic by the number of owned queues."""
        owned = len(self.process_queues)
        if owned and self.config.pull_threshold_for_topic != -1:
            self.pull_threshold_for_queue = max(1, self.config.pull_threshold_for_topic // owned)
        if owned and self.config.pull_threshold_size_for_topic != -1:
            self.pull_threshold_size_for_queue = max(1, self.config.pull_threshold_size_for_topic // owned)
