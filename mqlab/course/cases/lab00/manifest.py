"""What lab 00 asks: four predictions about a message's day, four exercises over numbers, real files and real timelines.

    lab00.unread     a queue's length and offsets   ->  what each group still has to read
    lab00.find       two files and an offset table  ->  where a message is, and who is past it
    lab00.timeline   rows of a timeline             ->  stored, first seen, known to be done
    lab00.crash      rows up to a crash             ->  what each group reads next

Every case plays a day of its own (days), made from its seed; the right answer is read from that day. Hidden cases and
known-wrong answers are in solutions/grading. Questions, titles, hints and notes are in the lab's source.
"""

from __future__ import annotations

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab00.days import crash_calls, find_calls, timeline_calls, unread_calls
from mqlab.course.cases.lab00.misreadings import CRASH, FIND, TIMELINE, UNREAD
from mqlab.course.cases.lab00.tasks import TASKS
from mqlab.course.kit import Pure, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call, Manifest
from mqlab.course.teach.predictions import predictions_of


def _crash_rule(call: Call, answer: object, seen: Difference) -> str:
    if seen.right in (0, None):
        return "A group that has reported nothing to the broker begins a young queue at offset 0"
    return "After a crash a group resumes at the last offset that the broker got, not from what its client remembered"


EXERCISES = (
    Pure(
        "lab00.unread",
        "unread(stored, offsets, groups)",
        points=1,
        about="one queue, three groups",
        calls=unread_calls,
        seeds=(1, 2, 3),
        returns={str: [int]},
        rules={
            "": "A group still has to read the orders from its offset up to the queue's last one, and one without an "
            "offset begins at 0"
        },
        slips=UNREAD,
    ),
    Pure(
        "lab00.find",
        "find(queue_offset, entries, log, offset_table)",
        points=3,
        forbids=FORBIDS["lab00.find"],
        about="orders between letters",
        calls=find_calls,
        seeds=(1, 2, 3),
        returns=tuple_of(physical_offset=int, unit=bytes, groups=[str]),
        rules={
            "physical_offset": "Entry n of a queue is at byte 20 * n, and its first 8 bytes say where the message is "
            "in the log",
            "unit": "The unit begins at the physical offset; bytes 8 to 11 of the entry say how many bytes it has",
            "groups": "A group is past a message when the offset it reads next is greater than the message's",
        },
        slips=FIND,
    ),
    Pure(
        "lab00.timeline",
        "read_day(rows, msg_id, group)",
        points=3,
        about="a working day",
        calls=timeline_calls,
        returns=tuple_of(stored_ms=int | None, seen_ms=int | None, known_ms=int | None),
        rules={
            "stored_ms": "A message is stored when the broker writes it: the moment of its message.stored",
            "seen_ms": "A group first sees a message at its own first listener.started for it",
            "known_ms": "The broker knows that a group is past a message from the group's first offset.committed that "
            "is greater than its offset",
        },
        slips=TIMELINE,
    ),
    Pure(
        "lab00.crash",
        "stand(rows, groups)",
        points=4,
        about="both consumers killed",
        calls=crash_calls,
        seeds=(1, 2, 3),
        returns={str: int},
        explain=_crash_rule,
        slips=CRASH,
    ),
)

MANIFEST = Manifest("lab00", predictions_of("lab00"), EXERCISES, TASKS)
