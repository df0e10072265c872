"""Python's garbage collector looks less often while a world is played or a journal is read.

Mirrors: nothing in RocketMQ. No lab opens it.

    every 700 new objects ─▶ every 50,000      a fifth of a long run's time; cycles are still found

Almost everything made then is kept (records, changes, rows), so most looks are in vain.
Left out: switching the collector off.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 50_000


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Raise the number of new objects between two looks; a collector that is off, or rarer, stays as it is.

    >>> with collecting_rarely(): gc.get_threshold()[0] in (0, NEW_OBJECTS)
    True
    """
    before = gc.get_threshold()
    if 0 < before[0] < NEW_OBJECTS:
        gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
