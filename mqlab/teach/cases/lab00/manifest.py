"""What lab 00 asks: four predictions about a message's day, three exercises over real files and real timelines.

    lab00.after_ack  lab00.known_when  lab00.audit  lab00.again        predictions
    lab00.find       two files and an offset table  ->  where a message is, and who is past it
    lab00.timeline   rows of a timeline             ->  stored, first seen, known to be done
    lab00.crash      rows up to a crash             ->  what each group reads next

Every case plays a day of its own, made from its seed; the right answer is read from that day.
The days are in days, the replies to a wrong answer in judges. Reference and known-wrong answers are not in this
package.
"""

from __future__ import annotations

import random

from mqlab.teach.cases.lab00 import days, judges
from mqlab.teach.exercises import Case, Exercise, Manifest, Prediction


def _find_case(seed: int) -> Case:
    name = f"orders between letters, seed {seed}"
    return Case(name, lambda answers: judges.judge_find(answers, days.half_read(seed)))


def _timeline_case(seed: int) -> Case:
    name = f"a working day, seed {seed}"
    return Case(name, lambda answers: judges.judge_timeline(answers, days.working_day(seed, 26_000)))


def _crash_case(seed: int) -> Case:
    end_ms = random.Random(f"lab00.crash {seed}").randint(12_000, 24_000)
    name = f"both consumers killed, seed {seed}"
    return Case(name, lambda answers: judges.judge_crash(answers, days.working_day(seed, end_ms)))


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
            ("never", "the broker gets no report at all"),
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
        "The broker had no report yet, so the group goes on from the beginning. At least once means: be ready "
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
            "message.stored contains the message's queue_offset. You need it to recognise the commit that passes it: "
            "a commit names a group and a queue_offset, not a message.",
            "One commit may pass several messages at once. Look for the first offset.committed of the group whose "
            "queue_offset is greater than the message's; next(..., None) gives None where there is none.",
        ),
        "Between seen and known lie seconds in which only the consumer's memory knows. Everything about duplicates "
        "happens there.",
    ),
    Exercise(
        "lab00.crash",
        "Say where each group continues after a crash",
        4,
        ("stand",),
        _crash_case,
        (1, 2, 3),
        (
            "Two kinds of rows speak of progress: offset.updated (whose memory?) and offset.committed (whose memory?). "
            "Only one of them is left when the consumer is dead.",
            "Go through the rows in order and keep, for each group, the queue_offset of its latest offset.committed.",
            "Begin with {group: 0 for group in groups}: a group that never reported begins at 0. The queue_offset of a "
            "commit is already the next one to read: add nothing.",
        ),
        "That number, and nothing else, decides what is delivered again. Lab 04 is about keeping it small.",
    ),
)

MANIFEST = Manifest("lab00", PREDICTIONS, EXERCISES)
