"""What lab 05 asks: many at a time, one at a time, and five exercises about what must not overtake what.

    lab05.partial            what was charged of a batch  ─▶ status and ack_index
    lab05.life_of_an_order   a sender and a reader        ─▶ created, paid, shipped, through a join and a crash
    lab05.manual             a listener                   ─▶ invoices that are booked as a whole
    lab05.poisoned           a listener and a database    ─▶ a head that never succeeds is parked, with its order
    lab05.lanes              a listener                   ─▶ many orders of one queue at once

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from mqlab.course.cases.lab05.lanes import LANES
from mqlab.course.cases.lab05.life import LIFE_OF_AN_ORDER
from mqlab.course.cases.lab05.manual import MANUAL
from mqlab.course.cases.lab05.parking import POISONED
from mqlab.course.cases.lab05.partial import PARTIAL
from mqlab.course.cases.lab05.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (PARTIAL, LIFE_OF_AN_ORDER, MANUAL, POISONED, LANES)

MANIFEST = Manifest("lab05", predictions_of("lab05"), EXERCISES, tasks=TASKS)
