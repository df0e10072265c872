"""Days that were watched, recorded in one small file: what could be known every five minutes, and what went wrong.

    datasets/watched-days.json.xz    twenty good days, and two of each kind of incident that can be watched
    watched_days()                   the same as plain rows, as an alarm of lab 13 gets them; no store is read

``python -m mqlab.course.given.lab13.watched_days datasets/watched-days.json.xz`` writes the file again; the same days
give the same bytes. Columns are kept as lists for each group and tag, which is a tenth of the rows.
"""

from __future__ import annotations

import functools
import json
import lzma
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.course.given.lab13.day_answers import Rows
from mqlab.course.teach.datasets import checked_archive
from mqlab.data.traffic.day_watch import STRETCH_MINUTES
from mqlab.data.traffic.model import FIRST_DAY_MS
from mqlab.scales import MINUTE, time_text

if TYPE_CHECKING:
    from mqlab.data.traffic.trouble.capstone import SealedDay

ARCHIVE = "watched-days.json.xz"
MESSAGES, GOOD_DAYS, BAD_DAYS, FIRST = 16_000, 20, 12, 100
SECRET = b"lab 13: days to try alarms on"
COLUMNS = ("stored", "called", "failed", "again", "lag", "waiting", "oldest_s", "running_s")


@dataclass(frozen=True)
class RecordedDay:
    """A day as it was watched. ``kind`` is empty for a good day, and its times are 0."""

    name: str
    kind: str
    group: str
    since_ms: int
    until_ms: int
    moments: tuple[Rows, ...]

    @property
    def about(self) -> str:
        """What a message or a table calls it."""
        if not self.kind:
            return f"good {self.name}"
        return f"{self.name}, {self.kind} of {self.group} from {time_text(self.since_ms)}"


def watch(day: SealedDay) -> RecordedDay:
    """Write a day, watch it, and take its first incident as its truth. Costs about half a second."""
    from mqlab.data.traffic.day_facts import facts_of
    from mqlab.data.traffic.day_watch import watched

    with tempfile.TemporaryDirectory(prefix="mqlab-watched-") as folder:
        stores = Path(folder, "stores")
        day.write(stores)
        moments = tuple(list(moment.rows) for moment in watched(facts_of(stores)))
    incident = next(iter(day.truth()["incidents"]), None)
    if incident is None:
        return RecordedDay(day.student, "", "", 0, 0, moments)
    return RecordedDay(
        day.student, incident["kind"], incident["group"], incident["harm_since_ms"], incident["harm_until_ms"], moments
    )


def recorded(number: int, *, quiet: bool) -> RecordedDay:
    """A day of the file, made again."""
    from mqlab.data.traffic.trouble.capstone import alarm_day

    return watch(alarm_day(number, SECRET, quiet=quiet, messages=MESSAGES))


@functools.lru_cache(maxsize=1)
def watched_days(folder: str | None = None) -> tuple[RecordedDay, ...]:
    """All days of the file, the good ones first. ``folder`` and errors as for ``datasets.real_store``."""
    text = lzma.decompress(checked_archive(ARCHIVE, folder).read_bytes()).decode("ascii")
    return tuple(_unpacked(packed) for packed in json.loads(text))


def packed(days: Iterable[RecordedDay]) -> bytes:
    """The file of some days."""
    text = json.dumps([_packed(day) for day in days], separators=(",", ":"))
    return lzma.compress(text.encode("ascii"), preset=9 | lzma.PRESET_EXTREME)


def _packed(day: RecordedDay) -> dict[str, Any]:
    sources = [(row["group"], row["tag"]) for row in day.moments[0]]
    columns = {
        name: [[rows[source][name] for rows in day.moments] for source in range(len(sources))] for name in COLUMNS
    }
    head = {"name": day.name, "kind": day.kind, "group": day.group, "since_ms": day.since_ms, "until_ms": day.until_ms}
    return head | {"sources": sources, "columns": columns}


def _unpacked(packed_day: dict[str, Any]) -> RecordedDay:
    sources, columns = packed_day.pop("sources"), packed_day.pop("columns")
    moments = []
    for number in range(len(columns["stored"][0])):
        minute = (number + 1) * STRETCH_MINUTES
        head = {"at_ms": FIRST_DAY_MS + minute * MINUTE, "minute": minute}
        moments.append(
            [
                {**head, "group": group, "tag": tag, **{name: columns[name][index][number] for name in COLUMNS}}
                for index, (group, tag) in enumerate(sources)
            ]
        )
    return RecordedDay(**packed_day, moments=tuple(moments))


def main(path: str) -> None:
    """Write the file."""
    good = (recorded(FIRST + number, quiet=True) for number in range(GOOD_DAYS))
    bad = (recorded(FIRST + number, quiet=False) for number in range(BAD_DAYS))
    Path(path).write_bytes(packed([*good, *bad]))


if __name__ == "__main__":
    main(sys.argv[1])
