"""Lab 00's replies to an answer: the rule that it breaks, and the first message or group that shows it.

answer ─▶ judge ─┬─ None
                 └─ Finding   rule   first wrong   expected (read from the day)   found
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlab.lab.lab import Lab
from mqlab.teach.cases.lab00.days import GROUPS
from mqlab.teach.exercises import Answers, Finding
from mqlab.wire import record

FIRST_FILE = "00000000000000000000"

# lab00.find ------------------------------------------------------------------------------------------------------


def judge_find(answers: Answers, lab: Lab) -> Finding | None:
    """Each order's place, unit and groups past it, found in the bytes of the log and of the queue file."""
    store = lab.store()
    folder = Path(store.directory)
    log = (folder / "commitlog" / FIRST_FILE).read_bytes()[: store.max_physical_offset]
    entries = (folder / "consumequeue" / "orders" / "0" / FIRST_FILE).read_bytes()
    offsets = store.config("consumerOffset.json")["offsetTable"]
    for message in store.messages("orders"):
        unit = log[message.physical_offset :][: record.decode(log, message.physical_offset).total_size]
        past = [group for group in GROUPS if offsets.get(f"orders@{group}", {}).get(0, 0) > message.queue_offset]
        found = answers["find"](message.queue_offset, entries, log, offsets)
        finding = _judge_place(message.queue_offset, (message.physical_offset, unit, past), found)
        if finding is not None:
            return finding
    return None


def _judge_place(queue_offset: int, right: tuple[int, bytes, list[str]], found: object) -> Finding | None:
    where = f"message {queue_offset} of the queue"
    if not isinstance(found, tuple) or len(found) != 3:
        return Finding("find returns a tuple (physical_offset, unit, groups)", where, right, found)
    if found[0] != right[0]:
        rule = "Entry n of a queue is at byte 20 * n, and its first 8 bytes say where the message is in the log"
        return Finding(rule, where, right[0], found[0])
    if found[1] != right[1]:
        rule = "The unit is as many bytes of the log as the entry's bytes 8 to 11 say, beginning at the physical offset"
        return Finding(rule, where, _said(right[1]), _said(found[1]))
    if found[2] != right[2]:
        rule = "A group is past a message when the offset it reads next is greater than the message's"
        return Finding(rule, f"{where}: the groups past it", right[2], found[2])
    return None


def _said(unit: object) -> object:
    """Bytes described by their length and both ends: the first hundred bytes of two units look alike."""
    return f"{len(unit)} bytes: {unit[:8].hex(' ', 4)} … {unit[-8:].hex(' ', 4)}" if isinstance(unit, bytes) else unit


# lab00.timeline --------------------------------------------------------------------------------------------------

DAY_RULES = {
    "stored_ms": "A message is stored when the broker writes it: the moment of its message.stored",
    "seen_ms": "A group first sees a message at its own first listener.started for it",
    "known_ms": "The broker knows that a group is past a message from the group's first offset.committed that is "
    "greater than its offset",
}


def judge_timeline(answers: Answers, lab: Lab) -> Finding | None:
    """For each order and group: when it was stored, first seen, and known to be done."""
    rows = lab.timeline().table().to_dicts()
    for group in GROUPS:
        for message in lab.store().messages("orders"):
            right = (message.store_timestamp, *_seen_and_known(lab, message, group))
            found = answers["read_day"](rows, message.msg_id, group)
            finding = _judge_day(f"{message.keys} and {group}", right, found)
            if finding is not None:
                return finding
    return None


def _seen_and_known(lab: Lab, message: Any, group: str) -> tuple[int | None, int | None]:
    seen = next((d.started_ms for d in lab.deliveries(group) if d.msg_id == message.msg_id), None)
    for step, values in lab.journal.changes("offset.committed"):
        # An offset is the next message to read, so it must be greater than the message's own.
        ours = values["group"] == group and values["topic"] == "orders"
        if ours and values["queue_offset"] > message.queue_offset:
            return seen, step.now_ms
    return seen, None


def _judge_day(who: str, right: tuple[int | None, ...], found: object) -> Finding | None:
    if not isinstance(found, tuple) or len(found) != 3:
        return Finding("read_day returns a tuple (stored_ms, seen_ms, known_ms)", who, right, found)
    for (name, rule), expected, got in zip(DAY_RULES.items(), right, found, strict=True):
        if got != expected:
            return Finding(rule, f"{who}: {name}", expected, got)
    return None


# lab00.crash -----------------------------------------------------------------------------------------------------


def judge_crash(answers: Answers, lab: Lab) -> Finding | None:
    """What each group reads next after its consumer was killed; one group was never there."""
    for group in GROUPS:
        lab.kill(f"{group}-1")
    rows = lab.timeline().table().to_dicts()
    groups = [*GROUPS, "nobody"]
    offsets = lab.broker().offset_table
    right = {group: (offsets.queues_of(group, "orders") or {}).get(0, 0) for group in groups}
    found = answers["stand"](rows, groups)
    if not isinstance(found, dict):
        return Finding("stand returns a dictionary: group -> next queue offset", "the result", right, found)
    # Whether every group is one too far: then it is one mistake about what an offset means.
    one_more = {group: offset + 1 for group, offset in right.items() if offset}
    for group in groups:
        if found.get(group) != right[group]:
            all_one_more = all(found.get(name) == offset for name, offset in one_more.items())
            return Finding(_crash_rule(right[group], all_one_more), group, right[group], found.get(group))
    return None


def _crash_rule(right: int, all_one_more: bool) -> str:
    if right and all_one_more:
        return "A committed offset is the next message to read: add nothing to the number that the broker got"
    if right == 0:
        return "A group that has reported nothing to the broker begins a young queue at offset 0"
    return "After a crash a group goes on from the last offset that the broker got, not from what its client remembered"
