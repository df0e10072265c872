"""The lanes board: who works on which event when, who overtakes whom, and what a failing head holds back.

    board = lanes_board(mode="concurrent", threads=20)      eighteen events of six orders in one queue
    board.play(mode="orderly", queues=3)                    what the controls do
    board.calls()  board.overtaken  board.done_s            every try; how many overtook; when the last one was done
    board.held()                                            events that were not done in the end

An exported page has all runs of the recorded choices (``RECORDED``), a notebook that was saved has the run shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from mqlab.course.widgets.frame.board import Board
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

RECORDED: Mapping[str, tuple[Any, ...]] = {
    "mode": MODES,
    "queues": (1, 3),
    "threads": (1, 4, 20),
    "batch": (1, 8),
    "failing": (False, True),
}
CHOICES: Mapping[str, tuple[Any, ...]] = {
    **RECORDED,
    "queues": (1, 2, 3, 6),
    "threads": (1, 2, 4, 20),
    "batch": (1, 2, 8, 32),
}
NAMES = tuple(RECORDED)


class LanesBoard(Board):
    """The explorer; ``lanes_board`` makes one. ``run`` is the run shown, ``state["moment_ms"]`` the moment."""

    module, label = "lanes", "Lanes"
    state_defaults: ClassVar[Mapping[str, Any]] = {"moment_ms": 0}

    def __init__(self, settings: LanesSettings, recorded: Mapping[str, tuple[Any, ...]]) -> None:
        super().__init__()
        self._recorded = recorded
        self.run: LanesRun = play_lanes(settings)

    @property
    def settings(self) -> LanesSettings:
        """The settings of the run shown now."""
        return self.run.settings

    def play(self, **changes: Any) -> LanesBoard:
        """Play again with some settings changed: the keywords of ``lanes_board``."""
        self.run = play_lanes(changed(self.settings, changes))
        self.set("moment_ms", 0)
        self.renew()
        return self

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

    def data(self) -> dict[str, Any]:
        """The run shown and, for a page without a kernel, all recorded ones, by their settings."""
        runs = {key_of(self.settings): shown(self.run)}
        for chosen in self.combinations(self._recorded):
            settings = LanesSettings(**chosen)
            runs[key_of(settings)] = shown(play_lanes(settings))
        return {
            "runs": runs,
            "now": self.settings.as_json(),
            "choices": {name: list(CHOICES[name]) for name in NAMES},
            "steps": list(STEPS),
            "orders": ORDERS,
            "played_ms": PLAYED_S * 1000,
        }

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``play`` with the settings of the page's controls; its answer is the run. ``show`` only tells the cell."""
        if name != "play":
            return super().asked(name, arguments)
        self.run = play_lanes(changed(LanesSettings(), arguments))
        return shown(self.run)


def lanes_board(
    *,
    mode: str = "concurrent",
    queues: int = 1,
    threads: int = 20,
    batch: int = 1,
    failing: bool = False,
    recorded: Mapping[str, tuple[Any, ...]] = RECORDED,
) -> LanesBoard:
    """Eighteen events of six orders, read by one consumer: every call over time, and who overtakes whom.

    ``mode``: "concurrent", "orderly", or "lanes" (orderly, and within a batch one lane per order). ``failing``: order-1
    can never be created. ``recorded`` are the choices that pages without a kernel have, for each setting.

    >>> board = lanes_board(recorded={})
    >>> board.overtaken, board.done_s
    (12, 0.6)
    """
    choices = {"mode": mode, "queues": queues, "threads": threads, "batch": batch, "failing": failing}
    return LanesBoard(changed(LanesSettings(), choices), recorded)


def changed(before: LanesSettings, changes: Mapping[str, Any]) -> LanesSettings:
    """Settings with some of them replaced. UsageError for a setting that does not exist."""
    for name in changes:
        if name not in NAMES:
            raise UsageError(f"the lanes board has no setting {name!r}", hint=", ".join(NAMES))
    return replace(before, **changes)


def key_of(settings: LanesSettings) -> str:
    """The name of a run in the page's data."""
    return "|".join(str(settings.as_json()[name]).lower() for name in NAMES)


def shown(run: LanesRun) -> dict[str, Any]:
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
