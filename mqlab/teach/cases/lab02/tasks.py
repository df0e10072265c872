"""Lab 02's your-turn tasks: what is right is counted in the learner's own world, or on the board.

    in_vain  healed  spread     the first part: a board, a cable that is replaced, a topic on all brokers

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from typing import Any

from mqlab.teach.cases.lab02.clusters import TOPIC
from mqlab.teach.tasks import Task

BROKERS = ("broker-a", "broker-b", "broker-c")
CUT_MS, FEW = 60_000, 3


def _learns_within_ten(board: Any) -> str:
    now = board.settings
    if now.happens != "kill" or now.name_servers != 1:
        return "The question is about a broker that is killed, and one name server: set those on the board."
    learned = board.learned()["shop"]
    if learned is None or learned > 10:
        return f"On your board the shop learns of it after {learned} s: let clients ask more often."
    return ""


def _cut(lab: Any) -> tuple[int, int]:
    """When the cable failed and when it was replaced."""
    return lab.journal.of("fault.partition")[0].now_ms, lab.journal.of("fault.heal")[0].now_ms


def _a_minute_and_few(lab: Any) -> str:
    cut_ms, healed_ms = _cut(lab)
    if healed_ms - cut_ms < CUT_MS:
        return f"Your cable is out for {(healed_ms - cut_ms) / 1000:.0f} s: let it be a minute at least."
    if lab.waiting > FEW:
        return f"With your CUT_FOR {lab.waiting} orders waited: take a shorter one, and run the cell again."
    return ""


def _on_all(lab: Any) -> str:
    there = [name for name in BROKERS if lab.broker(name).topics.get(TOPIC)]
    if len(there) == len(BROKERS):
        return ""
    return f"In your last run the topic is on {', '.join(there)} only: change ORDERS and run the cell again."


def _orders(lab: Any) -> int:
    return sum(1 for name in BROKERS for _ in lab.store(name).messages(TOPIC))


FIRST_PART = (
    Task(
        "lab02.in_vain",
        right=lambda board: board.wasted,
        wrong={"thirty": lambda board: 6, "none": lambda board: 0},
        unready=_learns_within_ten,
    ),
    Task(
        "lab02.healed",
        right=lambda lab: lab.waiting,
        wrong={"many": lambda lab: 55},
        unready=_a_minute_and_few,
    ),
    Task("lab02.spread", right=_orders, wrong={"three": lambda lab: 3, "many": lambda lab: 20}, unready=_on_all),
)
TASKS = FIRST_PART
