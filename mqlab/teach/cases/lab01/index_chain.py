"""lab01.index: an index file that can be read piece by piece, and a key -> places in the log, newest first.

The file is written by a broker with seven slots, so that keys share chains; what is right is the broker's own walk. The
answer gets ``read(position, size)``, and its reads are counted: who follows the chain needs three and the chain's own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from mqlab.errors import UsageError
from mqlab.inspector.index_table import IndexTable
from mqlab.lab.lab import Lab
from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.cases.lab01.files import broker_files, quiet_lab, shop_of
from mqlab.teach.exercises import Call, Finding
from mqlab.teach.kit import Pure, slips
from mqlab.teach.kit.shapes import Difference
from mqlab.wire.java_hash import index_key_hash
from mqlab.wire.message import Message

SLOTS, ENTRIES = 7, 150
HEADER_BYTES = 40
READS_BESIDE_THE_CHAIN = 3
MOST_READS = 2 * ENTRIES
ALWAYS = (0, 2**62)

PLACE_RULE = (
    "Slot s = hash of topic#key % S is at byte 40 + 4 * s; entry n is at 40 + 4 * S + 20 * n, so entry 0 is a gap"
)
CHAIN_RULE = "A slot's chain holds all hashes that share the slot: only entries with the key's own hash count"
SECONDS_RULE = "An entry's third number is whole seconds since the file's begin_timestamp, not ms and not a date"
ORDER_RULE = "The slot names its newest entry, and each entry the one before it: the newest comes first"
SCAN_RULE = (
    "A slot leads to its chain, and only the chain is read, entry by entry: an index of millions of entries cannot be "
    "searched from its beginning"
)
PIECE_RULE = "An index file has hundreds of megabytes: read what you need, at most the 40 bytes of the header at once"


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
        if self.count > MOST_READS:
            raise UsageError(f"the index was read {MOST_READS} times", hint="a chain ends where the previous one is 0")
        return self._data[position : position + size]


def calls(seed: int) -> Iterator[Call]:
    """For each key two questions over all time, one per topic, and one over a time span."""
    rng = random.Random(f"lab01.index {seed}")
    keys = [f"order-{number}" for number in range(6)] + ["订单-7"]

    def story(lab: Lab) -> None:
        shop = shop_of(lab, "orders", "letters")
        for _ in range(24):
            topic = rng.choice(("orders", "orders", "letters"))
            shop.send(Message(topic, b"a book", keys=rng.choice(keys)))
            lab.run_for(rng.randint(100, 9_000))

    lab = quiet_lab(story, seed, max_hash_slot_num=SLOTS, max_index_num=ENTRIES)
    (data,) = broker_files(lab, "index").values()
    begin_timestamp = IndexTable(memoryview(data), SLOTS, ENTRIES).begin_timestamp
    for key in [*keys, "nobody"]:
        begin_ms = begin_timestamp + 1000 * rng.randrange(1, 60)
        span = begin_ms, begin_ms + 1000 * rng.randrange(20, 60)
        for topic, (begin, end) in (("orders", ALWAYS), ("letters", ALWAYS), ("orders", span)):
            yield question(data, topic, key, begin, end)


def question(data: bytes, topic: str, key: str, begin_ms: int, end_ms: int) -> Call:
    """One question to an index file, with what the broker's own walk along the chain finds."""
    table, key_hash = IndexTable(memoryview(data), SLOTS, ENTRIES), index_key_hash(f"{topic}#{key}")
    right: list[int] = []
    table.select(key_hash, right, 64, begin_ms, end_ms)
    # The bytes of the slot and of its newest entry: an answer has to start there.
    slot = key_hash % SLOTS
    at = table.slot_position(slot)
    about = f"{topic}#{key}: slot {slot} at byte {at}: {data[at : at + 4].hex(' ')}"
    newest = int.from_bytes(data[at : at + 4], "big")
    if newest:
        begin = table.entry_position(newest)
        about += f", so entry {newest} at byte {begin}: {data[begin : begin + 20].hex(' ', 4)}"
    reads = FileReads(data)
    return Call(
        read=reads.read, slots=SLOTS, topic=topic, key=key, begin_ms=begin_ms, end_ms=end_ms, right=right,
        about=about, given=(reads, [table.entry(number) for number in table.chain(key_hash)]),
    )  # fmt: skip


def _rule(call: Call, found: Any, seen: Difference) -> str:
    """From the most special mistake to the most general one: order, times, foreign hashes, places."""
    reads, chain = call.given
    key_hash = index_key_hash(f"{call['topic']}#{call['key']}")
    if sorted(found) == sorted(call.right):
        return SCAN_RULE if reads.count > READS_BESIDE_THE_CHAIN + len(chain) else ORDER_RULE
    if found and all(place in [entry[1] for entry in chain if entry[0] == key_hash] for place in found):
        return SECONDS_RULE
    if found and all(place in [entry[1] for entry in chain] for place in found):
        return CHAIN_RULE
    return SECONDS_RULE if not found and call["begin_ms"] > 0 else PLACE_RULE


def _reads(call: Call) -> Finding | None:
    """Whether the answer read more than the chain."""
    reads, chain = call.given
    where = f"{call['topic']}#{call['key']}, whose chain has {len(chain)} entries"
    most = READS_BESIDE_THE_CHAIN + len(chain)
    if reads.largest > HEADER_BYTES:
        return Finding(PIECE_RULE, where, f"at most {HEADER_BYTES} bytes in one read", reads.largest, call=call)
    if reads.count > most:
        return Finding(SCAN_RULE, where, f"at most {most} reads", reads.count, call=call)
    return None


INDEX = Pure(
    "lab01.index", "places(read, slots, topic, key, begin_ms, end_ms)", points=4, forbids=FORBIDS["lab01.index"],
    about="an index of seven slots", calls=calls, seeds=(1, 2, 3),
    returns=[int], explain=_rule, also=_reads, slips=[slips.little_endian],
)  # fmt: skip
