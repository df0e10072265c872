"""Lab 11's your-turn tasks: what is right follows from what the learner has chosen.

cut         a body, its first bytes            how many entries can be read
again       calls, a group                     calls next to the first of each message
lost_when   what the Lab saw, a tag            how many of mail's orders with this tag are lost
alone       stores, every so many              ends of calls without a beginning
letters     the written day                    how many of notification's messages are lost
for_nothing the written day, a cause           how many messages came again although they had been done
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.course.given.lab11 import trace_tables as trace
from mqlab.course.given.lab11.played_day import MAIL
from mqlab.course.given.lab11.trace_tables import Row
from mqlab.course.teach.tasks import Task
from mqlab.scales import MINUTE

if TYPE_CHECKING:
    from mqlab.course.given.lab11.written_day import WrittenDay

FIRST_CUT, FIRST_GROUP, FIRST_TAG, FIRST_EVERY = 400, "billing", "created", 10
FIRST_FAILS_MIN = 20
LOST, FILTERED = "lost", "filtered"


def _read(body: bytes, cut: int) -> int:
    return sum(row["reason"] is None for row in trace.read_entries(body[:cut]))


def _still_400(_body: bytes, cut: int) -> str:
    return "these are still 400 bytes: change CUT first" if cut == FIRST_CUT else ""


def _of(rows: Sequence[Row], group: str) -> list[Row]:
    return [row for row in rows if row["group_name"] == group]


def _again(rows: Sequence[Row], group: str) -> int:
    mine = _of(rows, group)
    return len(mine) - len({(row["msg_id"], row["keys"]) for row in mine})


def _retried(rows: Sequence[Row], group: str) -> int:
    return sum(row["retry_times"] > 0 for row in _of(rows, group))


def _still_billing(_told: Sequence[Row], group: str) -> str:
    return "the group is still billing: change GROUP first" if group == FIRST_GROUP else ""


def _mails(lives: Sequence[Any], outcome: str, tag: str | None = None) -> int:
    return sum(row.consumer_group == MAIL and row.outcome == outcome and tag in (None, row.tags) for row in lives)


def _still_created(_lives: Sequence[Any], tag: str) -> str:
    return "the tag is still created: change TAG first" if tag == FIRST_TAG else ""


def _halves(stores: Path, every: int) -> tuple[set[str], set[str]]:
    entries = trace.entries_in(stores, forgets=every)
    began = {row["request_id"] for row in entries if row["kind"] == "SubBefore"}
    return began, {row["request_id"] for row in entries if row["kind"] == "SubAfter"}


def _ends_alone(stores: Path, every: int) -> int:
    began, ended = _halves(stores, every)
    return len(ended - began)


def _begins_alone(stores: Path, every: int) -> int:
    began, ended = _halves(stores, every)
    return len(began - ended)


def _still_ten(_stores: Path, every: int) -> str:
    return "it is still every tenth message: change EVERY first" if every == FIRST_EVERY else ""


def _slowest(rows: Sequence[Row], _group: str) -> int | None:
    if not rows:
        return None
    worst = max(rows, key=lambda row: row["p99_ms"] or 0)
    minute: int = (worst["minute_ms"] - min(row["minute_ms"] for row in rows)) // MINUTE
    return minute


def _still_mail(rows: Sequence[Row], group: str) -> str:
    if not rows:
        return "there are no minutes yet: exercise 4 comes first"
    return "the group is still mail: change GROUP first" if group == MAIL else ""


def _each(every: Sequence[int], fails_min: int) -> float:
    return round(len(every) / (60 * fails_min), 1)


def _still_20(_every: Sequence[int], fails_min: int) -> str:
    return "it still fails for 20 minutes: change FAILS_MIN first" if fails_min == FIRST_FAILS_MIN else ""


NOTIFICATION, A_FEW = "notification", 2
WHAT_REPEATS = {"late": "wrong_reset", "soon": "deploy", "resend": "lost_answer"}  # a cause -> what made it


def _letters(big: WrittenDay) -> int:
    return sum(incident["lost"] for incident in big.truth() if incident["group"] == NOTIFICATION)


def _for_nothing(big: WrittenDay, cause: str) -> int | None:
    if cause not in WHAT_REPEATS:
        return None
    twice: int = sum(incident["twice"] for incident in big.truth() if incident["kind"] == WHAT_REPEATS[cause])
    return twice


def _but_for_a_few(number: object, other: object) -> bool:
    """The diary has two messages fewer that came again soon; both had failed, too, and one of them was stored twice."""
    return isinstance(number, int) and isinstance(other, int) and abs(number - other) <= A_FEW


def _still_retries(_big: WrittenDay, cause: str) -> str:
    names = ", ".join(WHAT_REPEATS)
    return "" if cause in WHAT_REPEATS else f"the cause is {cause}: change CAUSE first, to one of {names}"


TASKS = (
    Task("lab11.cut", right=_read, unready=_still_400, wrong={"rows": lambda body, cut: _read(body, cut) + 1}),
    Task(
        "lab11.again",
        right=_again,
        unready=_still_billing,
        wrong={"retries": _retried, "all": lambda rows, group: len(_of(rows, group))},
    ),
    Task(
        "lab11.lost_when",
        right=lambda lives, tag: _mails(lives, LOST, tag),
        unready=_still_created,
        wrong={"filtered": lambda lives, _: _mails(lives, FILTERED), "all": lambda lives, _: _mails(lives, LOST)},
    ),
    Task("lab11.slow_minute", right=_slowest, unready=_still_mail),
    Task("lab11.longer", right=_each, unready=_still_20, wrong={"all": lambda every, _: len(every)}),
    Task("lab11.letters", right=_letters),
    Task("lab11.for_nothing", right=_for_nothing, unready=_still_retries, same=_but_for_a_few),
    Task("lab11.alone", right=_ends_alone, unready=_still_ten, wrong={"begun": _begins_alone}),
)
