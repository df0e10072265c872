"""lab06.detector: an alarm for a group's subscriptions, called every 10 s with the admin.

    the group starts ─▶ two rolling changes, a member each 10 s ─▶ calm ─▶ one member comes back with other tags

A difference is wrong when two members that differ have both run for more than two minutes. The day knows who runs
with which tags since when, so it knows at each look which pairs are wrong.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Does, Played, Topics
from mqlab.course.teach.exercises import Finding
from mqlab.durations import calendar
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS

GROUP, TOPIC, REFUNDS = "billing", "orders", "refunds"
ALL_TAGS = ("paid", "shipped", "created")
OF_REFUNDS = "booked"
OTHERWISE = ("paid || shipped || booked", "created")
"""As many tags of each topic as all others want, and the same ones of both topics together."""
SETTLED_MS, REPORTED_WITHIN_MS, LOOK_EVERY_MS = 120_000, 180_000, 10_000

SHAPE_RULE = "differing returns a list of pairs of client ids: [(one, other), …], and [] if all is well"
TWICE_RULE = "Every two members that differ are one pair: (one, other) and (other, one) are the same"
YOUNG_RULE = (
    "A difference is wrong only when both members have run for more than two minutes: during a rolling "
    "change old and new members differ, as they should"
)
SAME_RULE = (
    "Two members differ when their topics or tags differ. The version (subVersion) differs in every member, "
    "and the same tags can be written in another order: neither is a difference"
)
GONE_RULE = "A pair names two members that are online now, by their client ids"
MISSED_RULE = (
    "Two members that differ, and have both run for more than two minutes, are reported within three minutes. At the "
    "broker the group has one subscription, whatever its members want: ask each member for its own"
)


@dataclass(slots=True)
class DetectorCall:
    """One call of the learner's function: when, what it returned, who was wrong, and how old the members were."""

    now_ms: int
    found: object
    wrong: set[frozenset[str]]
    members: dict[str, tuple[int, str]]


@dataclass(slots=True)
class WatchedDay(Played):
    """A day with the members that run: node -> (start, tags); and each look of the learner's function."""

    running: dict[str, tuple[int, str]] = field(default_factory=dict)
    looks: list[DetectorCall] = field(default_factory=list)
    next_look_ms: int = 0

    def join(self, name: str, wanted: str, of_refunds: str = OF_REFUNDS) -> None:
        """A new member with these tags."""
        consumer = self.lab.push_consumer(GROUP, name=name)
        consumer.subscribe(TOPIC, wanted)
        consumer.subscribe(REFUNDS, of_refunds)
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
        consumer.start()
        others = "" if of_refunds == OF_REFUNDS else f" || {of_refunds} of {REFUNDS}"
        self.running[name] = (self.lab.now_ms, wanted + others)

    def leave(self, name: str) -> None:
        """A member is shut down."""
        self.lab.node_handle(name).shutdown()
        del self.running[name]

    def watch(self, duration_ms: int) -> None:
        """Time passes, with a look every 10 s."""
        until_ms = self.lab.now_ms + duration_ms
        while self.lab.now_ms < until_ms:
            self.lab.run_for(min(until_ms, self.next_look_ms or until_ms) - self.lab.now_ms)
            if self.lab.now_ms >= self.next_look_ms:
                self.next_look_ms = self.lab.now_ms + LOOK_EVERY_MS
                self._look()

    def _look(self) -> None:
        members = {self.lab.node_handle(name).client_id: member for name, member in self.running.items()}
        now_ms = self.lab.now_ms
        wrong = {
            frozenset((client, other))
            for client, other in itertools.combinations(members, 2)
            if _tags(members[client][1]) != _tags(members[other][1])
            and min(now_ms - members[client][0], now_ms - members[other][0]) > SETTLED_MS
        }
        answer = self.answers["differing"](self.lab.admin, GROUP, now_ms)
        self.looks.append(DetectorCall(now_ms, answer, wrong, members))


def _tags(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split("||"))


def day(seed: int) -> Day:
    """Ten members, two rolling changes in an order by lot, and then one member that comes back with other tags."""
    rng = random.Random(f"lab06.detector {seed}")
    names = [f"billing-{number}" for number in range(10)]
    acts = (
        Topics((TOPIC, REFUNDS), queues=10),
        Does(lambda today: _starts(today, names)),
        Does(lambda today: _rolls_twice(today, rng.sample(names, len(names)))),
        Does(lambda today: today.watch(rng.randint(135_000, 150_000))),
        Does(lambda today: _comes_back_old(today, rng.choice(names))),
        Does(lambda today: today.watch(90_000)),
        Does(_one_restarts),
        Does(lambda today: today.watch(REPORTED_WITHIN_MS - 75_000)),
    )
    return Day(acts, kind=WatchedDay)


def two_changes(seed: int) -> Day:
    """Two rolling changes without a pause: something differs for more than three minutes, and all is well."""
    rng = random.Random(f"lab06.detector two {seed}")
    names = [f"billing-{number}" for number in range(10)]
    acts = (
        Topics((TOPIC, REFUNDS), queues=10),
        Does(lambda today: _starts(today, names)),
        Does(lambda today: _rolls_twice(today, rng.sample(names, len(names)))),
        Does(lambda today: today.watch(60_000)),
    )
    return Day(acts, kind=WatchedDay)


