"""Lab 10's your-turn tasks: what is right is computed from what the learner's own cells have counted.

    amplify  share  floor       the first part: a worse morning, another topic, as many queues as you like
    looked  moves               the second part: a group's tags, a plan
    cores  pieces               tasks that wait for the fullest one, and what it costs to cut a key

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mqlab.course.teach.tasks import Task

RETRIES = "%RETRY%billing"
OF_THE_SHOP = ("orders", "letters")
FAILING_ORDERS, FIRST_QUEUES, FIRST_PARTS, FIRST_PIECES = 3, 64, 16, 4
NOTIFICATION = {"shipped", "refunded", "cancelled"}


def _stored(lab: Any, *topics: str) -> int:
    return sum(queue.max_offset for queue in lab.store().queues() if not topics or queue.topic in topics)


def _fails_once(lab: Any) -> str:
    once = _stored(lab, RETRIES) == FAILING_ORDERS
    return "every tenth order still fails once: change FAILS first" if once else ""


def _percent(by_option: int, by_where: int, _topic: str) -> int:
    return round(100 * by_option / by_where)


def _still_stock(_by_option: int, _by_where: int, topic: str) -> str:
    return "the topic is still stock: change TOPIC first" if topic == "stock" else ""


def _still_32(_customers: Mapping[str, int], fill: Mapping[str, int]) -> str:
    return "there are still 32 queues a broker: change QUEUES first" if len(fill) <= FIRST_QUEUES else ""


def _looked_at_for_one(tags: Mapping[str, int], wanted: Sequence[str]) -> float:
    return round(sum(tags.values()) / _matched(tags, wanted), 1)


def _matched(tags: Mapping[str, int], wanted: Sequence[str]) -> int:
    return sum(tags.get(tag, 0) for tag in wanted)


def _no_group_of_its_own(tags: Mapping[str, int], wanted: Sequence[str]) -> str:
    if set(wanted) == NOTIFICATION:
        return "these are still the tags of notification: change WANTED first"
    return "" if _matched(tags, wanted) else f"no order has one of these tags; there are {', '.join(map(str, tags))}"


def _close(number: object, other: object) -> bool:
    """Equal numbers, after rounding to one digit."""
    numbers = isinstance(number, int | float) and isinstance(other, int | float)
    return numbers and abs(float(str(number)) - float(str(other))) <= 0.1 + 1e-9


def _exchanges(plan: str) -> int:
    return plan.count("Exchange ")


def _still_16(sizes: Sequence[int]) -> str:
    return "there are still 16 parts: change PARTS first" if len(sizes) == FIRST_PARTS else ""


def _still_sorted(plan: str) -> str:
    sorted_by_count = _exchanges(plan) == 2 and "rangepartitioning(count" in plan
    return "this is still the first query: change it first" if sorted_by_count else ""


def _still_4(_sides: Mapping[str, int], pieces: int) -> str:
    return "there are still 4 pieces: change PIECES first" if pieces == FIRST_PIECES else ""


TASKS = (
    Task(
        "lab10.amplify",
        right=_stored,
        unready=_fails_once,
        wrong={
            "sent": lambda lab: _stored(lab, *OF_THE_SHOP),
            "once": lambda lab: _stored(lab, *OF_THE_SHOP, RETRIES),
        },
    ),
    Task(
        "lab10.share",
        right=_percent,
        unready=_still_stock,
        wrong={"all": lambda *_given: 100, "others": lambda *arguments: 100 - _percent(*arguments)},
    ),
    Task(
        "lab10.floor",
        right=lambda customers, _fill: max(customers.values()),
        unready=_still_32,
        wrong={
            "fullest": lambda _customers, fill: max(fill.values()),
            "mean": lambda _customers, fill: round(sum(fill.values()) / len(fill)),
        },
    ),
    Task(
        "lab10.looked",
        right=_looked_at_for_one,
        same=_close,
        unready=_no_group_of_its_own,
        wrong={
            "share": lambda tags, wanted: _matched(tags, wanted) / sum(tags.values()),
            "all": lambda tags, _wanted: sum(tags.values()),
        },
    ),
    Task(
        "lab10.moves",
        right=_exchanges,
        unready=_still_sorted,
        wrong={"aggregates": lambda plan: len(re.findall(r"HashAggregate\(", plan))},
    ),
    Task(
        "lab10.cores",
        right=lambda sizes: round(sum(sizes) / max(sizes), 1),
        same=_close,
        unready=_still_16,
        wrong={
            "cores": len,
            "uneven": lambda sizes: round(max(sizes) * len(sizes) / sum(sizes), 1),
        },
    ),
    Task(
        "lab10.pieces",
        right=lambda sides, pieces: sides["customers"] * pieces,
        unready=_still_4,
        wrong={
            "customers": lambda sides, _pieces: sides["customers"],
            "messages": lambda sides, _pieces: sides["messages"],
        },
    ),
)
