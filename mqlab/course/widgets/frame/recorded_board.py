"""A board whose controls choose one of many runs: the settings of the run shown, and all recorded runs by their names.

    class Lanes(RecordedBoard[LanesSettings, LanesRun]):
        choices = {"mode": MODES, …}           what each control offers, in the order of the settings
        def played(self, settings): ...        a run
        def shown(self, run): ...              the run as JSON for the page
        def beside(self): ...                  what the page needs besides runs

In the module, ``recordedSettings`` (frame/page/recorded.js) makes the controls and finds the run that they name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from mqlab.course.widgets.frame.board import Board
from mqlab.errors import UsageError

Settings = TypeVar("Settings", bound=Any)
Run = TypeVar("Run", bound=Any)
Choices = Mapping[str, tuple[Any, ...]]


def key_of(settings: Any) -> str:
    """The name of a run in the page's data: the values of its settings, in their order, as JavaScript writes them."""
    return "|".join(
        str(value).lower() if isinstance(value, bool) else str(value) for value in asdict(settings).values()
    )


class RecordedBoard(Board, Generic[Settings, Run]):
    """``run`` is the run shown, with its ``settings``. ``recorded``: the choices that a page without a kernel has."""

    choices: ClassVar[Choices]

    def __init__(self, settings: Settings, recorded: Choices) -> None:
        super().__init__()
        self._recorded = recorded
        self._usual: Settings = type(settings)()
        self.run: Run = self.played(settings)

    def played(self, settings: Settings) -> Run:
        """The run of some settings."""
        raise NotImplementedError

    def shown(self, run: Run) -> Any:
        """A run as the page gets it."""
        raise NotImplementedError

    def beside(self) -> dict[str, Any]:
        """What the page gets besides the runs."""
        return {}

    @property
    def settings(self) -> Settings:
        """The settings of the run shown now."""
        settings: Settings = self.run.settings
        return settings

    def play(self, **changes: Any) -> Self:
        """Play again with some settings changed. UsageError for one that does not exist, or a value out of range."""
        self.run = self.played(self._changed(self.settings, changes))
        for name, value in self.state_defaults.items():
            self.set(name, value)
        self.renew()
        return self

    def data(self) -> dict[str, Any]:
        """The run shown and, for a page without a kernel, all recorded ones, by their settings."""
        runs = {key_of(self.settings): self.shown(self.run)}
        for chosen in self.combinations(self._recorded):
            settings = replace(self._usual, **chosen)
            runs[key_of(settings)] = self.shown(self.played(settings))
        choices = {name: list(values) for name, values in self.choices.items()}
        return {"runs": runs, "now": asdict(self.settings), "choices": choices, **self.beside()}

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``play`` with the settings of the page's controls; its answer is the run."""
        if name != "play":
            return super().asked(name, arguments)
        self.run = self.played(self._changed(self._usual, arguments))
        return self.shown(self.run)

    def _changed(self, before: Settings, changes: Mapping[str, Any]) -> Settings:
        for name in changes:
            if name not in self.choices:
                raise UsageError(f"{self.label} has no setting {name!r}", hint=f"has: {', '.join(self.choices)}")
        changed: Settings = replace(before, **changes)
        return changed
