"""lab06.scan: what each pull of a filtered queue finds, and where the next one begins.

What is right is what a real store answers, pull by pull, until the end of the queue is reached.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure, Slip, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message

ENTRIES, IN_MEMORY, ON_DISK = 800, 32, 8

BEGIN_RULE = "A pull begins where the one before it ended: at its next_offset"
ENTRIES_RULE = "A pull scans at most 800 entries, whether they match or not, and then answers with what it has"
FULL_RULE = "A pull ends with its 32nd message; the entries after it are for the next pull, even when they do not match"
DISK_RULE = (
    "Before each entry, the pull checks whether there is room: with 8 messages there is none for an entry on "
    "disk, with 32 none for one in memory"
)
NEXT_RULE = "next_offset counts the entries that were scanned, not the messages that were found"
FOUND_RULE = "found counts the messages with the wanted tag"
EXACT_RULE = "A tag is wanted when it is the subscribed tag, all of it: unpaid is another tag than paid"
NUMBER_RULE = "There is a pull until next_offset is the end of the queue; the pull at the end itself is held"


def asked_of_a_store(names: Sequence[str], wanted: str, memory_from: int) -> list[tuple[int, int, int]]:
    """The pulls (offset, messages found, next offset) of a store in which the queue's end is in memory."""
    pulls, offset = [], 0
    with tempfile.TemporaryDirectory() as directory, MessageStore.open(directory, dispatch=True) as store:
        for tag in names:
            store.put(Message("orders", b"a book", tags=tag))
        # The store judges by bytes of the log: all that lies before the first entry in memory is on the disk.
        end = store.max_physical_offset
        first = end if memory_from >= len(names) else _place(store, memory_from)
        store.reader.memory_bytes = end - first
        while offset < len(names):
            answer = store.get("orders", 0, offset, max_nums=IN_MEMORY, sub_expression=wanted)
            pulls.append((offset, len(answer.units), answer.next_begin_offset))
            offset = answer.next_begin_offset
    return pulls


def _place(store: MessageStore, queue_offset: int) -> int:
    """Where in the log the message of an entry begins."""
    unit = store.consume_queue_unit("orders", 0, queue_offset)
    assert unit is not None
    return unit.physical_offset


def scanned(
    names: Sequence[str],
    wanted: str,
    memory_from: int,
    *,
    entries: int = ENTRIES,
    in_memory: int = IN_MEMORY,
    on_disk: int = ON_DISK,
    counts_found: bool = False,
) -> list[tuple[int, int, int]]:
    """The same, computed; the keywords are misunderstandings."""
    pulls, offset = [], 0
    while offset < len(names):
        matched, position = 0, offset
        while position < len(names) and (position - offset < entries or counts_found):
            if matched and matched >= (in_memory if position >= memory_from else on_disk):
                break
            matched += names[position] == wanted
            position += 1
        pulls.append((offset, matched, position))
        offset = position
    return pulls


def queue_call(names: Sequence[str], memory_from: int, about: str) -> Call:
    """The call for a queue, with what a store answered."""
    right = asked_of_a_store(names, "paid", memory_from)
    return Call(tags=list(names), wanted="paid", memory_from=memory_from, right=right, about=about)


def sparse(rng: random.Random) -> Call:
    """Few entries match; all are in memory."""
    size = rng.randint(1700, 2600)
    places = set(rng.sample(range(size), rng.randint(3, 9)))
    return queue_call(_tags(size, places), 0, f"a rare tag, {size} entries in memory")


def dense(rng: random.Random) -> Call:
    """Every third or so matches; all are in memory, so a pull is full long before 800."""
    size = rng.randint(250, 420)
    every = rng.choice((2, 3, 4))
    return queue_call(_tags(size, range(0, size, every)), 0, f"every entry in {every}, in memory")


def cold(rng: random.Random, entries_after: int = 0) -> Call:
    """The beginning is on disk, the end in memory; a pull has its eighth match so many entries before the border."""
    size = rng.randint(220, 300)
    places = set(rng.sample(range(size), size // 2))
    border = sorted(places)[8 * rng.randint(5, 7) - 1] + 1 + entries_after
    return queue_call(_tags(size, places), border, f"{border} of {size} entries on disk")


def mixed(rng: random.Random) -> Call:
    """A crowd of matches, a desert, and a crowd again."""
    crowd, desert = rng.randint(40, 70), rng.randint(900, 1500)
    size = 2 * crowd + desert
    places = {*range(crowd), *range(crowd + desert, size)}
    return queue_call(_tags(size, places), 0, f"{crowd} matches, {desert} others, {crowd} matches")


def _tags(size: int, places: Sequence[int] | set[int] | range) -> list[str]:
    wanted = set(places)
    return ["paid" if position in wanted else ("created", "unpaid")[position % 2] for position in range(size)]


def queues(seed: int) -> list[Call]:
    """One queue of each kind."""
    rng = random.Random(f"lab06.scan {seed}")
    return [dense(rng), sparse(rng), cold(rng), mixed(rng), cold(rng, 1)]


def _as(call: Call, **misread: object) -> list[tuple[int, int, int]]:
    return scanned(call["tags"], call["wanted"], call["memory_from"], **misread)  # type: ignore[arg-type]


def _explain(call: Call, answer: list[tuple[int, int, int]], seen: Difference) -> str:
    if seen.part == "number":
        return NUMBER_RULE
    number = next(index for index, (right, got) in enumerate(zip(call.right, answer, strict=False)) if right != got)
    right, got = call.right[number], answer[number]
    if right[0] != got[0]:
        return BEGIN_RULE
    if got[2] > right[0] + ENTRIES:
        return ENTRIES_RULE
    if got[1] == right[1] and got[2] < right[2]:
        return NEXT_RULE
    if got[1] != right[1] and got[2] == right[2]:
        return FOUND_RULE
    return DISK_RULE if right[0] < call["memory_from"] else FULL_RULE


SCAN = Pure(
    "lab06.scan",
    "scan(tags, wanted, memory_from)",
    points=2,
    about="filtered queues",
    calls=queues,
    returns=[tuple_of("pull", queue_offset=int, found=int, next_offset=int)],
    explain=_explain,
    rules={"number": NUMBER_RULE, "queue_offset": BEGIN_RULE, "found": FOUND_RULE, "next_offset": NEXT_RULE},
    slips=[
        Slip("until something is found", lambda call: _as(call, counts_found=True), ENTRIES_RULE, "lab06.scans_on"),
        Slip("8 from memory too", lambda call: _as(call, in_memory=ON_DISK), DISK_RULE),
        Slip("the reverse", lambda call: _as(call, in_memory=ON_DISK, on_disk=IN_MEMORY), DISK_RULE),
        Slip("32 from the disk too", lambda call: _as(call, on_disk=IN_MEMORY), DISK_RULE, "lab06.always_32"),
        Slip(
            "a part of a tag",
            lambda call: scanned(
                ["paid" if "paid" in tag else tag for tag in call["tags"]], "paid", call["memory_from"]
            ),
            EXACT_RULE,
        ),
        Slip("32 entries", lambda call: _as(call, entries=IN_MEMORY), ENTRIES_RULE),
    ],
    weights={"": 1, "a rare tag": 1, "many matches": 1, "a part on disk": 1},
    forbids=FORBIDS["lab06.scan"],
)
