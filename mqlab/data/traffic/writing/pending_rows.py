"""Rows that a slice leaves to later slices: trace entries not sent yet, and copies of failed messages not due yet.

Mirrors: the queues inside AsyncTraceDispatcher, and SCHEDULE_TOPIC_XXXX.

    ENTRY   client, time, kind (Pub, SubBefore, SubAfter), message and outcome
    COPY    a failed message as it will be stored: in the schedule topic, the retry topic or the dead letter topic

    made_ms is the time in a message's UNIQ_KEY, born_ms that in its head: a message that is sent again is born again.

    pool ── everything up to a moment ──▶ this slice          the rest stays

The rows are not ordered; a slice sorts the rows that it takes.
"""

from __future__ import annotations

import numpy as np

from mqlab.data.traffic.draws import Array

ENTRY = np.dtype(
    [
        ("time_ms", "i8"),
        ("order", "i8"),
        ("made_ms", "i8"),
        ("physical_offset", "i8"),
        ("cost_ms", "i4"),
        ("request", "u2"),
        ("counter", "u2"),
        ("body", "u2"),
        ("client", "u1"),
        ("sender", "u1"),
        ("kind", "u1"),
        ("what", "u1"),
        ("group", "u1"),
        ("tries", "u1"),
        ("code", "u1"),
    ]
)

COPY = np.dtype(
    [
        ("time_ms", "i8"),
        ("order", "i8"),
        ("made_ms", "i8"),
        ("born_ms", "i8"),
        ("origin", "i8"),
        ("due_ms", "i8"),
        ("counter", "u2"),
        ("sender", "u1"),
        ("kind", "u1"),
        ("what", "u1"),
        ("group", "u1"),
        ("tries", "u1"),
    ]
)
"""``origin``: physical offset of the message that failed first; ``due_ms`` is used for scheduled copies only."""


class TimedRows:
    """Rows with a time, which are taken out when their time has come."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._waiting = np.empty(0, dtype)

    def due(self, fresh: list[Array], until_ms: int) -> Array:
        """All waiting and fresh rows up to a moment, that moment included; the others stay."""
        rows = np.concatenate([self._waiting, *fresh])
        is_due = rows["time_ms"] <= until_ms
        self._waiting = taken(rows, np.flatnonzero(~is_due))
        return taken(rows, np.flatnonzero(is_due))

    def resolve(self, column: str, physical_offsets: Array) -> None:
        """Replace row numbers by physical offsets; see ``resolve``."""
        resolve(self._waiting, column, physical_offsets)

    def __len__(self) -> int:
        return len(self._waiting)


def taken(rows: Array, places: Array) -> Array:
    """Rows of a structured array, copied whole and not field by field."""
    whole = rows.view(f"V{rows.dtype.itemsize}")
    return whole[places].view(rows.dtype)


def unresolved(rows: Array) -> Array:
    """Rows of this slice's messages, written so that they cannot be taken for physical offsets."""
    return -rows - 1


def resolve(entries: Array, column: str, physical_offsets: Array) -> None:
    """Replace in place each number that ``unresolved`` wrote by the physical offset of that row's message."""
    values = entries[column]
    rows = np.flatnonzero(values < 0)
    if len(rows):
        values[rows] = physical_offsets[-values[rows] - 1]
