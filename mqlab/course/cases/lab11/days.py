"""The days of lab 11: played in a Lab, with every cause in them, and the trace of a third broker.

broker-a, broker-b   played (mqlab.course.given.lab11.played_day): orders, retries, a dead letter, offsets, trace
broker-c             has trace, and some orders (_orders_elsewhere). Some messages of the trace are those of the others
                     once more: their client did not hear that they were stored, and sent them again, elsewhere. The
                     rest tells of an audit that is read once more, in batches: one fails, one is by an old client, one
                     does not come back, and of one the beginning is lost. At last a retry is delivered twice more, with
                     the retry_times that it had: late, and 30 s after that.
"""

from __future__ import annotations

import functools
import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mqlab.course.cases.lab11.bodies import entry
from mqlab.course.given.lab11 import trace_tables as trace
from mqlab.course.given.lab11.lag_board import OFFSETS_FILE
from mqlab.course.given.lab11.played_day import AUDIT, BILLING, MAIL
from mqlab.course.given.lab11.trace_tables import Row
from mqlab.course.kit import Store
from mqlab.course.kit.stores import Stored, shared_folder, store_of
from mqlab.course.teach.datasets import played_day
from mqlab.rocketmq.store import config_texts
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.scales import MINUTE, SECOND

SENT_AGAIN_EVERY = 9
BATCHES = (4, 4, 3)
COST_MS = 120  # a message; RocketMQ divides the time of a call by the messages in it
ELSEWHERE = "broker-c"
READ_ELSEWHERE = {f"orders@{group}": {"0": read} for group, read in ((AUDIT, 0), (BILLING, 3), (MAIL, 2))}
LONG_MS = 90 * SECOND
CALLS_ELSEWHERE = (
    (BILLING, 0, 1_000, 0, False, COST_MS),
    (BILLING, 1, 2_000, 0, False, COST_MS),
    (BILLING, 2, 3_000, 0, True, COST_MS),
    (BILLING, 2, 3_000 + COST_MS + MINUTE, 0, True, COST_MS),
    (BILLING, 1, 90_000, 0, True, COST_MS),
    (BILLING, 5, 20_000, 0, False, COST_MS),
    (BILLING, 5, 31_000, 1, True, COST_MS),
    (BILLING, 6, 22_000, 0, None, COST_MS),
    (BILLING, 6, 60_000, 1, True, COST_MS),
    (BILLING, 8, 20_000, 0, None, COST_MS),
    (BILLING, 8, 40_000, 0, True, COST_MS),
    (BILLING, 9, 25_000, 0, True, COST_MS),
    (AUDIT, 3, 5_000, 0, True, LONG_MS),
    (AUDIT, 3, 5_000 + LONG_MS + 30 * SECOND, 0, True, LONG_MS),
)
"""Calls with orders of the third broker: group, order, when, retry_times, whether it succeeded (None: it never ended),
and how long it took.
"""
DAYS_KEPT = 4  # what was read of them: public and hidden ones come by turns


@functools.cache
def day(seed: int) -> Store:
    """The folder with the stores of a seed."""
    folder = shared_folder("trace")
    shutil.copytree(played_day(seed).stores, folder, dirs_exist_ok=True)
    bodies, calls = trace.trace_bodies(folder), trace.calls_in(folder)
    late_ms, rng = max(call["started_ms"] for call in calls) + MINUTE, random.Random(f"lab11 {seed}")
    again = [message for message in bodies if b"Sub" in message["body"]][::SENT_AGAIN_EVERY]
    stored = [
        *_as_stored(again, late_ms),
        *_in_batches(calls, late_ms, rng),
        *_retry_again(calls, late_ms + 5 * MINUTE),
        *_orders_elsewhere(late_ms + 10 * MINUTE, rng),
    ]
    _store(folder / ELSEWHERE, stored)
    return Store(str(folder), f"the day of seed {seed}")


@functools.lru_cache(maxsize=DAYS_KEPT)
def entries_of(stores: str) -> list[Row]:
    """The entries of a day, which does not change: read once for all that misunderstandings make of them."""
    return trace.entries_in(stores)


@functools.lru_cache(maxsize=DAYS_KEPT)
def calls_of(stores: str) -> list[Row]:
    """The calls of a day, which does not change: read once for all that misunderstandings make of them."""
    return trace.calls_of(entries_of(stores))


def _store(directory: Path, messages: Iterable[Stored]) -> None:
    """A store with these messages; billing has read three of its orders, mail has passed two, audit has read none."""
    store_of(directory, messages)
    config = directory / "config"
    config.mkdir(exist_ok=True)
    (config / OFFSETS_FILE).write_text(config_texts.encode(OFFSETS_FILE, {"offsetTable": READ_ELSEWHERE}), "utf-8")


def _as_stored(messages: Sequence[Row], at_ms: int) -> Iterator[Stored]:
    for message in messages:
        yield _stored(message["body"], message["trace_msg_id"], at_ms)


def _stored(body: bytes, trace_msg_id: str, at_ms: int) -> Stored:
    return Stored(at_ms, names.TRACE_TOPIC, 0, body, {p.UNIQ_KEY: trace_msg_id})


