"""lab08.due: when delayed messages come, and which of them come again, from what a broker has on its disk.

    stored   when each message was stored, with its level        levels   seconds of level 1, 2, …
    lives    (up_ms, down_ms, delayOffset.json of the start)     ─▶      [(number of the message, delivered_ms)]

The queue of a level is read from the offset in the file. A broker looks for the first time a second after its start,
and then every 100 ms.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure
from mqlab.course.kit.shapes import Difference, difference, tuple_of
from mqlab.course.kit.slips import Slip
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.ports import next_on_grid

FIRST_LOOK_MS, GRID_MS = 1_000, 100
STANDARD = (1, 5, 10, 30, *(60 * minutes for minutes in range(1, 11)), 1_200, 1_800, 3_600, 7_200)
NEVER_MS = 10**9
Stored = Sequence[tuple[int, int]]
Lives = Sequence[tuple[int, int, Mapping[int, int]]]
DELIVERY = tuple_of("delivery", message=int, delivered_ms=int)

TIME_RULE = (
    "A message is delivered at the first check at or after its due time, which is its store time plus the delay of its "
    "level. A broker checks first 1,000 ms after its start, then every 100 ms"
)
ROWS_RULE = (
    "In each lifetime the broker reads the queue of a level from the offset in its delayOffset.json, and delivers what "
    "falls due while it is up: one row per delivery, ordered by time and then by number"
)

PAIR_RULE = "A row is (number of the message, delivered_ms); message 0 is the first of stored"


def deliveries(
    stored: Stored,
    levels: Sequence[int],
    lives: Lives,
    *,
    first_look_ms: int = FIRST_LOOK_MS,
    clamped: bool = True,
    in_log: bool = False,
    saved: Callable[[Mapping[int, int], int], int] = lambda offsets, level: offsets.get(level, 0),
    due: Callable[[int, int, int], int] = lambda stored_ms, delay_ms, up_ms: stored_ms + delay_ms,
) -> list[tuple[int, int]]:
    """What is delivered when. The keywords are what a misunderstanding would do instead."""
    delivered: list[tuple[int, int]] = []
    queued = _queued(stored, len(levels)) if clamped else [(level, at_ms) for level, at_ms in _queued(stored, 99)]
    for up_ms, down_ms, offsets in lives:
        for number, (stored_ms, _) in enumerate(stored):
            level, queue_offset = queued[number]
            first = saved(offsets, level)
            if stored_ms >= down_ms or level > len(levels) or (number if in_log else queue_offset) < first:
                continue
            look_ms = max(due(stored_ms, levels[level - 1] * 1_000, up_ms), up_ms + first_look_ms)
            delivered_ms = next_on_grid(look_ms, GRID_MS, up_ms + first_look_ms)
            if delivered_ms < down_ms:
                delivered.append((number, delivered_ms))
    return _in_order(delivered)


def _in_order(delivered: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(delivered, key=lambda delivery: (delivery[1], delivery[0]))


def _queued(stored: Stored, most: int) -> list[tuple[int, int]]:
    """For each message the level whose queue it is in, and its offset there."""
    counts: dict[int, int] = {}
    places = []
    for _, level in stored:
        level = min(level, most)
        places.append((level, counts.get(level, 0)))
        counts[level] = counts.get(level, 0) + 1
    return places


def _call(stored: Stored, levels: Sequence[int], lives: Lives, about: str) -> Call:
    return Call(
        stored=list(stored),
        levels=list(levels),
        lives=list(lives),
        right=deliveries(stored, levels, lives),
        about=about,
    )


def _times(rng: random.Random, count: int, before_ms: int) -> list[int]:
    return sorted(2_000 + rng.randrange(before_ms - 3_000) // 100 * 100 + rng.randint(21, 79) for _ in range(count))


def one_life(rng: random.Random) -> Call:
    """A broker that stays up; one message asks for a level that the table does not have."""
    levels = STANDARD[: rng.randint(4, 7)]
    chosen = [rng.randint(1, 3) for _ in range(4)] + [len(levels) + rng.randint(1, 4)]
    rng.shuffle(chosen)
    stored = list(zip(_times(rng, 5, 20_000), chosen, strict=True))
    return _call(stored, levels, [(0, NEVER_MS, {})], "a broker that stays up")


def down_when_due(rng: random.Random) -> Call:
    """Shut down in good order before anything is due, and started when most of it is overdue."""
    up_ms = 60_000 + rng.randint(1, 9) * 1_000 + rng.randint(11, 89)
    stored = list(zip(_times(rng, 4, 9_000), [3, 4, 4, 5], strict=True))
    lives = [(0, 11_000, {}), (up_ms, NEVER_MS, {3: 0, 4: 0, 5: 0})]
    return _call(stored, STANDARD, lives, "a broker that was down when they fell due")


def killed(rng: random.Random) -> Call:
    """Killed after some deliveries: delayOffset.json is ten seconds old at most, and behind.

    Two levels, so that a message's number is not its offset in the queue of its level.
    """
    levels = (1, 2, 1, 2, 2, 2, 2, 2)
    stored = [(2_000 + number * 1_200 + rng.randint(21, 79), level) for number, level in enumerate(levels)]
    down_ms = 12_500 + rng.randint(1, 9) * 100 + 50
    up_ms = down_ms + rng.randint(2, 5) * 1_000 + rng.randint(11, 49)
    lives = [(0, down_ms, {}), (up_ms, NEVER_MS, {1: 1, 2: 2})]
    return _call(stored, STANDARD, lives, "a broker that was killed, with an older delayOffset.json")


def killed_twice(rng: random.Random) -> Call:
    """Three lives: messages are stored in each of them, and a file lacks the levels of which nothing is saved yet."""

    def stored_from(ms: int, levels: Sequence[int]) -> list[tuple[int, int]]:
        return [(ms + number * 900 + rng.randint(21, 79), level) for number, level in enumerate(levels)]

    first_down_ms = 8_000 + rng.randint(1, 9) * 100 + 50
    second_up_ms = first_down_ms + rng.randint(2, 5) * 1_000 + rng.randint(11, 49)
    second_down_ms = second_up_ms + 9_000 + rng.randint(1, 9) * 100
    third_up_ms = second_down_ms + rng.randint(2, 5) * 1_000 + rng.randint(11, 49)
    stored = [
        *stored_from(2_000, (1, 2, 1, 2)),
        *stored_from(second_up_ms + 1_500, (1, 2, 3, 2)),
        *stored_from(third_up_ms + 1_500, (2, 1)),
    ]
    lives = [(0, first_down_ms, {}), (second_up_ms, second_down_ms, {1: 1}), (third_up_ms, NEVER_MS, {1: 2, 2: 2})]
    return _call(stored, STANDARD, lives, "a broker that was killed twice, with messages in each lifetime")


def beyond_the_table(rng: random.Random) -> Call:
    """Three levels are asked for that all count as the highest: one queue, of which the first life delivers two."""
    stored = [(2_000 + number * 900 + rng.randint(21, 79), level) for number, level in enumerate((3, 7, 4, 3))]
    down_ms = 13_450 + rng.randint(-9, 9) * 10
    up_ms = down_ms + rng.randint(2, 5) * 1_000 + rng.randint(11, 49)
    lives = [(0, down_ms, {}), (up_ms, NEVER_MS, {3: 2})]
    return _call(stored, STANDARD[:3], lives, "a broker with three levels, asked for higher ones")


def shapes_of_days(seed: int) -> list[Call]:
    """A broker that stays up, one that was down, one that was killed, one killed twice, one with few levels."""
    rng = random.Random(f"lab08.due {seed}")
    return [one_life(rng), down_when_due(rng), killed(rng), killed_twice(rng), beyond_the_table(rng)]


def within_a_look(call: Call, answer: Any) -> Difference | None:
    """The first difference; a time may be 100 ms off."""
    right = call.right
    same = len(right) == len(answer) and sorted(n for n, _ in right) == sorted(n for n, _ in answer)
    if same:
        wanted, got = sorted(right), sorted(answer)
        near = all(abs(a[1] - b[1]) <= GRID_MS for a, b in zip(wanted, got, strict=True))
        if near and list(answer) == _in_order(answer):
            return None
    return difference([DELIVERY], right, answer)


def _explained(call: Call, answer: Any, seen: Difference) -> str:
    if any(not 0 <= number < len(call["stored"]) for number, _ in answer):
        return PAIR_RULE
    wanted, got = [n for n, _ in call.right], [n for n, _ in answer]
    if sorted(wanted) == sorted(got) and sorted(call.right) == sorted(answer):
        return "Rows are ordered by the time of delivery, then by number"
    return TIME_RULE if sorted(wanted) == sorted(got) else ROWS_RULE


def _wrongly(**other: Any) -> Callable[[Call], list[tuple[int, int]]]:
    return lambda call: deliveries(call["stored"], call["levels"], call["lives"], **other)


def _from_the_restart(stored_ms: int, delay_ms: int, up_ms: int) -> int:
    return max(stored_ms, up_ms) + delay_ms


def _two_lives(call: Call) -> list[tuple[int, int]]:
    lives = call["lives"]
    return deliveries(call["stored"], call["levels"], [lives[0], *lives[1:][-1:]])


def _once(call: Call) -> list[tuple[int, int]]:
    seen: dict[int, tuple[int, int]] = {}
    for delivery in call.right:
        seen.setdefault(delivery[0], delivery)
    return list(seen.values())


DUE = Pure(
    "lab08.due",
    "due(stored, levels, lives)",
    points=3,
    about="delay queues and restarts of a broker",
    calls=shapes_of_days,
    returns=[DELIVERY],
    compares=within_a_look,
    explain=_explained,
    rules={"": ROWS_RULE, "number": ROWS_RULE, "message": ROWS_RULE, "delivered_ms": TIME_RULE},
    slips=[
        Slip("once each", _once, belief="lab08.delivered_once"),
        Slip("all again", _wrongly(saved=lambda offsets, level: 0), belief="lab08.all_again"),
        Slip("waits again", _wrongly(due=_from_the_restart), belief="lab08.waits_again"),
        Slip("at once", _wrongly(first_look_ms=0), belief="lab08.at_once"),
        Slip("the number in the log", _wrongly(in_log=True), belief="lab08.offset_is_the_number"),
        Slip(
            "no entry, nothing to read",
            _wrongly(saved=lambda offsets, level: offsets.get(level, NEVER_MS if offsets else 0)),
            belief="lab08.absent_is_read",
        ),
        Slip("the first lives only", _two_lives, belief="lab08.two_lives"),
        Slip("no such level", _wrongly(clamped=False), belief="lab08.no_such_level"),
    ],
    forbids=FORBIDS["lab08.due"],
)
