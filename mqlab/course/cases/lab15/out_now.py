"""lab15.out_now: the messages that are out to a group at a moment, from its pops and acks.

    pops   (popped_ms, invisible_ms, queue, offsets)        acks   (acked_ms, queue, offset, popped_ms)
                                                            ─▶     [(queue, offset, until_ms)], sorted

A message is popped again from its own queue after a crash of the broker, or when its invisible time was changed: so one
offset may have two leases, and an ack names one of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import OneOf, Pure, Slip
from mqlab.course.kit.shapes import Difference, tuple_of
from mqlab.course.teach.exercises import Call

Pop = tuple[int, int, str, list[int]]
AckRow = tuple[int, str, int, int]
OUT = tuple_of("message", queue=str, offset=int, until_ms=int)

OUT_RULE = (
    "A message is out from popped_ms until popped_ms + invisible_ms, unless an ack names its queue, its offset and the "
    "popped_ms of that very lease"
)
UNTIL_RULE = "until_ms is popped_ms + invisible_ms; at until_ms the lease is over"
SORTED_RULE = "Rows are (queue, offset, until_ms), sorted"


def out(
    pops: list[Pop],
    acks: list[AckRow],
    now_ms: int,
    *,
    acked: Callable[[list[AckRow], str, int, int], bool] | None = None,
    ends: Callable[[int, int], bool] = lambda now_ms, until_ms: now_ms >= until_ms,
) -> list[tuple[str, int, int]]:
    """What is out. The keywords are what a misunderstanding would do instead."""
    rows = []
    acked = acked or _this_lease
    for popped_ms, invisible_ms, queue, offsets in pops:
        until_ms = popped_ms + invisible_ms
        for offset in offsets:
            if not ends(now_ms, until_ms) and not acked(acks, queue, offset, popped_ms):
                rows.append((queue, offset, until_ms))
    return sorted(rows)


def moments_of_a_group(seed: int) -> list[Call]:
    """Two quiet groups, one in which an offset was popped twice, one in which several were, while leases still ran."""
    rng = random.Random(f"lab15.out_now {seed}")
    return [_moment(rng, again) for again in (0, 0, 1, 3)]


def _moment(rng: random.Random, again: int) -> Call:
    now_ms = 100_000 + rng.randrange(1_000)
    queues = [f"orders {number}" for number in range(rng.randint(2, 3))] + ["%RETRY%billing_orders 0"]
    pops: list[Pop] = []
    acks: list[AckRow] = []
    # 1. One lease of each kind: runs, ends at this moment, ended, ended although it was acknowledged in part.
    first = rng.randint(0, 40)
    for number, left_ms in enumerate((rng.randint(2, 9) * 1_000, 0, -rng.randint(1, 5_000), 4_321, 7_777)):
        invisible_ms = rng.choice((10_000, 20_000, 60_000))
        queue = queues[number % len(queues)]
        offsets = [first + number * 40 + step for step in sorted(rng.sample(range(0, 9), 5))]
        pops.append((now_ms + left_ms - invisible_ms, invisible_ms, queue, offsets))
    # 2. Acks in the middle of a pop; the same offset in another queue keeps its lease.
    popped_ms, _, queue, offsets = pops[0]
    other = next(name for name in queues if name != queue)
    pops.append((popped_ms, pops[0][1], other, list(offsets)))
    acks += [(now_ms - 900, queue, offsets[2], popped_ms), (now_ms - 700, queue, offsets[4], popped_ms)]
    popped_ms, _, queue, offsets = pops[3]
    acks.append((now_ms - 300, queue, offsets[1], popped_ms))
    # 3. Popped again, and acknowledged with the handle of the first lease.
    for step in range(again):
        popped_ms, _, queue, offsets = pops[2]
        later_ms = now_ms - 2_000 + step
        pops.append((later_ms, 30_000, queue, [offsets[step]]))
        acks.append((now_ms - 100, queue, offsets[step], popped_ms))
    # 4. Popped again while the first lease runs: both run, one is over, both are over at the same moment.
    if again > 1:
        popped_ms, invisible_ms, queue, offsets = pops[0]
        for number, longer_ms in ((0, 1_500), (1, 0), (3, 2_500)):
            later_ms = popped_ms + 200 + longer_ms // 5
            pops.append((later_ms, popped_ms + invisible_ms + longer_ms - later_ms, queue, [offsets[number]]))
        acks.append((now_ms - 50, queue, offsets[3], pops[-1][0]))
    rng.shuffle(acks)
    about = "offsets that were popped twice" if again else "every offset was popped once"
    return Call(pops=pops, acks=acks, now_ms=now_ms, right=out(pops, acks, now_ms), about=f"{about}, at {now_ms}")


def _wrongly(**other: Any) -> Callable[[Call], object]:
    return lambda call: out(call["pops"], call["acks"], call["now_ms"], **other)


def _this_lease(acks: list[AckRow], queue: str, offset: int, popped_ms: int) -> bool:
    return any(ack[1:] == (queue, offset, popped_ms) for ack in acks)


def _any_lease(acks: list[AckRow], queue: str, offset: int, popped_ms: int) -> bool:
    return any(ack[1:3] == (queue, offset) for ack in acks)


def _any_queue(acks: list[AckRow], queue: str, offset: int, popped_ms: int) -> bool:
    return any(ack[2:] == (offset, popped_ms) for ack in acks)


def _up_to(acks: list[AckRow], queue: str, offset: int, popped_ms: int) -> bool:
    return any(ack[1] == queue and ack[3] == popped_ms and ack[2] >= offset for ack in acks)


def _one_each(call: Call) -> OneOf:
    """One row for a message, or for each of its ends, of those that a second lease has."""
    rows = call.right
    by_message = {row[:2]: row for row in rows}  # the one that ends last
    return OneOf([sorted(by_message.values()), sorted({row[:2]: row for row in rows[::-1]}.values()), sorted({*rows})])


def _rule(call: Call, rows: Any, seen: Difference) -> str:
    if sorted(rows) == call.right:
        return SORTED_RULE
    same = sorted(row[:2] for row in rows) == [row[:2] for row in call.right]
    return UNTIL_RULE if same else OUT_RULE


OUT_NOW = Pure(
    "lab15.out_now",
    "out_now(pops, acks, now_ms)",
    points=2,
    about="a group's pops and acks",
    calls=moments_of_a_group,
    returns=[OUT],
    rules={"": OUT_RULE, "number": OUT_RULE, "until_ms": UNTIL_RULE},
    explain=_rule,
    slips=[
        Slip("any ack of the offset", _wrongly(acked=_any_lease), belief="lab15.any_ack"),
        Slip("in any queue", _wrongly(acked=_any_queue), belief="lab15.offset_is_a_name"),
        Slip("one lease each", _one_each, belief="lab15.one_lease"),
        Slip("acks up to it", _wrongly(acked=_up_to), belief="lab15.ack_is_an_offset"),
        Slip("no end", _wrongly(ends=lambda now_ms, until_ms: False), belief="lab15.lease_without_end"),
        Slip("at its end", _wrongly(ends=lambda now_ms, until_ms: now_ms > until_ms), belief="lab15.out_at_its_end"),
    ],
    forbids=FORBIDS["lab15.out_now"],
)
