"""Lab 02: days are what they are about, the judge sees what happened, and wrong answers that no file holds are told."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from mqlab import Message
from mqlab.course.cases.lab02 import believes, outbox, scale_in, selector, strategy
from mqlab.course.teach.exercises import manifest
from mqlab.course.words import refutation
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.client.sending.fault_strategy import LATENCY_MAX_MS, LatencyFaultStrategy
from tests.course.teach.notebook_answers import finding_of, reference
from tests.course.teach.seeds import first_of

EXERCISES = {one.id.partition(".")[2]: one for one in manifest("lab02").exercises}
found = functools.partial(finding_of, "lab02")


@pytest.mark.parametrize("seed", range(40, 60))
def test_the_computed_beliefs_are_those_of_a_real_route_table(seed: int) -> None:
    calls = believes.days(seed)
    assert all(believes.believed(call["events"], call["who"], call["t"]) == call.right for call in calls)
    assert {tuple(call.right) for call in calls} >= {("broker-a",), ("broker-a", "broker-b")}


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda events, who, t: None, "believes returned nothing"),
        (lambda events, who, t: believes.answered(events, who, t)[::-1], believes.SORTED_RULE),
        (lambda events, who, t: believes.answered(events, who, 10**6), believes.LATER_RULE),
        (lambda events, who, t: [], believes.ASKED_RULE),
        (lambda events, who, t: believes.answered(events, who, t - 1), believes.LATER_RULE),
        (lambda events, who, t: believes.answered(events, who, t) or None, "returned nothing for this call"),
    ],
)
def test_other_beliefs_are_told_the_rule(answer: Any, rule: str) -> None:
    assert rule in found("believes", believes=answer).rule


@pytest.mark.parametrize("seed", first_of(60, 61, 62, 63))
def test_the_day_of_the_brokers_has_every_kind_of_update_and_question(seed: int) -> None:
    watched = strategy.day(seed).play({"MyFaults": LatencyFaultStrategy}, seed).watched
    assert watched is not None and watched.wrong is None
    assert {one.isolation for one in watched.updates} == {one.reachable for one in watched.updates} == {True, False}
    classes = {sum(one.latency_ms >= low for low in LATENCY_MAX_MS) for one in watched.updates}
    assert len(classes) >= 3


def test_a_question_that_raises_is_told_and_stops_no_send() -> None:
    class Forgetful(LatencyFaultStrategy):
        def is_available(self, broker_name: str, now_ms: int) -> bool:
            return now_ms >= self.items[broker_name].available_from_ms

    with pytest.raises(KeyError):
        EXERCISES["strategy"].case(1).run({"MyFaults": Forgetful})


@pytest.mark.parametrize(("answer", "words"), [(object, "no is_available"), (lambda size: 1, "size")])
def test_what_is_no_strategy_is_told(answer: Any, words: str) -> None:
    said = found("strategy", MyFaults=answer)
    assert said.rule == strategy.FORM_RULE and words in str(said.found)


def test_an_answer_that_is_neither_true_nor_false_is_told() -> None:
    class Silent(LatencyFaultStrategy):
        def is_available(self, broker_name: str, now_ms: int) -> bool:
            return None  # type: ignore[return-value]

    assert found("strategy", MyFaults=Silent).rule == strategy.BOOL_RULE


class Right:
    """The reference, to be changed in one place."""

    def __init__(self, lab: Any, shop: Any) -> None:
        self.database, self.shop = lab.database("shop"), shop

    def place_order(self, key: str, body: bytes) -> None:
        with self.database.connect() as connection:
            connection.execute("INSERT INTO orders VALUES (?, ?)", (key, body))
            connection.execute("INSERT INTO outbox (order_key, body) VALUES (?, ?)", (key, body))

    def message(self, key: str, body: bytes) -> Message:
        return Message("orders", body, keys=key)

    def relay(self) -> None:
        connection = self.database.connect()
        for key, body in connection.execute("SELECT order_key, body FROM outbox WHERE sent = 0").fetchall():
            self.shop.send(self.message(key, body))
            with connection:
                connection.execute("UPDATE outbox SET sent = 1 WHERE order_key = ?", (key,))


def test_the_shop_dies_at_every_line_and_orders_and_messages_agree() -> None:
    assert EXERCISES["outbox"].case(5).run({"Outbox": Right}) is None


def test_rows_that_are_deleted_instead_of_marked_are_right_too() -> None:
    class Deletes(Right):
        def relay(self) -> None:
            connection = self.database.connect()
            for key, body in connection.execute("SELECT order_key, body FROM outbox").fetchall():
                self.shop.send(self.message(key, body))
                with connection:
                    connection.execute("DELETE FROM outbox WHERE order_key = ?", (key,))

    assert EXERCISES["outbox"].case(3).run({"Outbox": Deletes}) is None


def test_other_shops_are_told_what_they_do() -> None:
    class NoCommit(Right):
        def place_order(self, key: str, body: bytes) -> None:
            self.database.connect().execute("INSERT INTO orders VALUES (?, ?)", (key, body))

    class NoKeys(Right):
        def message(self, key: str, body: bytes) -> Message:
            return Message("orders", body)

    class Idle(Right):
        def relay(self) -> None:
            pass

    assert found("outbox", Outbox=NoCommit).rule == outbox.ORDER_RULE
    assert found("outbox", Outbox=NoKeys).rule == outbox.BODY_RULE
    assert found("outbox", Outbox=Idle).rule == outbox.SENT_RULE
    assert found("outbox", Outbox=object).rule == outbox.FORM_RULE


def test_a_mistake_in_a_relay_is_raised_and_a_broker_that_is_away_is_not() -> None:
    class Broken(Right):
        def relay(self) -> None:
            raise ZeroDivisionError("a mistake")

    with pytest.raises(ZeroDivisionError, match="a mistake"):
        EXERCISES["outbox"].case(1).run({"Outbox": Broken})
    played = outbox.broker_away(1).play({"Outbox": Right}, 1)
    assert played.relay_raised, "while the broker was away"


@pytest.mark.parametrize("seed", first_of(1, 2, 3, 4, 5))
def test_orders_stay_and_orders_move(seed: int) -> None:
    names = reference("lab02.selector")
    played = selector.day(seed).play(names, seed)
    assert played.moved and len(played.moved) < len(played.orders)


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda queues, message, arg: 3, selector.QUEUE_RULE),
        (lambda queues, message, arg: None, selector.QUEUE_RULE),
        (lambda queues, message, arg: queues[sum(arg.encode()) % len(queues)], selector.OTHERS_RULE),
        (lambda queues, message, arg: queues[0], refutation("lab02.one_queue")),
    ],
)
def test_other_selectors_are_told_what_they_do(answer: Any, rule: str) -> None:
    assert found("selector", selector=answer).rule == rule


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda orders, before, after: None, "moved returned nothing"),
        (lambda orders, before, after: 7, selector.MOVED_FORM),
        (lambda orders, before, after: orders, selector.MOVED_RULE),
    ],
)
def test_other_lists_of_orders_are_told(answer: Any, rule: str) -> None:
    assert rule in found("selector", moved=answer).rule


def test_a_message_in_another_topic_is_found_there() -> None:
    def elsewhere(lab: Lab, shop: Any) -> Any:
        class Shop:
            def send(self, message: Message) -> Any:
                return shop.send(Message("other", message.body, keys=message.keys))

        return reference("lab02.outbox")["Outbox"](lab, Shop())

    finding = found("outbox", Outbox=elsewhere)
    assert finding.rule == outbox.TOPIC_RULE and finding.found == "in other"


def test_a_broker_that_nobody_has_heard_of_is_asked_for_as_well() -> None:
    class Distrusts(reference("lab02.strategy")["MyFaults"]):  # type: ignore[misc]
        def is_reachable(self, broker_name: str) -> bool:
            return self.reachable.get(broker_name, False)

    assert found("strategy", MyFaults=Distrusts).rule == strategy.REACHABLE_RULE


@pytest.mark.parametrize("seed", [5, 6])
def test_only_even_days_have_a_backlog_that_outlasts_the_routes(seed: int) -> None:
    seen = []

    def waits(lab: Lab) -> None:
        lab.admin.update_topic("orders", write_queue_nums=8)
        lab.run_for("35s")
        seen.append(lab.admin.examine_consume_stats("reports", "orders").queues)
        lab.admin.update_topic("orders", read_queue_nums=8)

    finding = EXERCISES["scale_in"].case(seed).run({"scale_in": waits})
    behind = sum(row.broker_offset - row.consumer_offset for row in seen[0] if row.message_queue.queue_id >= 8)
    assert (behind > 0) == (finding is not None) == (seed % 2 == 0)


def test_other_ways_to_eight_are_told_what_they_do() -> None:
    def deletes(lab: Lab) -> None:
        lab.admin.delete_topic("orders")
        lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8)

    def closes(lab: Lab) -> None:
        lab.admin.update_topic("orders", perm=4)
        lab.run_for("2m")
        lab.admin.update_topic("orders", perm=6, read_queue_nums=8, write_queue_nums=8)

    assert found("scale_in", scale_in=deletes).rule == scale_in.GONE_RULE
    assert found("scale_in", scale_in=closes).rule == scale_in.TRAFFIC_RULE
    assert found("scale_in", scale_in=lambda lab: None).rule == scale_in.DONE_RULE


def test_a_program_of_a_producers_process_is_interleaved_and_dies_with_it() -> None:
    done: list[int] = []

    def sells(shop: Any) -> None:
        for number in range(10):
            shop.send(Message("orders", b"a book"))
            done.append(number)

    def story(lab: Lab) -> None:
        lab.create_topic("orders")
        shop = lab.producer("shop")
        assert lab.start_work(shop, max, 3, 4).result() == 4
        lab.start_work("shop-1", sells, shop)
        lab.run_until(lambda: len(done) == 4)
        lab.kill("shop-1")
        lab.run_for("1m")

    play(story, seed=3, client={"enable_trace": False})
    assert done == [0, 1, 2, 3]


def test_a_broker_has_no_programs() -> None:
    with Lab(seed=1) as lab, pytest.raises(Exception, match="only a producer's or a consumer's process"):
        lab.start_work("broker-a", print)
