"""lab01.index: an index file that can be read piece by piece, and a key -> places in the log, newest first.

The file is written by a broker with seven slots, so that keys share chains; what is right is the broker's own walk. The
answer gets ``read(position, size)``, and its reads are counted: who follows the chain needs three and the chain's own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab01.files import broker_files, quiet_lab, shop_of
from mqlab.course.kit import OneOf, Pure, Slip, slips
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call, Finding
from mqlab.errors import UsageError
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.store.reading.index_table import IndexTable
from mqlab.rocketmq.wire.java_hash import index_key_hash
from mqlab.rocketmq.wire.message import Message

SLOTS, ENTRIES = 7, 150
HEADER_BYTES = 40
READS_BESIDE_THE_CHAIN = 3
MOST_READS = 2 * ENTRIES
FAR_BEYOND = 1 << 20  # a number that was read from the wrong end leads there; any other mistake stays near
ALWAYS = (0, 2**62)

PLACE_RULE = (
    "Slot s = hash of topic#key % S is at byte 40 + 4 * s; entry n is at 40 + 4 * S + 20 * n, so entry 0 is a gap"
)
CHAIN_RULE = "A slot's chain holds all hashes that share the slot: only entries with the key's own hash count"
SECONDS_RULE = "An entry's third number is whole seconds since the file's begin_timestamp, not ms and not a date"
ORDER_RULE = "The slot names its newest entry, and each entry the one before it: the newest comes first"
MS_RULE = "begin_ms and end_ms are milliseconds: an entry's time in milliseconds is compared with them, not the seconds"
TOO_NEW_RULE = (
    "An entry that was stored after end_ms does not end the chain: the older ones behind it may be in the time that is "
    "asked for"
)
BOUNDS_RULE = "begin_ms and end_ms are both part of the time that is asked for: <=, not <"
NEWEST_RULE = (
    "The slot names only the newest entry of its chain: the previous number of each entry leads to the next one, until "
    "it is 0"
)
STOPS_RULE = (
    "An entry of another key does not end the chain: hashes that share the slot are between, so continue until the "
    "previous number is 0"
)
SCAN_RULE = (
    "A slot leads to its chain, and only the chain is read, entry by entry: an index of millions of entries cannot be "
    "searched from its beginning"
)
PIECE_RULE = "An index file has hundreds of megabytes: read what you need, at most the 40 bytes of the header at once"


Entry = tuple[int, int, int, int]  # key hash, place, seconds, previous entry


class FileReads:
    """One file that is read piece by piece; how often it was read, and how much at most at once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.count, self.largest = 0, 0

    def read(self, position: int, size: int) -> bytes:
        """The bytes from ``position`` on; fewer than ``size`` at the end of the file. UsageError after very many."""
        self.count, self.largest = self.count + 1, max(self.largest, size)
        if position < 0 or size < 0:
            raise UsageError(f"read({position}, {size}): a position and a size are 0 or more")
        if position > len(self._data) + FAR_BEYOND:
            where = f"read({position}, {size}): the index has only {len(self._data):,} bytes"
            raise UsageError(where, hint=f"{slips.little_endian.says}. Was the number before it read the same way?")
        if self.count > MOST_READS:
            raise UsageError(f"the index was read {MOST_READS} times", hint="a chain ends where the previous one is 0")
        return self._data[position : position + size]


@dataclass(frozen=True, slots=True)
class ChainQuestion:
    """What a judge knows of a question: the reads, the key's hash, the file's first time, the chain, newest first."""

    reads: FileReads
    key_hash: int
    begin_timestamp: int
    chain: list[Entry]


