"""lab08.any_delay: a relay that delivers after any number of seconds, out of the eighteen levels.

shop ─▶ topic "later" ─▶ relay ─▶ "later" again, with a level, as often as it must ─▶ the reminder's own topic

judged by   when each reminder is stored in its topic, through how many levels it went, also when the relay dies
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mqlab.course.cases.lab08.delays import STANDARD
from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import Day, Played, Topics, Waits, each_life, listener_of
from mqlab.course.kit.promises import broken, finding_at, no_surprise, took_ms
from mqlab.course.teach.exercises import Finding
from mqlab.course.teach.lives import anew
from mqlab.course.words import refutation
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.message import Message

GROUP, NODE, LATER = "relay", "relay-1", "later"
TARGET, OTHER_TARGET = "reminders", "callbacks"
FEW_LEVELS = STANDARD[:5]
LATE_MS, HOP_MS, LONGEST_CALL_MS = 2_000, 200, 900
MOST_SENDS = 60

MADE_RULE = "any_delay takes send, now and levels, and returns the relay's listener: a function (messages, context)"
LOST_RULE = (
    "A reminder reaches the topic in its property target despite crashes: the relay may return CONSUME_SUCCESS only "
    "after its send has returned"
)
OLD_LEVEL_RULE = (
    "It waits for a level longer than the time left. A received message may still have the level of "
    "its last hop: make a new Message for each hop"
)
LATE_RULE = "A reminder arrives at most 2 s after its time, plus 0.2 s for each level that it passed through"
KEPT_RULE = "A reminder keeps its keys, its body and its properties due_ms and target on every hop"
RULES = {
    "one of CONSUME_SUCCESS": "A listener returns CONSUME_SUCCESS or RECONSUME_LATER; None counts as "
    "RECONSUME_LATER, and each retry sends the reminder again",
    "is used by system": "A received message has properties of the client and the broker as well, which no sender may "
    "set: copy only its own, due_ms and target",
}


@dataclass(frozen=True, slots=True)
class Reminder:
    """What is to come after a number of seconds, and in which topic."""

    key: str
    seconds: int
    body: bytes
    target: str = TARGET

    def message(self, now_ms: int) -> Message:
        """The message for the relay: its due time travels as a property."""
        properties = {"due_ms": str(now_ms + self.seconds * 1_000), "target": self.target}
        return Message(LATER, self.body, keys=self.key, properties=properties)


@dataclass(slots=True)
class Reminded(Played):
    """A day of reminders; ``due_ms`` by key. ``beyond``: keys that were sent with a level that ``table`` lacks."""

    table: Sequence[int] = STANDARD
    beyond: set[str] = field(default_factory=set)
    due_ms: dict[str, int] = field(default_factory=dict)
    sends: Callable[..., Any] | None = None
    hopped: Counter[str] = field(default_factory=Counter)

    def send(self, message: Message, *args: Any) -> Any:
        """What the relay sends with. A reminder that is sent on for ever is held: the day would not end."""
        key = (message.keys or "") if isinstance(message, Message) else ""
        self.hopped[key] += 1
        if self.hopped[key] > MOST_SENDS:
            return None
        if isinstance(message, Message) and message.delay_time_level > len(self.table):
            self.beyond.add(key)
        assert self.sends is not None
        return self.sends(message, *args)

    def arrived(self, reminder: Reminder) -> list[Any]:
        """What is stored in the reminder's topic."""
        return [message for message in self.lab.store().messages(reminder.target) if message.keys == reminder.key]

    def nameless(self, reminder: Reminder) -> list[Any]:
        """What is stored in the reminder's topic with its body and other keys."""
        every = self.lab.store().messages(reminder.target)
        return [message for message in every if message.body == reminder.body and message.keys != reminder.key]

    def fewest(self, reminder: Reminder) -> int:
        """The smallest number of levels whose sum is a reminder's delay."""
        return fewest(levels=tuple(self.table))[reminder.seconds]

    def hops(self, key: str) -> int:
        """How often it was stored to wait for a level; what comes again after a crash counts again."""
        return len(self.levels(key))

    def levels(self, key: str) -> list[int]:
        """The levels in which it has waited."""
        return [message.queue_id + 1 for message in self._waited(key)]

    def waits_until(self, key: str) -> list[int]:
        """When each of its waits is over."""
        return [message.store_timestamp + STANDARD[message.queue_id] * 1_000 for message in self._waited(key)]

    def _waited(self, key: str) -> list[Any]:
        own = (LATER, TARGET)  # what is given back to the broker waits for its retry, which is not a hop
        every = self.lab.store().messages(names.SCHEDULE_TOPIC)
        return [message for message in every if message.keys == key and message.properties.get("REAL_TOPIC") in own]


