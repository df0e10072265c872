"""What lab 01 asks: predictions that common beliefs get wrong, and six exercises over the bytes of a broker's files.

    lab01.unit     bytes of the log               ─▶ the fields of a unit
    lab01.tags     a text                         ─▶ the tag code of an entry
    lab01.lookup   a group's offset, two folders  ─▶ the message it reads next, and the offset after that
    lab01.index    an index file and a key        ─▶ places in the log, newest first
    lab01.torn     a log after a power cut        ─▶ where it ends
    lab01.rebuild  the units of a log             ─▶ a lost consume queue

The files are in files, the replies to a wrong answer in judges. Reference and known-wrong answers are not in this
package.
"""

from __future__ import annotations

from dataclasses import replace

from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.cases.lab01 import files as made
from mqlab.teach.cases.lab01 import judges
from mqlab.teach.cases.lab01.index_chain import INDEX
from mqlab.teach.exercises import Case, Exercise, Manifest, Prediction


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


PREDICTIONS = (
    Prediction(
        "lab01.queue_offset",
        "The queue has no file yet, and nothing writes one for the moment. Three orders are stored. Which queue offset "
        "does the third one get?",
        "The broker gives out queue offsets from a table in its memory, one a queue, at the moment of storing, and "
        "writes them into the units. The queue's file comes later and has no say.",
    ),
    Prediction(
        "lab01.by_key",
        "The three orders are in the commit log, each with its key, and their producers have SUCCESS. How many of them "
        "does a search by key find at this moment?",
        "The put writes the commit log and nothing else. Queue entries and index entries are made afterwards, by "
        "dispatching; until then no search and no consumer finds the message.",
    ),
    Prediction(
        "lab01.committed",
        "Billing has read orders 0, 1 and 2 of a queue of five, and its committed offset is 3. It is started again. "
        "Which order does it get first?",
        "A committed offset is the next message to read. Who adds one to it loses a message at every restart.",
    ),
    Prediction(
        "lab01.next_begin",
        "A queue holds orders 0 to 7, only order 2 is tagged `refund`. A consumer of `refund` pulls from 0 and gets "
        "order 2. From which offset will it pull next?",
        "The broker had looked at all eight entries, and says so in nextBeginOffset: behind the last entry it looked "
        "at, not behind the last message it gave. A client takes that number as it is.",
    ),
    Prediction(
        "lab01.first_entry",
        "An index file begins with 40 bytes of header, then S slots of 4 bytes, then entries of 20 bytes. S is 5. At "
        "which byte does the first entry begin that is ever written?",
        "Entries are numbered from 1, because 0 in a slot means empty. The 20 bytes of entry 0, from 60 to 79, stay "
        "unused. Slots do count from 0: slot s stands at 40 + 4 * s, not at 40 + 4 * (s - 1).",
    ),
    Prediction(
        "lab01.time_diff",
        "An index entry does not hold a time, only the difference from the file's first entry. The second order is "
        "stored 1,900 ms after the first. What does the entry hold?",
        "Whole seconds, cut off, not milliseconds: four bytes are enough for 68 years. So a search that begins at the "
        "exact store time of a message may miss it.",
    ),
    Prediction(
        "lab01.power",
        "Forty orders are sent in four seconds, all answered SUCCESS. Then the power is cut. The broker flushes as it "
        "does by default. How many of the forty are there when it is back?",
        "By default (ASYNC_FLUSH) SUCCESS means: written, not synced. Every 500 ms the broker syncs if there are four "
        "pages (16 KiB) to sync, and every 10 s whatever there is. Our forty orders were less than four pages.",
    ),
    Prediction(
        "lab01.retention",
        "A file of the commit log became full at midnight. Files are kept for 72 hours. After how many hours is it "
        "deleted?",
        "72 hours is how old a file must be; 04:00 is when the broker looks. Only a disk that is over 75 % full makes "
        "it look at other hours, and over 85 % it no longer asks how old a file is.",
    ),
)

