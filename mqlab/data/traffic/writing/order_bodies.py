"""Bodies of order messages: how orders and customers are numbered, and how many bytes a body takes.

order, customer ──▶ OrderTexts    columns of text: numbers, amount, articles, time
                ──▶ OrderBodies   classes of their stretches (see message_shapes), sizes of the bodies
"""

from __future__ import annotations

from itertools import count
from math import isqrt

import numpy as np

from mqlab.data.traffic.draws import Array, below
from mqlab.data.traffic.model import Asked
from mqlab.data.traffic.orders import FIRST_ORDER, Orders
from mqlab.data.traffic.writing.columns.text_columns import digits, joined, moments, pool, table
from mqlab.data.traffic.writing.message_shapes import OrderShapes

_CENTS, _ONE_DIGIT = table(2), table(1)
_FACTOR = (1 << 31) - 1  # a prime larger than the modulus, so that no two ranks get the same number


class OrderTexts:
    """The texts in order messages; orders and customers are numbered across all brokers of a run.

    A customer's number does not show the rank: ranks are multiplied modulo a prime.
    """

    def __init__(self, asked: Asked, broker: int) -> None:
        self._brokers, self._broker = asked.brokers, broker
        self._prime = next(n for n in count(asked.model.customers) if all(n % d for d in range(2, isqrt(n) + 1)))

    def order(self, orders: Array) -> Array:
        """Order numbers, 12 digits."""
        return digits(FIRST_ORDER + orders * self._brokers + self._broker, 12)

    def customer(self, customers: Array) -> Array:
        """Customer numbers, 8 digits."""
        scattered = (customers * _FACTOR + 31_337) % self._prime
        return digits(scattered * self._brokers + self._broker, 8)

    def customer_key(self, customer: int) -> str:
        """The key of a customer's messages."""
        return f"C{bytes(self.customer(np.array([customer]))[0]).decode()}"

    @staticmethod
    def content_class(bits: Array) -> tuple[Array, Array]:
        """(digits of the amount before the point, less two; articles, less one) of orders with these bits."""
        dice, more = below(bits, 0, 8, 10), below(bits, 8, 8, 10)
        return (dice >= 5).astype(np.int64) + (dice >= 9), (more >= 6).astype(np.int64) + (more >= 9)

    @staticmethod
    def content(bits: Array, born_ms: Array, articles: int) -> dict[str, Array]:
        """Columns for amount, articles and time."""
        whole = digits(1_000 + below(bits, 16, 12, 9_000), 4)
        letters = whole.view(np.uint8).reshape(-1, 4)
        columns = {
            "whole4": whole,
            "whole3": np.ascontiguousarray(letters[:, :3]).view("V3")[:, 0],
            "whole2": np.ascontiguousarray(letters[:, :2]).view("V2")[:, 0],
            "cents": _CENTS[below(bits, 28, 8, 100)],
            "at": moments(born_ms),
        }
        for number in range(3):
            columns[f"article{number}"] = digits(below(bits, 36 + 8 * number, 12, articles), 4)
            columns[f"quantity{number}"] = _ONE_DIGIT[1 + below(bits, 60 - number, 4, 3)]
        return columns


class OrderBodies:
    """Stretches and sizes of order bodies at one broker."""

    def __init__(self, orders: Orders, texts: OrderTexts, broker: int, cluster: str) -> None:
        self._orders = orders
        self.texts = texts
        self.shapes = OrderShapes(broker, cluster)

    def classes(self, order: Array, customer: Array) -> tuple[Array, Array, Array]:
        """(random bits of the content, person, content class) of orders."""
        bits = self._orders.looks(order)
        whole, more = self.texts.content_class(bits)
        return bits, self._orders.people(customer), whole * 3 + more

    def sizes(self, order: Array, kind: Array, customer: Array) -> Array:
        """Bytes of the bodies of order messages."""
        _, person, content = self.classes(order, customer)
        return self.shapes.body_sizes(kind, person, content)


def offset_ids(host: bytes, physical_offsets: Array, hexadecimal: Array) -> Array:
    """Offset message ids, 32 letters: the broker's address, then the physical offset."""
    prefix = pool([host.hex().upper().encode()])
    return joined(np.repeat(prefix, len(physical_offsets)), hexadecimal)