@dataclass(frozen=True, slots=True)
class Relays:
    """The relay's consumer. Each life of it makes a new listener."""

    table: Sequence[int]

    def act(self, played: Any) -> None:
        """Start it."""
        lab, answers, played.table = played.lab, played.answers, self.table
        played.sends = lab.producer(GROUP, name="relay-sends").send

        def relay_from(function: Callable[..., Any]) -> Any:
            arguments = (played.send, lambda: lab.now_ms, list(played.table))
            return listener_of("any_delay", function, arguments, "(send, now, levels)", MADE_RULE)

        relay_from(answers["any_delay"])
        consumer = lab.push_consumer(GROUP, name=NODE)
        consumer.subscribe(LATER, "*")
        consumer.on_messages(each_life(lambda: relay_from(anew(answers["any_delay"], "any_delay"))))
        consumer.start()
        lab.run_for("5s")


@dataclass(frozen=True, slots=True)
class Asks:
    """The shop asks for reminders."""

    reminders: Sequence[Reminder]

    def act(self, played: Any) -> None:
        """Send them to the relay."""
        shop = played.producer("shop")
        for reminder in self.reminders:
            message = reminder.message(played.lab.now_ms)
            played.due_ms[reminder.key] = int(message.properties["due_ms"])
            played.sent[shop.send(message).msg_id] = reminder


@functools.cache
def fewest(most: int = 4 * 3_600, levels: tuple[int, ...] = STANDARD) -> list[int]:
    """For each number of seconds the smallest number of levels whose sum it is."""
    counts = [0]
    for seconds in range(1, most + 1):
        counts.append(1 + min(counts[seconds - level] for level in levels if level <= seconds))
    return counts


def _day(reminders: Sequence[Reminder], wait: str, table: Sequence[int] = STANDARD) -> Day:
    acts = (Topics((LATER, TARGET, OTHER_TARGET)), Relays(table), Asks(reminders), Waits(wait))
    return Day(acts, broker={"message_delay_level": " ".join(f"{seconds}s" for seconds in table)}, kind=Reminded)


def many_delays(seed: int) -> Day:
    """Delays that are levels, sums of levels, and one of more than two hours."""
    rng = random.Random(f"lab08.any_delay {seed}")
    first = rng.randint(100, 900)
    delays = [
        3,
        rng.choice((17, 19, 28)),
        65,
        rng.choice((120, 600)),
        rng.randint(700, 3_500),
        7_200 + rng.randint(61, 900),
    ]
    rng.shuffle(delays)
    reminders = [
        Reminder(
            f"order-{first + index}", seconds, f"напомнить {index} 提醒".encode(), (TARGET, OTHER_TARGET)[index % 2]
        )
        for index, seconds in enumerate(delays)
    ]
    return _day(reminders, f"{max(delays) + 15}s")


def few_levels(seed: int) -> Day:
    """A broker whose table ends with a minute."""
    rng = random.Random(f"lab08.any_delay few levels {seed}")
    reminders = [
        Reminder(f"order-{rng.randint(100, 900)}", seconds, f"напомнить {seconds}".encode())
        for seconds in (30, 120 + rng.randint(0, 40), 300)
    ]
    return _day(reminders, "320s", FEW_LEVELS)


def short_delay(seed: int) -> Day:
    """One reminder in two hops; the relay dies before each of its lines."""
    rng = random.Random(f"lab08.any_delay lines {seed}")
    seconds = rng.choice((6, 11, 15))
    return _day([Reminder(f"order-{rng.randint(100, 900)}", seconds, b"pay")], f"{seconds + 9}s")


def _crashed(lab: Lab) -> bool:
    return bool(lab.journal.of("fault.killed"))


def _where(reminder: Reminder) -> str:
    return f"{reminder.key}, due after {reminder.seconds:,} s"


def _does_not_sleep(today: Reminded) -> Finding | None:
    for row in today.deliveries(GROUP):
        cut_off = row.ended_ms is None and _crashed(today.lab)
        if not cut_off and took_ms(row) > LONGEST_CALL_MS:
            belief = "lab08.sleeping_relay"
            finding = finding_at(today, row, refutation(belief), "a call of some ms", f"a call of {took_ms(row):,} ms")
            return replace(finding, belief=belief)
    return None


