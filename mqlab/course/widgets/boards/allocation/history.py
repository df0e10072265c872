"""A group's history: who is a member after each join, leave and rename.

    ("join", "billing-4")   ("leave", "billing-2")   ("rename", "billing-3", "billing-3b")

A rename is one change: a process that is restarted comes back with another client id, because RocketMQ's default
instance name is made of the process id and the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.wire.java_hash import sorted_as_java

MOST_MEMBERS = 12
Change = Sequence[str]
WORDS = {"join": "{} joins", "leave": "{} leaves", "rename": "{} comes back as {}"}


class History:
    """The members at every moment: at the beginning and after each change. Raises UsageError for impossible changes."""

    def __init__(self, first_members: Sequence[str], changes: Sequence[Change]) -> None:
        now = list(first_members)
        names = dict.fromkeys(now)
        self.members = [sorted_as_java(now)]
        for number, change in enumerate(changes, 1):
            kind, *who = change
            if kind == "join":
                _comes(who[0], now, number)
            else:
                if who[0] not in now:
                    present = ", ".join(sorted_as_java(now)) or "nobody"
                    raise UsageError(f"change {number}: {who[0]!r} is not a member", hint=f"members: {present}")
                now.remove(who[0])
                if kind == "rename":
                    _comes(who[1], now, number)
            names.update(dict.fromkeys(now))
            self.members.append(sorted_as_java(now))
        self.names = list(names)
        """All names that were ever members, in the order of their coming."""
        if len(self.names) > MOST_MEMBERS:
            raise UsageError(f"{len(self.names)} names are too many for one board", hint=f"at most {MOST_MEMBERS}")


def _comes(name: str, now: list[str], number: int) -> None:
    if not name or not isinstance(name, str):
        raise UsageError(f"change {number}: a member needs a name, got {name!r}")
    if name in now:
        raise UsageError(f"change {number}: {name!r} is a member already", hint="another name")
    now.append(name)


def changes_of(history: Sequence[Any]) -> list[Change]:
    """Changes as a cell writes them, checked for their form."""
    changes: list[Change] = []
    for number, change in enumerate(history, 1):
        parts = tuple(change) if isinstance(change, list | tuple) else ()
        if not parts or parts[0] not in WORDS or len(parts) != WORDS[parts[0]].count("{}") + 1:
            raise UsageError(
                f"change {number} is {change!r}",
                hint='("join", "billing-4"), ("leave", "billing-2") or ("rename", "billing-3", "billing-3b")',
            )
        changes.append(parts)
    return changes


def words(change: Change) -> str:
    """A change in words.

    >>> words(("rename", "c1", "c9"))
    'c1 comes back as c9'
    """
    return WORDS[change[0]].format(*change[1:])


def member_names(members: int | Sequence[str]) -> tuple[str, ...]:
    """Names of members, given as their number or by name.

    >>> member_names(2)
    ('billing-1', 'billing-2')
    """
    if isinstance(members, int) and not isinstance(members, bool):
        if not 1 <= members <= MOST_MEMBERS:
            raise UsageError(f"members must be from 1 to {MOST_MEMBERS}, got {members}")
        return tuple(f"billing-{number}" for number in range(1, members + 1))
    if isinstance(members, str | bool) or not all(isinstance(name, str) and name for name in members):
        raise UsageError(f"members is a number or a list of names, got {members!r}", hint='members=["c1", "c2"]')
    if len(set(members)) < len(members):
        raise UsageError(
            f"two members have one name: {list(members)}",
            hint="two processes with one client id are one member to the broker",
        )
    return tuple(members)


def next_names(names: Sequence[str], count: int) -> list[str]:
    """The names, and further ones like the last until there are ``count``.

    >>> next_names(["c1", "c2"], 4)
    ['c1', 'c2', 'c3', 'c4']
    """
    more = list(names)
    match = re.match(r"(?P<stem>.*?)(?P<number>\d+)$", names[-1]) if names else None
    stem, number = (match["stem"], int(match["number"])) if match else ("billing-", 0)
    while len(more) < count:
        number += 1
        if f"{stem}{number}" not in more:
            more.append(f"{stem}{number}")
    return more
