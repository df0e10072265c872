"""lab02.scale_in: a topic of sixteen queues gets eight, while a shop sends and two groups read.

    one group is quick, one has a backlog ─▶ traffic ─▶ the learner's story ─▶ more traffic, calm ─▶ judged

What each queue holds is read from the store, who got what from the deliveries, changes of the topic from the journal.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab02.clusters import SHOP, TOPIC
from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Does, Played, Waits
from mqlab.course.kit.promises import broken
from mqlab.course.teach.exercises import Finding
from mqlab.course.words import refutation
from mqlab.durations import calendar
from mqlab.errors import LimitReached
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.bodies import PERM_WRITE
from mqlab.rocketmq.wire.message import Message

BROKER, QUEUES, FEWER = "broker-a", 16, 8
GROUPS = ("billing", "reports")
ROUTE_MS, LIMIT_MS = 30_000, 600_000
REPORT_MS, AT_MOST_LATER_MS = 5_000, 90_000
A_SECOND = 2

TIME_RULE = (
    "The story returns within ten minutes: under traffic there is always something on its way in the queues that stay, "
    "so wait for those that go, 8 to 15"
)
LATER_RULE = (
    "If you wait by the clock, you wait too long on one day and too little on another: check the offsets "
    "every few seconds, and return at most a minute and a half after queues 8 to 15 are drained"
)
DONE_RULE = "When the story returns, the topic has eight queues to read and eight to write"
TRAFFIC_RULE = (
    "The shop keeps selling all the time: no send may fail because of the change, so some queues are always writable"
)
OFFSET_RULE = "An offset that is set past unread messages loses them: wait until the groups have read them themselves"
GONE_RULE = "Deleting a topic deletes its messages: change its settings"
WAITS_RULE = "Both groups keep reading: members that are running must read all queues of the topic"


@dataclass(slots=True)
class ScaleDay(Played):
    """The day: the traffic, when the story began and returned, and the topic's settings then."""

    traffic: Any = None
    began_ms: int = 0
    returned_ms: int = 0
    late: bool = False
    settings: dict[str, int] = field(default_factory=dict)

    def fewer_since(self, setting: str) -> int | None:
        """When a setting of the topic went below sixteen for good."""
        since = None
        for record, values in self.lab.journal.changes("topic.updated"):
            if values["topic"] == TOPIC:
                since = None if values["now"][setting] >= QUEUES else since or record.now_ms
        return since

    def consumed(self, group: str) -> set[str]:
        """What a group has consumed: msg_ids."""
        return {row.msg_id for row in self.deliveries(group) if row.status == CONSUME_SUCCESS}


