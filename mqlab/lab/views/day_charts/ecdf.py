"""The share of values that are at most so large, one curve per sample: percentiles that may be read off, not averaged.

Mirrors: nothing of RocketMQ, whose statistics are means and maxima.

    1.0 ┤            ╭───────   a sample whose values are all known ends at 1
    0.5 ┤     ╭──────╯
        └─────┴──────┴──────    p50 is where the curve crosses one half

Left out: confidence bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mqlab.errors import UsageError
from mqlab.lab.views.charts import Curve
from mqlab.lab.views.day_charts.day_chart import known

SHARE = "share"


class Ecdf(Curve):
    """For each sample the share of its values that are at most x. None (or NaN) is a value that is not known yet: it is
    larger than all others, so the curve of its sample ends below 1.

    ``samples``: name -> values, at most five names. ``unit`` names the x axis, which is logarithmic with ``log``.

    >>> waits = Ecdf({"queue 0": [10, 20, 30, None]}, unit="ms")
    >>> print(waits)
    line     ms  share
    queue 0  10   0.25
    queue 0  20    0.5
    queue 0  30   0.75
    >>> waits.quantile("queue 0", 0.5), waits.quantile("queue 0", 0.99)
    (20.0, None)
    """

    def __init__(
        self, samples: Mapping[str, Iterable[Any]], *, title: str = "", unit: str = "value", log: bool = True
    ) -> None:
        self._samples = {str(name): [known(value) for value in values] for name, values in samples.items()}
        super().__init__(
            {name: _shares(values) for name, values in self._samples.items()}, title=title, x=unit, y=SHARE, log_x=log
        )

    def quantile(self, name: str, share: float) -> float | None:
        """The smallest value that at least this share of a sample does not exceed; None when it is not known yet.

        Raises UsageError for an unknown name.
        """
        if name not in self._samples:
            raise UsageError(f"no sample {name!r}", hint=f"there are: {', '.join(self._samples)}")
        return next((value for value, reached in _shares(self._samples[name]) if reached >= share - 1e-12), None)


def _shares(values: list[float | None]) -> list[tuple[float, float]]:
    """Each known value with the share of all values that are at most so large."""
    numbers = sorted(value for value in values if value is not None)
    shares: dict[float, float] = {}
    for rank, value in enumerate(numbers, 1):
        shares[value] = rank / len(values)
    return list(shares.items())
