"""Lab 03's your-turn tasks: what is right is counted in the learner's own world, or found by trying.

    enough    queues of two topics, so that none of five is idle and none has more than a quarter
    unlucky   a number of virtual nodes with which one of three members has nine of twelve queues
    deaf      how long a queue had two owners when no member was notified of the new one
    worst     queues that moved in a history in which dealing is three times worse than need be
    window    messages given twice in a group with short calls, in which no member is notified
    measured  queues that moved in a group with a strategy of the learner's choice

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.lab03.histories import counts, owners_of
from mqlab.course.teach.tasks import Task
from mqlab.rocketmq.client.allocate import strategy
from mqlab.rocketmq.wire.message import MessageQueue

GROUP = "billing"
INSTANCES, MOST_SHARE, ORDERS_SHARE = 5, 0.25, 0.8
RING_MEMBERS = ("10.0.0.3@billing-1", "10.0.0.4@billing-2", "10.0.0.5@billing-3")
RING_QUEUES, MANY, NODES = 12, 9, range(11, 31)
LONG_MS = 15_000
LEAST_CHANGES, LEAST_CHURN = 3, 3.0
SHORT_CALL_MS = 100


def _shares(orders: int, refunds: int) -> list[float]:
    """The part of the messages that each of the five gets, by AVG over two topics."""
    shares = [0.0] * INSTANCES
    for queues, part in ((orders, ORDERS_SHARE), (refunds, 1 - ORDERS_SHARE)):
        share, extra = divmod(queues, INSTANCES)
        for number in range(INSTANCES):
            shares[number] += part * (share + (number < extra)) / queues
    return shares


def _is_enough(orders: int, refunds: int) -> bool:
    shares = _shares(orders, refunds)
    return min(shares) > 0 and max(shares) <= MOST_SHARE + 1e-9


def _fewest(_lab: Any) -> int:
    """The smallest sum that works."""
    return min(o + r for o in range(1, 21) for r in range(1, 21) if _is_enough(o, r))


def _queues(lab: Any) -> tuple[int, int]:
    topics = lab.broker().topics
    return int(topics["orders"].read_queue_nums), int(topics["refunds"].read_queue_nums)


def _works_now(lab: Any) -> str:
    """Counted in the learner's run."""
    rows = lab.deliveries(GROUP, absences=False)
    clients = [row.client for row in rows]
    members = [name for name, handle in lab.handles.items() if handle.role == "consumer"]
    shares = [clients.count(name) / len(clients) for name in members]
    if min(shares) > 0 and max(shares) <= MOST_SHARE:
        return ""
    orders, refunds = _queues(lab)
    worst = f"one member has {100 * max(shares):.0f} %" if min(shares) > 0 else "one member has nothing to do"
    return f"In your last run, with {orders} and {refunds} queues, {worst}: change ORDERS and REFUNDS and run it again."


def _as_many_orders(_lab: Any) -> int:
    """Queues added to orders only, until each member has one."""
    return INSTANCES + 1


def _largest(nodes: int) -> int:
    queues = [MessageQueue("orders", "broker-a", number) for number in range(RING_QUEUES)]
    owners = owners_of(strategy("CONSISTENT_HASH", virtual_node_cnt=nodes), queues, RING_MEMBERS)
    return max(counts(RING_MEMBERS, owners).values())


def _unlucky() -> list[int]:
    return [nodes for nodes in NODES if _largest(nodes) >= MANY]


def _is_among(value: object, others: object) -> bool:
    return isinstance(others, list) and value in others


def _overlap_ms(lab: Any) -> int:
    """The longest time for which a queue had two owners at once."""
    spans = lab.queue_owners(GROUP).spans
    longest = 0
    for first, other in combinations(spans, 2):
        if first.queue == other.queue and first.member != other.member:
            ends = [span.until_ms for span in (first, other) if span.until_ms is not None]
            longest = max(longest, min(ends, default=lab.now_ms) - max(first.from_ms, other.from_ms))
    return longest


def _is_long(lab: Any) -> str:
    if _overlap_ms(lab) > LONG_MS:
        return ""
    duration = f"{_overlap_ms(lab) / 1000:.0f} s"
    return f"In your last run the longest time with two owners is {duration}: try another PAUSE from 0 to 20."


def _near(value: object, other: object) -> bool:
    return isinstance(value, int | float) and isinstance(other, int | float) and abs(value - other) <= 1


def _pause(lab: Any) -> float:
    """From the second member's start until the third's, less the half minute in which the group settles."""
    starts = [record.now_ms for record, values in lab.journal.changes("queue.added") if values["client"] == "billing-3"]
    begins = lab.journal[0].now_ms
    return float(round((starts[0] - begins) / 1000) - 32)


def _fewest_of(board: Any) -> int:
    return round(board.moved / board.churn) if board.churn else 0


def _is_bad(board: Any) -> str:
    """The history must be the learner's, and bad."""
    if board.state["strategy"] != "AVG_BY_CIRCLE":
        return "The board shows another strategy: choose AVG_BY_CIRCLE."
    if board.position < LEAST_CHANGES:
        return f"The history has {counted(board.position, 'changes')} so far: it needs {LEAST_CHANGES} or more."
    if (board.churn or 0) < LEAST_CHURN:
        return f"So far {board.churn or 0:.2f} times as many moved as had to: try another history."
    return ""


def _twice(board: Any) -> int:
    return len(board.twice())


def _overlaps(board: Any) -> int:
    return sum(row.what == "two owners" for row in board.overlaps())


def _is_deaf(board: Any) -> str:
    if board.run is None:
        return "The running group has not been played with your settings yet."
    settings = board.run.settings
    if settings.change != "join" or settings.told or settings.orderly:
        return "In your last run the members were told, or another change happened: let a member join, without notices."
    if settings.call_ms != SHORT_CALL_MS:
        return f"In your last run a call took {settings.call_ms} ms: set it to {SHORT_CALL_MS} ms and play it again."
    return ""


def _moves(grid: Any) -> int:
    return sum(len(grid.moved(number)) for number in range(len(grid.moments)))


def _is_circle(grid: Any) -> bool:
    members = grid.moments[0][1]
    return [members[queue] for queue in (0, 1, 2)] == [members[queue] for queue in (3, 4, 5)] and _dealt(grid)


def _dealt(grid: Any) -> bool:
    owners = list(grid.moments[1][1].values())
    return owners[:4] == owners[4:8]


def _not_circle(grid: Any) -> str:
    if _is_circle(grid):
        return "Your last run still has AVG_BY_CIRCLE: change DIVIDE and run the cell again."
    return ""


TASKS = (
    Task(
        "lab03.enough",
        right=_fewest,
        wrong={"ten": lambda lab: 2 * INSTANCES, "orders_only": _as_many_orders, "more": lambda lab: sum(_queues(lab))},
        unready=_works_now,
    ),
    Task("lab03.unlucky", right=_unlucky, wrong={"ten": lambda: 10}, same=_is_among),
    Task(
        "lab03.deaf",
        right=lambda lab: _overlap_ms(lab) / 1000,
        wrong={"pause": _pause},
        unready=_is_long,
        same=_near,
    ),
    Task("lab03.worst", right=lambda board: board.moved, wrong={"needed": _fewest_of}, unready=_is_bad),
    Task("lab03.window", right=_twice, wrong={"queues": _overlaps}, unready=_is_deaf),
    Task("lab03.measured", right=_moves, unready=_not_circle),
)
