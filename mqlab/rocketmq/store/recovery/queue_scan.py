"""How many units of a consume queue file are plausible: the loop of recovery, and the same with numpy for full files.

Mirrors: the loops of ConsumeQueue.recover and truncateDirtyLogicFiles. Tests compare the two.

    (0, 177, tag) (177, 180, tag) (357, 177, tag) (0, 0, 0) (0, 0, 0) ...
    ├──────────── plausible: 3 ───────────────┤   offset >= 0, size > 0, offset below the end of the log

Where numpy is not installed, the loop does all of it. Left out: numpy at import time.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec

from mqlab.rocketmq.wire.units import CQ_UNIT, CQ_UNIT_SIZE, PREBLANK_SIZE

WORTH_IT = 5_000  # units
NO_LIMIT = 1 << 63


@functools.cache
def numpy_is_installed() -> bool:
    """Whether recovery may work on whole files at once; without numpy it reads unit by unit, with the same result."""
    return find_spec("numpy") is not None


def plausible_units(view: memoryview, limit: int = NO_LIMIT) -> tuple[int, int]:
    """(number of plausible units from the first on, number of those up to the last that is not a pre-blank unit)."""
    if len(view) > WORTH_IT * CQ_UNIT_SIZE and _is_plausible(view, WORTH_IT, limit) and numpy_is_installed():
        return _plausible_units_with_numpy(view, limit)
    return plausible_units_one_by_one(view, limit)


def _is_plausible(view: memoryview, number: int, limit: int) -> bool:
    physical_offset, size, _ = CQ_UNIT.unpack_from(view, number * CQ_UNIT_SIZE)
    return bool(0 <= physical_offset < limit and size > 0)


def plausible_units_one_by_one(view: memoryview, limit: int) -> tuple[int, int]:
    """The same without numpy."""
    plausible = real = 0
    for physical_offset, size, _ in CQ_UNIT.iter_unpack(view):
        if physical_offset < 0 or size <= 0 or physical_offset >= limit:
            break
        plausible += 1
        if size != PREBLANK_SIZE:
            real = plausible
    return plausible, real


def _plausible_units_with_numpy(view: memoryview, limit: int) -> tuple[int, int]:
    import numpy as np

    units = np.frombuffer(view, dtype=[("physical_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
    offsets, sizes = units["physical_offset"], units["size"]
    bad = (offsets < 0) | (sizes <= 0)
    if limit < NO_LIMIT:
        bad |= offsets >= limit
    plausible = int(bad.argmax()) if bad.any() else len(units)
    real = np.flatnonzero(sizes[:plausible] != PREBLANK_SIZE)
    return plausible, int(real[-1]) + 1 if len(real) else 0
