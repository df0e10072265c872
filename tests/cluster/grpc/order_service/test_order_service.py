"""Five tests of the shop, each with topics and groups of its own. ``rocketmq`` comes from mqlab's wheel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from order_service import Billing, Shop

MOST_SECONDS = 150  # of the server's time


@pytest.fixture
def until(rocketmq: Any) -> Iterator[Callable[[Callable[[], Any]], None]]:
    """Lets the server's time pass, second by second, until something is so."""

    def wait(condition: Callable[[], Any]) -> None:
        for _ in range(MOST_SECONDS):
            for _ in range(8):
                if condition():
                    return
                time.sleep(0.01)
            rocketmq.advance("1s")
        raise AssertionError(f"not within {MOST_SECONDS} s")

    yield wait


def bills_everything(order: str, attempt: int) -> None:
    """No order fails."""


def test_an_order_that_cannot_be_billed_is_billed_later(rocketmq: Any, until: Any) -> None:
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing")
    attempts = []

    def bill(order: str, attempt: int) -> None:
        attempts.append((order, attempt))
        if order == "order-2" and attempt == 1:
            raise ValueError("the bank is closed")

    with closing(Shop(rocketmq.grpc, orders)) as shop, closing(Billing(rocketmq.grpc, group, orders, bill)) as billing:
        for number in range(1, 4):
            shop.place(orders, f"order-{number}")
        until(lambda: len(billing.billed) == 3)
    assert sorted(attempts) == [("order-1", 1), ("order-2", 1), ("order-2", 2), ("order-3", 1)]


def test_an_order_that_can_never_be_billed_becomes_a_dead_letter(rocketmq: Any, until: Any) -> None:
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing", max_attempts=2)

    def bill(order: str, attempt: int) -> None:
        if order == "poison":
            raise ValueError("no such account")

    with closing(Shop(rocketmq.grpc, orders)) as shop, closing(Billing(rocketmq.grpc, group, orders, bill)) as billing:
        shop.place(orders, "poison")
        shop.place(orders, "order-1")
        until(lambda: rocketmq.dead_letters(group))
    assert billing.billed == ["order-1"]
    assert [dead.body for dead in rocketmq.dead_letters(group)] == [b"poison"]


def test_the_orders_of_a_customer_are_billed_in_their_order(rocketmq: Any, until: Any) -> None:
    orders, group = rocketmq.topic("orders", "FIFO"), rocketmq.group("billing", fifo=True)
    with closing(Shop(rocketmq.grpc, orders)) as shop:
        for number in range(6):
            for customer in ("ann", "bob", "eve"):
                shop.place_in_order(orders, customer, f"{customer}-{number}")
    with closing(Billing(rocketmq.grpc, group, orders, bills_everything)) as billing:
        until(lambda: len(billing.billed) == 18)
    for customer in ("ann", "bob", "eve"):
        own = [order for order in billing.billed if order.startswith(customer)]
        assert own == [f"{customer}-{number}" for number in range(6)]


def test_a_payment_is_seen_only_if_it_was_booked(rocketmq: Any, until: Any) -> None:
    payments, group = rocketmq.topic("payments", "TRANSACTION"), rocketmq.group("accounts")

    def book(payment: str) -> None:
        if payment == "payment-2":
            raise ValueError("not enough money")

    with closing(Shop(rocketmq.grpc, payments)) as shop:
        shop.pay(payments, "payment-1", book)
        shop.pay(payments, "payment-2", book)
        shop.pay(payments, "payment-3", book, crashes=True)  # the server asks the shop what became of it
        with closing(Billing(rocketmq.grpc, group, payments, bills_everything)) as accounts:
            until(lambda: set(accounts.billed) == {"payment-1", "payment-3"})


def test_a_reminder_comes_when_it_is_due(rocketmq: Any, until: Any) -> None:
    reminders, group = rocketmq.topic("reminders", "DELAY"), rocketmq.group("mail")
    with closing(Shop(rocketmq.grpc, reminders)) as shop:
        with closing(Billing(rocketmq.grpc, group, reminders, bills_everything)) as mail:
            shop.remind(reminders, "now", 0)
            until(lambda: mail.billed == ["now"])
            shop.remind(reminders, "bill-1", 30)
            rocketmq.advance("15s")
            assert mail.billed == ["now"]
            until(lambda: mail.billed == ["now", "bill-1"])
