"""What lab 07 asks: predictions that five beliefs about failure get wrong, and six exercises over days that go wrong.

    lab07.rewrite   a message that failed         ─▶ the unit that the broker writes for it
    lab07.schedule  a table of levels, a limit    ─▶ level and second of every retry
    lab07.redrive   dead letters, a producer      ─▶ back to their group, once each
    lab07.three     a bank that refuses           ─▶ a listener: three deliveries, then a human
    lab07.stuck     a bank that hangs             ─▶ a listener that holds no other message up
    lab07.killer    an order that kills billing   ─▶ a listener that remembers across its own death

The exercises are in retries, redrive and listeners, their days in days and bank. Hidden cases and known-wrong answers
are in solutions/grading. Questions, titles, hints and notes are in the lab's sources, your-turn tasks in tasks.
"""

from __future__ import annotations

from mqlab.course.cases.lab07 import listeners, retries
from mqlab.course.cases.lab07.redrive import REDRIVE
from mqlab.course.cases.lab07.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (
    retries.SCHEDULE,
    retries.REWRITE,
    REDRIVE,
    listeners.THREE,
    listeners.STUCK,
    listeners.KILLER,
)

MANIFEST = Manifest("lab07", predictions_of("lab07"), EXERCISES, tasks=TASKS)
