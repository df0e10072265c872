"""What lab 00 asks: four predictions about a message's day, three exercises over real files and real timelines.

Mirrors: nothing in RocketMQ. Lab 00.

    lab00.after_ack  lab00.known_when  lab00.audit  lab00.again        predictions
    lab00.find       two files and an offset table  ->  where a message lies, and who is past it
    lab00.timeline   rows of a timeline             ->  stored, first seen, known to be done
    lab00.crash      rows up to a crash             ->  what each group reads next

Every case plays a day of its own, made from its seed; what is right is read off that day, not computed by an answer.
Left out: reference and known-wrong answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mqlab.client.statuses import CONSUME_SUCCESS
from mqlab.lab.lab import Lab, play
from mqlab.teach.exercises import Answers, Case, Exercise, Finding, Manifest, Prediction
from mqlab.wire import record
from mqlab.wire.message import Message

BODIES = ("книга", "三本书", "🎁🎁", "a lamp", "чай с лимоном", "one very long order " * 20)
GROUPS = ("audit", "billing")
FIRST_FILE = "00000000000000000000"


def one_queue(lab: Lab, *topics: str) -> None:
    """Topics of one queue each, so that every place is one number."""
    for topic in topics:
        lab.create_topic(topic, read_queue_nums=1, write_queue_nums=1)


def reader(lab: Lab, group: str, topic: str, work_ms: Callable[[], int]) -> Any:
    """A started consumer of a group whose listener takes some time and always succeeds."""
    consumer = lab.push_consumer(group)

    def listener(messages: Sequence[Any], context: Any) -> str:
        context.sleep(work_ms())
        return CONSUME_SUCCESS

    consumer.subscribe(topic, "*")
    consumer.on_messages(listener)
    consumer.start()
    return consumer


# lab00.find ------------------------------------------------------------------------------------------------------


def _half_read(seed: int) -> Lab:
    """Orders between letters; audit stops half-way, billing reads everything, press reads only letters."""
    rng = random.Random(f"lab00.find {seed}")

    def story(lab: Lab) -> None:
        one_queue(lab, "orders", "letters")
        shop = lab.producer("shop")

        def send(count: int) -> None:
            for _ in range(count):
                topic = rng.choice(("letters", "orders"))
                shop.send(Message(topic, rng.choice(BODIES).encode(), tags=rng.choice(("paid", "已支付"))))
            shop.send(Message("orders", rng.choice(BODIES).encode()))

        send(rng.randint(2, 5))
        audit = reader(lab, "audit", "orders", lambda: 5)
        lab.run_for("12s")
        audit.shutdown()
        send(rng.randint(2, 5))
        reader(lab, "billing", "orders", lambda: 5)
        reader(lab, "press", "letters", lambda: 5)
        lab.run_for("20s")

    return play(story, seed=seed)


def _find_case(seed: int) -> Case:
    def run(answers: Answers) -> Finding | None:
        lab = _half_read(seed)
        store = lab.store()
        folder = Path(store.directory)
        log = (folder / "commitlog" / FIRST_FILE).read_bytes()[: store.max_physical_offset]
        entries = (folder / "consumequeue" / "orders" / "0" / FIRST_FILE).read_bytes()
        offsets = store.config("consumerOffset.json")["offsetTable"]
        for message in store.messages("orders"):
            unit = log[message.physical_offset :][: record.decode(log, message.physical_offset).total_size]
            past = [g for g in GROUPS if offsets.get(f"orders@{g}", {}).get(0, 0) > message.queue_offset]
            found = answers["find"](message.queue_offset, entries, log, offsets)
            finding = _judge_find(message.queue_offset, (message.physical_offset, unit, past), found)
            if finding is not None:
                return finding
        return None

    return Case(f"orders between letters, seed {seed}", run)


def _judge_find(queue_offset: int, right: tuple[int, bytes, list[str]], found: object) -> Finding | None:
    where = f"message {queue_offset} of the queue"
    if not isinstance(found, tuple) or len(found) != 3:
        return Finding("find returns a tuple (physical_offset, unit, groups)", where, right, found)
    if found[0] != right[0]:
        rule = "Entry n of a queue stands at byte 20 * n, and its first 8 bytes say where the message lies in the log"
        return Finding(rule, where, right[0], found[0])
    if found[1] != right[1]:
        rule = "The unit is as many bytes of the log as the entry's bytes 8 to 11 say, from the physical offset on"
        return Finding(rule, where, _said(right[1]), _said(found[1]))
    if found[2] != right[2]:
        rule = "A group is past a message when the offset it reads next is greater than the message's"
        return Finding(rule, f"{where}: the groups past it", right[2], found[2])
    return None


def _said(unit: object) -> object:
    """Bytes by their number and their ends: two units look alike in their first hundred."""
    return f"{len(unit)} bytes: {unit[:8].hex(' ', 4)} … {unit[-8:].hex(' ', 4)}" if isinstance(unit, bytes) else unit


# lab00.timeline and lab00.crash ----------------------------------------------------------------------------------


def _working_day(seed: int, end_ms: int) -> Lab:
    """Orders that come now and then; billing is there from the start, audit comes later and is slower."""
    rng = random.Random(f"lab00.day {seed}")

    def story(lab: Lab) -> None:
        start_ms = lab.now_ms
        one_queue(lab, "orders")
        shop = lab.producer("shop")
        reader(lab, "billing", "orders", lambda: rng.randint(20, 900))
        for number in range(8):
            lab.run_for(rng.randint(300, 3000))
            shop.send(Message("orders", rng.choice(BODIES).encode(), keys=f"order-{number}"))
            if number == 2:
                reader(lab, "audit", "orders", lambda: rng.randint(500, 4000))
        lab.run_for(max(start_ms + end_ms - lab.now_ms, 1))

    return play(story, seed=seed)


def _timeline_case(seed: int) -> Case:
    def run(answers: Answers) -> Finding | None:
        lab = _working_day(seed, 26_000)
        rows = lab.timeline().table().to_dicts()
        for group in GROUPS:
            for message in lab.store().messages("orders"):
                right = (message.store_timestamp, *_seen_and_known(lab, message, group))
                found = answers["read_day"](rows, message.msg_id, group)
                finding = _judge_day(f"{message.keys} and {group}", right, found)
                if finding is not None:
                    return finding
        return None

    return Case(f"a working day, seed {seed}", run)


def _seen_and_known(lab: Lab, message: Any, group: str) -> tuple[int | None, int | None]:
    seen = next((d.started_ms for d in lab.deliveries(group) if d.msg_id == message.msg_id), None)
    for step, values in lab.journal.changes("offset.committed"):
        ours = values["group"] == group and values["topic"] == "orders"
        if ours and values["queue_offset"] > message.queue_offset:
            return seen, step.now_ms
    return seen, None


DAY_RULES = {
    "stored_ms": "A message is stored when the broker writes it: the moment of its message.stored",
    "seen_ms": "A group first sees a message at its own first listener.started for it",
    "known_ms": "The broker knows that a group is past a message from the group's first offset.committed that is "
    "greater than its offset",
}


def _judge_day(who: str, right: tuple[int | None, ...], found: object) -> Finding | None:
    if not isinstance(found, tuple) or len(found) != 3:
        return Finding("read_day returns a tuple (stored_ms, seen_ms, known_ms)", who, right, found)
    for (name, rule), expected, got in zip(DAY_RULES.items(), right, found, strict=True):
        if got != expected:
            return Finding(rule, f"{who}: {name}", expected, got)
    return None


def _crash_case(seed: int) -> Case:
    end_ms = random.Random(f"lab00.crash {seed}").randint(12_000, 24_000)

    def run(answers: Answers) -> Finding | None:
        lab = _working_day(seed, end_ms)
        for group in GROUPS:
            lab.kill(f"{group}-1")
        rows = lab.timeline().table().to_dicts()
        groups = [*GROUPS, "nobody"]
        offsets = lab.broker().offset_table
        right = {group: (offsets.queues_of(group, "orders") or {}).get(0, 0) for group in groups}
        found = answers["stand"](rows, groups)
        if not isinstance(found, dict):
            return Finding("stand returns a dictionary: group -> next queue offset", "the result", right, found)
        one_more = {group: offset + 1 for group, offset in right.items() if offset}
        for group in groups:
            if found.get(group) != right[group]:
                all_one_more = all(found.get(name) == offset for name, offset in one_more.items())
                return Finding(_crash_rule(right[group], all_one_more), group, right[group], found.get(group))
        return None

    return Case(f"both consumers killed, seed {seed}", run)


def _crash_rule(right: int, all_one_more: bool) -> str:
    if right and all_one_more:
        return "A committed offset is the next message to read: add nothing to what the broker was told"
    if right == 0:
        return "A group of which the broker was told nothing begins a young queue at offset 0"
    return "After a crash a group goes on from the last offset the broker was told, not from what its client remembered"


# what is asked ---------------------------------------------------------------------------------------------------

PREDICTIONS = (
    Prediction(
        "lab00.after_ack",
        "Three orders are stored. Billing reads all three and acknowledges them. How many are in the commit log then?",
        "An acknowledgement moves a number, it deletes nothing. Messages go when their file is old (72 hours by "
        "default), read or unread.",
    ),
    Prediction(
        "lab00.known_when",
        "Billing's listener has returned CONSUME_SUCCESS. When does the broker know?",
        "The client keeps its progress in memory and reports it every 5 seconds, the first time after 10. In between, "
        "the broker knows less than the client.",
        (
            ("at once", "the answer goes to the broker with each message"),
            ("later", "seconds later, in one report for all messages so far"),
            ("never", "the broker is not told at all"),
        ),
    ),
    Prediction(
        "lab00.audit",
        "Audit starts a minute after billing has acknowledged all three orders. How many of them does audit get?",
        "Each group has a position of its own in the same queue. What billing has read is not gone for audit.",
    ),
    Prediction(
        "lab00.again",
        "Billing has handled all three orders and is killed 3 seconds after it started. It is started again. How many "
        "orders does its listener get in its second life?",
        "The broker had been told nothing yet, so the group goes on from the beginning. At least once means: be ready "
        "to see a message again.",
    ),
)

EXERCISES = (
    Exercise(
        "lab00.find",
        "Find your message in three files",
        3,
        ("find",),
        _find_case,
        (1, 2, 3),
        (
            "An entry of the queue file is 20 bytes, so entry n begins at byte 20 * n. Which of its bytes are a place?",
            'struct.unpack_from(">qiq", entries, 20 * queue_offset) reads a place (8 bytes), a size (4) and a tag code '
            "(8). The unit is that many bytes of the log, from that place.",
            'offset_table.get(f"orders@{group}", {}).get(0, 0) is what a group reads next from queue 0. It is past '
            "message n when that is greater than n; equal means: this one comes next.",
        ),
        "You have just done by hand what the broker does for every pull: entry, place, unit. And you have seen that a "
        "group is nothing but a number in a small file.",
    ),
    Exercise(
        "lab00.timeline",
        "Read the timeline",
        3,
        ("read_day",),
        _timeline_case,
        (1, 2),
        (
            "Three kinds of rows are enough: message.stored, listener.started and offset.committed. Print the values "
            "of one row of each.",
            "message.stored tells you the message's queue_offset. You need it to recognise the commit that passes it: "
            "a commit says a group and a queue_offset, not a message.",
            "One commit may pass several messages at once. Look for the first offset.committed of the group whose "
            "queue_offset is greater than the message's; next(..., None) gives None where there is none.",
        ),
        "Between seen and known lie seconds in which only the consumer's memory knows. Everything about duplicates "
        "happens there.",
    ),
    Exercise(
        "lab00.crash",
        "Say where each group stands after a crash",
        4,
        ("stand",),
        _crash_case,
        (1, 2, 3),
        (
            "Two kinds of rows speak of progress: offset.updated (whose memory?) and offset.committed (whose memory?). "
            "Only one of them is left when the consumer is dead.",
            "Go through the rows in order and keep, for each group, the queue_offset of its latest offset.committed.",
            "Begin with {group: 0 for group in groups}: a group that never reported stands at 0. The queue_offset of a "
            "commit is already the next one to read: add nothing.",
        ),
        "That number, and nothing else, decides what is delivered again. Lab 04 is about keeping it small.",
    ),
)

MANIFEST = Manifest("lab00", PREDICTIONS, EXERCISES)
