"""Lab 00's exercises: the reference passes, real misconceptions are rejected with the message that helps."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from mqlab.course import CheckFailed, check
from mqlab.course.cases.lab00.days import working_day
from mqlab.course.teach.exercises import manifest

Rows = list[dict[str, Any]]
OTHER_SEEDS = range(100, 112)


def find(
    queue_offset: int, entries: bytes, log: bytes, offsets: dict[str, dict[int, int]]
) -> tuple[int, bytes, list[str]]:
    place, size, _ = struct.unpack_from(">qiq", entries, 20 * queue_offset)
    past = [g for g in ("audit", "billing") if offsets.get(f"orders@{g}", {}).get(0, 0) > queue_offset]
    return place, log[place : place + size], past


def commits(rows: Rows, group: str) -> list[dict[str, Any]]:
    return [r for r in rows if r["kind"] == "offset.committed" and r["values"]["group"] == group]


def read_day(rows: Rows, msg_id: str, group: str) -> tuple[int, int | None, int | None]:
    stored = next(r for r in rows if r["kind"] == "message.stored" and r["values"]["msg_id"] == msg_id)
    seen = (
        r["now_ms"]
        for r in rows
        if r["kind"] == "listener.started" and (r["values"]["group"], r["values"]["msg_id"]) == (group, msg_id)
    )
    offset = stored["values"]["queue_offset"]
    known = (r["now_ms"] for r in commits(rows, group) if r["values"]["queue_offset"] > offset)
    return stored["now_ms"], next(seen, None), next(known, None)


def stand(rows: Rows, groups: list[str]) -> dict[str, int]:
    latest = dict.fromkeys(groups, 0)
    for row in rows:
        if row["kind"] == "offset.committed":
            latest[row["values"]["group"]] = row["values"]["queue_offset"]
    return {group: latest[group] for group in groups}


def unread(stored: int, offsets: dict[str, int], groups: list[str]) -> dict[str, list[int]]:
    return {group: list(range(offsets.get(group, 0), stored)) for group in groups}


REFERENCE = {"unread": unread, "find": find, "read_day": read_day, "stand": stand}


@pytest.mark.parametrize("exercise", manifest("lab00").exercises, ids=lambda e: e.id)
def test_the_reference_passes_the_public_cases_and_others(exercise: Any) -> None:
    assert check(exercise.id, REFERENCE).state == "good"
    for seed in OTHER_SEEDS:
        assert exercise.case(seed).run(REFERENCE) is None


def little_endian(queue_offset: int, entries: bytes, log: bytes, offsets: Any) -> Any:
    place, size, _ = struct.unpack_from("<qiq", entries, 20 * queue_offset)
    return place, log[place : place + size], find(queue_offset, entries, log, offsets)[2]


def offset_is_a_byte(queue_offset: int, entries: bytes, log: bytes, offsets: Any) -> Any:
    place, size, _ = struct.unpack_from(">qiq", entries, queue_offset)
    return place, log[place : place + size], find(queue_offset, entries, log, offsets)[2]


def last_read(queue_offset: int, entries: bytes, log: bytes, offsets: Any) -> Any:
    place, unit, _ = find(queue_offset, entries, log, offsets)
    return place, unit, [g for g in ("audit", "billing") if offsets.get(f"orders@{g}", {}).get(0, -1) >= queue_offset]


def one_position_for_all(queue_offset: int, entries: bytes, log: bytes, offsets: Any) -> Any:
    place, unit, _ = find(queue_offset, entries, log, offsets)
    furthest = max(queues.get(0, 0) for queues in offsets.values())
    return place, unit, ["audit", "billing"] if furthest > queue_offset else []


def up_to_the_next_entry(queue_offset: int, entries: bytes, log: bytes, offsets: Any) -> Any:
    place, _, past = find(queue_offset, entries, log, offsets)
    after = struct.unpack_from(">q", entries, 20 * (queue_offset + 1))[0]
    return place, log[place : after or len(log)], past


def known_from_memory(rows: Rows, msg_id: str, group: str) -> Any:
    told = [r | {"kind": "offset.committed"} if r["kind"] == "offset.updated" else r for r in rows]
    return read_day(told, msg_id, group)


def any_groups_commit(rows: Rows, msg_id: str, group: str) -> Any:
    told = [r | {"values": r["values"] | {"group": group}} if r["kind"] == "offset.committed" else r for r in rows]
    return read_day(told, msg_id, group)


def a_commit_of_its_own(rows: Rows, msg_id: str, group: str) -> Any:
    stored_ms, seen_ms, _ = read_day(rows, msg_id, group)
    offset = next(r["values"]["queue_offset"] for r in rows if r["values"].get("msg_id") == msg_id)
    own = (r["now_ms"] for r in commits(rows, group) if r["values"]["queue_offset"] == offset + 1)
    return stored_ms, seen_ms, next(own, None)


def stored_when_the_producer_hears(rows: Rows, msg_id: str, group: str) -> Any:
    heard = next(r for r in rows if r["kind"] == "message.sent" and r["values"]["msg_id"] == msg_id)
    return heard["now_ms"], *read_day(rows, msg_id, group)[1:]


def seen_when_any_group_sees(rows: Rows, msg_id: str, group: str) -> Any:
    stored_ms, _, known_ms = read_day(rows, msg_id, group)
    seen = (r["now_ms"] for r in rows if r["kind"] == "listener.started" and r["values"]["msg_id"] == msg_id)
    return stored_ms, next(seen, None), known_ms


def clients_memory(rows: Rows, groups: list[str]) -> Any:
    return stand([r | {"kind": "offset.committed"} if r["kind"] == "offset.updated" else r for r in rows], groups)


def one_more(rows: Rows, groups: list[str]) -> Any:
    return {group: offset + 1 for group, offset in stand(rows, groups).items()}


def last_handled(rows: Rows, groups: list[str]) -> Any:
    done = dict.fromkeys(groups, 0)
    for row in rows:
        if row["kind"] == "listener.returned":
            done[row["values"]["group"]] = max(done[row["values"]["group"]], row["values"]["queue_offset"] + 1)
    return done


def only_those_that_reported(rows: Rows, groups: list[str]) -> Any:
    return {group: offset for group, offset in stand(rows, groups).items() if offset}


WRONG = [
    ("lab00.find", little_endian, "Numbers in the files are big-endian"),
    ("lab00.find", offset_is_a_byte, "is at byte 20 * n"),
    ("lab00.find", last_read, "the offset it reads next is greater"),
    ("lab00.find", one_position_for_all, "A group is past a message when"),
    ("lab00.find", up_to_the_next_entry, "bytes 8 to 11 of the entry say how many bytes it has"),
    ("lab00.timeline", known_from_memory, "The broker knows that a group is past"),
    ("lab00.timeline", any_groups_commit, "The broker knows that a group is past"),
    ("lab00.timeline", a_commit_of_its_own, "The broker knows that a group is past"),
    ("lab00.timeline", stored_when_the_producer_hears, "stored when the broker writes it"),
    ("lab00.timeline", seen_when_any_group_sees, "its own first listener.started"),
    ("lab00.crash", clients_memory, "not from what its client remembered"),
    ("lab00.crash", one_more, "add nothing to the number that the broker got"),
    ("lab00.crash", last_handled, "not from what its client remembered"),
    ("lab00.crash", only_those_that_reported, "begins a young queue at offset 0"),
]
NAMES = {"lab00.find": "find", "lab00.timeline": "read_day", "lab00.crash": "stand"}


@pytest.mark.parametrize(("exercise", "answer", "message"), WRONG, ids=lambda value: getattr(value, "__name__", None))
def test_a_wrong_belief_is_rejected_with_the_message_that_helps(exercise: str, answer: Any, message: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        check(exercise, {NAMES[exercise]: answer})
    text = str(failed.value)
    assert message in text
    assert "first wrong" in text and "expected" in text and "found" in text


@pytest.mark.parametrize(("exercise", "answer"), [(e, lambda *given: 7) for e in NAMES])
def test_an_answer_of_another_shape_is_told_the_shape(exercise: str, answer: Any) -> None:
    with pytest.raises(CheckFailed, match=r"returns a (tuple|dictionary)"):
        check(exercise, {NAMES[exercise]: answer})


@pytest.mark.parametrize("exercise", manifest("lab00").exercises, ids=lambda e: e.id)
def test_every_exercise_has_points_hints_and_a_note(exercise: Any) -> None:
    assert exercise.points > 0 and len(exercise.hints) == 3 and all(exercise.hints) and exercise.note
    assert exercise.public_seeds and len(exercise.defines) == 1


def test_after_a_restart_the_first_delivery_is_where_the_group_stood() -> None:
    lab = working_day(3, 16_000)
    lab.kill("billing-1")
    stood = stand(lab.timeline().table().to_dicts(), ["billing"])["billing"]
    before = len(lab.deliveries("billing"))
    lab.start("billing-1")
    lab.run_for("30s")
    again = lab.deliveries("billing")[before:]
    assert len(again) and min(again.column("queue_offset")) == stood
