"""What lab 01 asks: predictions that common beliefs get wrong, and six exercises over the bytes of a broker's files.

    lab01.unit     bytes of the log               ─▶ the fields of a unit
    lab01.tags     a text                         ─▶ the tag code of an entry
    lab01.lookup   a group's offset, two folders  ─▶ the message it reads next, and the offset after that
    lab01.index    an index file and a key        ─▶ places in the log, newest first
    lab01.torn     a log after a power cut        ─▶ where it ends
    lab01.rebuild  the units of a log             ─▶ a lost consume queue

The exercises are in reading, index_chain and recovering, the files that they read in files. Hidden cases and known-
wrong answers are in solutions/grading. Questions, titles, hints and notes are in the lab's sources, your-turn tasks
in tasks.
"""

from __future__ import annotations

from mqlab.course.cases.lab01.index_chain import INDEX
from mqlab.course.cases.lab01.reading import LOOKUP, TAGS, UNIT
from mqlab.course.cases.lab01.recovering import REBUILD, TORN
from mqlab.course.cases.lab01.tasks import TASKS
from mqlab.course.teach.exercises import Manifest
from mqlab.course.teach.predictions import predictions_of

MANIFEST = Manifest("lab01", predictions_of("lab01"), (TAGS, UNIT, LOOKUP, INDEX, REBUILD, TORN), tasks=TASKS)
