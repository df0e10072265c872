"""Resources, databases, traffic and actions by the clock."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, play
from mqlab.errors import NodeDown, UsageError

QUIET = {"client": {"enable_trace": False}}


def a_consumer(lab: Lab, listener: Any, name: str = "billing-1", **settings: Any) -> Any:
    consumer = lab.push_consumer("billing", name=name, **settings)
    consumer.subscribe("orders")
    consumer.on_messages(listener)
    consumer.start()
    return consumer


def test_threads_give_what_the_formula_says_until_the_shared_thing_has_fewer_slots() -> None:
    def seconds_for_100_messages(slots: int) -> float:
        def story(lab: Lab) -> None:
            lab.create_topic("orders")
            lab.resource("db", slots=slots)
            producer = lab.producer("shop")
            for number in range(100):
                producer.send(Message("orders", f"заказ {number}".encode()))

            def listener(messages: Any, context: Any) -> str:
                with lab.resource("db"):
                    context.sleep("1s")
                return CONSUME_SUCCESS

            a_consumer(lab, listener, consume_thread_min=20, consume_thread_max=20)
            lab.run_for("2m")

        rows = list(play(story, **QUIET).deliveries("billing"))
        assert len(rows) == 100
        return (rows[-1].ended_ms - rows[0].started_ms) / 1000

    assert seconds_for_100_messages(slots=100) == pytest.approx(100 / 20, abs=0.1)
    assert seconds_for_100_messages(slots=5) == pytest.approx(100 / 5, abs=0.1)


def test_slots_are_taken_away_as_they_are_given_back_and_added_at_once() -> None:
    """Eight calls of a second wait for four slots, which become one after half a second and three at 2.5 s."""
    ended: list[int] = []

    def story(lab: Lab) -> None:
        lab.create_topic("orders")
        resource = lab.resource("db", slots=4)
        producer = lab.producer("shop")
        for _ in range(8):
            producer.send(Message("orders", b"x"))
        began: list[int] = []

        def listener(messages: Any, context: Any) -> str:
            began.append(lab.now_ms)
            with resource:
                context.sleep("1s")
            ended.append(round((lab.now_ms - began[0]) / 1000))
            return CONSUME_SUCCESS

        a_consumer(lab, listener)
        lab.run_until(lambda: bool(began), limit="1m")
        for after, slots in (("500ms", 1), ("2s", 3)):
            lab.run_for(after)
            resource.resize(slots)
        assert resource.in_use == 3 and resource.slots == 3
        with pytest.raises(UsageError, match="slots must be 1 or more"):
            resource.resize(0)
        lab.run_for("10s")
        assert (resource.in_use, resource.waiting) == (0, 0)

    play(story, **QUIET)
    # Four at once, one alone, then one that had begun and two that got the new slots half a second later.
    assert sorted(ended) == [1, 1, 1, 1, 2, 3, 4, 4]


def test_a_slot_held_by_a_killed_listener_is_free_again() -> None:
    lab = Lab(**QUIET)
    lab.create_topic("orders")
    resource = lab.resource("db", slots=1)

    def listener(messages: Any, context: Any) -> str:
        with lab.resource("db"):
            context.sleep("1h")
        return CONSUME_SUCCESS

    a_consumer(lab, listener)
    producer = lab.producer("shop")
    for _ in range(3):
        producer.send(Message("orders", b"x"))
    lab.run_for("5s")
    assert (resource.in_use, resource.waiting) == (1, 2)
    lab.kill("billing-1")
    assert (resource.in_use, resource.waiting) == (0, 0)


def test_a_database_written_in_a_listener_rolls_back_when_its_node_dies() -> None:
    lab = Lab(**QUIET)
    lab.create_topic("orders")
    database = lab.database("billing")
    with database.connect() as connection:
        connection.execute("create table paid (key text primary key)")

    def listener(messages: Any, context: Any) -> str:
        connection = lab.database("billing").connect()
        connection.execute("insert into paid values (?)", (messages[0].keys,))
        if messages[0].keys == "order-1":
            context.sleep("1h")
        connection.commit()
        return CONSUME_SUCCESS

    a_consumer(lab, listener)
    producer = lab.producer("shop")
    producer.send(Message("orders", "оплата".encode(), keys="order-0"))
    lab.run_for("5s")
    producer.send(Message("orders", "支付".encode(), keys="order-1"))
    lab.run_for("5s")
    lab.kill("billing-1")
    assert database.connect().execute("select key from paid").fetchall() == [("order-0",)]


def test_a_connection_made_before_the_listener_keeps_nothing_of_a_dead_one_and_its_finally_writes_nothing() -> None:
    lab = Lab(**QUIET)
    lab.create_topic("orders")
    connection = lab.database("billing").connect()
    connection.execute("create table paid (key text primary key)")

    def listener(messages: Any, context: Any) -> str:
        with connection:
            connection.execute("insert into paid values (?)", (f"{messages[0].keys} begun",))
        connection.execute("insert into paid values (?)", (f"{messages[0].keys} не записано",))
        try:
            context.sleep("1h")
        finally:
            with connection:
                connection.execute("delete from paid")
        return CONSUME_SUCCESS

    a_consumer(lab, listener)
    lab.producer("shop").send(Message("orders", "оплата".encode(), keys="订单"))
    lab.run_for("5s")
    lab.kill("billing-1")
    assert connection.execute("select key from paid").fetchall() == [("订单 begun",)]
    assert not connection.in_transaction


def test_a_listener_that_dies_in_a_transaction_is_told_so_and_not_that_its_connection_is_closed() -> None:
    lab = Lab(**QUIET)
    lab.create_topic("orders")
    seen: list[BaseException] = []

    def listener(messages: Any, context: Any) -> str:
        try:
            with lab.database("billing").connect() as connection:
                connection.execute("create table paid (key text primary key)")
                context.sleep("1h")
        except BaseException as error:
            seen.append(error)
            raise
        return CONSUME_SUCCESS

    a_consumer(lab, listener)
    lab.producer("shop").send(Message("orders", b"x"))
    lab.run_for("5s")
    lab.kill("billing-1")
    assert [type(error) for error in seen] == [NodeDown]


def test_what_a_call_did_not_commit_is_rolled_back_when_it_returns_and_holds_no_lock() -> None:
    """Whatever still refers to the connection: here a list does."""
    lab = Lab(**QUIET)
    lab.create_topic("orders")
    database = lab.database("billing")
    database.connect().execute("create table paid (key text primary key)")
    kept: list[Any] = []

    def listener(messages: Any, context: Any) -> str:
        kept.append(lab.database("billing").connect())
        kept[-1].execute("insert into paid values (?)", (messages[0].keys,))
        return CONSUME_SUCCESS

    a_consumer(lab, listener)
    producer = lab.producer("shop")
    for number in range(3):
        producer.send(Message("orders", "оплата".encode(), keys=f"订单-{number}"))
    lab.run_for("2s")
    assert [row.status for row in lab.deliveries("billing")] == [CONSUME_SUCCESS] * 3
    assert not any(connection.in_transaction for connection in kept)
    assert len(list(lab.journal.changes("database.rolled_back"))) == 3
    assert database.connect().execute("select * from paid").fetchall() == []


def test_a_locked_database_is_waited_for_in_virtual_time_and_for_no_longer_than_five_seconds() -> None:
    lab = Lab(**QUIET)
    lab.create_topic("orders")
    holder = lab.database("billing").connect()
    holder.execute("create table paid (key text)")
    holder.execute("begin immediate")
    lab.at("8s", holder.commit)
    ends: list[tuple[str, int]] = []

    def listener(messages: Any, context: Any) -> str:
        connection = lab.database("billing").connect()
        try:
            connection.execute("insert into paid values (?)", (messages[0].keys,))
            connection.commit()
            ends.append(("written", lab.now_ms - lab.began_ms))
        except sqlite3.OperationalError as error:
            ends.append((str(error), lab.now_ms - lab.began_ms))
        return CONSUME_SUCCESS

    producer = lab.producer("shop")
    producer.send(Message("orders", b"a", keys="order-1"))
    a_consumer(lab, listener)
    lab.run_for("3s")
    producer.send(Message("orders", b"b", keys="order-2"))
    lab.run_for("20s")
    (first, given_up_ms), (second, written_ms) = ends
    started_ms = [row.started_ms - lab.began_ms for row in lab.deliveries("billing")]
    assert (first, given_up_ms) == ("database is locked", started_ms[0] + 5_000)
    assert second == "written"
    assert 8_000 <= written_ms <= 8_010


def test_traffic_sends_at_its_rates() -> None:
    lab = Lab(**QUIET)
    lab.create_topic("orders")
    producer = lab.producer("shop")
    traffic = lab.traffic(
        producer, rates=[("0s", 5), ("60s", 40)], message=lambda i: Message("orders", f"заказ {i}".encode())
    )
    lab.run_for("59s")
    assert (traffic.number, traffic.sent) == (59 * 5 + 1, 59 * 5)  # the last is under way
    lab.run_for("11s")
    assert traffic.sent == pytest.approx(60 * 5 + 10 * 40, abs=2)
    traffic.stop()
    lab.run_for("10s")
    assert traffic.sent == pytest.approx(700, abs=3)


def test_an_action_by_the_clock_may_call_and_break() -> None:
    lab = Lab(**QUIET)
    lab.create_topic("orders")
    producer = lab.producer("shop")
    sent: list[str] = []
    lab.at("30s", lambda: sent.append(producer.send(Message("orders", b"x")).send_status))
    lab.at("40s", lambda lab: lab.kill("broker-a"))
    lab.run_for("35s")
    assert sent == ["SEND_OK"]
    lab.run_for("10s")
    assert not lab.broker("broker-a").is_up
    with pytest.raises(UsageError, match="is in the past"):
        lab.at("1s", lambda: None)
