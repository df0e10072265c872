"""The long-poll scope: pulls that the broker holds as bars over time, next to a program that asks every n milliseconds.

Lab 06 looks at it to see that nothing is pushed, what wakes a held pull, and what asking again and again costs.

    scope = long_poll_scope(rate=1, interval="1s")                played at once, half a minute of traffic
    scope.pulls()  scope.polls()  scope.arrivals()                what the page shows, as tables
    scope.requests()                                              requests a second and latencies of both readers
    scope.play(rare=20)                                           what its controls do
    long_poll_scope(parts=mybroker.parts(pulls=MyPulls))          on a learner's own parts of a broker

A page without a kernel shows the recorded runs (``RECORDED``). Left out: several queues, broker load, real sockets.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

from mqlab.counts import counted
from mqlab.course.widgets.boards.long_poll.runs import SPAN_MS, PollRun, PollSettings, play_polls, play_polls_on
from mqlab.course.widgets.frame.board import Board
from mqlab.course.widgets.frame.kept_runs import KeptRuns
from mqlab.durations import exact_text, milliseconds
from mqlab.errors import UsageError
from mqlab.lab.views.pulls import Pull
from mqlab.lab.views.table import Table

if TYPE_CHECKING:
    from mqlab.lab.parts import OwnParts

RECORDED: Mapping[str, PollSettings] = {
    "one message a second": PollSettings(),
    "the naive one asks every 50 ms": PollSettings(interval_ms=50),
    "a message every 10 s": PollSettings(rate=0.1),
    "10 messages a second": PollSettings(rate=10, interval_ms=200),
    "10 a second, one an answer, 100 ms away": PollSettings(rate=10, batch=1, latency_ms=100, interval_ms=300),
    "only every 20th of 4 a second is wanted": PollSettings(rate=4, rare=20),
    "held for 1 s at most": PollSettings(rate=0.1, suspend_ms=1_000),
}
DURATIONS = {"suspend": "suspend_ms", "latency": "latency_ms", "interval": "interval_ms"}
NUMBERS = ("rate", "batch", "rare")
SHOWN_PULL = ("asked_ms", "arrived_ms", "left_ms", "answered_ms", "from_offset", "next_offset", "status", "woken")


class LongPollScope(Board):
    """The explorer; ``long_poll_scope`` makes one. ``run`` is the run shown now.

    ``state``: ``pull`` (the held reader's pull looked at, from 1) and ``window_ms`` (how much time the picture shows).
    """

    module, label = "long_poll", "Long-poll scope"
    state_defaults: ClassVar[Mapping[str, Any]] = {"pull": 1, "window_ms": SPAN_MS}

    def __init__(
        self, settings: PollSettings, recorded: Mapping[str, PollSettings], parts: OwnParts | None = None
    ) -> None:
        super().__init__()
        self._recorded = recorded
        self._played = play_polls if parts is None else functools.partial(play_polls_on, parts)
        self.run: PollRun = self._played(settings)

    @property
    def settings(self) -> PollSettings:
        """The settings of the run shown now."""
        return self.run.settings

    def play(self, **changes: Any) -> LongPollScope:
        """Play again with some settings changed: the keywords of ``long_poll_scope``."""
        self.run = self._played(_changed(self.settings, changes))
        self.set("pull", 1)
        self.renew()
        return self

    def pulls(self) -> Table:
        """The pulls of the reader whose pulls are held; times in ms after the traffic began."""
        return Table(_rows(self.run.held), title="Pulls that the broker may hold")

    def polls(self) -> Table:
        """The pulls of the reader that asks every n ms, in the same form."""
        return Table(_rows(self.run.naive), title=f"Asked every {exact_text(self.settings.interval_ms)}")

    def arrivals(self) -> Table:
        """Each message: when it was stored, whether both want it, ms until each reader had it (None: not yet)."""
        return Table(self.run.arrivals, title="Arrivals, ms after the traffic began")

    def requests(self) -> Table:
        """Both readers: requests a second, answers without a message, median and longest ms until a message was there.

        Requests are those of the half minute with traffic; ``missing`` counts wanted messages that have not come.
        """
        rows = []
        for name, reader, column in (("held", self.run.held, "held_ms"), ("asking", self.run.naive, "naive_ms")):
            began = [pull for pull in reader if 0 <= pull.asked_ms < SPAN_MS]
            wanted = [arrival[column] for arrival in self.run.arrivals if arrival["wanted"]]
            came = [ms for ms in wanted if ms is not None]
            rows.append(
                {
                    "reader": name,
                    "requests": len(began),
                    "per_second": round(len(began) * 1000 / SPAN_MS, 2),
                    "empty": sum(pull.answered_ms is not None and not pull.found for pull in began),
                    "median_ms": median(came) if came else None,
                    "longest_ms": max(came, default=None),
                    "missing": len(wanted) - len(came),
                }
            )
        return Table(rows, title="Both readers")

    def table(self) -> Table:
        """Both readers side by side, with the settings as title: the text twin."""
        return Table(self.requests(), title=self.summary)

    @property
    def summary(self) -> str:
        """The run in one line: what arrived, and what each reader asked for it."""
        held, asking = self.requests()
        count = sum(arrival["wanted"] for arrival in self.run.arrivals)
        return (
            f"{counted(len(self.run.arrivals), 'messages')}, {count} wanted; "
            f"held: {counted(held.requests, 'requests')}, "
            f"asking every {exact_text(self.settings.interval_ms)}: {asking.requests}"
        )

    def data(self) -> dict[str, Any]:
        """The current run and the recorded ones; those of other settings than ``RECORDED`` are played now."""
        runs = [{"name": "as set", **_shown(self.run)}]
        runs += [{"name": name, **KEPT.shown_with(settings)} for name, settings in self._recorded.items()]
        return {"runs": runs, "span_ms": SPAN_MS}

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``play`` with the settings of the page's controls; its answer is the run."""
        if name != "play":
            return super().asked(name, arguments)
        self.run = self._played(_changed(PollSettings(), arguments))
        return {"name": "as set", **_shown(self.run)}


def long_poll_scope(
    *,
    rate: float = 1.0,
    suspend: str | int = "15s",
    batch: int = 32,
    latency: str | int = "1ms",
    interval: str | int = "1s",
    rare: int = 0,
    recorded: Mapping[str, PollSettings] | None = None,
    parts: OwnParts | None = None,
) -> LongPollScope:
    """Two readers of one queue, played in a Lab: one whose pulls the broker holds, one that asks every ``interval``.

    ``rate`` is the mean of messages a second, ``suspend`` how long a pull may be held, ``batch`` the most messages of
    an answer, ``latency`` one way through the network. With ``rare`` n both want the tag of every n-th message only.
    ``recorded`` names the runs of pages without a kernel (default: ``RECORDED``, none with parts of a learner's own).
    ``parts`` are such, as ``mybroker.parts()`` gives them: the scope shows the pulls that they hold.
    Raises UsageError for settings out of range.

    >>> scope = long_poll_scope(recorded={})
    >>> [(row.reader, row.requests, row.empty, row.longest_ms) for row in scope.requests()]
    [('held', 28, 0, 2), ('asking', 30, 13, 945)]
    """
    choices = {
        "rate": rate,
        "suspend": suspend,
        "batch": batch,
        "latency": latency,
        "interval": interval,
        "rare": rare,
    }
    if recorded is None:
        recorded = RECORDED if parts is None else {}
    return LongPollScope(_changed(PollSettings(), choices), recorded, parts)


def _changed(before: PollSettings, changes: Mapping[str, Any]) -> PollSettings:
    """Settings with some of them replaced; times are durations."""
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name in DURATIONS:
            values[DURATIONS[name]] = milliseconds(value)
        elif name in NUMBERS:
            values[name] = value
        else:
            raise UsageError(f"the long-poll scope has no setting {name!r}", hint=", ".join((*NUMBERS, *DURATIONS)))
    return replace(before, **values)


def _rows(reader: Sequence[Pull]) -> list[dict[str, Any]]:
    return [{**{name: getattr(pull, name) for name in SHOWN_PULL}, "messages": len(pull.kept)} for pull in reader]


def _shown(run: PollRun) -> dict[str, Any]:
    """A run as the page gets it: lists of numbers instead of many equal names."""
    return {
        "settings": run.settings.as_json(),
        "arrivals": [list(arrival.values()) for arrival in run.arrivals],
        "held": [list(row.values()) for row in _rows(run.held)],
        "naive": [[pull.asked_ms, pull.answered_ms, len(pull.kept)] for pull in run.naive],
    }


KEPT = KeptRuns("long_poll", RECORDED, lambda settings: _shown(play_polls(settings)))
