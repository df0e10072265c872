"""The same stories on real threads: the nodes do not know which driver plays them."""

from __future__ import annotations

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message

# Seconds of RocketMQ's time-outs become tens of ms here: on a busy machine a send may need more than its 3 s.
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
        lab.run_until(lambda: broker.store.max_offset("%DLQ%billing", 0) == 1, limit="10m")
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
            lab.run_until(lambda group=group: len(lab.deliveries(group, absences=False)) >= len(sent), limit="5m")
            assert {row.msg_id for row in lab.deliveries(group, absences=False)} == sent
