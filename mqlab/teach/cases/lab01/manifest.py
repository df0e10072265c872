"""What lab 01 asks: predictions that common beliefs get wrong, and six exercises over the bytes of a broker's files.

    lab01.unit     bytes of the log               ─▶ the fields of a unit
    lab01.tags     a text                         ─▶ the tag code of an entry
    lab01.lookup   a group's offset, two folders  ─▶ the message it reads next, and the offset after that
    lab01.index    an index file and a key        ─▶ places in the log, newest first
    lab01.torn     a log after a power cut        ─▶ where it ends
    lab01.rebuild  the units of a log             ─▶ a lost consume queue

The files are in files, the replies to a wrong answer in judges. Reference and known-wrong answers are not in this
package. Questions, titles, hints and notes are in the lab's sources, your-turn tasks in tasks.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.cases.lab01 import files as made
from mqlab.teach.cases.lab01 import judges
from mqlab.teach.cases.lab01.index_chain import INDEX
from mqlab.teach.cases.lab01.tasks import TASKS
from mqlab.teach.exercises import Case, Exercise, Manifest
from mqlab.teach.predictions import predictions_of
from mqlab.teach.words import words_of


def _unit_case(seed: int) -> Case:
    return Case(f"six units, seed {seed}", lambda answers: judges.judge_units(answers, made.units(seed)))


def _lookup_case(seed: int) -> Case:
    name = f"a queue without its beginning, seed {seed}"
    return Case(name, lambda answers: judges.judge_lookup(answers, made.queue_on_disk(seed)))


def _tags_case(seed: int) -> Case:
    return Case(f"tags of all kinds, seed {seed}", lambda answers: judges.judge_tags(answers, made.tag_codes(seed)))


def _torn_case(seed: int) -> Case:
    return Case(f"a log after a bad day, seed {seed}", lambda answers: judges.judge_torn(answers, made.torn_log(seed)))


def _rebuild_case(seed: int) -> Case:
    name = f"four queues to rebuild, seed {seed}"
    return Case(name, lambda answers: judges.judge_rebuild(answers, made.lost_queues(seed)))


WORDS = words_of("lab01").exercises


def _of_bytes(name: str, points: int, defines: str, case: Callable[[int], Case], seeds: tuple[int, ...]) -> Exercise:
    words = WORDS[name]
    return Exercise(
        name, words.title, points, (defines,), case, seeds, words.hints, words.note, forbids=FORBIDS[name]
    )  # fmt: skip


EXERCISES = (
    _of_bytes("lab01.tags", 2, "tag_bytes", _tags_case, (1, 2)),
    _of_bytes("lab01.unit", 4, "read_unit", _unit_case, (1, 2, 3)),
    _of_bytes("lab01.lookup", 3, "read_next", _lookup_case, (1, 2)),
    INDEX,
    _of_bytes("lab01.rebuild", 3, "rebuild", _rebuild_case, (1, 2)),
    _of_bytes("lab01.torn", 4, "valid_end", _torn_case, (7, 8, 9, 10, 13)),
)

MANIFEST = Manifest("lab01", predictions_of("lab01"), EXERCISES, tasks=TASKS)
