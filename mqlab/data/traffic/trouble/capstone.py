"""A day for each student, and days to try alarms on: made from a secret, so that what was handed out tells nothing.

Mirrors: the disks that an engineer gets after a bad day, and the calendar on the wall.

    secret, student ──HMAC-SHA256──▶ seal ──▶ draws (SipHash) ──▶ incidents, decoys, and every message of the day

    DIR/broker-a ...      the stores
    DIR/calendar.json     what had been planned: deploys, campaigns, a load test, a group that is switched off
    DIR/incident.json     messages, brokers, and a mark by which an interrupted call finds its own directory again

    whoever has the secret makes the same day again, and its truth      everybody else has what is on the disks
    a ticket makes one day, and tells neither the secret nor the student: a grading process gets no more than that

A planned deploy may do harm all the same, and a campaign may come on the day of an incident.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mqlab.data.traffic.day import MINUTE_MS
from mqlab.data.traffic.draws import draws_of
from mqlab.data.traffic.model import Asked, TrafficModel
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.data.traffic.trouble.incidents import EVERYWHERE, Dice
from mqlab.data.traffic.trouble.placing import ALARMING, Placing
from mqlab.data.traffic.trouble.truth import harm_of
from mqlab.data.traffic.writing.order_bodies import OrderTexts
from mqlab.data.traffic.writing.run import Progress, write_sealed
from mqlab.errors import UsageError
from mqlab.whole_files import whole_file

LEAST_SECRET = 16
CALENDAR = "calendar.json"
PLANNED = {  # kind -> what the calendar calls it
    "deploy": "deploy",
    "planned_deploy": "deploy",
    "campaign": "campaign",
    "load_test": "load test",
    "group_off": "switched off",
}
_PURPOSE = 1_000_000  # far from the purposes of the draws of a day
_MODEL = TrafficModel(incidents=(), commit_log_bytes=1 << 24, consume_queue_bytes=60_000)
_CALENDAR_MS = 5 * MINUTE_MS


class SealedDay:
    """A day that only the holder of the secret can make; ``asked`` is for ``harm_of``. It tells nothing in its repr."""

    def __init__(self, student: str, asked: Asked) -> None:
        self.student, self.asked = student, asked

    @property
    def ticket(self) -> str:
        """A text from which ``day_of_ticket`` makes this day; to be kept as secret as its truth."""
        return f"{self.asked.seal.hex()} {self.asked.messages} {self.asked.brokers}"

    @cached_property
    def calendar(self) -> list[dict[str, Any]]:
        """What had been planned: what, group, since and until (ms since the epoch, whole five minutes), keys."""
        return calendar_of(self.asked)

    def write(self, directory: str | os.PathLike[str], progress: Progress = lambda units: None) -> dict[str, Path]:
        """Write the stores and the calendar, or what is missing of them: broker name -> store.

        ``progress`` is called with numbers of messages. Raises UsageError for a directory that holds anything else.
        """
        target = Path(directory)
        mark = hashlib.blake2b(b"mark", key=self.asked.seal, digest_size=16).hexdigest()
        stores = write_sealed(self.asked, target, mark, progress)
        with whole_file(target / CALENDAR) as draft:
            draft.write_text(json.dumps(self.calendar, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return stores

    def truth(self) -> dict[str, Any]:
        """{"student", "incidents", "decoys"}; the entries are those of ``harm_of``. Takes seconds the first time."""
        return {
            "student": self.student,
            "incidents": [incident for incident in self._told if not incident["decoy"]],
            "decoys": [incident for incident in self._told if incident["decoy"]],
        }

    @cached_property
    def _told(self) -> list[dict[str, Any]]:
        return harm_of(self.asked)

    def __repr__(self) -> str:
        return f"<sealed day: {self.asked.messages:,} messages at {self.asked.brokers} brokers>"


def capstone(student: str, secret: bytes, messages: int = 300_000, brokers: int = 3) -> SealedDay:
    """The day of a student: three incidents, two decoys. Nothing is written yet.

    Raises UsageError for a short secret, an empty name, or numbers that a day cannot have.

    >>> made = capstone("anna", b"a secret of the course", messages=3_000, brokers=1)
    >>> len([i for i in made.asked.model.incidents if not i.decoy]), len(made.calendar) <= 3
    (3, True)
    """
    name = unicodedata.normalize("NFC", student).strip()
    if not name:
        raise UsageError("the student has no name", hint="give the name that is on the roster")
    return _capstone(name, _sealed(f"capstone {name}", secret, messages, brokers))


def day_of_ticket(ticket: str, name: str = "the student's own day") -> SealedDay:
    """The day of a student's ticket. Raises UsageError for a text that is not a ticket.

    >>> made = capstone("anna", b"a secret of the course", messages=3_000, brokers=1)
    >>> day_of_ticket(made.ticket).asked == made.asked, "anna" in made.ticket
    (True, False)
    """
    try:
        seal, messages, brokers = ticket.split()
        asked = Asked(int(messages), int(brokers), 0, _MODEL, bytes.fromhex(seal))
    except ValueError:
        raise UsageError("this is not the ticket of a day", hint="a ticket has a seal and two numbers") from None
    return _capstone(name, asked)


def _capstone(name: str, asked: Asked) -> SealedDay:
    return SealedDay(name, _with(asked, _placing(asked).capstone()))


def alarm_day(number: int, secret: bytes, quiet: bool = True, messages: int = 30_000, brokers: int = 1) -> SealedDay:
    """A day to try an alarm on: quiet ones have no incident, others one. Both may have decoys."""
    asked = _sealed(f"alarm day {number}", secret, messages, brokers)
    kind = None if quiet else ALARMING[(number + _sealed("kinds", secret, messages, brokers).seal[0]) % len(ALARMING)]
    return SealedDay(f"day {number}", _with(asked, _placing(asked).alarm(kind)))


def calendar_of(asked: Asked) -> list[dict[str, Any]]:
    """What had been planned for a day, by time."""
    entries = [_planned(incident, asked) for incident in asked.model.incidents or () if isinstance(incident, Incident)]
    return sorted((entry for entry in entries if entry), key=lambda entry: int(entry["since"]))


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """The course's secret. UsageError for a file that cannot be read or is too short to be one."""
    try:
        secret = Path(path).read_bytes().strip()
    except OSError as error:
        raise UsageError(
            f"cannot read the secret: {error}", hint="give the file that holds the course's secret"
        ) from None
    _must_be_secret(secret)
    return secret


