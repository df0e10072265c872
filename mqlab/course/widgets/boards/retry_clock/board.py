"""The retry clock: an order that fails, on an axis of log time; every setting is the learner's, every run is played.

Lab 07 predicts with it when an order comes back and when it is dead.

    clock = retry_clock(max_retries=3, prediction="2m")    your prediction stands on the axis as a pin
    clock.deliveries()  clock.waits()  clock.units()       what the page shows, as tables
    clock.play(asked=1)                                    what "Play" does in the page
    retry_clock(parts=mybroker.parts(retries=MyRetries))   on a learner's own retries

A page without a kernel shows the recorded runs. Left out: several orders, and a bank that answers slowly.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mqlab.counts import counted
from mqlab.course.widgets.boards.retry_clock.runs import (
    DELAY_LEVELS,
    MAX_LEVEL,
    MAX_RETRIES,
    RetryRun,
    RetrySettings,
    play_retries,
    play_retries_on,
)
from mqlab.course.widgets.frame.board import Board
from mqlab.course.widgets.frame.kept_runs import KeptRuns
from mqlab.durations import exact_text, milliseconds
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

if TYPE_CHECKING:
    from mqlab.lab.parts import OwnParts

BankDown = tuple[str | int, str | int | None]
RECORDED: Mapping[str, RetrySettings] = {
    "nothing configured": RetrySettings(),
    "three retries": RetrySettings(max_retries=3),
    "the listener asks for level 1": RetrySettings(asked=1),
    "the bank is back after 2 hours": RetrySettings(down_to_ms=milliseconds("2h")),
    "in order, no limit": RetrySettings(orderly=True),
    "in order, three retries": RetrySettings(orderly=True, max_retries=3),
}


class RetryClock(Board):
    """The explorer; ``retry_clock`` makes one. ``run`` is the run shown now, ``state["pin_ms"]`` the prediction."""

    module, label = "retry_clock", "Retry clock"
    state_defaults: ClassVar[Mapping[str, Any]] = {"delivery": 1, "pin_ms": None}

    def __init__(
        self,
        settings: RetrySettings,
        recorded: Mapping[str, RetrySettings],
        pin_ms: int | None,
        parts: OwnParts | None = None,
    ) -> None:
        super().__init__(pin_ms=pin_ms)
        self._recorded = recorded
        self._played = play_retries if parts is None else functools.partial(play_retries_on, parts)
        self.run: RetryRun = self._played(settings)

    @property
    def settings(self) -> RetrySettings:
        """The settings of the run shown now."""
        return self.run.settings

    def play(self, **changes: Any) -> RetryClock:
        """Play again with some settings changed: the keywords of ``retry_clock`` without ``prediction``."""
        self.run = self._played(_settings(changes, self.settings))
        self.set("delivery", 1)
        self.renew()
        return self

    def deliveries(self) -> Table:
        """Every delivery: its number, ms after the first one, the topic it was read from, the count, the result."""
        return Table(self.run.deliveries, title="Deliveries, ms after the first")

    def waits(self) -> Table:
        """Every stay in the waiting topic: from, to (ms after the first delivery; None: still there) and level."""
        return Table(self.run.waits, title="Waits for the next retry, ms after the first delivery", empty="none")

    def units(self) -> Table:
        """Every unit that the broker wrote: when, topic, queue, bytes."""
        return Table(self.run.units, title="Units in the log")

    def table(self) -> Table:
        """The deliveries with where the order waited before each, and how it ended: the text twin."""
        rows = []
        waits = {wait["to_ms"]: wait for wait in self.run.waits}
        for delivery in self.run.deliveries:
            came = [to for to in waits if to is not None and to <= delivery["at_ms"]]
            before = "" if delivery["read_from"] == "orders" or not came else f"level {waits[max(came)]['level']}"
            rows.append(
                {
                    "delivery": delivery["number"],
                    "after": exact_text(delivery["at_ms"]),
                    "read from": delivery["read_from"],
                    "waited before": before,
                    "reconsume_times": delivery["reconsume_times"],
                    "status": delivery["status"],
                }
            )
        return Table(rows, title=self.summary)

    @property
    def summary(self) -> str:
        """The run in one line: deliveries, end, units written."""
        units, run = len(self.run.units), self.run
        ended = f"{run.end} after {exact_text(max(run.end_ms, 0))}"
        size = sum(unit["bytes"] for unit in run.units)
        return f"{counted(len(run.deliveries), 'deliveries')}, {ended}, {counted(units, 'units')} ({size} bytes)"

    def data(self) -> dict[str, Any]:
        """The current run and the recorded ones; those of other settings than ``RECORDED`` are played now."""
        runs = [{"name": "as set", **_shown(self.run)}]
        runs += [{"name": name, **KEPT.shown_with(settings)} for name, settings in self._recorded.items()]
        return {"runs": runs, "max_retries": MAX_RETRIES, "max_level": MAX_LEVEL, "default_levels": DELAY_LEVELS}

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``play`` with the settings of the page's controls; its answer is the run."""
        if name != "play":
            return super().asked(name, arguments)
        self.run = self._played(_settings(dict(arguments), RetrySettings()))
        return {"name": "as set", **_shown(self.run)}


