"""Python's garbage collector runs less often while a world is played or a journal is read.

    every 700 new objects ─▶ every 5,000, older ones every 500,000      cycles are still found

Almost all objects created meanwhile are kept (records, changes, rows), so most collections would find nothing. 5,000
new objects are still in the processor's cache when they are looked at, which makes a look half as long as at 50,000.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 5_000
YOUNG_COLLECTIONS = 100  # before one that also looks at what they have kept


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Raise the number of new objects between two collections; one that is off, or runs more rarely, stays so.

    >>> with collecting_rarely(): gc.get_threshold()[0] >= NEW_OBJECTS
    True
    """
    before = gc.get_threshold()
    if 0 < before[0] < NEW_OBJECTS:
        gc.set_threshold(NEW_OBJECTS, max(before[1], YOUNG_COLLECTIONS), before[2])
    try:
        yield
    finally:
        gc.set_threshold(*before)
