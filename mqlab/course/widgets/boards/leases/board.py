"""The lease board: eight orders on lease, popped by members that work, hang or die.

    board = lease_board(happens="hangs")         the first member never returns from its first call
    board.play(lease_s=5, work_s=8)              what the controls do
    board.at("12s")                              handed out, out, done, back: how many orders 12 s after the first lease
    board.done, board.repeats                    orders that were done; calls beyond the first of their order

An exported page has all runs of the recorded choices (``RECORDED``), a notebook that was saved has the run shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mqlab.counts import counted
from mqlab.course.widgets.boards.leases.runs import (
    HAPPENS,
    ORDERS,
    WATCHED_MS,
    LeaseRun,
    LeaseSettings,
    play_leases,
)
from mqlab.course.widgets.frame.recorded_board import Choices, RecordedBoard
from mqlab.durations import milliseconds
from mqlab.lab.views.table import Table

RECORDED: Choices = {"happens": HAPPENS, "members": (1, 2), "lease_s": (5, 10), "work_s": (2, 8)}
CHOICES: Choices = {
    "happens": HAPPENS,
    "members": (1, 2),
    "lease_s": (5, 10, 20, 60),
    "work_s": (1, 2, 4, 8, 12),
}


class LeaseBoard(RecordedBoard[LeaseSettings, LeaseRun]):
    """The explorer; ``lease_board`` makes one. ``run`` is the run shown, ``state["moment_ms"]`` the moment."""

    module, label = "leases", "Lease board"
    choices: ClassVar[Choices] = CHOICES
    state_defaults: ClassVar[Mapping[str, Any]] = {"moment_ms": 0}

    def played(self, settings: LeaseSettings) -> LeaseRun:
        """The run of some settings."""
        return play_leases(settings)

    @property
    def done(self) -> int:
        """How many orders were done within their lease."""
        return sum(self.run.done_ms(message.name) is not None for message in self.run.messages)

    @property
    def repeats(self) -> int:
        """Calls of a listener beyond the first one of their order."""
        return len(self.run.calls) - len({call.order for call in self.run.calls})

    def at(self, after: str | int) -> dict[str, int]:
        """How many orders are handed out, on lease, done and waiting to come back so long after the first lease."""
        now_ms = milliseconds(after)
        handed = out = done = 0
        for message in self.run.messages:
            spans = [(span.from_ms - self.run.start_ms, span.until_ms - self.run.start_ms) for span in message.spans]
            end_ms = self.run.done_ms(message.name)
            is_done = end_ms is not None and end_ms <= now_ms
            handed += any(from_ms <= now_ms for from_ms, _ in spans)
            done += is_done
            out += not is_done and any(from_ms <= now_ms < until_ms for from_ms, until_ms in spans)
        return {"handed out": handed, "on lease": out, "done": done, "coming back": handed - out - done}

    @property
    def summary(self) -> str:
        """The run in one line."""
        return (
            f"{self.done} of {ORDERS} orders done within {WATCHED_MS // 1000} s; "
            f"{counted(self.repeats, 'calls')} repeated"
        )

    def table(self) -> Table:
        """One row per lease: the text twin."""
        rows = [
            {
                "order": message.name,
                "from (s)": (span.from_ms - self.run.start_ms) / 1000,
                "until (s)": (span.until_ms - self.run.start_ms) / 1000,
                "end": span.words,
            }
            for message in self.run.messages
            for span in message.spans
        ]
        return Table(rows, title=self.summary)

    def shown(self, run: LeaseRun) -> list[dict[str, Any]]:
        """A run as the page gets it: per order its leases, late acks, copies, calls, and when it was done."""
        start_ms = run.start_ms
        return [
            {
                "name": message.name,
                "spans": [[span.from_ms - start_ms, span.until_ms - start_ms, span.words] for span in message.spans],
                "late": [ms - start_ms for ms in message.late_acks],
                "back": [ms - start_ms for ms in message.revived],
                "calls": [
                    [call.member, call.started_ms, call.ended_ms, call.status]
                    for call in run.calls
                    if call.order == message.name
                ],
                "done": run.done_ms(message.name),
            }
            for message in run.messages
        ]

    def beside(self) -> dict[str, Any]:
        """What the page gets besides the runs."""
        return {
            "until_ms": WATCHED_MS,
        }


def lease_board(
    *,
    happens: str = "works",
    members: int = 2,
    lease_s: int = 10,
    work_s: int = 2,
    recorded: Choices = RECORDED,
) -> LeaseBoard:
    """Eight orders on lease to popping members. ``happens`` to the first member: "works", "hangs" or "dies".

    ``lease_s`` is the invisible time, ``work_s`` how long a call takes. ``recorded`` are the choices that pages without
    a kernel have, for each setting.

    >>> board = lease_board(happens="hangs", recorded={})
    >>> board.done, board.at("5s")["handed out"]
    (8, 8)
    """
    settings = LeaseSettings(happens, members, lease_s, work_s)
    return LeaseBoard(settings, recorded)
