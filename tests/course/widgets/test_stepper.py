from __future__ import annotations

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message
from mqlab.course.widgets import Stepper
from mqlab.errors import UsageError


def day(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop", enable_trace=False)
    for key in ("заказ-1", "订单-2"):
        shop.send(Message("orders", "🎁".encode(), keys=key))
    billing = lab.push_consumer("billing", enable_trace=False)
    billing.subscribe("orders", "*")
    billing.on_messages(lambda messages, context: CONSUME_SUCCESS)
    billing.start()
    lab.run_for("16s")


def test_it_begins_at_the_end_and_every_stop_shows_something_new() -> None:
    stepper = Stepper(day, seed=7)
    assert stepper.position == len(stepper) > 5
    seen = []
    for position in range(len(stepper) + 1):
        seen.append(len(stepper.go_to(position).moments()))
    assert seen[0] == 0 and seen == sorted(set(seen)) and seen[-1] == len(stepper.last().moments())


def test_the_world_at_a_stop_is_the_replay_up_to_it() -> None:
    stepper = Stepper(day, seed=7).first()
    assert stepper.lab.store().max_physical_offset == 0 and "nothing has happened" in stepper.label
    while not any(m.kind == "message.stored" for m in stepper.moments()):
        stepper.step()
    assert stepper.lab.store().max_physical_offset > 0
    assert stepper.lab.journal[stepper.step_number].of("message.stored")
    assert len(stepper.lab.journal) == stepper.step_number + 1  # stands right behind it
    assert "broker-a: stored at byte 0" in stepper.label


def test_back_takes_back_and_step_does_again() -> None:
    stepper = Stepper(day, seed=7)
    text, digest = str(stepper.timeline()), stepper.lab.journal.digest()
    stepper.back().back()
    assert len(stepper.moments()) < len(Stepper(day, seed=7).moments())
    stepper.step().step()
    assert (str(stepper.timeline()), stepper.lab.journal.digest()) == (text, digest)


def test_the_ends_hold_and_other_stops_do_not_exist() -> None:
    stepper = Stepper(day, seed=7)
    assert stepper.step().position == len(stepper)
    assert stepper.first().back().position == 0
    for wrong in (-1, len(stepper) + 1):
        with pytest.raises(UsageError, match=f"there is no stop {wrong}"):
            stepper.go_to(wrong)


def test_the_lanes_do_not_jump_about() -> None:
    stepper = Stepper(day, seed=7)
    lanes = stepper.timeline().lanes
    assert stepper.go_to(2).timeline().lanes == lanes == ("shop-1", "broker-a", "billing-1")


def test_the_table_is_the_text_twin_with_a_mark_at_the_position() -> None:
    stepper = Stepper(day, seed=7).go_to(3)
    table = stepper.table()
    assert len(table) == len(stepper)
    assert [row.stop for row in table if row.here] == [3]


def test_settings_of_play_are_passed_on() -> None:
    assert Stepper(day, seed=7, name_servers=2).go_to(1).lab.name_server("nameserver-2")


def test_a_story_without_a_stop() -> None:
    stepper = Stepper(lambda lab: None)
    assert len(stepper) == 0 and stepper.step().back().position == 0
    assert "nothing has happened" in stepper.label