def retry_clock(
    *,
    levels: str = DELAY_LEVELS,
    max_retries: int = -1,
    asked: int = 0,
    bank_down: BankDown = ("0s", None),
    orderly: bool = False,
    prediction: str | int | None = None,
    recorded: Mapping[str, RetrySettings] | None = None,
    parts: OwnParts | None = None,
) -> RetryClock:
    """An order that the bank refuses, played with these settings and shown on an axis of log time.

    ``levels`` is the broker's messageDelayLevel, ``max_retries`` the consumer's maxReconsumeTimes (-1: RocketMQ's
    default), ``asked`` the level that the listener asks for. ``bank_down`` is from and to after the order was sent, to
    None: it never comes back. ``prediction`` is a time after the first delivery, shown as a pin. ``recorded`` names
    the runs of pages without a kernel (default: ``RECORDED``, none with parts). ``parts`` are a learner's own, as
    ``mybroker.parts()`` gives them: the order fails on their MyRetries. UsageError for settings that do not exist.

    >>> clock = retry_clock(max_retries=1, recorded={})
    >>> print(clock.summary)
    2 deliveries, dead after 10.090 s, 4 units (1295 bytes)
    >>> clock.deliveries().column("at_ms")
    [0, 10089]
    """
    choices = {"levels": levels, "max_retries": max_retries, "asked": asked, "bank_down": bank_down, "orderly": orderly}
    pin_ms = None if prediction is None else milliseconds(prediction)
    if recorded is None:
        recorded = RECORDED if parts is None else {}
    return RetryClock(_settings(choices, RetrySettings()), recorded, pin_ms, parts)


def _settings(changes: Mapping[str, Any], before: RetrySettings) -> RetrySettings:
    """Settings with some of them replaced; ``bank_down`` is a pair of durations."""
    values = before.as_json()
    for name, value in changes.items():
        if name == "bank_down":
            start, end = _pair(value)
            values["down_from_ms"] = milliseconds(start)
            values["down_to_ms"] = None if end in (None, "") else milliseconds(end)
        elif name in ("levels", "max_retries", "asked", "orderly"):
            values[name] = value
        else:
            raise UsageError(f"the retry clock has no setting {name!r}", hint=", ".join(_settings_names()))
    for name in ("max_retries", "asked"):
        if isinstance(values[name], bool) or not isinstance(values[name], int):
            raise UsageError(f"{name} must be a whole number, got {values[name]!r}")
    return RetrySettings(**values)


def _settings_names() -> Sequence[str]:
    return ("levels", "max_retries", "asked", "bank_down", "orderly")


def _pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise UsageError(f"bank_down must be two times, got {value!r}", hint='bank_down=("0s", "2h")')
    return value[0], value[1]


def _shown(run: RetryRun) -> dict[str, Any]:
    """A run as the page gets it: lists of numbers instead of many equal names."""
    return {
        "settings": run.settings.as_json(),
        "deliveries": [[d["at_ms"], d["read_from"], d["reconsume_times"], d["status"]] for d in run.deliveries],
        "waits": [[w["from_ms"], w["to_ms"], w["level"]] for w in run.waits],
        "units": [[u["at_ms"], u["topic"], u["queue_id"], u["bytes"]] for u in run.units],
        "end": run.end,
        "end_ms": run.end_ms,
    }


KEPT = KeptRuns("retry_clock", RECORDED, lambda settings: _shown(play_retries(settings)))
