"""The echo chart: every call by two times, when its message was stored and when a group was called with it.

    chart = echo_chart(calls, group="audit")      rows with group_name, keys, stored_ms, started_ms, and cause, if known
    chart.set("stretch_s", 10)                    what the controls do
    chart.cells(), chart.echoes(), chart.calls(4, 9)

              called in 0  1  2  3  4  5
    stored in 0       12  ·  ·  ·  ·  9      a call that comes at once is on the diagonal
              1           8  ·  ·  ·  6      what stands to the right of it came late, or again:
              2              7  1  ·  7      a column is an offset that was set back, a row is one that kept failing

The calls are given once; groups, causes and stretches are chosen in the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from markupsafe import Markup

from mqlab.course.widgets.frame.board import Board
from mqlab.durations import rounded_text
from mqlab.errors import UsageError
from mqlab.lab.views.day_charts import Heat
from mqlab.lab.views.table import Table

STRETCHES_S = (1, 5, 10, 30, 60, 300, 900, 3_600)
MOST_STRETCHES = 40
EVERY = "every cause"
UNKNOWN = "called"  # the cause of calls without a known cause


class EchoChart(Board):
    """The explorer; ``echo_chart`` makes one. ``state``: group, cause, stretch_s, and the cell chosen: row and column.

    Stretches are counted from the beginning of the one in which the first message was stored.
    """

    module, label = "echoes", "Echo chart"
    state_defaults: ClassVar[Mapping[str, Any]] = {
        "group": "",
        "cause": EVERY,
        "stretch_s": 60,
        "row": 0,
        "column": 0,
    }

    def __init__(self, calls: Iterable[Mapping[str, Any]], **state: Any) -> None:
        self._calls: dict[str, list[tuple[int, int, str, str]]] = {}
        for call in calls:
            of_group = self._calls.setdefault(call["group_name"], [])
            of_group.append((call["stored_ms"], call["started_ms"], call.get("cause") or UNKNOWN, call["keys"]))
        if not self._calls:
            raise UsageError("an echo chart needs a call")
        super().__init__(**{"group": min(self._calls), **state})
        self.start_ms = min(stored for of_group in self._calls.values() for stored, *_ in of_group)
        self.last_ms = max(started for of_group in self._calls.values() for _, started, *_ in of_group)
        if self.state["group"] not in self._calls:
            names = ", ".join(sorted(self._calls))
            raise UsageError(f"there is no call of {self.state['group']!r}", hint=f"there are calls of {names}")
        if self.state["stretch_s"] not in self.stretches:
            texts = ", ".join(map(str, self.stretches))
            raise UsageError(f"{self.state['stretch_s']} is not a stretch of this chart", hint=f"seconds: {texts}")

    @property
    def stretches(self) -> list[int]:
        """The stretches in seconds that may be chosen: none that would make more than forty rows."""
        fit = [seconds for seconds in STRETCHES_S if (self.last_ms - self.start_ms) / 1_000 / seconds < MOST_STRETCHES]
        return fit or [STRETCHES_S[-1]]

    @property
    def causes(self) -> list[str]:
        """The causes of all calls."""
        return sorted({cause for of_group in self._calls.values() for *_, cause, _ in of_group})

    def _place(self, at_ms: int) -> int:
        # A client whose clock is behind may seem to be called before its message was stored: that is the first stretch.
        stretch_ms: int = self.state["stretch_s"] * 1_000
        return max(0, (at_ms - self.start_ms // stretch_ms * stretch_ms) // stretch_ms)

    def _chosen(self) -> list[tuple[int, int, str, str]]:
        cause = self.state["cause"]
        return [call for call in self._calls[self.state["group"]] if cause in (EVERY, call[2])]

    def cells(self) -> dict[tuple[int, int], int]:
        """(stored in, called in) -> how many calls, for the group, the cause and the stretch chosen."""
        return dict(sorted(Counter((self._place(call[0]), self._place(call[1])) for call in self._chosen()).items()))

    def echoes(self) -> dict[tuple[int, int], int]:
        """The cells off the diagonal, the largest first."""
        off = {cell: count for cell, count in self.cells().items() if cell[0] != cell[1]}
        return dict(sorted(off.items(), key=lambda item: (-item[1], item[0])))

    def calls(self, row: int | None = None, column: int | None = None) -> Table:
        """The calls of one cell, by default of the chosen one."""
        wanted = self.state["row"] if row is None else row, self.state["column"] if column is None else column
        rows = [
            {"keys": keys, "stored_ms": stored, "called_ms": started, "cause": cause}
            for stored, started, cause, keys in sorted(self._chosen(), key=lambda call: call[1])
            if (self._place(stored), self._place(started)) == wanted
        ]
        return Table(
            rows,
            columns=["keys", "stored_ms", "called_ms", "cause"],
            title=f"Stored in {wanted[0]}, called in {wanted[1]}",
            empty="no call",
        )

    def data(self) -> dict[str, Any]:
        """Every group's calls as lists of numbers; keys are told once."""
        causes = self.causes
        groups = {
            group: [
                [stored - self.start_ms, started - self.start_ms, causes.index(cause), keys]
                for stored, started, cause, keys in sorted(of_group, key=lambda call: call[1])
            ]
            for group, of_group in sorted(self._calls.items())
        }
        return {
            "groups": groups,
            "causes": causes,
            "every": EVERY,
            "unknown": UNKNOWN,
            "stretches": self.stretches,
            "start_ms": self.start_ms,
            "last_ms": self.last_ms,
        }

    def table(self) -> Table:
        """One row per stretch of storing: calls in the same stretch, and calls later or again."""
        rows: dict[int, dict[str, Any]] = {}
        for (stored, called), count in self.cells().items():
            row = rows.setdefault(stored, {"stored in": stored, "at once": 0, "later": 0, "last called in": called})
            row["at once" if stored == called else "later"] += count
            row["last called in"] = max(row["last called in"], called)
        unit = rounded_text(self.state["stretch_s"] * 1_000)
        title = f"Calls of {self.state['group']}, {self.state['cause']}, in stretches of {unit}"
        return Table(
            rows.values(), columns=["stored in", "at once", "later", "last called in"], title=title, empty="no call"
        )

    def readable(self) -> Markup:
        """The chart as a picture, and the table."""
        cells = self.cells()
        numbers = range(max((max(cell) for cell in cells), default=0) + 1)
        heat = {f"stored in {a}": {str(b): cells.get((a, b)) for b in numbers} for a in numbers}
        return Heat(heat, title=self.table().title).html() + self.table().html()


def echo_chart(
    calls: Iterable[Mapping[str, Any]], *, group: str = "", cause: str = EVERY, stretch_s: int | None = None
) -> EchoChart:
    """A chart of calls. Raises UsageError for no call at all, a group without calls, or a stretch that does not fit.

    >>> times = [(0, 50), (61_000, 61_100), (0, 125_000)]
    >>> chart = echo_chart({"group_name": "audit", "keys": "k", "stored_ms": a, "started_ms": b} for a, b in times)
    >>> chart.set("stretch_s", 60)
    >>> chart.cells(), chart.echoes()
    ({(0, 0): 1, (0, 2): 1, (1, 1): 1}, {(0, 2): 1})
    """
    rows = list(calls)
    choices: dict[str, Any] = {"cause": cause} | ({"group": group} if group else {})
    if stretch_s is not None:
        return EchoChart(rows, **choices, stretch_s=stretch_s)
    span_s = (max(c["started_ms"] for c in rows) - min(c["stored_ms"] for c in rows)) / 1_000 if rows else 0
    fit = [seconds for seconds in STRETCHES_S if span_s / seconds < MOST_STRETCHES / 2]
    return EchoChart(rows, **choices, stretch_s=fit[0] if fit else STRETCHES_S[-1])
