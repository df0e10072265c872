"""The steps of a run: one table each, in the order in which they need each other, and what they share on the way.

    from the log   messages  trace                         written in one walk over it, in Spark's tasks
    big tables     deliveries  life                        made by Spark
    small tables   offsets  readers  facts/*               counted in the driver, of rows that Spark collects for them

What several small tables need (the cells of MESSAGES and of LIFE, and more) is collected once in a run, when the first
of them asks for it. Left out: keeping it between runs; a run that is resumed collects what the missing tables need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from mqlab.data.spark.pipeline import group_facts as g
from mqlab.data.spark.pipeline import harmed_messages as h
from mqlab.data.spark.pipeline import islands as i
from mqlab.data.spark.pipeline import schemas as s
from mqlab.data.spark.pipeline import stored_facts as t
from mqlab.data.spark.pipeline.listener_calls import deliveries
from mqlab.data.spark.pipeline.log_units import Extent, offset_rows
from mqlab.data.spark.pipeline.log_walk import walk
from mqlab.data.spark.pipeline.message_life import life, reader_rows
from mqlab.data.spark.pipeline.suspicions import SUSPICIONS, suspicions
from mqlab.data.spark.small_tables import collected, for_spark, none_of, read_small
from mqlab.data.spark.thresholds import Thresholds

if TYPE_CHECKING:
    import pandas

MAX_STRETCHES, MAX_KEY_WINDOWS = 300, 24
STRETCHES_MS = [1_000 * seconds for seconds in (1, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400)]
UNFINISHED = ".unfinished"
OF_THE_LOG = ("messages", "trace")
Query = Callable[["Work"], "DataFrame | pandas.DataFrame"]
Make = Callable[["Work"], "DataFrame | pandas.DataFrame | None"]


@dataclass(slots=True)
class Work:
    """The common state of the steps of one run. ``span_ms``: first and last store time of messages by producers."""

    spark: SparkSession
    out: Path
    extents: list[Extent]
    span_ms: tuple[int, int] = (0, 0)
    done: dict[str, dict[str, float]] = field(default_factory=dict)
    streamed: bool = False
    limits: Thresholds = field(default_factory=Thresholds)
    without: tuple[str, ...] = ()
    small: dict[str, pandas.DataFrame] = field(default_factory=dict)

    def draft(self, name: str) -> Path:
        """The folder in which the table of a step is written, until it is complete."""
        return self.out / UNFINISHED / name

    @property
    def stretch_ms(self) -> int:
        """Length of the stretches of time by which facts are counted: five minutes for a day."""
        return self._round_ms(MAX_STRETCHES)

    @property
    def key_window_ms(self) -> int:
        """Length of the windows in which hot keys are looked for: an hour for a day."""
        return self._round_ms(MAX_KEY_WINDOWS)

    def _round_ms(self, limit: int) -> int:
        """The shortest round stretch of time that divides the day into ``limit`` parts or fewer."""
        day_ms = self.span_ms[1] - self.span_ms[0]
        fitting = [ms for ms in STRETCHES_MS if day_ms <= ms * limit]
        return fitting[0] if fitting else -(-day_ms // limit)

    def read(self, name: str) -> DataFrame:
        """The table that a step has written, for Spark."""
        step = STEPS[name]
        if step.is_small:
            return for_spark(self.spark, self.frame(name), step.schema)
        return self.spark.read.schema(step.schema).parquet(str(self.out / step.folder))

    def frame(self, name: str) -> pandas.DataFrame:
        """A small table that a step has written, or one of SHARED."""
        if name not in self.small:
            if name in SHARED:
                frame = SHARED[name](self)
                self.small[name] = collected(frame) if isinstance(frame, DataFrame) else frame
            else:
                self.small[name] = read_small(self.out / STEPS[name].folder)
        return self.small[name]


@dataclass(frozen=True, slots=True)
class TableStep:
    """One table: its schema, the folder it goes to, and how it is made of the tables before it.

    ``is_small``: it is a frame in the driver, or the few rows of a query of Spark. ``make`` returns None when it has
    written the table itself, as its draft.
    """

    name: str
    schema: StructType
    make: Make
    folder: str
    is_small: bool = False


def _walked(work: Work) -> None:
    """Write all tables of the log that are missing, unless the step of another one has done so."""
    missing = [name for name in OF_THE_LOG if not (work.out / name).is_dir()]
    if not all(work.draft(name).is_dir() for name in missing):
        walk(work.spark, work.extents, {name: work.draft(name) for name in missing})


def _run_if(there: object, query: DataFrame) -> DataFrame | pandas.DataFrame:
    """A query, or its table without rows where it is known already that it finds nothing."""
    return query if there else none_of(query)


def _nexts(work: Work) -> DataFrame | pandas.DataFrame:
    behind = work.frame("ends")
    behind = behind[behind["lag"] > 0]
    return _run_if(len(behind) > 0, g.next_stored(work.read("messages"), behind))


def _letters(work: Work) -> DataFrame | pandas.DataFrame:
    return _run_if((work.frame("message_cells")["kind"] == "dead").any(), h.letters(work.read("messages")))


def _lives_of(work: Work) -> DataFrame | pandas.DataFrame:
    letters = work.frame("letters")
    return _run_if(len(letters) > 0, h.lives_of(work.read("life"), letters))


def _lost(work: Work) -> pandas.DataFrame:
    return work.frame("lost_rows").sort_values([*g.PLACE, "stored", "broker_name", "queue_id", "queue_offset"])


def _calls(work: Work) -> pandas.DataFrame:
    rows = collected(g.calls(work.read("deliveries"), work.stretch_ms))
    return rows.sort_values(["stretch", "consumer_group", "client"])


def _islands_of(work: Work) -> DataFrame | pandas.DataFrame:
    query = i.islands_of(work.read("life"), work.stretch_ms, work.limits)
    return _run_if(work.frame("cells")["lost"].any(), query)


def _read_inside(work: Work) -> DataFrame | pandas.DataFrame:
    stretches = work.frame("islands_of")
    return _run_if(len(stretches) > 0, i.read_inside(work.read("life"), stretches))


def _held(work: Work) -> DataFrame | pandas.DataFrame:
    there = work.frame("cells")["no_results"].any() and (work.frame("lag")["lag"] > 1).any()
    return _run_if(there, h.held(work.read("life"), work.frame("lag")))


def _given_up(work: Work) -> DataFrame | pandas.DataFrame:
    return _run_if(work.frame("cells")["dead"].any(), h.given_up(work.read("life")))


SHARED: dict[str, Query] = {
    "message_cells": lambda w: t.cells(w.read("messages"), w.stretch_ms, w.key_window_ms),
    "hot": lambda w: t.hot(w.read("messages"), w.key_window_ms),
    "counted": lambda w: t.counted(w.read("messages"), w.frame("hot"), w.key_window_ms),
    "cells": lambda w: g.cells(w.read("life"), w.stretch_ms),
    "percentiles": lambda w: g.percentiles_of_life(w.read("life"), w.stretch_ms),
    "ends": lambda w: g.ends_of(w.frame("queues"), w.frame("offsets")),
    "nexts": _nexts,
    "letters": _letters,
    "lives_of": _lives_of,
    "lost_rows": lambda w: _run_if(w.frame("cells")["lost"].any(), h.lost(w.read("life"))),
    "entries": lambda w: g.entries(w.read("trace")),
    "islands_of": _islands_of,
    "read_inside": _read_inside,
    "held": _held,
    "given_up": _given_up,
}
"""What several small tables need, or one needs of several queries; a query is left out where nothing can come of it."""


def _steps() -> dict[str, TableStep]:
    # 1. The big tables, in the order in which they need each other, and the small ones among them.
    steps = [
        TableStep("messages", s.MESSAGES, _walked, "messages"),
        TableStep("trace", s.TRACE, _walked, "trace"),
        TableStep("deliveries", s.DELIVERIES, lambda w: deliveries(w.read("trace")), "deliveries"),
        TableStep("offsets", s.OFFSETS, lambda w: offset_rows([e.store for e in w.extents]), "offsets", is_small=True),
        TableStep(
            "readers",
            s.READERS,
            lambda w: reader_rows(w.read("messages"), w.read("deliveries"), w.frame("offsets")),
            "readers",
            True,
        ),
        TableStep("life", s.LIFE, lambda w: life(*_of(w, "messages", "deliveries", "readers", "offsets")), "life"),
    ]
    # 2. The facts, each from big tables or from facts before it.
    facts: list[tuple[str, StructType, Make]] = [
        ("traffic", t.TRAFFIC, lambda w: t.traffic(w.frame("message_cells"))),
        ("queues", t.QUEUES, lambda w: t.queues(w.frame("message_cells"))),
        ("keys", t.KEYS, lambda w: t.keys(w.key_window_ms, *_frames(w, "hot", "counted", "message_cells"))),
        ("groups", g.GROUPS, lambda w: g.groups(*_frames(w, "cells", "percentiles"))),
        ("group_tags", g.GROUP_TAGS, lambda w: g.group_tags(w.frame("cells"))),
        ("lost", h.LOST, _lost),
        ("dead_letters", h.DEAD_LETTERS, lambda w: h.dead_letters(*_frames(w, "letters", "lives_of"))),
        ("lag", g.LAG, lambda w: g.lag(*_frames(w, "ends", "nexts", "queues"))),
        ("backlog", g.BACKLOG, lambda w: g.backlog(w.frame("cells"), w.stretch_ms)),
        ("latency", g.LATENCY, lambda w: g.latency(*_frames(w, "cells", "percentiles"))),
        ("duplicates", g.DUPLICATES, lambda w: g.duplicates(w.frame("cells"))),
        ("calls", g.CALLS, _calls),
        ("slowest", g.SLOWEST_CALLS, lambda w: g.slowest(w.read("deliveries"))),
        ("producers", g.PRODUCERS, lambda w: g.producers(w.frame("entries"))),
        ("islands", i.ISLANDS, lambda w: i.islands(*_frames(w, "islands_of", "read_inside", "cells"))),
        ("suspicions", SUSPICIONS, _suspicions),
    ]
    steps += [TableStep(name, schema, make, f"facts/{name}", is_small=True) for name, schema, make in facts]
    return {step.name: step for step in steps}


def _of(work: Work, *names: str) -> list[DataFrame]:
    return [work.read(name) for name in names]


def _frames(work: Work, *names: str) -> list[pandas.DataFrame]:
    return [work.frame(name) for name in names]


def _suspicions(work: Work) -> pandas.DataFrame:
    names = ("islands", "calls", "keys", "queues", "traffic", "cells", "held", "given_up", "entries")
    tables = {name: work.frame(name) for name in names}
    return suspicions(tables, work.stretch_ms, work.extents, work.limits)


STEPS = _steps()
FACTS = [name for name, step in STEPS.items() if step.folder.startswith("facts/")]
