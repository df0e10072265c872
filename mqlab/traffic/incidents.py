"""The incidents of the day: their kinds, and where and when the seed places them.

Mirrors: incidents that operators of RocketMQ clusters report.

    kind                where            what can be seen in the store
    burst               every broker     many times the orders for some minutes
    hot_key             one broker       a third of an hour's orders have one customer, so one queue
    slow_consumer       a group          its listener takes seconds, its lag grows, the trace shows both
    failing_consumer    a group          all deliveries of some minutes fail: retry topic, dead letters
    poison_message      a message        fails at every try until it is a dead letter
    stuck_message       a queue, group   a listener that never returns: SubBefore without SubAfter, the group's offset
                                         stays, 2,000 messages later (consumeConcurrentlyMaxSpan) nobody reads the queue
    inconsistent_tags   a group          a member with fewer tags, its subscription counts: tags of the others vanish
    wrong_reset         a group          offsets set back by hours: everything since is delivered twice

Left out: crashes of brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from mqlab.errors import UsageError
from mqlab.traffic.day import MINUTE_MS, Burst
from mqlab.traffic.draws import Draws
from mqlab.traffic.model import TRACED, Asked

MAX_SPAN = 2_000  # consumeConcurrentlyMaxSpan
REPLAY_SPEED = 20  # old messages are read again this many times faster than they came
_EVERYWHERE = 1 << 20  # used as a broker number where something concerns all brokers
_PURPOSE = 900
_HOUR = 60


@dataclass(frozen=True, slots=True)
class Incident:
    """One thing that goes wrong. Times are ms since the epoch; fields that do not apply to the kind are None."""

    kind: str
    start_ms: int
    end_ms: int
    broker: int | None = None
    group: str | None = None
    queue_id: int | None = None
    customer: int | None = None  # rank at its broker
    tags: tuple[str, ...] = ()  # that do not arrive any more
    factor: int | None = None
    back_ms: int | None = None

    def concerns(self, broker: int) -> bool:
        """True when it can be seen in this broker's store."""
        return self.broker is None or self.broker == broker

    def public_fields(self, asked: Asked) -> dict[str, Any]:
        """The fields that apply to this kind, for the instructor's file."""
        values = asdict(self) | {"tags": list(self.tags), "customer": None}
        fields = {name: value for name, value in values.items() if value not in (None, [])}
        if self.broker is not None:
            fields["broker"] = asked.broker_name(self.broker)
        return fields


def incidents_of(asked: Asked) -> tuple[Incident, ...]:
    """The incidents of a run, by the time they begin. Raises UsageError for an unknown kind.

    >>> from mqlab.traffic.model import TrafficModel
    >>> [i.kind for i in incidents_of(Asked(9_000, 3, 7, TrafficModel(incidents=("burst", "wrong_reset"))))]
    ['burst', 'wrong_reset']
    """
    draws = Draws(asked.seed, _EVERYWHERE)
    kinds = asked.model.incidents
    if kinds is None:
        kinds = tuple(kind for number, kind in enumerate(KINDS) if draws.one(_PURPOSE + number, 100) < 70)
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"unknown kind of incident {kind!r}", hint=f"the kinds are {', '.join(KINDS)}")
    # Each kind has its own purpose of draws, so that leaving out one kind does not change the others.
    chosen = [kind for kind in KINDS if kind in kinds]
    incidents = [KINDS[kind](_Dice(draws, 100 * (list(KINDS).index(kind) + 10)), asked) for kind in chosen]
    return tuple(sorted(incidents, key=lambda incident: incident.start_ms))