def day(seed: int) -> Day:
    """One of the groups has a backlog; for odd seeds none has, and only the shop's old route is to be waited for."""
    return _day(seed, "" if seed % 2 else GROUPS[seed // 2 % 2])


def backlog_of(group: str, seed: int) -> tuple[Day, int]:
    """A day on which this group has the backlog, and the seed for its Lab."""
    return _day(seed, group), seed


def _day(seed: int, slow: str) -> Day:
    """A backlog for one of the groups, traffic, the story, traffic, and calm.

    Old orders take long, and those of queue 8 always do: it is drained last.
    """
    rng = random.Random(f"lab02.scale_in {seed}")
    backlog, in_the_first, slow_ms = (rng.randint(95, 110), 10, rng.randint(5_500, 6_500)) if slow else (20, 0, 40)
    before_ms = rng.randint(30_300, 31_000)  # the shop asks every 30 s: it has just asked

    def begins(today: ScaleDay) -> None:
        lab = today.lab
        lab.create_topic(TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        shop = today.producer(SHOP)
        for number in range(backlog):
            shop.send(Message(TOPIC, b"a book", keys=f"old-{number}"))
        for number in range(backlog, backlog + in_the_first):
            shop.send(Message(TOPIC, b"a book", keys=f"old-{number}"), selector=_the_first_that_goes, arg=None)
        for group in GROUPS:
            listener = _slow(slow_ms) if group == slow else _quick
            for number in (1, 2):
                threads = {"consume_thread_min": 2, "consume_thread_max": 2, "pull_batch_size": 4}
                consumer = lab.push_consumer(group, name=f"{group}-{number}", **threads)
                consumer.subscribe(TOPIC)
                consumer.on_messages(listener)
                consumer.start()
        today.traffic = lab.traffic(
            shop, rates=[("0s", A_SECOND)], message=lambda number: Message(TOPIC, b"a book", keys=f"order-{number}")
        )

    acts = (
        Does(begins),
        Waits(before_ms),
        Does(_the_change),
        Waits("40s"),
        Does(lambda today: today.traffic.stop()),
        Waits("3m"),
    )
    return Day(acts, kind=ScaleDay)


def _quick(messages: Any, context: Any) -> str:
    context.sleep("20ms")
    return CONSUME_SUCCESS


def _slow(ms: int) -> Callable[[Any, Any], str]:
    def slow(messages: Any, context: Any) -> str:
        is_slow = messages[0].queue_id == FEWER or messages[0].keys.startswith("old")
        context.sleep(ms if is_slow else 100)
        return CONSUME_SUCCESS

    return slow


def _the_first_that_goes(queues: Sequence[Any], message: Message, arg: Any) -> Any:
    return next(queue for queue in queues if queue.queue_id == FEWER)


def _the_change(today: ScaleDay) -> None:
    today.began_ms = today.lab.now_ms

    def too_long() -> None:
        if not today.returned_ms:
            raise LimitReached("the story did not return within ten minutes", hint="wait for what can become true")

    today.lab.world.at(today.began_ms + LIMIT_MS, too_long)
    try:
        today.answers["scale_in"](today.lab)
    except LimitReached:
        today.late = True
    today.returned_ms = today.lab.now_ms
    config = today.lab.broker(BROKER).topics.get(TOPIC)
    if config is not None:
        today.settings = {"read_queue_nums": config.read_queue_nums, "write_queue_nums": config.write_queue_nums}


def _in_time(today: ScaleDay) -> Finding | None:
    if not today.late:
        return None
    return Finding(TIME_RULE, "the story", "600 s at most", "still waiting", lab=today.lab)


def _eight_and_eight(today: ScaleDay) -> Finding | None:
    if today.lab.journal.of("topic.deleted") or not today.settings:
        return Finding(GONE_RULE, TOPIC, "a topic with eight queues", "it was deleted", lab=today.lab)
    right = {"read_queue_nums": FEWER, "write_queue_nums": FEWER}
    if today.settings == right:
        return None
    return Finding(DONE_RULE, f"{TOPIC} when the story returns", right, today.settings, lab=today.lab)


def _no_offset_is_set(today: ScaleDay) -> Finding | None:
    for record, values in today.lab.journal.changes("offset.reset"):
        if values["topic"] == TOPIC:
            where = f"{values['group']}, queue {values['queue_id']} at {calendar(record.now_ms)}"
            return Finding(OFFSET_RULE, where, "no reset", "a reset", step=record.step, lab=today.lab)
    return None


def _everything_is_consumed(today: ScaleDay) -> Finding | None:
    write_ms, read_ms = today.fewer_since("write_queue_nums"), today.fewer_since("read_queue_nums")
    for group in GROUPS:
        consumed = today.consumed(group)
        left = [message for message in today.lab.store().messages(TOPIC) if message.msg_id not in consumed]
        if not left:
            continue
        first = left[0]
        belief = _belief(group, left, write_ms or 0, read_ms or 0)
        rule = refutation(belief) if first.queue_id >= FEWER else WAITS_RULE
        said = f"{first.keys}, queue {first.queue_id}, stored at {calendar(first.store_timestamp)}"
        changed = f"writing ended at {calendar(write_ms or 0)}, reading at {calendar(read_ms or 0)}"
        actual = f"not consumed, as {len(left)} in all" if len(left) > 1 else "not consumed"
        return Finding(
            rule,
            f"{said}; {changed}",
            f"consumed by {group}",
            actual,
            lab=today.lab,
            belief=belief if first.queue_id >= FEWER else "",
        )
    return None


def _belief(group: str, left: Sequence[Any], write_ms: int, read_ms: int) -> str:
    """Why messages are left in queues without a reader."""
    if read_ms - write_ms < 1_000:
        return "lab02.numbers_alone"
    if all(message.store_timestamp > read_ms - 5_000 for message in left) and read_ms - write_ms < ROUTE_MS:
        return "lab02.routes_at_once"
    return "lab02.drained_somewhere"


def _traffic_never_stops(today: ScaleDay) -> Finding | None:
    traffic = today.traffic
    if traffic.failed == 0 and traffic.sent == traffic.number and traffic.number:
        return None
    write_ms, read_ms = today.fewer_since("write_queue_nums"), today.fewer_since("read_queue_nums")
    belief = ""
    changes = today.lab.journal.changes("topic.updated")
    if any(values["topic"] == TOPIC and not values["now"]["perm"] & PERM_WRITE for _, values in changes):
        pass  # no queue may be written: routes do not decide that
    elif write_ms is not None and read_ms is not None and read_ms - write_ms < ROUTE_MS:
        belief = "lab02.numbers_alone" if read_ms - write_ms < 1_000 else "lab02.routes_at_once"
    actual = f"{traffic.number - traffic.sent} of {traffic.number} sends failed"
    rule = refutation(belief) if belief else TRAFFIC_RULE
    return Finding(rule, "the shop's sends", "no failed send", actual, lab=today.lab, belief=belief)


def _read_before_they_go(today: ScaleDay) -> Finding | None:
    """An order may be read by luck, because members learn of the change later."""
    read_ms = today.fewer_since("read_queue_nums") or 0
    for group in GROUPS:
        for row in today.deliveries(group):
            if row.message_queue.queue_id >= FEWER and (row.ended_ms or row.started_ms) > read_ms:
                belief = "lab02.drained_somewhere"
                where = f"queue {row.message_queue.queue_id}; reading ended at {calendar(read_ms)}"
                actual = f"one at {calendar(row.ended_ms or row.started_ms)}, by luck"
                expected = f"no order for {group} after that"
                return broken(today, where, expected, actual, belief=belief)
    return None


def _returns_when_it_can(today: ScaleDay) -> Finding | None:
    write_ms = today.fewer_since("write_queue_nums")
    ends = [row.ended_ms for group in GROUPS for row in today.deliveries(group) if row.message_queue.queue_id >= FEWER]
    drained_ms = max((write_ms or 0) + ROUTE_MS, *(ended_ms + REPORT_MS for ended_ms in ends if ended_ms))
    waited_ms = today.returned_ms - drained_ms
    if waited_ms <= AT_MOST_LATER_MS:
        return None
    where = f"the story; queues 8 to 15 were drained at {calendar(drained_ms)}"
    return Finding(LATER_RULE, where, "90 s later at most", f"{waited_ms // 1_000} s later", lab=today.lab)


PROMISES: Sequence[Any] = (
    _in_time,
    _no_offset_is_set,
    _eight_and_eight,
    _traffic_never_stops,
    _everything_is_consumed,
    _read_before_they_go,
    _returns_when_it_can,
)

SCALE_IN = World(
    "lab02.scale_in",
    "scale_in(lab)",
    points=5,
    about="eight queues of sixteen, under traffic",
    day=day,
    promises=PROMISES,
    seeds=(1, 2, 4),
    forbids=FORBIDS["lab02.scale_in"],
)
