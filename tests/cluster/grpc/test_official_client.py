"""The unmodified Python client of RocketMQ against a server of the fixture: every kind of producer and of consumer."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from rocketmq import TransactionChecker, TransactionResolution

from mqlab.cluster.testing.server import RocketMQ
from tests.cluster.grpc.official import Listener, message, producer, push, simple, until


def received(consumer: Any, count: int, invisible: int = 30) -> list[Any]:
    """So many messages, which are not acknowledged."""
    found: list[Any] = []
    until(lambda: found.extend(consumer.receive(32, invisible) or []) or len(found) >= count)
    return found


def nothing_comes(rocketmq: RocketMQ, consumer: Any) -> bool:
    """Whether a receive ends without a message; time jumps over its wait."""
    jump = threading.Timer(0.2, lambda: rocketmq.advance("30s"))
    jump.start()
    found = consumer.receive(32, 30)
    jump.join()
    return not found


def test_a_message_arrives_with_all_that_was_sent(rocketmq: RocketMQ) -> None:
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing")
    with producer(rocketmq.grpc, orders) as shop, simple(rocketmq.grpc, group, **{orders: "paid"}) as billing:
        shop.send(message(orders, b"not wanted", tag="open"))
        receipt = shop.send(message(orders, b"order-1", tag="paid", keys="1001", properties={"city": "Lima"}))
        (order,) = received(billing, 1)
        assert (order.body, order.tag, list(order.keys)) == (b"order-1", "paid", ["1001"])
        assert order.properties == {"city": "Lima"} and order.delivery_attempt == 1
        assert order.message_id == receipt.message_id
        billing.ack(order)
    assert {stored.msg_id for stored in rocketmq.messages("orders")} > {receipt.message_id}


def test_a_lease_that_was_changed_is_acknowledged(rocketmq: RocketMQ) -> None:
    """In 5.3.3 such an ack has no effect but for the first message of a pop."""
    orders, group = rocketmq.topic("orders", queues=1), rocketmq.group("billing")
    with producer(rocketmq.grpc, orders) as shop, simple(rocketmq.grpc, group, **{orders: "*"}) as billing:
        for number in range(3):
            shop.send(message(orders, b"%d" % number))
        for order in received(billing, 3):
            billing.change_invisible_duration(order, 20)
            billing.ack(order)
        rocketmq.advance("30s")
        assert nothing_comes(rocketmq, billing)


def test_what_is_not_acknowledged_comes_again_and_then_is_dead(rocketmq: RocketMQ) -> None:
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing", max_attempts=2)
    with producer(rocketmq.grpc, orders) as shop, simple(rocketmq.grpc, group, **{orders: "*"}) as billing:
        shop.send(message(orders, b"poison"))
        attempts = []
        for _ in range(2):
            attempts += [order.delivery_attempt for order in received(billing, 1, invisible=10)]
            rocketmq.advance("15s")
        assert attempts == [1, 2]
        assert nothing_comes(rocketmq, billing)
        assert [dead.body for dead in rocketmq.dead_letters("billing")] == [b"poison"]


def test_a_delayed_message_waits_and_a_recalled_one_does_not_come(rocketmq: RocketMQ) -> None:
    later, group = rocketmq.topic("later", "DELAY"), rocketmq.group("billing")
    with producer(rocketmq.grpc, later) as shop, simple(rocketmq.grpc, group, **{later: "*"}) as billing:
        due = int(time.time()) + 600
        shop.send(message(later, b"reminder", delivery_timestamp=due))
        receipt = shop.send(message(later, b"recalled", delivery_timestamp=due))
        shop.recall_message(later, receipt.recall_handle)
        assert not rocketmq.messages("later")
        rocketmq.advance("11m")
        assert [order.body for order in received(billing, 1)] == [b"reminder"]
        assert [stored.body for stored in rocketmq.messages("later")] == [b"reminder"]


class Checker(TransactionChecker):
    """Commits what the server asks about."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def check(self, message: Any) -> TransactionResolution:
        self.asked.append(bytes(message.body))
        return TransactionResolution.COMMIT


