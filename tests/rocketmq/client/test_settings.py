"""Settings: names, durations, ranges, and what a wrong one says."""

from __future__ import annotations

import pytest

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.rocketmq.client.settings import (
    LitePullConsumerConfig,
    ProducerConfig,
    PullConsumerConfig,
    PushConsumerConfig,
    changed,
    make_config,
)


def test_defaults_are_rocketmqs() -> None:
    push, producer, lite = PushConsumerConfig(), ProducerConfig(), LitePullConsumerConfig()
    assert (push.consume_thread_min, push.consume_thread_max, push.pull_batch_size) == (20, 20, 32)
    assert (push.pull_threshold_for_queue, push.pull_threshold_size_for_queue) == (1000, 100)
    assert (push.consume_concurrently_max_span, push.consume_timeout) == (2000, 900_000)
    assert (push.max_reconsume_times, push.suspend_current_queue_time_millis) == (-1, 1_000)
    assert (push.post_subscription_when_pull, push.message_model) == (False, "CLUSTERING")
    assert (push.persist_consumer_offset_interval, push.heartbeat_broker_interval) == (5_000, 30_000)
    assert (producer.send_msg_timeout, producer.retry_times_when_send_failed) == (3_000, 2)
    assert (producer.compress_msg_body_over_howmuch, producer.max_message_size) == (4096, 4 * 1024 * 1024)
    assert (producer.default_topic_queue_nums, producer.send_latency_fault_enable) == (4, False)
    assert (lite.pull_batch_size, lite.auto_commit_interval_millis, lite.pull_threshold_for_all) == (10, 5_000, 10_000)
    assert PullConsumerConfig().consumer_pull_timeout_millis == 10_000


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        ("200ms", 200),
        ("10s", 10_000),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        (7, 7),
        ("1.5s", 1_500),
        (0, 0),
        (" 3 s ", 3_000),
    ],
)
def test_durations(given: str | int, ms: int) -> None:
    assert milliseconds(given) == ms


@pytest.mark.parametrize("wrong", ["", "10", "s", "-1s", "1 hour", True, None, -5, "1h30m"])
def test_no_durations(wrong: object) -> None:
    with pytest.raises(UsageError):
        milliseconds(wrong)  # type: ignore[arg-type]


def test_a_consume_timeout_in_rocketmqs_minutes_is_explained() -> None:
    with pytest.raises(UsageError, match=r'RocketMQ counts minutes(.|\n)*"15m"'):
        make_config(PushConsumerConfig, {"consume_timeout": 15}, "push consumer")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("max_reconsume_time", "max_reconsume_times"),
        ("pull_batchsize", "pull_batch_size"),
        ("consumeTimeout", "consume_timeout"),
    ],
)
def test_an_unknown_setting_names_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"no setting '{name}'(.|\n)*did you mean {nearest}"):
        make_config(PushConsumerConfig, {name: 1}, "push consumer")


@pytest.mark.parametrize(
    "wrong",
    [
        {"consume_thread_min": 0},
        {"consume_thread_min": 1001},
        {"consume_thread_min": 30},
        {"consume_concurrently_max_span": 65536},
        {"pull_threshold_for_queue": 0},
        {"pull_threshold_for_topic": 0},
        {"pull_threshold_size_for_queue": 1025},
        {"pull_batch_size": 1025},
        {"consume_message_batch_max_size": 0},
        {"message_model": "MULTICAST"},
        {"consume_from_where": "THE_START"},
        {"post_subscription_when_pull": "yes"},
        {"consume_timeout": 15},
        {"pull_batch_size": "many"},
    ],
)
def test_values_out_of_range(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        make_config(PushConsumerConfig, wrong, "push consumer")


def test_limits_per_topic_may_be_off_and_settings_can_change() -> None:
    config = make_config(PushConsumerConfig, {"pull_threshold_for_topic": -1, "consume_timeout": "5m"}, "push consumer")
    assert changed(config, {"consume_timeout": "1m"}, "push consumer").consume_timeout == 60_000
    assert config.consume_timeout == 300_000
    with pytest.raises(UsageError):
        changed(config, {"consume_timeouts": 1}, "push consumer")


def test_lite_pull_refuses_what_rocketmq_refuses() -> None:
    with pytest.raises(UsageError, match="shorter"):
        make_config(LitePullConsumerConfig, {"consumer_timeout_millis_when_suspend": "10s"}, "lite pull consumer")
    with pytest.raises(UsageError, match="deprecated"):
        make_config(LitePullConsumerConfig, {"consume_from_where": "CONSUME_FROM_MAX_OFFSET"}, "lite pull consumer")


def test_a_duration_that_is_off_by_default_is_a_duration_too() -> None:
    name = "send_msg_max_timeout_per_request"
    found = [make_config(ProducerConfig, {name: value}, "producer") for value in ("500ms", 500, -1)]
    assert [config.send_msg_max_timeout_per_request for config in found] == [500, 500, -1]
    with pytest.raises(UsageError, match="retry_times_when_send_failed is a whole number, not '2'"):
        make_config(ProducerConfig, {"retry_times_when_send_failed": "2"}, "producer")
