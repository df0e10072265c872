"""Lab 04's exercise about a reset by time: the plan, before anything is changed.

What is right is what the broker's own verb says and does; the answer has topic stats, consume stats and a search.

    queue 0    smallest 0   now 12   to 6    again 6..11         the first message at or after the time is 6
    queue 1    smallest 4   now 9    to 2    again 4..8          what was deleted cannot be read again
    queue 2    smallest 0   now 3    to 7    skipped 3..6        a time after the offset skips what was not read
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab04.offsets import GROUP, TOPIC, quiet, start_billing
from mqlab.course.kit import Pure, Slip, tuple_of
from mqlab.course.teach.exercises import Call
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.wire.message import Message, MessageQueue

QUEUES = 3
BODY = b"a book" * 12
TO_THE_END = -1
SMALL_FILES = {"mapped_file_size_commit_log": 1024, "mapped_file_size_consume_queue": 100}

TARGET_RULE = "A reset by time goes to the first message that was stored at that time or later: search gives its offset"
END_RULE = "A time below 0 is not a time: it means the end of the queue, its largest offset"
NOW_RULE = "The group's offset in a queue is consumer_offset in its progress"
RETRY_NOW_RULE = (
    "This is the offset in the group's retry topic, whose queues have numbers from 0 on, too: look for the row with "
    "the same message_queue, not with the same queue_id"
)
AGAIN_RULE = "What is read again: from the target up to the group's offset, if the target is smaller"
SKIPPED_RULE = "What is skipped: from the group's offset up to the target, if the target is larger"
DELETED_RULE = "What is before the smallest offset was deleted: it can neither be read again nor skipped"
RETRY_RULE = "A reset is per topic: the group's retry topic, which is also in its progress, stays as it is"
ROWS_RULE = "The plan has a row for each queue of the topic, in the order of the queues"
PLAN = tuple_of("queue", queue_id=int, now=int, to=int, again=[int], skipped=[int])


def stopped_group(rng: random.Random, deleted: bool) -> Lab:
    """A group that has read some of three queues and is offline; ``deleted``: the oldest log files are gone."""

    def send(lab: Lab, count: int) -> None:
        shop = lab.node_handle("shop-1") if "shop-1" in lab.handles else lab.producer("shop")
        for _ in range(count):
            to = rng.randrange(QUEUES)
            shop.send(Message(TOPIC, BODY), selector=lambda queues, message, arg: queues[arg], arg=to)
            lab.run_for(rng.randint(200, 2_500))

    def story(lab: Lab) -> None:
        lab.create_topic(TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        send(lab, rng.randint(14, 20))
        member = start_billing(lab)
        lab.run_for("45s")  # until it has an offset in its retry topic, too
        # Billing is shut down, which reports its offsets; what comes now waits.
        member.shutdown()
        send(lab, rng.randint(6, 12))
        # 2. A full disk: the oldest files of the log go, and queue files that lead to nothing else. More orders come.
        if deleted:
            lab.disk_full("broker-a", used=0.87)
            lab.run_until("store.cleaned", limit="2m")
            lab.disk_full("broker-a", used=0.3)
            send(lab, rng.randint(8, 12))

    return quiet(story, rng.randrange(1_000), **(SMALL_FILES if deleted else {}))


def search_in(lab: Lab) -> Callable[[MessageQueue, int], int]:
    """What an operator's tool asks a broker: the first offset of a queue that was stored at a time or later."""

    def search(queue: MessageQueue, timestamp_ms: int) -> int:
        return int(lab.broker().store.search_offset(queue.topic, queue.queue_id, timestamp_ms))

    return search


def planned(lab: Lab, timestamp_ms: int, about: str) -> Call:
    """A plan for this group; right is what the broker's own dry run says."""
    plan = lab.admin.reset_offset_by_timestamp(TOPIC, GROUP, timestamp_ms, dry_run=True)
    right = []
    for row in plan.queues:
        now, to = row.consumer_offset, row.target_offset
        again = list(range(max(to, row.min_offset), now))
        skipped = list(range(max(now, row.min_offset), to))
        right.append((row.message_queue.queue_id, now, to, again, skipped))
    progress = lab.admin.examine_consume_stats(GROUP)
    if timestamp_ms < 0:  # the rows of the retry topic are the first ones, or the last
        progress = replace(progress, queues=progress.queues[::-1])
    return Call(
        stats=lab.admin.examine_topic_stats(TOPIC),
        progress=progress,
        search=search_in(lab),
        timestamp_ms=timestamp_ms,
        right=right,
        about=about,
    )


def stored_ms(lab: Lab) -> list[int]:
    """When the orders were stored."""
    return sorted(message.store_timestamp for message in lab.store().messages(TOPIC))


