"""The latency fault table.

Mirrors: MQFaultStrategy, LatencyFaultToleranceImpl.
"""

from __future__ import annotations

import pytest

from mqlab.errors import UsageError
from mqlab.rocketmq.client.sending.fault_strategy import LatencyFaultStrategy
from tests.rocketmq.client.scripted import ScriptedWorld

VECTORS = [
    (0, 0),
    (49, 0),
    (50, 0),
    (549, 0),
    (550, 2000),
    (1799, 2000),
    (1800, 5000),
    (2999, 5000),
    (3000, 6000),
    (4999, 6000),
    (5000, 10000),
    (14999, 10000),
    (15000, 30000),
]


@pytest.mark.parametrize(("latency_ms", "penalty_ms"), VECTORS)
def test_penalty_by_latency(latency_ms: int, penalty_ms: int) -> None:
    assert LatencyFaultStrategy().duration_ms(latency_ms) == penalty_ms


def test_an_error_counts_as_ten_seconds() -> None:
    strategy = LatencyFaultStrategy()
    strategy.update("broker-a", 3, 1_000, isolation=True, reachable=True)
    assert not strategy.is_available("broker-a", 10_999)
    assert strategy.is_available("broker-a", 11_000)


def test_a_new_penalty_only_extends() -> None:
    strategy = LatencyFaultStrategy()
    strategy.update("broker-a", 15_000, 0, isolation=False, reachable=True)
    strategy.update("broker-a", 10, 100, isolation=False, reachable=True)
    assert not strategy.is_available("broker-a", 29_999)


def test_reachable_until_a_broker_says_no() -> None:
    strategy = LatencyFaultStrategy()
    assert strategy.is_reachable("broker-a")
    strategy.update("broker-a", 10, 0, isolation=True, reachable=False)
    assert not strategy.is_reachable("broker-a")
    strategy.update("broker-a", 10, 0, isolation=False, reachable=True)
    assert strategy.is_reachable("broker-a")


def test_classes_and_durations_belong_together() -> None:
    with pytest.raises(UsageError, match="belong together"):
        LatencyFaultStrategy([1, 2], [1])


@pytest.mark.parametrize(
    ("wrong", "word"), [(object(), "lacks is_available, is_reachable, update"), (LatencyFaultStrategy, "is a class")]
)
def test_what_is_no_strategy_is_refused_when_the_producer_is_made(wrong: object, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        ScriptedWorld().producer(mq_fault_strategy=wrong)
