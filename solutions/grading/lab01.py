"""Hidden cases of lab 01: how many seeded files each exercise is judged by, and files that are special.

The known-wrong answers are in wrong/lab01.*.diff, one file per exercise.
"""

from __future__ import annotations

import struct

from mqlab.teach.cases.lab01 import files as made
from mqlab.teach.cases.lab01 import judges
from mqlab.teach.cases.lab01.index_chain import ALWAYS, ENTRIES, INDEX, SLOTS, question
from mqlab.teach.exercises import Answers, Call, Case, Finding
from mqlab.teach.kit import Variant, variants
from mqlab.wire import record
from mqlab.wire.java_hash import tags_code
from mqlab.wire.record import Record

SEEDED = {
    "lab01.unit": 4, "lab01.tags": 3, "lab01.lookup": 3, "lab01.index": 3, "lab01.torn": 4, "lab01.rebuild": 3,
}  # fmt: skip


def _bare_unit(answers: Answers) -> Finding | None:
    """No body, no properties."""
    return judges.judge_units(answers, [record.encode(Record("t", b"", queue_offset=41, physical_offset=7))])


def _odd_tags(answers: Answers) -> Finding | None:
    """The empty text, the smallest number there is, negative ones, letters outside the first plane."""
    texts = (None, "", "polygenelubricants", "возврат оплаты", "🚀🎁", "𝄞", "a || b", "ы" * 60)
    return judges.judge_tags(answers, [(text, struct.pack(">q", tags_code(text))) for text in texts])


def _nothing_to_find(seed: int) -> list[Call]:
    """An index whose slots are all empty."""
    return [question(bytes(40 + 4 * SLOTS + 20 * ENTRIES), "orders", f"order-{seed}", *ALWAYS)]


def _every_damage(seed: int) -> tuple[Case, ...]:
    """One log of the class's seed for each thing that a power cut does: a few seeds would miss some of them."""
    return tuple(_torn(seed + number, damage) for number, damage in enumerate(made.DAMAGES))


def _torn(seed: int, damage: str) -> Case:
    return Case(f"a log: {damage}", lambda answers: judges.judge_torn(answers, made.torn_log(seed, damage)))


def _unwritten_file(answers: Answers) -> Finding | None:
    """A file that was made and never written."""
    return judges.judge_torn(answers, {"00000000000000004096": bytes(4096)})


def _queue_without_messages(answers: Answers) -> Finding | None:
    """A queue of which the log has nothing."""
    lost = made.lost_queues(5)
    return judges.judge_rebuild(answers, made.LostQueues(lost.units, {("letters", 7): (0, b"")}))


FROM_SEED = {
    "lab01.torn": _every_damage,
    "lab01.index": variants(INDEX, Variant("an empty index", _nothing_to_find)),
}
HIDDEN = {
    "lab01.unit": (Case("a unit with nothing in it", _bare_unit),),
    "lab01.tags": (Case("odd tags", _odd_tags),),
    "lab01.torn": (Case("an unwritten file", _unwritten_file),),
    "lab01.rebuild": (Case("a queue without messages", _queue_without_messages),),
}
