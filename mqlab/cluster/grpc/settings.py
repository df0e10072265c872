"""The answer to a client's settings: its own, with what the group's configuration and RocketMQ's defaults say.

Mirrors: GrpcClientSettingsManager.mergeSettings and GrpcConverter.

    producer    3 attempts, 10 ms to 1 s in between; bodies of at most 4 MiB; topics must fit the kind of message
    consumer    fifo, how often a message is delivered and how long a client waits in between: from its group
"""

from __future__ import annotations

import math
from typing import Any

from mqlab.cluster.grpc.codes import ClientType
from mqlab.cluster.grpc.messages import make, moment
from mqlab.rocketmq.wire.bodies import SubscriptionGroupConfig
from mqlab.rocketmq.wire.java_json import to_long

MAX_BODY = 4_194_304
RECEIVE_BATCH = 32
MOST_POLLING_MS = 20_000
CUSTOMIZED_MS = tuple(
    seconds * 1_000
    for seconds in (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
)
PRODUCER_ATTEMPTS = 3


def max_attempts(group: SubscriptionGroupConfig) -> int:
    """How often a message is delivered before it is dead."""
    return group.retry_max_times + 1


def backoff_ms(group: SubscriptionGroupConfig, reconsume_times: int) -> int:
    """How long a message waits after that many redeliveries. Mirrors RetryPolicy.nextDelayDuration."""
    policy = group.group_retry_policy
    if policy.get("type") == "EXPONENTIAL":
        initial, longest, factor = _exponential(policy)
        return min(longest, math.floor(initial * factor ** min(max(reconsume_times, 0), 32)))
    steps = _customized(policy)
    return steps[min(max(reconsume_times, 0) + 2, len(steps) - 1)]  # as with send-back, the first is the third level


def merged(settings: Any, group: SubscriptionGroupConfig | None) -> Any:
    """The settings that a client is to use. ``group``: None for a producer, and for a group that is not there yet."""
    answer = make("Settings")
    answer.CopyFrom(settings)
    answer.metric.on = False
    answer.metric.SetInParent()
    if settings.client_type == ClientType.PRODUCER or settings.HasField("publishing"):
        answer.backoff_policy.CopyFrom(_for_producers())
        answer.publishing.max_body_size = MAX_BODY
        answer.publishing.validate_message_type = True
    else:
        config = group or SubscriptionGroupConfig(settings.subscription.group.name)
        answer.backoff_policy.CopyFrom(_for_consumers(config))
        answer.subscription.fifo = config.consume_message_orderly
        answer.subscription.receive_batch_size = RECEIVE_BATCH
        # What a client says itself counts until its group is there.
        if group is not None or not settings.subscription.HasField("long_polling_timeout"):
            answer.subscription.long_polling_timeout.FromMilliseconds(MOST_POLLING_MS)
    return answer


def _for_producers() -> Any:
    backoff = make("ExponentialBackoff", initial=moment(10), max=moment(1_000), multiplier=2.0)
    return make("RetryPolicy", max_attempts=PRODUCER_ATTEMPTS, exponential_backoff=backoff)


def _for_consumers(group: SubscriptionGroupConfig) -> Any:
    policy = group.group_retry_policy
    if policy.get("type") == "EXPONENTIAL":
        initial, longest, factor = _exponential(policy)
        backoff = make("ExponentialBackoff", initial=moment(initial), max=moment(longest), multiplier=factor)
        return make("RetryPolicy", max_attempts=max_attempts(group), exponential_backoff=backoff)
    steps = make("CustomizedBackoff", next=[moment(step) for step in _customized(policy)])
    return make("RetryPolicy", max_attempts=max_attempts(group), customized_backoff=steps)


def _customized(policy: dict[str, Any]) -> tuple[int, ...]:
    steps = (policy.get("customizedRetryPolicy") or {}).get("next")
    return tuple(to_long(step) for step in steps) if steps else CUSTOMIZED_MS


def _exponential(policy: dict[str, Any]) -> tuple[int, int, float]:
    own = policy.get("exponentialRetryPolicy") or {}
    return to_long(own.get("initial", 5_000)), to_long(own.get("max", 7_200_000)), float(own.get("multiplier", 2))
