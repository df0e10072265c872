"""A learner's own log of checks, kept only if the learner switches it on: one JSON line per check.

A notebook's cell switches it on; an instructor may read what is handed in with the work.

    from mqlab.course.grading.running.attempts import log_attempts
    log_attempts()                                  attempts.jsonl next to the notebook

    {"at": "2026-03-05T14:02:11+00:00", "exercise": "lab01.unit", "state": "failed", "said": "lab01.unit: The unit .."}

Its owner can edit it: it is useful for talking about a lab, but not for grades. It contains no source text and no
names, and nothing is sent anywhere.
"""

from __future__ import annotations

import datetime
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mqlab.course.teach import checking
from mqlab.course.teach.said import Said

FILE_NAME = "attempts.jsonl"
STATES = {"good": "passed", "bad": "failed", "open": "not started"}
MAX_BYTES = 4 << 20
MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class Attempt:
    """One check: its time (ISO 8601, UTC), its exercise, its result, and the first line of the reply."""

    at: str
    exercise: str
    state: str
    said: str


@dataclass(frozen=True, slots=True)
class Effort:
    """A student's checks of one exercise: how many, how many of them before the first that passed."""

    student: str
    exercise: str
    checks: int
    before_pass: int | None
    first_at: str
    last_at: str


def log_attempts(path: str | Path = FILE_NAME) -> None:
    """Append a line to a file for every check in this kernel. A second call changes the file."""
    stop_logging()
    target = Path(path).absolute()

    def note(exercise: str, said: Said) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        line = {"at": now, "exercise": exercise, "state": STATES.get(said.state, said.state), "said": said.headline}
        with open(target, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    note.__qualname__ = log_attempts.__qualname__
    checking.watchers.append(note)


def stop_logging() -> None:
    """Stop writing."""
    checking.watchers[:] = [
        watcher for watcher in checking.watchers if watcher.__qualname__ != log_attempts.__qualname__
    ]


def read_attempts(path: Path) -> list[Attempt]:
    """The attempts in a file. A student may have written it, so lines of another form are ignored."""
    try:
        # 1. Open nothing but an ordinary file: a pipe would block, and a link could lead to the grader's own files.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return []
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return []
    # 2. Read a bounded part, and keep the lines that have the form of an attempt.
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_BYTES)
    attempts = []
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            values = json.loads(line)
            texts = [values[name] for name in ("at", "exercise", "state", "said")]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if all(isinstance(text, str) and len(text) <= MAX_TEXT for text in texts):
            attempts.append(Attempt(*texts))
    return attempts


def efforts(student: str, attempts: Iterable[Attempt], exercises: Iterable[str]) -> list[Effort]:
    """A student's efforts, exercise by exercise; those without a check are left out."""
    kept = sorted((attempt for attempt in attempts if attempt.state != "not started"), key=lambda attempt: attempt.at)
    rows = []
    for exercise in exercises:
        own = [attempt for attempt in kept if attempt.exercise == exercise]
        if own:
            passes = [number for number, attempt in enumerate(own) if attempt.state == "passed"]
            before = passes[0] if passes else None
            rows.append(Effort(student, exercise, len(own), before, own[0].at, own[-1].at))
    return rows
