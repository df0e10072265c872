"""Each promise of the kit names the first thing that breaks it, with its step; a day without faults breaks none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from mqlab.course.kit.days import Day, Reads, Sends, Topics, Waits
from mqlab.course.kit.promises import (
    Promise,
    at_most_retries,
    no_call_longer_than,
    no_surprise,
    nothing_lost,
)
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER
from mqlab.rocketmq.wire.message import Message

Listener = Callable[[Sequence[Any], Any], str]
PROMISES: dict[str, Promise] = {
    "lost": nothing_lost("billing", "nothing lost"),
    "long": no_call_longer_than("billing", "10s", "no long call"),
    "retries": at_most_retries("billing", 0, "no retry"),
    "surprise": no_surprise("billing"),
}


@dataclass(frozen=True)
class Order:
    key: str
    customer: str

    def message(self) -> Message:
        return Message("orders", b"a book", keys=self.key)


ORDERS = [Order(f"order-{number}", "C7") for number in range(4)]


def quick(messages: Sequence[Any], context: Any) -> str:
    context.sleep("5ms")
    return CONSUME_SUCCESS


def hangs(messages: Sequence[Any], context: Any) -> str:
    context.sleep("10h" if messages[0].keys == "order-2" else "5ms")
    return CONSUME_SUCCESS


def refuses(messages: Sequence[Any], context: Any) -> str:
    return RECONSUME_LATER if messages[0].reconsume_times == 0 else CONSUME_SUCCESS


def raises(messages: Sequence[Any], context: Any) -> str:
    raise ValueError("no such account")


def day(listener: Listener, *faults: Any, **settings: Any) -> Any:
    reads = Reads("billing", "orders", listener, settings=settings)
    every = "1s" if listener is quick else ""
    return Day((Topics(("orders",)), reads, Sends(ORDERS, every), *faults, Waits("3m"))).play({}, 1)


def test_a_good_day_breaks_no_promise() -> None:
    played = day(quick)
    assert {name: promise(played) for name, promise in PROMISES.items()} == dict.fromkeys(PROMISES)


@pytest.mark.parametrize(
    ("name", "listener", "faults", "settings", "where"),
    [
        ("lost", refuses, (), {"message_model": "BROADCASTING"}, "order-"),
        ("long", hangs, (), {}, "order-2"),
        ("retries", refuses, (), {}, "order-0, reconsume_times 1"),
        ("surprise", raises, (), {}, "order-0"),
    ],
)
def test_a_broken_promise_is_named(
    name: str, listener: Listener, faults: tuple[Any, ...], settings: dict[str, Any], where: str
) -> None:
    played = day(listener, *faults, **settings)
    finding = PROMISES[name](played)
    assert finding is not None and where in finding.first_wrong
    assert finding.lab is played.lab and finding.step is not None
    assert PROMISES[name](day(quick)) is None
