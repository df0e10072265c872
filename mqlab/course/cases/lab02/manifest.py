"""What lab 02 asks: where a message goes, who knows it, and five exercises about routes, sends and queues.

    lab02.believes      what reached the name server  ─▶ the brokers that a client believes in
    lab02.strategy      a class                       ─▶ in a producer whose brokers slow down
    lab02.outbox        a class and a database        ─▶ orders and messages that agree, whatever dies
    lab02.selector      two functions                 ─▶ one queue per order, and who moves
    lab02.scale_in      a story                       ─▶ eight queues of sixteen, under traffic

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from mqlab.course.cases.lab02.believes import BELIEVES
from mqlab.course.cases.lab02.outbox import OUTBOX
from mqlab.course.cases.lab02.scale_in import SCALE_IN
from mqlab.course.cases.lab02.selector import SELECTOR
from mqlab.course.cases.lab02.strategy import STRATEGY
from mqlab.course.cases.lab02.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (BELIEVES, STRATEGY, OUTBOX, SELECTOR, SCALE_IN)

MANIFEST = Manifest("lab02", predictions_of("lab02"), EXERCISES, tasks=TASKS)
