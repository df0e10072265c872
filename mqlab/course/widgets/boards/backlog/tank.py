"""The backlog tank: a drawn curve of traffic, the lag that it leaves behind, and the limit that binds.

Lab 09 predicts with it what more instances, threads, cores, queues or slots change.

    tank = backlog_tank(threads=10, compute="50ms", wait="950ms")     one instance, two minutes of traffic
    tank.seconds()  tank.limits()  tank.calls()                       what the page shows, as tables
    tank.binding  tank.largest_lag  tank.behind_s  tank.per_call      which limit, how much, how long, how many a call
    tank.play(instances=2)                                            what "Play" does in the page

A page without a kernel shows the recorded runs (``RECORDED``). Left out: time-outs, failures, disks that get slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from mqlab.course.widgets.boards.backlog.limits import NOTHING, limits, per_call, waiting_seconds
from mqlab.course.widgets.boards.backlog.recorded import KEPT, RECORDED, shown
from mqlab.course.widgets.boards.backlog.runs import MOST_PER_SECOND, STEP_S, TankRun, TankSettings, play_tank
from mqlab.course.widgets.frame.board import Board
from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

DURATIONS = {"compute": "compute_ms", "wait": "wait_ms", "pull_interval": "pull_interval_ms"}
NUMBERS = ("instances", "threads", "cores", "queues", "slots", "batch")


class BacklogTank(Board):
    """The explorer; ``backlog_tank`` makes one. ``run`` is the run shown now, ``state["second"]`` the moment shown."""

    module, label = "backlog", "Backlog tank"
    state_defaults: ClassVar[Mapping[str, Any]] = {"second": 1}

    def __init__(self, settings: TankSettings, recorded: Mapping[str, TankSettings]) -> None:
        super().__init__()
        self._recorded = recorded
        self.run: TankRun = play_tank(settings)

    @property
    def settings(self) -> TankSettings:
        """The settings of the run shown now."""
        return self.run.settings

    def play(self, **changes: Any) -> BacklogTank:
        """Play again with some settings changed: the keywords of ``backlog_tank``."""
        self.run = play_tank(_changed(self.settings, changes))
        self.set("second", 1)
        self.renew()
        return self

    def seconds(self) -> Table:
        """Second by second: arrived, done, lag at its end, and the lag that monitoring shows (committed offsets)."""
        return Table(self.run.seconds, title="Second by second")

    def calls(self) -> Table:
        """Every call: instance, first message stored, begun, computed, entered the database, ended; ms after the
        traffic began; how many messages it had.
        """
        rows = [call._asdict() for call in self.run.calls]
        return Table(rows, title="Calls, ms after the traffic began", empty="none")

    def limits(self) -> Table:
        """Each limit: capacity, how busy it was while messages waited, mean wait for it in ms, whether it binds."""
        return Table(limits(self.run), title="Limits")

    @property
    def binding(self) -> str:
        """The limit that binds: "database slots", "cores", "threads", "queues" or "nothing"."""
        return next((str(row["limit"]) for row in limits(self.run) if row["binds"]), NOTHING)

    @property
    def largest_lag(self) -> int:
        """The largest number of messages that were stored and not done."""
        return max((row["lag"] for row in self.run.seconds), default=0)

    @property
    def behind_s(self) -> int:
        """From the first to the last second in which a message waited for its call; ``left`` says if it is over."""
        waiting = waiting_seconds(self.run)
        return waiting[-1] - waiting[0] + 1 if waiting else 0

    @property
    def per_call(self) -> float:
        """How many messages a call had, on average."""
        return per_call(self.run)

    @property
    def left(self) -> int:
        """How many messages were not done when the play ended."""
        return self.run.left

    @property
    def summary(self) -> str:
        """The run in one line: the largest lag, how long messages waited, what binds."""
        over = f", {self.left} not done at the end" if self.left else ""
        return f"largest lag {self.largest_lag}, behind for {self.behind_s} s{over}; what binds: {self.binding}"

    def table(self) -> Table:
        """The limits, with the summary as title: the text twin."""
        return Table(limits(self.run), title=self.summary)

    def data(self) -> dict[str, Any]:
        """The current run and the recorded ones; those of other settings than ``RECORDED`` are played now."""
        runs = [{"name": "as set", **shown(self.run)}]
        runs += [{"name": name, **KEPT.shown_with(settings)} for name, settings in self._recorded.items()]
        return {"runs": runs, "step_s": STEP_S, "most_per_second": MOST_PER_SECOND}

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``play`` with the settings of the page's controls; its answer is the run."""
        if name != "play":
            return super().asked(name, arguments)
        self.run = play_tank(_changed(TankSettings(), arguments))
        return {"name": "as set", **shown(self.run)}


def backlog_tank(
    *,
    traffic: Sequence[int] = TankSettings().traffic,
    instances: int = 1,
    threads: int = 10,
    cores: int = 1,
    compute: str | int = "50ms",
    wait: str | int = "950ms",
    queues: int = 4,
    slots: int = 0,
    batch: int = 1,
    pull_interval: str | int = 0,
    recorded: Mapping[str, TankSettings] = RECORDED,
) -> BacklogTank:
    """A group and two minutes of traffic, played in a Lab: lag by the second, and the limit that binds.

    ``traffic`` are twelve rates in messages a second, one for each 10 s. ``threads`` and ``cores`` are those of each of
    the ``instances``. A call computes for ``compute`` (T1) for each of its messages, then waits once for ``wait`` (T2),
    with one of the database's ``slots`` if that is not 0. It has at most ``batch`` messages, all from one pull; a queue
    is pulled again ``pull_interval`` after its last pull. ``recorded`` names the runs of pages without a kernel. Raises
    UsageError for settings out of range.

    >>> tank = backlog_tank(recorded={})
    >>> print(tank.summary)
    largest lag 156, behind for 50 s; what binds: threads
    """
    choices = {
        "traffic": traffic,
        "instances": instances,
        "threads": threads,
        "cores": cores,
        "compute": compute,
        "wait": wait,
        "queues": queues,
        "slots": slots,
        "batch": batch,
        "pull_interval": pull_interval,
    }
    return BacklogTank(_changed(TankSettings(), choices), recorded)


def _changed(before: TankSettings, changes: Mapping[str, Any]) -> TankSettings:
    """Settings with some of them replaced; times are durations."""
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name in DURATIONS:
            values[DURATIONS[name]] = milliseconds(value)
        elif name == "traffic":
            if not isinstance(value, list | tuple):
                raise UsageError(f"traffic is a list of rates, got {value!r}", hint="traffic=[3] * 6 + [15] * 6")
            values[name] = tuple(value)
        elif name in NUMBERS:
            values[name] = value
        else:
            known = ("traffic", *NUMBERS, *DURATIONS)
            raise UsageError(f"the backlog tank has no setting {name!r}", hint=", ".join(known))
    return replace(before, **values)
