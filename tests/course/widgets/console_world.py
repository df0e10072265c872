"""The world that the console's tests look at: a dead letter, a group whose members disagree, an idle group."""

from __future__ import annotations

from typing import Any

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message, play


def reads(lab: Lab, group: str, name: str, tags: str, listener: Any) -> Any:
    consumer = lab.push_consumer(group, name=name, max_reconsume_times=1)
    consumer.subscribe("orders", tags)
    consumer.on_messages(listener)
    consumer.start()
    return consumer


def shop_day(lab: Lab) -> None:
    """Six orders: billing kills order-3; audit's members want different tags; archive read all and went away."""
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    lab.create_topic("payments", read_queue_nums=1, write_queue_nums=1)
    reads(
        lab,
        "billing",
        "billing-1",
        "*",
        lambda messages, _: RECONSUME_LATER if messages[0].keys == "order-3" else CONSUME_SUCCESS,
    )
    for number, tags in enumerate(("paid", "new"), 1):
        reads(lab, "audit", f"audit-{number}", tags, lambda messages, _: CONSUME_SUCCESS)
    archive = reads(lab, "archive", "archive-1", "*", lambda messages, _: CONSUME_SUCCESS)
    shop = lab.producer("shop")
    for number in range(1, 7):
        tag = "paid" if number % 2 else "new"
        shop.send(Message("orders", f"заказ 订单 {number}".encode(), keys=f"order-{number}", tags=tag))
    lab.run_for("40s")
    archive.shutdown()
    lab.run_for("20s")


def shop_lab() -> Lab:
    return play(shop_day, seed=7)
