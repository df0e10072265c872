"""How lab 00's exercises are likely to be misread: what such an answer returns, and what it is told.

UNREAD    one number per group
FIND      names and numbers of the three files
TIMELINE  moments of the timeline
CRASH     what a committed offset means
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mqlab.course.kit import OneOf, Slip, slips
from mqlab.course.teach.exercises import Call


def _from(begins: Callable[[Mapping[str, int], str], int], last: int = 0) -> Callable[[Call], object]:
    """What is left when each group begins at ``begins`` of the offsets and its name, up to ``last`` past the end."""

    def answered(call: Call) -> object:
        arguments: Mapping[str, Any] = call.arguments
        stored, offsets = arguments["stored"], arguments["offsets"]
        return {group: list(range(begins(offsets, group), stored + last)) for group in arguments["groups"]}

    return answered


def _those_with_an_offset(call: Call) -> object:
    arguments: Mapping[str, Any] = call.arguments
    return {group: left for group, left in call.right.items() if group in arguments["offsets"]}


def _new_ones_only(call: Call) -> object:
    arguments: Mapping[str, Any] = call.arguments
    return {group: left if group in arguments["offsets"] else [] for group, left in call.right.items()}


UNREAD = (
    Slip(
        "last one read",
        lambda call: OneOf(
            [
                _from(lambda offsets, group: offsets.get(group, 0) + 1)(call),
                _from(lambda offsets, group: offsets.get(group, -1) + 1)(call),
            ]
        ),
        belief="lab00.committed_is_done",
    ),
    Slip("one position", _from(lambda offsets, group: max(offsets.values())), belief="lab00.one_position"),
    Slip(
        "from 1",
        lambda call: {group: [number + 1 for number in left] for group, left in call.right.items()},
        belief="lab00.counted_from_one",
    ),
    Slip(
        "those with an offset",
        _those_with_an_offset,
        "Every group of `groups` is a key of the result: a group without an offset begins at 0",
    ),
    Slip("new ones only", _new_ones_only, belief="lab00.late_group_at_the_end"),
    Slip(
        "one too many",
        _from(lambda offsets, group: offsets.get(group, 0), last=1),
        "Orders count from 0, so the last one of the queue is stored - 1",
    ),
)


def _with_groups(groups: Callable[[list[str]], list[str]]) -> Callable[[Call], object]:
    """The right answer with other groups."""
    return lambda call: (*call.right[:2], groups(call.right[2]))


def _keys_of_the_table(call: Call) -> OneOf:
    """Groups as the table names them: those of the right answer, or all that are past, whatever they read."""
    arguments: Mapping[str, Any] = call.arguments
    offset, table = arguments["queue_offset"], arguments["offset_table"]
    ours = [f"orders@{group}" for group in call.right[2]]
    every = [key for key, queues in table.items() if queues.get(0, 0) > offset]
    return OneOf([(*call.right[:2], ours), (*call.right[:2], every)])


def _entry(call: Call, number: int) -> tuple[int, int]:
    arguments: Mapping[str, Any] = call.arguments
    position, size = struct.unpack_from(">qi", arguments["entries"], 20 * number)
    return position, size


def _ends_at_its_size(call: Call) -> object:
    arguments: Mapping[str, Any] = call.arguments
    position, size = _entry(call, arguments["queue_offset"])
    return call.right[0], arguments["log"][position:size], call.right[2]


def _entry_as_unit(call: Call) -> object:
    arguments: Mapping[str, Any] = call.arguments
    start = 20 * arguments["queue_offset"]
    return call.right[0], arguments["entries"][start : start + 20], call.right[2]


def _counted_from_one(call: Call) -> object:
    arguments: Mapping[str, Any] = call.arguments
    position, size = _entry(call, arguments["queue_offset"] - 1)
    return position, arguments["log"][position : position + size], call.right[2]


def _of_any_topic(call: Call) -> OneOf:
    """A group's offset is that of the first key with its name at the end, or of any key with its name after the @."""
    arguments: Mapping[str, Any] = call.arguments
    table, offset = arguments["offset_table"], arguments["queue_offset"]

    def past(fits: Callable[[str, str], bool], most: int | None) -> object:
        groups = []
        for group in ("audit", "billing"):
            offsets = [queues.get(0, 0) for key, queues in table.items() if fits(key, group)][:most]
            groups += [group] if max(offsets, default=0) > offset else []
        return (*call.right[:2], groups)

    return OneOf([past(str.endswith, 1), past(lambda key, group: key.partition("@")[2] == group, None)])


