"""The worlds that the tests of the time machine play: a short day, and five hours of failures."""

from __future__ import annotations

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message

NO_TRACE = {"enable_trace": False}


def reads(lab: Lab, group: str, answer: str = CONSUME_SUCCESS) -> None:
    consumer = lab.push_consumer(group)
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, context: answer)
    consumer.start()


def day(lab: Lab, orders: int = 3, rest: str = "30s") -> None:
    """Some orders and two groups, one of them late: lab 00's story."""
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    reads(lab, "billing")
    shop = lab.producer("shop")
    for number in range(1, orders + 1):
        shop.send(Message("orders", "🎁".encode(), keys=f"заказ-{number}"))
    lab.run_for(rest)
    lab.run_for("30s")
    reads(lab, "audit")
    lab.run_for("35s")


def five_hours(lab: Lab) -> None:
    """One order fails until it is dead: lab 07's story."""
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    reads(lab, "billing", RECONSUME_LATER)
    lab.producer("shop").send(Message("orders", b"a book", keys="order-1"))
    lab.run_for("5h")
