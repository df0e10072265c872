"""Lab 00's your-turn questions: every world has its own right answer, and likely wrong ones are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer
from mqlab.course.teach.exercises import manifest
from mqlab.course.widgets import explore


def read_orders(lab: Any, group: str) -> None:
    consumer = lab.push_consumer(group)
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, context: (context.sleep("200ms"), CONSUME_SUCCESS)[1])
    consumer.start()


def three_orders(lab: Any) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(3):
        shop.send(Message("orders", b"%d" % number))


def a_day(lab: Any) -> None:
    three_orders(lab)
    read_orders(lab, "billing")
    lab.run_for("30s")


def a_life_of(seconds: int) -> Any:
    def story(lab: Any) -> None:
        three_orders(lab)
        read_orders(lab, "billing")
        lab.run_for(f"{seconds}s")
        lab.kill("billing-1")
        lab.run_for("10s")
        lab.start("billing-1")
        lab.run_for("15s")

    return play(story, seed=7)


def orders_every(pause: str, count: int = 2) -> Any:
    def story(lab: Any) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        read_orders(lab, "billing")
        shop = lab.producer("shop")
        for number in range(count):
            lab.run_for(pause)
            shop.send(Message("orders", b"%d" % number))
        lab.run_for("3s")

    return play(story, seed=7)


@pytest.mark.parametrize(("seconds", "right", "both"), [(9, 3, 6), (12, 0, 3)])
def test_the_life_that_billing_had_decides(seconds: int, right: int, both: int) -> None:
    lab = a_life_of(seconds)
    assert answer("lab00.lives", right, lab).state == "good"
    assert answer("lab00.lives", both, lab).note.startswith("That counts every delivery")
    assert answer("lab00.lives", 7, lab).note.startswith("Count the rows of the second process")


def test_an_unchanged_life_is_no_question_yet() -> None:
    said = answer("lab00.lives", 3, a_life_of(3))
    assert said.state == "open" and "change LIVES" in said.headline


def test_the_next_order_begins_where_the_newest_ends() -> None:
    lab = play(three_orders, seed=7)
    *_, newest = lab.store().messages("orders")
    begins, size = newest.physical_offset, newest.store_size
    assert answer("lab00.next_byte", begins + size, lab).state == "good"
    assert answer("lab00.next_byte", begins, lab).note.startswith("Your own order begins there")
    assert answer("lab00.next_byte", size, lab).note.startswith("That is the length of your order")
    assert answer("lab00.next_byte", 3, lab).note.startswith("That is the number of the queue's next entry")
    assert answer("lab00.next_byte", 1, lab).note.startswith("Add the two numbers")


@pytest.mark.parametrize(("pause", "held"), [("2s", 2_000), ("4s", 4_000), ("40s", 12)])
def test_an_order_does_not_wait_for_a_pull_that_is_held(pause: str, held: int) -> None:
    lab = orders_every(pause)
    assert answer("lab00.held", 2, lab).state == "good"
    (task,) = (one for one in manifest("lab00").tasks if one.id == "lab00.held")
    told = task.wrong["held"](lab)
    assert isinstance(told, int) and abs(told - held) < 10
    assert answer("lab00.held", told, lab).note.startswith("That is how long the broker held")
    assert answer("lab00.held", 202, lab).note.startswith("That includes the listener's work")
    assert answer("lab00.held", 0.002, lab).note.startswith("Take the times of two lines")


def test_a_day_in_which_nobody_waits_is_told_so() -> None:
    assert "no pull was waiting" in answer("lab00.held", 2, orders_every("200ms")).headline
    assert "no second order" in answer("lab00.held", 2, orders_every("2s", count=1)).headline


def test_the_gap_is_between_the_last_listener_and_the_report() -> None:
    explorer = explore(a_day, seed=7)
    rows = {row["stop"]: row["what"] for row in explorer.table().to_dicts()}
    done = max(stop for stop, what in rows.items() if "CONSUME_SUCCESS" in what)
    told = min(stop for stop, what in rows.items() if "UPDATE_CONSUMER_OFFSET" in what)
    for stop in range(done, told):
        assert answer("lab00.between", stop, explorer).state == "good"
    assert answer("lab00.between", done - 1, explorer).note.startswith("At this stop billing's listener has not")
    assert answer("lab00.between", told, explorer).note.startswith(
        "At this stop the broker already has billing's report"
    )
    assert answer("lab00.between", len(rows) + 1, explorer).note.startswith("Give the number of the stop")
