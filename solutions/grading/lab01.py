"""Hidden cases of lab 01: how many seeded files each exercise is judged by, and files that are special.

The known-wrong answers are in wrong/lab01.*.diff, one file per exercise.
"""

from __future__ import annotations

import functools
import struct

from mqlab.course.cases.lab01 import files as made
from mqlab.course.cases.lab01.index_chain import ALWAYS, ENTRIES, INDEX, SLOTS, question
from mqlab.course.cases.lab01.reading import LOOKUP, TAGS, UNIT, reading_calls, unit_calls
from mqlab.course.cases.lab01.recovering import REBUILD, TORN, queue_calls, torn_call
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Call, Case
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.java_hash import tags_code
from mqlab.rocketmq.wire.record import Record

SEEDED = {
    "lab01.unit": 4,
    "lab01.tags": 3,
    "lab01.lookup": 3,
    "lab01.index": 3,
    "lab01.torn": 4,
    "lab01.rebuild": 3,
}
ODD_TAGS = (None, "", "polygenelubricants", "возврат оплаты", "🚀🎁", "𝄞", "a || b", "ы" * 60)


def _short_units(seed: int) -> list[Call]:
    """What most logs hold: IPv4 addresses and short topics."""
    return list(unit_calls([unit for unit in made.units(seed) if _is_plain(unit)]))


def _is_plain(unit: bytes) -> bool:
    one = record.decode(unit)
    return not one.sys_flag & 0x30 and len(one.topic) < 128


def _bare_unit(seed: int) -> list[Call]:
    """No body, no properties."""
    return list(unit_calls([record.encode(Record("t", b"", queue_offset=41, physical_offset=7))]))


def _odd_tags(seed: int) -> list[Call]:
    """The empty text, the smallest number there is, negative ones, letters outside the first plane."""
    return [Call(tags=text, right=struct.pack(">q", tags_code(text))) for text in ODD_TAGS]


def _nothing_to_find(seed: int) -> list[Call]:
    """An index whose slots are all empty."""
    return [question(bytes(40 + 4 * SLOTS + 20 * ENTRIES), "orders", f"order-{seed}", *ALWAYS)]


def _damaged(damage: str, seed: int) -> list[Call]:
    return [torn_call(made.torn_log(seed, damage))]


def _unwritten_file(seed: int) -> list[Call]:
    """A file that was made and never written."""
    return [torn_call({"00000000000000004096": bytes(4096)})]


def _first_orders(seed: int) -> list[Call]:
    """A position of 0 and a code of 0 are right numbers."""
    return list(reading_calls(made.new_queue(seed)))


def _topics_alike(seed: int) -> list[Call]:
    """A topic whose name begins with that of the other, in the same queues."""
    lost = made.lost_queues(seed)
    others = [
        record.encode(
            Record("orders-eu", b"a book", queue_id=queue_id, queue_offset=7, physical_offset=2**20 + queue_id)
        )
        for queue_id in (0, 1)
    ]
    return list(queue_calls(made.LostQueues([*lost.units, *others], lost.queues)))


def _queue_without_messages(seed: int) -> list[Call]:
    """A queue of which the log has nothing."""
    return list(queue_calls(made.LostQueues(made.lost_queues(seed).units, {("letters", 7): (0, b"")})))


FROM_SEED = {
    "lab01.unit": variants(
        UNIT, Variant("short addresses, short topics", _short_units), Variant("a unit with nothing in it", _bare_unit)
    ),
    "lab01.tags": variants(TAGS, Variant("odd tags", _odd_tags)),
    "lab01.lookup": variants(LOOKUP, Variant("the first orders of a broker", _first_orders)),
    "lab01.index": variants(INDEX, Variant("an empty index", _nothing_to_find)),
    # One log for each thing that a power cut does: a few seeds would miss some of them.
    "lab01.torn": variants(
        TORN,
        *(Variant(f"a log: {damage}", functools.partial(_damaged, damage)) for damage in made.DAMAGES),
        Variant("an unwritten file", _unwritten_file),
    ),
    "lab01.rebuild": variants(
        REBUILD,
        Variant("a queue without messages", _queue_without_messages),
        Variant("topics that begin alike", _topics_alike),
    ),
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
