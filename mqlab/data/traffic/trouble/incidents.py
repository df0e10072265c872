"""The incidents of the day: their kinds, and where and when the seed places them.

Mirrors: incidents that operators of RocketMQ clusters report.

    kind                where            what can be seen in the store
    burst               every broker     many times the orders for some minutes
    hot_key             one broker       a third of an hour's orders have one customer, so one queue
    slow_consumer       a group          its listener takes seconds, its lag grows, the trace shows both
    failing_consumer    a group          all deliveries of some minutes fail: retry topic, dead letters
    poison_message      a message        fails at every try until it is a dead letter
    stuck_message       a queue, group   a listener that never returns: SubBefore without SubAfter, the group's offset
                                         stays, 2,000 messages later (consumeConcurrentlyMaxSpan) none reads the queue
    inconsistent_tags   a group          a member with fewer tags, its subscription counts: tags of the others vanish
    wrong_reset         a group          offsets set back by hours: everything since is delivered twice

    only when they are asked for; a seed alone does not choose them
    deploy              a group          its processes are killed in turn before they store their offsets: the other one
                                         gets messages that were consumed seconds ago
    killed_listener     a process        calls that hang, then it dies: SubBefore without SubAfter, and the other
                                         process gets the messages again
    lost_answer         a sender         stored, but not answered: sent again, one id in two places of a queue
    skipped             a group          stopped for some minutes, then its offsets are set to the end
    trace_gap           one broker       trace messages of some minutes are missing, offsets are not
    clock_skew          a process        its clock is ahead: born timestamps, ids and its trace

    decoys: they look like trouble
    campaign            every broker     a burst that was planned
    planned_deploy      a group          its processes leave in turn and store their offsets before: nothing twice
    big_customer        one broker       the customer that buys most, all day
    group_off           analytics        does not read from some hour on, on purpose
    load_test           one broker       orders of a test account; a group refuses them, so they are dead letters

Left out: crashes of brokers.

What each kind does to the traffic is decided in mqlab.data.traffic.broker_day, .deliveries and .trouble.members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mqlab.data.traffic.clients import FIRST_CONSUMER
from mqlab.data.traffic.day import MINUTE_MS, Burst
from mqlab.data.traffic.draws import Draws, draws_of
from mqlab.data.traffic.model import GROUPS, TRACED, Asked
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.errors import UsageError

MAX_SPAN = 2_000  # consumeConcurrentlyMaxSpan
REPLAY_SPEED = 20  # old messages are read again this many times faster than they came
EVERYWHERE = 1 << 20  # used as a broker number where something concerns all brokers
_PURPOSE = 900
_HOUR = 60


def incidents_of(asked: Asked) -> tuple[Incident, ...]:
    """The incidents of a run, by the time they begin. Raises UsageError for an unknown kind.

    >>> from mqlab.data.traffic.model import TrafficModel
    >>> [i.kind for i in incidents_of(Asked(9_000, 3, 7, TrafficModel(incidents=("burst", "wrong_reset"))))]
    ['burst', 'wrong_reset']
    """
    draws = draws_of(asked.seed, asked.seal, EVERYWHERE)
    wanted = asked.model.incidents
    if wanted is None:
        wanted = tuple(kind for number, kind in enumerate(KINDS) if draws.one(_PURPOSE + number, 100) < 70)
    kinds = [kind for kind in wanted if isinstance(kind, str)]
    known = list(ALL_KINDS)
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise UsageError(f"unknown kind of incident {kind!r}", hint=f"the kinds are {', '.join(known)}")
    # Each kind has its own purpose of draws, so that leaving out one kind does not change the others.
    chosen = [kind for kind in known if kind in kinds]
    incidents = [ALL_KINDS[kind](Dice(draws, 100 * (known.index(kind) + 10)), asked) for kind in chosen]
    incidents += [_checked(incident, asked) for incident in wanted if isinstance(incident, Incident)]
    return tuple(sorted(incidents, key=lambda incident: incident.start_ms))


def _checked(incident: Incident, asked: Asked) -> Incident:
    """An incident with times of its own, with the kind's usual values. Raises UsageError for impossible values."""
    if incident.kind not in ALL_KINDS:
        raise UsageError(f"unknown kind of incident {incident.kind!r}", hint=f"the kinds are {', '.join(ALL_KINDS)}")
    first, last = asked.model.start_ms, _at(asked, 24 * _HOUR)
    if not first <= incident.start_ms <= incident.end_ms <= last:
        raise UsageError(
            f"{incident.kind} lasts from {incident.start_ms} to {incident.end_ms}, the day from {first} to {last}",
            hint="start_ms and end_ms are ms since the epoch, within the day",
        )
    if incident.broker is not None and not 0 <= incident.broker < asked.brokers:
        raise UsageError(
            f"{incident.kind} is at broker {incident.broker}, but the brokers are 0 to {asked.brokers - 1}"
        )
    names = [group.name for group in GROUPS]
    if incident.group is not None and incident.group not in names:
        raise UsageError(
            f"{incident.kind} concerns the group {incident.group!r}", hint=f"groups are {', '.join(names)}"
        )
    full = replace(incident, **{n: v for n, v in USUAL.get(incident.kind, {}).items() if getattr(incident, n) is None})
    missing = [name for name in NEEDED.get(incident.kind, ()) if getattr(full, name) in (None, ())]
    if missing:
        raise UsageError(f"{incident.kind} needs {', '.join(missing)}", hint="see mqlab.data.traffic.Incident")
    return full


