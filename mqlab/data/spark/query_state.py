"""What a stream keeps from batch to batch, and what came too late for it: one row per batch.

Mirrors: stateOperators and eventTime of Spark's StreamingQueryProgress.

    batch            its number; a batch without new rows is one in which only the watermark went on
    new              rows that it has read
    rows_in_state    rows that the query keeps after it, of all its joins, counts and memories of duplicates
    dropped          rows older than the watermark, which no state takes any more; a join's are counted there as well
    watermark        "2024-11-11 09:05:00" in UTC, as it was during the batch; empty if there is none yet

Lab 12 draws it as a board (mqlab.lab.views.streams.state_board).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

BEFORE_ANY_TIME = "1970-01-01"


def state_of(query_or_progress: Any) -> list[dict[str, Any]]:
    """The rows of a query that ``.start()`` returned, or of a list of its reports, such as its ``recentProgress``."""
    reports: Iterable[Any] = getattr(query_or_progress, "recentProgress", query_or_progress)
    return [
        {
            "batch": report["batchId"],
            "new": report["numInputRows"],
            "rows_in_state": sum(operator["numRowsTotal"] for operator in report["stateOperators"]),
            "dropped": sum(operator["numRowsDroppedByWatermark"] for operator in report["stateOperators"]),
            "watermark": _readable(report["eventTime"].get("watermark", "")),
        }
        for report in reports
    ]


def _readable(watermark: str) -> str:
    return "" if watermark.startswith(BEFORE_ANY_TIME) else watermark[:19].replace("T", " ")
