"""One message that always fails, from its first delivery to the dead letter queue.

Mirrors: ConsumeMessageConcurrentlyService, ScheduleMessageService.
"""

from __future__ import annotations

import pytest

from mqlab import RECONSUME_LATER, Lab, Message, play

DELAYS_MS = [1_000 * s for s in (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)]
SCHEDULE_POLL_MS = 100
FRAMES_MS = 10  # send-back, schedule copy, held pull answered: a few frames of 1 ms each


def failing_message(lab: Lab) -> None:
    lab.create_topic("orders")
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, context: RECONSUME_LATER)
    consumer.start()
    lab.run_for("30s")  # the retry topic is read from the rebalance after its creation on
    lab.producer("shop").send(Message("orders", "платёж 支付失败 💳".encode(), tags="paid", keys="order-1"))
    lab.run_for("5h")


@pytest.fixture(scope="module")
def lab() -> Lab:
    """The five hours, played once; the tests only look."""
    return play(failing_message)


def test_seventeen_deliveries_at_the_delay_levels_then_the_dead_letter_queue(lab: Lab) -> None:
    deliveries = list(lab.deliveries("billing"))
    assert [row.reconsume_times for row in deliveries] == list(range(17))
    assert {row.status for row in deliveries} == {RECONSUME_LATER}
    assert len({row.msg_id for row in deliveries}) == 1
    assert {row.topic for row in deliveries} == {"orders"}
    for failed, again, delay_ms in zip(deliveries, deliveries[1:], DELAYS_MS, strict=False):
        waited_ms = again.started_ms - failed.ended_ms
        assert delay_ms <= waited_ms <= delay_ms + SCHEDULE_POLL_MS + FRAMES_MS
    whole_ms = deliveries[-1].started_ms - deliveries[0].started_ms
    assert 17_140_000 <= whole_ms <= 17_140_000 + 16 * (SCHEDULE_POLL_MS + FRAMES_MS)

    store = lab.broker("broker-a").store
    dead = store.get("%DLQ%billing", 0, 0).records()
    assert [record.reconsume_times for record in dead] == [17]
    assert dead[0].body == "платёж 支付失败 💳".encode()
    assert dead[0].property_map["RETRY_TOPIC"] == "orders"
    assert store.max_offset("%DLQ%billing", 0) == 1


def test_every_periodic_frame_in_between_passes_the_codec(lab: Lab) -> None:
    frames = [record for record in lab.journal if record.kind == "frame"]
    assert all(record.about is not None for record in frames)
    codes = [record.about.code for record in frames if not record.about.is_response]
    hours = 5
    assert codes.count(11) >= hours * 3_600 // 20 * 5  # five queues, each pulled at least every 20 s
    assert codes.count(34) >= hours * 3_600 // 30 - 2  # heartbeats
    assert len(frames) > 20_000


def test_the_world_is_quiet_at_the_end_and_nothing_waits(lab: Lab) -> None:
    assert lab.world.is_quiet()
    assert {row.lag for row in lab.progress("billing")} == {0}
