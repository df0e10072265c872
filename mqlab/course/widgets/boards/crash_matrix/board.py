"""The crash matrix: variants of an answer, and how each ends for every place at which a node can crash.

Labs 01, 04 and 08 compare answers with it.

    matrix = crash_matrix({"check, then act": first, "one transaction": second}, node="billing-1", outcome=paid)
    matrix.table()       how often each variant ended how         matrix.cells()    every run
    matrix.open("check, then act", 12)                            that run in the time machine

An outcome is a text that ``outcome(lab)`` returns; "good" is what the run without a crash returns, or ``good=``.
Left out: two crashes in one run.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from markupsafe import Markup

from mqlab.course.widgets.boards.time_machine.explorer import Explorer, explore
from mqlab.course.widgets.frame.board import Board
from mqlab.course.widgets.frame.packing import TextPool
from mqlab.errors import MqlabError, UsageError
from mqlab.lab.parts.broken import BrokenPart
from mqlab.lab.views.moments import moments
from mqlab.lab.views.table import Table
from mqlab.lab.views.timeline import after
from mqlab.lab.world.crashes import calm_run, crash_run, with_crash
from mqlab.lab.world.state import CrashPoint
from mqlab.lab.world.story import Story

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

GOOD, ALSO_GOOD, BAD = "✓", "ⓐⓑⓒⓓⓔⓕⓖⓗⓘ", "①②③④⑤⑥⑦⑧⑨"
NOT_RUN = "not run"
BEFORE_CRASH, AFTER_CRASH = 4, 9
SLICE_SECONDS = 0.5
PAGES_KEPT = 2


@dataclass(slots=True)
class Cell:
    """One run: its variant, its crash point, how it ended (None: not run yet), and what happened around the crash."""

    variant: str
    point: CrashPoint
    outcome: str | None = None
    story: tuple[str, ...] = ()


class CrashMatrix(Board):
    """The explorer; ``crash_matrix`` makes one. ``state`` has the variant and the number of the chosen cell."""

    module, label = "crash_matrix", "Crash matrix"
    state_defaults: ClassVar[Mapping[str, Any]] = {"variant": "", "number": -1}

    def __init__(
        self,
        variants: Mapping[str, Story],
        *,
        node: str,
        outcome: Callable[[Lab], Any],
        good: str | Collection[str] | None,
        how: str,
        restart_after: str | int | None,
        only: Callable[[CrashPoint], bool],
        seed: int,
        show: Any,
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__()
        if not variants:
            raise UsageError("a crash matrix needs a variant", hint='crash_matrix({"my answer": story}, …)')
        self._variants = dict(variants)
        self._outcome = outcome
        self._crash: dict[str, Any] = {"node": node, "how": how, "restart_after": restart_after}
        self._world = {"seed": seed, **settings}
        self._show = show
        self.good: dict[str, frozenset[str]] = {}
        self.rows: dict[str, list[Cell]] = {}
        for name, story in self._variants.items():
            # A wrong word for the crash is refused here, before anything is played.
            with_crash(story, CrashPoint("step", 0, ""), **self._crash)
            calm, points = calm_run(story, node=node, **self._world)
            wanted = [str(outcome(calm))] if good is None else [good] if isinstance(good, str) else good
            self.good[name] = frozenset(wanted)
            self.rows[name] = [Cell(name, point) for point in points if only(point)]

    @property
    def waiting(self) -> list[Cell]:
        """The cells that were not run yet."""
        return [cell for row in self.rows.values() for cell in row if cell.outcome is None]

    def run(self, *, seconds: float | None = None) -> CrashMatrix:
        """Run what was not run yet, at most so long; an interruption keeps what is done, and ``run()`` goes on."""
        from tqdm import tqdm

        waiting = self.waiting
        until = None if seconds is None else time.monotonic() + seconds
        hidden = seconds is not None or None  # the page has a bar of its own
        bar = tqdm(total=len(waiting), desc="crashes", file=sys.stdout, leave=False, delay=1, disable=hidden)
        try:
            for cell in waiting:
                self._play(cell)
                bar.update()
                if until is not None and time.monotonic() > until:
                    break
        except KeyboardInterrupt:
            pass
        finally:
            bar.close()
        self.renew()
        return self

    def _play(self, cell: Cell) -> None:
        try:
            lab = crash_run(self._variants[cell.variant], cell.point, **self._crash, **self._world)
            outcome = str(self._outcome(lab))
            story = _around_the_crash(lab, cell.point, self._crash["node"])
        except (Exception, BrokenPart) as error:
            # An answer that raises after a crash has ended in some way, too; the other runs are still of interest.
            outcome, story = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}", ()
        cell.outcome, cell.story = outcome, story

    def is_good(self, cell: Cell) -> bool:
        """Whether a run ended as it should."""
        return cell.outcome in self.good[cell.variant]

    def symbols(self) -> dict[str, str]:
        """Outcome -> its own sign: a tick for the first good one, letters for other good ones, numbers for the rest."""
        signs: dict[str, str] = {}
        of = {True: iter(GOOD + ALSO_GOOD), False: iter(BAD)}
        last = {True: ALSO_GOOD[-1], False: BAD[-1]}
        for row in self.rows.values():
            for cell in row:
                if cell.outcome is not None and cell.outcome not in signs:
                    good = self.is_good(cell)
                    signs[cell.outcome] = next(of[good], last[good])
        return signs

    def table(self) -> Table:
        """One row per variant and outcome: its sign, at how many points, and the first of them."""
        rows = []
        signs = self.symbols()
        for name, row in self.rows.items():
            for outcome in dict.fromkeys(cell.outcome for cell in row):
                points = [cell.point for cell in row if cell.outcome == outcome]
                sign = "" if outcome is None else signs[outcome]
                rows.append(
                    {
                        "variant": name,
                        "sign": sign,
                        "outcome": NOT_RUN if outcome is None else outcome,
                        "points": len(points),
                        "first": str(points[0]),
                    }
                )
        node, how = self._crash["node"], self._crash["how"]
        return Table(rows, title=f"{node} ended by {how} at every point", empty="no crash point was chosen")

    def cells(self) -> Table:
        """Every run: variant, number in its row, crash point, outcome (None: not run), whether it is good."""
        return Table(
            [
                {
                    "variant": name,
                    "number": number,
                    "point": str(cell.point),
                    "outcome": cell.outcome,
                    "good": None if cell.outcome is None else self.is_good(cell),
                }
                for name, row in self.rows.items()
                for number, cell in enumerate(row)
            ],
            columns=["variant", "number", "point", "outcome", "good"],
        )

    def chosen(self) -> Cell:
        """The cell chosen in the page. UsageError when none is."""
        return self.cell(self.state["variant"], self.state["number"])

    def cell(self, variant: str, number: int) -> Cell:
        """One cell by its variant and its number in the row; UsageError when there is none."""
        row = self.rows.get(variant)
        if row is None or not 0 <= number < len(row):
            hint = f"variants: {', '.join(self.rows)}" if row is None else f"numbers go from 0 to {len(row) - 1}"
            raise UsageError(f"there is no cell {number} of {variant!r}", hint=hint)
        return row[number]

    def open(self, variant: str | None = None, number: int | None = None) -> Explorer:
        """The time machine on one run, at its crash; without arguments on the one chosen in the page."""
        cell = self.chosen() if variant is None or number is None else self.cell(variant, number)
        story = with_crash(self._variants[cell.variant], cell.point, **self._crash)
        explorer = explore(story, show=self._show, **self._world)
        crash = _crash_step(explorer.recording.lab, cell.point, self._crash["node"])
        if crash is not None:
            explorer.set("position", bisect_right(explorer.recording.steps, crash))
        return explorer

    def data(self) -> dict[str, Any]:
        """The grid; texts that many runs share are written once."""
        pool = TextPool()
        signs = self.symbols()
        rows = [
            {
                "name": name,
                "good": sorted(self.good[name]),
                "cells": [
                    [str(cell.point), cell.point.kind, cell.outcome, [pool.add(line) for line in cell.story]]
                    for cell in row
                ],
            }
            for name, row in self.rows.items()
        ]
        return {"rows": rows, "signs": signs, "texts": pool.texts, "pages": self._pages(), **self._crash}

    def _pages(self) -> dict[str, str]:
        """The time machines that a page without a kernel can open: the first runs that ended in a new, bad way."""
        first: dict[str, tuple[str, int]] = {}
        for name, row in self.rows.items():
            for number, cell in enumerate(row):
                if cell.outcome is not None and not self.is_good(cell):
                    first.setdefault(cell.outcome, (name, number))
        # The grid of a run that goes on is made again twice a second: its pages can wait.
        kept = [] if self.waiting else list(first.values())[:PAGES_KEPT]
        return {f"{name} {number}": self._page(name, number) for name, number in kept}

    def _page(self, variant: str, number: int) -> str:
        return str(self.open(variant, number).html())

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``run`` for half a second, or ``open`` a run: its page."""
        if name == "run":
            self.run(seconds=SLICE_SECONDS)
            return {"left": len(self.waiting)}
        if name == "open":
            try:
                return {"html": self._page(arguments["variant"], int(arguments["number"]))}
            except MqlabError:
                raise
            except (Exception, BrokenPart) as error:
                raise UsageError(f"this run ends with {type(error).__name__}: {error}") from error
        return super().asked(name, arguments)

    def readable(self) -> Markup:
        """The counts, and the runs that did not end well."""
        bad = [row.as_dict() for row in self.cells() if row.good is False]
        return self.table().html() + Table(bad, title="Runs that did not end well", empty="none").html()