def calls(seed: int) -> Iterator[Call]:
    """For each key two questions over all time, one per topic, and two over time spans that differ by 1 ms."""
    rng = random.Random(f"lab01.index {seed}")
    keys = [f"order-{number}" for number in range(6)] + ["订单-7"]

    def story(lab: Lab) -> None:
        shop = shop_of(lab, "orders", "letters")
        sent = [(rng.choice(("orders", "orders", "letters")), rng.choice(keys)) for _ in range(24)]
        # The newest two of a chain are one key's, so that reading one entry differs from stopping at another hash.
        for topic, key in (*sent, ("orders", keys[0]), ("orders", keys[0])):
            shop.send(Message(topic, b"a book", keys=key))
            lab.run_for(rng.randint(100, 9_000))

    lab = quiet_lab(story, seed, max_hash_slot_num=SLOTS, max_index_num=ENTRIES)
    (data,) = broker_files(lab, "index").values()
    table = IndexTable(memoryview(data), SLOTS, ENTRIES)
    for number, key in enumerate([*keys, "nobody"]):
        begin_ms, end_ms = _span(table, index_key_hash(f"orders#{key}"), rng, at_its_begin=number % 2 == 0)
        past = (begin_ms + 1, end_ms) if number % 2 == 0 else (begin_ms, end_ms - 1)
        for topic, (begin, end) in (
            ("orders", ALWAYS),
            ("letters", ALWAYS),
            ("orders", (begin_ms, end_ms)),
            ("orders", past),
        ):
            yield question(data, topic, key, begin, end)
    # The newest entry of this chain is too new, and the key's oldest is at neither end of the time.
    key_hash = index_key_hash(f"orders#{keys[0]}")
    stored = [table.entry(number) for number in table.chain(key_hash)]
    oldest_ms = table.begin_timestamp + 1000 * min(entry[2] for entry in stored if entry[0] == key_hash)
    yield question(data, "orders", keys[0], oldest_ms - 500, oldest_ms + 500)


def _span(table: IndexTable, key_hash: int, rng: random.Random, *, at_its_begin: bool) -> tuple[int, int]:
    """A time span with one of the key's entries at its very begin, or at its very end."""
    stored = [table.entry(number) for number in table.chain(key_hash)]
    seconds = rng.choice([entry[2] for entry in stored if entry[0] == key_hash] or [rng.randrange(1, 60)])
    anchor_ms, length = table.begin_timestamp + 1000 * seconds, 1000 * rng.randrange(20, 60)
    return (anchor_ms, anchor_ms + length) if at_its_begin else (anchor_ms - length, anchor_ms)


def question(data: bytes, topic: str, key: str, begin_ms: int, end_ms: int) -> Call:
    """One question to an index file, with what the broker's own walk along the chain finds."""
    table, key_hash = IndexTable(memoryview(data), SLOTS, ENTRIES), index_key_hash(f"{topic}#{key}")
    right: list[int] = []
    table.select(key_hash, right, 64, begin_ms, end_ms)
    # The bytes of the slot and of its newest entry: an answer has to start there.
    slot = key_hash % SLOTS
    position = table.slot_position(slot)
    about = f"{topic}#{key}: slot {slot} at byte {position}: {data[position : position + 4].hex(' ')}"
    newest = int.from_bytes(data[position : position + 4], "big")
    if newest:
        begin = table.entry_position(newest)
        about += f", so entry {newest} at byte {begin}: {data[begin : begin + 20].hex(' ', 4)}"
    reads = FileReads(data)
    chain = [table.entry(number) for number in table.chain(key_hash)]
    return Call(
        read=reads.read,
        slots=SLOTS,
        topic=topic,
        key=key,
        begin_ms=begin_ms,
        end_ms=end_ms,
        right=right,
        about=about,
        given=ChainQuestion(reads, key_hash, table.begin_timestamp, chain),
    )


# Wrong walks along a chain.


def _places(call: Call, entries: Iterable[Entry], fits: Callable[[int], bool] | None = None) -> list[int]:
    """The places of those entries that are the key's and in time; ``fits(ms)`` in place of the right bounds."""
    asked: ChainQuestion = call.given
    inside = fits or (lambda ms: call["begin_ms"] <= ms <= call["end_ms"])
    return [
        physical_offset
        for key_hash, physical_offset, seconds, _ in entries
        if key_hash == asked.key_hash and inside(asked.begin_timestamp + 1000 * seconds)
    ]


def _newest_only(call: Call) -> OneOf:
    """The entry that the slot names, or the first that fits."""
    return OneOf([_places(call, call.given.chain[:1]), call.right[:1]])


def _until_another_hash(call: Call) -> OneOf:
    """The chain as far as its hashes are the key's, or as far as the entries fit in every way."""
    chain, key_hash = call.given.chain, call.given.key_hash
    own = list(itertools.takewhile(lambda entry: entry[0] == key_hash, chain))
    fitting = list(itertools.takewhile(lambda entry: _places(call, [entry]), chain))
    return OneOf([_places(call, own), _places(call, fitting)])


