"""Calls of listeners take turns on greenlets that outlive them: no world is kept alive, no thread is mixed up."""

from __future__ import annotations

import cProfile
import gc
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

import greenlet
import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, MessageExt
from mqlab.errors import NodeDown
from mqlab.lab.runtime import sim_workers


def lab_with(listener: Callable[[list[MessageExt], Any], Any]) -> Lab:
    lab = Lab()
    lab.create_topic("orders")
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders")
    consumer.on_messages(listener)
    consumer.start()
    return lab


def consuming_lab(consumed: list[str]) -> Lab:
    return lab_with(lambda messages, context: [consumed.append(m.body.decode()) for m in messages] and CONSUME_SUCCESS)


def send_and_play(lab: Lab, text: str) -> None:
    lab.producer(f"shop-{len(lab.handles)}").send(Message("orders", text.encode()))
    lab.run_for("10s")


def test_a_greenlet_that_ran_a_call_runs_the_next_one() -> None:
    consumed: list[str] = []
    lab = consuming_lab(consumed)
    send_and_play(lab, "заказ")
    waiting = list(sim_workers._of_this_thread.waiting)
    assert waiting and all(carrier.coroutine is None for carrier in waiting)
    send_and_play(lab, "订单")
    assert sim_workers._of_this_thread.waiting == waiting
    assert consumed == ["заказ", "订单"]


def test_a_greenlet_that_began_under_a_profiler_runs_no_other_call() -> None:
    """In Python 3.11 it would go on reporting calls without a receiver, which ends the process."""
    consumed: list[str] = []
    sim_workers._of_this_thread.waiting.clear()
    with cProfile.Profile():
        lab = consuming_lab(consumed)
        send_and_play(lab, "заказ")
    assert sim_workers._of_this_thread.waiting == []
    send_and_play(lab, "订单")
    assert len(sim_workers._of_this_thread.waiting) == 1
    assert consumed == ["заказ", "订单"]


def test_waiting_greenlets_keep_no_world_alive() -> None:
    gc.freeze()  # what other tests have left is not looked through: it takes a second
    lab = consuming_lab([])
    send_and_play(lab, "💳")
    world = weakref.ref(lab.world)
    del lab
    gc.collect()
    assert world() is None


def test_a_world_may_be_played_by_one_thread_after_the_other() -> None:
    consumed: list[str] = []
    lab = consuming_lab(consumed)
    send_and_play(lab, "here")
    other = threading.Thread(target=send_and_play, args=(lab, "there"))
    other.start()
    other.join()
    send_and_play(lab, "again")
    assert consumed == ["here", "there", "again"]


def test_a_call_may_be_ended_by_another_greenlet_than_the_one_that_played_it() -> None:
    def listener(messages: object, context: Any) -> str:
        context.sleep("1m")
        return CONSUME_SUCCESS

    lab = lab_with(listener)
    steps = []
    greenlet.greenlet(lambda: send_and_play(lab, "a book")).switch()  # as a page's question in a loop of greenlets
    greenlet.greenlet(lambda: (lab.kill("billing-1"), steps.append("killed"))).switch()
    assert steps == ["killed"] and lab.deliveries("billing")[0].status == "RUNNING"


def test_a_call_cut_short_leaves_its_greenlet_fit_for_the_next() -> None:
    ended: list[str] = []

    def listener(messages: object, context: object) -> str:
        try:
            context.sleep("1m")
        except NodeDown:
            ended.append("cut short")
            raise
        ended.append("done")
        return CONSUME_SUCCESS

    lab = lab_with(listener)
    send_and_play(lab, "one")
    lab.kill("billing-1")
    assert ended == ["cut short"]
    lab.start("billing-1")
    lab.run_for("5m")
    assert ended == ["cut short", "done"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_ends_the_play_and_its_greenlet(error: type[BaseException]) -> None:
    def listener(messages: object, context: object) -> str:
        raise error

    lab = lab_with(listener)
    before = len(sim_workers._of_this_thread.waiting)
    with pytest.raises(error):
        send_and_play(lab, "one")
    assert len(sim_workers._of_this_thread.waiting) <= before


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_waits_for_the_end_of_a_call_the_second_one_does_not(presses: int) -> None:
    ended: list[str] = []

    def pay(messages: list[MessageExt], context: object) -> object:
        if not ended:
            ended.append("begun")
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)
        ended.append(messages[0].body.decode())
        return CONSUME_SUCCESS

    lab = lab_with(pay)
    with pytest.raises(KeyboardInterrupt):
        send_and_play(lab, "订单")
    assert ended == (["begun", "订单"] if presses == 1 else ["begun"])
    send_and_play(lab, "заказ")  # the world goes on
    assert ended[-1] == "заказ"
    lab.kill("billing-1")


def test_a_listener_that_plays_the_world_is_told_what_to_write_instead() -> None:
    def pay(messages: list[MessageExt], context: object) -> object:
        lab.run_for("1s")
        return CONSUME_SUCCESS

    lab = lab_with(pay)
    lab.run_for("3s")
    lab.producer("shop").send(Message("orders", "订单".encode()))
    lab.run_for("1s")
    (row,) = lab.deliveries("billing")
    assert row.status == "RECONSUME_LATER"
    assert "cannot play the world" in row.error and 'context.sleep("1s")' in row.error


def test_what_a_listener_breaks_belongs_to_its_own_step() -> None:
    def pay(messages: list[MessageExt], context: object) -> object:
        lab.slow("broker-a", "5ms")
        return CONSUME_SUCCESS

    lab = lab_with(pay)
    lab.run_for("3s")
    lab.producer("shop").send(Message("orders", "订单".encode()))
    lab.run_for("1s")
    ((slowed, _),) = lab.journal.changes("fault.slow")
    ((started, _),) = lab.journal.changes("listener.started")
    assert slowed is started and slowed.node == "billing-1"
    assert [row.status for row in lab.deliveries("billing")] == [CONSUME_SUCCESS]
