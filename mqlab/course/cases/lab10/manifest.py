"""What lab 10 asks: predictions about a day of traffic, and six exercises over the DataFrames of a broker's store.

    lab10.options    what a query uses          ─▶ the options of a read that decodes no more
    lab10.fullest    all messages               ─▶ the fullest queue of each topic
    lab10.busiest    all messages               ─▶ the customers with the most events
    lab10.cost       all messages, some tags    ─▶ what each queue costs a group that wants them
    lab10.parts      all messages               ─▶ even parts of whole orders
    lab10.failures   all messages               ─▶ messages and copies that came back, for each group

The exercises are in reads, counting and parts, their stores in days, your-turn tasks in tasks. Hidden cases and
known-wrong answers are in solutions/grading. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from mqlab.course.cases.lab10.counting import BUSIEST, COST, FAILURES, FULLEST
from mqlab.course.cases.lab10.parts import IN_PARTS
from mqlab.course.cases.lab10.reads import OPTIONS_OF_A_READ
from mqlab.course.cases.lab10.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (OPTIONS_OF_A_READ, FULLEST, BUSIEST, COST, IN_PARTS, FAILURES)

MANIFEST = Manifest("lab10", predictions_of("lab10"), EXERCISES, tasks=TASKS)
