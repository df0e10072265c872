"""The files for lab 01's exercises, made from a seed, and the right answers for them.

    unit      units as the broker's encoder writes them      ─▶ wire.record.field_map
    lookup    a queue whose first files are deleted          ─▶ what the broker answers (MessageStore.get)
    tags      messages with all kinds of tags                ─▶ the entries that the broker wrote for them
    torn      a log after a power cut                        ─▶ the rule of recovery (wire.record.check)
    rebuild   a log whose beginning is deleted               ─▶ the entries that the broker wrote

The exercises are in reading and recovering; the index is in index_chain.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.wire import properties, record, sys_flag
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.record import Record

BODIES = ("книга", "三本书", "🎁🎁", "a lamp", "чай с лимоном", "one very long order " * 9)
SMALLEST_HASH = "polygenelubricants"
TAGS = ("paid", "已支付", "возврат", "Aa", "BB", "🎁", "express 🚀", "paid || shipped", "x" * 40, SMALLEST_HASH)
TWO_UNITS = "caf" + "e\u0301"  # a letter and its accent, which other programs write as one
UNWRITTEN = bytes(20)
SMALL_FILES = {"mapped_file_size_commit_log": 1024, "mapped_file_size_consume_queue": 120, "delete_file_batch_max": 4}
Files = dict[str, bytes]


def files_in(folder: Path) -> Files:
    """A folder's files by name, in order."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.is_dir() else {}


def broker_files(lab: Lab, *parts: str) -> Files:
    """The files of one folder of the broker's store."""
    return files_in(Path(lab.store().directory).joinpath(*parts))


def shop_of(lab: Lab, *topics: str, queues: int = 1) -> Any:
    """A producer, and its topics with so many queues each."""
    for topic in topics:
        lab.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues)
    return lab.producer("shop")


def quiet_lab(story: Callable[[Lab], None], seed: int, **broker: int) -> Lab:
    """A story played with small files and without message trace, so that the log holds only what the story sends."""
    return play(story, seed=seed, broker=broker, client={"enable_trace": False})


def units(seed: int) -> list[bytes]:
    """Units of all shapes: both kinds of addresses, long retry topics, a queue far along, a compressed body."""
    rng = random.Random(f"lab01.unit {seed}")
    plain = [_unit(rng, rng.choice(("orders", "письма", "订单")), False, False)]
    shapes = [(False, True), (True, False), (True, True), (False, False)]
    rng.shuffle(shapes)
    encoded = plain + [_unit(rng, "orders", *shape) for shape in shapes]
    encoded.append(_unit(rng, "%RETRY%" + "long-name-" * 13, False, rng.random() < 0.5, end=b"\0"))
    return [*encoded, _compressed_unit(rng)]


def _unit(rng: random.Random, topic: str, born_v6: bool, store_v6: bool, end: bytes = b"") -> bytes:
    named = {"TAGS": rng.choice(TAGS), "KEYS": f"order-{rng.randrange(99)}", "note": "a\x01b", "WAIT": "true"}
    chosen = {name: value for name, value in named.items() if rng.random() < 0.8}
    born = rng.randrange(1_700_000_000_000, 1_800_000_000_000)
    return record.encode(
        Record(
            topic,
            rng.choice(BODIES).encode() + end,
            queue_id=rng.randrange(16),
            flag=rng.randrange(9),
            born_timestamp=born,
            born_host=("2001:db8::7" if born_v6 else "10.0.0.7", rng.randrange(1024, 65536)),
            store_timestamp=born + rng.randrange(1, 900),
            store_host=("2001:db8::1" if store_v6 else "10.0.0.1", 10911),
            reconsume_times=rng.randrange(3),
            properties=properties.encode(chosen),
            queue_offset=rng.randrange(1, 2**33),
            physical_offset=rng.randrange(2**41),
        )
    )


def _compressed_unit(rng: random.Random) -> bytes:
    """A body as a client compresses it, and a property that begins and ends with a space."""
    return record.encode(
        Record(
            "orders",
            zlib.compress(rng.choice(BODIES).encode() * 9),
            sys_flag=sys_flag.COMPRESSED,
            store_timestamp=rng.randrange(1_700_000_000_000, 1_800_000_000_000),
            properties=properties.encode({"note": " for Anna "}),
            queue_offset=rng.randrange(1, 2**33),
            physical_offset=rng.randrange(2**41),
        )
    )


@dataclass(frozen=True, slots=True)
class QueueQuestion:
    """One question to a queue: what the broker answers when a group has committed an offset."""

    committed: int
    unit: bytes | None
    next_offset: int


@dataclass(frozen=True, slots=True)
class QueueOnDisk:
    """A queue's files, the log's files, and readings of the queue."""

    queue_files: Files
    log_files: Files
    readings: list[QueueQuestion]


