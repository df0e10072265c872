"""Lab 03's exercises about two numbers: how uneven a group was at its worst, and how much moved beyond what had to.

    fairness(moments)   the largest difference of queue counts, members without queues counted
    churn(moments)      queues that changed their owner, divided by those that had to

A moment is (members, owners): a list of client ids, and a dictionary from a queue's number to its owner. What is right
is computed from histories that RocketMQ's strategies make.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab03.histories import had_to_move, moved, owners_of, spread, walk
from mqlab.course.kit import OneOf, Pure, Slip
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.client.allocate import strategy
from mqlab.rocketmq.wire.message import MessageQueue

Moments = list[tuple[list[str], dict[int, str]]]
STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
FAIRNESS_RULE = (
    "At each moment: the largest number of queues that a member has, minus the smallest. The worst moment counts"
)
CHURN_RULE = (
    "All queues that changed their owner, divided by all that had to: those that cannot stay if each member "
    "may keep queues // members of its own, and queues % members of them one more"
)


def history(rng: random.Random, name: str, queues: int, changes: int, most: int) -> Moments:
    """What a strategy makes of some changes of a group."""
    every = [MessageQueue("orders", "broker-a", number) for number in range(queues)]
    moments = []
    for members in walk(rng, changes, most=most):
        owners = owners_of(strategy(name), every, members)
        moments.append((members, {queue.queue_id: owner for queue, owner in owners.items()}))
    return moments


def _histories(seed: int, what: str) -> Iterator[tuple[Moments, str]]:
    rng = random.Random(f"lab03.{what} {seed}")
    for name in STRATEGIES:
        queues = rng.choice((8, 12, 16))
        yield history(rng, name, queues, rng.randint(3, 6), 5), f"{name}, {queues} queues"
    yield history(rng, "AVG", 3, 4, 6), "AVG, fewer queues than members at times"


def fairness_calls(seed: int) -> list[Call]:
    """Histories of three strategies, one in which members are without a queue, and one that is worst at its start."""
    calls = [
        Call(moments=moments, right=max(spread(*moment) for moment in moments), about=about)
        for moments, about in _histories(seed, "fairness")
    ]
    return [*calls, _idle(), _worst_at_first()]


def _worst_at_first() -> Call:
    """Three queues to one until the next rebalance."""
    moments: Moments = [(["a", "b"], {0: "a", 1: "a", 2: "a", 3: "b"}), (["a", "b"], {0: "a", 1: "a", 2: "b", 3: "b"})]
    return Call(moments=moments, right=2, about="worst at the first moment")


def _idle() -> Call:
    """Two queues, three members: one member has nothing."""
    moments: Moments = [(["a", "b"], {0: "a", 1: "b"}), (["a", "b", "c"], {0: "a", 1: "b"})]
    return Call(moments=moments, right=1, about="two queues, then three members")


def churn_calls(seed: int) -> list[Call]:
    """The same kinds of histories."""
    return [
        Call(moments=moments, right=_churn(moments), about=about)
        for moments, about in _histories(seed, "churn")
        if _needed(moments)
    ]


def _needed(moments: Moments) -> int:
    return sum(had_to_move(before, members) for (_, before), (members, _) in pairwise(moments))


def _moved(moments: Moments) -> int:
    return sum(moved(before, after) for (_, before), (_, after) in pairwise(moments))


def _churn(moments: Moments) -> float:
    return _moved(moments) / _needed(moments)


def _with_queues_only(call: Call) -> int:
    counts = [Counter(owners.values()).values() for _, owners in call["moments"]]
    return max(max(numbers) - min(numbers) for numbers in counts)


def _at_the_end(call: Call) -> int:
    return spread(*call["moments"][-1])


def _largest_count(call: Call) -> int:
    return max(max(Counter(owners.values()).values()) for _, owners in call["moments"])


def _added_up(call: Call) -> int:
    return sum(spread(*moment) for moment in call["moments"])


def _of_all_queues(call: Call) -> float:
    pairs = list(pairwise(call["moments"]))
    return _moved(call["moments"]) / sum(len(before) for (_, before), _ in pairs)


def _mean_of_ratios(call: Call) -> float:
    ratios = []
    for (_, before), (members, after) in pairwise(call["moments"]):
        needed = had_to_move(before, members)
        ratios.append(moved(before, after) / needed if needed else 1.0)
    return sum(ratios) / len(ratios)


def _upside_down(call: Call) -> float:
    moved_queues = _moved(call["moments"])
    return _needed(call["moments"]) / moved_queues if moved_queues else 0.0


def _owners_gone(before: dict[int, str], members: Sequence[str]) -> int:
    return sum(owner not in members for owner in before.values())


def _leaving_only(call: Call) -> float:
    """Only queues of those who left had to move."""
    needed = sum(_owners_gone(before, members) for (_, before), (members, _) in pairwise(call["moments"]))
    return _moved(call["moments"]) / needed if needed else 0.0


def _even_shares_only(call: Call) -> float:
    """Each member may keep its even share, none may keep one more."""
    needed = 0
    for (_, before), (members, _) in pairwise(call["moments"]):
        had = Counter(owner for owner in before.values() if owner in members)
        needed += len(before) - sum(min(number, len(before) // len(members)) for number in had.values())
    return _moved(call["moments"]) / needed if needed else 0.0


def _everybody_one_more(call: Call) -> float:
    """Each member may keep one more than the even share."""
    needed = 0
    for (_, before), (members, _) in pairwise(call["moments"]):
        had = Counter(owner for owner in before.values() if owner in members)
        needed += len(before) - sum(min(number, -(-len(before) // len(members))) for number in had.values())
    return _moved(call["moments"]) / needed if needed else 0.0


def _one_share_each(call: Call) -> float:
    """Each change had to move one even share."""
    needed = sum(len(before) // len(members) for (_, before), (members, _) in pairwise(call["moments"]))
    return _moved(call["moments"]) / needed if needed else 0.0


def _not_divided(call: Call) -> float:
    return float(_moved(call["moments"]))


def _rounded(call: Call) -> OneOf:
    return OneOf((round(_churn(call["moments"]), 1), round(_churn(call["moments"]), 2), int(_churn(call["moments"]))))


def _place(call: Call, seen: Any) -> str:
    return f"{call.about}, {len(call['moments'])} moments"


FAIRNESS = Pure(
    "lab03.fairness",
    "fairness(moments)",
    points=2,
    about="histories of groups",
    calls=fairness_calls,
    returns=int,
    rules=FAIRNESS_RULE,
    place_of=_place,
    forbids=FORBIDS["lab03.fairness"],
    slips=[
        Slip(
            "with queues only",
            _with_queues_only,
            "A member without a queue is not among the owners, and it counts: the smallest number of queues is then 0",
            "lab03.averaging_is_fair",
        ),
        Slip("at the end", _at_the_end, "This is the difference at the last moment. The worst of all moments counts"),
        Slip(
            "largest count",
            _largest_count,
            "This is the largest number of queues that a member had. Return its difference from the smallest",
        ),
        Slip("added up", _added_up, "The differences of the moments are not added up: the worst of them counts"),
    ],
)

CHURN = Pure(
    "lab03.churn",
    "churn(moments)",
    points=3,
    about="histories of groups",
    calls=churn_calls,
    returns=float,
    rules=CHURN_RULE,
    place_of=_place,
    forbids=FORBIDS["lab03.churn"],
    slips=[
        Slip(
            "of all queues",
            _of_all_queues,
            "This is the share of all queues that moved. Divide by the queues that had to move",
        ),
        Slip(
            "mean of ratios",
            _mean_of_ratios,
            "First add up, then divide: a change that moves much must count for more than one that moves little",
        ),
        Slip("upside down", _upside_down, "This is the number upside down: divide what moved by what had to move"),
        Slip(
            "leaving only",
            _leaving_only,
            "Queues of members that leave are not the only ones to move: a member that joins must get its share "
            "from the others",
            "lab03.only_leaving_moves",
        ),
        Slip(
            "even shares only",
            _even_shares_only,
            "If the division leaves a remainder, that many members may keep one queue more than the even share",
        ),
        Slip(
            "everybody one more",
            _everybody_one_more,
            "Only as many members as the remainder says may keep one queue more than the even share",
        ),
        Slip(
            "one share each",
            _one_share_each,
            "Not every change has to move one even share: a member that leaves may have had more, and one that "
            "has too little already gets less from the others. Count what each member may keep of what it had",
        ),
        Slip("not divided", _not_divided, "This is how many queues moved. Divide by the queues that had to move"),
        Slip("rounded", _rounded, "Return the number as the division gives it, not rounded"),
    ],
)
