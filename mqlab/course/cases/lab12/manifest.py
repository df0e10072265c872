"""What lab 12 asks: a stream over stores that grow, a sink that is killed, and how far groups are behind.

    lab12.begin      a moment, bytes        ─▶ the options and the trigger of a stream
    lab12.once       a batch, again         ─▶ a table that has each message once, wherever the process dies
    lab12.lag_now    messages, offsets      ─▶ how far behind each group is, in messages and in seconds

    part b, over films: a stream and how late things come ─▶ a DataFrame and its output mode
    lab12.per_minute        messages        ─▶ counts by minute and broker
    lab12.without_repeats   messages        ─▶ each message once
    lab12.no_answer         trace entries   ─▶ calls of listeners that got no answer

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's source.
"""

from __future__ import annotations

from mqlab.course.cases.lab12.begin import BEGIN
from mqlab.course.cases.lab12.lag import LAG_NOW
from mqlab.course.cases.lab12.no_answer import NO_ANSWER
from mqlab.course.cases.lab12.once import ONCE
from mqlab.course.cases.lab12.per_minute import PER_MINUTE
from mqlab.course.cases.lab12.repeats import WITHOUT_REPEATS
from mqlab.course.cases.lab12.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (BEGIN, ONCE, LAG_NOW, PER_MINUTE, WITHOUT_REPEATS, NO_ANSWER)

MANIFEST = Manifest("lab12", predictions_of("lab12"), EXERCISES, tasks=TASKS)
