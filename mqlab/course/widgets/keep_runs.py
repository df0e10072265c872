"""Writes the files of all boards again: ``python -m mqlab.course.widgets.keep_runs``."""

from __future__ import annotations

from mqlab.course.widgets.boards.allocation.handover import KEPT as ALLOCATION
from mqlab.course.widgets.boards.backlog.recorded import KEPT as BACKLOG
from mqlab.course.widgets.boards.long_poll.scope import KEPT as LONG_POLL
from mqlab.course.widgets.boards.retry_clock.board import KEPT as RETRY_CLOCK


def main() -> None:
    """Play and write what each board has kept."""
    for kept in (ALLOCATION, BACKLOG, LONG_POLL, RETRY_CLOCK):
        kept.write()


if __name__ == "__main__":
    main()
