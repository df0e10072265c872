"""Half messages over time: questions, ends and deaths are those of the journal."""

from __future__ import annotations

from typing import Any

from mqlab import COMMIT_MESSAGE, UNKNOW, Message, play
from mqlab.lab.views.half_messages import HalfMessages, show_halves
from mqlab.lab.world.lab import Lab


class Till:
    def execute_local_transaction(self, message: Any, arg: Any) -> str:
        return COMMIT_MESSAGE if arg else UNKNOW

    def check_local_transaction(self, message: Any) -> str:
        return UNKNOW


def two_orders(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.transaction_producer("shop", Till, name="shop-1")
    for number in range(2):
        shop.send_message_in_transaction(Message("orders", b"a book", keys=f"order-{number}"), number)
    lab.run_for("70s")
    lab.kill("shop-1")
    lab.run_for("60s")


def test_questions_ends_and_deaths_are_shown() -> None:
    shown = show_halves(play(two_orders, seed=1, client={"enable_trace": False}, broker={"transaction_check_max": 3}))
    waits, ended = shown.table()
    assert ended.ended == ["committed"] and ended.asked_ms == []
    assert [round(ms / 10_000) for ms in waits.asked_ms] == [3, 6, 9] and waits.heard == [True, True, False]
    assert waits.ended == ["put aside"] and round(waits.ended_ms[0] / 10_000) == 12
    assert "(nobody there)" in str(shown) and "shop-1 down from +" in str(shown)
    assert shown.alt == "Half messages: 2 stored, 3 questions of the broker"
    assert shown.svg().count("order-") == 2


def test_nothing_stored_is_a_picture_too() -> None:
    assert str(HalfMessages([], end_ms=0)) == "" and "<svg" in HalfMessages([], end_ms=0).svg()
