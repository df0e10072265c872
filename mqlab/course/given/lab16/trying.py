"""Each step of a learner's part alone, with what it returns: run while the part is being written.

    tried_store(MyStore)     three orders on a disk of their own, then a kill
    tried_pulls(MyPulls)     pulls of a queue of seven orders, then two arrivals
    tried_groups(MyGroups)   members and offsets on a disk of their own, then a kill

A step that raises shows its error, and the next one is tried all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mqlab.course.given.lab16.machine import TrialMachine, unit_of_order
from mqlab.lab.views import Table

Step = tuple[str, Callable[[], object]]

SEVEN_TAGS = ("new", "new", "paid", "new", "new", "paid", "new")


def tried_store(store_class: Callable[..., Any]) -> Table:
    """The steps of a store: put, dispatch, get, a new life. One row per call: step, and what it returned."""
    machine = TrialMachine()
    stores: list[Any] = []
    first, second, third = unit_of_order(0), unit_of_order(1), unit_of_order(2, queue_id=1)

    def new_life() -> str:
        stores.append(store_class(machine.disk()))
        return "made"

    steps: list[Step] = [
        ("a new disk", new_life),
        ("1 put, twice", lambda: [stores[-1].put("orders", 0, unit) for unit in (first, second)]),
        ("1 put into queue 1", lambda: stores[-1].put("orders", 1, third)),
        ("3 max_offset before dispatch", lambda: stores[-1].max_offset("orders", 0)),
        ("2 dispatch", lambda: stores[-1].dispatch()),
        ("2 dispatch again", lambda: stores[-1].dispatch()),
        ("3 get(0, 32)", lambda: f"{len(stores[-1].get('orders', 0, 0, 32))} units"),
        ("3 offset_at(1000)", lambda: stores[-1].offset_at("orders", 0, 1_000)),
        ("1 flush", lambda: stores[-1].flush()),
        ("4 after a kill", new_life),
        ("4 its first dispatch", lambda: stores[-1].dispatch()),
        ("4 its next number", lambda: stores[-1].put("orders", 0, first)[0]),
    ]
    return Table(_returns(steps), title="each step alone")


def tried_pulls(pulls_class: Callable[..., Any]) -> Table:
    """The steps of pulls: read and hold, two arrivals, two looks. One row per call: step, and what it returned."""
    store = _SevenOrders()
    pulls = pulls_class(store)

    def comes(tag: str) -> Any:
        store.tags.append(tag)
        return pulls.arrived("orders", 0)

    steps: list[Step] = [
        ("1 from 0, at most one", lambda: pulls.pull(1, _asks(0, most=1), 0)),
        ("1 from 0", lambda: pulls.pull(2, _asks(0), 0)),
        ("1 from 99", lambda: pulls.pull(3, _asks(99), 0)),
        ("1 at the end", lambda: pulls.pull(4, _asks(7), 0)),
        ("1 at the end, all tags", lambda: pulls.pull(5, _asks(7, tags=()), 0)),
        ("2 a new order comes", lambda: comes("new")),
        ("3 look after 14 s", lambda: pulls.look(14_000)),
        ("2 a paid order comes", lambda: comes("paid")),
        ("3 look after 16 s", lambda: pulls.look(16_000)),
    ]
    return Table(_returns(steps, _in_words), title="each step alone")


def tried_groups(groups_class: Callable[..., Any]) -> Table:
    """The steps of groups: members, commits, a save, a new life. One row per call: step, and what it returned."""
    disk = TrialMachine().disk()
    lives: list[Any] = []

    def new_life() -> str:
        lives.append(groups_class(disk))
        return "made"

    def after(*calls: Callable[[Any], object]) -> Any:
        return [call(lives[-1]) for call in calls][-1]

    steps: list[Step] = [
        ("a new disk", new_life),
        ("joined a, b, a", lambda: after(*(_joins(member) for member in "aba"))),
        ("members", lambda: lives[-1].members("billing")),
        ("left a", lambda: lives[-1].left("billing", "a")),
        ("members", lambda: lives[-1].members("billing")),
        ("committed, before any", lambda: lives[-1].committed("billing", "orders", 0)),
        ("commit 7", lambda: lives[-1].commit("billing", "orders", 0, 7)),
        ("committed by audit", lambda: lives[-1].committed("audit", "orders", 0)),
        ("save", lambda: lives[-1].save()),
        ("commit 9, without a save", lambda: lives[-1].commit("billing", "orders", 0, 9)),
        ("after a kill", new_life),
        ("committed: 7", lambda: lives[-1].committed("billing", "orders", 0)),
    ]
    return Table(_returns(steps), title="each step alone")


def _joins(member: str) -> Callable[[Any], object]:
    return lambda groups: groups.joined("billing", member)


def _returns(steps: Iterable[Step], in_words: Callable[[Any], str] = str) -> Iterator[dict[str, str]]:
    for step, call in steps:
        try:
            returned = in_words(call())
        except Exception as error:
            returned = f"{type(error).__name__}: {error}"
        yield {"step": step, "returns": returned}


class _SevenOrders:
    """A store to read, in which messages can appear."""

    def __init__(self) -> None:
        self.tags = list(SEVEN_TAGS)

    def max_offset(self, topic: str, queue_id: int) -> int:
        return len(self.tags)

    def get(self, topic: str, queue_id: int, queue_offset: int, most: int) -> list[bytes]:
        numbers = range(queue_offset, min(queue_offset + most, len(self.tags)))
        return [unit_of_order(number, tag=self.tags[number]) for number in numbers]


def _asks(queue_offset: int, most: int = 32, tags: Iterable[str] = ("paid",)) -> dict[str, Any]:
    queue = {"topic": "orders", "queue_id": 0, "queue_offset": queue_offset}
    return {**queue, "most": most, "tags": list(tags), "until_ms": 15_000}


def _in_words(returned: Any) -> str:
    """How many units and the next offset, instead of bytes."""
    if returned is None:
        return "None: held"
    if isinstance(returned, list):
        return ", ".join(f"pull {number}: {_in_words(answer)}" for number, answer in returned) or "[]"
    units, next_offset = returned
    return f"{len(units)} unit{'s' * (len(units) != 1)}, next_offset {next_offset}"
