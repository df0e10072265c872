"""lab16.holds: whether a pull that was read for is held or answered.

    pull, units, next_offset, now_ms ─▶ True: hold it

Held is a pull that found nothing, has seen nothing, and may still wait.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mqlab.course.kit import Pure, Slip
from mqlab.course.teach.exercises import Call

HOLD_RULE = (
    "A pull is held if no unit was found, next_offset is still its queue_offset, and until_ms is later than now_ms; "
    "any other is answered"
)


def holds(
    pull: dict[str, Any],
    units: list[bytes],
    next_offset: int,
    now_ms: int,
    *,
    wants: int = 1,
    moved_counts: bool = True,
    ends: Callable[[int, int], bool] = lambda now_ms, until_ms: now_ms >= until_ms,
) -> bool:
    """Whether a pull is held. The keywords are what a misunderstanding would do."""
    moved = moved_counts and next_offset != pull["queue_offset"]
    return len(units) < max(1, wants) and not moved and not ends(now_ms, pull["until_ms"])


def pulls_of_a_minute(seed: int) -> list[Call]:
    """Found, found less than asked for, all filtered, nothing new, time over, at its end, past the queue."""
    rng = random.Random(f"lab16.holds {seed}")
    return [_call(rng, *kind) for kind in KINDS]


KINDS = (
    ("nothing new, and time to wait", 0, 0, 9_000),
    ("one wanted message of many asked for", 1, 1, 9_000),
    ("one wanted message, others were filtered", 1, 5, 9_000),
    ("everything was filtered", 0, 7, 9_000),
    ("nothing new, and it does not wait", 0, 0, -1),
    ("nothing new, and its time ends now", 0, 0, 0),
    ("past the end of the queue", 0, -4, 9_000),
    ("nothing new, and a little time", 0, 0, 1),
)
"""What is special, units found, how far next_offset moved, how long the pull may still wait."""


def _call(rng: random.Random, about: str, count: int, moved: int, left_ms: int) -> Call:
    now_ms, offset = 1_767_225_600_000 + rng.randrange(90_000), rng.randint(10, 90)
    pull = {"topic": "orders", "queue_id": rng.randint(0, 3), "queue_offset": offset, "most": rng.choice((8, 32))}
    pull |= {"tags": ["paid"], "until_ms": now_ms + left_ms}
    asked: dict[str, Any] = {"pull": pull, "units": [b"unit"] * count, "next_offset": offset + moved, "now_ms": now_ms}
    return Call(**asked, right=holds(**asked), about=about)


def _wrongly(**other: Any) -> Callable[[Call], object]:
    return lambda call: holds(call["pull"], call["units"], call["next_offset"], call["now_ms"], **other)


def _until_full(call: Call) -> object:
    return holds(
        call["pull"], call["units"], call["next_offset"], call["now_ms"], wants=call["pull"]["most"], moved_counts=False
    )


HOLDS = Pure(
    "lab16.holds",
    "holds(pull, units, next_offset, now_ms)",
    points=2,
    about="pulls of a minute",
    calls=pulls_of_a_minute,
    returns=bool,
    rules={"": HOLD_RULE},
    slips=[
        Slip("all filtered", _wrongly(moved_counts=False), belief="lab16.filtered_waits"),
        Slip("until it is full", _until_full, belief="lab16.waits_until_full"),
        Slip("no end", _wrongly(ends=lambda now_ms, until_ms: False), belief="lab16.waits_for_ever"),
        Slip("at its end", _wrongly(ends=lambda now_ms, until_ms: now_ms > until_ms), belief="lab16.waits_at_its_end"),
    ],
)
