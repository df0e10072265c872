"""A configuration file as it is read: the file itself, or its backup when it is missing, empty or damaged.

Mirrors: org.apache.rocketmq.common.ConfigManager (load and loadBak). Changes nothing; ``store.config_files`` repairs.

    topics.json reads                                    Reading(value, taken="…/topics.json")
    topics.json of NULs, topics.json.bak reads           the same with taken="…/topics.json.bak" and problem="…"
    neither reads                                        CorruptionError
    neither is there, or both are empty                  Reading(None)

A reader of a backup says so: ``Reading.text()`` has file, reason and the age of what was taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mqlab.durations import calendar, rounded_text
from mqlab.errors import CorruptionError
from mqlab.rocketmq.ports import Files

T = TypeVar("T")
BACKUP, DAMAGED = ".bak", ".damaged"
MISSING, EMPTY = "it is missing", "it is empty"


class BackupWarning(UserWarning):
    """A backup was read in place of a configuration file."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What was read of a file: ``taken`` is the path it came from ("" for nothing), ``problem`` why not the file.

    ``saved_ms`` is when ``taken`` was written, ``lost_ms`` when the file was that could not be read (None: missing).
    """

    value: T | None
    path: str
    taken: str = ""
    problem: str = ""
    saved_ms: int = 0
    lost_ms: int | None = None

    @property
    def is_healed(self) -> bool:
        """Whether something other than the file's own content counts now."""
        return bool(self.problem)

    @property
    def file(self) -> str:
        """The file's name with its folder, for messages: "config/topics.json"."""
        return short(self.path)

    def why(self) -> str:
        """The reason, and the age of what was taken."""
        if not self.taken:
            return f"{self.problem}; there is no backup: the defaults count"
        age = ""
        if self.lost_ms not in (None, self.saved_ms):
            side = "before" if self.lost_ms >= self.saved_ms else "after"
            age = f", {rounded_text(abs(self.lost_ms - self.saved_ms))} {side} {self.path.rpartition('/')[2]}"
        return f"{self.problem}; {short(self.taken)} is taken, saved {calendar(self.saved_ms)}{age}"

    def text(self) -> str:
        """The same with the file in front, as RocketMQ's ERROR line begins."""
        return f"load {self.file} failed: {self.why()}"


def short(path: str) -> str:
    """The last two parts of a path."""
    return "/".join(path.split("/")[-2:])


def read_with_backup(files: Files, path: str, parse: Callable[[str], T]) -> Reading[T]:
    """What ``parse`` makes of a file, else of its backup; see Reading.

    ``parse`` raises any exception for damaged text. Raises CorruptionError when no file that has bytes can be read.
    """
    problem, lost_ms, failures = "", None, []
    for candidate in (path, path + BACKUP):
        there = files.exists(candidate)
        data = files.read(candidate) if there else b""
        modified_ms = files.modified_ms(candidate) if there else 0
        if data.strip():
            try:
                return Reading(parse(data.decode("utf-8")), path, candidate, problem, modified_ms, lost_ms)
            except Exception as error:  # any error of any parser
                failures.append(f"{candidate}: {error}")
                reason = _reason(data, error)
        else:
            reason = EMPTY if there else MISSING
        if candidate == path:
            problem, lost_ms = reason, modified_ms if there else None
    if failures:
        raise CorruptionError(
            "neither the configuration file nor its backup can be read: " + "; ".join(failures),
            where=path,
            hint="repair or remove the file; what it held starts again from the defaults",
        )
    return Reading(None, path, problem="" if problem == MISSING else problem)


def _reason(data: bytes, error: Exception) -> str:
    if not data.strip(b"\0"):
        return f"it holds {len(data)} NUL bytes"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
