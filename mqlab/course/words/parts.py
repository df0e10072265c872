"""The notebooks of the labs: how long each takes, and what it asks. ``make labs`` writes ``parts.json``.

parts()["07b"]  ─▶  LabPart("07b-stop-in-time.ipynb", 150, ("lab07.hangs", …))
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

from mqlab.errors import UsageError

FILE = Path(__file__).with_name("parts.json")


@dataclass(frozen=True, slots=True)
class LabPart:
    """One notebook: its file in ``labs``, its minutes, and the ids of what it asks in the order of its cells.

    ``before`` are the minutes until each of those is done.
    """

    page: str
    minutes: int
    asked: tuple[str, ...]
    before: tuple[int, ...]


@functools.cache
def parts() -> dict[str, LabPart]:
    """Every notebook of a lab by its part ("00", "07b"), in the order in which they are read."""
    saved = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    return {
        name: LabPart(part["page"], part["minutes"], tuple(part["asked"]), tuple(part["before"]))
        for name, part in sorted(saved.items())
    }


def minutes_of(name: str) -> int:
    """The minutes of a part ("07b") or of all parts of a lab ("07"). UsageError if there is none."""
    minutes = [part.minutes for key, part in parts().items() if name in (key, key[:2])]
    if not minutes:
        raise UsageError(f"no minutes are known of {name!r}")
    return sum(minutes)
