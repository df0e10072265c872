"""The detector of brokers that answer again, and who tells the latency table what.

Mirrors: LatencyFaultToleranceImpl.detectByOneRound.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from mqlab.errors import BrokerError, ClientError, RemotingError, UsageError
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.scripted import ScriptedWorld

PROBE = RequestCode.GET_MAX_OFFSET


def message() -> Message:
    return Message("orders", "заказ 订单 🚀".encode())


def producer_of(world: ScriptedWorld, **settings: Any) -> Any:
    return world.producer(
        send_latency_fault_enable=True, retry_times_when_send_failed=0, retry_times_when_send_async_failed=0, **settings
    )


def never_answered(world: ScriptedWorld, producer: Any) -> Any:
    """Send to the one broker, which does not answer; its item in the table."""
    world.brokers["broker-a"].script = [None]
    with contextlib.suppress(ClientError, RemotingError):
        producer.send(message(), timeout="500ms")
    return producer.sender.faults.items["broker-a"]


@pytest.mark.parametrize(("detector", "reachable"), [(False, True), (True, False)])
def test_a_transport_error_makes_unreachable_only_when_somebody_looks(detector: bool, reachable: bool) -> None:
    world = ScriptedWorld(["broker-a"])
    item = never_answered(world, producer_of(world, start_detector_enable=detector))
    assert item.reachable is reachable
    assert item.available_from_ms == world.now_ms + 10_000  # both isolate it


def test_it_asks_every_three_seconds_and_a_broker_that_answers_is_reachable() -> None:
    world = ScriptedWorld(["broker-a"])
    producer = producer_of(world, start_detector_enable=True)
    world.brokers["broker-a"].on[PROBE] = lambda request: None
    item = never_answered(world, producer)
    world.run_for(10_000)
    probes = world.brokers["broker-a"].of(PROBE)
    assert len(probes) == 3 and probes[0].ext_fields["topic"] == "orders"
    assert not item.reachable
    del world.brokers["broker-a"].on[PROBE]
    world.run_for(3_000)
    assert item.reachable
    producer.shutdown()
    asked = len(world.brokers["broker-a"].of(PROBE))
    world.run_for(30_000)
    assert len(world.brokers["broker-a"].of(PROBE)) == asked


def test_a_broker_is_asked_no_more_often_than_the_interval_and_forgotten_without_an_address() -> None:
    world = ScriptedWorld(["broker-a"])
    producer = producer_of(world, start_detector_enable=True, detect_interval="10s", detect_timeout="1s")
    never_answered(world, producer)
    world.run_for(20_000)
    assert len(world.brokers["broker-a"].of(PROBE)) == 2
    producer.client.cluster.routes.broker_addr_table.clear()
    world.run_for(12_000)
    assert producer.sender.faults.items == {}


def test_a_queue_that_was_asked_for_is_judged_only_when_asynchronous() -> None:
    world = ScriptedWorld(["broker-a"])
    producer = producer_of(world)
    queue = MessageQueue("orders", "broker-a", 0)
    producer.send(message(), queue)
    producer.send(message(), selector="HASH", arg=1)
    producer.send_oneway(message(), queue)
    assert producer.sender.faults.items == {}
    producer.send_async(message(), queue).result()
    assert producer.sender.faults.items["broker-a"].reachable
    world.brokers["broker-a"].script = [1]
    with pytest.raises(BrokerError):
        producer.send_async(message()).result()
    item = producer.sender.faults.items["broker-a"]
    assert item.reachable and item.available_from_ms == world.now_ms + 10_000
    with pytest.raises(ClientError):
        producer.send(message())
    assert not item.reachable  # a sync send takes an error answer for that


def test_the_tables_numbers_are_settings() -> None:
    producer = ScriptedWorld().producer(
        send_latency_fault_enable=True, latency_max=(100, 200), not_available_duration=(7, 9)
    )
    assert [producer.sender.faults.duration_ms(ms) for ms in (99, 100, 200)] == [0, 7, 9]
    with pytest.raises(UsageError, match="belong together"):
        ScriptedWorld().producer(send_latency_fault_enable=True, latency_max=(1, 2, 3))
