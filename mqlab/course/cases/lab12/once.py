"""lab12.once: a sink that holds each message once, however often a batch comes and wherever the process is killed.

    log           batch 0    batch 1   batch 2         read() gives a batch's rows, as collect() does
    job-1         once(connection, batch_id, read) ─▶ the table sold       then the checkpoint: batch_id is done
    killed        before each line of once, and started again: the batch without a checkpoint comes again
    also played   the process dies after once and before the checkpoint; the checkpoint is deleted, and batches have
                  other borders; retention deletes a file between two reads of one batch

Judged by the rows of sold: those of the log, each once.
"""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.given.lab12.batch_job import COLUMNS, DATABASE, NODE, BatchJob, Row, sold
from mqlab.course.kit.crashing import EveryCrash
from mqlab.course.kit.days import Day, Does, NotMade, Played, parameters_of, takes
from mqlab.course.teach.exercises import Finding
from mqlab.course.teach.lives import anew
from mqlab.course.words import refutation

NAME = "once"
FORGOTTEN = "the checkpoint was deleted"

FORM_RULE = "once is a function: once(connection, batch_id, read)"
TABLE_RULE = (
    "The rows are in the table sold, with the columns broker_name, physical_offset, keys and cents. once makes the "
    "table when it is not there yet: CREATE TABLE IF NOT EXISTS"
)
RAISED_RULE = (
    "A repeated batch is not an error, and neither is an existing table: INSERT OR IGNORE leaves "
    "out a row that the table's key has"
)
COMMIT_RULE = (
    "once puts the rows of each batch into sold, and commits them before it returns: with connection: … commits"
)
VALUES_RULE = "A row of sold has the values that read() gave: broker_name, physical_offset, keys and cents"
MIXED_RULE = (
    "After the deletion of the checkpoint batches have other ranges: one may have rows that are in sold and rows that "
    "are not. When the first are refused, the others have to go in all the same, as with INSERT OR IGNORE"
)
NOT_IN_THE_LOG = "Only rows that read() gave belong into sold"


