"""What lab 15 asks: messages on lease, and how they come back.

    lab15.out_now         pops, acks, a moment                  ─▶ what is out, and until when
    lab15.lease_table     leases in a log, a crash anywhere     ─▶ what is over, each once
    lab15.invisible_for   work times, deaths, prices            ─▶ how long a lease should be
    lab15.revive          check points and acks of a log        ─▶ what goes to the retry topic

Hidden cases and known-wrong answers: solutions/grading. Questions, titles, hints and notes are in the lab's sources.
"""

from __future__ import annotations

from mqlab.course.cases.lab15.invisible import INVISIBLE_FOR
from mqlab.course.cases.lab15.out_now import OUT_NOW
from mqlab.course.cases.lab15.reviving import REVIVE
from mqlab.course.cases.lab15.table import LEASE_TABLE
from mqlab.course.cases.lab15.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

MANIFEST = Manifest("lab15", predictions_of("lab15"), (OUT_NOW, LEASE_TABLE, INVISIBLE_FOR, REVIVE), tasks=TASKS)
