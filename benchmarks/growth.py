"""How the cost of a simulation grows with messages, queues and consumers.

    python -m benchmarks growth [--largest 1000]

Each world is three times as large as the one before it. A row says its steps, its processor time, and what one more
message (or queue, or consumer) has cost since the row above: the difference of the times by the difference of the
sizes. The last column is that cost beside the first one; growth that is a straight line stays at 1.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mqlab import CONSUME_SUCCESS, Lab, Message

QUIET: dict[str, Any] = {"client": {"enable_trace": False}, "journal_limit": 1_000}


@dataclass(frozen=True)
class Grown:
    """One world: what grew and to what, the steps that it took, and its processor time in seconds."""

    kind: str
    size: int
    steps: int
    seconds: float


def _listener(messages: Any, context: Any) -> str:
    return CONSUME_SUCCESS


def _consumers(lab: Lab, count: int) -> None:
    for number in range(count):
        consumer = lab.push_consumer("billing", name=f"billing-{number}")
        consumer.subscribe("orders")
        consumer.on_messages(_listener)
        consumer.start()


def _world(messages: int, queues: int, consumers: int) -> Lab:
    """A topic, its readers, and so many messages one after the other; then two rounds of rebalancing."""
    lab = Lab(**QUIET)
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    _consumers(lab, consumers)
    producer = lab.producer("shop")
    for number in range(messages):
        producer.send(Message("orders", b"x" * 256, keys=f"order-{number}"))
    lab.run_for("60s")
    return lab


WORLDS: dict[str, Callable[[int], Lab]] = {
    "messages": lambda size: _world(size, 4, 2),
    "queues": lambda size: _world(100, size, 2),
    "consumers": lambda size: _world(100, size, size),  # as many queues, so that each has work
}
SMALLEST = {"messages": 1_000, "queues": 10, "consumers": 10}


def played(kind: str, size: int) -> Grown:
    """Play one world and measure it."""
    gc.collect()
    began = time.process_time()
    lab = WORLDS[kind](size)
    spent, steps = time.process_time() - began, lab.journal.next_step
    lab.close()
    return Grown(kind, size, steps, spent)


def sizes(kind: str, largest: int) -> Iterator[int]:
    """The smallest size and each three times larger one up to the largest."""
    size = SMALLEST[kind]
    while size <= largest:
        yield size
        size *= 3


def rows(kind: str, largest: int) -> list[tuple[Grown, float | None]]:
    """The worlds of one kind, each with the seconds that one more of its kind has cost; the first world has none."""
    worlds = [played(kind, size) for size in sizes(kind, largest)]
    more: list[float | None] = [
        (world.seconds - before.seconds) / (world.size - before.size) for before, world in itertools.pairwise(worlds)
    ]
    return list(zip(worlds, [None, *more], strict=True))


def main(arguments: list[str]) -> None:
    """Parse the options, play, print a table for each kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--largest", type=int, default=1_000, help="of queues and consumers; ten times as many messages"
    )
    options = parser.parse_args(arguments)
    print(f"{'':<12}{'size':>8}{'steps':>12}{'steps/s':>10}{'CPU s':>9}{'one more, ms':>14}  beside the first")
    for kind in WORLDS:
        first = None
        for world, more in rows(kind, options.largest * (10 if kind == "messages" else 1)):
            rate = world.steps / max(world.seconds, 1e-9)
            line = f"{kind:<12}{world.size:>8,}{world.steps:>12,}{rate:>10,.0f}{world.seconds:>9.2f}"
            first = first or more
            print(line if more is None or not first else f"{line}{1_000 * more:>14.2f}{more / first:>8.2f}")