def _in_batches(calls: Sequence[Row], at_ms: int, rng: random.Random) -> Iterator[Stored]:
    """Three calls of audit with several messages each: the first fails, the second succeeds, the third never ends. Of a
    fourth one the beginning is lost.
    """
    done = {
        call["msg_id"]: call
        for call in calls
        if call["group_name"] == AUDIT and call["status"] == trace.SUCCESS and call["keys"].startswith("order-")
    }
    chosen = rng.sample(sorted(done), sum(BATCHES))
    for number, count in enumerate(BATCHES):
        batch, chosen = [done[msg_id] for msg_id in chosen[:count]], chosen[count:]
        request_id, at_ms = f"0A0000990000{rng.randrange(16**20):020X}", at_ms + 10 * SECOND
        yield _stored(_begun(batch, request_id, at_ms), f"{request_id[:-1]}B", at_ms)
        if number < 2:
            yield _stored(_back(batch, request_id, at_ms, old=number == 1), f"{request_id[:-1]}C", at_ms + SECOND)
    request_id = f"0A0000990001{rng.randrange(16**20):020X}"
    yield _stored(_back(batch, request_id, at_ms, old=False), f"{request_id[:-1]}C", at_ms + 2 * SECOND)


def _retry_again(calls: Sequence[Row], at_ms: int) -> Iterator[Stored]:
    """The first retry that succeeded, delivered twice more: its retry_times stays as it was."""
    retries = [call for call in calls if call["retry_times"] and call["status"] == trace.SUCCESS and call["keys"]]
    retry = min(retries, key=lambda call: (call["started_ms"], call["request_id"]))
    group, msg_id, keys = retry["group_name"], retry["msg_id"], retry["keys"]
    for number, begun_ms in enumerate((at_ms, at_ms + COST_MS + 30 * SECOND)):
        request_id = f"{retry['request_id'][:-3]}9{number}0"
        before = entry("SubBefore", begun_ms, None, group, request_id, msg_id, retry["retry_times"], keys)
        yield _stored(before, f"{request_id[:-1]}B", begun_ms)
        after = entry("SubAfter", request_id, msg_id, COST_MS, True, keys, 0, begun_ms + COST_MS, group)
        yield _stored(after, f"{request_id[:-1]}C", begun_ms + COST_MS)


def _orders_elsewhere(at_ms: int, rng: random.Random) -> Iterator[Stored]:
    """Eleven units of orders, dead letters, and calls with them.

    c0, c1, c2   billing fails with the first, which its offset has passed; the second is dead, is resent and done; the
                 third is done, twice, a minute apart. Mail has passed the first two, and the first is dead, though no
                 call tells of it
    c3, c4       billing reads the fourth next, and does not want the fifth. Audit has long calls with the fourth
    c5, c8       stored twice: with the one a retry comes before the second unit, with the other a call hangs before it
    c0, c7       another message has the keys of the first; another one the id of the fourth, as in a batch

    With the second c0 a call hangs, and a retry comes. The order of a last call is not in any log.
    """
    ids = [f"0A00009A0000{rng.randrange(16**20):020X}" for _ in range(8)]
    message = {number: (ids[number], f"order-c{number}") for number in (0, 1, 2, 3, 4, 5)}
    message |= {6: (ids[6], "order-c0"), 7: (ids[3], "order-c7"), 8: (ids[7], "order-c8"), 9: (ids[7], "order-gone")}

    def of(number: int) -> dict[str, str]:
        msg_id, keys = message[number]
        return {p.UNIQ_KEY: msg_id, p.KEYS: keys, p.TAGS: "created" if number == 4 else "paid"}

    for second, number in enumerate((0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 8)):
        yield Stored(at_ms + second * SECOND, "orders", 0, b"three books", of(number))
    for group, number in ((BILLING, 1), (MAIL, 0)):
        dead = {**of(number), p.RETRY_TOPIC: "orders"}
        yield Stored(at_ms + 3_500, names.dlq_topic(group), 0, b"three books", dead)
    for group, number, after_ms, retry_times, is_done, length_ms in CALLS_ELSEWHERE:
        msg_id, keys = message[number]
        request_id, begun_ms = f"0A0000980000{rng.randrange(16**20):020X}", at_ms + after_ms
        before = entry("SubBefore", begun_ms, None, group, request_id, msg_id, retry_times, keys)
        yield _stored(before, f"{request_id[:-1]}B", begun_ms)
        if is_done is not None:
            ended_ms, code = begun_ms + length_ms, 0 if is_done else 4
            after = entry("SubAfter", request_id, msg_id, length_ms, is_done, keys, code, ended_ms, group)
            yield _stored(after, f"{request_id[:-1]}C", ended_ms)


def _begun(batch: Sequence[Row], request_id: str, at_ms: int) -> bytes:
    return b"".join(
        entry("SubBefore", at_ms, None, AUDIT, request_id, call["msg_id"], 0, call["keys"]) for call in batch
    )


def _back(batch: Sequence[Row], request_id: str, at_ms: int, *, old: bool) -> bytes:
    """The call with the first batch fails. An old client tells neither the code nor when it was, nor its group."""
    more = () if old else (4, at_ms + COST_MS * len(batch), AUDIT)
    return b"".join(entry("SubAfter", request_id, call["msg_id"], COST_MS, old, call["keys"], *more) for call in batch)
