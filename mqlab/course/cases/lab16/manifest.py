"""What lab 16 asks: a broker of your own, part by part. docs/your-broker.md says what each part is called with.

    lab16.next_place where the next unit of a log begins       lab16.holds   whether a pull waits
    lab16.store      class MyStore(disk)                      a log and its queues
    lab16.pulls      class MyPulls(store)                     answered, or held
    lab16.groups     class MyGroups(disk)                     members and offsets
    lab16.retries    class MyRetries(store, disk, delays_ms)  sent back, due, dead
    lab16.handlers   table HANDLERS                           six codes on the wire

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from mqlab.course.cases.lab16.crash_and_wire_tasks import TASKS_OF_CRASHES, TASKS_ON_THE_WIRE
from mqlab.course.cases.lab16.groups import GROUPS
from mqlab.course.cases.lab16.handlers import HANDLERS
from mqlab.course.cases.lab16.holding import HOLDS
from mqlab.course.cases.lab16.placing import NEXT_PLACE
from mqlab.course.cases.lab16.pulls import PULLS
from mqlab.course.cases.lab16.retries import RETRIES
from mqlab.course.cases.lab16.store import STORE
from mqlab.course.cases.lab16.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

EXERCISES = (STORE, PULLS, GROUPS, RETRIES, HANDLERS)
"""Those that are parts of a broker."""

MANIFEST = Manifest(
    "lab16",
    predictions_of("lab16"),
    (NEXT_PLACE, STORE, HOLDS, PULLS, *EXERCISES[2:]),
    tasks=(*TASKS, *TASKS_OF_CRASHES, *TASKS_ON_THE_WIRE),
)
