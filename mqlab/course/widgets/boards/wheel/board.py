"""The wheel board: six reminders in a timer wheel that turns.

    board = wheel_board(window_s=6)              no slot is more than six seconds ahead
    board.play(lost="timerlog")                  what the controls do
    board.at("12s")                              waiting, delivered, the slot that is read next
    board.came, board.copies                     how often each reminder was delivered, and stored in the timer topic

An exported page has all runs of the recorded choices (``RECORDED``), a notebook that was saved has the run shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mqlab.course.widgets.boards.wheel.runs import (
    DUE_MS,
    LOST,
    RECALL_MS,
    WATCHED_MS,
    WheelRun,
    WheelSettings,
    play_wheel,
)
from mqlab.course.widgets.frame.recorded_board import Choices, RecordedBoard
from mqlab.durations import milliseconds
from mqlab.lab.views.table import Table

RECORDED: Choices = {"window_s": (6, 60), "recall": tuple(RECALL_MS), "lost": LOST}
CHOICES: Choices = {
    "window_s": (4, 6, 10, 60, 172_800),
    "recall": tuple(RECALL_MS),
    "lost": LOST,
}


class WheelBoard(RecordedBoard[WheelSettings, WheelRun]):
    """The explorer; ``wheel_board`` makes one. ``run`` is the run shown, ``state["moment_ms"]`` the moment.

    ``state["slot"]`` is the number of the slot whose list is lit up; -1 is the one that is read next.
    """

    module, label = "wheel", "Wheel board"
    choices: ClassVar[Choices] = CHOICES
    state_defaults: ClassVar[Mapping[str, Any]] = {"moment_ms": 0, "slot": -1}

    def played(self, settings: WheelSettings) -> WheelRun:
        """The run of some settings."""
        return play_wheel(settings)

    @property
    def came(self) -> dict[str, int]:
        """How often each reminder was delivered."""
        return {name: len(times) for name, times in self.run.came.items()}

    @property
    def copies(self) -> dict[str, int]:
        """How often each reminder was stored in the timer topic."""
        return {name: len(times) for name, times in self.run.waits.items()}

    def at(self, after: str | int) -> dict[str, int]:
        """So long after the start: reminders not delivered yet, delivered ones, and the second that is read next."""
        now_ms = milliseconds(after)
        came = sum(any(ms <= now_ms for ms in times) for times in self.run.came.values())
        return {"waiting": len(DUE_MS) - came, "delivered": came, "read next": self.run.at(now_ms).read_s}

    @property
    def summary(self) -> str:
        """The run in one line."""
        lost = sum(not times for times in self.run.came.values())
        again = sum(max(0, len(times) - 1) for times in self.run.came.values())
        recalled = f"; the recall was answered {self.run.recalled}" if self.run.recalled else ""
        return f"{len(DUE_MS) - lost} of {len(DUE_MS)} reminders delivered, {again} of them again{recalled}"

    def table(self) -> Table:
        """One row per reminder: the text twin."""
        rows = [
            {
                "reminder": name,
                "due (s)": due_ms / 1_000,
                "stored in the timer topic (s)": _seconds(self.run.waits[name]),
                "delivered (s)": _seconds(self.run.came[name]),
            }
            for name, due_ms in DUE_MS.items()
        ]
        return Table(rows, title=self.summary)

    def shown(self, run: WheelRun) -> dict[str, Any]:
        """A run as the page gets it: moments, when reminders were stored and delivered, the answer to the recall."""
        return {
            "moments": [
                [moment.from_ms, moment.read_s, moment.up, moment.slots, moment.units] for moment in run.moments
            ],
            "waits": run.waits,
            "came": run.came,
            "recalled": run.recalled,
        }

    def beside(self) -> dict[str, Any]:
        """What the page gets besides the runs."""
        return {
            "due": DUE_MS,
            "until_ms": WATCHED_MS,
        }


def wheel_board(
    *,
    window_s: int = 60,
    recall: str = "never",
    lost: str = "nothing",
    recorded: Choices = RECORDED,
) -> WheelBoard:
    """Six reminders in a timer wheel. ``window_s``: how far ahead a slot may be, ``timer_roll_window_slot``.

    ``recall``: the shop takes auction-3 back "never", "in time" or "too late". ``lost``: the file that is gone after a
    kill, "timerwheel", "timerlog" or "timercheck". ``recorded`` are the choices that pages without a kernel have.

    >>> wheel_board(lost="timerlog", recorded={}).came["auction-5"]
    0
    """
    return WheelBoard(WheelSettings(window_s, recall, lost), recorded)


def _seconds(times_ms: list[int]) -> str:
    return ", ".join(f"{ms / 1_000:.1f}" for ms in times_ms)
