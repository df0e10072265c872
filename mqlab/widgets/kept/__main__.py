"""Writes the files of all boards again: ``python -m mqlab.widgets.kept``."""

from __future__ import annotations

from mqlab.widgets.allocation.handover import KEPT as ALLOCATION
from mqlab.widgets.backlog.recorded import KEPT as BACKLOG
from mqlab.widgets.long_poll.scope import KEPT as LONG_POLL
from mqlab.widgets.retry_clock_board import KEPT as RETRY_CLOCK

for kept in (ALLOCATION, BACKLOG, LONG_POLL, RETRY_CLOCK):
    kept.write()
