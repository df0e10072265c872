"""The plan of a store's growth: its units in the order of the log, each with its time and its place in a queue.

    finished store ── mqlab.data.arrow ──▶ units     place, size, stored_ms, queue, queue_offset    one row per unit
                                      queues    [("orders", 0), ...], numbered from 0
                                      commits   see commits

A plan is made once and saved next to the finished store's directory; the process that grows the copy loads it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.growth.commits import Commits, commits_of

UNITS = np.dtype([("place", "<i8"), ("size", "<i4"), ("stored_ms", "<i8"), ("queue", "<i4"), ("queue_offset", "<i8")])
_COLUMNS = ("topic", "queue_id", "queue_offset", "physical_offset", "total_size", "store_timestamp")


@dataclass(frozen=True, slots=True)
class GrowthPlan:
    """What a store becomes: ``source`` is the finished store, ``units`` its messages in the order of the log."""

    source: Path
    units: Array
    queues: tuple[tuple[str, int], ...]
    commits: Commits

    @property
    def first_ms(self) -> int:
        return int(self.units["stored_ms"][0])

    @property
    def last_ms(self) -> int:
        return int(self.units["stored_ms"][-1])

    def save(self, folder: Path) -> None:
        """Write it into a folder, which is made."""
        folder.mkdir(parents=True)
        np.save(folder / "units.npy", self.units)
        value = {"source": str(self.source), "queues": self.queues, "commits": self.commits}
        (folder / "plan.json").write_text(json.dumps(value), "utf-8")

    @classmethod
    def load(cls, folder: Path) -> GrowthPlan:
        """What ``save`` has written."""
        value: dict[str, Any] = json.loads((folder / "plan.json").read_text("utf-8"))
        queues = tuple((topic, queue_id) for topic, queue_id in value["queues"])
        return cls(Path(value["source"]), np.load(folder / "units.npy"), queues, value["commits"])


def plan_of(store: Path) -> GrowthPlan:
    """The plan of a finished store, whose log begins at 0."""
    from mqlab.data.arrow import read_table

    table = read_table(store, _COLUMNS).sort_by("physical_offset")
    units = np.empty(table.num_rows, UNITS)
    units["place"], units["size"] = table["physical_offset"], table["total_size"]
    units["stored_ms"] = table["store_timestamp"].cast("int64").to_numpy() // 1000
    units["queue_offset"] = table["queue_offset"]
    numbers: dict[tuple[str, int], int] = {}
    places = zip(table["topic"].to_pylist(), table["queue_id"].to_pylist(), strict=True)
    units["queue"] = [numbers.setdefault(queue, len(numbers)) for queue in places]
    return GrowthPlan(store, units, tuple(numbers), commits_of(store))
