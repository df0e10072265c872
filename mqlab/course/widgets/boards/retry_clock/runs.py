"""One order that the bank refuses, played in a Lab: when it is delivered, where it waits, and what is written.

Lab 07 changes the settings with the retry clock (mqlab.course.widgets.boards.retry_clock.board).

    RetrySettings      level table, max retries, level asked, when the bank is down, in order or not
    play_retries       the story in the simulation ─▶ RetryRun: deliveries, waits, units, dead or paid

Nothing is computed by a formula: times are those of the journal and of the units in the log.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.parts import OwnParts
from mqlab.lab.world.lab import play
from mqlab.rocketmq.store.config import parse_delay_levels
from mqlab.rocketmq.wire.message import Message

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
FIRST_LEVEL = 3
WAITING_TOPIC = "SCHEDULE_TOPIC_XXXX"
RETRY_TOPIC, DEAD_TOPIC = "%RETRY%billing", "%DLQ%billing"
LONGEST_MS, LONGEST_IN_ORDER_MS = milliseconds("6h"), milliseconds("10m")
MAX_RETRIES, MAX_LEVEL = 30, 18
PAID = ("CONSUME_SUCCESS", "SUCCESS")
# None of these timers moves a delivery: with fewer of them, hours are played in less than a second.
CALM_CLIENT = {
    "enable_trace": False,
    "persist_consumer_offset_interval": "1m",
    "heartbeat_broker_interval": "1m",
    "poll_name_server_interval": "10m",
}


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """What the learner may change. Raises UsageError for values that RocketMQ or the clock do not accept.

    ``max_retries`` -1 means RocketMQ's default: 16 retries, or no limit in order. ``asked`` is the listener's
    ``delay_level_when_next_consume``: 0 leaves the level to the broker, -1 gives up at once. The bank is down from
    ``down_from_ms`` to ``down_to_ms`` after the order was sent; None means that it never comes back.
    """

    levels: str = DELAY_LEVELS
    max_retries: int = -1
    asked: int = 0
    down_from_ms: int = 0
    down_to_ms: int | None = None
    orderly: bool = False

    def __post_init__(self) -> None:
        parse_delay_levels(self.levels)
        for name, value, highest in (("max_retries", self.max_retries, MAX_RETRIES), ("asked", self.asked, MAX_LEVEL)):
            if not -1 <= value <= highest:
                raise UsageError(f"{name} must be between -1 and {highest}, got {value}")
        if self.down_to_ms is not None and self.down_to_ms < self.down_from_ms:
            raise UsageError("the bank comes back before it goes down", hint='bank_down=("0s", "10m")')

    @property
    def longest_ms(self) -> int:
        """How long after the order the clock runs at most."""
        return LONGEST_IN_ORDER_MS if self.orderly else LONGEST_MS

    def as_json(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RetryRun:
    """What happened to the order. All times are ms after the first delivery began.

    ``deliveries``: number, at_ms, read_from, reconsume_times, status. ``waits``: from_ms, to_ms (None: still there),
    level, in the queue of that level. ``units``: at_ms, topic, queue_id, bytes: what the broker wrote for this order.
    ``end`` is "dead", "paid" or "still failing" at ``end_ms``.
    """

    settings: RetrySettings
    deliveries: tuple[dict[str, Any], ...]
    waits: tuple[dict[str, Any], ...]
    units: tuple[dict[str, Any], ...]
    end: str
    end_ms: int

    def as_json(self) -> dict[str, Any]:
        """The run as plain values."""
        return asdict(self)


@functools.lru_cache(maxsize=64)
def play_retries(settings: RetrySettings) -> RetryRun:
    """Play the story with these settings; the same settings are played once."""
    return play_retries_on(None, settings)


def play_retries_on(parts: OwnParts | None, settings: RetrySettings) -> RetryRun:
    """Plays the story on a learner's retries, whose waits are those of the orders: a part may keep them anywhere.

    Raises BrokenPart for retries that are wrong.
    """
    broker = {"message_delay_level": settings.levels}
    own = None if parts is None else OwnParts(retries=parts.retries)
    story = functools.partial(_failing_order, settings=settings)
    lab = play(story, seed=7, client=CALM_CLIENT, broker=broker, parts=own)
    run = _what_happened(lab, settings)
    return run if own is None or settings.orderly else replace(run, waits=tuple(_waits_of(run)))


def _failing_order(lab: Lab, settings: RetrySettings) -> None:
    """One order, and a bank that is down for a while."""
    # 1. Billing first: it needs 21 s to find its retry topic.
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing = lab.push_consumer("billing", max_reconsume_times=settings.max_retries)
    billing.subscribe("orders", "*")
    sent: list[int] = []

    def is_down() -> bool:
        since_ms = lab.now_ms - sent[0]
        return since_ms >= settings.down_from_ms and (settings.down_to_ms is None or since_ms < settings.down_to_ms)

    def listener(messages: Any, context: Any) -> str:
        if settings.orderly:
            return "SUSPEND_CURRENT_QUEUE_A_MOMENT" if is_down() else "SUCCESS"
        if is_down():
            context.delay_level_when_next_consume = settings.asked
            return "RECONSUME_LATER"
        return "CONSUME_SUCCESS"

    if settings.orderly:
        billing.on_messages_orderly(listener)
    else:
        billing.on_messages(listener)
    billing.start()
    lab.run_for("30s")

    # 2. The end is watched from before the order is sent: it may be dead before the shop has its answer.
    ended: list[str] = []

    def look(record: Any, change: Any) -> None:
        if change.kind == "message.dead" or (change.kind == "listener.returned" and change.values["status"] in PAID):
            ended.append(change.kind)

    lab.world.watchers.append(look)

    # 3. The order. The shop leaves: its timers would only cost time.
    shop = lab.producer("shop")
    sent.append(lab.now_ms)
    shop.send(Message("orders", b"a book", keys="order-1"))
    shop.shutdown()
    end_ms = sent[0] + settings.longest_ms
    lab.run_until(lambda: bool(ended) or lab.now_ms >= end_ms, limit=settings.longest_ms + 60_000)
    lab.world.watchers.remove(look)
    lab.run_for("1s")


def _what_happened(lab: Lab, settings: RetrySettings) -> RetryRun:
    rows = lab.deliveries("billing", absences=False)
    first_ms = rows[0].started_ms
    deliveries = tuple(
        {
            "number": number,
            "at_ms": row.started_ms - first_ms,
            "read_from": row.message_queue.topic,
            "reconsume_times": row.reconsume_times,
            "status": row.status,
        }
        for number, row in enumerate(rows, 1)
    )
    pieces = [(piece, piece.record()) for piece in lab.store().pieces()]
    units = tuple(
        {
            "at_ms": piece.store_timestamp - first_ms,
            "topic": record.topic,
            "queue_id": record.queue_id,
            "bytes": piece.size,
        }
        for piece, record in pieces
    )
    dead = [unit for unit in units if unit["topic"] == DEAD_TOPIC]
    if dead:
        end, end_ms = "dead", dead[-1]["at_ms"]
    elif deliveries[-1]["status"] in PAID:
        end, end_ms = "paid", deliveries[-1]["at_ms"]
    else:
        end, end_ms = "still failing", lab.now_ms - first_ms
    return RetryRun(settings, deliveries, tuple(_waits(units)), units, end, end_ms)


def _waits_of(run: RetryRun) -> list[dict[str, Any]]:
    """The waits between the deliveries: from a failure until the copy is in the retry topic."""
    came = [unit["at_ms"] for unit in run.units if unit["topic"] == RETRY_TOPIC]
    most = len(parse_delay_levels(run.settings.levels))
    failed = [row for row in run.deliveries if row["status"] not in PAID]
    dead = [unit["at_ms"] for unit in run.units if unit["topic"] == DEAD_TOPIC]
    waits = []
    for index, row in enumerate(failed[: len(failed) - len(dead)]):
        level = min(run.settings.asked or FIRST_LEVEL + row["reconsume_times"], most)
        waits.append({"from_ms": row["at_ms"], "to_ms": came[index] if index < len(came) else None, "level": level})
    return waits


def _waits(units: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """The stays in the waiting topic: each ends with the next unit of the retry topic."""
    waits = []
    for index, unit in enumerate(units):
        if unit["topic"] == WAITING_TOPIC:
            later = [other["at_ms"] for other in units[index + 1 :] if other["topic"] == RETRY_TOPIC]
            level = unit["queue_id"] + 1
            waits.append({"from_ms": unit["at_ms"], "to_ms": later[0] if later else None, "level": level})
    return waits
