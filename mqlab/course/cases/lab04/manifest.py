"""What lab 04 asks: how far a group has read, in three memories, and six exercises about what is lost between them.

    lab04.committed       a history                        ─▶ the offset that the broker holds
    lab04.crash_cost      times of work, reports, files    ─▶ the orders that are paid twice
    lab04.process_queue   a class                          ─▶ in a consumer that dies at any step
    lab04.plan_reset      stats, progress, a search        ─▶ what a reset by time would do
    lab04.once            a listener and a database        ─▶ charged once, whatever dies
    lab04.rescue          a group that does not move       ─▶ moves again, and nothing is lost

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from mqlab.course.cases.lab04.crash_cost import CRASH_COST
from mqlab.course.cases.lab04.offsets import COMMITTED
from mqlab.course.cases.lab04.once import ONCE
from mqlab.course.cases.lab04.own_queue import PROCESS_QUEUE
from mqlab.course.cases.lab04.rescue import RESCUE
from mqlab.course.cases.lab04.resets import PLAN_RESET
from mqlab.course.cases.lab04.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (COMMITTED, CRASH_COST, PROCESS_QUEUE, PLAN_RESET, ONCE, RESCUE)

MANIFEST = Manifest("lab04", predictions_of("lab04"), EXERCISES, tasks=TASKS)
