"""A day of a lab: messages through three groups, then all that a notebook shows; goal: 15 s for 20,000.

    python -m benchmarks day --messages 20000 [--clock cpu] [--journal-limit 50000] [--busy]

Three groups read every message of eight queues, 200 messages a second of virtual time, message trace off. Then come the
rows, the pictures with their HTML, text and table, verify, snapshot and the digest. One line per part says its seconds.

``--busy`` is a day as lab 09 plays it: one group of eight instances with 40 threads each, whose calls compute for 20 ms
on one of eight cores and wait for 200 ms; only its play is timed, and its goal is 15 s for 20,000 messages.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks.timing import CLOCKS
from mqlab import CONSUME_SUCCESS, Lab, Message

GOAL_S, BUSY_GOAL_S = 15, 15
GROUPS = ("billing", "audit", "search")
A_SECOND = 200


def quick(messages: Any, context: Any) -> str:
    """A listener that takes no time."""
    return CONSUME_SUCCESS


def busy(messages: Any, context: Any) -> str:
    """A listener that computes and then waits."""
    context.compute(20)
    context.sleep(200)
    return CONSUME_SUCCESS


def three_groups(lab: Lab) -> None:
    """One quick consumer in each group."""
    for group in GROUPS:
        consumer = lab.push_consumer(group)
        consumer.subscribe("orders")
        consumer.on_messages(quick)
        consumer.start()


def a_busy_group(lab: Lab) -> None:
    """Eight instances that keep up with the traffic."""
    for number in range(8):
        threads = {"consume_thread_min": 40, "consume_thread_max": 40}
        consumer = lab.push_consumer(GROUPS[0], name=f"{GROUPS[0]}-{number}", cores=8, **threads)
        consumer.subscribe("orders")
        consumer.on_messages(busy)
        consumer.start()


def played(count: int, journal_limit: int | None, readers: Callable[[Lab], None] = three_groups) -> Lab:
    """A Lab in which ``count`` messages were sent and read by all groups."""
    lab = Lab(client={"enable_trace": False}, journal_limit=journal_limit)
    lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8)
    readers(lab)
    lab.run_for("30s")
    producer = lab.producer("shop")
    traffic = lab.traffic(
        producer,
        rates=[("0s", A_SECOND)],
        message=lambda number: Message("orders", f"заказ 订单 💳 {number}".encode(), keys=f"order-{number}"),
    )
    # A constant rate in virtual time, so that the journal has the same shape on every machine.
    lab.run_until(lambda: traffic.number >= count, limit="10h")
    traffic.stop()
    # Enough for the last messages to be read and for their offsets to be sent, every 5 s.
    lab.run_for("10s")
    return lab


def shown(picture: Any) -> None:
    """All forms of a picture."""
    assert picture.html() and str(picture) and picture.table().html()


def parts(lab: Lab) -> dict[str, Callable[[], object]]:
    """Everything that is shown, by name."""
    one = lab.delivery_book.of(GROUPS[0])[0].msg_id
    return {
        "deliveries": lambda: [str(lab.deliveries(group)) for group in GROUPS],
        "offset strip": lambda: shown(lab.offset_strip(GROUPS[0])),
        "timeline": lambda: shown(lab.timeline()),
        "timeline of a message": lambda: shown(lab.timeline(one)),
        "space-time": lambda: shown(lab.space_time()),
        "cluster diagram": lambda: shown(lab.diagram()),
        "verify": lambda: [str(lab.verify(group)) for group in GROUPS],
        "snapshot, changes": lambda: str(lab.changes(lab.snapshot())),
        "digest": lab.journal.digest,
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks day")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--journal-limit", type=int)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--busy", action="store_true")
    options = parser.parse_args(arguments)
    now = CLOCKS[options.clock]
    began = last = now()

    def say(what: str) -> None:
        # Each line has the time since the line before it.
        nonlocal last
        print(f"  {what:<26}{now() - last:>8.2f} s", flush=True)
        last = now()

    lab = played(options.messages, options.journal_limit, a_busy_group if options.busy else three_groups)
    say("send and read")
    if options.busy:
        done = len(lab.deliveries(GROUPS[0], absences=False))
        print(f"  {done} calls  (goal: {BUSY_GOAL_S} s for 20,000)")
        return
    for name, act in parts(lab).items():
        act()
        say(name)
    print(f"  {'all':<26}{now() - began:>8.2f} s  (goal: {GOAL_S} s for 20,000 messages)")
    print(f"  {lab.journal!r}, {len(lab.delivery_book.of(GROUPS[0]))} deliveries a group")


if __name__ == "__main__":
    main([])
