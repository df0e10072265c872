"""Runs that a board's page has without a kernel, kept in a file: to play them would take a second of its first cell.

    backlog/backlog.json, long_poll/long_poll.json …    a line for each recorded run of a board, as its page gets it

``python -m mqlab.course.widgets.keep_runs`` plays the runs and writes the files again; the same simulation gives the
same bytes. What is not in a file is played.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Settings = TypeVar("Settings", bound=DataclassInstance)
else:
    Settings = TypeVar("Settings")

BOARDS = Path(__file__).parents[1] / "boards"


class KeptRuns(Generic[Settings]):
    """The runs of ``recorded``, as the page of the board ``module`` gets them: a dict with their ``settings`` and more.

    ``played`` plays one with any settings.
    """

    def __init__(
        self, module: str, recorded: Mapping[str, Settings], played: Callable[[Settings], dict[str, Any]]
    ) -> None:
        self.file = BOARDS / module / f"{module}.json"
        self.recorded = recorded
        self.played = played

    def shown_with(self, settings: Settings) -> dict[str, Any]:
        """The run with these settings: read from the file, or played if it is not there."""
        return self._of_the_file.get(json.dumps(asdict(settings))) or self.played(settings)

    def write(self) -> None:
        """Play all recorded runs, and write the file again."""
        lines = [json.dumps(self.played(settings), separators=(",", ":")) + "\n" for settings in self.recorded.values()]
        self.file.write_text("".join(lines), "utf-8")

    @functools.cached_property
    def _of_the_file(self) -> dict[str, dict[str, Any]]:
        runs = [json.loads(line) for line in self.file.read_text("utf-8").splitlines()]
        return {json.dumps(run["settings"]): run for run in runs}
