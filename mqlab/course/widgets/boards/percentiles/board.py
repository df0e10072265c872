"""The percentile board: two samples whose sizes are moved, the percentile of both together, and the mean of the two.

    board = percentile_board({"queue 0": [12, 15, …], "queue 1": [310, 340, …]}, unit="ms")
    board.set("second_size", 5)               what the sliders do: the second sample keeps its shape, and has 5 messages
    board.alone("queue 0"), board.together, board.mean

    share ┤      ╭────────   p99 of queue 0   60 ms          p99 of both is found on the curve of all messages;
          ┤   ╭──╯    ╭───   p99 of queue 1   600 ms         the mean of the two lies on no curve
          └───┴───────┴───   p99 of both 60 … 600 ms

A sample of another size keeps its shape: each of its values counts more or less. Nothing is measured again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from markupsafe import Markup

from mqlab.course.widgets.frame.board import Board
from mqlab.errors import UsageError
from mqlab.lab.views.day_charts import Ecdf
from mqlab.lab.views.table import Table

SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
PERCENTS = (50, 90, 99, 99.9)
DRAWN = 200  # points of the curve of both, in the picture of a page without scripts
MOST_VALUES = 1_000  # of a sample in the page
SAME_SHARE = 1e-12  # sums of floats


class PercentileBoard(Board):
    """The explorer; ``percentile_board`` makes one. ``state``: first and second (names), their sizes, percent."""

    module, label = "percentiles", "Percentile board"
    state_defaults: ClassVar[Mapping[str, Any]] = {
        "first": "",
        "second": "",
        "first_size": 1_000,
        "second_size": 20,
        "percent": 99,
    }

    def __init__(self, samples: Mapping[str, Iterable[float]], unit: str, **state: Any) -> None:
        self.samples = {str(name): thinned(sorted(values)) for name, values in samples.items()}
        self.unit = unit
        if len(self.samples) < 2 or not all(self.samples.values()):
            raise UsageError("a percentile board compares at least two samples, each with a value")
        first, second = list(self.samples)[:2]
        super().__init__(**{"first": first, "second": second, **state})
        for name in ("first", "second"):
            if self.state[name] not in self.samples:
                names = ", ".join(self.samples)
                raise UsageError(f"there is no sample {self.state[name]!r}", hint=f"there are: {names}")
        if not 0 < self.state["percent"] < 100:
            raise UsageError("percent must be between 0 and 100")
        if min(self.state["first_size"], self.state["second_size"]) < 1:
            raise UsageError("a size must be 1 or more")

    def alone(self, name: str) -> float:
        """The percentile of one sample; its size does not matter. Raises KeyError for an unknown name."""
        values = self.samples[name]
        return quantile([(value, 1 / len(values)) for value in values], self.state["percent"] / 100)

    @property
    def together(self) -> float:
        """The percentile of all messages of both samples, with the sizes chosen."""
        return quantile(self._weighted(), self.state["percent"] / 100)

    @property
    def mean(self) -> float:
        """The mean of the two percentiles: what is often shown, and no percentile of anything."""
        return (self.alone(self.state["first"]) + self.alone(self.state["second"])) / 2

    def _weighted(self) -> list[tuple[float, float]]:
        """Every value of both with its share of all messages, by value."""
        sizes = {name: self.state[f"{name}_size"] for name in ("first", "second")}
        total = sum(sizes.values())
        return sorted(
            (value, size / total / len(values))
            for name, size in sizes.items()
            for values in (self.samples[self.state[name]],)
            for value in values
        )

    def data(self) -> dict[str, Any]:
        """The samples; everything else is reckoned in the page."""
        sizes = sorted({*SIZES, self.state["first_size"], self.state["second_size"]})
        percents = sorted({*PERCENTS, self.state["percent"]})
        return {"samples": self.samples, "unit": self.unit, "sizes": sizes, "percents": percents}

    def table(self) -> Table:
        """Both percentiles, their mean, and the percentile of all messages."""
        name = f"p{self.state['percent']:g}"
        rows: list[dict[str, Any]] = [
            {"of": self.state[side], "messages": self.state[f"{side}_size"], name: self.alone(self.state[side])}
            for side in ("first", "second")
        ]
        rows.append({"of": "the mean of these two", "messages": None, name: self.mean})
        all_messages = self.state["first_size"] + self.state["second_size"]
        rows.append({"of": "all messages together", "messages": all_messages, name: self.together})
        return Table(rows, title=f"{name} in {self.unit}")

    def readable(self) -> Markup:
        """The three curves, and the table."""
        weighted = self._weighted()
        both = [quantile(weighted, (number + 0.5) / DRAWN) for number in range(DRAWN)]
        curves = {name: self.samples[name] for name in (self.state["first"], self.state["second"])}
        return Ecdf({**curves, "both": both}, title=self.label, unit=self.unit).html() + self.table().html()


def quantile(weighted: Iterable[tuple[float, float]], share: float) -> float:
    """The smallest value that at least this share does not exceed, of (value, its share) by value.

    >>> quantile([(10, 0.5), (20, 0.25), (400, 0.25)], 0.75)
    20
    """
    reached, value = 0.0, 0.0
    for value, part in weighted:
        reached += part
        if reached >= share - SAME_SHARE:
            return value
    return value


def thinned(values: list[float]) -> list[float]:
    """A sorted sample of the same shape that is small enough for a page: each of its values is one of the sample's."""
    count = len(values)
    if count <= MOST_VALUES:
        return values
    return [values[round(number * (count - 1) / (MOST_VALUES - 1))] for number in range(MOST_VALUES)]


def percentile_board(
    samples: Mapping[str, Iterable[float]],
    *,
    unit: str = "ms",
    first: str = "",
    second: str = "",
    first_size: int = 1_000,
    second_size: int = 20,
    percent: float = 99,
) -> PercentileBoard:
    """Two of these samples under sliders for their sizes. Raises UsageError for fewer than two, or an unknown name.

    >>> board = percentile_board({"fast": range(1, 61), "slow": range(301, 601)}, second_size=5)
    >>> board.alone("fast"), board.alone("slow"), board.mean, board.together
    (60, 597, 328.5, 60)
    >>> board.set("second_size", 1_000); board.together
    594
    """
    names = {name: value for name, value in (("first", first), ("second", second)) if value}
    return PercentileBoard(samples, unit, first_size=first_size, second_size=second_size, percent=percent, **names)
