"""The picture of a timer wheel says what the broker's files say."""

from __future__ import annotations

from mqlab import Message, play
from mqlab.lab.views.rocketmq5.timer_wheel import show_wheel
from mqlab.lab.world.lab import Lab


def reminders(lab: Lab) -> None:
    lab.create_topic("reminders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number, seconds in enumerate((2, 20, 2, 9)):
        shop.send(Message("reminders", b"x", keys=f"r-{number}", delay=f"{seconds}s"))
    lab.run_for("4s")


def test_slots_lists_and_kinds_are_those_of_the_files() -> None:
    lab = play(reminders, seed=7, client={"enable_trace": False}, broker={"timer_roll_window_slot": 10})
    picture = show_wheel(lab, title="four reminders")
    assert picture.text().splitlines() == [
        "four reminders",
        "slot 2  00:00:02  num 2  0 r-0 (was delivered), 104 r-2 (was delivered)",
        "slot 9  00:00:09  num 1  156 r-3 (waits)",
        "slot 10  00:00:10  num 1  52 r-1 (is stored again on its way)",
    ]
    assert [row["position"] for row in picture.table().rows] == [0, 104, 156, 52]
    assert picture.svg().count("last ") == 3 and "3 slots with 4 units" in picture.alt


def test_a_wheel_that_was_never_used_says_so() -> None:
    lab = play(lambda lab: lab.create_topic("reminders"), seed=7)
    assert str(show_wheel(lab)) == "the wheel was never used" and show_wheel(lab).svg()
