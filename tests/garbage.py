"""Python's garbage collector runs less often in the processes of tests: it took an eighth of their time.

A test plays a world and drops it. Collections after every 700 new objects, and between two tests after those of a whole
world, find nothing that cannot wait; the memory of a worker grows by 100 MB.
"""

from __future__ import annotations

import atexit
import gc
import os

NEW_OBJECTS, YOUNG, OLDER = 50_000, 20, 20


def collect_rarely() -> None:
    """For as long as this process, and those that it forks, live."""
    gc.set_threshold(NEW_OBJECTS, YOUNG, OLDER)


def end_at_once() -> None:
    """Let this process end as soon as what it registers for its end, from now on, has run.

    Python would look through all that the tests have left, several times, for ten seconds.
    """
    atexit.register(os._exit, 0)  # what is registered first runs last
