"""The runs that a page of the backlog tank has without a kernel, and a run as the page gets it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlab.course.widgets.boards.backlog.limits import limits, per_call, waiting_seconds
from mqlab.course.widgets.boards.backlog.runs import TankRun, TankSettings, play_tank
from mqlab.course.widgets.frame.kept_runs import KeptRuns

RECORDED: Mapping[str, TankSettings] = {
    "2 instances": TankSettings(instances=2),
    "a database of 8 slots": TankSettings(slots=8),
    "8 slots, 3 instances": TankSettings(slots=8, instances=3),
    "200 ms of each call compute, 20 threads": TankSettings(compute_ms=200, wait_ms=800, threads=20),
    "6 instances of 2 threads, 4 queues": TankSettings(instances=6, threads=2),
    "5 threads, up to 8 messages a call": TankSettings(threads=5, batch=8),
    "the same, each queue pulled once a second": TankSettings(threads=5, batch=8, pull_interval_ms=1_000),
}


def shown(run: TankRun) -> dict[str, Any]:
    """A run as the page gets it: lists of numbers instead of many equal names."""
    waiting = waiting_seconds(run)
    return {
        "settings": run.settings.as_json(),
        "seconds": [list(row.values())[1:] for row in run.seconds],
        "limits": [list(row.values()) for row in limits(run)],
        "behind": [waiting[0], waiting[-1] + 1] if waiting else None,
        "left": run.left,
        "per_call": per_call(run),
    }


KEPT = KeptRuns("backlog", RECORDED, lambda settings: shown(play_tank(settings)))
