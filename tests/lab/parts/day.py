"""A day on a learner's broker: tags, a member that fails, a pull that waits, a crash and a power cut in the middle."""

from __future__ import annotations

from typing import Any

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message, play
from mqlab.lab.parts import OwnParts

ORDERS = 12
SETTINGS: dict[str, Any] = {"broker": {"flush_disk_type": "SYNC_FLUSH"}, "client": {"enable_trace": False}}


def of(broker: Any, **others: Any) -> OwnParts:
    """The parts of a module of brokers, with others in their place."""
    own = {
        "store": broker.MyStore,
        "pulls": broker.MyPulls,
        "groups": broker.MyGroups,
        "retries": broker.MyRetries,
        "handlers": broker.HANDLERS,
    }
    return OwnParts(**{**own, **others})


def pay(messages: Any, context: Any) -> str:
    """Order 3 fails twice, order 5 for ever."""
    order, times = messages[0].keys, messages[0].reconsume_times
    return RECONSUME_LATER if (order == "order-3" and times < 2) or order == "order-5" else CONSUME_SUCCESS


def day(lab: Lab) -> None:
    """Two queues, orders of two tags, billing wants one of them."""
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    shop = lab.producer("shop")
    billing = lab.push_consumer("billing", max_reconsume_times=2)
    billing.subscribe("orders", "paid")
    billing.on_messages(pay)
    billing.start()
    second = lab.push_consumer("billing", name="billing-2")
    second.subscribe("orders", "paid")
    second.on_messages(pay)
    second.start()
    lab.run_for("12s")
    second.shutdown()
    lab.run_for("1s")
    for first, crash in ((0, lab.kill), (6, lab.power_off)):
        for number in range(first, first + ORDERS // 2):
            body = b"a book" * (number + 1)
            shop.send(Message("orders", body, keys=f"order-{number}", tags="paid" if number % 2 else "new"))
        lab.run_for("14s")
        crash("broker-a")
        lab.run_for("3s")
        lab.start("broker-a")
        lab.run_for("25s")
    lab.run_for("60s")


def played(parts: OwnParts) -> Lab:
    """The day on these parts."""
    return play(day, seed=5, parts=parts, **SETTINGS)


def outcome(lab: Lab) -> dict[str, list[str]]:
    """Per order the statuses of its deliveries."""
    found: dict[str, list[str]] = {}
    keys = {one.msg_id: one.keys for name in ("orders", "%RETRY%billing") for one in lab.store().messages(name)}
    for row in lab.deliveries("billing", absences=False):
        found.setdefault(keys.get(row.msg_id, row.msg_id), []).append(str(row.status))
    return found
