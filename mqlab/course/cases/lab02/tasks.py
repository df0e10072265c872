"""Lab 02's your-turn tasks: what is right is counted in the learner's own world, or on the board.

    in_vain  healed  spread      the first part: a board, a cable that is replaced, a topic on all brokers
    ban  no_retry  flush         the second part: a longer ban, one attempt, a power cut
    fewest_move  perm_two  back_again    the third part: numbers of queues, a permission, a repair

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.lab02.clusters import TOPIC
from mqlab.course.teach.tasks import Task

BROKERS = ("broker-a", "broker-b", "broker-c")
CUT_MS, FEW = 60_000, 3
EIGHT, FEWEST = 8, 250  # queues; orders of 400 that move at least, whatever the number of queues


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
        return f"Your cable is out for {(healed_ms - cut_ms) / 1000:.0f} s: make it at least a minute."
    if lab.waiting > FEW:
        return f"With your CUT_FOR {counted(lab.waiting, 'orders')} waited: take a shorter one, and run the cell again."
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


def _slowest_ms(lab: Any) -> int:
    return int(max(ms for _, ms in lab.sends))


def _five_seconds(lab: Any) -> str:
    if 1_800 <= _slowest_ms(lab) < 3_000:
        return ""
    return f"The longest answer of your last run took {_slowest_ms(lab)} ms: five seconds are for 1,800 ms up to 3,000."


def _to_broker_b(lab: Any) -> int:
    return sum(broker == BROKERS[1] for broker, _ in lab.sends)


def _one_attempt(lab: Any) -> str:
    attempts = sum(change.kind == "message.sent" for record in lab.journal[lab.first :] for change in record.changes)
    if attempts == 1:
        return ""
    return f"In your last run the send makes {attempts} attempts: change the setting and run the cell again."


def _all_survive(lab: Any) -> str:
    there = sum(1 for _ in lab.store().messages(TOPIC))
    if there == len(lab.told):
        return ""
    return f"In your last run {there} of {len(lab.told)} orders are there after the power cut: change FLUSH first."


SECOND_PART = (
    Task("lab02.ban", right=_to_broker_b, wrong={"two": lambda lab: 7}, unready=_five_seconds),
    Task("lab02.no_retry", right=lambda lab: lab.said, wrong={"ok": lambda lab: "SEND_OK"}, unready=_one_attempt),
    Task("lab02.flush", right=lambda lab: 0, wrong={"five": lambda lab: len(lab.told)}, unready=_all_survive),
)


def _changed(eight: Mapping[str, int], other: Mapping[str, int]) -> str:
    if max(other.values()) < EIGHT:
        return "Eight queues are not enough: take an AFTER from 9 to 32."
    moved = sum(eight[key] != other[key] for key in eight)
    if moved > FEWEST:
        return f"With your AFTER {moved} of {len(eight)} orders move: there is a number with which fewer do."
    return ""


def _shop_goes_on(lab: Any) -> str:
    if all(row["the shop is told"] == "SEND_OK" for row in lab.said) and lab.read < len(lab.said):
        return ""
    outcome = lab.said[-1]["the shop is told"]
    return (
        f"In your last run the shop is told {outcome!r} in the end, "
        f"and {counted(lab.read, 'orders are read', 'order is read')}."
    )


def _reads_all(lab: Any) -> str:
    if lab.left == 0:
        return ""
    return (
        f"In your last run {counted(lab.left, 'orders are left', 'order is left')}: change READ and run the cell again."
    )


THIRD_PART = (
    Task(
        "lab02.fewest_move",
        right=lambda eight, other: 16,
        wrong={"nine": lambda eight, other: 9},
        unready=_changed,
    ),
    Task(
        "lab02.perm_two",
        right=lambda lab: 2,
        wrong={"four": lambda lab: 4, "both": lambda lab: 6},
        unready=_shop_goes_on,
    ),
    Task(
        "lab02.back_again",
        right=lambda lab: lab.left,
        wrong={"before": lambda lab: len(lab.unread)},
        unready=_reads_all,
    ),
)
TASKS = (*FIRST_PART, *SECOND_PART, *THIRD_PART)
