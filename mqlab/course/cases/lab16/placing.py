"""lab16.next_place: where the next unit of a log begins, and how much of the file before it stays blank.

    end, size, file_bytes ─▶ (place, blank)

A unit is never split. A file always keeps room for a BLANK of 8 bytes, so a unit that would fill it goes to the next.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mqlab.course.kit import Pure, Slip
from mqlab.course.kit.shapes import tuple_of
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.wire.record import BLANK_SIZE

FILE_SIZES = (1024, 2048, 4096)

PLACE_RULE = "The place is where the unit's first byte is, counted from the first byte of the log"
BLANK_RULE = "blank is what is left of the file when the unit moves to the next one, and 0 when it fits"


def next_place(
    end: int, size: int, file_bytes: int, *, kept: int = BLANK_SIZE, splits: bool = False, in_file: bool = False
) -> tuple[int, int]:
    """Where a unit begins, and the bytes blank before it. The keywords are what a misunderstanding would do."""
    room = file_bytes - end % file_bytes
    start, blank = (end, 0) if splits or size + kept <= room else (end + room, room)
    return (start % file_bytes if in_file else start), blank


def ends_of_a_log(seed: int) -> list[Call]:
    """A unit that fits easily, one that fits exactly, one that would fill the file, one that does not fit."""
    rng = random.Random(f"lab16.next_place {seed}")
    calls = []
    for spare, about in (
        (rng.randint(100, 300), "plenty of room"),
        (BLANK_SIZE, "just enough room"),
        (rng.randrange(BLANK_SIZE), "nearly enough room"),
        (0, "the unit would fill the file"),
        (-rng.randint(1, 90), "too little room"),
    ):
        file_bytes, size = rng.choice(FILE_SIZES), rng.randint(120, 400)
        end = file_bytes * rng.randint(1, 5) - size - spare
        right = next_place(end, size, file_bytes)
        calls.append(Call(end=end, size=size, file_bytes=file_bytes, right=right, about=about))
    calls.append(Call(end=0, size=300, file_bytes=1024, right=(0, 0), about="an empty log"))
    return calls


def _wrongly(**other: Any) -> Callable[[Call], object]:
    return lambda call: next_place(call["end"], call["size"], call["file_bytes"], **other)


NEXT_PLACE = Pure(
    "lab16.next_place",
    "next_place(end, size, file_bytes)",
    points=2,
    about="the end of a log",
    calls=ends_of_a_log,
    returns=tuple_of(place=int, blank=int),
    rules={"": PLACE_RULE, "blank": BLANK_RULE},
    slips=[
        Slip("fills it", _wrongly(kept=0), belief="lab16.fills_the_file"),
        Slip("split", _wrongly(splits=True), belief="lab16.split_in_two"),
        Slip("in the file", _wrongly(in_file=True), belief="lab16.place_in_file"),
    ],
)
