"""What lab 08 asks: messages that come later, and messages that come only if something else has happened.

    lab08.due             what a broker has on its disk       ─▶ when delayed messages come, and which come again
    lab08.any_delay       a relay                             ─▶ any delay out of eighteen levels
    lab08.cancel_unpaid   a listener and a database           ─▶ cancelled or paid, never both
    lab08.outbox_or_half  orders, declined, died              ─▶ what an outbox and half messages cost
    lab08.transaction     a transaction listener and a table  ─▶ money and message, or neither
    lab08.due_at          a second, wheel and timer log       ─▶ where its messages wait
    lab08.rebuild         the bytes of a timer log            ─▶ the wheel that was lost

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from mqlab.course.cases.lab08.cancelling import CANCEL_UNPAID
from mqlab.course.cases.lab08.commits import TRANSACTION
from mqlab.course.cases.lab08.counting import OUTBOX_OR_HALF
from mqlab.course.cases.lab08.delays import DUE
from mqlab.course.cases.lab08.relay import ANY_DELAY
from mqlab.course.cases.lab08.tasks import TASKS
from mqlab.course.cases.lab08.wheel import DUE_AT, REBUILD_WHEEL
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (DUE, ANY_DELAY, CANCEL_UNPAID, OUTBOX_OR_HALF, TRANSACTION, DUE_AT, REBUILD_WHEEL)

MANIFEST = Manifest("lab08", predictions_of("lab08"), EXERCISES, tasks=TASKS)
