"""Hidden cases of lab 00: how many seeded days each exercise is judged by, and days that are special.

The known-wrong answers are in wrong/lab00.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.lab.lab import Lab, play
from mqlab.teach.cases.lab00.days import GROUPS
from mqlab.teach.cases.story_parts import one_queue, reader
from mqlab.teach.exercises import Answers, Case, Finding
from mqlab.wire.message import Message

SEEDED = {"lab00.find": 4, "lab00.timeline": 3, "lab00.crash": 4}


def _quiet_day(lab: Lab) -> None:
    """Both groups are there, nothing is ever sent; after a minute both processes end at once."""
    one_queue(lab, "orders")
    for group in GROUPS:
        reader(lab, group, "orders", lambda: 5)
    lab.run_for("1m")


def _stand_on_a_quiet_day(answers: Answers) -> Finding | None:
    lab = play(_quiet_day, seed=5)
    for group in GROUPS:
        lab.kill(f"{group}-1")
    right = dict.fromkeys(GROUPS, 0)
    found = answers["stand"](lab.timeline().table().to_dicts(), list(GROUPS))
    if found != right:
        return Finding("A group to which nothing was delivered stands at the beginning", "both groups", right, found)
    return None


def _nobody_reads(lab: Lab) -> None:
    """An order and no reader: neither entry nor unit depends on anybody having read it."""
    one_queue(lab, "orders")
    lab.producer("shop").send(Message("orders", "пока никто".encode()))
    lab.run_for("1m")


def _day_without_readers(answers: Answers) -> Finding | None:
    lab = play(_nobody_reads, seed=6)
    (message,) = lab.store().messages("orders")
    right = (message.store_timestamp, None, None)
    found = answers["read_day"](lab.timeline().table().to_dicts(), message.msg_id, "audit")
    if found != right:
        return Finding("What did not happen is None", "a message that no group has read", right, found)
    return None


HIDDEN = {
    "lab00.timeline": (Case("a day without readers", _day_without_readers),),
    "lab00.crash": (Case("a day without orders", _stand_on_a_quiet_day),),
}
