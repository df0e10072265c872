"""A learner's parts in clients: a wrong one stops the world at that step, with the words of its rule."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course.mybroker import OWN_PARTS
from mqlab.lab.parts import ANSWERS, OwnParts
from mqlab.lab.parts.broken import BrokenPart
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from tests.course.teach.notebook_answers import reference


class PassesAnOrder(ProcessQueue):
    def remove_message(self, messages: Any) -> int:
        super().remove_message(messages)
        return int(messages[0].queue_offset) + 1


class Raises(ProcessQueue):
    def remove_message(self, messages: Any) -> int:
        raise KeyError("gone")


class Faults:
    def is_available(self, broker_name: str, now_ms: int) -> Any:
        return "yes"

    def is_reachable(self, broker_name: str) -> bool:
        return True

    def update(self, *sent: Any, **told: Any) -> None:
        pass


def day(lab: Any) -> None:
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    shop = lab.producer("shop", send_latency_fault_enable=True)
    for seconds in (5, 1, 1, 1):
        shop.send(Message("orders", b"a book", properties={"takes": f"{seconds}s"}))
    for number in (1, 2):
        billing = lab.push_consumer("billing", name=f"billing-{number}")
        billing.subscribe("orders", "*")
        billing.on_messages(pay)
        billing.start()
    lab.run_for("30s")


def pay(messages: Any, context: Any) -> str:
    context.sleep(messages[0].properties["takes"])
    return CONSUME_SUCCESS


def test_right_parts_of_a_learner_carry_a_day() -> None:
    parts = OwnParts(
        **{kind.file: reference(kind.exercise)[kind.name] for kind in ANSWERS.values() if kind.file in OWN_PARTS}
    )
    lab = play(day, parts=parts)
    assert len(lab.deliveries("billing", absences=False)) == 4


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (OwnParts(process_queue=PassesAnOrder), "the smallest offset that is left"),
        (OwnParts(process_queue=Raises), "KeyError: 'gone'"),
        (OwnParts(sticky=lambda queues, members: dict.fromkeys(members, queues)), "has one owner"),
        (OwnParts(sticky=lambda queues, members: queues), "answers in the form"),
        (OwnParts(strategy=Faults), "expected  True or False"),
    ],
    ids=["passes an order", "raises", "two owners", "no dictionary", "no bool"],
)
def test_a_wrong_part_stops_the_world_with_its_rule(parts: OwnParts, says: str) -> None:
    with pytest.raises(BrokenPart) as stopped:
        play(day, parts=parts)
    assert says in str(stopped.value)
