"""Lab 00's your-turn question: every life of billing has its own right answer."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.teach import answer


def a_life_of(seconds: int) -> Any:
    def story(lab: Any) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        for number in range(3):
            shop.send(Message("orders", b"%d" % number))
        billing = lab.push_consumer("billing")
        billing.subscribe("orders", "*")
        billing.on_messages(lambda messages, context: CONSUME_SUCCESS)
        billing.start()
        lab.run_for(f"{seconds}s")
        lab.kill("billing-1")
        lab.run_for("10s")
        lab.start("billing-1")
        lab.run_for("15s")

    return play(story, seed=7)


@pytest.mark.parametrize(("seconds", "right", "both"), [(9, 3, 6), (12, 0, 3)])
def test_the_life_that_billing_had_decides(seconds: int, right: int, both: int) -> None:
    lab = a_life_of(seconds)
    assert answer("lab00.lives", right, lab).state == "good"
    assert answer("lab00.lives", both, lab).note.startswith("That is every delivery, of both lives")
    assert answer("lab00.lives", 7, lab).note.startswith("Count the rows of the second life")


def test_an_unchanged_life_is_no_question_yet() -> None:
    said = answer("lab00.lives", 3, a_life_of(3))
    assert said.state == "open" and "change LIVES" in said.headline
