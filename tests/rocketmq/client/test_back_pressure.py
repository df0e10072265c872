"""Limits on asynchronous sends under way.

Mirrors: DefaultMQProducerImpl.executeAsyncMessageSend.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import RemotingError, UsageError
from mqlab.lab.runtime.sim import SimWorld
from mqlab.rocketmq.client.sending.back_pressure import Permits
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.scripted import ScriptedWorld

SEND = RequestCode.SEND_MESSAGE_V2


def message(body: bytes = "заказ 订单 🚀".encode()) -> Message:
    return Message("orders", body)


def slow_world(delay_ms: int, **settings: Any) -> tuple[ScriptedWorld, Any]:
    world = ScriptedWorld(["broker-a"])
    world.brokers["broker-a"].delay_ms = delay_ms
    producer = world.producer(enable_backpressure_for_async_mode=True, **settings)
    producer.fetch_publish_message_queues("orders")
    return world, producer


def test_more_than_the_limit_wait_for_answers() -> None:
    world, producer = slow_world(500, back_pressure_for_async_send_num=10)
    pending = [producer.send_async(message()) for _ in range(25)]
    world.run_for(100)
    assert len(world.brokers["broker-a"].of(SEND)) == 10
    assert repr(producer.sender.back_pressure.sends) == "<Permits 0 free, 15 waiting>"
    world.run_for(500)
    assert len(world.brokers["broker-a"].of(SEND)) == 20
    assert {each.result().send_status for each in pending} == {"SEND_OK"}
    assert producer.sender.back_pressure.sends.free == 10


def test_bytes_under_way_count_too() -> None:
    world, producer = slow_world(
        500, back_pressure_for_async_send_size=1024 * 1024, compress_msg_body_over_howmuch=2**30
    )
    pending = [producer.send_async(message(bytes([65]) * 400_000)) for _ in range(5)]
    world.run_for(100)
    assert len(world.brokers["broker-a"].of(SEND)) == 2
    assert [each.result().send_status for each in pending] == ["SEND_OK"] * 5
    assert producer.sender.back_pressure.size.free == 1024 * 1024


@pytest.mark.parametrize(
    ("settings", "body", "which"),
    [
        ({"back_pressure_for_async_send_num": 10}, b"x", "semaphoreAsyncNum"),
        ({"back_pressure_for_async_send_size": 1}, bytes(700_000), "semaphoreAsyncSize"),
    ],
)
def test_who_waits_too_long_fails_and_gives_back_what_it_had(settings: Any, body: bytes, which: str) -> None:
    world, producer = slow_world(2_500, compress_msg_body_over_howmuch=2**30, **settings)
    pending = [producer.send_async(message(body), timeout="3s") for _ in range(10)]
    late = producer.send_async(message(body), timeout="2s")
    with pytest.raises(RemotingError, match=f"tryAcquire {which} timeout"):
        late.result()
    assert pending[0].result().send_status == "SEND_OK"
    world.run_for(60_000)
    pressure = producer.sender.back_pressure
    assert (pressure.sends.free, pressure.size.free) == (
        settings.get("back_pressure_for_async_send_num", 1024),
        1024 * 1024 if which.endswith("Size") else 104_857_600,
    )


def test_failed_sends_give_back_and_synchronous_ones_take_nothing() -> None:
    world, producer = slow_world(0, back_pressure_for_async_send_num=10, retry_times_when_send_async_failed=0)
    world.brokers["broker-a"].script = [None]
    failing = [producer.send_async(message(), timeout="1s") for _ in range(10)]
    for each in failing:
        with pytest.raises(RemotingError):
            each.result()
    world.brokers["broker-a"].script = [0]
    assert producer.sender.back_pressure.sends.free == 10
    assert producer.send(message()).send_status == "SEND_OK"
    queue = MessageQueue("orders", "broker-a", 1)
    assert producer.send_async(message(), queue).result().message_queue == queue


def test_who_came_first_is_served_first() -> None:
    sim = SimWorld(seed=1)
    permits = Permits(sim.add_node("shop-1", RealFiles()).clock, 10)
    told: list[str] = []
    assert permits.acquire(8, 1_000).done
    permits.acquire(5, 1_000).then(lambda granted: told.append(f"five {granted}"))
    permits.acquire(1, 2_000).then(lambda granted: told.append(f"one {granted}"))
    assert told == []  # one would fit, but waits behind five
    sim.run_until_ms(sim.now_ms + 1_000)
    assert told == ["five False", "one True"]
    assert not permits.acquire(1, 0).result()
    permits.release(8)
    assert permits.free == 9


def test_off_by_default_and_checked() -> None:
    assert ScriptedWorld().producer().sender.back_pressure is None
    with pytest.raises(UsageError, match="back_pressure_for_async_send_num=0"):
        ScriptedWorld().producer(back_pressure_for_async_send_num=0)
