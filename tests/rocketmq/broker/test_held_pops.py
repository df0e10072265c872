"""Held pops that wake each other or themselves: each runs in its turn, and none of them keeps the broker busy."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.record import decode_all
from tests.rocketmq.broker.test_pop import PopWorld


@pytest.mark.parametrize("order", ["false", "true"])
def test_a_pop_of_no_messages_waits_and_finds_none(tmp_path: Path, order: str) -> None:
    world = PopWorld(tmp_path)
    steps = len(world.sim.journal)
    began_ms = world.sim.now_ms
    answer = world.popper.ask(200050, **world.fields(maxMsgNums=0, pollTime=3_000, order=order))
    assert (answer.code, answer.ext_fields["restNum"], answer.body) == (210, "5", None)  # as the real broker answers
    assert 2_900 < world.sim.now_ms - began_ms < 3_000 and len(world.sim.journal) - steps < 50


def test_messages_arrive_while_a_pop_of_none_is_held(tmp_path: Path) -> None:
    world = PopWorld(tmp_path, messages=0)
    held = world.popper.send(200050, **world.fields(maxMsgNums=0, pollTime=3_000))
    world.run_for(10)
    world.popper.put("t", b"late")
    world.run_for(10)
    assert [m.body for m in world.pop()[1]] == [b"late"] and not held.done


def test_one_message_wakes_every_held_pop_that_finds_something(tmp_path: Path) -> None:
    world = PopWorld(tmp_path, messages=0, pop_from_retry_probability=100)
    world.broker.create_topic(TopicConfig("%RETRY%g_t", read_queue_nums=1, write_queue_nums=1))
    held = [world.popper.send(200050, **world.fields(maxMsgNums=1, pollTime=20_000)) for _ in range(250)]
    world.run_for(10)
    for _ in range(249):
        world.popper.put("%RETRY%g_t", b"again")  # a v1 retry topic: nobody is woken
    world.run_for(10)
    assert not any(answer.done for answer in held)
    world.popper.put("t", b"new")
    world.run_for(1_000)
    assert [len(decode_all(answer.result().body or b"")) for answer in held] == [1] * 250


def test_a_pop_whose_check_point_clashes_is_answered_a_millisecond_later(tmp_path: Path) -> None:
    world = PopWorld(tmp_path)
    first = world.popper.send(200050, **world.fields(maxMsgNums=1))
    world.popper.send(222, topic="t", group="g", timestamp=-1, isForce="true", queueId=0, offset=0)
    again = world.popper.send(200050, **world.fields(maxMsgNums=1, pollTime=3_000))
    world.run_for(50)
    answers = [first.result(), again.result()]
    assert [decode_all(answer.body or b"")[0].body for answer in answers] == [b"m0", b"m0"]
    assert int(answers[1].ext_fields["popTime"]) - int(answers[0].ext_fields["popTime"]) == 1
