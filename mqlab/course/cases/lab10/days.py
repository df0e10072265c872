"""The stores that lab 10's exercises are judged by: a seeded day of an order platform, and a small one full of traps.

    day(seed)    two brokers, 6,000 messages: written by mqlab.data.traffic, with a hot customer and a burst
    odd_day()    two brokers, written by the store itself: equal counts, a queue whose beginning retention has deleted,
                 messages without tags or keys, tags that hold other tags, keys in any order,
                 topics and keys that look like others
    even_day(seed)  the same in small, for public checks: equal queues, equal customers, tags in capitals
    mixed_keys() two brokers: the messages of one order carry different key texts

Each is made once in a process, where answers can read it, and is deleted when the process ends. The truth about a day
is deleted at once. The questions about them are in questions.
"""

from __future__ import annotations

import atexit
import functools
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mqlab.course.kit import Store
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire.record import Record

MESSAGES = 6_000
BROKERS = ("broker-a", "broker-b")
LOG_FILE_BYTES = 4_096
HIGH_NUMBER = 100  # customers of this number come first by name, and last by number


@functools.cache
def day(seed: int) -> Store:
    """A seed's day; its hot customer buys at one broker for an hour."""
    from mqlab.data.traffic import write

    folder = _folder()
    summary = write(
        folder / "day",
        messages=MESSAGES,
        brokers=len(BROKERS),
        seed=seed,
        customers=400,
        failing_of_1024=40,
        incidents=("hot_key", "burst"),
        commit_log_bytes=1 << 20,
        consume_queue_bytes=20_000,
    )
    summary.truth.unlink()
    return Store(str(summary.directory), f"the day of seed {seed}")


@functools.cache
def mixed_keys() -> Store:
    """A store of 200 orders of six messages, which name their order in three texts of keys."""
    directory = _folder() / "mixed"
    for broker in BROKERS:
        with MessageStore.open(str(directory / broker)) as store:
            for number in range(600):
                order, customer = f"O{1000 * (1 + BROKERS.index(broker)) + number // 6}", f"C{number // 6 % 40}"
                keys = (f"{order} {customer}", f"{customer} {order}", f"{order} {customer} gift")[number % 3]
                store.put(_record("orders", number % 4, "paid", keys, f"заказ {number}"))
    return Store(str(directory), "orders with keys in any order")


@functools.cache
def odd_day() -> Store:
    """The small one."""
    directory = _folder() / "odd"
    for broker in BROKERS:
        with MessageStore.open(str(directory / broker), mapped_file_size_commit_log=LOG_FILE_BYTES) as store:
            for record in _odd_records(broker):
                store.put(record)
    first = directory / "broker-b" / "commitlog" / f"{0:020d}"
    first.unlink()  # as retention does: the oldest file goes, queue offsets stay as they are
    return Store(str(directory), "a small store full of exceptions")


@functools.cache
def even_day(seed: int) -> Store:
    """A store of equal counts; the oldest file of its second broker is gone."""
    rng = random.Random(f"lab10.even_day {seed}")
    directory = _folder() / "even"
    for broker in BROKERS:
        with MessageStore.open(str(directory / broker), mapped_file_size_commit_log=LOG_FILE_BYTES) as store:
            for record in _even_records(broker, rng):
                store.put(record)
    (directory / "broker-b" / "commitlog" / f"{0:020d}").unlink()
    return Store(str(directory), f"a small store of equal counts, seed {seed}")