def _says_done(today: Reminded) -> Finding | None:
    for row in today.deliveries(GROUP):
        if row.ended_ms is not None and row.status != CONSUME_SUCCESS:
            return finding_at(today, row, RULES["one of CONSUME_SUCCESS"], CONSUME_SUCCESS, row.status)
    return None


def _never_early(today: Reminded) -> Finding | None:
    early = [
        (today.due_ms[reminder.key] - message.store_timestamp, reminder)
        for reminder in today.sent.values()
        for message in today.arrived(reminder)
    ]
    early_ms, reminder = max(early, key=lambda pair: pair[0], default=(0, None))
    if reminder is None or early_ms <= 0:
        return None
    # Less than a second is rounding; more is a level that was not the last.
    belief = "lab08.nearly_due" if early_ms <= 1_000 else "lab08.last_hop"
    belief = "lab08.table_is_known" if reminder.key in today.beyond else belief
    actual = f"{early_ms:,} ms early"
    return broken(today, _where(reminder), "not before its time", actual, belief=belief)


def _arrives(today: Reminded) -> Finding | None:
    for reminder in today.sent.values():
        arrived = today.arrived(reminder) or today.nameless(reminder)
        if not arrived:
            calls = [(row.status, row.reconsume_times) for row in today.deliveries(GROUP) if row.msg_id in today.sent]
            actual = f"not there {(today.lab.now_ms - today.due_ms[reminder.key]) / 1000:.0f} s after its time"
            if not calls:
                actual += ", and the relay was never called"
            waits = [ms for ms in today.waits_until(reminder.key) if ms > today.lab.now_ms]
            belief = "lab08.rounded_up" if waits and not _crashed(today.lab) else ""
            rule = refutation(belief) if belief else OLD_LEVEL_RULE if waits else LOST_RULE
            if waits:
                actual = f"waits until {(waits[0] - today.due_ms[reminder.key]) / 1000:,.0f} s after its time"
            return Finding(
                rule, _where(reminder), f"in the topic {reminder.target}", actual, lab=today.lab, belief=belief
            )
        for message in arrived:
            own = (message.keys, message.body, message.properties.get("due_ms"), message.properties.get("target"))
            wanted = (reminder.key, reminder.body, str(today.due_ms[reminder.key]), reminder.target)
            if own != wanted:
                return Finding(KEPT_RULE, _where(reminder), wanted, own, lab=today.lab)
    return None


def _not_late(today: Reminded) -> Finding | None:
    if _crashed(today.lab):
        return None
    for reminder in today.sent.values():
        most = today.fewest(reminder)
        late_ms = today.arrived(reminder)[0].store_timestamp - today.due_ms[reminder.key]
        if late_ms > LATE_MS + HOP_MS * most:
            belief = "lab08.rounded_up" if today.hops(reminder.key) <= most else ""
            rule = refutation(belief) if belief else LATE_RULE
            expected = f"at most {LATE_MS + HOP_MS * most:,} ms late"
            return Finding(rule, _where(reminder), expected, f"{late_ms:,} ms late", lab=today.lab, belief=belief)
    return None


def _few_hops(today: Reminded) -> Finding | None:
    if _crashed(today.lab):
        return None
    for reminder in today.sent.values():
        most, hops = today.fewest(reminder), today.hops(reminder.key)
        if hops > most and (hops > 2 * most or len(today.arrived(reminder)) < 2):
            belief = "lab08.floor" if max(today.levels(reminder.key)) > 1 else "lab08.second_by_second"
            return broken(today, _where(reminder), f"{most} levels at most", f"{hops} levels", belief=belief)
    return None


def _comes_once(today: Reminded) -> Finding | None:
    if _crashed(today.lab):
        return None
    for reminder in today.sent.values():
        count = len(today.arrived(reminder))
        if count > 1:
            rule = "Without a crash, a reminder arrives once: one send per call of the relay"
            return Finding(rule, _where(reminder), "once", f"{count} times", lab=today.lab)
    return None


ANY_DELAY = EveryCrash(
    "lab08.any_delay",
    "any_delay(send, now, levels)",
    points=4,
    about="reminders, and a crash at every line",
    days=[many_delays, few_levels],
    crash_day=short_delay,
    node=NODE,
    at="line",
    most=30,
    promises=(
        no_surprise(GROUP, rules=RULES),
        _says_done,
        _does_not_sleep,
        _never_early,
        _few_hops,
        _arrives,
        _not_late,
        _comes_once,
    ),
)