def test_transactions_are_committed_rolled_back_and_asked_for(rocketmq: RocketMQ) -> None:
    payments, checker = rocketmq.topic("payments", "TRANSACTION"), Checker()
    with producer(rocketmq.grpc, payments, checker=checker) as shop:
        for body in (b"committed", b"rolled back", b"forgotten"):
            transaction = shop.begin_transaction()
            shop.send(message(payments, body), transaction)
            if body == b"committed":
                transaction.commit()
            elif body == b"rolled back":
                transaction.rollback()
        until(lambda: rocketmq.advance("1s") or time.sleep(0.05) or len(rocketmq.messages("payments")) == 2)
    assert checker.asked == [b"forgotten"]
    assert sorted(stored.body for stored in rocketmq.messages("payments")) == [b"committed", b"forgotten"]


def test_a_push_consumer_gets_again_what_its_listener_failed(rocketmq: RocketMQ) -> None:
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing")
    listener = Listener(lambda order: order.body == b"bad" and order.delivery_attempt == 1)
    with push(rocketmq.grpc, group, listener, **{orders: "*"}), producer(rocketmq.grpc, orders) as shop:
        shop.send(message(orders, b"good"))
        shop.send(message(orders, b"bad"))
        until(lambda: len(listener.seen) == 2)
        time.sleep(0.1)  # the client has changed the lease of the one that failed
        rocketmq.advance("10s")
        until(lambda: len(listener.seen) == 3)
    assert sorted(listener.seen) == [(b"bad", 1), (b"bad", 2), (b"good", 1)]


def test_a_fifo_push_consumer_keeps_the_order_of_a_customer_and_buries_what_fails(rocketmq: RocketMQ) -> None:
    orders, group = rocketmq.topic("orders", "FIFO"), rocketmq.group("billing", fifo=True, max_attempts=1)
    listener = Listener(lambda order: order.body == b"ann-2")
    with producer(rocketmq.grpc, orders) as shop:
        for number in range(5):
            for customer in ("ann", "bob"):
                shop.send(message(orders, f"{customer}-{number}".encode(), message_group=customer))
        with push(rocketmq.grpc, group, listener, **{orders: "*"}):
            until(lambda: len(listener.seen) == 10)
            until(lambda: rocketmq.dead_letters("billing"))
    for customer in (b"ann", b"bob"):
        own = [body for body in listener.bodies if body.startswith(customer)]
        assert own == [customer + b"-%d" % number for number in range(5)]
    assert [dead.body for dead in rocketmq.dead_letters("billing")] == [b"ann-2"]


def test_clients_go_on_after_the_server_was_killed(rocketmq: RocketMQ) -> None:
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing")
    with producer(rocketmq.grpc, orders) as shop:
        for number in range(20):
            shop.send(message(orders, b"%d" % number))
        rocketmq.kill()
        until(lambda: sent(shop, message(orders, b"after")))
        assert {stored.body for stored in rocketmq.messages("orders")} >= {b"%d" % n for n in range(20)} | {b"after"}
        with simple(rocketmq.grpc, group, **{orders: "*"}) as billing:
            assert len(received(billing, 21)) >= 21


def sent(shop: Any, order: Any) -> bool:
    """Whether a message was stored."""
    try:
        shop.send(order)
    except Exception:
        return False
    return True


def test_a_call_fails_when_a_test_wants_it(rocketmq: RocketMQ) -> None:
    orders = rocketmq.topic("orders")
    with producer(rocketmq.grpc, orders) as shop:
        rocketmq.fail_next("SendMessage", times=5)
        assert not sent(shop, message(orders, b"1"))
    assert not rocketmq.messages("orders")


def test_a_topic_takes_its_own_kind_of_messages_alone(rocketmq: RocketMQ) -> None:
    orders = rocketmq.topic("orders", "FIFO")
    with producer(rocketmq.grpc, orders) as shop:
        with pytest.raises(Exception, match="FIFO"):
            shop.send(message(orders, b"no group"))