def _until_too_new(call: Call) -> list[int]:
    """The chain up to an entry that is not in the time that is asked for."""
    asked: ChainQuestion = call.given
    inside = [call["begin_ms"] <= asked.begin_timestamp + 1000 * entry[2] <= call["end_ms"] for entry in asked.chain]
    return _places(call, asked.chain[: inside.index(False)] if False in inside else asked.chain)


def _in_whole_seconds(call: Call) -> list[int]:
    """The bounds as seconds."""
    begin, end = call["begin_ms"] // 1000, call["end_ms"] // 1000
    return _places(call, call.given.chain, lambda ms: begin <= ms // 1000 <= end)


def _open_bounds(call: Call) -> OneOf:
    """One bound is left out, or both."""
    begin_ms, end_ms, chain = call["begin_ms"], call["end_ms"], call.given.chain
    bounds: list[Callable[[int], bool]] = [
        lambda ms: begin_ms < ms <= end_ms,
        lambda ms: begin_ms <= ms < end_ms,
        lambda ms: begin_ms < ms < end_ms,
    ]
    return OneOf(_places(call, chain, fits) for fits in bounds)


def _whole_chain(call: Call) -> list[int]:
    """All that hangs on the slot and is in time."""
    key_hash = call.given.key_hash
    return _places(call, [(key_hash, *entry[1:]) for entry in call.given.chain])


def _in_milliseconds(call: Call) -> list[int]:
    """The third number taken for milliseconds."""
    begin = call.given.begin_timestamp
    return _places(
        call, call.given.chain, lambda ms: call["begin_ms"] <= begin + (ms - begin) // 1000 <= call["end_ms"]
    )


def _rule(call: Call, answer: Any, seen: Difference) -> str:
    """From the most special mistake to the most general one: order, times, foreign hashes, places."""
    reads, key_hash, chain = call.given.reads, call.given.key_hash, call.given.chain
    if sorted(answer) == sorted(call.right):
        return SCAN_RULE if reads.count > READS_BESIDE_THE_CHAIN + len(chain) else ORDER_RULE
    if answer and all(
        physical_offset in [entry[1] for entry in chain if entry[0] == key_hash] for physical_offset in answer
    ):
        return SECONDS_RULE
    if answer and all(physical_offset in [entry[1] for entry in chain] for physical_offset in answer):
        return CHAIN_RULE
    return SECONDS_RULE if not answer and call["begin_ms"] > 0 else PLACE_RULE


def _reads(call: Call) -> Finding | None:
    """Whether the answer read more than the chain."""
    reads, chain = call.given.reads, call.given.chain
    where = f"{call['topic']}#{call['key']}, whose chain has {counted(len(chain), 'entries')}"
    most = READS_BESIDE_THE_CHAIN + len(chain)
    if reads.largest > HEADER_BYTES:
        return Finding(PIECE_RULE, where, f"at most {HEADER_BYTES} bytes in one read", reads.largest, call=call)
    if reads.count > most:
        return Finding(SCAN_RULE, where, f"at most {most} reads", reads.count, call=call)
    return None


INDEX = Pure(
    "lab01.index",
    "places(read, slots, topic, key, begin_ms, end_ms)",
    points=4,
    forbids=FORBIDS["lab01.index"],
    about="an index of seven slots",
    calls=calls,
    seeds=(1, 2, 3),
    returns=[int],
    explain=_rule,
    also=_reads,
    slips=[
        Slip("open bounds", _open_bounds, BOUNDS_RULE),
        Slip("whole seconds", _in_whole_seconds, MS_RULE),
        Slip("until one that is too new", _until_too_new, TOO_NEW_RULE),
        Slip("newest only", _newest_only, NEWEST_RULE),
        Slip("until another hash", _until_another_hash, STOPS_RULE),
        Slip("whole chain", _whole_chain, belief="lab01.slot_is_a_key"),
        Slip("milliseconds", _in_milliseconds, belief="lab01.difference_in_ms"),
        slips.little_endian,
    ],
)