def _must_be_secret(secret: bytes) -> None:
    if len(secret) < LEAST_SECRET:
        raise UsageError(
            f"a secret has at least {LEAST_SECRET} bytes, this one has {len(secret)}",
            hint="make one with: head -c 32 /dev/urandom | base64 > FILE",
        )


def _sealed(text: str, secret: bytes, messages: int, brokers: int) -> Asked:
    _must_be_secret(secret)
    seal = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return Asked(messages, brokers, 0, _MODEL, seal)


def _placing(asked: Asked) -> Placing:
    return Placing(Dice(draws_of(0, asked.seal, EVERYWHERE), _PURPOSE), asked)


def _with(asked: Asked, incidents: Sequence[Incident]) -> Asked:
    return replace(asked, model=asked.model.changed(incidents=tuple(incidents)))


def _planned(incident: Incident, asked: Asked) -> dict[str, Any] | None:
    if incident.kind not in PLANNED:
        return None
    start_ms, end_ms = incident.start_ms, incident.end_ms
    since, until = start_ms - start_ms % _CALENDAR_MS, end_ms + -end_ms % _CALENDAR_MS
    entry = {"what": PLANNED[incident.kind], "group": incident.group, "since": since, "until": until}
    if incident.kind == "load_test" and incident.customer is not None and incident.broker is not None:
        key = OrderTexts(asked, incident.broker).customer_key(incident.customer)
        # The group is not named: whom a test's messages trouble is to be found.
        return entry | {"group": None, "key": key}
    return entry
