"""One play of a story with everything that the page shows at each stop, recorded while it plays.

    Recording(story, seed=7, show=…)      plays once;  .data() is JSON for the page, .lab the world at its end
    before each step: did the step before change something worth showing?  ->  facts, and the views of ``show``

A stop is a step that has moments. More than MOST_STOPS recorded places are thinned to every second one, again and
again: a story of any length costs a bounded time and memory, and a stop between two places shows the one before it.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.boards.time_machine.facts import FactBook
from mqlab.course.widgets.boards.time_machine.happened import Happened
from mqlab.course.widgets.frame.packing import TextPool
from mqlab.errors import MqlabError
from mqlab.lab.parts.broken import BrokenPart
from mqlab.lab.views.moments import SENTENCES, moments
from mqlab.lab.views.view import View
from mqlab.lab.world.lab import play

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import StepRecord
    from mqlab.lab.views.timeline import Moment
    from mqlab.lab.world.lab import Lab
    from mqlab.lab.world.story import Story

Show = Callable[["Lab"], Sequence[View]]
Progress = Callable[[int], None]
MOST_STOPS = 400
STEPS_PER_PROGRESS = 1000
IMAGE = re.compile(r'<img class="mqlab-image"[^>]*>')  # for pages that drop SVG: this page shows the drawing itself


class StoryRecording:
    """A story played once to its end, or to the exception that ended it: ``error`` is then its text, else "".

    ``faults`` and other keywords are ``play``'s. ``parameters`` are the story's own keywords.
    """

    def __init__(
        self,
        story: Story,
        *,
        seed: int = 0,
        show: Show | None = None,
        parameters: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        **settings: Any,
    ) -> None:
        self._show = show
        self._progress = progress
        self._book = FactBook()
        self._pool = TextPool()
        self._places: dict[int, tuple[list[int], list[int]]] = {}  # step -> rows of facts, numbers of views
        self._stride, self._candidates, self._seen = 1, 0, 0
        self._worth: set[int] = set()  # steps that changed what is recorded
        self._holds: set[tuple[Any, ...]] = set()
        self.lab: Lab
        self.error = ""
        self._play(story, seed, parameters or {}, settings)
        shown = moments(self.lab.journal)
        self.moments: tuple[Moment, ...] = tuple(sorted(shown, key=lambda moment: moment.step or 0))
        self.steps = tuple(dict.fromkeys(m.step for m in self.moments if m.step is not None))

    def _play(self, story: Story, seed: int, parameters: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        bound_story = partial(story, **parameters) if parameters else story
        raised: list[BaseException] = []

        @wraps(story)
        def watched(lab: Lab) -> None:
            self.lab = lab
            before_step = lab.simulation("explore").before_step
            lab.simulation("explore").before_step = lambda step: self._before(lab, step, before_step)
            try:
                bound_story(lab)
            except (Exception, BrokenPart) as error:
                # A fork may end in the story's own error: what happened until then is still shown.
                raised.append(error)
            lab.simulation("explore").before_step = before_step
            self._look(lab, lab.journal.next_step)

        lab = play(watched, seed=seed, **settings)
        if lab.telling is not None:
            lab.telling = dataclasses.replace(lab.telling, story=bound_story)
        is_shown = settings.get("faults") or any(isinstance(error, BrokenPart) for error in raised)
        if raised and not is_shown:  # the learner's own part broke: its last steps are what is looked for
            raise raised[0]
        self.error = "".join(f"{type(error).__name__}: {_words(error)}" for error in raised)

    def _before(self, lab: Lab, step: int, then: Callable[[int], None] | None) -> None:
        self._look(lab, step)
        if self._progress is not None and step % STEPS_PER_PROGRESS == 0:
            self._progress(step)
        if then is not None:
            then(step)

    def _look(self, lab: Lab, step: int) -> None:
        """Record what is there now if one of the steps since the last look changed something worth showing."""
        changed = None
        first, self._seen = max(self._seen, lab.journal.dropped), step
        for number in range(first, step):
            if self._is_worth(lab.journal[number]):
                changed = number
        if changed is None:
            return
        self._worth.add(changed)
        self._candidates += 1
        if self._candidates % self._stride == 0:
            self._places[changed] = (self._book.take(lab), self._views(lab))
        if len(self._places) > MOST_STOPS:
            self._places = dict(list(self._places.items())[1::2])
            self._stride *= 2

    def _is_worth(self, record: StepRecord) -> bool:
        worth = record.kind == "fault"
        for kind, values in record.changes:
            if kind == "message.stored":
                self._book.stored(record.node, values["physical_offset"])
            if kind == "pull.held":
                # The same pull is held again every 15 seconds; only its first hold is a moment.
                key = (record.node, *map(values.get, ("group", "topic", "queue_id", "queue_offset")))
                worth = worth or key not in self._holds
                self._holds.add(key)
            elif kind in SENTENCES:
                worth = True
        return worth

    def _views(self, lab: Lab) -> list[int]:
        return [self._pool.add(view_text(view)) for view in self._show(lab)] if self._show else []

    def place_of(self, position: int) -> int | None:
        """The step whose recorded views a stop shows: its own, or that of the nearest recorded stop before it."""
        if not position:
            return None
        places = sorted(self._places)
        index = bisect_right(places, self.steps[position - 1]) - 1
        return places[index] if index >= 0 else None

    def data(self) -> dict[str, Any]:
        """Everything that the page shows, as JSON: happened, stops, places, rows, units, views."""
        places = sorted(self._places)
        index = {step: number for number, step in enumerate(places)}
        shown = [self.place_of(position) for position in range(len(self.steps) + 1)]
        return {
            "happened": Happened(self.lab.journal, self.moments).data(),
            "steps": self.steps,
            "place_of": [-1 if step is None else index[step] for step in shown],
            # A stop that changed nothing of this is shown as the one before it.
            "exact": [int(step in self._places or step not in self._worth) for step in self.steps],
            "places": [list(self._places[step]) for step in places],
            "rows": self._book.rows,
            "units": self._book.units,
            "views": self._pool.texts,
            "nodes": [[handle.name, handle.role] for handle in self.lab.handles.values()],
            "error": self.error,
        }


def _words(error: BaseException) -> str:
    return error.text if isinstance(error, MqlabError) else str(error)


def view_text(view: View) -> str:
    """The HTML of a view, its pictures as drawings alone: their second form in base64 would double the page."""
    return IMAGE.sub("", str(view.html()))
