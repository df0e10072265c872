"""Answers that call mqlab instead of doing the exercise: right where nothing is forbidden, without points behind it."""

from __future__ import annotations

import pytest

from mqlab.course.grading.judging.cases import judge
from mqlab.course.grading.judging.verdict import FAILED, PUBLIC, RAISED, CaseResult
from mqlab.course.grading.running.job import Answer, Job
from mqlab.course.grading.running.kernel import Judge
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.lab_files import open_lab
from mqlab.course.grading.submissions.rebuild import transplant
from mqlab.course.material import course_folder

SHORTCUTS = {
    "lab00.find": """
from mqlab.rocketmq.wire.units import decode_cq
def find(queue_offset, entries, log, offset_table):
    entry = decode_cq(entries, 20 * queue_offset)
    past = [group for group in ("audit", "billing")
            if offset_table.get(f"orders@{group}", {}).get(0, 0) > queue_offset]
    return entry.physical_offset, log[entry.physical_offset : entry.physical_offset + entry.size], past
""",
    "lab01.unit": """
from mqlab.rocketmq.wire import record
def read_unit(log, start):
    one = record.decode(log, start)
    return {"size": one.total_size, "queue_offset": one.queue_offset, "physical_offset": one.physical_offset,
            "store_timestamp": one.store_timestamp, "body": bytes(one.body), "topic": one.topic,
            "properties": dict(one.property_map)}
""",
    "lab01.tags": """
import struct
from mqlab.rocketmq.wire.java_hash import tags_code
def tag_bytes(tags):
    return struct.pack(">q", tags_code(tags))
""",
    "lab01.lookup": """
from mqlab.rocketmq.wire import units
def read_next(committed, queue_files, log_files):
    def piece(files, place, size):
        length = len(next(iter(files.values())))
        begin = place - place % length
        return files.get(f"{begin:020d}", b"")[place - begin :][:size]
    entry = piece(queue_files, 20 * committed, 20)
    place, size, _ = units.decode_cq(entry) if entry else (0, 0, 0)
    return (piece(log_files, place, size), committed + 1) if size else (None, committed)
""",
    "lab01.torn": """
def valid_end(log_files):
    for name in sorted(log_files):
        data, at = log_files[name], 0
        while (found := record.check(data, at)).kind == "UNIT":
            at += found.size
        if found.kind != "BLANK":
            break
    return int(name) + at
""",
    "lab01.rebuild": """
from mqlab.rocketmq.wire.units import encode_cq
def rebuild(units, topic, queue_id):
    mine = [one for one in map(record.decode, units) if (one.topic, one.queue_id) == (topic, queue_id)]
    entries = [encode_cq(one.physical_offset, one.total_size, tags_code(one.property_map.get("TAGS"))) for one in mine]
    return (mine[0].queue_offset if mine else 0), b"".join(entries)
""",
    "lab03.average": """
from mqlab.rocketmq.client.allocate import strategy
def average(queues, members, me):
    return strategy("AVG").allocate("billing", me, queues, members)
""",
    "lab03.ring": """
from mqlab.rocketmq.client import allocate
def ring(queues, members, me, virtual_nodes):
    return allocate.ConsistentHash(virtual_nodes).allocate("billing", me, queues, members)
""",
    "lab07.schedule": """
from mqlab.rocketmq.store.config import parse_delay_levels
def schedule(levels, max_reconsume_times):
    table = parse_delay_levels(levels)
    planned, second = [], 0
    for failed in range(16 if max_reconsume_times == -1 else max_reconsume_times):
        level = min(3 + failed, len(table))
        second += table[level - 1] // 1000
        planned.append((level, second))
    return planned
""",
}


def judged(exercise_id: str, sandbox: Sandbox, *, forbids: bool) -> list[CaseResult]:
    """The public cases of the shortcut, with or without what the exercise forbids."""
    lab = open_lab(course_folder(), exercise_id[3:5])
    cell = next(answer for answer in lab.answers if answer.exercise.id == exercise_id)
    answers = {exercise_id: Answer(SHORTCUTS[exercise_id], cell.names, sandbox.limits, cell.cell.part)}
    taken = transplant(lab, lab.notebook)
    court = Judge(Job(lab.id, "autumn", sandbox, answers, taken.set_up, later_set_up=taken.later_set_up))
    court.give(exercise_id, {})
    if not forbids:
        court.desk.withhold(())
    asked = next(one for one in lab.exercises if one.id == exercise_id)
    results = judge(asked.public_cases(), court.answers[exercise_id], PUBLIC)
    court.desk.close()
    return results


@pytest.mark.parametrize("exercise", SHORTCUTS)
def test_a_shortcut_gets_no_points_and_kind_words(exercise: str, walls: Sandbox) -> None:
    results = judged(exercise, walls, forbids=True)
    assert {one.state for one in results} <= {FAILED, RAISED}
    told = results[0].rule + results[0].trace
    assert "cannot be used in this exercise: it does what you are asked to write" in told


@pytest.mark.parametrize("exercise", SHORTCUTS)
def test_the_shortcut_would_be_right(exercise: str, walls: Sandbox) -> None:
    results = judged(exercise, walls, forbids=False)
    assert [one for one in results if not one.passed] == []