def crash_matrix(
    variants: Mapping[str, Story] | Story,
    *,
    node: str,
    outcome: Callable[[Lab], Any],
    good: str | Collection[str] | None = None,
    how: str = "kill",
    restart_after: str | int | None = "1s",
    only: Callable[[CrashPoint], bool] = lambda point: True,
    seed: int = 0,
    show: Any = None,
    run: bool = True,
    **settings: Any,
) -> CrashMatrix:
    """Run every variant once per crash point of a node and show how each run ended.

    ``variants`` maps names to stories; ``outcome(lab)`` says in a few words how a run ended, and ``good`` which words
    are right (None: those of the run without a crash). ``how``, ``restart_after``, ``only`` and other keywords are
    those of ``every_crash``; ``show`` is the time machine's. ``run=False`` leaves the running to the page or to
    ``run()``.
    Raises UsageError for a node that never acts and for an unknown kind of crash.

    >>> from mqlab import Message
    >>> def story(lab):
    ...     lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    ...     lab.producer("shop", enable_trace=False).send(Message("orders", b"a book"))
    >>> def stored(lab):
    ...     return f"{len(list(lab.store().messages('orders')))} stored"
    >>> matrix = crash_matrix(story, node="shop-1", outcome=stored, only=lambda point: "frame" in point.where)
    >>> matrix.good
    {'story': frozenset({'1 stored'})}
    """
    named = variants if isinstance(variants, Mapping) else {getattr(variants, "__name__", "story"): variants}
    matrix = CrashMatrix(
        named,
        node=node,
        outcome=outcome,
        good=good,
        how=how,
        restart_after=restart_after,
        only=only,
        seed=seed,
        show=show,
        settings=settings,
    )
    return matrix.run() if run else matrix


def _around_the_crash(lab: Lab, point: CrashPoint, node: str) -> tuple[str, ...]:
    """The moments before and after the crash as lines."""
    crash = _crash_step(lab, point, node)
    shown = [moment for moment in moments(lab.journal) if moment.step is not None]
    if crash is None or not shown:
        return ()
    begin_ms = shown[0].now_ms
    crash_index = next((n for n, m in enumerate(shown) if m.step is not None and m.step >= crash), len(shown))
    lines = []
    for moment in shown[max(0, crash_index - BEFORE_CRASH) : crash_index + AFTER_CRASH]:
        where = f"{moment.lane} ▶ {moment.to}" if moment.to else moment.lane
        lines.append(f"{after(moment.now_ms - begin_ms)} {where}: {moment.text}")
    return tuple(lines)


def _crash_step(lab: Lab, point: CrashPoint, node: str) -> int | None:
    """The step of the crash. The story may have faults of its own; that of a crash before a step comes just there."""
    first = point.number if point.kind == "step" else 0
    return next((r.step for r in lab.journal if r.kind == "fault" and r.node == node and r.step >= first), None)
