"""The written day of lab 11: 200,000 messages of an order platform on two brokers, as the tables of lab 11's exercises.

    written_day() ── traffic.write ──▶ two stores ── mqlab.data.arrow ──▶ messages, entries, calls, committed as Parquet
                                                                              │
              day.messages, day.entries, day.calls, day.committed ◀── Spark ──┘

    from      until     what goes wrong
    00:00     24:00     the clock of a sender at broker-b is 90 s ahead
    09:00     10:00     answers to a sender are lost: it sends a third of its messages twice
    10:00     11:00     billing's listener is slow
    12:00     14:00     a third member of notification subscribes to less: its letters about refunds are lost
    16:00     16:20     billing's listener fails, with every message
    18:00               an operator sets notification's offsets back by two hours
    21:00     21:12     billing is deployed: its processes are killed before they have stored their offsets

A played day (mqlab.course.given.lab11.played_day) is small, and every cause in it is known from its journal. A written
one has a platform's size, and what went wrong is known because it was asked for.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.data.traffic.model import FIRST_DAY_MS
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.rocketmq.wire import names
from mqlab.scales import HOUR

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from mqlab.data.traffic.writing.run import TrafficSummary

MESSAGES, BROKERS, SEED = 200_000, 2, 11
LOG_BYTES = 64 << 20
UNREAD = ("body", "properties")
"""Columns of a log that the tables leave out: they are most of its bytes, and no question of lab 11 is about them."""


def _between(kind: str, since: float, until: float, **more: Any) -> Incident:
    return Incident(kind, FIRST_DAY_MS + round(since * HOUR), FIRST_DAY_MS + round(until * HOUR), **more)


INCIDENTS = (
    _between("clock_skew", 0, 24, broker=1, client=0),
    _between("lost_answer", 9, 10, broker=0, client=0),
    _between("slow_consumer", 10, 11, group="billing"),
    _between("inconsistent_tags", 12, 14, group="notification", tags=("refunded", "cancelled")),
    _between("failing_consumer", 16, 16 + 1 / 3, group="billing"),
    # Old messages are read again twenty times faster than they came, next to the new ones.
    _between("wrong_reset", 18, 18 + 2 / 19, group="notification", back_ms=2 * HOUR),
    _between("deploy", 21, 21 + 1 / 5, group="billing"),
)


@dataclass(frozen=True)
class WrittenDay:
    """The stores of the day, and its tables as frames of the session; see the head of this file.

    ``messages`` are all of the log that are not trace, ``with_trace`` those too; a message without keys has the keys
    "". ``entries`` have the columns of lab11.calls, ``calls`` those that it returns, ``committed`` those of lab11.life.
    """

    written: TrafficSummary
    tables: Path

    @property
    def stores(self) -> Path:
        """The folder of the two stores."""
        return self.written.directory

    @property
    def with_trace(self) -> DataFrame:
        """Every message of the log, without its body."""
        return self._table("messages")

    @property
    def messages(self) -> DataFrame:
        """Every message of the log that is not trace."""
        return self.with_trace.where(f"topic != '{names.TRACE_TOPIC}'")

    @property
    def entries(self) -> DataFrame:
        """The entries of all trace messages."""
        return self._table("entries")

    @property
    def calls(self) -> DataFrame:
        """A row for each call and message in it."""
        return self._table("calls")

    @property
    def committed(self) -> DataFrame:
        """How far each group had come in each queue at the end of the day."""
        return self._table("committed")

    def truth(self) -> list[dict[str, Any]]:
        """What went wrong, and exactly whom it harmed; see mqlab.data.traffic.harm_of. Takes a second."""
        from mqlab.data.traffic.trouble.truth import harm_of

        return harm_of(self.written.asked)

    def _table(self, name: str) -> DataFrame:
        from mqlab.data.spark import session

        return session().read.parquet(str(self.tables / name))


@functools.lru_cache(maxsize=2)
def written_day(messages: int = MESSAGES) -> WrittenDay:
    """The day with that many messages, made at the first call with a bar of its progress; deleted when Python ends."""
    from tqdm import tqdm

    from mqlab.course.kit.stores import shared_folder
    from mqlab.data.traffic.writing.run import write

    folder = shared_folder("written-day")
    steps = 4 * messages  # a step of reading counts as much as the writing
    with tqdm(total=steps, desc="the day is written", unit_scale=True, file=sys.stdout, leave=False) as bar:
        written = write(
            folder / "day",
            messages=messages,
            brokers=BROKERS,
            seed=SEED,
            incidents=INCIDENTS,
            commit_log_bytes=LOG_BYTES,
            progress=bar.update,
        )
        day = WrittenDay(written, folder / "tables")
        for save, words in ((_save_messages, "messages"), (_save_calls, "trace"), (_save_committed, "offsets")):
            bar.set_description(f"{words} are read")
            save(day)
            bar.update(messages)
    return day


def _save(day: WrittenDay, name: str, table: pyarrow.Table) -> None:
    """A table as two files, which two cores read at the same time."""
    import pyarrow.parquet

    folder = day.tables / name
    folder.mkdir(parents=True)
    half = -(-table.num_rows // 2)
    for number in range(2):
        pyarrow.parquet.write_table(table.slice(number * half, half), folder / f"{number}.parquet")


def _save_messages(day: WrittenDay) -> None:
    import pyarrow.compute

    from mqlab.data.arrow import COLUMNS, read_table

    table = read_table(str(day.stores), [name for name in COLUMNS if name not in UNREAD])
    column = table.column_names.index("keys")
    _save(day, "messages", table.set_column(column, "keys", pyarrow.compute.fill_null(table.column(column), "")))


def _save_calls(day: WrittenDay) -> None:
    entries = entries_of(day.stores)
    _save(day, "entries", entries)
    _save(day, "calls", joined(entries))


def _save_committed(day: WrittenDay) -> None:
    import pyarrow

    from mqlab.course.given.lab11.lag_board import offsets_in

    table = pyarrow.Table.from_pylist(offsets_in(day.stores))
    column = table.column_names.index("queue_id")
    _save(day, "committed", table.set_column(column, "queue_id", table.column(column).cast(pyarrow.int32())))


def entries_of(stores: Path) -> pyarrow.Table:
    """The entries of all trace messages, taken apart at once, with the columns of ``trace_tables.ENTRIES``."""
    import pyarrow

    from mqlab.data.arrow import Selection, read_table
    from mqlab.data.arrow.trace_entries import Entries

    chosen = Selection(topics=(names.TRACE_TOPIC,))
    bodies = read_table(str(stores), ("broker_name", "msg_id", "body"), chosen).combine_chunks()
    entries = Entries(bodies.column("body").combine_chunks())
    columns = entries.columns()
    return pyarrow.table(
        {
            "broker_name": bodies.column("broker_name").take(entries.body),
            "trace_msg_id": bodies.column("msg_id").take(entries.body),
            "position": columns["position"],
            "kind": columns["type"],
            "time_ms": columns["time"],
            **{
                name: columns[name] for name in ("group_name", "request_id", "msg_id", "keys", "cost_ms", "retry_times")
            },
            "success": columns["success"],
            "reason": columns["reason"],
        }
    )


def joined(entries: pyarrow.Table) -> pyarrow.Table:
    """The calls of these entries, with the columns of mqlab.course.given.lab11.trace_tables.CALLS.

    The clients of a written day tell when a call was over, and no trace message of it is stored twice.
    """
    import pyarrow
    import pyarrow.compute

    from mqlab.course.given.lab11.trace_tables import FAILED, NO_RESULT, SUCCESS

    call = ["request_id", "msg_id"]
    before = entries.filter(pyarrow.compute.field("kind") == "SubBefore")
    before = before.select([*call, "group_name", "keys", "retry_times", "time_ms"]).rename_columns(
        [*call, "group_name", "keys", "retry_times", "started_ms"]
    )
    after = entries.filter(pyarrow.compute.field("kind") == "SubAfter").select([*call, "time_ms", "success"])
    after = after.rename_columns([*call, "ended_ms", "success"])
    both = before.join(after, call, join_type="left outer").combine_chunks()
    status = pyarrow.compute.fill_null(pyarrow.compute.if_else(both.column("success"), SUCCESS, FAILED), NO_RESULT)
    names_in_order = ["group_name", *call, "keys", "retry_times", "started_ms", "ended_ms"]
    return both.select(names_in_order).append_column("status", status).sort_by("started_ms")
