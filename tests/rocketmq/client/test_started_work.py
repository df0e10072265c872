"""context.start: work beside a listener's call, in simulated time; it dies with its process and holds no offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, SUCCESS, Lab, Message, every_crash
from mqlab.errors import UsageError
from mqlab.lab.world.deliveries import RUNNING


def billing(lab: Lab, listener: Callable[..., str], *, orderly: bool = False) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", cores=1, consume_thread_min=1, consume_thread_max=1)
    consumer.subscribe("orders")
    (consumer.on_messages_orderly if orderly else consumer.on_messages)(listener)
    consumer.start()
    lab.run_for("1s")


def send(lab: Lab, count: int = 1) -> None:
    shop = lab.producer("shop")
    for number in range(count):
        shop.send(Message("orders", b"%d" % number, keys=f"order-{number}"))


@pytest.mark.parametrize("orderly", [False, True])
def test_work_goes_on_after_the_call_that_started_it(orderly: bool) -> None:
    done: list[str] = []
    with Lab() as lab:

        def ship(key: str, context: Any) -> None:
            context.sleep("10s")
            done.append(key)

        def listener(messages: Any, context: Any) -> str:
            context.start(ship, messages[0].keys, context)
            return SUCCESS if orderly else CONSUME_SUCCESS

        billing(lab, listener, orderly=orderly)
        send(lab, 3)
        lab.run_for("9s")
        rows = lab.deliveries("billing", absences=False)
        assert [row.ended_ms - row.started_ms for row in rows] == [0, 0, 0] and not done
        assert lab.progress("billing")[0].lag == 0, "the offset has passed what is not shipped"
        lab.run_for("5s")
        assert done == ["order-0", "order-1", "order-2"]
        times = [[one.now_ms for one in lab.journal.of(kind)] for kind in ("work.started", "work.ended")]
        assert [ended - began for began, ended in zip(*times, strict=True)] == [10_000] * 3
        assert len(lab.journal.of("work.started")) == len(lab.journal.of("work.ended")) == 3


def test_result_waits_and_raises_what_the_work_raised() -> None:
    told: list[Any] = []

    def look_up(rate: int, context: Any) -> int:
        context.compute("40ms")
        if rate < 0:
            raise ValueError("no such rate")
        return rate * 2

    def listener(messages: Any, context: Any) -> str:
        works = [context.start(look_up, rate, context) for rate in (7, -1, 9)]
        told.append(works[0].done)
        for work in works:
            try:
                told.append(work.result())
            except ValueError as error:
                told.append(str(error))
        return CONSUME_SUCCESS

    with Lab() as lab:
        billing(lab, listener)
        send(lab)
        lab.run_for("1s")
        assert told == [False, 14, "no such rate", 18]
        [row] = lab.deliveries("billing", absences=False)
        assert row.ended_ms - row.started_ms == 120, "one core: three times 40 ms"
        errors = [values["error"] for _, values in lab.journal.changes("work.ended")]
        assert [error is None for error in errors] == [True, False, True] and "no such rate" in errors[1]


def test_work_dies_with_its_process_and_its_connection_is_rolled_back() -> None:
    ended: list[str] = []
    with Lab() as lab:
        database = lab.database("billing")
        with database.connect() as connection:
            connection.execute("CREATE TABLE shipped (order_key TEXT)")

        def ship(key: str, context: Any) -> None:
            connection = database.connect()
            connection.execute("INSERT INTO shipped VALUES (?)", (key,))
            try:
                context.sleep("1m")
            except BaseException as error:
                ended.append(type(error).__name__)
                raise
            connection.commit()

        def listener(messages: Any, context: Any) -> str:
            context.start(ship, messages[0].keys, context)
            return CONSUME_SUCCESS

        billing(lab, listener)
        send(lab)
        lab.run_for("20s")
        lab.kill("billing-1")
        lab.start("billing-1")
        lab.run_for("2m")
        assert ended == ["NodeDown"] and not lab.journal.of("work.ended")
        assert lab.database("billing").connect().execute("SELECT * FROM shipped").fetchall() == []
        assert len(lab.deliveries("billing", absences=False)) == 1, "its offset was committed: nobody ships it"


def test_work_that_starts_work_and_the_lines_of_work_are_crash_points() -> None:
    def story(lab: Lab) -> None:
        def inner(context: Any) -> int:
            context.sleep("10ms")
            return 5

        def outer(context: Any) -> int:
            work = context.start(inner, context)
            number: int = work.result()
            return number + 1

        def listener(messages: Any, context: Any) -> str:
            assert context.start(outer, context).result() == 6
            return CONSUME_SUCCESS

        billing(lab, listener)
        send(lab)
        lab.run_for("3s")

    points = [lab.crash_point for lab in every_crash(story, node="billing-1", only=lambda one: one.kind == "line")]
    named = [str(point) for point in points]
    assert len(points) == 7, named
    assert sum("inner" in name for name in named) == 2 and sum("outer" in name for name in named) == 3, named


def test_what_cannot_be_called_is_refused() -> None:
    said: list[str] = []

    def listener(messages: Any, context: Any) -> str:
        try:
            context.start(len(messages))
        except UsageError as error:
            said.append(str(error))
        return CONSUME_SUCCESS

    with Lab() as lab:
        billing(lab, listener)
        send(lab)
        lab.run_for("1s")
    assert "context.start cannot call 1" in said[0] and "context.start(ship, order)" in said[0]


@pytest.mark.usefixtures("calls_have_real_time")
def test_on_real_threads() -> None:
    done: list[int] = []

    def ship(number: int, context: Any) -> int:
        context.sleep("2s")
        done.append(number)
        return number

    def listener(messages: Any, context: Any) -> str:
        context.start(ship, 1, context)
        assert context.start(ship, 2, context).result() == 2
        return CONSUME_SUCCESS

    with Lab(driver="threads", speed=20) as lab:
        billing(lab, listener)
        lab.producer("shop", send_msg_timeout=600_000).send(Message("orders", b"x"))

        def statuses() -> list[str]:
            return [row.status for row in lab.deliveries("billing", absences=False)]

        # The listener waits for the second only; on a busy machine the first may end after it.
        lab.run_until(lambda: statuses() not in ([], [RUNNING]) and len(done) == 2, limit="2h")
        assert statuses() == [CONSUME_SUCCESS] and sorted(done) == [1, 2]
