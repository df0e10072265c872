"""The days for lab 00's exercises, each made from a seed.

unread_calls  a queue and three groups, numbers alone                    ─▶ lab00.unread
half_read     orders between letters; one group stopped half-way        ─▶ lab00.find
working_day   orders now and then; a fast group and a late, slow one    ─▶ lab00.timeline, lab00.crash

What is right is read from a day: from the broker's own files and steps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mqlab.course.cases.story_parts import one_queue, reader
from mqlab.course.teach.exercises import Call
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.message import Message

BODIES = ("книга", "三本书", "🎁🎁", "a lamp", "чай с лимоном", "one very long order " * 20)
GROUPS = ("audit", "billing")
RESTARTS_AFTER = 3
FIRST_FILE = "00000000000000000000"


def half_read(seed: int) -> Lab:
    """Orders between letters; audit stops half-way, billing reads everything, two groups read only letters.

    On odd days press-audit leaves before the first letter, so the table does not have it. audit has read letters once,
    too: its offset there is still in the table.
    """
    rng = random.Random(f"lab00.find {seed}")

    def story(lab: Lab) -> None:
        # 1. A producer that mixes both topics, so that places in the log and in a queue differ.
        one_queue(lab, "orders", "letters")
        shop = lab.producer("shop")
        press = [reader(lab, group, "letters", lambda: 5) for group in ("press-audit", "press-billing")]
        if seed % 2:
            press[0].shutdown()
        former = reader(lab, "audit", "letters", lambda: 5, name="audit-of-letters")
        for _ in range(9):
            shop.send(Message("letters", b"a letter"))
        lab.run_for("6s")
        former.shutdown()

        def send(count: int) -> None:
            for _ in range(count):
                topic = rng.choice(("letters", "orders"))
                shop.send(Message(topic, rng.choice(BODIES).encode(), tags=rng.choice(("paid", "已支付"))))
            shop.send(Message("orders", rng.choice(BODIES).encode()))

        send(rng.randint(2, 5))
        audit = reader(lab, "audit", "orders", lambda: 5)
        lab.run_for("12s")
        # 2. audit leaves: it does not read what is sent from here on.
        audit.shutdown()
        send(rng.randint(2, 5))
        reader(lab, "billing", "orders", lambda: 5)
        lab.run_for("20s")

    return play(story, seed=seed)


def working_day(seed: int, end_ms: int) -> Lab:
    """Orders that come now and then; billing is there from the start, audit comes later and is slower.

    Billing's process is restarted once, so that it sees again what it had not reported.
    """
    rng = random.Random(f"lab00.day {seed}")

    def story(lab: Lab) -> None:
        start_ms = lab.now_ms
        one_queue(lab, "orders")
        shop = lab.producer("shop")
        reader(lab, "billing", "orders", lambda: rng.randint(20, 900))
        for number in range(8):
            lab.run_for(rng.randint(300, 3000))
            shop.send(Message("orders", rng.choice(BODIES).encode(), keys=f"order-{number}"))
            if number == 2:
                reader(lab, "audit", "orders", lambda: rng.randint(500, 4000))
            if number == RESTARTS_AFTER:
                lab.run_for("1s")
                lab.kill("billing-1")
                lab.start("billing-1")
        lab.run_for(max(start_ms + end_ms - lab.now_ms, 1))

    return play(story, seed=seed)


def unread_calls(seed: int) -> Iterator[Call]:
    """A queue's length and three groups: one at its end, one on the way, one that has not read anything."""
    rng = random.Random(f"lab00.unread {seed}")
    for number in range(3):
        stored, groups = rng.randint(4, 9), ["audit", "billing", "press"]
        rng.shuffle(groups)
        offsets = {groups[0]: stored, groups[1]: rng.randint(1, stored - 2)}
        right = {group: list(range(offsets.get(group, 0), stored)) for group in groups}
        yield Call(stored=stored, offsets=offsets, groups=groups, right=right, about=f"example {number + 1}")


def find_calls(seed: int) -> Iterator[Call]:
    """Each order's place, unit and the groups past it."""
    store = half_read(seed).store()
    folder = Path(store.directory)
    log = (folder / "commitlog" / FIRST_FILE).read_bytes()[: store.max_physical_offset]
    entries = (folder / "consumequeue" / "orders" / "0" / FIRST_FILE).read_bytes()
    offsets = store.config("consumerOffset.json")["offsetTable"]
    orders = list(store.messages("orders"))
    for message in orders:
        unit = log[message.physical_offset :][: record.decode(log, message.physical_offset).total_size]
        about = f"message {message.queue_offset} of the queue"
        tables = [offsets]
        # Before a group's first report the table does not have it: asked for audit's first message, and the last one.
        if message.queue_offset == 0:
            tables.append({key: held for key, held in offsets.items() if key != "orders@audit"})
        if message.queue_offset == len(orders) - 1:
            tables.append({key: held for key, held in offsets.items() if not key.endswith("billing")})
        for table in tables:
            past = [group for group in GROUPS if table.get(f"orders@{group}", {}).get(0, 0) > message.queue_offset]
            yield Call(
                queue_offset=message.queue_offset,
                entries=entries,
                log=log,
                offset_table=table,
                right=(message.physical_offset, unit, past),
                about=about,
            )


def timeline_calls(seed: int) -> Iterator[Call]:
    """For each order and group: when it was stored, first seen, and known to be done."""
    # Every second day ends while a listener is still at work, so that some things have not happened yet.
    lab = working_day(seed, 26_000 if seed % 2 else 12_000)
    rows = lab.timeline().table().to_dicts()
    # A third group was never there: what did not happen at all.
    for group in (*GROUPS, "press"):
        for message in lab.store().messages("orders"):
            right = (message.store_timestamp, *_seen_and_known(lab, message, group))
            about = f"{message.keys} and {group}"
            yield Call(rows=rows, msg_id=message.msg_id, group=group, right=right, about=about)


def _seen_and_known(lab: Lab, message: Any, group: str) -> tuple[int | None, int | None]:
    seen = next((d.started_ms for d in lab.deliveries(group) if d.msg_id == message.msg_id), None)
    for step, values in lab.journal.changes("offset.committed"):
        # An offset is the next message to read, so it must be greater than the message's own.
        ours = values["group"] == group and values["topic"] == "orders"
        if ours and values["queue_offset"] > message.queue_offset:
            return seen, step.now_ms
    return seen, None


def crash_calls(seed: int) -> list[Call]:
    """What each group reads next after its consumer was killed; one group was never there."""
    lab = working_day(seed, random.Random(f"lab00.crash {seed}").randint(12_000, 24_000))
    return [killed(lab, [*GROUPS, "nobody"])]


def killed(lab: Lab, groups: Sequence[str]) -> Call:
    """Where groups stand after all consumers of a day were killed."""
    for group in GROUPS:
        lab.kill(f"{group}-1")
    offsets = lab.broker().offset_table
    right = {group: (offsets.queues_of(group, "orders") or {}).get(0, 0) for group in groups}
    return Call(rows=lab.timeline().table().to_dicts(), groups=list(groups), right=right, about="the result")
