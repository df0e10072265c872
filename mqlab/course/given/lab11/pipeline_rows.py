"""Lab 11's tables as the pipeline's tables have them, so that its pictures show a learner's rows.

    calls      group_name msg_id keys retry_times started_ms ended_ms status   ─▶ DELIVERIES
    offsets    broker_name group_name topic queue_id committed                 ─▶ OFFSETS
    lives      group_name msg_id keys calls outcome                            ─▶ LIFE

MESSAGES need no change: mqlab.data.spark.pipeline.message_kinds makes them. A trace does not name the member that was
called, but the address of its sender; here it is "a member".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

Row = Mapping[str, Any]
LIVES = {"group_name", "msg_id", "keys", "calls", "outcome"}


def deliveries(calls: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of ``trace_tables.calls_in`` as rows of DELIVERIES, as far as a biography needs them."""
    return [
        {
            "consumer_group": call["group_name"],
            "msg_id": call["msg_id"],
            "keys": call["keys"],
            "client": "a member",
            "retry_times": call["retry_times"],
            "started": _time(call["started_ms"]),
            "ended": _time(call["ended_ms"]),
            "cost_ms": None if call["ended_ms"] is None else call["ended_ms"] - call["started_ms"],
            "status": call["status"],
        }
        for call in calls
    ]


def offsets(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of ``lag_board.offsets_in`` as rows of OFFSETS."""
    return [
        {
            "broker_name": row["broker_name"],
            "topic": row["topic"],
            "queue_id": row["queue_id"],
            "consumer_group": row["group_name"],
            "consumer_offset": row["committed"],
        }
        for row in rows
    ]


def lives(rows: Iterable[Row], units: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of an answer of lab11.life as rows of LIFE; ``units`` are rows of MESSAGES, for the places.

    An answer may be wrong: a row without these columns, or of a message that was never sent, is left out.
    """
    first_units: dict[tuple[str, str], Row] = {}
    for unit in units:
        if unit["kind"] == "normal" and not unit["parked"]:
            first_units.setdefault((unit["msg_id"], unit["keys"]), unit)
    named = ("broker_name", "topic", "queue_id", "queue_offset")
    return [
        {
            "consumer_group": row["group_name"],
            "msg_id": row["msg_id"],
            "keys": row["keys"],
            "outcome": row["outcome"],
            "attempts": row["calls"],
            **{name: first_units[row["msg_id"], row["keys"]][name] for name in named},
        }
        for row in rows
        if row.keys() >= LIVES and (row["msg_id"], row["keys"]) in first_units
    ]


def _time(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
