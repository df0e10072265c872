"""The same stories on real threads: the nodes do not know which driver plays them."""

from __future__ import annotations

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message
from mqlab.lab.runtime.threads import ThreadWorld
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import request

pytestmark = pytest.mark.usefixtures("calls_have_real_time")

SCALED = {"message_delay_level": " ".join(["1s"] * 18)}


def deliveries_of_a_failing_message(driver: str, speed: float = 1.0) -> list[tuple[int, str]]:
    """(reconsume_times, status) of each delivery until the message is dead; delay levels of 1 s."""
    with Lab(driver=driver, speed=speed, broker=SCALED) as lab:
        lab.create_topic("orders")
        consumer = lab.push_consumer("billing")
        consumer.subscribe("orders")
        consumer.on_messages(lambda messages, context: RECONSUME_LATER)
        consumer.start()
        lab.run_for("30s")
        lab.producer("shop", send_msg_timeout=600_000).send(Message("orders", "платёж 支付 💳".encode(), tags="paid"))
        broker = lab.broker("broker-a")
        lab.run_until(lambda: broker.store.max_offset("%DLQ%billing", 0) == 1, limit="2h")
        lab.run_for("1s")
        return [(row.reconsume_times, row.status) for row in lab.deliveries("billing", absences=False)]


def test_a_failing_message_is_delivered_the_same_under_both_drivers() -> None:
    simulated = deliveries_of_a_failing_message("sim")
    assert simulated == [(times, RECONSUME_LATER) for times in range(17)]
    assert deliveries_of_a_failing_message("threads", speed=20) == simulated


def test_two_groups_read_everything_under_threads() -> None:
    with Lab(driver="threads", speed=20) as lab:
        lab.create_topic("orders")
        for group in ("billing", "shipping"):
            # LAST skips what is stored between "no offset yet" and "then your largest": a race, and RocketMQ's too
            consumer = lab.push_consumer(group, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
            consumer.subscribe("orders")
            consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
            consumer.start()
        producer = lab.producer("shop", send_msg_timeout=600_000)
        sent = {producer.send(Message("orders", f"заказ {n} 订单 😀".encode())).msg_id for n in range(40)}
        for group in ("billing", "shipping"):
            lab.run_until(lambda group=group: len(lab.deliveries(group, absences=False)) >= len(sent), limit="2h")
            assert {row.msg_id for row in lab.deliveries(group, absences=False)} == sent


def test_frames_that_arrive_together_are_steps_of_their_own() -> None:
    world = ThreadWorld(speed=20)
    ports = world.add_node("broker-a", RealFiles())
    done: list[bool] = []

    def two_frames() -> None:
        for opaque in (1, 2):
            ports.annotate(request(RequestCode.HEART_BEAT))
            ports.note("producer.joined", opaque=opaque)
        done.append(True)

    try:
        ports.clock.call_later(0, two_frames, "frame")
        world.run_until(lambda: bool(done), 7_200_000, "the step")
        first, second = world.journal.of("producer.joined")
        assert [record.changes[0].values["opaque"] for record in (first, second)] == [1, 2]
        assert (first.kind, first.cause) == (second.kind, second.cause) and second.step == first.step + 1
    finally:
        world.stop()


def test_what_was_stored_came_with_the_frame_that_the_journal_names() -> None:
    """A producer's first send and its heartbeat may come in one piece of a stream."""
    with Lab(driver="threads", speed=20, client={"enable_trace": False}) as lab:
        lab.create_topic("orders")
        for number in range(8):
            lab.producer("shop", name=f"shop-{number}", send_msg_timeout=600_000).send(Message("orders", b"x"))
        stored = [record.about.code for record in lab.journal if record.of("message.stored")]
        assert stored == [RequestCode.SEND_MESSAGE_V2] * 8
