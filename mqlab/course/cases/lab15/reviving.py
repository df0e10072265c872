"""lab15.revive: one round over a revive queue: from check points and acks to what is stored in the retry topic.

    ("ck", queue, start, popped_ms, invisible_ms, distances)     one pop of one queue; offsets are start + distance
    ("ack", queue, start, popped_ms, offset)                     one message of the pop that the first three name
    seen_ms                                                      how far the broker has read the log's times
                                                                 ─▶ ([(queue, offset)], settled)

Mirrors: PopReviveService.mergeAndRevive, for one queue and without the check points that are put again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure, Slip
from mqlab.course.kit.shapes import Difference, tuple_of
from mqlab.course.teach.exercises import Call

WAIT_MS = 2_000
EDGE = "a lease that is over for exactly two seconds"
AGAIN = "messages that were popped twice"
TWINS = "two queues, popped from the same offset at the same moment"
Unit = tuple[Any, ...]
BACK = tuple_of("message", queue=str, offset=int)
ROUND = tuple_of("", back=[BACK], settled=int)

BACK_RULE = (
    "Of a settled check point, the messages start + distance that no ack names go to the retry topic, in the order of "
    "the units and of the distances"
)
SETTLED_RULE = (
    "A check point is settled when seen_ms is more than 2,000 ms past popped_ms + invisible_ms; settled is how many of "
    "them, from the first on, are settled"
)


def round_of(
    units: list[Unit],
    seen_ms: int,
    *,
    stops: bool = True,
    wait_ms: int = WAIT_MS,
    names: Callable[[Unit, Unit], bool] = lambda point, ack: point[1:4] == ack[1:4],
    ordered: bool = True,
    whole: bool = False,
    neighbours: bool = False,
    counts_all: bool = True,
) -> tuple[list[tuple[str, int]], int]:
    """What a round gives back and settles. The keywords are what a misunderstanding would do instead."""
    back: list[tuple[str, int]] = []
    settled = 0
    for number, point in enumerate(units):
        if point[0] != "ck":
            continue
        _, queue, start, popped_ms, invisible_ms, distances = point
        if seen_ms - popped_ms - invisible_ms <= wait_ms:
            if stops:
                break
            continue
        later = units[number + 1 :] if ordered else units
        acked = {ack[4] for ack in later if ack[0] == "ack" and names(point, ack)}
        offsets = [
            start + (number_in_pop if neighbours else distance) for number_in_pop, distance in enumerate(distances)
        ]
        lost = [(queue, offset) for offset in offsets if offset not in acked]
        if whole and acked:
            lost = []
        settled += bool(lost or counts_all)
        back += lost
    return back, settled


def revive_queues(seed: int) -> list[Call]:
    """A quiet queue; a long lease in front; messages that were popped again from the same start; an edge; twins."""
    rng = random.Random(f"lab15.revive {seed}")
    abouts = ("leases of one length", "a long lease in front", AGAIN, EDGE, TWINS)
    return [_queue(rng, about) for about in abouts]


def _queue(rng: random.Random, about: str) -> Call:
    begin_ms = 1_767_225_600_000 + rng.randrange(1_000)
    seen_ms = begin_ms + 40_000
    units: list[Unit] = []
    start = rng.randint(3, 50)
    points: list[Unit] = []
    for number in range(6):
        distances = [0, *sorted(rng.sample(range(1, 9), 3))]
        invisible_ms = 20_000
        if about == "a long lease in front" and number == 2:
            invisible_ms = 60_000
        if about == AGAIN and number == 3:
            start, distances = points[2][2], points[2][5]  # the same messages: their broker was killed
        if about == TWINS and number == 3:
            _, _, start, begin_ms, _, distances = points[2]
        queue = f"orders {0 if number == 3 and about != TWINS else number % 2}"
        points.append(("ck", queue, start, begin_ms, invisible_ms, distances))
        start += 20
        begin_ms += 1_500
    # The last but one is over, but not for more than two seconds; the last one runs.
    late_ms, over_ms = seen_ms - 20_000, WAIT_MS if about == EDGE else rng.randint(500, 1_990)
    points[4] = (*points[4][:3], late_ms - over_ms, 20_000, points[4][5])
    points[5] = (*points[5][:3], late_ms + 3_000, 20_000, points[5][5])
    stray = ("ack", *points[1][1:4], points[1][2])
    units.append(stray)  # its check point is not there yet, and will be another's
    before: list[int] = []
    for number, point in enumerate(points):
        units.append(point)
        offsets = [point[2] + distance for distance in point[5]]
        acked = offsets if number == 0 else rng.sample(offsets[1:], 2)
        if about in (AGAIN, TWINS) and number == 3:  # those that were not acknowledged the first time
            acked = [offset for offset in offsets if offset not in before]
        if about == AGAIN and number == 3:
            acked.pop()  # except one, which is lost twice
        units += [("ack", *point[1:4], offset) for offset in acked]
        before = acked
    back, settled = round_of(units, seen_ms)
    return Call(units=units, seen_ms=seen_ms, right=(back, settled), about=about)


def _wrongly(**other: Any) -> Callable[[Call], object]:
    return lambda call: round_of(call["units"], call["seen_ms"], **other)


def _rule(call: Call, answer: Any, seen: Difference) -> str:
    return SETTLED_RULE if answer[0] == call.right[0] else BACK_RULE


REVIVE = Pure(
    "lab15.revive",
    "revive(units, seen_ms)",
    points=4,
    about="a revive queue",
    calls=revive_queues,
    returns=ROUND,
    rules={"": BACK_RULE, "settled": SETTLED_RULE},
    explain=_rule,
    slips=[
        Slip("goes on", _wrongly(stops=False), belief="lab15.unsettled_is_skipped"),
        Slip("after exactly two seconds", _wrongly(wait_ms=WAIT_MS - 1), SETTLED_RULE),
        Slip("at its end", _wrongly(wait_ms=0), belief="lab15.lease_end_is_enough"),
        Slip(
            "by the offset", _wrongly(names=lambda point, ack: point[1] == ack[1]), belief="lab15.ack_names_the_offset"
        ),
        Slip("the whole pop", _wrongly(whole=True), belief="lab15.ack_of_the_pop"),
        Slip("any order", _wrongly(ordered=False), belief="lab15.ack_before_its_point"),
        Slip("neighbours", _wrongly(neighbours=True), belief="lab15.neighbours"),
        Slip("only what gives back", _wrongly(counts_all=False), belief="lab15.settled_is_given_back"),
    ],
    forbids=FORBIDS["lab15.revive"],
)
