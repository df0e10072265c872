"""The lanes board: who works on which event when, who overtakes whom, and what a failing head holds back.

    board = lanes_board(mode="concurrent", threads=20)      eighteen events of six orders in one queue
    board.play(mode="orderly", queues=3)                    what the controls do
    board.calls()  board.overtaken  board.done_s            every try; how many overtook; when the last one was done
    board.held()                                            events that were not done in the end

An exported page has all runs of the recorded choices (``RECORDED``), a notebook that was saved has the run shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mqlab.course.widgets.boards.lanes.runs import (
    MODES,
    ORDERS,
    PLAYED_S,
    STEPS,
    LanesRun,
    LanesSettings,
    play_lanes,
)
from mqlab.course.widgets.frame.recorded_board import Choices, RecordedBoard
from mqlab.lab.views.table import Table

RECORDED: Choices = {
    "mode": MODES,
    "queues": (1, 3),
    "threads": (1, 4, 20),
    "batch": (1, 8),
    "failing": (False, True),
}
CHOICES: Choices = {
    **RECORDED,
    "queues": (1, 2, 3, 6),
    "threads": (1, 2, 4, 20),
    "batch": (1, 2, 8, 32),
}


class LanesBoard(RecordedBoard[LanesSettings, LanesRun]):
    """The explorer; ``lanes_board`` makes one. ``run`` is the run shown, ``state["moment_ms"]`` the moment."""

    module, label = "lanes", "Lanes"
    choices: ClassVar[Choices] = CHOICES
    state_defaults: ClassVar[Mapping[str, Any]] = {"moment_ms": 0}

    def played(self, settings: LanesSettings) -> LanesRun:
        """The run of some settings."""
        return play_lanes(settings)

    def calls(self) -> Table:
        """Every try of an event: its thread or lane, when, with what result, and whether it overtook."""
        rows = [call._asdict() | {"order": f"order-{call.order}"} for call in self.run.calls]
        return Table(rows, title="Tries, ms after the group began to read", empty="none")

    @property
    def overtaken(self) -> int:
        """Events whose first try began before the event of their order in front of them was done."""
        return len({(call.order, call.step) for call in self.run.calls if call.overtook})

    @property
    def done_s(self) -> float | None:
        """When the last event was done, in seconds; None if some were not."""
        done = self.run.done
        return max(done.values()) / 1000 if len(done) == ORDERS * len(STEPS) else None

    def held(self) -> list[str]:
        """The events that were not done when the play ended."""
        done = self.run.done
        return [
            f"order-{order} {step}" for order in range(1, ORDERS + 1) for step in STEPS if (order, step) not in done
        ]

    @property
    def summary(self) -> str:
        """The run in one line."""
        last = self.done_s
        end = f"all done after {last:.1f} s" if last is not None else f"{len(self.held())} not done after {PLAYED_S} s"
        return f"{self.settings.mode}: {end}; {self.overtaken} overtook"

    def table(self) -> Table:
        """One row per order: when each of its events was done, and whether it overtook: the text twin."""
        done = self.run.done
        over = {(call.order, call.step) for call in self.run.calls if call.overtook}
        rows = []
        for order in range(1, ORDERS + 1):
            row: dict[str, Any] = {"order": f"order-{order}"}
            for step in STEPS:
                ms = done.get((order, step))
                words = "not done" if ms is None else f"{ms / 1000:.2f} s"
                row[step] = words + (" (overtook)" if (order, step) in over else "")
            rows.append(row)
        return Table(rows, title=self.summary)

    def shown(self, run: LanesRun) -> dict[str, Any]:
        """A run as the page gets it: lists of numbers instead of many equal names."""
        calls = [
            [
                call.row,
                call.order,
                STEPS.index(call.step),
                call.queue_id,
                call.began_ms,
                call.ended_ms,
                int(call.succeeded),
                int(call.overtook),
            ]
            for call in run.calls
        ]
        return {"calls": calls, "offsets": [list(offset) for offset in run.offsets]}

    def beside(self) -> dict[str, Any]:
        """What the page gets besides the runs."""
        return {
            "steps": list(STEPS),
            "orders": ORDERS,
            "played_ms": PLAYED_S * 1000,
        }


def lanes_board(
    *,
    mode: str = "concurrent",
    queues: int = 1,
    threads: int = 20,
    batch: int = 1,
    failing: bool = False,
    recorded: Choices = RECORDED,
) -> LanesBoard:
    """Eighteen events of six orders, read by one consumer: every call over time, and who overtakes whom.

    ``mode``: "concurrent", "orderly", or "lanes" (orderly, and within a batch one lane per order). ``failing``: order-1
    can never be created. ``recorded`` are the choices that pages without a kernel have, for each setting.

    >>> board = lanes_board(recorded={})
    >>> board.overtaken, board.done_s
    (12, 0.6)
    """
    settings = LanesSettings(mode, queues, threads, batch, failing)
    return LanesBoard(settings, recorded)