def queue_on_disk(seed: int) -> QueueOnDisk:
    """Orders between letters; the disk was full for a while, so the oldest files of log and queue are gone."""
    rng = random.Random(f"lab01.lookup {seed}")

    def story(lab: Lab) -> None:
        shop = shop_of(lab, "orders", "letters")
        for _ in range(rng.randint(30, 36)):
            topic = "letters" if rng.random() < 0.3 else "orders"
            shop.send(Message(topic, rng.choice(BODIES).encode(), tags=rng.choice(TAGS[:4])))
        lab.run_for("1s")
        # Above 85 %, the broker deletes the oldest files although they have not expired.
        lab.broker().files.disk_used = 0.87
        lab.broker().store.retention.clean()

    # 1. Play it with files so small that several of them are deleted.
    lab = quiet_lab(story, seed, **SMALL_FILES)
    # 2. Some of the questions are enough.
    disk = _asked(lab)
    rng.shuffle(disk.readings)
    return QueueOnDisk(disk.queue_files, disk.log_files, disk.readings[:12])


def new_queue(seed: int) -> QueueOnDisk:
    """The first orders of a new broker: the one at byte 0 of the log has no tags, so two numbers of its entry are 0."""

    def story(lab: Lab) -> None:
        shop = shop_of(lab, "orders")
        for tags in (None, "paid", None):
            shop.send(Message("orders", BODIES[seed % len(BODIES)].encode(), tags=tags))
        lab.run_for("1s")

    return _asked(quiet_lab(story, seed, **SMALL_FILES))


def _asked(lab: Lab) -> QueueOnDisk:
    """The files of queue 0 of orders, and what the broker answers at every offset, the first and the last included."""
    store = lab.broker().store
    first, last = store.min_offset("orders", 0), store.max_offset("orders", 0)
    readings = []
    for committed in range(first, last + 1):
        answer = store.get("orders", 0, committed, 1)
        unit = bytes(answer.units[0]) if answer.units else None
        readings.append(QueueQuestion(committed, unit, answer.next_begin_offset))
    return QueueOnDisk(broker_files(lab, "consumequeue", "orders", "0"), broker_files(lab, "commitlog"), readings)


def tag_codes(seed: int) -> list[tuple[str | None, bytes]]:
    """(tags, the last 8 bytes of the entry that the broker wrote for them)."""
    rng = random.Random(f"lab01.tags {seed}")
    letters = "abcdefgXYZ019 订单已支付возврат🎁🚀"
    words = ["".join(rng.choices(letters, k=rng.randint(1, 12))).strip() for _ in range(5)]
    fixed = [None, "paid || shipped", " express ", SMALLEST_HASH, TWO_UNITS]
    tags = [*fixed, *rng.sample(TAGS, 4), *(word for word in words if word)]

    def story(lab: Lab) -> None:
        shop = shop_of(lab, "orders")
        for tag in tags:
            shop.send(Message("orders", b"a book", tags=tag))
        lab.run_for("1s")

    lab = quiet_lab(story, seed)
    (entries,) = broker_files(lab, "consumequeue", "orders", "0").values()
    return [(tag, entries[20 * number + 12 :][:8]) for number, tag in enumerate(tags)]


TORN_FILE, BLANK_BYTES = 2048, 8
DAMAGES = ("nothing", "zeros", "hole", "body", "cut", "half a unit", "only a blank")


