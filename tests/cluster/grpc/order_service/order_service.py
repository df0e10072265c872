"""A shop: it places orders, books payments, reminds of bills, and bills what was ordered."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    TransactionChecker,
    TransactionResolution,
)


def _message(topic: str, text: str) -> Message:
    message = Message()
    message.topic, message.body, message.keys = topic, text.encode(), text
    return message


class Shop:
    """Sends to its topics. ``books``: the payments that were booked, which the server may ask about later."""

    def __init__(self, endpoints: str, *topics: str) -> None:
        self.books: set[str] = set()
        shop = self

        class Books(TransactionChecker):
            def check(self, message: Any) -> TransactionResolution:
                booked = message.body.decode() in shop.books
                return TransactionResolution.COMMIT if booked else TransactionResolution.ROLLBACK

        self._producer = Producer(ClientConfiguration(endpoints, Credentials()), topics, Books())
        self._producer.startup()

    def place(self, topic: str, order: str) -> None:
        """An order by itself."""
        self._producer.send(_message(topic, order))

    def place_in_order(self, topic: str, customer: str, order: str) -> None:
        """An order that comes after the customer's earlier ones."""
        message = _message(topic, order)
        message.message_group = customer
        self._producer.send(message)

    def remind(self, topic: str, order: str, seconds: int) -> None:
        """A reminder that is due later."""
        message = _message(topic, order)
        message.delivery_timestamp = int(time.time()) + seconds
        self._producer.send(message)

    def pay(self, topic: str, payment: str, book: Callable[[str], None], *, crashes: bool = False) -> None:
        """A payment that others hear of only if it was booked. ``crashes``: right after it was booked."""
        transaction = self._producer.begin_transaction()
        self._producer.send(_message(topic, payment), transaction)
        try:
            book(payment)
        except ValueError:
            transaction.rollback()
            return
        self.books.add(payment)
        if not crashes:
            transaction.commit()

    def close(self) -> None:
        """Send nothing more."""
        self._producer.shutdown()


class Billing(MessageListener):
    """Consumes a topic. ``bill(text, attempt)`` raises ValueError for what cannot be billed now."""

    def __init__(self, endpoints: str, group: str, topic: str, bill: Callable[[str, int], None]) -> None:
        self.billed: list[str] = []
        self._bill = bill
        configuration = ClientConfiguration(endpoints, Credentials())
        self._consumer = PushConsumer(configuration, group, self, {topic: FilterExpression()})
        self._consumer.startup()

    def consume(self, message: Any) -> ConsumeResult:
        """Called by the client."""
        order = message.body.decode()
        try:
            self._bill(order, message.delivery_attempt)
        except ValueError:
            return ConsumeResult.FAILURE
        self.billed.append(order)
        return ConsumeResult.SUCCESS

    def close(self) -> None:
        """Consume nothing more."""
        self._consumer.shutdown()