def bursts(incidents: tuple[Incident, ...], start_ms: int) -> tuple[Burst, ...]:
    """The bursts among the incidents, in the form that Day takes."""
    return tuple(
        Burst((i.start_ms - start_ms) // MINUTE_MS, (i.end_ms - i.start_ms) // MINUTE_MS, i.factor or 1)
        for i in incidents
        if i.kind in ("burst", "campaign")
    )


class Dice:
    """Draws in a row."""

    def __init__(self, draws: Draws, purpose: int) -> None:
        self._draws, self._purpose = draws, purpose

    def between(self, least: int, most: int) -> int:
        """A number from ``least`` to ``most``."""
        self._purpose += 1
        return least + self._draws.one(self._purpose, most - least + 1)


def _at(asked: Asked, minute: int) -> int:
    return asked.model.start_ms + minute * MINUTE_MS


def _burst(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(10 * _HOUR, 21 * _HOUR), dice.between(8, 16)
    return Incident("burst", _at(asked, first), _at(asked, first + long), factor=dice.between(5, 8))


def _hot_key(dice: Dice, asked: Asked) -> Incident:
    first = dice.between(8 * _HOUR, 20 * _HOUR)
    broker, customer = dice.between(0, asked.brokers - 1), dice.between(100, min(2_000, asked.model.customers) - 1)
    return Incident("hot_key", _at(asked, first), _at(asked, first + _HOUR), broker, customer=customer)


def _slow_consumer(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(9 * _HOUR, 17 * _HOUR), dice.between(45, 90)
    group = TRACED[dice.between(0, len(TRACED) - 1)].name
    return Incident("slow_consumer", _at(asked, first), _at(asked, first + long), group=group)


def _failing_consumer(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(7 * _HOUR, 21 * _HOUR), dice.between(10, 20)
    group = TRACED[dice.between(1, len(TRACED) - 1)].name
    return Incident("failing_consumer", _at(asked, first), _at(asked, first + long), group=group)


def _poison_message(dice: Dice, asked: Asked) -> Incident:
    first, broker = dice.between(6 * _HOUR, 16 * _HOUR), dice.between(0, asked.brokers - 1)
    return Incident("poison_message", _at(asked, first), _at(asked, first), broker, group="billing")


def _stuck_message(dice: Dice, asked: Asked) -> Incident:
    first, broker = dice.between(11 * _HOUR, 19 * _HOUR), dice.between(0, asked.brokers - 1)
    queue_id = dice.between(0, asked.model.queues - 1)
    return Incident("stuck_message", _at(asked, first), _at(asked, 24 * _HOUR), broker, "billing", queue_id)


def _inconsistent_tags(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(10 * _HOUR, 19 * _HOUR), dice.between(60, 180)
    group = TRACED[dice.between(1, len(TRACED) - 1)]
    start_ms, end_ms = _at(asked, first), _at(asked, first + long)
    return Incident("inconsistent_tags", start_ms, end_ms, group=group.name, tags=group.tags[1:])


def _wrong_reset(dice: Dice, asked: Asked) -> Incident:
    first, back = dice.between(14 * _HOUR, 20 * _HOUR), dice.between(60, 150)
    group = TRACED[dice.between(0, len(TRACED) - 1)].name
    start_ms = _at(asked, first)
    # While old messages are read again, new ones come: hence one less than the speed.
    caught_up_ms = start_ms + back * MINUTE_MS // (REPLAY_SPEED - 1)
    return Incident("wrong_reset", start_ms, caught_up_ms, group=group, back_ms=back * MINUTE_MS)


def _deploy(dice: Dice, asked: Asked) -> Incident:
    first = dice.between(9 * _HOUR, 20 * _HOUR)
    group = TRACED[dice.between(0, len(TRACED) - 1)].name
    return _usual(Incident("deploy", _at(asked, first), _at(asked, first + 12), group=group))


def _killed_listener(dice: Dice, asked: Asked) -> Incident:
    first, broker = dice.between(9 * _HOUR, 20 * _HOUR), dice.between(0, asked.brokers - 1)
    group, member = TRACED[dice.between(0, len(TRACED) - 1)].name, dice.between(0, 1)
    start_ms, end_ms = _at(asked, first), _at(asked, first + 30)
    return _usual(Incident("killed_listener", start_ms, end_ms, broker, group, member=member))


def _lost_answer(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(9 * _HOUR, 20 * _HOUR), dice.between(40, 80)
    broker, client = dice.between(0, asked.brokers - 1), dice.between(0, FIRST_CONSUMER - 1)
    return _usual(Incident("lost_answer", _at(asked, first), _at(asked, first + long), broker, client=client))


def _skipped(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(8 * _HOUR, 20 * _HOUR), dice.between(15, 40)
    group = TRACED[dice.between(0, len(TRACED) - 1)].name
    return Incident("skipped", _at(asked, first), _at(asked, first + long), group=group)


def _trace_gap(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(8 * _HOUR, 20 * _HOUR), dice.between(20, 50)
    return Incident("trace_gap", _at(asked, first), _at(asked, first + long), dice.between(0, asked.brokers - 1))


def _clock_skew(dice: Dice, asked: Asked) -> Incident:
    broker, client = dice.between(0, asked.brokers - 1), dice.between(0, FIRST_CONSUMER - 1)
    return _usual(Incident("clock_skew", _at(asked, 0), _at(asked, 24 * _HOUR), broker, client=client))


def _campaign(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(10 * _HOUR, 21 * _HOUR), dice.between(10, 20)
    return Incident("campaign", _at(asked, first), _at(asked, first + long), factor=dice.between(4, 6), decoy=True)


def _planned_deploy(dice: Dice, asked: Asked) -> Incident:
    first = dice.between(9 * _HOUR, 20 * _HOUR)
    group = TRACED[dice.between(0, len(TRACED) - 1)].name
    return _usual(Incident("planned_deploy", _at(asked, first), _at(asked, first + 12), group=group, decoy=True))


def _big_customer(dice: Dice, asked: Asked) -> Incident:
    broker = dice.between(0, asked.brokers - 1)
    return Incident("big_customer", _at(asked, 0), _at(asked, 24 * _HOUR), broker, customer=0, decoy=True)


def _group_off(dice: Dice, asked: Asked) -> Incident:
    first = dice.between(12 * _HOUR, 20 * _HOUR)
    return Incident("group_off", _at(asked, first), _at(asked, 24 * _HOUR), group="analytics", decoy=True)


def _load_test(dice: Dice, asked: Asked) -> Incident:
    first, long = dice.between(6 * _HOUR, 11 * _HOUR), dice.between(10, 25)
    start_ms, end_ms = _at(asked, first), _at(asked, first + long)
    broker = dice.between(0, asked.brokers - 1)
    # Customers are numbered from 0, so the account is none of them.
    customer = asked.model.customers
    return _usual(Incident("load_test", start_ms, end_ms, broker, "shipping", customer=customer, decoy=True))


def _usual(incident: Incident) -> Incident:
    return replace(incident, **USUAL[incident.kind])


USUAL: dict[str, dict[str, Any]] = {  # magnitudes that need not be given
    "deploy": {"restarts": 4, "back_ms": 30_000},
    "planned_deploy": {"restarts": 4},
    "killed_listener": {"restarts": 3, "back_ms": 45_000},
    "lost_answer": {"percent": 30},
    "clock_skew": {"skew_ms": 90_000},
    "load_test": {"percent": 25},
    "campaign": {"factor": 5},
    "burst": {"factor": 6},
}
NEEDED: dict[str, tuple[str, ...]] = {  # fields without which the kind means nothing
    "hot_key": ("broker", "customer"),
    "slow_consumer": ("group",),
    "failing_consumer": ("group",),
    "poison_message": ("broker", "group"),
    "stuck_message": ("broker", "group", "queue_id"),
    "inconsistent_tags": ("group", "tags"),
    "wrong_reset": ("group", "back_ms"),
    "deploy": ("group",),
    "planned_deploy": ("group",),
    "killed_listener": ("broker", "group", "member"),
    "lost_answer": ("broker", "client"),
    "skipped": ("group",),
    "trace_gap": ("broker",),
    "clock_skew": ("broker", "client"),
    "load_test": ("broker", "group", "customer"),
    "big_customer": ("broker", "customer"),
    "group_off": ("group",),
}
KINDS: dict[str, Callable[[Dice, Asked], Incident]] = {  # of which a seed chooses
    "burst": _burst,
    "hot_key": _hot_key,
    "slow_consumer": _slow_consumer,
    "failing_consumer": _failing_consumer,
    "poison_message": _poison_message,
    "stuck_message": _stuck_message,
    "inconsistent_tags": _inconsistent_tags,
    "wrong_reset": _wrong_reset,
}
ALL_KINDS: dict[str, Callable[[Dice, Asked], Incident]] = {  # the places in this table are purposes of draws
    **KINDS,
    "deploy": _deploy,
    "killed_listener": _killed_listener,
    "lost_answer": _lost_answer,
    "skipped": _skipped,
    "trace_gap": _trace_gap,
    "clock_skew": _clock_skew,
    "campaign": _campaign,
    "planned_deploy": _planned_deploy,
    "big_customer": _big_customer,
    "group_off": _group_off,
    "load_test": _load_test,
}
