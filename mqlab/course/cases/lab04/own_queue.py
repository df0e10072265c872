"""Lab 04's exercise about the cache of one queue: the learner's class, asked alone, then inside a consumer that dies.

alone      the same calls to the learner's object and to RocketMQ's rules     ─▶ the first answer that differs
inside     a consumer of billing with process_queue=, orders that end in any order, killed before its steps
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab04.offsets import BROKER, GROUP, NODE, TOPIC, send, start_billing
from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import Day, Does, Played, Topics, Waits
from mqlab.course.kit.promises import nothing_lost
from mqlab.course.teach.exercises import Answers, Call, Finding
from mqlab.lab.parts.of_clients import EMPTY_RULE, ONE_PAST_RULE, SMALLEST_LEFT_RULE
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from mqlab.rocketmq.wire.message import MessageExt

NAME = "MyProcessQueue"

SPAN_RULE = "max_span is the largest minus the smallest offset that is still there; 0 when nothing is there"
FIRST_RULE = "first_message is the message with the smallest offset that is still there; None when nothing is there"
CONTAINS_RULE = "contains_message is True for a message that was put in and is not removed yet"
COUNT_RULE = "msg_count is the number of messages that are there: one that is put in twice counts once"
LOST_RULE = "The offset must not pass an order that is not done: the next owner begins there, and never sees it"
MOVES_RULE = "When all orders are done, the group's offset is at the end of the queue"
RETURNS_RULE = "remove_message returns a whole number: the offset to which the group may move"

Step = tuple[str, tuple[int, ...]]
QUESTIONS = ("max_span", "first_message", "contains_message", "msg_count")


def steps_of(rng: random.Random) -> list[Step]:
    """Calls in an order that a consumer may make: put in, remove in any order, and questions between them."""
    first = rng.randint(3, 2_000)
    offsets = iter(range(first, first + 100))
    there: list[int] = []
    steps: list[Step] = [("remove_message", (first,))]
    for _ in range(3):
        # 1. A pull brings some; the filter has left gaps between them.
        new = [offset for offset in (next(offsets) for _ in range(rng.randint(3, 6))) if rng.random() < 0.8]
        new = new or [next(offsets)]
        there += new
        steps.append(("put_message", tuple(new)))
        steps += [(name, tuple(there[-1:])) for name in QUESTIONS]
        # 2. They end in any order; the smallest of them sometimes last.
        ending = rng.sample(there, rng.randint(1, len(there)))
        for offset in ending:
            there.remove(offset)
            steps.append(("remove_message", (offset,)))
            steps.append((rng.choice(QUESTIONS), (offset,)))
        if there:  # one that is not there any more: its result came after a rebalance, say
            steps.append(("remove_message", (ending[-1],)))
    # 3. The same message put in twice, the second time after a later one, and what is left removed.
    more, last = next(offsets), next(offsets)
    steps += [("put_message", (more,)), ("put_message", (last,)), ("put_message", (more,)), ("msg_count", (more,))]
    rest = [*there, more, last]
    rng.shuffle(rest)
    steps += [("remove_message", (offset,)) for offset in rest]
    return [*steps, ("max_span", (more,)), ("first_message", (more,)), ("remove_message", (more,))]


def message(offset: int) -> MessageExt:
    """A message of the queue, as a pull would bring it."""
    book = MessageExt(TOPIC, b"a book", keys=f"order-{offset}")
    book.broker_name, book.queue_id, book.queue_offset, book.reconsume_times = BROKER, 0, offset, 0
    return book


def asked(queue: Any, step: Step) -> Any:
    """What a process queue answers to one step; offsets stand for messages."""
    name, offsets = step
    if name == "first_message":
        first = queue.first_message()
        return first if first is None else getattr(first, "queue_offset", f"{first!r}, which is not a message")
    if name == "msg_count":
        return queue.msg_count
    if name == "max_span":
        return queue.max_span()
    if name == "contains_message":
        return queue.contains_message(message(offsets[0]))
    return getattr(queue, name)([message(offset) for offset in offsets])


def spelled(step: Step) -> str:
    """A step as a call."""
    name, offsets = step
    inside = ", ".join(map(str, offsets))
    if name == "msg_count":
        return name
    if name in ("max_span", "first_message"):
        return f"{name}()"
    return f"{name}({inside})" if name == "contains_message" else f"{name}([{inside}])"


def alone(answers: Answers, seed: int) -> Finding | None:
    """The learner's object next to RocketMQ's rules, without a consumer."""
    rng = random.Random(f"lab04.process_queue {seed}")
    steps = steps_of(rng)
    mine, right = answers[NAME](), ProcessQueue()
    for number, step in enumerate(steps):
        expected, actual = asked(right, step), asked(mine, step)
        if step[0] == "put_message" or ((actual == expected and type(actual) is not bool) or actual is expected):
            continue
        before = [
            spelled(earlier) for earlier in steps[: number + 1] if earlier[0] in ("put_message", "remove_message")
        ]
        call = Call(to=NAME, calls=before, right=expected, about=f"an object alone, seed {seed}")
        earlier = before[:-1] if before[-1:] == [spelled(step)] else before
        where = f"{spelled(step)} after {', '.join(earlier[-5:])}" if earlier else f"{spelled(step)}, the first call"
        return Finding(_rule(step[0], expected, actual, right), where, expected, actual, call=call)
    return None


def _rule(name: str, expected: Any, actual: Any, right: ProcessQueue) -> str:
    if name != "remove_message":
        rules = {
            "max_span": SPAN_RULE,
            "first_message": FIRST_RULE,
            "contains_message": CONTAINS_RULE,
            "msg_count": COUNT_RULE,
        }
        return rules[name]
    if not isinstance(actual, int) or isinstance(actual, bool):
        return RETURNS_RULE
    if expected == -1:
        return EMPTY_RULE
    return SMALLEST_LEFT_RULE if right.msg_count else ONE_PAST_RULE


def day(seed: int) -> Day:
    """Some orders, which end in any order; one takes longer than a report."""
    rng = random.Random(f"lab04.process_queue day {seed}")
    takes = [100 * rng.randint(1, 30) for _ in range(rng.randint(7, 9))]
    takes[rng.randrange(4)] = 11_700

    def read(played: Played) -> None:
        send(played.lab, played.producer("shop"), takes)
        for message in played.lab.store().messages(TOPIC):
            played.sent[message.msg_id] = message
        settings: dict[str, Any] = {"pull_batch_size": 3, "consume_concurrently_max_span": 5}
        start_billing(played.lab, process_queue=played.answers[NAME], **settings)

    return Day((Topics((TOPIC,)), Does(read), Waits("32s")))


def _all_are_done(played: Played) -> Finding | None:
    """Every order ends well in one of its deliveries."""
    done = {row.msg_id for row in played.deliveries(GROUP) if row.status == "CONSUME_SUCCESS"}
    for msg_id, message in played.sent.items():
        if msg_id not in done:
            times = [row.status for row in played.deliveries(GROUP) if row.msg_id == msg_id]
            where = f"{message.keys}, offset {message.queue_offset}: its deliveries"
            return Finding(LOST_RULE, where, "one that ends well", times or "none")
    return None


def _offset_reaches_the_end(played: Played) -> Finding | None:
    held = played.lab.broker().offset_table.query(GROUP, TOPIC, 0)
    end = len(played.sent)
    if held == end:
        return None
    return Finding(MOVES_RULE, f"the offset of {GROUP} at the broker, all orders done", end, held)


PROMISES: Sequence[Any] = (nothing_lost(GROUP, LOST_RULE), _all_are_done, _offset_reaches_the_end)

PROCESS_QUEUE = EveryCrash(
    "lab04.process_queue",
    "MyProcessQueue()",
    points=5,
    about="a cache, alone and in a consumer that dies",
    first=[alone],
    crash_day=day,
    node=NODE,
    at="step",
    most=12,
    promises=PROMISES,
    forbids=FORBIDS["lab04.process_queue"],
)
