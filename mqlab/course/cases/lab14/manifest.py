"""What lab 14 asks: a message's way through a day, a short schedule, the first wrong step, and three findings.

    lab14.follow             rows of a day, an id    ─▶ the steps that are about this message
    lab14.shrink             events, fails           ─▶ the few events without which nothing goes wrong
    lab14.first_wrong_step   rows of a day           ─▶ which rule is broken first, and at which step
    lab14.finding            three clusters          ─▶ day, step and rule for each, found by hand

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's source.
"""

from __future__ import annotations

from mqlab.course.cases.lab14.findings import FINDING
from mqlab.course.cases.lab14.first_step import FIRST_WRONG_STEP
from mqlab.course.cases.lab14.following import FOLLOW
from mqlab.course.cases.lab14.shortening import SHRINK
from mqlab.course.cases.lab14.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (FOLLOW, SHRINK, FIRST_WRONG_STEP, FINDING)

MANIFEST = Manifest("lab14", predictions_of("lab14"), EXERCISES, tasks=TASKS)
