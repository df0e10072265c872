"""Lab 07's exercises about what the broker writes and when: the send-back rewrite, and the schedule of all retries.

What is right comes from a broker that was made to do it (days).
"""

from __future__ import annotations

from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab07 import days
from mqlab.course.kit import Pure, Slip, slips, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation
from mqlab.rocketmq.store.config import parse_delay_levels
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p

DEAD_RULE = (
    "A message is dead when its reconsume_times has reached max_reconsume_times, or the level asked is below 0: it "
    "goes to queue 0 of %DLQ%group at once. Every other one goes to SCHEDULE_TOPIC_XXXX to wait"
)
LEVEL_RULE = (
    "A message waits in queue level - 1 of SCHEDULE_TOPIC_XXXX. Level 0 leaves it to the broker: 3 + reconsume_times; "
    "the highest is 18"
)
CLAMP_RULE = "The table ends with its last level: all further retries wait for the last one"
SUM_RULE = "Each wait begins when the try before it has failed: the seconds add up"
DELAY_RULE = (
    "A delay is a whole number and a unit: 10s is 10 seconds, 2m is 2 * 60, 1h is 3,600, 1d is 86,400. The number may "
    "have several digits"
)
NUMBER_RULE = (
    "max_reconsume_times counts retries, not deliveries, and -1 means 16; after the failure of the last retry there is "
    "no further wait"
)
ORDER_RULE = "A retry is (level, second): the level comes first"
PLACE_RULE = "Level 1 is number 0 of the list of delays: the delay of a level is number level - 1 of it"


def _wrong_queue(call: Call, answer: Any, seen: Difference) -> str:
    """The rule of the level; where a level was asked for after the last retry, what that asks for."""
    out_of_retries = call["message"].reconsume_times >= call["max_reconsume_times"]
    if seen.part == "topic" and out_of_retries and call["delay_level"] > 0:
        return refutation("lab07.level_keeps_alive")
    return LEVEL_RULE if seen.part == "queue_id" and call.right[0] == names.SCHEDULE_TOPIC else ""


def _wrong_level(call: Call, answer: Any, seen: Difference) -> str:
    if [tuple(reversed(pair)) for pair in answer] == call.right:
        return ORDER_RULE
    levels = len(call["levels"].split())
    # An answer that stops where the table ends has one retry for each level from 3 on.
    if seen.part == "number" and len(answer) == max(0, levels - 2) < len(call.right):
        return CLAMP_RULE
    number = next((n for n, pair in enumerate(zip(call.right, answer, strict=False), 1) if pair[0] != pair[1]), 0)
    if seen.part == "second" and answer[number - 1][1] != _from_the_first_failure(call)[number - 1][1]:
        return DELAY_RULE  # the retries before are right, so this wait alone is another one
    at_the_end = seen.part == "level" and seen.right == levels
    return CLAMP_RULE if at_the_end and number > 1 else ""


def _sixteen_at_most(call: Call) -> list[tuple[int, int]]:
    return list(call.right[:16])


def _from_the_first_failure(call: Call) -> list[tuple[int, int]]:
    before = [0, *(second for _, second in call.right)]
    return [(level, second - start) for (level, second), start in zip(call.right, before, strict=False)]


def _one_place_too_far(call: Call) -> list[tuple[int, int]]:
    """The delay of the next level at each retry, as counted from 1."""
    delays = [delay_ms // 1000 for delay_ms in parse_delay_levels(call["levels"])]
    waits = [delays[min(level, len(delays) - 1)] for level, _ in call.right]
    return [(level, sum(waits[: number + 1])) for number, (level, _) in enumerate(call.right)]


REWRITE = Pure(
    "lab07.rewrite",
    "give_back(message, group, max_reconsume_times, delay_level)",
    points=4,
    about="orders that fail",
    calls=days.sent_back,
    returns=tuple_of(topic=str, queue_id=int, reconsume_times=int, properties={str: str}),
    explain=_wrong_queue,
    rules={
        "topic": DEAD_RULE,
        "queue_id": DEAD_RULE,
        "reconsume_times": "The copy's reconsume_times is one more than the original's",
        "properties": "All other properties stay as they are",
        p.RETRY_TOPIC: "RETRY_TOPIC holds the topic that the message was sent to; it is set at the first failure "
        "and stays",
        p.ORIGIN_MESSAGE_ID: "ORIGIN_MESSAGE_ID holds the offset id of the message that failed first; it is set "
        "once and stays",
        p.DELAY: "DELAY holds the level for which the message waits, as text; 0 for a dead letter",
        p.REAL_TOPIC: "REAL_TOPIC of a waiting message is where it goes afterwards: %RETRY%group. A dead letter "
        "keeps what it had",
        p.REAL_QID: "REAL_QID of a waiting message is the queue it goes to afterwards, 0. A dead letter keeps what "
        "it had",
        p.WAIT: "WAIT of a message given back is false: no client waits for its flush",
    },
    weights={"": 2, "orders that wait": 1, "orders that die": 1, "no retry at all": 1},
    forbids=FORBIDS["lab07.rewrite"],
)

SCHEDULE = Pure(
    "lab07.schedule",
    "schedule(levels, max_reconsume_times)",
    points=3,
    about="a broker's table of levels",
    calls=days.retry_plan,
    seeds=(0, 1, 2, 4),
    returns=[tuple_of("retry", level=int, second=int)],
    weights={"": 1, "a short table": 2, "a table that ends on the way": 2, "no limit set": 2},
    explain=_wrong_level,
    rules={
        "level": "The first retry waits for level 3, each further one for the next level",
        "second": SUM_RULE,
        "number": NUMBER_RULE,
    },
    forbids=FORBIDS["lab07.schedule"],
    slips=[
        slips.milliseconds,
        Slip("from the first failure", _from_the_first_failure, SUM_RULE, "lab07.from_first_failure"),
        Slip("sixteen at most", _sixteen_at_most, belief="lab07.sixteen_is_the_most"),
        Slip("one place too far", _one_place_too_far, PLACE_RULE, "lab07.level_is_index"),
    ],
)
