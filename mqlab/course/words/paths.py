"""The paths through the labs that the index shows, and that ``mqlab lab --path evening`` opens.

evening     one half of a lab and two boards
subjects    five questions that every team with a broker meets
running, data, building, all
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.course.words.parts import LabPart, parts
from mqlab.errors import UsageError

QUARTER = 15


@dataclass(frozen=True, slots=True)
class LabPath:
    """A way through the labs: their numbers ("02") or single parts ("01a"), and what one can do afterwards.

    ``until`` is the last question of its only part, where a path ends in the middle. ``boards`` names boards that
    belong to it, as Markdown, and ``board_minutes`` is the time for them.
    """

    name: str
    title: str
    labs: tuple[str, ...]
    afterwards: str
    until: str = ""
    stops_at: str = ""
    boards: str = ""
    board_minutes: int = 0

    @property
    def parts(self) -> list[str]:
        """The parts in the order of the labs."""
        return [name for name in parts() if name.startswith(self.labs)]

    @property
    def pages(self) -> str:
        """Links to the notebooks, as Markdown, and what else belongs to the path."""
        if len(self.parts) == len(parts()):
            return "every part in the table below"
        linked = " ".join(f"[{name}]({parts()[name].page})" for name in self.parts)
        return linked + (f" up to *{self.stops_at}*, {self.boards}" if self.boards else "")


PATHS = (
    LabPath(
        "evening",
        "One evening",
        ("00",),
        "Follow a message from the shop to its listener. Say why a retry takes its time, and how two tags in one group "
        "lose orders.",
        until="lab00.held",
        stops_at="Read the timeline",
        boards="the [retry clock](explorers.ipynb#Retry-clock), the [tag-trap board](explorers.ipynb#Tag-trap-board)",
        board_minutes=45,
    ),
    LabPath(
        "subjects",
        "The five subjects",
        ("00", "01a", "03a", "04a", "06a", "07a"),
        "Explain what is stored, which member reads which queue, what a crash costs, what a filter hides, and where a "
        "failed message waits.",
    ),
    LabPath(
        "running",
        "Running it",
        ("02", "05", "08", "09", "13", "15"),
        "Size a group, change it under traffic, and find out what went wrong last night.",
    ),
    LabPath(
        "data",
        "Data",
        ("10", "11", "12", "13"),
        "Read a broker's files with Spark, and account for every message of a day.",
    ),
    LabPath(
        "building",
        "Building it",
        ("01", "03b", "08b", "08c", "14", "15a", "16"),
        "Write parts of clients and of your own broker, and find a planted defect by seeds and rules.",
    ),
    LabPath("all", "All", ("0", "1"), "All of this."),
)


def path_named(name: str) -> LabPath:
    """The path of a name. UsageError if there is none, with those there are."""
    path = next((path for path in PATHS if path.name == name), None)
    if path is None:
        raise UsageError(f"no path {name!r}", hint=f"there are: {', '.join(path.name for path in PATHS)}")
    return path


def path_parts(path: LabPath) -> list[LabPart]:
    """The notebooks of a path; of the last one only what is asked before the path ends.

    UsageError for an end that the notebook does not ask.
    """
    listed = [parts()[name] for name in path.parts]
    if path.until:
        last = listed[-1]
        if path.until not in last.asked:
            raise UsageError(f"the path {path.name!r} ends at {path.until}, which {last.page} does not ask")
        length = last.asked.index(path.until) + 1
        listed[-1] = LabPart(last.page, last.before[length - 1], last.asked[:length], last.before[:length])
    return listed


def path_minutes(path: LabPath) -> int:
    """The minutes of a path, in quarters of an hour."""
    whole = sum(part.minutes for part in path_parts(path)) + path.board_minutes
    return QUARTER * round(whole / QUARTER)
