"""Six orders, each created, paid and shipped, read by one consumer in one of three ways, played in a Lab.

    concurrent    a pool of threads, any order; a failure goes back to the broker
    orderly       one thread per queue at a time; a failure makes its queue wait
    lanes         orderly, and within a batch a lane for each order (context.start)

Nothing is computed from a rule: calls are timed where they happen. Left out: several members, deaths, rebalances.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.errors import UsageError
from mqlab.lab.world.lab import play
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT
from mqlab.rocketmq.wire.message import Message

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

TOPIC, GROUP = "orders", "billing"
MODES = ("concurrent", "orderly", "lanes")
ORDERS, STEPS = 6, ("created", "paid", "shipped")
TAKES_MS = {"created": 600, "paid": 300, "shipped": 150}
FAILING = 1  # order-1 cannot be created
PLAYED_S, SEED = 16, 7
MOST = {"queues": 6, "threads": 64, "batch": 32}
CALM = {"enable_trace": False, "poll_name_server_interval": "10m"}


@dataclass(frozen=True, slots=True)
class LanesSettings:
    """What the learner may change. ``batch``: most messages of one call; ``failing``: order-1 can never be created.

    Raises UsageError for values out of range.
    """

    mode: str = "concurrent"
    queues: int = 1
    threads: int = 20
    batch: int = 1
    failing: bool = False

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        for name, most in MOST.items():
            must_be_whole(name, getattr(self, name), 1, most)
        if not isinstance(self.failing, bool):
            raise UsageError(f"failing must be True or False, got {self.failing!r}")


class EventTry(NamedTuple):
    """One try of one event; times are ms after the group began to read. ``row``: its thread, queue or lane.

    ``overtook``: it began although the event of its order before it was not done.
    """

    row: int
    order: int
    step: str
    queue_id: int
    began_ms: int
    ended_ms: int
    succeeded: bool
    overtook: bool


@dataclass(frozen=True, slots=True)
class LanesRun:
    """What happened: every call, and the moves of the group's offset as (ms, queue_id, offset)."""

    settings: LanesSettings
    calls: tuple[EventTry, ...]
    offsets: tuple[tuple[int, int, int], ...]

    @property
    def rows(self) -> int:
        """How many threads, queues or lanes were ever busy."""
        return max((call.row for call in self.calls), default=-1) + 1

    @property
    def done(self) -> dict[tuple[int, str], int]:
        """When each event was done."""
        return {(call.order, call.step): call.ended_ms for call in reversed(self.calls) if call.succeeded}


@dataclass(slots=True)
class _Try:
    row: int
    order: int
    step: str
    queue_id: int
    began_ms: int
    ended_ms: int = -1
    succeeded: bool = False


@functools.lru_cache(maxsize=256)
def play_lanes(settings: LanesSettings) -> LanesRun:
    """Play the story with these settings; the same settings are played once."""
    tries: list[_Try] = []
    story = functools.partial(_six_orders, settings=settings, tries=tries)
    lab = play(story, seed=SEED, client=CALM)
    began_ms = next(record.now_ms for record in lab.journal.of("message.pulled"))
    return _what_happened(lab, settings, tries, began_ms)


def _six_orders(lab: Lab, settings: LanesSettings, tries: list[_Try]) -> None:
    """All events wait in the topic; then the group begins to read."""
    # 1. One order after the other: created, paid, shipped; each order in one queue.
    lab.create_topic(TOPIC, read_queue_nums=settings.queues, write_queue_nums=settings.queues)
    shop = lab.producer("shop")
    for order in range(1, ORDERS + 1):
        for step in STEPS:
            message = Message(TOPIC, b"a book", tags=step, keys=f"order-{order}")
            shop.send(message, selector=lambda queues, message, at: queues[at % len(queues)], arg=order)

    # 2. The group.
    threads: dict[str, Any] = {"consume_thread_min": settings.threads, "consume_thread_max": settings.threads}
    consumer = lab.push_consumer(GROUP, consume_message_batch_max_size=settings.batch, **threads)
    consumer.subscribe(TOPIC)
    register = consumer.on_messages if settings.mode == "concurrent" else consumer.on_messages_orderly
    register(_listener(lab, settings, tries))
    consumer.start()
    lab.run_for(f"{PLAYED_S}s")


def _listener(lab: Lab, settings: LanesSettings, tries: list[_Try]) -> Callable[[Any, Any], str]:
    """What billing does with a batch, in the way that the settings say."""

    def handle(message: Any, context: Any, lane: int | None = None) -> None:
        order = int(message.keys.removeprefix("order-"))
        busy = {attempt.row for attempt in tries if attempt.ended_ms < 0}
        row = next(n for n in range(len(busy) + 1) if n not in busy) if lane is None else lane
        row = message.queue_id if settings.mode == "orderly" else row
        attempt = _Try(row, order, message.tags, message.queue_id, lab.now_ms)
        tries.append(attempt)
        context.sleep(TAKES_MS[message.tags])
        attempt.ended_ms = lab.now_ms
        if settings.failing and (order, message.tags) == (FAILING, STEPS[0]):
            raise ValueError("cannot be created")
        attempt.succeeded = True

    def lane(events: list[Any], context: Any) -> None:
        for event in events:
            handle(event, context, int(event.keys.removeprefix("order-")) - 1)

    def in_lanes(messages: Any, context: Any) -> None:
        lanes: dict[str, list[Any]] = {}
        for message in messages:
            lanes.setdefault(message.keys, []).append(message)
        works = [context.start(lane, events, context) for events in lanes.values()]
        errors = []
        for work in works:
            try:
                work.result()
            except ValueError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def one_by_one(messages: Any, context: Any) -> None:
        for message in messages:
            handle(message, context)

    good, bad = (
        (CONSUME_SUCCESS, RECONSUME_LATER)
        if settings.mode == "concurrent"
        else (SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT)
    )

    def listener(messages: Any, context: Any) -> str:
        try:
            (in_lanes if settings.mode == "lanes" else one_by_one)(messages, context)
        except ValueError:
            return bad
        return good

    return listener


def _what_happened(lab: Lab, settings: LanesSettings, tries: list[_Try], began_ms: int) -> LanesRun:
    done = {(attempt.order, attempt.step): attempt.ended_ms for attempt in reversed(tries) if attempt.succeeded}

    def overtook(attempt: _Try) -> bool:
        index = STEPS.index(attempt.step)
        return index > 0 and not 0 <= done.get((attempt.order, STEPS[index - 1]), -1) <= attempt.began_ms

    end_ms = lab.now_ms
    calls = tuple(
        EventTry(
            attempt.row,
            attempt.order,
            attempt.step,
            attempt.queue_id,
            attempt.began_ms - began_ms,
            (attempt.ended_ms if attempt.ended_ms >= 0 else end_ms) - began_ms,
            attempt.succeeded,
            overtook(attempt),
        )
        for attempt in tries
    )
    moves = tuple(
        (record.now_ms - began_ms, values["queue"].queue_id, values["commit_offset"])
        for record, values in lab.journal.changes("offset.updated")
        if values["queue"].topic == TOPIC
    )
    return LanesRun(settings, calls, moves)