def torn_log(seed: int, damage: str = "") -> Files:
    """A log of three or four files, damaged as a power cut would, or not at all."""
    rng = random.Random(f"lab01.torn {seed}")
    damage = damage or DAMAGES[seed % len(DAMAGES)]
    # 1. Choose a unit with a body in the later half of the log: the damage begins there.
    files = _whole_log(rng, blank_at_end=damage == "only a blank")
    starts = [
        (name, start)
        for name, data in files.items()
        for start in _unit_starts(data)
        if any(data[start + 84 : start + 88])
    ]
    name, position = rng.choice(starts[len(starts) // 2 :])
    data = bytearray(files[name])
    size = struct.unpack_from(">i", data, position)[0]
    # 2. Damage it in the way that was chosen; "nothing" and "only a blank" leave it whole.
    if damage == "zeros":  # what was written last never reached the disk
        data[position + size // 2 :] = bytes(len(data) - position - size // 2)
        files = {other: content for other, content in files.items() if other <= name}
    elif damage in ("hole", "half a unit"):  # a part is lost, but what was written later is not
        start = position + (size // 3 if damage == "hole" else 100)
        data[start : start + 64] = bytes(64)
    elif damage == "body":
        data[position + 88] ^= 0x10
    elif damage == "cut":  # the lengths no longer add up
        data[position : position + 4] = struct.pack(">i", size + 12)
    files[name] = bytes(data)
    return files


def _whole_log(rng: random.Random, *, blank_at_end: bool) -> Files:
    files: Files = {}
    count = rng.randint(3, 4)
    first = TORN_FILE * rng.randrange(3)
    for number in range(count):
        data, last = bytearray(), b""
        while True:
            body = b"" if rng.random() < 0.15 else rng.choice(BODIES).encode() * rng.randint(1, 3)
            physical_offset = first + number * TORN_FILE + len(data)
            unit = _torn_unit(physical_offset, body, rng.choice(TAGS))
            # 1. A file is full when the unit and a BLANK of 8 bytes do not both fit.
            if len(data) + len(unit) + BLANK_BYTES > TORN_FILE:
                break
            # 2. The last file is only partly written, as the last file of a log mostly is.
            if number == count - 1 and not blank_at_end and len(data) > TORN_FILE // 2:
                break
            data += unit
            last = unit
        # 3. The first file is as full as a file can be: its BLANK is nothing but its two numbers.
        if number == 0:
            last_unit, room = record.decode(last), TORN_FILE - len(data) - BLANK_BYTES
            tags = properties.decode(last_unit.properties)["TAGS"]
            data[-len(last) :] = _torn_unit(last_unit.physical_offset, last_unit.body + b"!" * room, tags)
        # 4. A full file ends with a BLANK; zeros fill the rest of the last one.
        if number < count - 1 or blank_at_end:
            data += record.blank(TORN_FILE - len(data))
        files[f"{first + number * TORN_FILE:020d}"] = bytes(data).ljust(TORN_FILE, b"\0")
    return files


def _torn_unit(physical_offset: int, body: bytes, tags: str) -> bytes:
    return record.encode(
        Record(
            "orders",
            body,
            physical_offset=physical_offset,
            store_timestamp=1_767_225_600_000 + physical_offset,
            properties=properties.encode({"TAGS": tags}),
        )
    )


def _unit_starts(data: bytes) -> list[int]:
    starts, position = [], 0
    while (check := record.check(data, position)).kind == record.UNIT:
        starts.append(position)
        position += check.size
    return starts


def end_of(files: Files) -> tuple[int, str]:
    """Where recovery ends a log, and why there: the reason, or "" where the last file ends with a BLANK."""
    names = sorted(files)
    for number, name in enumerate(names):
        position = 0
        while (check := record.check(files[name], position)).kind == record.UNIT:
            position += check.size
        if check.kind != record.BLANK or number == len(names) - 1:
            return int(name) + position, check.reason
    return 0, "there are no files"


@dataclass(frozen=True, slots=True)
class LostQueues:
    """The units that a log still has, in order, and for each queue what its files contained."""

    units: list[bytes]
    queues: dict[tuple[str, int], tuple[int, bytes]]


def lost_queues(seed: int) -> LostQueues:
    """Two topics of two queues each; the first part of the log is deleted already.

    The first queue of orders goes past entry 9, the last one of letters is younger than what is deleted, and the log
    has several files, so that there are BLANKs between its units.
    """
    rng = random.Random(f"lab01.rebuild {seed}")
    # 1. The queue of each message, in order: the youngest queue gets nothing of the first ten.
    goes_to = [("orders", 0)] * rng.randint(13, 15) + [("orders", 1), ("letters", 0)] * rng.randint(5, 7)
    rng.shuffle(goes_to)
    later = goes_to[10:] + [("letters", 1)] * rng.randint(3, 5)
    rng.shuffle(later)

    def story(lab: Lab) -> None:
        shop = shop_of(lab, "orders", "letters", queues=2)
        for number, (topic, queue_id) in enumerate(goes_to[:10] + later):
            tags = rng.choice((None, *TAGS))
            message = Message(topic, rng.choice(BODIES).encode(), tags=tags, keys=f"order-{number}")
            shop.send(message, selector=lambda queues, _, arg: queues[arg], arg=queue_id)
        lab.run_for("1s")

    # 2. Play it, and leave out the first units of the log.
    lab = quiet_lab(story, seed, mapped_file_size_commit_log=TORN_FILE)
    log = b"".join(broker_files(lab, "commitlog").values())
    starts = [
        int(name) + start for name, data in broker_files(lab, "commitlog").items() for start in _unit_starts(data)
    ]
    kept = starts[rng.randint(6, 10) :]
    # 3. What is right: the entries that the broker wrote for the units that are left.
    queues = {}
    for topic in ("orders", "letters"):
        for queue_id in (0, 1):
            files = broker_files(lab, "consumequeue", topic, str(queue_id))
            entries = next(iter(files.values()), b"")
            written = [
                entries[start : start + 20]
                for start in range(0, len(entries), 20)
                if entries[start : start + 20] != UNWRITTEN
            ]
            first = sum(struct.unpack_from(">q", entry)[0] < kept[0] for entry in written)
            there = b"".join(written[first:])
            queues[topic, queue_id] = (first, there) if there else (0, b"")
    queues["orders", 2] = (0, b"")  # nothing was ever sent to it
    units = [log[start : start + record.check(log, start).size] for start in kept]
    return LostQueues(units, queues)