def first_is_new(seed: int) -> Day:
    """The member whose client id comes first is the last to be changed, and two old ones are left for good. Another one
    wants the same orders and other refunds.
    """
    rng = random.Random(f"lab06.detector first {seed}")
    names = [f"billing-{number}" for number in range(4)]
    acts = (
        Topics((TOPIC, REFUNDS), queues=4),
        Does(lambda today: _starts(today, names)),
        Does(lambda today: today.join("billing-other", "paid", OTHERWISE[1])),
        Does(lambda today: _rolls(today, [names[0], rng.choice(names[1:])])),
        Does(lambda today: today.watch(REPORTED_WITHIN_MS + 15_000)),
    )
    return Day(acts, kind=WatchedDay)


def _starts(today: WatchedDay, names: list[str]) -> None:
    for name in names:
        today.join(name, "paid")
    today.watch(130_000)


def _rolls(today: WatchedDay, names: list[str], wanted: tuple[str, ...] = ("paid", "shipped")) -> None:
    for number, name in enumerate(names):
        spelling = "||".join(reversed(wanted)) if number % 3 == 2 else " || ".join(wanted)
        today.leave(name)
        today.join(f"{name}-new", spelling)
        today.watch(10_000)


def _rolls_twice(today: WatchedDay, names: list[str]) -> None:
    """The second change begins before the first is through: at every look some member differs, and is young."""
    *most, last = names
    _rolls(today, most)
    _rolls(today, [*(f"{name}-new" for name in most), last], ALL_TAGS)


def _comes_back_old(today: WatchedDay, name: str) -> None:
    today.leave(next(member for member in today.running if member.startswith(f"{name}-")))
    today.join(f"{name}-old", *OTHERWISE)


def _one_restarts(today: WatchedDay) -> None:
    """A member whose tags are everybody's: it is young when the difference has to be reported."""
    name = next(member for member in today.running if not member.endswith("-old"))
    today.leave(name)
    today.join(f"{name}-again", " || ".join(ALL_TAGS))


def _pairs(answer: object) -> set[frozenset[str]] | None:
    """The pairs that were returned; None for another form."""
    if not isinstance(answer, list | tuple | set | frozenset):
        return None
    pairs = set()
    for pair in answer:
        is_pair = isinstance(pair, list | tuple | set | frozenset) and len(pair) == 2
        if not is_pair or not all(isinstance(name, str) for name in pair):
            return None
        pairs.add(frozenset(pair))
    return pairs


def _has_the_right_form(today: WatchedDay) -> Finding | None:
    for look in today.looks:
        pairs = _pairs(look.found)
        if pairs is None:
            return Finding(SHAPE_RULE, f"the check at {calendar(look.now_ms)}", "a list of pairs", look.found)
        if len(pairs) < len(look.found):  # type: ignore[arg-type]
            return _at(look, TWICE_RULE, f"{len(pairs)} pairs", f"{len(look.found)} pairs")  # type: ignore[arg-type]
    return None


def _no_false_alarm(today: WatchedDay) -> Finding | None:
    for look in today.looks:
        for pair in _pairs(look.found) or ():
            if pair not in look.wrong:
                return _false_alarm(today, look, sorted(pair))
    return None


def _false_alarm(today: WatchedDay, look: DetectorCall, pair: list[str]) -> Finding:
    if len(pair) < 2 or not all(name in look.members for name in pair):
        return _at(look, GONE_RULE, "two members that are online", " and ".join(pair))
    ages = [(look.now_ms - look.members[name][0]) // 1000 for name in pair]
    text = ", ".join(
        f"{name} ({look.members[name][1]}, running for {age} s)" for name, age in zip(pair, ages, strict=True)
    )
    wishes = {_tags(look.members[name][1]) for name in pair}
    return _at(look, SAME_RULE if len(wishes) == 1 else YOUNG_RULE, "no alarm", text)


def _at(look: DetectorCall, rule: str, expected: object, found: object) -> Finding:
    return Finding(rule, f"the check at {calendar(look.now_ms)}", expected, found)


def _lasting_differences_are_reported(today: WatchedDay) -> Finding | None:
    since: dict[frozenset[str], int] = {}
    reported: set[frozenset[str]] = set()
    for look in today.looks:
        before, reported = reported, reported | (_pairs(look.found) or set())
        for pair in look.wrong:
            since.setdefault(pair, max(look.members[name][0] for name in pair))
            age_ms = look.now_ms - since[pair]
            in_time = before if age_ms > REPORTED_WITHIN_MS else reported  # what is reported now is too late
            if age_ms >= REPORTED_WITHIN_MS and pair not in in_time:
                text = " and ".join(f"{name} ({look.members[name][1]})" for name in sorted(pair))
                return _at(look, MISSED_RULE, f"{text}, reported by now", "no report")
    return None


DETECTOR = World(
    "lab06.detector",
    "differing(admin, group, now_ms)",
    points=4,
    about="ten members, two rolling changes, one that is left out",
    day=day,
    promises=[_has_the_right_form, _no_false_alarm, _lasting_differences_are_reported],
    weights={"": 2, "two changes, one after another": 1, "the first member is new": 1},
    forbids=FORBIDS["lab06.detector"],
    seeds=(1,),
)
