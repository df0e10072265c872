"""Every setting of a broker, with RocketMQ's names and defaults.

Mirrors: BrokerConfig (the settings of the store are in StoreConfig). ``Lab(broker={…})`` sets them.

    name in snake_case          default      in ms unless the name or a comment gives another unit

Left out: thread pool sizes, ACL, tiered storage, the controller.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.errors import UsageError
from mqlab.rocketmq.wire.names import MASTER_ID


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A broker's settings. Raises UsageError for a value that cannot work. Mirrors BrokerConfig."""

    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    broker_id: int = MASTER_ID
    listen_port: int = 10911
    broker_permission: int = 6  # 4 read, 2 write
    region_id: str = "DefaultRegion"
    trace_on: bool = True

    default_topic_queue_nums: int = 8  # queues of TBW102, the template of auto-created topics
    auto_create_topic_enable: bool = True
    auto_create_subscription_group: bool = True
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    enable_mixed_message_type: bool = False  # whether a topic may have message.type=MIXED
    trace_topic_enable: bool = False
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"
    revive_queue_num: int = 8

    register_name_server_period: int = 30_000  # used within 10_000 .. 60_000
    register_broker_timeout_mills: int = 24_000

    flush_consumer_offset_interval: int = 5_000
    consumer_offset_update_version_step: int = 500  # commits per step of the data version
    flush_delay_offset_interval: int = 10_000
    delay_offset_update_version_step: int = 200
    use_server_side_reset_offset: bool = True
    enable_broadcast_offset_store: bool = True
    broadcast_offset_expire_second: int = 120
    broadcast_offset_expire_max_second: int = 300

    channel_expired_timeout: int = 120_000
    notify_consumer_ids_changed_enable: bool = True
    real_time_notify_consumer_change: bool = True
    lock_max_live_time: int = 60_000  # system property rocketmq.broker.rebalance.lockMaxLiveTime

    long_polling_enable: bool = True
    short_polling_time_mills: int = 1_000
    lite_pull_message_enable: bool = True
    transfer_msg_by_heap: bool = True  # here it only decides whether GROUP_GET_LATENCY is counted
    reject_pull_consumer_enable: bool = False
    slave_read_enable: bool = False
    enable_property_filter: bool = False
    filter_support_retry: bool = False
    expect_consumer_num_use_filter: int = 32
    max_error_rate_of_bloom_filter: int = 20  # per cent
    filter_data_clean_time_span: int = 24 * 3_600_000

    start_accept_send_request_time_stamp: int = 0  # ms since the epoch

    store_reply_message_enable: bool = True

    recall_message_enable: bool = False
    allow_recall_when_broker_not_writeable: bool = True

    default_message_request_mode: str = "PULL"
    default_pop_share_queue_num: int = -1
    pop_polling_size: int = 1_024  # held pops of one topic, group and queue
    max_pop_polling_size: int = 100_000
    pop_long_polling_force_notify_interval: int = 800  # every that many messages one wakes held pops of every filter
    pop_from_retry_probability: int = 20  # per cent of pops that read the retry topic first
    pop_response_return_actual_retry_topic: bool = False
    init_pop_offset_by_check_msg_in_mem: bool = True
    enable_retry_topic_v2: bool = False
    retrieve_message_from_pop_retry_topic_v1: bool = True
    enable_pop_buffer_merge: bool = False
    enable_pop_batch_ack: bool = False
    pop_ck_stay_buffer_time: int = 10_000
    pop_ck_stay_buffer_time_out: int = 3_000
    pop_ck_max_buffer_size: int = 200_000
    pop_ck_offset_max_queue_size: int = 20_000
    enable_notify_after_pop_order_lock_release: bool = True
    revive_interval: int = 1_000

    reject_transaction_message: bool = False
    transaction_time_out: int = 6_000
    transaction_check_max: int = 15
    transaction_check_interval: int = 30_000
    transaction_op_msg_max_size: int = 4_096  # bytes
    transaction_op_batch_interval: int = 3_000
    transaction_metric_flush_interval: int = 3_000

    enable_detail_stat: bool = True
    config_black_list: str = "configBlackList;brokerConfigPath"  # settings that UPDATE_BROKER_CONFIG may not change

    def __post_init__(self) -> None:
        for name in ("broker_cluster_name", "broker_name"):
            if not getattr(self, name):
                raise UsageError(f"BrokerConfig.{name} is empty", hint="give the broker a name, e.g. broker-a")
        for name in _POSITIVE:
            value = getattr(self, name)
            if value <= 0:
                raise UsageError(f"BrokerConfig.{name} is {value}, expected a number above 0")
        if self.broker_id < 0:
            raise UsageError(f"BrokerConfig.broker_id is {self.broker_id}", hint="0 is the master, 1 … are slaves")
        if not 0 <= self.broker_permission <= 7:
            raise UsageError(
                f"BrokerConfig.broker_permission is {self.broker_permission}", hint="4 reads, 2 writes, 6 both"
            )

    @property
    def register_period_ms(self) -> int:
        """How often the broker registers: the setting, but at least 10 s and at most 60 s, as in RocketMQ."""
        return max(10_000, min(self.register_name_server_period, 60_000))


_POSITIVE = (
    "default_topic_queue_nums",
    "revive_queue_num",
    "register_broker_timeout_mills",
    "flush_consumer_offset_interval",
    "consumer_offset_update_version_step",
    "flush_delay_offset_interval",
    "delay_offset_update_version_step",
    "channel_expired_timeout",
    "lock_max_live_time",
    "short_polling_time_mills",
    "transaction_check_interval",
    "transaction_op_msg_max_size",
    "transaction_op_batch_interval",
)
