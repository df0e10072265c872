"""Store directories that come with the labs, unpacked so that a lab can inspect and damage them.

Labs 01 and 10 use them. The real stores were written by RocketMQ itself; datasets/README.md says where all come from.

    datasets/real-stores.tar.xz ──(check sum)──▶ a temporary directory of your own     real_store("clean")   closed
                                                                                       real_store("killed")  kill -9
    datasets/small-day.tar.xz ───(check sum)──▶  a day of an order platform            small_day()           two brokers
    mqlab.course.given.lab11.played_day ──(played once)──▶ a day with every cause in it  played_day()  its truth

Nothing is downloaded: the archives come with the labs.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mqlab.course.material import DATASETS, home
from mqlab.errors import CorruptionError, UsageError

if TYPE_CHECKING:
    from mqlab.course.given.lab11.played_truth import TrueCall, TrueLife

ARCHIVE, SUMS = "real-stores.tar.xz", "SHA256SUMS"
DAY_ARCHIVE, DAY = "small-day.tar.xz", "small-day"
REAL_STORES = ("clean", "killed")
PLAYED_SEED = 11
_unpacked: list[tempfile.TemporaryDirectory[str]] = []  # each is deleted when this process ends


def real_store(name: str, folder: str | Path | None = None) -> Path:
    """A fresh copy of a real broker's store directory, which may be changed. It is deleted when Python ends.

    ``folder`` holds the archive (default: mqlab's own ``datasets``). UsageError for an unknown name or no archive,
    CorruptionError for an archive that differs from the published one.
    """
    if name not in REAL_STORES:
        raise UsageError(f"there is no real store {name!r}", hint=f"there are: {', '.join(REAL_STORES)}")
    return _unpack(ARCHIVE, name, folder)


def small_day(folder: str | Path | None = None) -> Path:
    """A fresh copy of the folder with the stores of the two brokers of a written day, 3,000 messages, seed 7.

    ``folder`` and errors as for real_store.
    """
    return _unpack(DAY_ARCHIVE, DAY, folder)


@dataclass(frozen=True, slots=True)
class DayStores:
    """The stores of a played day, and what is true of it. ``stores`` is a folder with one store per broker.

    ``offsets``: (broker, topic, group, queue id) -> next offset to read. ``ids``: keys -> msg_id. ``reset_at_ms``: when
    the offsets of ``audit`` were set back.
    """

    stores: Path
    calls: tuple[TrueCall, ...]
    lives: tuple[TrueLife, ...]
    offsets: Mapping[tuple[str, str, str, int], int]
    ids: Mapping[str, str]
    reset_at_ms: int

    def life(self, group: str | None, keys: str) -> TrueLife:
        """The row of a message in a group. Raises UsageError when there is not exactly one."""
        rows = [row for row in self.lives if row.consumer_group == group and row.keys == keys]
        if len(rows) != 1:
            raise UsageError(
                f"{len(rows)} messages of group {group!r} have the keys {keys!r}", hint="ids has most of the keys"
            )
        return rows[0]


def played_day(seed: int = PLAYED_SEED) -> DayStores:
    """A fresh copy of the stores of a day with every cause in it, about 400 messages, and the truth of it.

    The first call for a seed plays the day, which takes about a second; it is the same day each time. The copy may
    be changed, and is deleted when Python ends.
    """
    played = _played(seed)
    copy = Path(_temporary_folder()) / "played-day"
    shutil.copytree(played.stores, copy)
    return replace(played, stores=copy)


@functools.lru_cache(maxsize=4)
def _played(seed: int) -> DayStores:
    from mqlab.course.given.lab11.played_day import READS, play_story
    from mqlab.course.given.lab11.played_truth import true_calls, true_lives, units_of

    stores = Path(_temporary_folder()) / "played-day"
    story = play_story(stores, seed)
    offsets = {
        (row.broker, row.topic, group, row.queue_id): row.consumer_offset
        for group in READS
        for row in story.lab.progress(group)
    }
    units = units_of(stores)
    calls = true_calls(story.lab, units)
    story.lab.close()
    return DayStores(stores, calls, true_lives(units, calls, offsets), offsets, dict(story.ids), story.reset_at_ms)


def _temporary_folder() -> str:
    """A new folder that is deleted when Python ends."""
    _unpacked.append(tempfile.TemporaryDirectory(prefix="mqlab-dataset-"))
    return _unpacked[-1].name


def checked_archive(name: str, folder: str | Path | None = None) -> Path:
    """The path of an archive, whose bytes are those that were published. ``folder`` and errors as for real_store."""
    archive = (Path(folder) if folder is not None else home() / DATASETS) / name
    _must_be_whole(archive)
    return archive


def _unpack(archive_name: str, name: str, folder: str | Path | None) -> Path:
    archive = checked_archive(archive_name, folder)
    target = Path(_temporary_folder())
    with tarfile.open(archive) as packed:
        members = [member for member in packed if member.name.split("/")[0] == name]
        if hasattr(tarfile, "data_filter"):  # 3.11.4 and newer
            packed.extractall(target, members, filter="data")
        else:
            packed.extractall(target, members)
    return target / name


def _must_be_whole(archive: Path) -> None:
    try:
        published = dict(line.split()[::-1] for line in (archive.parent / SUMS).read_text("ascii").splitlines())
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        raise UsageError(f"{archive.name} or {SUMS} cannot be read: {error}", hint="unpack the labs again") from error
    if published.get(archive.name) != digest:
        raise CorruptionError(
            "this is not the archive that was published",
            where=archive.name,
            expected=published.get(archive.name),
            found=digest,
            hint="unpack the labs again",
        )
