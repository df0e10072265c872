"""What lab 13 asks: a day on which three things went wrong, found out from its disks.

    lab13.when     whom one incident harmed  ─▶ from when to when
    lab13.whom     a day, its calendar       ─▶ the messages that were lost, late or given twice
    lab13.why      a finding                 ─▶ the processes that did it, if processes did
    lab13.triage   a day                     ─▶ what went wrong, the most harmful first
    lab13.repair   a day, what went wrong    ─▶ a plan, which is carried out in a Lab
    lab13.alarm    what is known so far      ─▶ whether to ring

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's source.
"""

from __future__ import annotations

from mqlab.course.cases.lab13.alarm import ALARM
from mqlab.course.cases.lab13.repair import REPAIR
from mqlab.course.cases.lab13.tasks import TASKS
from mqlab.course.cases.lab13.triage import TRIAGE
from mqlab.course.cases.lab13.when import WHEN
from mqlab.course.cases.lab13.whom import WHOM
from mqlab.course.cases.lab13.why import WHY
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (WHEN, WHOM, WHY, TRIAGE, REPAIR, ALARM)

MANIFEST = Manifest("lab13", predictions_of("lab13"), EXERCISES, tasks=TASKS)
