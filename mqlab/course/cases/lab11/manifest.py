"""What lab 11 asks: entries of a trace, calls, what became of each message, when it was slow, why it came again.

    lab11.entries    a body                       ─▶ its entries, a row each
    lab11.calls      all entries                  ─▶ a row for each call and message in it
    lab11.life       messages, calls, offsets     ─▶ a row for each order and group
    lab11.slow_when  messages, a group's calls    ─▶ percentiles and what is not done, by the minute of storing
    lab11.why_again  messages, calls              ─▶ a cause for each call
    lab11.storm      messages                     ─▶ the share of retries, by the minute

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's source.
"""

from __future__ import annotations

from mqlab.course.cases.lab11.again import WHY_AGAIN
from mqlab.course.cases.lab11.bodies import ENTRIES
from mqlab.course.cases.lab11.calls import CALLS
from mqlab.course.cases.lab11.latency import SLOW_WHEN
from mqlab.course.cases.lab11.life import LIFE
from mqlab.course.cases.lab11.storm import STORM
from mqlab.course.cases.lab11.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (ENTRIES, CALLS, LIFE, SLOW_WHEN, WHY_AGAIN, STORM)

MANIFEST = Manifest("lab11", predictions_of("lab11"), EXERCISES, tasks=TASKS)
