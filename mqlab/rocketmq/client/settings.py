"""Every setting of a client in one place, with RocketMQ's names, defaults and allowed ranges.

Mirrors: ClientConfig and the fields of DefaultMQProducer, DefaultMQPushConsumer and the pull consumers.

    lab.push_consumer("billing", max_reconsume_times=3, consume_timeout="5m")
        └ make_config(PushConsumerConfig, {...})      unknown name: UsageError naming the nearest one
                                                      durations: "5m" or a number of ms

Ranges are checked when the client is made (RocketMQ checks them when it starts).

Left out: settings of parts that are left out (ACL, TLS, namespaces, automatic batches).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from mqlab.durations import milliseconds
from mqlab.errors import UsageError, did_you_mean
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from mqlab.rocketmq.client.sending.fault_strategy import LATENCY_MAX_MS, NOT_AVAILABLE_DURATION_MS

CLUSTERING = "CLUSTERING"
BROADCASTING = "BROADCASTING"
MESSAGE_MODELS = (CLUSTERING, BROADCASTING)

CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
CONSUME_FROM_WHERE = (
    CONSUME_FROM_LAST_OFFSET,
    CONSUME_FROM_FIRST_OFFSET,
    CONSUME_FROM_TIMESTAMP,
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",  # three deprecated words that mean LAST_OFFSET
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)
COMPRESS_TYPES = ("ZLIB", "LZ4", "ZSTD")
LEAST_CONSUME_TIMEOUT_MS = 1_000
RETRY_RESPONSE_CODES = (17, 14, 1, 2, 16, 204, 205, 1500)

Config = TypeVar("Config", bound="ClientConfig")


def _duration(default: str | int) -> Any:
    return field(default=milliseconds(default), metadata={"duration": True})


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name}={value!r} is not possible", hint="one of " + ", ".join(allowed))


def _in_range(config: object, ranges: Mapping[str, tuple[int, int]], also: Mapping[str, int] | None = None) -> None:
    for name, (lowest, highest) in ranges.items():
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"{name} must be a whole number, not {value!r}")
        if not lowest <= value <= highest and not (also and also.get(name) == value):
            raise UsageError(f"{name}={value} is out of range", hint=f"allowed is {lowest} to {highest}")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What every client has. Mirrors ClientConfig.

    ``client_ip`` None: the machine's address; ``instance_name`` None: the node's name. Together they are the client id,
    so two nodes with equal values of both have one client id; see mqlab.rocketmq.client.instance.client_id.
    """

    client_ip: str | None = None
    instance_name: str | None = None
    unit_name: str | None = None
    unit_mode: bool = False
    poll_name_server_interval: int = _duration("30s")
    heartbeat_broker_interval: int = _duration("30s")
    persist_consumer_offset_interval: int = _duration("5s")
    pull_time_delay_mills_when_exception: int = _duration("1s")
    mq_client_api_timeout: int = _duration("3s")
    enable_trace: bool = False
    trace_topic: str = "RMQ_SYS_TRACE_TOPIC"

    def __post_init__(self) -> None:
        for name in ("client_ip", "instance_name", "unit_name"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise UsageError(f"{name}={value!r} cannot be a part of a client id", hint="a string that is not blank")


@dataclass(frozen=True, slots=True)
class ProducerConfig(ClientConfig):
    """Settings of a producer. Mirrors DefaultMQProducer. ``mq_fault_strategy`` replaces the latency table.

    ``topics``: those whose routes are fetched by start().
    """

    topics: Sequence[str] = ()
    create_topic_key: str = "TBW102"
    default_topic_queue_nums: int = 4
    send_msg_timeout: int = _duration("3s")
    send_msg_max_timeout_per_request: int = field(default=-1, metadata={"duration": True})  # -1: none
    retry_times_when_send_failed: int = 2
    retry_times_when_send_async_failed: int = 2
    retry_another_broker_when_not_store_ok: bool = False
    retry_response_codes: tuple[int, ...] = RETRY_RESPONSE_CODES
    max_message_size: int = 4 * 1024 * 1024
    compress_msg_body_over_howmuch: int = 4096
    compress_type: str = "ZLIB"
    compress_level: int = 5
    send_latency_fault_enable: bool = False
    latency_max: tuple[int, ...] = LATENCY_MAX_MS
    not_available_duration: tuple[int, ...] = NOT_AVAILABLE_DURATION_MS
    start_detector_enable: bool = False
    detect_interval: int = _duration("2s")
    detect_timeout: int = _duration("200ms")
    mq_fault_strategy: Any = None
    enable_backpressure_for_async_mode: bool = False
    back_pressure_for_async_send_num: int = 1024
    back_pressure_for_async_send_size: int = 100 * 1024 * 1024

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        _one_of("compress_type", self.compress_type, COMPRESS_TYPES)
        # A string is a sequence, too: its letters would count as topics.
        if isinstance(self.topics, str):
            raise UsageError(f"topics is a list of names, not {self.topics!r}", hint=f'topics=["{self.topics}"]')
        _in_range(
            self,
            {
                "default_topic_queue_nums": (1, 65535),
                "retry_times_when_send_failed": (0, 1000),
                "retry_times_when_send_async_failed": (0, 1000),
                "max_message_size": (1, 2**31 - 1),
                "compress_level": (0, 9),
                "back_pressure_for_async_send_num": (1, 2**31 - 1),
                "back_pressure_for_async_send_size": (1, 2**31 - 1),
            },
        )


@dataclass(frozen=True, slots=True)
class ConsumerConfig(ClientConfig):
    """What every consumer has. ``consume_timestamp`` is text yyyyMMddHHmmss in UTC; None: half an hour before now."""

    message_model: str = CLUSTERING
    consume_from_where: str = CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str | None = None
    allocate_message_queue_strategy: Any = "AVG"
    process_queue: Callable[[], Any] = ProcessQueue
    local_offset_store_dir: str = ".rocketmq_offsets"

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        _one_of("message_model", self.message_model, MESSAGE_MODELS)
        _one_of("consume_from_where", self.consume_from_where, CONSUME_FROM_WHERE)


@dataclass(frozen=True, slots=True)
class PushConsumerConfig(ConsumerConfig):
    """Settings of a push consumer. Mirrors DefaultMQPushConsumer.

    With ``client_rebalance=False`` the broker divides the queues, and a group whose mode is POP pops.
    ``message_timeout`` (mqlab's own, 0 is off) sends a message back and acks it when its listener takes longer.
    """

    consume_thread_min: int = 20
    consume_thread_max: int = 20
    consume_concurrently_max_span: int = 2000
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100
    pull_threshold_for_topic: int = -1
    pull_threshold_size_for_topic: int = -1
    pull_interval: int = _duration(0)
    pull_batch_size: int = 32
    pull_batch_size_in_bytes: int = 256 * 1024
    consume_message_batch_max_size: int = 1
    post_subscription_when_pull: bool = False
    max_reconsume_times: int = -1
    suspend_current_queue_time_millis: int = _duration("1s")
    consume_timeout: int = _duration("15m")
    await_termination_millis_when_shutdown: int = _duration(0)
    message_timeout: int = _duration(0)
    client_rebalance: bool = True
    pop_invisible_time: int = _duration("60s")
    pop_batch_nums: int = 32
    pop_threshold_for_queue: int = 96

    def __post_init__(self) -> None:
        ConsumerConfig.__post_init__(self)
        _in_range(
            self,
            {
                "consume_thread_min": (1, 1000),
                "consume_thread_max": (1, 1000),
                "consume_concurrently_max_span": (1, 65535),
                "pull_threshold_for_queue": (1, 65535),
                "pull_threshold_size_for_queue": (1, 1024),
                "pull_threshold_for_topic": (1, 6_553_500),
                "pull_threshold_size_for_topic": (1, 102_400),
                "pull_interval": (0, 65535),
                "pull_batch_size": (1, 1024),
                "pull_batch_size_in_bytes": (1, 2**31 - 1),
                "consume_message_batch_max_size": (1, 1024),
                "max_reconsume_times": (-1, 2**31 - 1),
                "pop_invisible_time": (5_000, 300_000),
                "pop_batch_nums": (1, 32),
                "pop_threshold_for_queue": (1, 1_000),
            },
            also={"pull_threshold_for_topic": -1, "pull_threshold_size_for_topic": -1},
        )
        # A number alone is in ms here and in minutes in RocketMQ: a copied setting would be far too short.
        if self.consume_timeout < LEAST_CONSUME_TIMEOUT_MS:
            raise UsageError(
                f"consume_timeout={self.consume_timeout} ms is too short: it is at least {LEAST_CONSUME_TIMEOUT_MS} ms",
                hint=f'RocketMQ counts minutes, durations here have a unit: "{self.consume_timeout}m"',
            )
        # RocketMQ refuses this as well, when the consumer starts.
        if self.consume_thread_min > self.consume_thread_max:
            raise UsageError(
                f"consume_thread_min {self.consume_thread_min} is larger than consume_thread_max "
                f"{self.consume_thread_max}",
                hint="set both: the pool never grows past consume_thread_min, its queue is unbounded",
            )


@dataclass(frozen=True, slots=True)
class PullConsumerConfig(ConsumerConfig):
    """Settings of the pull consumer. Mirrors DefaultMQPullConsumer."""

    broker_suspend_max_time_millis: int = _duration("20s")
    consumer_timeout_millis_when_suspend: int = _duration("30s")
    consumer_pull_timeout_millis: int = _duration("10s")
    max_reconsume_times: int = 16


@dataclass(frozen=True, slots=True)
class SimpleConsumerConfig(ConsumerConfig):
    """Settings of the simple consumer; ``await_duration``: how long a receive waits. Mirrors SimpleConsumerBuilder."""

    await_duration: int = _duration("15s")


LEAST_AUTO_COMMIT_MS = 1_000


@dataclass(frozen=True, slots=True)
class LitePullConsumerConfig(ConsumerConfig):
    """Settings of the lite pull consumer. Mirrors DefaultLitePullConsumer."""

    pull_batch_size: int = 10
    pull_thread_nums: int = 20
    pull_threshold_for_all: int = 10_000
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100
    consume_max_span: int = 2000
    auto_commit: bool = True
    auto_commit_interval_millis: int = _duration("5s")
    poll_timeout_millis: int = _duration("5s")
    broker_suspend_max_time_millis: int = _duration("20s")
    consumer_timeout_millis_when_suspend: int = _duration("30s")
    consumer_pull_timeout_millis: int = _duration("10s")  # without effect, as in RocketMQ: every pull may be held
    topic_metadata_check_interval_millis: int = _duration("30s")

    def __post_init__(self) -> None:
        ConsumerConfig.__post_init__(self)
        if self.auto_commit_interval_millis < LEAST_AUTO_COMMIT_MS:  # RocketMQ's setter ignores it silently
            object.__setattr__(self, "auto_commit_interval_millis", 5_000)
        if self.consume_from_where not in CONSUME_FROM_WHERE[:3]:
            raise UsageError(
                f"consume_from_where={self.consume_from_where} is deprecated and refused by lite pull consumers"
            )
        if self.consumer_timeout_millis_when_suspend < self.broker_suspend_max_time_millis:
            raise UsageError(
                "consumer_timeout_millis_when_suspend is shorter than broker_suspend_max_time_millis",
                hint="a held pull would time out before the broker answers it",
            )


def make_config(kind: type[Config], settings: Mapping[str, Any], whose: str) -> Config:
    """A config from keyword settings. Raises UsageError for a name that does not exist or a value out of range.

    >>> make_config(PushConsumerConfig, {"consume_timeout": "5m"}, "push consumer").consume_timeout
    300000
    """
    return kind(**_checked(kind, settings, whose))


def changed(config: Config, settings: Mapping[str, Any], whose: str) -> Config:
    """The config with some settings replaced, checked as by make_config."""
    return replace(config, **_checked(type(config), settings, whose))


def _checked(kind: type[ClientConfig], settings: Mapping[str, Any], whose: str) -> dict[str, Any]:
    known = {field.name: field for field in fields(kind)}
    checked: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in known:
            raise UsageError(f"a {whose} has no setting {name!r}", hint=did_you_mean(name, known))
        expected = known[name]
        is_duration = expected.metadata.get("duration") and value != expected.default
        checked[name] = milliseconds(value) if is_duration else value
        if isinstance(expected.default, bool) and not isinstance(value, bool):
            raise UsageError(f"{name} is True or False, not {value!r}")
        if isinstance(expected.default, int) and not isinstance(checked[name], int):
            raise UsageError(f"{name} is a whole number, not {value!r}")
    return checked