def first_unread_ms(lab: Lab) -> int:
    """When the first order was stored that the group has not read: with it nothing moves, and each queue has a row."""
    held = lab.broker().offset_table
    return min(
        message.store_timestamp
        for message in lab.store().messages(TOPIC)
        if message.queue_offset >= held.query(GROUP, TOPIC, message.queue_id)
    )


def plans(seed: int) -> list[Call]:
    """Times between two messages, at one, before all, 0, after all, and the end."""
    rng = random.Random(f"lab04.plan_reset {seed}")
    lab = stopped_group(rng, deleted=False)
    times = stored_ms(lab)
    index = rng.randrange(len(times) // 4, len(times) // 2)
    return [
        planned(lab, times[index] - 50, "a time between two orders"),
        planned(lab, times[-rng.randint(2, 4)], "the very time of a late order"),
        planned(lab, TO_THE_END, "a time of -1"),
        planned(lab, -rng.randint(2, 5_000), "another time below 0"),
        planned(lab, times[0] - 60_000, "a time before the first order"),
        planned(lab, 0, "the time 0"),
        planned(lab, first_unread_ms(lab), "the time of the first order that waits"),
        after_retention(seed)[-1],
    ]


def after_retention(seed: int) -> list[Call]:
    """The oldest messages are deleted, and some of them were never read: the group's offset is before the smallest."""
    rng = random.Random(f"lab04.plan_reset deleted {seed}")
    lab = stopped_group(rng, deleted=True)
    times = stored_ms(lab)
    return [
        planned(lab, times[0] - 60_000, "a time before everything, the oldest orders deleted"),
        planned(lab, times[len(times) // 2], "the time of an order, the oldest orders deleted"),
        planned(lab, TO_THE_END, "a time of -1, the oldest orders deleted"),
    ]


def _rows(call: Call, target: Callable[[int, int], int]) -> list[Any]:
    """The plan that goes to another place than the right one: ``target(queue_id, to)``."""
    smallest = {row.message_queue.queue_id: row.min_offset for row in call["stats"]}
    rows = []
    for queue_id, now, to, _, _ in call.right:
        wrong, first = target(queue_id, to), smallest[queue_id]
        again, skipped = list(range(max(wrong, first), now)), list(range(max(now, first), wrong))
        rows.append((queue_id, now, wrong, again, skipped))
    return rows


def _minus_one_searched(call: Call) -> list[Any]:
    if call["timestamp_ms"] >= 0:
        return list(call.right)
    queues = {row.message_queue.queue_id: row.message_queue for row in call["stats"]}
    return _rows(call, lambda queue_id, to: call["search"](queues[queue_id], call["timestamp_ms"]))


def _only_back(call: Call) -> list[Any]:
    now = {row[0]: row[1] for row in call.right}
    return _rows(call, lambda queue_id, to: min(to, now[queue_id]))


def _the_one_before(call: Call) -> list[Any]:
    return _rows(call, lambda queue_id, to: max(to - 1, 0))


def _turned(call: Call) -> list[Any]:
    return [(queue_id, now, to, skipped, again) for queue_id, now, to, again, skipped in call.right]


def _which_rule(call: Call, answer: Any, seen: Any) -> str:
    """Rows of the retry topic; deleted messages; the end."""
    if len(answer) == len(call.right) + 1:
        return RETRY_RULE
    if len(answer) != len(call.right):
        return ROWS_RULE
    if call["timestamp_ms"] < 0 and seen.part == "to":
        return END_RULE
    rows = call["progress"].queues
    if seen.part == "now" and seen.found in [row.consumer_offset for row in rows if row.message_queue.topic != TOPIC]:
        return RETRY_NOW_RULE
    smallest = {row.message_queue.queue_id: row.min_offset for row in call["stats"]}
    for queue_id, _, _, again, skipped in answer:
        if any(offset < smallest.get(queue_id, 0) for offset in (*again, *skipped)):
            return DELETED_RULE
    return ""


PLAN_RESET = Pure(
    "lab04.plan_reset",
    "plan_reset(stats, progress, search, timestamp_ms)",
    points=3,
    about="a group that is offline",
    calls=plans,
    returns=[PLAN],
    rules={
        "queue_id": ROWS_RULE,
        "number": ROWS_RULE,
        "now": NOW_RULE,
        "to": TARGET_RULE,
        "again": AGAIN_RULE,
        "skipped": SKIPPED_RULE,
    },
    explain=_which_rule,
    slips=[
        Slip("searches for -1", _minus_one_searched, END_RULE),
        Slip(
            "goes back only",
            _only_back,
            "A reset goes to its target, also forward: what is between is skipped",
            belief="lab04.only_back",
        ),
        Slip("the one before", _the_one_before, TARGET_RULE, belief="lab04.closest"),
        Slip("again and skipped exchanged", _turned, AGAIN_RULE),
    ],
    weights={"": 1, "the oldest are deleted": 1},
    forbids=FORBIDS["lab04.plan_reset"],
)
