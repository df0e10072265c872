"""What lab 00 asks about worlds that the learner has changed.

lab00.lives      billing lives longer before it is killed; how many orders does it get again?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.teach.tasks import Task

if TYPE_CHECKING:
    from mqlab.lab.lab import Lab

SHORT_LIFE_MS = 4_000


def _killed_ms(lab: Lab) -> int:
    return int(lab.journal.of("fault.killed")[0].now_ms)


def _again(lab: Lab) -> int:
    return sum(row.started_ms > _killed_ms(lab) for row in lab.deliveries("billing"))


def _in_both_lives(lab: Lab) -> int:
    return len(lab.deliveries("billing"))


def _still_short(lab: Lab) -> str:
    began = min(row.started_ms for row in lab.deliveries("billing"))
    return "give billing a longer life first: change LIVES" if _killed_ms(lab) - began < SHORT_LIFE_MS else ""


TASKS = (Task("lab00.lives", right=_again, wrong={"both": _in_both_lives}, unready=_still_short),)