EXERCISES = (
    Exercise(
        "lab01.unit",
        "Decode a unit",
        4,
        ("read_unit",),
        _unit_case,
        (1, 2, 3),
        (
            'Up to sys_flag, at byte 36, everything has a fixed place. struct.unpack_from(">5iqqi", log, start) '
            "reads the first eight fields.",
            "Keep a variable `at`. Begin at start + 48 (the born host), add 8, or 20 if sys_flag & 0x10. There is the "
            "store time. Next comes the store host: 8, or 20 if sys_flag & 0x20; then 4 and 8 bytes you do not need.",
            'Now three times the same: read a length (">i"; ">b", or ">h" when the magic\'s last byte is 0xAB; '
            '">h"), then so many bytes. For properties: for part in text.split("\\x02"): name, _, value = '
            'part.partition("\\x01").',
        ),
        "You can now read any message of any RocketMQ broker with a hex editor. Note what is not there: nothing says "
        "where the next unit of the same queue is, and nothing says who has read it.",
        forbids=FORBIDS["lab01.unit"],
    ),
    Exercise(
        "lab01.tags",
        "Java's hash, as the entry holds it",
        2,
        ("tag_bytes",),
        _tags_case,
        (1, 2),
        (
            'A Java string is a sequence of 16-bit units. tags.encode("utf-16-be") gives them, two bytes each.',
            "For each unit: value = 31 * value + unit. Java keeps 32 bits: value & 0xFFFFFFFF. Java's numbers have a "
            "sign: from 0x80000000 on, subtract 0x100000000.",
            'struct.unpack(f">{len(data) // 2}H", data) are the units; struct.pack(">q", value) keeps the sign. '
            "No tags: value 0.",
        ),
        "The broker filters by these eight bytes and never looks at the tag itself. Aa and BB have the same code: the "
        "broker lets both pass, and the client compares the texts again (lab 06).",
        forbids=FORBIDS["lab01.tags"],
    ),
    Exercise(
        "lab01.lookup",
        "Look up a message by its queue offset",
        3,
        ("read_next",),
        _lookup_case,
        (1, 2),
        (
            "Entry n is at byte 20 * n of the queue. Which of the files holds that byte? A file's name is the number "
            "of its first byte.",
            'All files of one folder are equally long: begin = position - position % length, name = f"{begin:020d}". '
            "The same works for the log.",
            "If there is no such file, or the entry's size is 0, return (None, committed). Otherwise return the unit "
            "and committed + 1: that is what the group commits when it is done.",
        ),
        "One multiplication, two reads: that is why a broker can have ten thousand queues, and why a group can go back "
        "to any message that is still there.",
        forbids=FORBIDS["lab01.lookup"],
    ),
    replace(
        INDEX,
        title="Query an index chain",
        hints=(
            'index_key_hash(f"{topic}#{key}") % slots is the slot. read(40 + 4 * slot, 4) gives the number of its '
            "newest entry.",
            'Entry n is at 40 + 4 * slots + 20 * n: struct.unpack(">iqii", read(..., 20)) gives hash, place, seconds, '
            "previous. Go on with previous until it is 0.",
            "Take a place only if the hash is the key's, and begin_ms <= begin_timestamp + 1000 * seconds <= end_ms; "
            "begin_timestamp are the file's first 8 bytes.",
        ),
        note="The index never holds the key itself. Two keys with one hash both come out, and whoever asked compares "
        "the real keys in the messages.",
    ),
    Exercise(
        "lab01.torn",
        "Find the valid end of a torn log",
        4,
        ("valid_end",),
        _torn_case,
        (7, 8, 9, 10, 13),
        (
            "Walk: at the start of the first file, ask whole_unit(data, at) again and again. Three answers: a size, "
            "a BLANK, or neither.",
            "A BLANK sends you to the start of the next file, if there is one. Anything that is neither ends the log "
            "at once; do not look any further.",
            "whole_unit does not look at the body. Compare yourself: zlib.crc32(body) & 0x7FFFFFFF with the number at "
            "byte 8, if the body is not empty. The result is int(name) + at.",
        ),
        "Whole units behind the hole are lost too. It must be so: a queue must not have a hole, and nobody could say "
        "what stood in it. This is how a broker loses messages that are still on its disk.",
        forbids=FORBIDS["lab01.torn"],
    ),
    Exercise(
        "lab01.rebuild",
        "Rebuild a consume queue",
        3,
        ("rebuild",),
        _rebuild_case,
        (1, 2),
        (
            "record.decode(unit) gives topic, queue_id, queue_offset, physical_offset, total_size and property_map. "
            "Which of the units belong to the queue?",
            'struct.pack(">qiq", physical_offset, total_size, code) is an entry. java_hash.tags_code(tags) is the '
            "code, 0 for None.",
            'The first number to return is the queue_offset that the queue\'s first unit carries; (0, b"") when the '
            "log has no unit of it.",
        ),
        "So the consume queue can be deleted without losing anything: the log knows it all. Index and queues are "
        "a faster way to the log, nothing more.",
        forbids=FORBIDS["lab01.rebuild"],
    ),
)

MANIFEST = Manifest("lab01", PREDICTIONS, EXERCISES)
