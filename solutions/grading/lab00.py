"""Hidden cases of lab 00: how many seeded days each exercise is judged by, and days that are special.

The known-wrong answers are in wrong/lab00.*.diff, one file per exercise.
"""

from __future__ import annotations

from mqlab.course.cases.lab00.days import GROUPS, killed
from mqlab.course.cases.story_parts import one_queue, reader
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Call, exercise
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.wire.message import Message

SEEDED = {"lab00.unread": 4, "lab00.find": 4, "lab00.timeline": 3, "lab00.crash": 4}


def _quiet_day(lab: Lab) -> None:
    """Both groups are there, nothing is ever sent; after a minute both processes end at once."""
    one_queue(lab, "orders")
    for group in GROUPS:
        reader(lab, group, "orders", lambda: 5)
    lab.run_for("1m")


def _nobody_reads(lab: Lab) -> None:
    """An order and no reader: neither entry nor unit depends on a read."""
    one_queue(lab, "orders")
    lab.producer("shop").send(Message("orders", "пока никто".encode()))
    lab.run_for("1m")


def _unread(seed: int) -> list[Call]:
    lab = play(_nobody_reads, seed=seed)
    (message,) = lab.store().messages("orders")
    rows, right = lab.timeline().table().to_dicts(), (message.store_timestamp, None, None)
    about = "What did not happen is None: a message that no group has read"
    return [Call(rows=rows, msg_id=message.msg_id, group="audit", right=right, about=about)]


def _quiet(seed: int) -> list[Call]:
    return [killed(play(_quiet_day, seed=seed), GROUPS)]


FROM_SEED = {
    "lab00.timeline": variants(exercise("lab00.timeline"), Variant("a day without readers", _unread)),
    "lab00.crash": variants(exercise("lab00.crash"), Variant("a day without orders", _quiet)),
}