def _even_records(broker: str, rng: random.Random) -> Iterator[Record]:
    """Letters: equally many in the later queues of the first broker and in the earlier ones of the second; the first
    is in the later queue. Orders: four customers with equally many events. Notes: the fullest queue has messages
    without keys.
    """
    first = 10 * rng.randint(1, 8)
    for number in range(20 if broker == "broker-b" else 0):  # what retention takes
        yield _record("orders", number % 2, "paid", f"O{number} C{first + 7}", "старый заказ 🎁 " * 8)
    for number in range(12):
        tags = ("paid", "Paid", "created", None, "paid || created", "prepaid")[number % 6]
        customer = f"C{HIGH_NUMBER * (broker == 'broker-b') + first + 3 - number % 4}"
        keys = (f"O{number} {customer}", f"giftC{first} {customer} O{number}")[number // 4 % 2]
        yield _record("orders", number % 2, tags, keys, f"заказ {rng.randint(1, 99)}")
    for number in range(6):
        yield _record("letters", 1 - number % 2 + 2 * (broker == "broker-a"), None, f"L{number}", "письмо")
    for number in range(7 if broker == "broker-a" else 0):
        yield _record("notes", int(number >= 4), None, None if number < 4 else f"N{number}", "записка")


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mqlab-day-"))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _odd_records(broker: str) -> list[Record]:
    kinds = [
        ("paid", "O1 C7 giftC5"),
        ("unpaid", "giftC5 C7 O2"),
        (None, "O3 C8"),
        ("created", None),
        ("paid || created", "O4"),
        ("已付款", "C9"),
        ("prepaid", "O5 C9 gift"),
        ("created", "O6 C10"),
    ]
    records = []
    for number in range(48 if broker == "broker-b" else 32):
        tags, keys = kinds[number % len(kinds)]
        records.append(_record("orders", number % 4, tags, keys, f"заказ {number} 🎁 " * 4))
    ids = ("1" * 32, "2" * 32, "3" * 32, "2" * 32, "4" * 32, "5" * 32)  # the fourth letter is the second, sent again
    records += [
        _record("letters", 1 - number % 2, None, None, "письмо", UNIQ_KEY=unique) for number, unique in enumerate(ids)
    ]
    for number in range(4):
        origin = f"{broker}-{number % 2}".encode().hex().upper().ljust(32, "0")
        waits = {
            "ORIGIN_MESSAGE_ID": origin,
            "UNIQ_KEY": origin[::-1],
            "RETRY_TOPIC": "orders",
            "REAL_TOPIC": "%RETRY%billing",
        }
        records.append(_record("SCHEDULE_TOPIC_XXXX", 2, "paid", "O1 C7", "ждёт", **waits))
        records.append(_record("%RETRY%billing", 0, "paid", "O1 C7", "ещё раз", **waits))
    for number in range(2):  # copies that still wait when the day ends: they have not come back
        waits = {"ORIGIN_MESSAGE_ID": f"{broker}+{number}".encode().hex().upper().ljust(32, "0")}
        waits |= {"RETRY_TOPIC": "orders", "REAL_TOPIC": "%RETRY%billing"}
        records.append(_record("SCHEDULE_TOPIC_XXXX", 2, "paid", "O1 C7", "ещё ждёт", **waits))
    origin = broker.encode().hex().upper().ljust(32, "2")
    unkeyed = {"ORIGIN_MESSAGE_ID": origin, "UNIQ_KEY": origin[::-1], "RETRY_TOPIC": "letters"}
    records.append(_record("%RETRY%billing", 0, None, None, "письмо ещё раз", **unkeyed))
    records.append(_record("RETRY-later", 0, None, None, "не повтор", ORIGIN_MESSAGE_ID="1" * 32))
    records += [_record("orders-eu", number % 2, "paid", "O8 C9", "заказ из ЕС") for number in range(6)]
    records.append(_record("%DLQ%billing", 0, "paid", "O1 C7", "всё", ORIGIN_MESSAGE_ID="0" * 32, RETRY_TOPIC="orders"))
    return records


def _record(topic: str, queue_id: int, tags: str | None, keys: str | None, body: str, **more: str) -> Record:
    named = {"TAGS": tags, "KEYS": keys, **more}
    encoded = properties.encode({name: value for name, value in named.items() if value is not None})
    return Record(topic, body.encode(), queue_id=queue_id, properties=encoded)