FIND = (
    Slip("entries from 1", _counted_from_one, belief="lab00.counted_from_one"),
    Slip(
        "ends at its size",
        _ends_at_its_size,
        belief="lab00.end_not_size",
    ),
    Slip("entry as unit", _entry_as_unit, belief="lab00.message_in_queue"),
    Slip("end of the key", _of_any_topic, belief="lab00.any_topics_offset"),
    Slip(
        "names of the table",
        _keys_of_the_table,
        'The groups are asked for by their names, "audit" and "billing", without the topic before the @',
    ),
    Slip(
        "the other order",
        _with_groups(lambda right: right[::-1]),
        'The groups are right, their order is not: "audit" comes before "billing"',
    ),
    Slip(
        "nobody",
        _with_groups(lambda right: []),
        'No group was found in the table: its keys are texts like "orders@billing", and under them the queue is the '
        "number 0, not a text",
    ),
    slips.little_endian,
)


class _Asked:
    """One call, and what its rows say of the message that it asks about."""

    def __init__(self, call: Call) -> None:
        arguments: Mapping[str, Any] = call.arguments
        self.group, self.msg_id, self.right = arguments["group"], arguments["msg_id"], call.right
        self.rows: list[dict[str, Any]] = arguments["rows"]
        stored = self._of_kind("message.stored", lambda values: values["msg_id"] == self.msg_id)
        self.queue_offset = next(row["values"]["queue_offset"] for row in stored)

    def _of_kind(self, kind: str, wanted: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
        return (row for row in self.rows if row["kind"] == kind and wanted(row["values"]))

    def known_at(self, kind: str, wanted: Callable[[dict[str, Any]], bool]) -> object:
        """The right answer with the first such row for what the broker knows."""
        known = next((row["now_ms"] for row in self._of_kind(kind, wanted)), None)
        return (*self.right[:2], known)


def _known_to_the_client(call: Call) -> OneOf:
    asked = _Asked(call)
    ours = asked.group
    return OneOf(
        [
            asked.known_at("offset.updated", lambda v: v["group"] == ours and v["queue_offset"] > asked.queue_offset),
            asked.known_at("listener.returned", lambda v: v["group"] == ours and v["msg_id"] == asked.msg_id),
        ]
    )


def _any_groups_commit(call: Call) -> object:
    asked = _Asked(call)
    return asked.known_at("offset.committed", lambda v: v["queue_offset"] > asked.queue_offset)


def _commit_of_its_own(call: Call) -> OneOf:
    asked = _Asked(call)

    def committed(offset: int) -> object:
        return asked.known_at(
            "offset.committed", lambda v: v["group"] == asked.group and v["queue_offset"] == asked.queue_offset + offset
        )

    return OneOf([committed(1), committed(0)])


def _since_the_start(call: Call) -> object:
    arguments: Mapping[str, Any] = call.arguments
    first = arguments["rows"][0]
    began_ms = first["now_ms"] - first["after_ms"]
    return tuple(None if moment is None else moment - began_ms for moment in call.right)


def _since_it_was_stored(call: Call) -> object:
    stored_ms, *others = call.right
    return (stored_ms, *(None if moment is None else moment - stored_ms for moment in others))


TIMELINE = (
    Slip(
        "known to the client",
        _known_to_the_client,
        belief="lab00.client_is_broker",
    ),
    Slip(
        "any group's commit",
        _any_groups_commit,
        belief="lab00.anybodys_commit",
    ),
    Slip(
        "a commit of its own",
        _commit_of_its_own,
        belief="lab00.commit_for_each",
    ),
    Slip("since the start", _since_the_start, "The moments are asked for as now_ms, not since the first row"),
    Slip(
        "how long",
        _since_it_was_stored,
        "The moments themselves are asked for (now_ms), not how much time passed between them",
    ),
    Slip(
        "zero for none",
        lambda call: tuple(moment or 0 for moment in call.right),
        belief="lab00.none_is_zero",
    ),
    slips.seconds,
)


def _one_more(call: Call) -> OneOf:
    """One is added to every number, or to those that were reported."""
    everywhere = {group: offset + 1 for group, offset in call.right.items()}
    return OneOf([everywhere, {group: offset if offset > 1 else 0 for group, offset in everywhere.items()}])


CRASH = (
    Slip(
        "next is one more",
        _one_more,
        belief="lab00.committed_is_done",
    ),
    Slip(
        "last one read",
        lambda call: {group: max(offset - 1, 0) for group, offset in call.right.items()},
        belief="lab00.committed_minus_one",
    ),
    Slip(
        "names of the clients",
        lambda call: {f"{group}-1": offset for group, offset in call.right.items()},
        "The keys of the dictionary are the names of the groups, as they are in `groups`; billing-1 is a client",
    ),
)
