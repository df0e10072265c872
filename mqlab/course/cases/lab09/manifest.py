"""What lab 09 asks: how much a group can do, and how long it is behind.

    lab09.threads     cores and the two times of a call        ─▶ the knee: threads, and calls a second there
    lab09.catch_up    a curve of traffic and a capacity        ─▶ the largest lag, and when it is gone
    lab09.size        a curve, a goal and a budget             ─▶ instances and threads; the day is played with them
    lab09.bottleneck  what a monitor has of four groups        ─▶ the limit of each, and the row that proves it
    lab09.safe_async  send and print_page                      ─▶ two listeners; nothing is lost wherever one dies
    lab09.brake       ask, now, usual_ms, most_waiting         ─▶ a listener that asks as much as a database can do

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from mqlab.course.cases.lab09.bottleneck import BOTTLENECK
from mqlab.course.cases.lab09.brake import BRAKE
from mqlab.course.cases.lab09.capacity import THREADS
from mqlab.course.cases.lab09.catching import CATCH_UP
from mqlab.course.cases.lab09.sizing import SIZE
from mqlab.course.cases.lab09.splitting import SAFE_ASYNC
from mqlab.course.cases.lab09.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (THREADS, CATCH_UP, SIZE, BOTTLENECK, SAFE_ASYNC, BRAKE)

MANIFEST = Manifest("lab09", predictions_of("lab09"), EXERCISES, tasks=TASKS)
