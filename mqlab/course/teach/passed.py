"""A check that passed on an answer that can be kept: its result, with a button that keeps the answer.

✓ lab04.process_queue: 2 of 2 public checks pass …
  [Keep it for my broker]        does what keep("lab04.process_queue") does
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from mqlab.course.teach.clicking import can_be_clicked, show
from mqlab.course.teach.first_look import room_for_buttons, show_with_buttons
from mqlab.course.teach.keeping import written
from mqlab.course.teach.said import AskedWrongly, Said, with_marks

KEEP = "Keep it for my broker"


@dataclass(frozen=True, repr=False)
class Passed(Said):
    """The result of a check. ``exercise_id`` and ``names``: what the button keeps; ``place``: where it is."""

    exercise_id: str = ""
    names: Mapping[str, Any] = field(default_factory=dict, compare=False)
    place: str = ""

    @classmethod
    def of(cls, said: Said, exercise_id: str, names: Mapping[str, Any]) -> Passed:
        """The same result with its button."""
        return cls(said.state, said.headline, said.facts, said.note, exercise_id, names)

    def html(self) -> Markup:
        if not self.place:
            return super().html()
        below = with_marks(f'`keep("{self.exercise_id}")` keeps it for your broker.')
        return super().html() + room_for_buttons(self.place, below)

    def _ipython_display_(self) -> None:
        if not can_be_clicked():
            show(self._repr_mimebundle_())
            return
        show_with_buttons(
            lambda place_id: replace(self, place=place_id),
            [["keep", KEEP]],
            lambda ask: self._kept().html(),
            place_id=f"keep-{self.exercise_id}",  # the same in each run, so that outputs of two runs are equal
        )

    def _kept(self) -> Said:
        try:
            return written(self.exercise_id, self.names)
        except AskedWrongly as refused:
            return Said("bad", refused.text, note=refused.hint)
