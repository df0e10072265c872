"""The form of lab 12's exercises about streams: an answer runs over a film, and is judged batch by batch.

    calls ─▶ run_of_film(answer, film, …) ─▶ Run ─▶ refused by Spark? columns? promises ─▶ Finding

A promise is a function (call, run) -> Finding or None. Each finding names the batch in which it shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqlab.course.cases.lab12.moments import shown
from mqlab.course.given.lab12.streams import make_film
from mqlab.course.kit.calls import hearing, marked
from mqlab.course.kit.form import exercise_of, first
from mqlab.course.kit.rows import Store
from mqlab.course.kit.stores import shared_folder
from mqlab.course.teach.exercises import Answers, Call, Exercise, Finding
from mqlab.course.words import refutation
from mqlab.scales import MINUTE

Row = Mapping[str, Any]
THROUGH = "run_of_film"


@dataclass(frozen=True)
class Film:
    """The slices of a film: rows with times in ms, each a batch."""

    slices: Sequence[Sequence[Row]]
    time: str  # the column that says when

    def until(self, batch: int) -> list[Row]:
        """What was there when a batch had been read; batches after the last slice bring nothing new."""
        return [row for rows in self.slices[: batch + 1] for row in rows]

    def newest_ms(self, batch: int | None = None) -> int:
        """The latest time of all rows that were there after a batch."""
        rows = self.until(len(self.slices) if batch is None else batch)
        return max(int(row[self.time]) for row in rows)


@dataclass(frozen=True)
class FilmRun:
    """What came out of a film: rows with the batch in which they came, and of each batch what Spark tells."""

    rows: Sequence[Row]
    batches: Sequence[Row]
    mode: str

    @property
    def has_watermark(self) -> bool:
        """Whether Spark ever knew what is too late."""
        return any(batch["watermark"] for batch in self.batches)

    def waits_longer(self, bound_ms: int) -> bool:
        """Whether the watermark is before a moment in the end: the delay is longer than it has to be."""
        return bool(self.batches[-1]["watermark"] < shown(bound_ms // 1000 * 1000))

    @property
    def forgets(self) -> bool:
        """Whether Spark ever kept fewer rows after a batch than before it."""
        kept = [int(batch["rows_in_state"]) for batch in self.batches]
        return any(after < before for before, after in itertools.pairwise(kept))

    @property
    def kept_rows(self) -> int:
        """How many rows Spark keeps after the last batch."""
        return int(self.batches[-1]["rows_in_state"])

    def of(self, batch: int) -> list[Row]:
        """The rows of one batch."""
        return [row for row in self.rows if row["batch"] == batch]

    def dropped_in(self, batch: int) -> int:
        """How many rows were too late for Spark's state, up to a batch."""
        return sum(progress["dropped"] for progress in self.batches if progress["batch"] <= batch)


def minutes_ms(call: Call, name: str) -> int:
    """An argument such as "20 minutes", in ms."""
    return int(call[name].partition(" ")[0]) * MINUTE


Promise = Callable[[Call, FilmRun], Finding | None]
Refused = Callable[[str], str]  # what Spark says -> the id of a belief, or a rule in words, or ""


@dataclass(frozen=True)
class Films:
    """The form; the arguments are those of ``OverFilm``."""

    id: str
    name: str
    about: str
    calls: Callable[[int], Iterable[Call]]
    columns: Sequence[str]
    refused: Refused
    promises: Sequence[Promise]
    weights: Mapping[str, float]
    through: str = THROUGH

    def make(self, seed: int) -> list[Call]:
        """The calls of a seed."""
        return list(self.calls(seed))

    def judge(self, answers: Answers, trial: Iterable[Call]) -> Finding | None:
        """Call by call, up to the first broken promise."""
        return first(self._judged(answers, call) for call in trial)

    def _judged(self, answers: Answers, call: Call) -> Finding | None:
        arguments = [str(value) if isinstance(value, Store) else value for value in call.arguments.values()]
        with hearing(), marked(call):
            film = answers[self.through](answers[self.name], *arguments)
        # 1. Does Spark run it?
        if film["refused"]:
            why = self.refused(film["refused"])
            belief = why if why.startswith("lab12.") else ""
            rule = refutation(belief) if belief else why or "Spark has to run the query; it refuses this one"
            where = f"{call.about}: before the first batch"
            return Finding(rule, where, "a query that Spark runs", film["refused"], call=call, belief=belief)
        # 2. The columns.
        run = FilmRun(film["rows"], film["batches"], film["mode"])
        for row in run.rows[:1]:
            if not row.keys() >= set(self.columns):
                rule = f"{self.name} returns a DataFrame with the columns {', '.join(self.columns)}"
                columns = [name for name in row if name != "batch"]
                return Finding(rule, f"{call.about}: its columns", list(self.columns), columns, call=call)
        # 3. What must be true of the batches.
        return first(promise(call, run) for promise in self.promises)


def OverFilm(
    id: str,
    signature: str,
    *,
    points: int,
    about: str,
    calls: Callable[[int], Iterable[Call]],
    columns: Sequence[str],
    promises: Sequence[Promise],
    refused: Refused = lambda words: "",
    weights: Mapping[str, float] | None = None,
    seeds: Sequence[int] = (1,),
) -> Exercise:
    """An exercise whose answer is a stream; its calls have a film as first argument, and a Film in ``given``."""
    name = signature.partition("(")[0]
    form = Films(id, name, about, calls, columns, refused, promises, weights or {})
    return exercise_of(form, points=points, seeds=seeds, beside=(THROUGH,))


def film_folder(film: Film, types: Mapping[str, str], about: str) -> Store:
    """The film in a folder that other processes can read."""
    return Store(str(make_film(Path(shared_folder("film"), "slices"), film.slices, types)), about)


def place(call: Call, batch: int, what: str = "") -> str:
    """Where something shows: the batch, and what of it.

    >>> place(Call(about="a film"), 2, "minute 09:05")
    'a film: batch 2, minute 09:05'
    """
    return f"{call.about}: batch {batch}" + (f", {what}" if what else "")


def told_by(call: Call, belief: str, batch: int, expected: object, found: object, what: str = "") -> Finding:
    """The finding that refutes a belief."""
    return Finding(refutation(belief), place(call, batch, what), expected, found, call=call, belief=belief)


def kept_too_many(call: Call, run: FilmRun, most: int, why: Callable[[], str]) -> Finding | None:
    """What is wrong if Spark keeps more rows in the end; ``why`` is the id of a belief, or a rule in words."""
    if run.kept_rows <= most:
        return None
    batch, rule = run.batches[-1]["batch"], why()
    expected, actual = f"at most {most} rows in state", f"{run.kept_rows} rows in state"
    if rule.startswith("lab12."):
        return told_by(call, rule, batch, expected, actual)
    return Finding(rule, place(call, batch), expected, actual, call=call)


def clock(moment_ms: int) -> str:
    """The time of a day, such as 09:05:00."""
    return shown(moment_ms // 1000 * 1000)[11:]
