"""What lab 03 asks: predictions that beliefs about rebalance get wrong, and eight exercises.

    lab03.average  circle  ring    queues, members, me      ─▶ my queues, as RocketMQ's classes answer
    lab03.fairness  churn          moments of a group       ─▶ how uneven, and how much moved beyond what had to
    lab03.sticky                   queues, members          ─▶ a strategy for real consumers that moves little
    lab03.twins                    admin, groups            ─▶ the processes that have one client id
    lab03.two_owners               a Lab                    ─▶ a story: one message is with two members at a time

The exercises are in allocation, numbers, sticky, twins and two_owners; histories and vectors are what they are judged
by. Hidden cases and known-wrong answers are in solutions/grading. Questions, titles, hints and notes are in the lab's
sources, your-turn tasks in tasks.
"""

from __future__ import annotations

from mqlab.course.cases.lab03 import allocation, numbers
from mqlab.course.cases.lab03.sticky import STICKY
from mqlab.course.cases.lab03.tasks import TASKS
from mqlab.course.cases.lab03.twins import TWINS
from mqlab.course.cases.lab03.two_owners import TWO_OWNERS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (
    allocation.AVERAGE,
    allocation.CIRCLE,
    numbers.FAIRNESS,
    numbers.CHURN,
    allocation.RING,
    STICKY,
    TWINS,
    TWO_OWNERS,
)

MANIFEST = Manifest("lab03", predictions_of("lab03"), EXERCISES, tasks=TASKS)