def bursts(incidents: tuple[Incident, ...], start_ms: int) -> tuple[Burst, ...]:
    """The bursts among the incidents, in the form that Day takes."""
    return tuple(
        Burst((i.start_ms - start_ms) // MINUTE_MS, (i.end_ms - i.start_ms) // MINUTE_MS, i.factor or 1)
        for i in incidents
        if i.kind == "burst"
    )


class _Dice:
    """Draws in a row, for one incident."""

    def __init__(self, draws: Draws, purpose: int) -> None:
        self._draws, self._purpose = draws, purpose

    def between(self, least: int, most: int) -> int:
        self._purpose += 1
        return least + self._draws.one(self._purpose, most - least + 1)


def _at(asked: Asked, minute: int) -> int:
    return asked.model.start_ms + minute * MINUTE_MS


def _burst(dice: _Dice, asked: Asked) -> Incident:
    first, long = dice.between(10 * _HOUR, 21 * _HOUR), dice.between(8, 16)
    return Incident("burst", _at(asked, first), _at(asked, first + long), factor=dice.between(5, 8))


def _hot_key(dice: _Dice, asked: Asked) -> Incident:
    first = dice.between(8 * _HOUR, 20 * _HOUR)
    broker, customer = dice.between(0, asked.brokers - 1), dice.between(100, min(2_000, asked.model.customers) - 1)
    return Incident("hot_key", _at(asked, first), _at(asked, first + _HOUR), broker, customer=customer)


def _slow_consumer(dice: _Dice, asked: Asked) -> Incident:
    first, long = dice.between(9 * _HOUR, 17 * _HOUR), dice.between(45, 90)
    group = TRACED[dice.between(0, len(TRACED) - 1)].name
    return Incident("slow_consumer", _at(asked, first), _at(asked, first + long), group=group)


def _failing_consumer(dice: _Dice, asked: Asked) -> Incident:
    first, long = dice.between(7 * _HOUR, 21 * _HOUR), dice.between(10, 20)
    group = TRACED[dice.between(1, len(TRACED) - 1)].name
    return Incident("failing_consumer", _at(asked, first), _at(asked, first + long), group=group)


def _poison_message(dice: _Dice, asked: Asked) -> Incident:
    first, broker = dice.between(6 * _HOUR, 16 * _HOUR), dice.between(0, asked.brokers - 1)
    return Incident("poison_message", _at(asked, first), _at(asked, first), broker, group="billing")


def _stuck_message(dice: _Dice, asked: Asked) -> Incident:
    first, broker = dice.between(11 * _HOUR, 19 * _HOUR), dice.between(0, asked.brokers - 1)
    queue_id = dice.between(0, asked.model.queues - 1)
    return Incident("stuck_message", _at(asked, first), _at(asked, 24 * _HOUR), broker, "billing", queue_id)


def _inconsistent_tags(dice: _Dice, asked: Asked) -> Incident:
    first, long = dice.between(10 * _HOUR, 19 * _HOUR), dice.between(60, 180)
    group = TRACED[dice.between(1, len(TRACED) - 1)]
    start_ms, end_ms = _at(asked, first), _at(asked, first + long)
    return Incident("inconsistent_tags", start_ms, end_ms, group=group.name, tags=group.tags[1:])


def _wrong_reset(dice: _Dice, asked: Asked) -> Incident:
    first, back = dice.between(14 * _HOUR, 20 * _HOUR), dice.between(60, 150)
    group = TRACED[dice.between(0, len(TRACED) - 1)].name
    start_ms = _at(asked, first)
    # While old messages are read again, new ones come: hence one less than the speed.
    caught_up_ms = start_ms + back * MINUTE_MS // (REPLAY_SPEED - 1)
    return Incident("wrong_reset", start_ms, caught_up_ms, group=group, back_ms=back * MINUTE_MS)


KINDS: dict[str, Callable[[_Dice, Asked], Incident]] = {
    "burst": _burst,
    "hot_key": _hot_key,
    "slow_consumer": _slow_consumer,
    "failing_consumer": _failing_consumer,
    "poison_message": _poison_message,
    "stuck_message": _stuck_message,
    "inconsistent_tags": _inconsistent_tags,
    "wrong_reset": _wrong_reset,
}
