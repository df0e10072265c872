"""What lab 06 asks: predictions about tags, pulls and scans, and six exercises.

    lab06.collide       a tag                            ─▶ another one with the same hash code
    lab06.who_gets      members, tags, versions          ─▶ what each receives, and what none does
    lab06.detector      the admin, every 10 s            ─▶ members whose subscriptions differ for good
    lab06.scan          the tags of a queue              ─▶ each pull: what it finds, where the next begins
    lab06.three_valued  a parsed filter, properties      ─▶ True, False, or unknown
    lab06.migrate       a group under traffic            ─▶ from paid to paid || shipped, and no order lost

Each is in a module of its own, with what makes its cases. Hidden cases, known-wrong answers: solutions/grading.
Questions, titles, hints and notes are in the lab's sources, your-turn tasks in tasks.
"""

from __future__ import annotations

from mqlab.course.cases.lab06.collide import COLLIDE
from mqlab.course.cases.lab06.detector import DETECTOR
from mqlab.course.cases.lab06.migrate import MIGRATE
from mqlab.course.cases.lab06.scan import SCAN
from mqlab.course.cases.lab06.tasks import TASKS
from mqlab.course.cases.lab06.three_valued import THREE_VALUED
from mqlab.course.cases.lab06.who_gets import WHO_GETS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (COLLIDE, WHO_GETS, DETECTOR, SCAN, THREE_VALUED, MIGRATE)

MANIFEST = Manifest("lab06", predictions_of("lab06"), EXERCISES, tasks=TASKS)