@dataclass(slots=True)
class SinkDay(Played):
    """A job over a log, with what happens on this day in a few words."""

    job: BatchJob = field(init=False)
    what: str = ""
    is_retained: bool = False  # retention deletes half of a batch after its first read
    gone: Finding | None = None  # a row that was in sold and was not when the process died

    def begins(self, batches: Sequence[Sequence[Row]], what: str) -> None:
        """The job, with a checkpoint that knows of nothing."""
        self.what, self.job = what, BatchJob(self.lab, batches, lambda number: self._reader(batches[number]))

    def runs(self, forgets: Sequence[int] = ()) -> None:
        """To the end."""
        self.job.run(self._sink, forgets=forgets, died=self._died)

    @property
    def where(self) -> str:
        return f"{self.what}: " if self.what else ""

    def _sink(self) -> Any:
        once = anew(self.answers[NAME], NAME)
        if not takes(once, 3):
            raise NotMade(NAME, parameters_of(once), FORM_RULE, "its arguments", "once(connection, batch_id, read)")
        return once

    def _reader(self, rows: Sequence[Row]) -> Callable[[], list[Row]]:
        reads = 0

        def read() -> list[Row]:
            nonlocal reads
            reads += 1
            left = rows[len(rows) // 2 :] if self.is_retained and reads > 1 else rows
            return [dict(row) for row in reversed(left)]  # tasks read side by side: rows are in no order

        return read

    def _died(self) -> None:
        """A reader of the table must now find what was in it already."""
        sunk = {tuple(row[:2]) for row in self.rows()} if not isinstance(self.rows(), str) else set()
        finished = [number for number, calls in self.job.calls.items() if calls > (number in self.job.killed)]
        for number in finished:
            for row in self.job.batches[number]:
                if (row["broker_name"], row["physical_offset"]) not in sunk and self.gone is None:
                    belief, where = "lab12.delete_then_insert", f"{self.where}{row['keys']} of batch {number}"
                    self.gone = Finding(refutation(belief), where, "still in sold", "gone", lab=self.lab, belief=belief)

    def rows(self) -> list[Any] | str:
        """The rows of sold, or why they cannot be read."""
        try:
            return sold(self.lab)
        except sqlite3.Error as error:
            return str(error)


def log_rows(seed: int, count: int) -> list[Row]:
    """Rows of two brokers. Both have messages at the same places; one order came three times, twice to one of them."""
    rng = random.Random(f"lab12.once {seed} {count}")
    rows: list[Row] = []
    places = list(itertools.accumulate((rng.randrange(200, 400) for _ in range(count - 1)), initial=0))
    for number in range(count):
        broker = "ab"[number % 2]
        first = min(number, count - 3)  # the last three are one order, sent again
        rows.append(
            {
                "broker_name": f"broker-{broker}",
                "physical_offset": places[number // 2],
                "keys": f"O{100 + first}",
                "cents": 1 << (4 + first),
            }
        )
    return rows


def _cut(rows: Sequence[Row], *sizes: int) -> list[list[Row]]:
    batches, begin = [], 0
    for size in sizes:
        batches.append(list(rows[begin : begin + size]))
        begin += size
    return [*batches, list(rows[begin:])]


def _day(*acts: Callable[[SinkDay], None]) -> Day:
    return Day(tuple(Does(act) for act in acts), kind=SinkDay)


def calm(seed: int) -> Day:
    """Three batches, one of them empty; nothing fails."""
    batches = _cut(log_rows(seed, 10), 4, 0)
    return _day(lambda today: today.begins(batches, "nothing fails"), SinkDay.runs)


def again(seed: int) -> Day:
    """Each process dies between ``once`` and the checkpoint: the batch comes again."""
    batches = _cut(log_rows(seed, 10), 4, 3)
    return _day(
        lambda today: today.begins(batches, "each batch comes twice"), lambda today: today.runs(forgets=(0, 1, 2))
    )


def retention(seed: int) -> Day:
    """A file of the log is deleted between two reads of one batch."""
    batches = _cut(log_rows(seed, 10), 6)

    def begins(today: SinkDay) -> None:
        today.is_retained = True
        today.begins(batches, "retention deletes a file while a batch is under way")

    return _day(begins, SinkDay.runs)


def forgotten(seed: int) -> Day:
    """The checkpoint is deleted: numbers of batches begin again, and their borders are others."""
    rows = log_rows(seed, 12)
    return _day(
        lambda today: today.begins(_cut(rows[:9], 3, 2, 2), "the first run"),
        SinkDay.runs,
        lambda today: today.begins(_cut(rows, 7), FORGOTTEN),
        SinkDay.runs,
    )


def short(seed: int) -> Day:
    """Two small batches, the first of which comes again; the process dies somewhere."""
    batches = _cut(log_rows(seed, 5), 3)
    return _day(lambda today: today.begins(batches, ""), lambda today: today.runs(forgets=(0,)))


def _works(today: SinkDay) -> Finding | None:
    job = today.job
    if job.raised is not None:
        if not isinstance(job.raised, sqlite3.Error):
            raise job.raised
        actual = f"{type(job.raised).__name__}: {job.raised}"
        where = f"{today.where}batch {job.done}, call {job.calls[job.done]} of once"
        return Finding(RAISED_RULE, where, "the batch is done", actual, lab=today.lab)
    rows = today.rows()
    if isinstance(rows, str):
        return Finding(TABLE_RULE, f"{today.where}the table sold", ", ".join(COLUMNS), rows, lab=today.lab)
    if not rows:
        return Finding(COMMIT_RULE, f"{today.where}the table sold, after all batches", "rows", "none", lab=today.lab)
    return today.gone


def _nothing_is_lost(today: SinkDay) -> Finding | None:
    wanted, there = _counted(today)
    places = {row[:2] for row in there}
    for number, batch in enumerate(today.job.batches):
        for row in batch:
            values = tuple(row[name] for name in COLUMNS)
            where = f"{today.where}{row['keys']}, {row['broker_name']} at {row['physical_offset']}, batch {number}"
            if values[:2] in places and values not in there:
                other = next(row for row in there if row[:2] == values[:2])
                return Finding(VALUES_RULE, where, row, dict(zip(COLUMNS, other, strict=True)), lab=today.lab)
            if values not in there:
                rule, belief = _why_lost(today, row)
                return Finding(rule, where, "in sold, once", "not in sold", lab=today.lab, belief=belief)
    for values in there:
        if values not in wanted:
            return Finding(NOT_IN_THE_LOG, f"{today.where}a row of sold", "no such row", values, lab=today.lab)
    return None


def _why_lost(today: SinkDay, row: Row) -> tuple[str, str]:
    """What to say of a row that is not there: by what happened on this day."""
    _, there = _counted(today)
    keys, places = {sunk[2] for sunk in there}, {sunk[1] for sunk in there}
    unsold = [other for batch in today.job.batches for other in batch if tuple(map(other.get, COLUMNS)) not in there]
    tables, by = _tables_and_key(today)
    if today.is_retained:
        belief = "lab12.batch_is_kept"
    elif {other["physical_offset"] for other in unsold} <= places and not by & {"keys", "broker_name"}:
        belief = "lab12.place_without_broker"
    elif today.what == FORGOTTEN and tables == 1 and by and by <= set(COLUMNS):
        return MIXED_RULE, ""
    elif today.what == FORGOTTEN:
        belief = "lab12.number_names_a_batch"
    elif row["keys"] in keys:
        belief = "lab12.order_is_message"
    elif today.lab.journal.of("fault.killed"):
        belief = "lab12.two_transactions"
    else:
        return "Every row that read() gave, in this batch and in those before, has to be in sold", ""
    return refutation(belief), belief


def _nothing_is_twice(today: SinkDay) -> Finding | None:
    _, there = _counted(today)
    for values, count in there.items():
        if count == 1:
            continue
        where = f"{today.where}{values[2]}, {values[0]} at {values[1]}"
        killed = bool(today.lab.journal.of("fault.killed"))
        if today.what == FORGOTTEN:
            belief = "lab12.number_names_a_batch"
        elif killed:
            belief = "lab12.two_transactions"
        else:
            belief = "lab12.new_number" if _tables_and_key(today)[1] else "lab12.comes_once"
        return Finding(refutation(belief), where, "in sold, once", f"{count} times", lab=today.lab, belief=belief)
    return None


def _tables_and_key(today: SinkDay) -> tuple[int, set[str]]:
    """How many tables there are, and the columns of the key by which the table sold refuses rows."""
    with closing(sqlite3.connect(today.lab.database(DATABASE).path)) as connection:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()
        columns = connection.execute("PRAGMA table_info(sold)").fetchall()
        return tables, {name for _, name, *_, key_position in columns if key_position}


def _counted(today: SinkDay) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    wanted = Counter(tuple(row[name] for name in COLUMNS) for batch in today.job.batches for row in batch)
    return wanted, Counter(map(tuple, today.rows()))


ONCE = EveryCrash(
    "lab12.once",
    "once(connection, batch_id, read)",
    points=5,
    about="batches that come again, and a death at every line",
    days=[calm, again, forgotten, retention],
    crash_day=short,
    node=NODE,
    at="line",
    most=60,
    promises=[_works, _nothing_is_lost, _nothing_is_twice],
)
